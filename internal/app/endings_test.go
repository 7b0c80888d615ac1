// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/simulator"
)

const endingsKey = "the-secret-of-the-ending-key"

// endingsConfig has a model for each way a provider can end. Its prices are 1
// and 10 dollars per million, so that a token is 1 or 10 µ$.
func endingsConfig(models map[string]string, more string) string {
	var b strings.Builder
	b.WriteString("models:\n")
	for name, upstream := range models {
		b.WriteString("  - {name: " + name + `, provider: sim, upstream: "` + upstream + `", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "10"}}` + "\n")
	}
	b.WriteString("keys:\n  - {name: k, secret: " + endingsKey + ", limits: {concurrency: 1}" + more + "}\n")
	return b.String()
}

// TestHowARequestEndsDecidesWhatItCosts walks the ways a request can end and
// compares the charge with RES-4 by hand. Each has concurrency 1, so a slot that
// stays taken fails the next one (RUN-3, SLOTS BR-147, BR-148; RESERVE BR-028).
// The prompt is 11 estimated tokens; visible output is 4 bytes a token.
func TestHowARequestEndsDecidesWhatItCosts(t *testing.T) {
	models := map[string]string{
		"whole": "sim?in=20&out=30", "stream": "sim?in=20&out=30", "cached": "sim?in=20&out=30&cached=10",
		"e400": "sim?status=400", "e429": "sim?status=429&retry=7", "e500": "sim?status=500", "e500usage": "sim?in=20&out=30&status=500&usage=always",
		"reset": "sim?cut=headers", "reset3": "sim?in=20&out=300&cut=after:3", "cutusage": "sim?in=20&out=30&cut=usage", "end3": "sim?in=20&out=300&end=after:3", "end0": "sim?out=300&end=after:0",
		"error0": "sim?error=after:0", "error3": "sim?in=20&out=300&error=after:3",
		"nousage": "sim?in=20&out=30&usage=none", "nullusage": "sim?in=20&out=30&usage=null", "each": "sim?in=20&out=30&usage=each",
		"negative": "sim?in=20&out=30&usage=negative", "huge": "sim?in=20&out=30&usage=overflow", "string": "sim?in=20&out=30&usage=string", "fraction": "sim?in=20&out=30&usage=fraction",
		"invalid": "sim?in=20&out=30&invalid", "gzip": "sim?in=20&out=30&gzip", "split": "sim?in=20&out=30&split=7", "join": "sim?in=20&out=30&join=9", "crlf": "sim?in=20&out=30&crlf&ping",
	}
	w := newWorld(t, endingsConfig(models, ""))
	const full = 20 + 300 // reported: 20 in, 30 out
	for _, c := range []struct {
		model  string
		stream bool
		status int
		code   string
		micros int64
		why    string
	}{
		{"whole", false, 200, "", full, "usage reported"},
		{"stream", true, 200, "", full, "usage reported in the stream (BR-097)"},
		{"cached", false, 200, "", full, "cached input falls back to the input price (BR-065)"},
		{"each", true, 200, "", full, "cumulative usage: the last value counts (BR-104)"},
		{"split", true, 200, "", full, "events in pieces (BR-099)"},
		{"join", true, 200, "", full, "events in one write (BR-100)"},
		{"crlf", true, 200, "", full, "CR LF and comments"},
		{"gzip", false, 200, "", full, "packed answers"},
		{"e400", false, 400, "", 0, "failed without output"},
		{"e429", false, 429, "", 0, "failed without output (BR-214)"},
		{"e500", true, 500, "", 0, "failed without output"},
		{"e500usage", false, 500, "", full, "usage reported, whatever the status"},
		{"reset", false, 502, "upstream_unreachable", 0, "no answer (BR-209)"},
		{"reset", true, 502, "upstream_unreachable", 0, "no answer (BR-209)"},
		{"error0", true, 200, "", 0, "an error's text is never output (BR-038, BR-118)"},
		{"nousage", false, 200, "", 11 + 400, "no usage: 11 + ceil(120/3) (BR-112)"},
		{"nousage", true, 200, "", 11 + 400, "no usage in the stream (BR-112)"},
		{"nullusage", false, 200, "", 11 + 400, "null is no usage"},
		{"negative", false, 200, "", 11 + 400, "absurd usage is not believed (BR-061)"},
		{"huge", false, 200, "", 11 + 400, "absurd usage is not believed (BR-061)"},
		{"string", false, 200, "", 11 + 400, "usage must be a number (BR-061)"},
		{"fraction", false, 200, "", 11 + 400, "usage must be whole (BR-061)"},
		{"reset3", true, 200, "", 11 + 160, "three events of 16 bytes arrived (BR-119, BR-121)"},
		{"end3", true, 200, "", 11 + 160, "an end without a terminal event is a cut"},
		{"error3", true, 200, "", 11 + 160, "what was delivered before the error"},
		{"end3", false, 502, "upstream_invalid", 11 + 160, "48 bytes of the text of a whole answer arrived"},
		{"end0", false, 502, "upstream_invalid", 0, "nothing of a whole answer arrived"},
		{"invalid", false, 502, "upstream_invalid", 11 + 400, "the text arrived, in a broken whole answer"},
		{"cutusage", true, 200, "", 11 + 400, "cut after the output, before the usage"},
	} {
		name := c.model
		if c.stream {
			name += ", streamed"
		}
		t.Run(name, func(t *testing.T) {
			before := w.spend("")
			var a answer
			if c.stream {
				a = w.stream(endingsKey, c.model, "")
			} else {
				a = w.chat(endingsKey, c.model)
			}
			if a.status != c.status || c.code != "" && a.code() != c.code {
				t.Fatalf("answer is %v (%v), want %d %s", a, a.err, c.status, c.code)
			}
			if got := w.spend("") - before; int64(got) != c.micros*1000 {
				t.Fatalf("charged %s USD, want %d µ$: %s", got, c.micros, c.why)
			}
		})
	}
	w.balanced()
	w.must(w.chat(endingsKey, "whole"), 200, "")
}

