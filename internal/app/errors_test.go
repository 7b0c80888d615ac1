// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/simulator"
)

const errorsKey = "the-secret-of-the-errors-key"

const errorsConfig = `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "10"}, aliases: [nick]}
  - {name: other, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: unpriced, provider: sim, upstream: "no-such-model-anywhere"}
  - {name: gratis, provider: sim, upstream: "sim?in=20&out=30", price: free}
  - {name: echo, provider: sim, upstream: "sim?echo&status=503"}
keys:
  - {name: k, secret: the-secret-of-the-errors-key}
  - {name: listed, secret: the-secret-of-the-listed-key, allowed_models: [m], max_output_tokens: 100, caps: {day: "100"}}
  - {name: nothing, secret: the-secret-of-the-empty-key, allowed_models: []}
`

// TestBadInputGetsAShapedErrorAndCostsNothing: ERR-5, BR-148, BR-217, BR-181,
// BR-197, KEY-1. Each is one request that must not reach the provider.
func TestBadInputGetsAShapedErrorAndCostsNothing(t *testing.T) {
	w := newWorld(t, errorsConfig)
	good := chatBody("m", "")
	for _, c := range []struct {
		name, method, path, key, body string
		headers                       []string
		status                        int
		code                          string
	}{
		{"no key", "POST", "/v1/chat/completions", "", good, nil, 401, "invalid_api_key"},
		{"unknown key", "POST", "/v1/chat/completions", "foo-bar-key", good, nil, 401, "invalid_api_key"},
		{"two keys", "POST", "/v1/chat/completions", errorsKey, good, []string{"x-api-key", "another"}, 401, "invalid_api_key"},
		{"broken JSON", "POST", "/v1/chat/completions", errorsKey, `{"model":"m"`, nil, 400, "invalid_request"},
		{"trailing bytes", "POST", "/v1/chat/completions", errorsKey, good + "x", nil, 400, "invalid_request"},
		{"not an object", "POST", "/v1/chat/completions", errorsKey, `[]`, nil, 400, "invalid_request"},
		{"empty body", "POST", "/v1/chat/completions", errorsKey, ``, nil, 400, "invalid_request"},
		{"model twice", "POST", "/v1/chat/completions", errorsKey, `{"model":"m","Model":"other","messages":[{"role":"user","content":"x"}]}`, nil, 400, "invalid_request"},
		{"model of another type", "POST", "/v1/chat/completions", errorsKey, `{"model":["m"],"messages":[{"role":"user","content":"x"}]}`, nil, 400, "invalid_request"},
		{"api_base", "POST", "/v1/chat/completions", errorsKey, chatBody("m", `"api_base":"http://127.0.0.1:1/"`), nil, 400, "invalid_request"},
		{"n is zero", "POST", "/v1/chat/completions", errorsKey, chatBody("m", `"n":0`), nil, 400, "invalid_request"},
		{"a packed body", "POST", "/v1/chat/completions", errorsKey, good, []string{"Content-Encoding", "zstd"}, 400, "invalid_request"},
		{"negative bound", "POST", "/v1/chat/completions", errorsKey, chatBody("m", `"max_tokens":-1`), nil, 400, "invalid_request"},
		{"stream is a string", "POST", "/v1/chat/completions", errorsKey, chatBody("m", `"stream":"yes"`), nil, 400, "invalid_request"},
		{"odd model bytes", "POST", "/v1/chat/completions", errorsKey, chatBody(` m`, ""), nil, 400, "invalid_request"},
		{"unknown model", "POST", "/v1/chat/completions", errorsKey, chatBody("none", ""), nil, 404, "model_not_found"},
		{"another case of a model", "POST", "/v1/chat/completions", errorsKey, chatBody("M", ""), nil, 404, "model_not_found"},
		{"not on the list", "POST", "/v1/chat/completions", "the-secret-of-the-listed-key", chatBody("other", ""), nil, 400, "model_not_allowed"},
		{"not on the list and nowhere", "POST", "/v1/chat/completions", "the-secret-of-the-listed-key", chatBody("none", ""), nil, 400, "model_not_allowed"},
		{"an empty list allows none", "POST", "/v1/chat/completions", "the-secret-of-the-empty-key", good, nil, 400, "model_not_allowed"},
		{"above the key's output bound", "POST", "/v1/chat/completions", "the-secret-of-the-listed-key", chatBody("m", `"max_tokens":101`), nil, 400, "max_output_tokens_exceeded"},
		{"a path that is no door", "POST", "/v1/nothing", errorsKey, good, nil, 404, "not_found"},
		{"a doubled slash", "POST", "//v1/chat/completions", errorsKey, good, nil, 404, "not_found"},
		{"a trailing slash", "POST", "/v1/chat/completions/", errorsKey, good, nil, 404, "not_found"},
		{"another method", "DELETE", "/v1/chat/completions", errorsKey, "", nil, 405, "method_not_allowed"},
		{"an upgrade", "GET", "/v1/models", errorsKey, "", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 400, "invalid_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.must(w.do(context.Background(), c.method, c.path, c.key, c.body, c.headers...), c.status, c.code)
			var shape struct {
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal([]byte(a.body), &shape); err != nil || shape.Error.Message == "" || shape.Error.Type == "" {
				t.Errorf("the body is not OpenAI's shape: %s", a.body)
			}
			if ct := a.header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
				t.Errorf("content type %q", ct)
			}
			if a.header.Get("X-Weir-Error-Source") != "gateway" || !strings.HasPrefix(a.header.Get("X-Weir-Request-Id"), "req_") {
				t.Errorf("headers %v", a.header)
			}
			if c.key != "" && strings.Contains(a.body, c.key) {
				t.Errorf("the answer repeats the key (BR-204)")
			}
		})
	}
	if n := w.provider.Bill().Requests; n != 0 {
		t.Fatalf("%d requests reached the provider", n)
	}
	if got := w.spend(""); got != 0 {
		t.Fatalf("%s USD were charged", got)
	}
	w.balanced()
}

