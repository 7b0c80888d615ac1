// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/gateway"
)

// doorModels has a model for the doors of each protocol: m, a and g, all at one
// price and with the same answers.
const doorModels = `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: ` + providerCredential + `}
  - {name: anthropic, protocol: anthropic, base_url: "%PROVIDER%", api_key: ` + providerCredential + `}
  - {name: gemini, protocol: gemini, base_url: "%PROVIDER%beta", api_key: ` + providerCredential + `}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: free, provider: sim, upstream: "sim?in=20&out=30&free", price: free}
  - {name: a, provider: anthropic, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: g, provider: gemini, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
`

// doorModel is the model of doorModels that is served at a door.
func doorModel(door call.Door) string {
	switch {
	case freeDoor(door):
		return "free"
	case door.Protocol() == "anthropic":
		return "a"
	case door.Protocol() == "gemini":
		return "g"
	default:
		return "m"
	}
}

// doorBody is a request for the door of a governed route.
func doorBody(t *testing.T, door call.Door, stream bool) string {
	t.Helper()
	return doorRequest(t, door, doorModel(door), stream, 0)
}

// doorRequest is one for a model, with a bound of its output above 0 where the
// door has one. A door that is added has to be added here.
func doorRequest(t *testing.T, door call.Door, model string, stream bool, bound int) string {
	t.Helper()
	streams, bounds := "", ""
	if stream {
		streams = `,"stream":true`
	}
	if bound > 0 {
		bounds = fmt.Sprintf(`,"%s":%d`, outputMember(door), bound)
	}
	named := `{"model":"` + model + `",`
	switch door {
	case call.OpenAIChat:
		return named + `"messages":[{"role":"user","content":"hello"}]` + bounds + streams + `}`
	case call.OpenAIResponses:
		return named + `"input":"hello"` + bounds + streams + `}`
	case call.OpenAICompletions:
		return named + `"prompt":"hello"` + bounds + streams + `}`
	case call.OpenAIEmbeddings, call.OpenAIModerations:
		return named + `"input":"hello"}`
	case call.OpenAIImages:
		return named + `"prompt":"hello"` + streams + `}`
	case call.OpenAISpeech:
		return named + `"input":"hello","voice":"alloy"` + strings.Replace(streams, `"stream":true`, `"stream_format":"sse"`, 1) + `}`
	case call.OpenAITranscriptions:
		field := "--x\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n%s\r\n"
		form := fmt.Sprintf(field, "model", "", model)
		if stream {
			form += fmt.Sprintf(field, "stream", "", "true")
		}
		return form + fmt.Sprintf(field, "file", "; filename=\"a.mp3\"\r\nContent-Type: audio/mpeg", "ID3 hello") + "--x--\r\n"
	case call.AnthropicMessages, call.AnthropicCountTokens:
		if door == call.AnthropicCountTokens {
			streams = ""
		}
		if bound == 0 {
			bounds = `,"max_tokens":100`
		}
		return named + `"messages":[{"role":"user","content":"hello"}]` + bounds + streams + `}`
	case call.GeminiGenerate, call.GeminiCountTokens:
		if bound > 0 {
			bounds = `,"generationConfig":{` + bounds[1:] + `}`
		}
		return `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]` + bounds + `}`
	case call.GeminiEmbed:
		return `{"content":{"parts":[{"text":"hello"}]}}`
	case call.GeminiEmbedBatch:
		return `{"requests":[{"model":"models/` + model + `","content":{"parts":[{"text":"hello"}]}}]}`
	default:
		t.Fatalf("say how a request of door %q looks", door)
		return ""
	}
}

// outputMember bounds the output of a door's requests; "" where nothing does.
func outputMember(door call.Door) string {
	switch door {
	case call.OpenAIChat, call.OpenAICompletions, call.AnthropicMessages:
		return "max_tokens"
	case call.OpenAIResponses:
		return "max_output_tokens"
	case call.GeminiGenerate:
		return "maxOutputTokens"
	default:
		return ""
	}
}

// enter sends a request to the door of a governed route.
func (w *world) enter(route gateway.Route, secret string, stream bool, headers ...string) answer {
	w.t.Helper()
	if route.Door == call.OpenAITranscriptions {
		headers = append(headers, "Content-Type", "multipart/form-data; boundary=x")
	}
	path := strings.ReplaceAll(route.Path, "{model}", doorModel(route.Door))
	return w.do(context.Background(), route.Method, path, secret, doorBody(w.t, route.Door, stream), headers...)
}

// freeDoor: the requests of doorBody ask for a model whose price is zero.
func freeDoor(door call.Door) bool {
	return door == call.OpenAIModerations || door == call.OpenAISpeech
}

