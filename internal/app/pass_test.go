// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/simulator"
)

// TestBodiesPassThroughByteByByte but for what the gateway writes: DIS-6, KEY-6,
// EST-2.
func TestBodiesPassThroughByteByByte(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: m, provider: sim, upstream: "up", max_output_tokens: 50, price: {input: "1", output: "10"}}
  - {name: open, provider: sim, upstream: "a/quite:long@name", price: {input: "1", output: "10"}}
  - {name: new, provider: sim, upstream: "up", output_field: max_completion_tokens, price: {input: "1", output: "10"}}
keys:
  - {name: plain, secret: the-secret-of-the-plain-key}
  - {name: bound, secret: the-secret-of-the-bound-key, max_output_tokens: 40}
`)
	var received string
	var mu sync.Mutex
	w.provider.SetScript(func(r simulator.Request) simulator.Behaviour {
		mu.Lock()
		defer mu.Unlock()
		received = string(r.Body)
		return r.Scripted
	})
	const odd = ` "messages" : [ {"role":"user","content":"h\u00e9\ud83d\ude00 \/ é"} ] ,` + "\r\n\t" +
		`"seed":12345678901234567890123456789, "x_unknown" : {"a":[1e400,-0.0,1.10],"model":"inner","max_tokens":9999,"stream":true}, "temperature":1.0`
	const plain, bound = "the-secret-of-the-plain-key", "the-secret-of-the-bound-key"
	for _, c := range []struct{ name, key, body, want string }{
		{"only the model", plain, `{ "model" :  "open",` + odd + ` }`, `{ "model" :  "a/quite:long@name",` + odd + ` }`},
		{"the model last", plain, `{` + odd + `,"model":"open"}`, `{` + odd + `,"model":"a/quite:long@name"}`},
		{"space around", plain, "\n {\"model\":\"open\"," + odd + "}\n\n", "\n {\"model\":\"a/quite:long@name\"," + odd + "}\n\n"},
		{"the model's maximum is not filled in", plain, `{"model":"m",` + odd + `}`, `{"model":"up",` + odd + `}`},
		{"the model's maximum clamps", plain, `{"model":"m","max_tokens" : 51 ,` + odd + `}`, `{"model":"up","max_tokens" : 50 ,` + odd + `}`},
		{"what is below it stays", plain, `{"model":"m","max_tokens" : 49 ,` + odd + `}`, `{"model":"up","max_tokens" : 49 ,` + odd + `}`},
		{"the key's maximum is filled in", bound, `{"model":"m",` + odd + `}`, `{"model":"up",` + odd + `,"max_tokens":40}`},
		{"in the model's field", bound, `{"model":"new",` + odd + `}`, `{"model":"up",` + odd + `,"max_completion_tokens":40}`},
		{"the client's field stays", bound, `{"model":"new","max_tokens":39,` + odd + `}`, `{"model":"up","max_tokens":39,` + odd + `}`},
		{
			"usage is asked for", plain, `{"model":"open","stream":true,` + odd + `}`,
			`{"model":"a/quite:long@name","stream":true,` + odd + `,"stream_options":{"include_usage":true}}`,
		},
		{
			"beside other options", plain, `{"model":"open","stream":true,"stream_options": { "x" : 1 },` + odd + `}`,
			`{"model":"a/quite:long@name","stream":true,"stream_options": { "x" : 1,"include_usage":true },` + odd + `}`,
		},
		{
			"unless the client does", plain, `{"model":"open","stream":true,"stream_options": { "include_usage" : true },` + odd + `}`,
			`{"model":"a/quite:long@name","stream":true,"stream_options": { "include_usage" : true },` + odd + `}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions", c.key, c.body), 200, "")
			mu.Lock()
			defer mu.Unlock()
			if received != c.want {
				t.Errorf("the provider received\n%s\nwant\n%s", received, c.want)
			}
		})
	}
	w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions", bound, `{"model":"m","max_tokens":41,`+odd+`}`), 400, "max_output_tokens_exceeded")
	w.balanced()
}

// TestAProvidersErrorBringsItsRetryAfterAlone: DIS-2. A credential is replaced
// in every spelling, in a good answer too.
func TestAProvidersErrorBringsItsRetryAfterAlone(t *testing.T) {
	const credential = "credential+in/the=query"
	status := http.StatusTooManyRequests
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Retry-After": "7", "X-RateLimit-Reset": "7777", "Set-Cookie": "session=1", "X-Should-Retry": "true", "Www-Authenticate": "Bearer",
			"X-Request-Id": r.URL.Query().Get("key"), "Content-Type": "application/json",
		} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":"`+r.URL.Query().Get("key")+` in `+r.URL.RawQuery+`"}`)
	}))
	t.Cleanup(provider.Close)
	w := newWorld(t, `
providers:
  - {name: query, protocol: openai, base_url: "`+provider.URL+`/v1", auth: query, auth_name: key, api_key: `+credential+`}
models:
  - {name: m, provider: query, upstream: up, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+spelledKey+`}
`)
	for _, s := range []int{429, 200} {
		status = s
		a := w.chat(spelledKey, "m")
		if a.status != s || a.body != `{"error":"[credential] in key=[credential]"}` || a.header.Get("X-Weir-Provider-Request-Id") != "[credential]" {
			t.Errorf("%d: %v %v", s, a, a.header)
		}
		for _, name := range []string{"X-RateLimit-Reset", "Set-Cookie", "X-Should-Retry", "Www-Authenticate"} {
			if v := a.header.Get(name); v != "" {
				t.Errorf("%d: %s: %s went to the client", s, name, v)
			}
		}
		retry, source := "7", "provider"
		if s == 200 {
			retry, source = "", ""
		}
		if a.header.Get("Retry-After") != retry || a.header.Get("X-Weir-Error-Source") != source {
			t.Errorf("%d: headers %v", s, a.header)
		}
	}
	w.balanced()
}
