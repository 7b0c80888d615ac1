// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/simulator"
)

// Public fault reports (docs/cases-later.md) whose kind no other test of this
// package walks.

const (
	caseKey  = "the-secret-of-the-first-case"
	otherKey = "the-secret-of-the-other-case"
)

// caseConfig has one model of the given name at the provider, at 1 and 10
// dollars a million, and a key.
func caseConfig(settings, upstream, key string) string {
	return settings + `
models:
  - {name: m, provider: sim, upstream: "` + upstream + `", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + caseKey + key + `}
  - {name: other, secret: ` + otherKey + `}
`
}

// crowd sends n requests at once while the provider answers none, and lets it
// answer when all but the admitted ones are decided.
func (w *world) crowd(n, admitted int, send func(i int) answer) []answer {
	w.t.Helper()
	w.provider.Hold()
	decided, done := make(chan struct{}, n), make(chan []answer, 1)
	go func() {
		done <- volley(n, n, func(i int) answer {
			a := send(i)
			decided <- struct{}{}
			return a
		})
	}()
	for range n - admitted {
		<-decided
	}
	w.await("every admitted request", func(totals simulator.Totals) bool { return totals.Held == int64(admitted) })
	w.provider.Release()
	return <-done
}

// TestAHoldIsTheWorstCaseOfEachRequestInFlight: BR-021 and BR-027 for the one
// limit that reserves here, prepaid_hold (BAL-6). Ten at once of 0.04 dollars,
// and 0.10 dollars: two pass. A long prompt without a bound is held with the
// model's own bound: 100,007 × 15 + 4,096 × 75 µ$ is above a dollar.
func TestAHoldIsTheWorstCaseOfEachRequestInFlight(t *testing.T) {
	w := newWorld(t, `funds: prepaid_hold
models:
  - {name: even, provider: sim, upstream: "sim?in=11&out=100", max_output_tokens: 100, price: {input: "0", output: "400"}}
  - {name: dear, provider: sim, upstream: "sim", max_output_tokens: 4096, price: {input: "15", output: "75"}}
keys:
  - {name: k, secret: `+caseKey+`}
