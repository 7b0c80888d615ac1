// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/money"
)

// A told answer is what a provider says of one public case, word by word, and what
// that comes to at the case's prices.
type told struct {
	id, path, prices string
	usage            string // of a chat; or
	answer           string // all of it
	nanos            int64
	tokens           string // on the case's budget of tokens, where it counts them
}

const (
	chatDoor     = "/v1/chat/completions"
	messagesDoor = "/v1/messages"
	geminiDoor   = "/v1beta/models/{model}:generateContent"
)

// publicCases are those with arithmetic; nano-dollars are their µ$ times 1,000.
func publicCases() []told {
	const long = `{input: "2", output: "12", above: {200000: {input: "4", output: "18"}}}`
	message := func(usage string) string {
		return `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"end_turn","usage":` + usage + `}`
	}
	generated := func(usage string) string {
		return `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":` + usage + `}`
	}
	return []told{
		{"BR-056", chatDoor, `{input: "1.25", cached_input: "0.625", output: "10"}`, `{"prompt_tokens":262960,"completion_tokens":1744,"prompt_tokens_details":{"cached_tokens":257955}}`, "", 184_918_125, ""},
		{"BR-057", chatDoor, `{input: "2.5", cached_input: "1.25", output: "10"}`, `{"prompt_tokens":2006,"completion_tokens":300,"prompt_tokens_details":{"cached_tokens":1920}}`, "", 5_615_000, ""},
		{"BR-058", chatDoor, `{input: "1.25", cached_input: "0.125", output: "10"}`, `{"prompt_tokens":1239328,"completion_tokens":12909,"prompt_tokens_details":{"cached_tokens":1188096}}`, "", 341_642_000, ""},
		{"BR-062", chatDoor, `{input: "1", cached_input: "0.1"}`, `{"prompt_tokens":17111,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":17102,"cache_write_tokens":0}}`, "", 1_719_200, ""},
		{"BR-063", chatDoor, `{input: "3", cached_input: "0.75"}`, `{"prompt_tokens":616,"completion_tokens":0,"prompt_tokens_details":{"text_tokens":616,"cached_tokens":615}}`, "", 464_250, ""},
		{"BR-065", chatDoor, `{input: "3"}`, `{"prompt_tokens":1000,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":800}}`, "", 3_000_000, ""},
		{"BR-066", messagesDoor, `{input: "3", cache_write_5m: "3.75"}`, "", message(`{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":10000}`), 37_500_000, ""},
		{"BR-067", messagesDoor, `{input: "5", cache_write_5m: "6.25", cache_write_1h: "10"}`, "", message(`{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":344139,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":344139}}`), 3_441_390_000, ""},
		{"BR-069", chatDoor, `{input: "1", cached_input: "0.1"}`, `{"prompt_tokens":17903,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":17817}}`, "", 86_000 + 1_781_700, "17903"},
		{"BR-070", geminiDoor, `{input: "0.3", cached_input: "0.075"}`, "", generated(`{"promptTokenCount":10000,"cachedContentTokenCount":8000,"totalTokenCount":10000}`), 1_200_000, ""},
		{"BR-072", chatDoor, `{input: "30", output: "180"}`, `{"prompt_tokens":14746,"completion_tokens":1944,"completion_tokens_details":{"reasoning_tokens":1360}}`, "", 792_300_000, "16690"},
		{"BR-073", geminiDoor, `{input: "0.3", output: "2.5"}`, "", generated(`{"promptTokenCount":8,"candidatesTokenCount":9,"thoughtsTokenCount":107,"totalTokenCount":124}`), 292_400, ""},
		{"BR-077", chatDoor, `{input: "1", output: "10", audio_output: "80"}`, `{"prompt_tokens":0,"completion_tokens":592,"completion_tokens_details":{"text_tokens":110,"audio_tokens":482}}`, "", 39_660_000, ""},
		{"BR-079", chatDoor, `{input: "2", output: "12", image_output: "120"}`, `{"prompt_tokens":10,"completion_tokens":1345,"completion_tokens_details":{"text_tokens":0,"reasoning_tokens":225,"image_tokens":1120}}`, "", 137_120_000, ""},
		{"BR-084", chatDoor, long, `{"prompt_tokens":250000,"completion_tokens":0}`, "", 1_000_000_000, ""},
		{"BR-084, exactly at the threshold", chatDoor, long, `{"prompt_tokens":200000,"completion_tokens":0}`, "", 400_000_000, ""},
		{"BR-085", chatDoor, long, `{"prompt_tokens":100000,"completion_tokens":1000}`, "", 212_000_000, ""},
		{"BR-088", chatDoor, `{input: "0.05", output: "0.40", factor: {flex: "1/2"}}`, "", chatAnswer("m", "flex", `{"prompt_tokens":10000,"completion_tokens":5000}`), 1_250_000, ""},
		{"BR-090", chatDoor, `{input: "0.15", output: "0.60", service_tier: {priority: {input: "0.25", output: "1.0"}}}`, "", chatAnswer("m-2024-07-18", "priority", `{"prompt_tokens":9,"completion_tokens":2}`), 4_250, ""},
	}
}

