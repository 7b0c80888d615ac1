// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/money"
)

// door finds the route of a door.
func (w *world) door(suffix string) gateway.Route {
	w.t.Helper()
	for _, route := range w.server.Routes() {
		if route.Governed && strings.HasSuffix(route.Path, suffix) {
			return route
		}
	}
	w.t.Fatalf("no door ends in %s", suffix)
	return gateway.Route{}
}

// TestAProvidersBudgetCountsEveryDoor: BR-008. Three calls of 0.02 dollars by
// three doors are 0.06; the fourth is refused at each of them.
func TestAProvidersBudgetCountsEveryDoor(t *testing.T) {
	w := newWorld(t, `
providers: [{name: p, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`}]
models:
  - {name: m, provider: p, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.02"}}
budgets: [{name: b, scope: org, metric: spend, limit: "0.05", period: day, provider: p, enforcement: guard}]
keys: [{name: k, secret: `+limitKey+`}]
`)
	paths := []string{"/v1/chat/completions", "/v1/responses", "/v1/completions"}
	for i, path := range paths {
		w.must(w.enter(w.door(path), limitKey, i == 1), 200, "")
	}
	w.used(limitKey, "b", "0.06")
	for _, path := range append(paths, "/v1/embeddings") {
		for _, stream := range []bool{false, true} {
			w.must(w.enter(w.door(path), limitKey, stream), 429, "budget_exceeded")
		}
	}
	w.balanced()
}

// TestEveryProtocolsUsageIsChargedOnce: BR-101, BR-102, BR-105, BR-070, BR-073.
// Counts that stand in several events, inside a response or beside the answer's
// are charged as the provider bills them, whole and streamed.
func TestEveryProtocolsUsageIsChargedOnce(t *testing.T) {
	for _, c := range []struct {
		suffix, script, cost string
	}{
		{"/v1/messages", "in=25&out=15", "0.000175"},
		{"/v1/messages", "in=9&cached=1&out=16", "0.0001681"},
		{"/v1/responses", "in=33&out=57", "0.000603"},
		{"/v1/responses", "in=33&cached=20&out=57&reasoning=50", "0.000585"},
		{":streamGenerateContent", "in=8&out=116&reasoning=107", "0.001168"},
		{":generateContent", "in=10000&cached=8000&out=1", "0.00281"},
	} {
		t.Run(c.suffix[1:]+" "+c.script, func(t *testing.T) {
			text := strings.ReplaceAll(doorModels, "in=20&out=30", c.script)
			text = strings.ReplaceAll(text, `price: {input: "1", output: "10"}`, `price: {input: "1", cached_input: "0.1", output: "10"}`)
			w := newWorld(t, text+"keys:\n  - {name: k, secret: "+routesKey+"}\n")
			for n, stream := range []bool{false, true} {
				w.must(w.enter(w.door(c.suffix), routesKey, stream), 200, "")
				if want := multiple(t, c.cost, n+1); w.spend("").String() != want {
					t.Errorf("after %d: %s USD, want %s", n+1, w.spend(""), want)
				}
			}
			w.balanced()
		})
	}
}

// multiple is n times an amount of dollars.
func multiple(t *testing.T, usd string, n int) string {
	t.Helper()
	one, err := money.ParseUSD(usd)
	if err != nil {
		t.Fatal(err)
	}
	return (one * money.Nanos(n)).String()
}

// TestCountingTokensIsBoundedAndFree: BR-109. A count costs neither money nor
// tokens, counts for requests, and its body is bounded like any other.
func TestCountingTokensIsBoundedAndFree(t *testing.T) {
	for _, suffix := range []string{"/v1/messages/count_tokens", "/v1beta/models/{model}:countTokens"} {
		t.Run(suffix[1:], func(t *testing.T) {
			w := newWorld(t, "bounds: {max_body_bytes: 1024}\n"+doorModels+"keys:\n  - {name: k, secret: "+routesKey+", limits: {rpm: 3, tpm: 60}}\n")
			route := w.door(suffix)
			path := strings.ReplaceAll(route.Path, "{model}", doorModel(route.Door))
			large := strings.Replace(doorBody(t, route.Door, false), "hello", strings.Repeat("x", 1024), 1)
			for range 5 {
				w.must(w.do(context.Background(), http.MethodPost, path, routesKey, large), 413, "request_too_large")
			}
			for range 3 {
				w.must(w.enter(route, routesKey, false), 200, "")
			}
			w.must(w.enter(route, routesKey, false), 429, "api_key_rpm_exceeded")
			if w.spend("") != 0 {
				t.Errorf("counting cost %s USD", w.spend(""))
			}
			w.settled("1", "10")
		})
	}
}

// TestATranscriptionIsChargedByTheSecond: BR-081. A minute at a tenth of a
// thousandth of a dollar a second, whatever its output costs.
func TestATranscriptionIsChargedByTheSecond(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"text":"Hello","usage":{"type":"duration","seconds":60}}`))
	}))
	defer provider.Close()
	w := newWorld(t, `
providers: [{name: p, protocol: openai, base_url: "`+provider.URL+`", api_key: `+providerCredential+`}]
models: [{name: m, provider: p, price: {input: "0", output: "0", per_second_input: "0.0001"}}]
keys: [{name: k, secret: `+routesKey+`}]
`)
	w.must(w.enter(w.door("/v1/audio/transcriptions"), routesKey, false), 200, "")
	if got := w.spend("").String(); got != "0.006" {
		t.Errorf("a minute cost %s USD", got)
	}
	w.balanced()
}