// TestARefusalSaysWhichLimitWhoseHowMuchAndUntilWhen: ERR-1 to ERR-3, BR-211,
// BR-214, BR-218.
func TestARefusalSaysWhichLimitWhoseHowMuchAndUntilWhen(t *testing.T) {
	w := newWorld(t, `time_zone: Europe/Berlin
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "10"}}
keys:
  - {name: capped, secret: the-secret-of-the-capped-key, caps: {day: "0.0003"}}
  - {name: slow, secret: the-secret-of-the-slow-key, limits: {rpm: 2}}
`)
	w.must(w.chat("the-secret-of-the-capped-key", "m"), 200, "")
	a := w.must(w.chat("the-secret-of-the-capped-key", "m", "X-Request-Id", "mine-1"), 402, "day_limit_reached")
	var shape struct {
		Error struct {
			Raw json.RawMessage `json:"details"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &shape); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"scope":"key"`, `"subject":"capped"`, `"window":"day"`, `"amount":"0.0003"`, `"used":"0.00032"`, `"resets_at":"2026-07-21T00:00:00+02:00"`} {
		if !strings.Contains(string(shape.Error.Raw), want) {
			t.Errorf("details lack %s: %s", want, shape.Error.Raw)
		}
	}
	if a.header.Get("Retry-After") != "" || a.header.Get("X-Should-Retry") != "false" || a.header.Get("X-Weir-Reset") != "36000" {
		t.Errorf("headers of a spent cap: %v", a.header)
	}
	if a.header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("the client's id came back as %q", a.header.Get("X-Request-Id"))
	}
	w.eventually("the refusal's record", func() bool {
		list, err := w.admin.RequestList(context.Background(), admin.RequestListRequest{ClientID: "mine-1"})
		return err == nil && len(list.Requests) == 1 && list.Requests[0].ID == a.header.Get("X-Weir-Request-Id")
	})
	for range 2 {
		w.must(w.chat("the-secret-of-the-slow-key", "m"), 200, "")
	}
	a = w.must(w.chat("the-secret-of-the-slow-key", "m"), 429, "api_key_rpm_exceeded")
	if a.header.Get("Retry-After") != "30" || a.header.Get("X-Should-Retry") != "" || a.header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("headers of a full bucket: %v", a.header)
	}
	// The advice is honest: then, and not before, it is admitted (BR-137).
	w.clock.Advance(30*time.Second - time.Millisecond)
	w.must(w.chat("the-secret-of-the-slow-key", "m"), 429, "api_key_rpm_exceeded")
	w.clock.Advance(time.Millisecond)
	w.must(w.chat("the-secret-of-the-slow-key", "m"), 200, "")
}

// TestAProvidersErrorKeepsItsStatusAndBody but for our credential: DIS-2,
// BR-201, BR-214.
func TestAProvidersErrorKeepsItsStatusAndBody(t *testing.T) {
	w := newWorld(t, errorsConfig)
	a := w.chat(errorsKey, "echo")
	if a.status != 503 || a.header.Get("X-Weir-Error-Source") != "provider" {
		t.Fatalf("got %v", a)
	}
	if strings.Contains(a.body, providerCredential) || !strings.Contains(a.body, "[credential]") {
		t.Fatalf("the body shows the gateway's credential, or nothing in its place: %s", a.body)
	}
	w.balanced()
}

// TestPricesDecideWhatMayRun: PRC-3, PRC-4, BR-011, BR-127.
func TestPricesDecideWhatMayRun(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: unpriced, provider: sim, upstream: "no-such-model-anywhere"}
  - {name: gratis, provider: sim, upstream: "sim?in=20&out=30", price: free}