`)
	w.fund("0.1")
	answers := w.crowd(10, 2, func(int) answer { return w.chat(caseKey, "even") })
	if got := count(answers, 200); got != 2 {
		t.Errorf("admitted %d, want exactly 2", got)
	}
	if got := w.spend("").String(); got != "0.08" {
		t.Errorf("charged %s USD, want 0.08", got)
	}
	w.fund("0.98") // a dollar is left
	body := `{"model":"dear","messages":[{"role":"user","content":"` + strings.Repeat("x", 300_000) + `"}]}`
	w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions", caseKey, body), 402, "insufficient_balance")
	if n := w.provider.Bill().Requests; n != 2 {
		t.Errorf("%d requests reached the provider, want 2", n)
	}
	w.balanced()
}

// TestNoSettlementIsLostAmongManyAtOnce: BR-023. 200 requests of one cent settle
// together on one balance and one cap.
func TestNoSettlementIsLostAmongManyAtOnce(t *testing.T) {
	const requests = 200
	w := newWorld(t, caseConfig("funds: prepaid\n", "sim?in=0&out=1000", `, caps: {day: "2.00"}`))
	w.fund("10")
	answers := w.crowd(requests, requests, func(int) answer { return w.chat(caseKey, "m") })
	if got := count(answers, 200); got != requests {
		t.Fatalf("%d passed, want %d", got, requests)
	}
	w.quiet()
	if got, balance := w.spend("").String(), w.balance(); got != "2" || balance != "8" {
		t.Errorf("charged %s USD, %s are left; want 2 and 8", got, balance)
	}
	w.must(w.chat(caseKey, "m"), 402, "day_limit_reached")
	w.settled("1", "10")
}

// TestASpentCapEndsAtItsWindowsEdgeAndCarriesNothingOver: BR-045, BR-048, BR-051,
// BR-053. Each cap is overrun, refuses every repetition up to the instant that it
// names, with the zone's offset, and not one after. The overrun is not taken into
// the next window: a whole cap's worth passes there.
func TestASpentCapEndsAtItsWindowsEdgeAndCarriesNothingOver(t *testing.T) {
	for _, c := range []struct{ field, ends string }{
		{"day", "2026-10-26T00:00:00+01:00"}, // a day of 25 hours
		{"seven_day", "2026-11-01T00:00:00+01:00"},
		{"thirty_day", "2026-11-24T00:00:00+01:00"},
	} {
		t.Run(c.field, func(t *testing.T) {
			t.Parallel()
			// A request costs 320 µ$: two overrun a cap of 330.
			w := newWorldAt(t, instant(t, "2026-10-25T10:00:00Z"), caseConfig("time_zone: Europe/Berlin\n", "sim?in=20&out=30", `, caps: {`+c.field+`: "0.00033"}`))
			w.must(w.chat(caseKey, "m"), 200, "")
			w.must(w.chat(caseKey, "m"), 200, "")
			refused := w.must(w.chat(caseKey, "m"), 402, c.field+"_limit_reached")
			if !strings.Contains(refused.body, `"resets_at":"`+c.ends+`"`) {
				t.Errorf("the refusal names another instant than %s: %s", c.ends, refused.body)
			}
			if shown := w.keyLimit(caseKey, "spend", c.field); shown.ResetsAt != c.ends || shown.Used != "0.00064" || shown.Remaining != "0" {
				t.Errorf("the key shows %+v", shown)
			}
			end := instant(t, c.ends)
			for _, before := range []time.Duration{3 * time.Second, 2 * time.Second, time.Second, time.Microsecond} {
				w.clock.Set(end - before.Microseconds())
				w.must(w.chat(caseKey, "m"), 402, c.field+"_limit_reached")
			}
			w.clock.Set(end)
			w.must(w.chat(caseKey, "m"), 200, "")
			w.must(w.chat(caseKey, "m"), 200, "")
			w.must(w.chat(caseKey, "m"), 402, c.field+"_limit_reached")
			w.settled("1", "10")
		})
	}
}

// keyLimit is what GET /v1/key says of one limit.
func (w *world) keyLimit(secret, metric, window string) (found struct {
	Metric, Window, Used, Remaining string
	ResetsAt                        string `json:"resets_at"`
},
) {
	w.t.Helper()
	a := w.must(w.do(context.Background(), http.MethodGet, "/v1/key", secret, ""), 200, "")
	var view struct {
		Limits []json.RawMessage `json:"limits"`
	}
	if err := json.Unmarshal([]byte(a.body), &view); err != nil {
		w.t.Fatal(err)
	}
	for _, raw := range view.Limits {
		if err := json.Unmarshal(raw, &found); err != nil {
			w.t.Fatal(err)
		}
		if found.Metric == metric && found.Window == window {
			return found
		}
	}
	w.t.Fatalf("the key has no %s limit of window %q: %s", metric, window, a.body)
	return found
}

// TestTokensOfALimitAreTokens: BR-107, RUN-1. A request of 150 tokens takes 150
// of 111 a minute, not one: the next is refused until the debt has refilled.
func TestTokensOfALimitAreTokens(t *testing.T) {
	w := newWorld(t, caseConfig("", "sim?in=100&out=50", ", limits: {tpm: 111}"))
	w.must(w.chat(caseKey, "m"), 200, "")
	a := w.must(w.chat(caseKey, "m"), 429, "api_key_tpm_exceeded")
	// -39 must become 11, at 111 a minute: 27.03 seconds.
	if got := a.header.Get("Retry-After"); got != "28" {
		t.Errorf("Retry-After %q, want 28", got)
	}
	w.clock.Advance(28 * time.Second)
	w.must(w.chat(caseKey, "m"), 200, "")
	w.settled("1", "10")
}

// TestTheLedgerIsTheProvidersBillHoweverRequestsEnd: BR-116, BR-125. The prompt
// is billed what it is estimated at, and a token is three bytes of text, so that
// what is charged without a report is what the provider bills.
func TestTheLedgerIsTheProvidersBillHoweverRequestsEnd(t *testing.T) {
	endings := map[string]string{
		"whole": "", "error": "status=503", "costly-error": "status=503&usage=always", "silent": "usage=none", "absurd": "usage=overflow",
		"cut": "cut=after:3", "closed": "close=after:3", "ended": "end=after:3", "failed": "error=after:3", "unreported": "cut=usage",
		"unfinished": "cut=done", "refused": "cut=headers", "hanging": "hang=after:3", "mute": "hang=headers",
	}
	var models strings.Builder
	for name, script := range endings {
		fmt.Fprintf(&models, "  - {name: %s, provider: sim, upstream: \"sim?in=11&out=40&bytes=120&%s\", context_tokens: 128000, price: {input: \"1\", output: \"10\"}}\n", name, script)
	}
	w := newWorld(t, `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`, timeouts: {first_byte: 500ms, idle: 500ms}}
models:
`+strings.ReplaceAll(models.String(), "&\"", "\"")+`keys:
  - {name: k, secret: `+caseKey+`, limits: {concurrency: 1}}
`)
	for name := range endings {
		before, billed := w.spend(""), w.billed("1", "10")
		w.stream(caseKey, name, "")
		if got, want := w.spend("")-before, w.billed("1", "10")-billed; got != want {
			t.Errorf("%s: charged %s USD, billed %s USD", name, got, want)
		}
	}
	for range 8 { // clients that go away in the middle
		w.abort(caseKey, "hanging", 3)
		w.await("the provider's connections to end", func(n simulator.Totals) bool { return n.InFlight == 0 })
		w.eventually("the slot", func() bool { return w.chat(caseKey, "whole").status == 200 })
	}
	w.settled("1", "10")
}