func chatAnswer(model, tier, usage string) string {
	return `{"id":"c1","object":"chat.completion","model":"` + model + `","service_tier":"` + tier + `","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":` + usage + `}`
}

// teller is a provider that answers a model's name with its answer, and a chat
// that wants a stream with the same usage in one.
func teller(t *testing.T, answers map[string]string) string {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for name, text := range answers {
			if !strings.Contains(string(body), `"model":"`+name+`"`) && !strings.Contains(r.URL.Path, "/models/"+name+":") {
				continue
			}
			if strings.Contains(string(body), `"stream":true`) && !strings.HasPrefix(text, "data:") && !strings.HasPrefix(text, "event:") {
				text = "data: " + strings.Replace(strings.Replace(text, `"message":`, `"delta":`, 1), "chat.completion", "chat.completion.chunk", 1) + "\n\ndata: [DONE]\n\n"
			}
			kind := "application/json"
			if !strings.HasPrefix(text, "{") {
				kind = "text/event-stream"
			}
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(provider.Close)
	return provider.URL
}

// toldWorld serves each case's answer under a model of its own, c0, c1 …
func toldWorld(t *testing.T, cases []told, more string) *world {
	t.Helper()
	answers, models, keys := map[string]string{}, "", ""
	for i, c := range cases {
		name, provider := fmt.Sprintf("c%d", i), "openai"
		switch c.path {
		case messagesDoor:
			provider = "anthropic"
		case geminiDoor:
			provider = "gemini"
		}
		if answers[name] = c.answer; c.answer == "" {
			answers[name] = chatAnswer("m", "default", c.usage)
		}
		models += fmt.Sprintf("  - {name: %s, provider: %s, context_tokens: 2000000, price: %s}\n", name, provider, c.prices)
		keys += fmt.Sprintf("  - {name: %s, secret: the-secret-of-the-case-%s, budgets: [{name: tokens, metric: tokens, limit: 900000000, window: 1h}]}\n", name, name)
	}
	url := teller(t, answers)
	providers := "providers:\n"
	for _, protocol := range []string{"openai", "anthropic", "gemini"} {
		providers += "  - {name: " + protocol + ", protocol: " + protocol + `, base_url: "` + url + `", api_key: ` + providerCredential + "}\n"
	}
	return newWorld(t, providers+more+"models:\n"+models+"keys:\n"+keys)
}

func (c *told) bodies(model string) []string {
	switch c.path {
	case messagesDoor:
		return []string{`{"model":"` + model + `","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`}
	case geminiDoor:
		return []string{`{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`}
	}
	return []string{chatBody(model, `"n":1`), chatBody(model, `"stream":true`)}
}

// TestPublicCasesAreChargedToTheNanoDollar: BR-056, BR-057, BR-058, BR-062, BR-063,
// BR-065, BR-066, BR-067, BR-069, BR-070, BR-072, BR-073, BR-077, BR-079, BR-084,
// BR-085, BR-088, BR-090. The answers of the public cases, through the whole gateway,
// chats streamed, too.
func TestPublicCasesAreChargedToTheNanoDollar(t *testing.T) {
	cases := publicCases()
	w := toldWorld(t, cases, "")
	for i, c := range cases {
		name := fmt.Sprintf("c%d", i)
		secret := "the-secret-of-the-case-" + name
		for n, body := range c.bodies(name) {
			before := w.spend("")
			a := w.must(w.do(context.Background(), http.MethodPost, strings.ReplaceAll(c.path, "{model}", name), secret, body), 200, "")
			if got := w.spend("") - before; got != money.Nanos(c.nanos) {
				t.Errorf("%s: charged %d nano-dollars, want %d\n%s", c.id, int64(got), c.nanos, a.body)
			}
			if end := w.shown(a).End; end == nil || len(end.Marks) > 0 {
				t.Errorf("%s: recorded as %+v", c.id, end)
			}
			if n == 0 && c.tokens != "" {
				w.used(secret, "tokens", c.tokens)
			}
		}
	}
	w.balanced()
}

// TestCountsOfAStreamAreCumulative: BR-101, BR-102, BR-104, BR-105. The last figure of
// each count is what is charged, wherever it stands.
func TestCountsOfAStreamAreCumulative(t *testing.T) {
	const prices = `{input: "1", cached_input: "0.1", output: "10"}`
	event := func(name, data string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\"," + data + "}\n\n"
	}
	message := func(start, delta string) string {
		return event("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":`+start+`}`) +
			event("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":`+delta) + event("message_stop", `"x":1`)
	}
	response := func(kind string) string {
		return event("response.created", `"sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}`) +
			event("response."+kind, `"sequence_number":1,"response":{"id":"resp_1","status":"`+kind+`","output":[],"usage":{"input_tokens":33,"output_tokens":57,"total_tokens":90}}`)
	}
	var each strings.Builder
	for _, n := range []int{8, 16, 24, 32} {
		fmt.Fprintf(&each, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":36,\"completion_tokens\":%d}}\n\n", n)
	}
	cases := []told{
		{"BR-101", messagesDoor, prices, "", message(`{"input_tokens":25,"output_tokens":1}`, `{"output_tokens":15}`), 175_000, "40"},
		{"BR-102", messagesDoor, prices, "", message(`{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":1}`, `{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":16}`), 169_100, "26"},
		{"BR-104", chatDoor, prices, "", each.String() + "data: [DONE]\n\n", 356_000, "68"},
		{"BR-105 completed", "/v1/responses", prices, "", response("completed"), 603_000, "90"},
		{"BR-105 incomplete", "/v1/responses", prices, "", response("incomplete"), 603_000, "90"},
		{"BR-105 failed", "/v1/responses", prices, "", response("failed"), 603_000, "90"},
	}
	w := toldWorld(t, cases, "")
	for i, c := range cases {
		name := fmt.Sprintf("c%d", i)
		body := chatBody(name, `"stream":true,"max_tokens":10`)
		if c.path == "/v1/responses" {
			body = `{"model":"` + name + `","input":"hello","stream":true}`
		}
		before := w.spend("")
		a := w.do(context.Background(), http.MethodPost, c.path, "the-secret-of-the-case-"+name, body)
		if got := w.spend("") - before; got != money.Nanos(c.nanos) {
			t.Errorf("%s: charged %d nano-dollars, want %d\n%v", c.id, int64(got), c.nanos, a)
		}
		w.used("the-secret-of-the-case-"+name, "tokens", c.tokens)
	}
	w.balanced()
}

