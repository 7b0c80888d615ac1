// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/simulator"
)

// troubles are ways of a provider to answer.
func troubles() []string {
	all := []string{
		"usage=always", "usage=none", "usage=null", "usage=each", "usage=negative", "usage=overflow", "usage=string", "usage=fraction",
		"cut=headers", "cut=after:1", "cut=after:3", "cut=usage", "cut=done", "close=headers", "close=after:2", "close=usage", "close=done",
		"end=after:0", "end=after:2", "end=usage", "error=after:0", "error=after:2", "hang=headers", "hang=after:0", "hang=after:2", "hang=usage",
		"invalid", "gzip", "split=5", "join=3", "crlf&ping", "unbounded", "refuse=stream_options", "gap=1ms", "latency=3ms",
	}
	for _, status := range []int{400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529} {
		all = append(all, fmt.Sprintf("status=%d", status))
	}
	return append(all, "status=500&usage=always", "status=429&retry=7")
}

// troubledConfig has a model for each trouble, one at a provider that is not
// there, and limits of every family that hold. Each request holds 0.0005 dollars
// at least.
func troubledConfig() string {
	var models strings.Builder
	for i, trouble := range troubles() {
		fmt.Fprintf(&models, "  - {name: m%d, provider: sim, upstream: \"sim?in=20&out=40&%s\", context_tokens: 128000, max_output_tokens: 50, price: {input: \"1\", output: \"10\"}}\n", i, trouble)
	}
	return `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: ` + providerCredential + `, timeouts: {first_byte: 300ms, idle: 300ms, total: 3s}}
  - {name: nobody, protocol: openai, base_url: "http://127.0.0.1:1/v1", auth: none}
models:
` + models.String() + `
  - {name: nobody, provider: nobody, max_output_tokens: 50, price: {input: "1", output: "10"}}
  - {name: well, provider: sim, upstream: "sim?in=20&out=40", max_output_tokens: 50, price: {input: "1", output: "10"}}
funds: prepaid_hold
limits: {concurrency: 40}
plans: [{name: p, budgets: [{name: planned, metric: tokens, limit: 1000000, period: day, enforcement: hard}]}]
budgets:
  - {name: spend, scope: org, metric: spend, limit: "100", period: day}
  - {name: tight, scope: team, metric: spend, limit: "0.25", period: month}
  - {name: tokens, scope: user, metric: tokens, limit: 1000000, window: 1h}
  - {name: narrowed, scope: project, metric: spend, limit: "100", period: week, provider: sim}
rate_limits:
  - {name: rule, subject_kind: org, metric: tokens, window_seconds: 3600, limit: 10000000}
keys:
  - {name: k, secret: ` + limitKey + `, team: t, project: j, user: u, plan: p, limits: {concurrency: 30, tpm: 10000000}, budgets: [{name: own, metric: spend, limit: "100", window: 30d, enforcement: hard}]}
  - {name: free, secret: ` + secondKey + `, user: u, project: j, limits: {concurrency: 30}}
`
}

// leave sends a request and goes away after so many bytes of the answer, or when
// its patience ends. What it got does not matter.
func (w *world) leave(secret, body string, bytes int64, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url("/v1/chat/completions"), strings.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := w.http.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, bytes) // it may end sooner
}