// TestAWorkspacesSlotsAreItsKeysTogether: BR-152 within one process. Eight at
// once by two keys, four slots.
func TestAWorkspacesSlotsAreItsKeysTogether(t *testing.T) {
	w := newWorld(t, caseConfig("limits: {concurrency: 4}\n", "sim?in=20&out=30", ""))
	answers := w.crowd(8, 4, func(i int) answer { return w.chat([]string{caseKey, otherKey}[i%2], "m") })
	if got := count(answers, 200); got != 4 {
		t.Errorf("admitted %d, want exactly 4", got)
	}
	for _, a := range answers {
		if a.status != 200 {
			w.must(a, 429, "workspace_concurrency_exceeded")
		}
	}
	w.settled("1", "10")
}

// TestABodyThatIsTooLargeIsRefusedBeforeItIsRead: BR-109 for this door, BR-217,
// ERR-5, STO-5.
func TestABodyThatIsTooLargeIsRefusedBeforeItIsRead(t *testing.T) {
	w := newWorld(t, caseConfig("bounds: {max_body_bytes: 1024}\n", "sim?in=20&out=30", ", limits: {concurrency: 1, rpm: 2}"))
	large := chatBody("m", `"x":"`+strings.Repeat("x", 1024)+`"`)
	for range 3 {
		a := w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions", caseKey, large), 413, "request_too_large")
		if !strings.Contains(a.body, `"type":"request_too_large"`) || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			t.Errorf("the refusal has another shape: %v", a)
		}
	}
	w.must(w.chat(caseKey, "m"), 200, "")
	w.settled("1", "10")
}