// TestAToolThatNobodyBillsIsChargedAsItsTokens: EST-4, USE-1. A server of tools has
// no price a call: its request runs, and costs its tokens by their own prices.
func TestAToolThatNobodyBillsIsChargedAsItsTokens(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"resp_1","status":"completed","output":[{"type":"mcp_list_tools"},{"type":"mcp_call","name":"get"}],` +
			`"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":90},"output_tokens":5,"total_tokens":105}}`))
	}))
	defer provider.Close()
	w := newWorld(t, `
providers: [{name: p, protocol: openai, base_url: "`+provider.URL+`", api_key: `+providerCredential+`}]
models: [{name: m, provider: p, price: {input: "1", cached_input: "0.1", output: "10"}}]
keys: [{name: k, secret: `+routesKey+`, caps: {day: "10"}}]
`)
	body := `{"model":"m","input":"hello","max_output_tokens":50,"tools":[{"type":"mcp","server_label":"x","server_url":"https://example.com"}]}`
	w.must(w.do(context.Background(), http.MethodPost, "/v1/responses", routesKey, body), 200, "")
	if got := w.spend("").String(); got != "0.000069" { // 10 + 9 + 50 millionths
		t.Errorf("charged %s USD", got)
	}
	w.balanced()
}

var modelOf = regexp.MustCompile(`"model":"(?:models/)?[a-z]+"|\r\n\r\n[a-z]\r\n`)

// TestOneCauseHasOneStatusAndCodeAtEveryDoor: BR-213, BR-217, ERR-1. The same
// refusal has one status and code whatever door it comes from, in the shape of the
// door's protocol.
func TestOneCauseHasOneStatusAndCodeAtEveryDoor(t *testing.T) {
	w := newWorld(t, doorModels+"keys:\n  - {name: k, secret: "+routesKey+"}\n  - {name: spent, secret: "+secondKey+", limits: {rpm: 1}}\n")
	w.must(w.chat(secondKey, "m"), 200, "")
	for _, route := range w.server.Routes() {
		if !route.Governed {
			continue
		}
		body, headers := doorBody(t, route.Door, false), []string{}
		if route.Door == call.OpenAITranscriptions {
			headers = []string{"Content-Type", "multipart/form-data; boundary=x"}
		}
		other := modelOf.ReplaceAllString(body, `"model":"none"`)
		if route.Door == call.OpenAITranscriptions {
			other = modelOf.ReplaceAllString(body, "\r\n\r\nnone\r\n")
		}
		path := strings.ReplaceAll(route.Path, "{model}", doorModel(route.Door))
		for _, c := range []struct {
			secret, path, body string
			status             int
			code               string
		}{
			{"the-secret-of-nobody-at-all", path, body, 401, "invalid_api_key"},
			{routesKey, strings.ReplaceAll(route.Path, "{model}", "none"), other, 404, "model_not_found"},
			{routesKey, path, "{", 400, "invalid_request"},
			{secondKey, path, body, 429, "api_key_rpm_exceeded"},
		} {
			a := w.must(w.do(context.Background(), http.MethodPost, c.path, c.secret, c.body, headers...), c.status, c.code)
			if problem := shaped(route.Door, a, c.status, c.code); problem != "" {
				t.Errorf("%s, %s: %s\n%v", route.Path, c.code, problem, a)
			}
		}
	}
	w.settled("1", "10")
}

// shaped says what is wrong with a refusal's shape.
func shaped(door call.Door, a answer, status int, code string) string {
	var got struct {
		Type      string
		RequestID string `json:"request_id"`
		Error     struct {
			Type, Message, Status string
			Code                  any
			Details               json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		return err.Error()
	}
	id := a.header.Get("X-Weir-Request-Id")
	var details []struct{ Reason string }
	switch e := got.Error; {
	case id == "" || !strings.Contains(e.Message, id):
		return "no request id"
	case door.Protocol() != "gemini" && (e.Code != code || e.Type != fault.TypeFor(status)):
		return "another code or type"
	case door.Protocol() == "anthropic" && (got.Type != "error" || got.RequestID != id || a.header.Get("Request-Id") == ""):
		return "no error of Anthropic's"
	case door.Protocol() == "gemini" && (fmt.Sprint(e.Code) != fmt.Sprint(status) || e.Status == "" || json.Unmarshal(e.Details, &details) != nil || details[0].Reason != code):
		return "no error of Google's"
	}
	return ""
}

// TestAModelIsServedAtTheDoorsOfItsProtocol alone: SPEC section 9.
func TestAModelIsServedAtTheDoorsOfItsProtocol(t *testing.T) {
	w := newWorld(t, doorModels+"keys:\n  - {name: k, secret: "+routesKey+"}\n")
	for _, route := range w.server.Routes() {
		if !route.Governed || route.Door == call.OpenAITranscriptions {
			continue
		}
		for model, protocol := range map[string]string{"m": "openai", "a": "anthropic", "g": "gemini"} {
			if protocol == route.Door.Protocol() {
				continue
			}
			body := modelOf.ReplaceAllString(doorBody(t, route.Door, false), `"model":"`+model+`"`)
			w.must(w.do(context.Background(), http.MethodPost, strings.ReplaceAll(route.Path, "{model}", model), routesKey, body), 404, "model_not_found")
		}
	}
	w.settled("1", "10")
}

// TestNativePathsThatAreNoDoorReachNoProvider: BR-178, BR-179.
func TestNativePathsThatAreNoDoorReachNoProvider(t *testing.T) {
	w := newWorld(t, doorModels+"keys:\n  - {name: k, secret: "+routesKey+"}\n")
	body := doorBody(t, call.AnthropicMessages, false)
	for _, path := range []string{
		"/anthropic/v1/messages", "/v1/messages/batches", "/v1/batches", "/v1/files", "/v1/responses/resp_1", "/v1/responses/input_tokens", "/v1/realtime",
		"/model/a/invoke", "/v1beta/cachedContents", "/v2/chat", "/v1/rerank", "/openai/deployments/m", "/openai/deployments/m/messages",
	} {
		w.must(w.do(context.Background(), http.MethodPost, path, routesKey, body), 404, "not_found")
	}
	// These could be names of models, too, which are only looked up.
	for _, path := range []string{"/v1beta/models/g:batchGenerateContent", "/v1beta/models/g:predict", "/v1/models/g:predict"} {
		w.must(w.do(context.Background(), http.MethodPost, path, routesKey, body), 404, "not_found")
		w.must(w.do(context.Background(), http.MethodDelete, path, routesKey, ""), 405, "method_not_allowed")
	}
	if n := w.provider.Bill().Requests; n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
}

// TestARequestBringsNoCredentialOfAProvider: BR-185, DIS-5, KEY-1. A client's own
// credential for the provider is refused where it can be told, and never goes there:
// every request runs on the gateway's credential and under its key's limits.
func TestARequestBringsNoCredentialOfAProvider(t *testing.T) {
	const own = "sk-of-the-client-alone"
	var seen atomic.Value
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, _ := httputil.DumpRequest(r, true)
		seen.Store(string(dump))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(chatAnswer("m", "default", `{"prompt_tokens":20,"completion_tokens":30}`)))
	}))
	defer provider.Close()
	w := newWorld(t, `