// TestNoEndingOfARequestLeavesAnythingHeld: RES-7, RUN-3, BR-028, BR-029, BR-151.
// A thousand requests, 32 at once, each of a random kind: every trouble of a
// provider, whole and streamed, and clients that go away at any point. At rest no
// budget, rule, balance or slot holds anything, and every limit admits again.
func TestNoEndingOfARequestLeavesAnythingHeld(t *testing.T) {
	const requests = 1000
	w := newWorld(t, troubledConfig())
	w.fund("100")
	kinds := len(troubles())
	volley(requests, 32, func(i int) answer {
		random := rand.New(rand.NewPCG(uint64(i), 28))
		secret := []string{limitKey, secondKey}[random.IntN(2)]
		model := "nobody"
		if n := random.IntN(kinds + 2); n < kinds {
			model = fmt.Sprintf("m%d", n)
		} else if n == kinds {
			model = "well"
		}
		extra := fmt.Sprintf(`"stream":%t`, random.IntN(2) == 0)
		if random.IntN(4) == 0 {
			extra += fmt.Sprintf(`,"max_tokens":%d`, 1+random.IntN(60))
		}
		if random.IntN(3) > 0 {
			return w.do(context.Background(), http.MethodPost, "/v1/chat/completions", secret, chatBody(model, extra))
		}
		w.leave(secret, chatBody(model, extra), int64(random.IntN(2000)), time.Duration(1+random.IntN(200))*time.Millisecond)
		return answer{}
	})
	w.await("the provider at rest", func(n simulator.Totals) bool { return n.InFlight == 0 })
	w.eventually("every settlement", func() bool {
		ends, err := w.server.OpenUntil(context.Background())
		return err == nil && len(ends) == 0
	})
	w.rest(limitKey, secondKey)
	w.balanced()
	for name, want := range map[string]string{"spend": w.spend("").String(), "tight": w.spend("k").String(), "own": w.spend("k").String()} {
		w.used(limitKey, name, want)
	}
	answers := w.together(30, 30, func(int) answer { return w.chat(secondKey, "well") })
	if got := count(answers, 200); got != 30 {
		t.Errorf("%d of 30 slots came back", got)
	}
	w.rest(limitKey, secondKey)
}

// TestABudgetMaySkipWhatNobodyReported: RES-3. A key's or plan's budget with
// on_missing_usage: skip is not charged for a request without usage, and is for
// one with; every other limit is charged the estimate; nothing stays held.
func TestABudgetMaySkipWhatNobodyReported(t *testing.T) {
	for _, enforcement := range []string{"hard", "guard", "soft"} {
		skip := "on_missing_usage: skip, enforcement: " + enforcement + "}"
		w := newWorld(t, `
models:
  - {name: none, provider: sim, upstream: "sim?in=20&out=30&usage=none", max_output_tokens: 50, price: {input: "1", output: "10"}}
  - {name: absurd, provider: sim, upstream: "sim?in=20&out=30&usage=negative", context_tokens: 128000, max_output_tokens: 50, price: {input: "1", output: "10"}}
  - {name: cut, provider: sim, upstream: "sim?in=20&out=30&cut=usage", max_output_tokens: 50, price: {input: "1", output: "10"}}
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", max_output_tokens: 50, price: {input: "1", output: "10"}}
plans: [{name: p, budgets: [{name: planned, metric: tokens, limit: 100000, period: day, `+skip+`]}]
budgets:
  - {name: each, scope: key, metric: spend, limit: "1", period: day, `+skip+`
  - {name: org, scope: org, metric: spend, limit: "1", period: day}
keys:
  - {name: k, secret: `+limitKey+`, plan: p, caps: {day: "1"}, budgets: [{name: own, metric: spend, limit: "1", window: 1h, `+skip+`, {name: charged, metric: spend, limit: "1", window: 1h, enforcement: guard}]}
`)
		for _, model := range []string{"none", "absurd", "cut"} {
			w.stream(limitKey, model, "")
			w.used(limitKey, "own", "0")
			w.used(limitKey, "each", "0")
			w.used(limitKey, "planned", "0")
		}
		w.must(w.chat(limitKey, "none"), 200, "")
		w.used(limitKey, "own", "0")
		// 11 µ$ of input and ceil(120/3) tokens of output, four times.
		for _, name := range []string{"org", "charged", "day cap"} {
			w.used(limitKey, name, "0.001644")
		}
		w.must(w.chat(limitKey, "m"), 200, "")
		w.used(limitKey, "own", "0.00032")
		w.used(limitKey, "each", "0.00032")
		w.used(limitKey, "planned", "50")
		w.used(limitKey, "org", "0.001964")
		w.rest(limitKey)
		w.balanced()
	}
}