keys:
  - {name: free, secret: the-secret-of-the-errors-key}
  - {name: capped, secret: the-secret-of-the-capped-key, caps: {day: "0.0001"}}
`)
	w.must(w.chat(errorsKey, "unpriced"), 200, "")
	w.must(w.chat("the-secret-of-the-capped-key", "unpriced"), 400, "model_unpriced")
	w.must(w.chat("the-secret-of-the-capped-key", "m"), 200, "")
	w.must(w.chat("the-secret-of-the-capped-key", "m"), 402, "day_limit_reached")
	w.must(w.chat("the-secret-of-the-capped-key", "gratis"), 200, "")
	w.must(w.do(context.Background(), http.MethodGet, "/v1/models", "the-secret-of-the-capped-key", ""), 200, "")
	w.must(w.do(context.Background(), http.MethodGet, "/v1/key", "the-secret-of-the-capped-key", ""), 200, "")
	w.balanced()
}

// TestModelsShowsWhatTheKeyMayCall: KEY-5.
func TestModelsShowsWhatTheKeyMayCall(t *testing.T) {
	w := newWorld(t, errorsConfig)
	for key, want := range map[string]string{
		"the-secret-of-the-listed-key": "m model, nick model, ",
		"the-secret-of-the-empty-key":  "",
	} {
		a := w.must(w.do(context.Background(), http.MethodGet, "/v1/models", key, ""), 200, "")
		var list struct {
			Data []struct{ ID, Object string }
		}
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || !strings.Contains(a.body, `"data":[`) {
			t.Fatalf("%s: %v", a.body, err)
		}
		got := ""
		for _, m := range list.Data {
			got += m.ID + " " + m.Object + ", "
		}
		if got != want {
			t.Errorf("models of %s are %s, want %s", key, got, want)
		}
	}
	w.must(w.chat("the-secret-of-the-listed-key", "nick"), 200, "")
	w.must(w.chat("the-secret-of-the-empty-key", "nick"), 400, "model_not_allowed")
	a := w.do(context.Background(), http.MethodGet, "/v1/models/m", "the-secret-of-the-listed-key", "")
	w.must(a, 200, "")
	w.must(w.do(context.Background(), http.MethodGet, "/v1/models/other", "the-secret-of-the-listed-key", ""), 404, "model_not_found")
}

// TestRefusedRequestsConsumeNothing: BR-134, BR-135, BR-146, RUN-1, RUN-2.
func TestRefusedRequestsConsumeNothing(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: m, provider: sim, upstream: "sim?in=7&out=5", price: {input: "1", output: "10"}}
  - {name: bad, provider: sim, upstream: "sim?status=400", price: {input: "1", output: "10"}}
keys:
  - {name: two, secret: the-secret-of-the-two-key, limits: {rpm: 2, concurrency: 1}}
  - {name: twenty, secret: the-secret-of-the-twenty-key, limits: {rpm: 20}}
  - {name: small, secret: the-secret-of-the-small-key, limits: {tpm: 20}}
  - {name: tiny, secret: the-secret-of-the-tiny-key, limits: {tpm: 5}}
`)
	w.provider.Hold()
	first := make(chan answer, 1)
	go func() { first <- w.chat("the-secret-of-the-two-key", "m") }()
	w.await("A to run", func(n simulator.Totals) bool { return n.Held == 1 })
	w.must(w.chat("the-secret-of-the-two-key", "m"), 429, "api_key_concurrency_exceeded")
	w.provider.Release()
	w.must(<-first, 200, "")
	w.must(w.chat("the-secret-of-the-two-key", "m"), 200, "")
	w.must(w.chat("the-secret-of-the-two-key", "m"), 429, "api_key_rpm_exceeded")

	answers := volley(30, 1, func(int) answer { return w.chat("the-secret-of-the-twenty-key", "bad") })
	if got := count(answers, 400); got != 20 {
		t.Errorf("%d failing calls reached the provider, want 20 (BR-135)", got)
	}
	// Estimate 11, use 12: 12 + 11 > 20 (BR-146).
	w.must(w.chat("the-secret-of-the-small-key", "m"), 200, "")
	w.must(w.chat("the-secret-of-the-small-key", "m"), 429, "api_key_tpm_exceeded")
	// Larger than the whole bucket: never, and told so (RUN-2).
	a := w.must(w.chat("the-secret-of-the-tiny-key", "m"), 429, "api_key_tpm_exceeded")
	if a.header.Get("Retry-After") != "" || a.header.Get("X-Should-Retry") != "false" || !strings.Contains(a.body, "larger_than_limit") {
		t.Errorf("a request larger than the bucket: %v %v", a, a.header)
	}
	w.balanced()
}