providers: [{name: p, protocol: openai, base_url: "`+provider.URL+`", api_key: `+providerCredential+`}]
models: [{name: m, provider: p, price: {input: "1", output: "10"}}]
keys: [{name: k, secret: `+routesKey+`, limits: {rpm: 6}}]
`)
	for _, header := range []string{"x-api-key", "x-goog-api-key", "api-key"} {
		w.must(w.chat(routesKey, "m", header, own), 401, "invalid_api_key")
	}
	w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions?key="+own, routesKey, chatBody("m", `"n":1`)), 401, "invalid_api_key")
	for _, member := range []string{`"api_key":"` + own + `"`, `"base_url":"http://127.0.0.1:1"`} {
		w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions", routesKey, chatBody("m", member)), 400, "invalid_request")
	}
	if seen.Load() != nil {
		t.Fatalf("the provider was asked:\n%s", seen.Load())
	}
	for _, header := range []string{"X-Provider-Api-Key", "X-Openai-Api-Key", "X-Portkey-Api-Key", "X-Bf-Api-Key", "X-Direct-Key", "Cookie"} {
		w.must(w.chat(routesKey, "m", header, own), 200, "")
		if dump := seen.Load().(string); strings.Contains(dump, own) || strings.Contains(dump, routesKey) || !strings.Contains(dump, "Bearer "+providerCredential) {
			t.Errorf("with %s the provider reads\n%s", header, dump)
		}
	}
	w.must(w.chat(routesKey, "m", "X-Provider-Api-Key", own), 429, "api_key_rpm_exceeded")
	if got := w.spend("").String(); got != "0.00192" {
		t.Errorf("six requests on the gateway's credential cost %s USD", got)
	}
	w.balanced()
}

// TestThePageOfDoorsHasEveryDoor: what docs/doors.md lists is the route table.
func TestThePageOfDoorsHasEveryDoor(t *testing.T) {
	text, err := os.ReadFile("../../docs/doors.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, doorModels)
	rows := 0
	for _, route := range w.server.Routes() {
		if !route.Governed || strings.HasPrefix(route.Path, "/v1/models/") || strings.HasPrefix(route.Path, "/openai/deployments/") {
			continue // the second spelling of Gemini's and OpenAI's
		}
		rows++
		if !strings.Contains(string(text), "\n| `"+route.Path+"` | "+route.Door.Protocol()+" |") {
			t.Errorf("docs/doors.md has no row for %s", route.Path)
		}
	}
	if listed := strings.Count(string(text), "\n| `/"); listed != rows {
		t.Errorf("docs/doors.md lists %d doors, there are %d", listed, rows)
	}
}