// TestABrokenStreamEndsInAnErrorEvent: never a clean end, no [DONE] (ERR-6, BR-206).
func TestABrokenStreamEndsInAnErrorEvent(t *testing.T) {
	w := newWorld(t, endingsConfig(map[string]string{
		"cut": "sim?out=300&cut=after:2", "end": "sim?out=300&end=after:2", "error": "sim?out=300&error=after:2",
	}, ""))
	for _, model := range []string{"cut", "end", "error"} {
		a := w.stream(endingsKey, model, "")
		if a.status != 200 || strings.Contains(a.body, "[DONE]") {
			t.Errorf("%s: a broken stream ended cleanly: %v", model, a)
		}
		if !strings.Contains(a.body, `data: {"error":`) {
			t.Errorf("%s: no error event: %q", model, a.body)
		}
	}
	w.balanced()
}

// TestTheClientSeesOnlyWhatItAskedFor: usage is asked of the provider and kept
// from a client that did not ask (DIS-6, BR-097).
func TestTheClientSeesOnlyWhatItAskedFor(t *testing.T) {
	w := newWorld(t, endingsConfig(map[string]string{"m": "sim?in=20&out=30"}, ""))
	if a := w.stream(endingsKey, "m", ""); strings.Contains(a.body, "usage") || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
		t.Errorf("a client that did not ask for usage got %q", a.body)
	}
	a := w.stream(endingsKey, "m", `"stream_options":{"include_usage":true}`)
	if !strings.Contains(a.body, `"prompt_tokens":20`) {
		t.Errorf("a client that asked for usage got %q", a.body)
	}
	if got := a.header.Get("X-Weir-Cost-Usd"); got != "0.00032" {
		t.Errorf("the trailer's cost is %q, want 0.00032", got)
	}
}

// TestAProviderThatRefusesToBeAskedForUsageIsAskedWithout: USE-1's auto. The
// second request does not try again.
func TestAProviderThatRefusesToBeAskedForUsageIsAskedWithout(t *testing.T) {
	w := newWorld(t, endingsConfig(map[string]string{"m": "sim?in=20&out=30&refuse=stream_options"}, ""))
	for range 2 {
		if a := w.stream(endingsKey, "m", ""); a.status != 200 || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
			t.Fatalf("got %v", a)
		}
	}
	if n := w.provider.Bill().Requests; n != 3 {
		t.Errorf("the provider saw %d requests, want 3", n)
	}
	if got := w.spend(""); int64(got) != 2*(11+400)*1000 {
		t.Errorf("charged %s USD, want twice 411 µ$", got)
	}
	w.balanced()
}