// TestAProvidersOwnCostReplacesOursWhereItIsTrusted: BR-091, USE-4. The difference is
// shown by the metric and by the request's own record, trusted or not.
func TestAProvidersOwnCostReplacesOursWhereItIsTrusted(t *testing.T) {
	for trust, want := range map[string]money.Nanos{"true": 8_775, "false": 5_850} {
		url := teller(t, map[string]string{"m": chatAnswer("m", "default", `{"prompt_tokens":11,"completion_tokens":5,"cost":8.775e-06}`)})
		w := newWorld(t, `providers: [{name: p, protocol: openai, base_url: "`+url+`", api_key: `+providerCredential+`, trust_provider_cost: `+trust+`}]
models: [{name: m, provider: p, price: {input: "0.1", output: "0.95"}}]
keys: [{name: k, secret: `+caseKey+`}]
`)
		a := w.must(w.chat(caseKey, "m"), 200, "")
		if got := w.spend(""); got != want {
			t.Errorf("trusted %s: charged %s USD, want %s", trust, got, want)
		}
		if end := w.shown(a).End; end.NamedCost != "0.000008775" || end.OwnCost != "0.00000585" {
			t.Errorf("trusted %s: recorded as %+v", trust, end)
		}
		const drift = `weir_cost_drift_dollars_total{direction="above",model="m",workspace="default"} 2.925e-06`
		if body := w.look("/metrics").body; !strings.Contains(body, drift) {
			t.Errorf("trusted %s: the metrics lack %s", trust, drift)
		}
		w.balanced()
	}
}