// TestOneCauseHasOneStatusAndCode: BR-213, BR-216, BR-218, ERR-4. Whole and
// streamed, with and without an id of the client's own; every refusal of a known
// key is found under its id. An unknown key is 401 every time.
func TestOneCauseHasOneStatusAndCode(t *testing.T) {
	w := newWorld(t, caseConfig("", "sim?in=20&out=30", `, caps: {day: "0.0003"}, max_output_tokens: 100`))
	w.must(w.chat(caseKey, "m"), 200, "")
	for _, c := range []struct {
		key, model, extra, code string
		status                  int
	}{
		{"the-secret-of-nobody-at-all", "m", "", "invalid_api_key", 401},
		{caseKey, "none", "", "model_not_found", 404},
		{caseKey, "m", `"max_tokens":101`, "max_output_tokens_exceeded", 400},
		{caseKey, "m", "", "day_limit_reached", 402},
	} {
		for i, stream := range []string{`"stream":false`, `"stream":true`} {
			extra, id := stream, fmt.Sprintf("case-%s-%d", c.code, i)
			if c.extra != "" {
				extra += "," + c.extra
			}
			a := w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions", c.key, chatBody(c.model, extra), "X-Request-Id", id), c.status, c.code)
			if a.header.Get("X-Request-Id") != id || a.header.Get("X-Weir-Error-Source") != "gateway" || strings.Contains(a.body, c.key) {
				t.Errorf("%s: %v %v", c.code, a, a.header)
			}
			if c.status == 401 {
				continue
			}
			w.eventually("the record of "+id, func() bool {
				list, err := w.admin.RequestList(context.Background(), admin.RequestListRequest{ClientID: id})
				return err == nil && len(list.Requests) == 1 && list.Requests[0].ID == a.header.Get("X-Weir-Request-Id")
			})
		}
	}
	for _, a := range volley(200, 32, func(int) answer { return w.chat("the-secret-of-nobody-at-all", "m") }) {
		w.must(a, 401, "invalid_api_key")
	}
	made, err := w.admin.KeyCreate(context.Background(), admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("new")}})
	if err != nil {
		t.Fatal(err)
	}
	w.must(w.chat(made.Secret, "m"), 200, "")
	w.settled("1", "10")
}

// TestAStreamThatIsLeftKeepsNothingHeld: BR-029. Each stream holds 0.04 of 0.1
// dollars; a hold that outlived its stream would refuse the third.
func TestAStreamThatIsLeftKeepsNothingHeld(t *testing.T) {
	const streams = 8
	w := newWorld(t, caseConfig("funds: prepaid_hold\n", "sim?in=11&out=400&hang=after:1", ""))
	w.fund("0.1")
	for range streams {
		w.abort(caseKey, "m", 1)
		w.await("the provider to lose its client", func(n simulator.Totals) bool { return n.InFlight == 0 })
		w.eventually("the settlement", func() bool {
			ends, err := w.server.OpenUntil(context.Background())
			return err == nil && len(ends) == 0
		})
	}
	// 16 bytes of output are 6 tokens.
	if got := w.spend(""); int64(got) != streams*(11+60)*1000 {
		t.Errorf("charged %s USD, want %d times 71 µ$", got, streams)
	}
	w.balanced()
}

// TestEventsArriveWhileTheProviderIsSilent: BR-205. Every limit is on, and the
// client takes packed answers: what the provider has sent is there although it
// sends nothing more.
func TestEventsArriveWhileTheProviderIsSilent(t *testing.T) {
	w := newWorld(t, caseConfig("funds: prepaid_hold\nlimits: {rpm: 10, tpm: 100000, concurrency: 2}\n", "sim?in=11&out=400&hang=after:3&gzip",
		`, caps: {day: "1", seven_day: "1", thirty_day: "1"}, limits: {rpm: 10, tpm: 100000, concurrency: 1}`))
	w.fund("1")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url("/v1/chat/completions"), strings.NewReader(chatBody("m", `"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+caseKey)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := w.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" {
		t.Fatalf("the stream is packed: %s", encoding)
	}
	lines, events := bufio.NewScanner(response.Body), 0
	for events < 3 && lines.Scan() {
		if strings.Contains(lines.Text(), `"content":"`) && !strings.Contains(lines.Text(), `"content":""`) {
			events++
		}
	}
	if events < 3 {
		t.Errorf("%d events arrived, want 3: %v", events, lines.Err())
	}
}