// adjusted says what a request cost instead.
func (w *world) adjusted(a answer, spend string, tokens int64) {
	w.t.Helper()
	_, err := w.admin.RequestAdjust(context.Background(), admin.RequestAdjustRequest{
		ID:   a.header.Get("X-Weir-Request-Id"),
		Body: admin.AdjustFields{Spend: admin.Some(spend), Tokens: admin.Some(tokens), Reason: "the provider's invoice"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestACorrectionReachesEveryLimitInTheWindowsOfTheAdmission: RES-9, RES-7. Up and
// down, in the same window and after its end; the books balance each time.
func TestACorrectionReachesEveryLimitInTheWindowsOfTheAdmission(t *testing.T) {
	spends := []string{"hard spend", "soft spend", "on the model", "own", "day cap", "7-day cap", "30-day cap"}
	tokens := []string{"guard tokens", "plan budget"}
	w := newWorld(t, pennyKey(families, familyKey))
	w.fund("10")
	shows := func(names []string, used string) {
		t.Helper()
		for _, name := range names {
			w.used(limitKey, name, used)
		}
	}
	first := w.must(w.chat(limitKey, "m"), 200, "")
	for _, c := range []struct {
		spend, balance string
		tokens         int64
	}{{"2.5", "7.5", 1000}, {"0.004", "9.996", 3}, {"0", "10", 0}, {"0.01", "9.99", 61}} {
		w.adjusted(first, c.spend, c.tokens)
		shows(spends, c.spend)
		shows(tokens, fmt.Sprint(c.tokens))
		if got := w.balance(); got != c.balance {
			t.Errorf("the balance is %s, want %s", got, c.balance)
		}
		if got := w.spend("k").String(); got != c.spend {
			t.Errorf("reports say %s, want %s", got, c.spend)
		}
		w.balanced()
	}
	w.clock.Set(instant(t, "2026-07-21T12:00:00Z")) // in the same week, month and 30 days
	w.adjusted(first, "1", 500)
	shows([]string{"hard spend", "day cap"}, "0")
	shows(tokens, "0")
	shows([]string{"soft spend", "on the model", "own", "7-day cap", "30-day cap"}, "1")
	if got := w.balance(); got != "9" {
		t.Errorf("the balance is %s, want 9", got)
	}
	w.must(w.chat(limitKey, "m"), 200, "")
	shows([]string{"hard spend", "day cap"}, "0.01")
	w.rest(limitKey)
	w.balanced()
}

// TestACorrectionOpensAndShutsABudget: RES-9, ADM-4. It decides about the very
// next request.
func TestACorrectionOpensAndShutsABudget(t *testing.T) {
	for _, enforcement := range []string{"hard", "guard"} {
		w := newWorld(t, pennyKey(`budgets: [{name: b, scope: org, metric: spend, limit: "0.02", period: day, enforcement: `+enforcement+"}]\n", ""))
		a := w.must(w.chat(limitKey, "m"), 200, "")
		w.must(w.chat(limitKey, "m"), 200, "")
		w.must(w.chat(limitKey, "m"), 429, "budget_exceeded")
		w.adjusted(a, "0", 0)
		w.must(w.chat(limitKey, "m"), 200, "")
		w.must(w.chat(limitKey, "m"), 429, "budget_exceeded")
		w.adjusted(a, "0.5", 61)
		w.used(limitKey, "b", "0.52")
		w.balanced()
	}
}

// TestRealUsageThatComesLateCorrectsEveryFamily: RES-2, RES-5. A sweep charges the
// worst case on every counter; the usage that arrives after it replaces that.
func TestRealUsageThatComesLateCorrectsEveryFamily(t *testing.T) {
	ctx := context.Background()
	text := strings.Replace(pennyKey(families, familyKey), `price: {input: "0", output: "0", per_request: "0.01"}`, `price: {input: "1", output: "10"}`, 1)
	text = strings.Replace(text, "out=50", "out=30", 1)
	w := newWorldWith(t, start, "reservation_hold: 1m\n"+text, idle)
	w.fund("10")
	w.provider.Hold()
	done := make(chan answer, 1)
	go func() { done <- w.chat(limitKey, "m") }()
	w.await("the request", func(n simulator.Totals) bool { return n.Held == 1 })
	w.clock.Advance(time.Minute + time.Microsecond)
	w.server.Sweep(ctx)
	w.eventually("the sweep", func() bool { return w.spend("") > 0 })
	check := func(spend, tokens, balance string) {
		t.Helper()
		for _, name := range []string{"hard spend", "soft spend", "on the model", "own", "day cap", "7-day cap", "30-day cap"} {
			w.used(limitKey, name, spend)
		}
		for _, name := range []string{"guard tokens", "plan budget"} {
			w.used(limitKey, name, tokens)
		}
		if got := w.balance(); got != balance {
			t.Errorf("the balance is %s, want %s", got, balance)
		}
		w.rest(limitKey)
		w.balanced()
	}
	check("0.000511", "61", "9.999489")
	w.provider.Release()
	w.must(<-done, 200, "")
	w.eventually("the correction", func() bool { return w.spend("").String() == "0.000311" })
	check("0.000311", "41", "9.999689")
}

// TestARenewedStreamKeepsWhatItHolds: RES-5, BUD-2. While it runs, longer than any
// hold, the budget it fills stays full; then what it used is charged.
func TestARenewedStreamKeepsWhatItHolds(t *testing.T) {
	const settings = `budgets:
  - {name: spend, scope: org, metric: spend, limit: "0.015", window: 366d}
  - {name: tokens, scope: key, metric: tokens, limit: 100, window: 366d, enforcement: hard}
`
	w := newWorldWith(t, start, "reservation_hold: 1m\n"+pennyKey(settings, ", limits: {concurrency: 5}"), eager)
	w.provider.Hold()
	done := make(chan answer, 1)
	go func() { done <- w.stream(limitKey, "m", "") }()
	w.await("the request", func(n simulator.Totals) bool { return n.Held == 1 })
	for range 15 {
		w.clock.Advance(20 * time.Second)
		w.eventually("the renewal", func() bool {
			ends, err := w.server.OpenUntil(context.Background())
			return err == nil && len(ends) == 1 && ends[0] == w.clock.Now()+time.Minute.Microseconds()
		})
		a := w.must(w.chat(limitKey, "m"), 429, "budget_exceeded")
		if !strings.Contains(a.body, `"reason":"held"`) {
			t.Fatalf("refused with %s", a.body)
		}
	}
	if l := w.limit(limitKey, "spend"); l.Held != "0.01" || l.Used != "0" {
		t.Errorf("the budget shows %+v", l)
	}
	w.provider.Release()
	w.must(<-done, 200, "")
	w.used(limitKey, "spend", "0.01")
	w.used(limitKey, "tokens", "61")
	w.rest(limitKey)
	w.balanced()
}

// TestACorrectionGivesNoCacheReadsBack: RES-9, USE-3. Of 10,000 tokens a request
// 2,000 were charged where cache reads do not count: no correction of one request
// gives units of another back.
func TestACorrectionGivesNoCacheReadsBack(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: m, provider: sim, upstream: "sim?in=9000&cached=8000&out=1000", max_output_tokens: 1000, price: free}
budgets: [{name: b, scope: org, metric: tokens, limit: 100000, period: day, count_cached: false}]
keys:
  - {name: k, secret: `+limitKey+`}
`)
	first := w.must(w.chat(limitKey, "m"), 200, "")
	w.must(w.chat(limitKey, "m"), 200, "")
	w.used(limitKey, "b", "4000")
	for _, c := range []struct {
		tokens int64
		used   string
	}{{9_500, "3500"}, {0, "2000"}, {500, "2500"}} {
		w.adjusted(first, "0", c.tokens)
		w.used(limitKey, "b", c.used)
		w.balanced()
	}
}