// TestAPriceOfOnesOwnIsEnforced: BR-107, BR-129, BR-133. A model that no catalogue
// knows is priced by the file alone, and what it costs counts to the cent; a limit of
// tokens counts tokens.
func TestAPriceOfOnesOwnIsEnforced(t *testing.T) {
	url := teller(t, map[string]string{
		"own": chatAnswer("own", "default", `{"prompt_tokens":2000000,"completion_tokens":1000000}`), "dime": chatAnswer("dime", "default", `{"prompt_tokens":1,"completion_tokens":1}`),
		"many": chatAnswer("many", "default", `{"prompt_tokens":100,"completion_tokens":50}`),
	})
	w := newWorld(t, `providers: [{name: p, protocol: openai, base_url: "`+url+`", api_key: `+providerCredential+`}]
models:
  - {name: own, provider: p, context_tokens: 2000000, price: {input: "2", output: "6"}}
  - {name: dime, provider: p, price: {input: "0", output: "0", per_request: "0.1"}}
  - {name: many, provider: p, price: {input: "1", output: "1"}}
keys:
  - {name: five, secret: the-secret-of-five-dollars, budgets: [{name: b, metric: spend, limit: "5", window: 24h, enforcement: guard}]}
  - {name: dimes, secret: the-secret-of-three-dimes, caps: {day: "0.3"}}
  - {name: few, secret: the-secret-of-few-tokens, budgets: [{name: b, metric: tokens, limit: 111, window: 1h, enforcement: guard}]}
`)
	w.must(w.chat("the-secret-of-five-dollars", "own"), 200, "")
	w.used("the-secret-of-five-dollars", "b", "10")
	w.must(w.chat("the-secret-of-five-dollars", "own"), 429, "budget_exceeded")
	for range 3 {
		w.must(w.chat("the-secret-of-three-dimes", "dime"), 200, "")
	}
	w.must(w.chat("the-secret-of-three-dimes", "dime"), 402, "day_limit_reached")
	w.must(w.chat("the-secret-of-few-tokens", "many"), 200, "")
	w.used("the-secret-of-few-tokens", "b", "150")
	w.must(w.chat("the-secret-of-few-tokens", "many"), 429, "budget_exceeded")
	w.balanced()
}