// TestAClientThatGoesAwayPaysForWhatItGot: BR-113, BR-125, DIS-7. The provider's
// connection closes within a second of the client's.
func TestAClientThatGoesAwayPaysForWhatItGot(t *testing.T) {
	w := newWorld(t, endingsConfig(map[string]string{"m": "sim?in=20&out=400&hang=after:50"}, ""))
	w.abort(endingsKey, "m", 50)
	w.await("the provider to lose its client", func(n simulator.Totals) bool { return n.InFlight == 0 })
	w.eventually("the settlement", func() bool { return w.spend("") > 0 })
	// 50 events of 4 tokens of 4 bytes: 800 bytes, 267 tokens.
	if got := w.spend(""); int64(got) != (11+2670)*1000 {
		t.Fatalf("charged %s USD, want 2681 µ$", got)
	}
	w.balanced()
	w.must(w.do(context.Background(), http.MethodGet, "/v1/models", endingsKey, ""), 200, "")
}

// TestADrainedProviderIsReadToItsEnd: BR-114, client_gone: drain.
func TestADrainedProviderIsReadToItsEnd(t *testing.T) {
	w := newWorld(t, `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`, client_gone: drain}
`+endingsConfig(map[string]string{"m": "sim?in=1000&out=4000&chunk=100&gap=1ms&ignore"}, ""))
	w.abort(endingsKey, "m", 1)
	w.await("the provider to finish", func(n simulator.Totals) bool { return n.InFlight == 0 && n.Requests == 1 })
	w.eventually("the settlement", func() bool { return w.spend("") > 0 })
	if got := w.spend(""); int64(got) != (1000+40000)*1000 {
		t.Fatalf("charged %s USD, want 41000 µ$", got)
	}
	w.balanced()
}

// TestABrokenStreamIsFreeWhereTheProviderRowSaysSo: BR-119, both settings.
func TestABrokenStreamIsFreeWhereTheProviderRowSaysSo(t *testing.T) {
	w := newWorld(t, `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`, charge_partial_on_upstream_failure: false}
`+endingsConfig(map[string]string{"m": "sim?out=300&cut=after:3"}, ""))
	w.stream(endingsKey, "m", "")
	if got := w.spend(""); got != 0 {
		t.Fatalf("charged %s USD for a stream that the provider broke", got)
	}
	w.balanced()
}

// TestAProviderThatSaysNothingIsGivenUp: BR-147, BR-208, DIS-9.
func TestAProviderThatSaysNothingIsGivenUp(t *testing.T) {
	w := newWorld(t, `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`, timeouts: {first_byte: 1s, idle: 1s}}
`+endingsConfig(map[string]string{"headers": "sim?hang=headers", "idle": "sim?in=20&out=300&hang=after:3", "m": "sim"}, ""))
	w.must(w.chat(endingsKey, "headers"), 504, "upstream_timeout")
	if got := w.spend(""); got != 0 {
		t.Fatalf("charged %s USD for no answer", got)
	}
	a := w.stream(endingsKey, "idle", "")
	if !strings.Contains(a.body, "upstream_timeout") {
		t.Fatalf("the stream ended with %q", a.body)
	}
	if got := w.spend(""); int64(got) != (11+160)*1000 {
		t.Fatalf("charged %s USD, want 171 µ$", got)
	}
	w.must(w.chat(endingsKey, "m"), 200, "")
	w.balanced()
}

// TestClosingWithTheLastEventChargesOnce: BR-039.
func TestClosingWithTheLastEventChargesOnce(t *testing.T) {
	const times = 40
	w := newWorld(t, endingsConfig(map[string]string{"m": "sim?in=20&out=8"}, ""))
	for range times {
		w.abort(endingsKey, "m", 3)
		w.eventually("the slot", func() bool {
			return w.chat(endingsKey, "m").status == 200
		})
	}
	w.await("the provider at rest", func(n simulator.Totals) bool { return n.InFlight == 0 })
	w.balanced()
	list, err := w.admin.RequestList(context.Background(), admin.RequestListRequest{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range list.Requests {
		if seen[r.ID] {
			t.Fatalf("request %s stands twice in the call log", r.ID)
		}
		seen[r.ID] = true
	}
}

// abort reads a stream until it has seen so many content events, then goes away.
func (w *world) abort(key, model string, events int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url("/v1/chat/completions"), strings.NewReader(chatBody(model, `"stream":true`)))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := w.http.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for events > 0 && lines.Scan() {
		if strings.Contains(lines.Text(), `"content":"`) && !strings.Contains(lines.Text(), `"content":""`) {
			events--
		}
	}
}

// eventually waits, within bounds, for what follows the end of a connection that
// the gateway alone can see.
func (w *world) eventually(what string, so func() bool) {
	w.t.Helper()
	if !await(so) {
		w.t.Fatalf("waited too long for %s", what)
	}
}

// await waits, within bounds; false: it was too long.
func await(so func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