// TestStateOfAProviderIsNamedOnlyWhereItIsTheWorkspacesOwn: DIS-8, EST-4.
func TestStateOfAProviderIsNamedOnlyWhereItIsTheWorkspacesOwn(t *testing.T) {
	w := newWorld(t, `providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`}
  - {name: own, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`, shared_state: true}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: o, provider: own, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+routesKey+`}
`)
	ask := func(model, member string) answer {
		return w.do(t.Context(), http.MethodPost, "/v1/responses", routesKey, `{"model":"`+model+`","input":"hello",`+member+`}`)
	}
	for _, member := range []string{`"previous_response_id":"resp_1"`, `"conversation":"conv_1"`, `"prompt":{"id":"pmpt_1"}`} {
		before := w.provider.Bill().Requests
		w.must(ask("m", member), 404, "not_found")
		if after := w.provider.Bill().Requests; after != before {
			t.Errorf("%s reached the provider", member)
		}
		w.must(ask("o", member), 200, "")
	}
	w.settled("1", "10")
}

// TestAzureIsSpokenToAndSpokenAs: SPEC section 9. Clients and providers with a
// deployment in the path, KEY-1's api-key header on both sides.
func TestAzureIsSpokenToAndSpokenAs(t *testing.T) {
	w := newWorld(t, `providers:
  - {name: azure, protocol: openai, base_url: "%AZURE%", api_key: `+providerCredential+`, api_version: "2024-10-21"}
models:
  - {name: m, provider: azure, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+routesKey+`}
`)
	for _, path := range []string{"/openai/deployments/m/chat/completions?api-version=2024-10-21", "/v1/chat/completions"} {
		w.must(w.do(t.Context(), http.MethodPost, path, "", chatBody("m", ""), "Api-Key", routesKey), 200, "")
	}
	// The path decides, whatever the body says.
	w.must(w.do(t.Context(), http.MethodPost, "/openai/deployments/none/chat/completions?api-version=1", routesKey, chatBody("m", "")), 404, "model_not_found")
	w.must(w.do(t.Context(), http.MethodPost, "/openai/deployments/m/chat/completions?api-version=1", routesKey, chatBody("none", "")), 200, "")
	w.settled("1", "10")
}

// TestModelsAreListedForTheClientsOfEveryProtocol: KEY-5, SPEC section 9.
func TestModelsAreListedForTheClientsOfEveryProtocol(t *testing.T) {
	w := newWorld(t, doorModels+"keys:\n  - {name: k, secret: "+routesKey+", allowed_models: [m, a, g]}\n")
	get := func(path string) string {
		a := w.do(t.Context(), http.MethodGet, path, "", "", "X-Api-Key", routesKey)
		w.must(a, 200, "")
		return a.body
	}
	for _, name := range []string{`"id":"a"`, `"id":"g"`, `"id":"m"`, `"object":"list"`, `"type":"model"`, `"has_more":false`, `"first_id":"a"`, `"last_id":"m"`} {
		if list := get("/v1/models"); !strings.Contains(list, name) {
			t.Errorf("no %s in %s", name, list)
		}
	}
	if list := get("/v1beta/models"); !strings.Contains(list, `"name":"models/g"`) || strings.Contains(list, `models/m"`) {
		t.Errorf("Gemini's: %s", list)
	}
	if one := get("/v1beta/models/g"); !strings.Contains(one, `"generateContent"`) {
		t.Errorf("one of Gemini's: %s", one)
	}
	a := w.do(t.Context(), http.MethodGet, "/v1beta/models/m", routesKey, "")
	w.must(a, 404, "model_not_found")
	for path, want := range map[string]string{"/v1/models": `"name":"models/g"`, "/v1/models/g": `"batchEmbedContents"`} {
		a := w.do(t.Context(), http.MethodGet, path, "", "", "X-Goog-Api-Key", routesKey)
		if w.must(a, 200, ""); !strings.Contains(a.body, want) {
			t.Errorf("%s with Google's header: %s", path, a.body)
		}
	}
}

// TestWhereThereIsNoDoorTheProtocolOfItsNeighboursIsSpoken: ERR-1, ERR-5.
func TestWhereThereIsNoDoorTheProtocolOfItsNeighboursIsSpoken(t *testing.T) {
	w := newWorld(t, doorModels+"keys:\n  - {name: k, secret: "+routesKey+"}\n")
	const openAI, anthropic, gemini = `"type":"invalid_request_error"`, `{"type":"error"`, `"status":"`
	for _, c := range []struct{ method, path, shape string }{
		{"POST", "/v1/nothing", openAI},
		{"POST", "/v1/models", openAI},
		{"DELETE", "/v1/models/m", openAI},
		{"GET", "/v1/chat/completions", openAI},
		{"GET", "/v1/messages", anthropic},
		{"POST", "/v1/messages/batches", anthropic},
		{"POST", "/v1beta/models", gemini},
		{"POST", "/v1beta/models/g:unknown", gemini},
		{"POST", "/v1beta/files", gemini},
		{"POST", "/openai/deployments/m/nothing", openAI},
		{"POST", "/elsewhere", openAI},
	} {
		a := w.do(t.Context(), c.method, c.path, routesKey, "{}")
		shaped := strings.Contains(a.body, c.shape) || c.shape == openAI && strings.Contains(a.body, `"type":"not_found_error"`)
		if a.status != 404 && a.status != 405 || !shaped {
			t.Errorf("%s %s: %v", c.method, c.path, a)
		}
	}
}

// TestAToolOfTheProvidersIsHeldAndNamedWhereItHasNoPrice: EST-4, PRC-1, PRC-3. Coding
// agents offer a search with every request.
func TestAToolOfTheProvidersIsHeldAndNamedWhereItHasNoPrice(t *testing.T) {
	w := newWorld(t, `models:
  - {name: bare, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: nothing, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10", per_tool_call: {web_search: "0"}}}
  - {name: dear, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10", per_tool_call: {web_search: "1"}}}
keys:
  - {name: k, secret: `+routesKey+`, budgets: [{name: hard, metric: spend, limit: "9.5", period: day, enforcement: hard}]}
`)
	ask := func(model, more string) answer {
		return w.do(t.Context(), http.MethodPost, "/v1/responses", routesKey, `{"model":"`+model+`","input":"hello","max_output_tokens":50,"tools":[{"type":"web_search"}]`+more+`}`)
	}
	a := w.must(ask("bare", ""), 400, "model_unpriced")
	if !strings.Contains(a.body, "per_tool_call.web_search") {
		t.Errorf("it does not say what to change: %s", a.body)
	}
	w.must(ask("nothing", ""), 200, "")
	w.must(ask("dear", ""), 429, "budget_exceeded") // ten calls at a dollar each
	w.must(ask("dear", `,"max_tool_calls":9`), 200, "")
	w.settled("1", "10")
}
