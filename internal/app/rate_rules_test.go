// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// halves is a model that holds 61 tokens a request and uses 36.
const halves = `
models:
  - {name: m, aliases: [alias], provider: sim, upstream: "sim?in=11&out=25", context_tokens: 128000, max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.01"}}
`

// rateCase is a set of rate limits, and the shortest of them that weighs requests
// by units: no interval of its length may hold more than its limit.
type rateCase struct {
	name, settings, key string
	window              time.Duration
	limit, units        int64
}

func rateCases() []rateCase {
	rule := func(metric string, seconds, limit int, more string) string {
		return fmt.Sprintf("rate_limits: [{name: r, subject_kind: org, metric: %s, window_seconds: %d, limit: %d%s}]\n", metric, seconds, limit, more)
	}
	all := []rateCase{
		{"requests a second", rule("requests", 1, 2, ""), "", time.Second, 2, 1},
		{"requests in ten seconds", rule("requests", 10, 3, ""), "", 10 * time.Second, 3, 1},
		{"one a minute", rule("requests", 60, 1, ""), "", time.Minute, 1, 1},
		{"requests a day", rule("requests", 86400, 4, ""), "", 24 * time.Hour, 4, 1},
		{"more than are kept one by one", rule("requests", 7, 130, ""), "", 7 * time.Second, 130, 1},
		{"tokens in seven seconds", rule("tokens", 7, 130, ""), "", 7 * time.Second, 130, 36},
		{"tokens a minute", rule("tokens", 60, 300, ""), "", time.Minute, 300, 36},
		{"tokens an hour", rule("tokens", 3600, 100, ""), "", time.Hour, 100, 36},
		{"on the model", rule("requests", 10, 3, ", model: m"), "", 10 * time.Second, 3, 1},
		{"on its alias", rule("tokens", 10, 130, ", model: alias"), "", 10 * time.Second, 130, 36},
		{"input alone", rule("tokens", 10, 100, ", estimate: input"), "", 0, 0, 0},
		{"rpm", "", ", limits: {rpm: 3}", 0, 0, 0},
		{"tpm", "", ", limits: {tpm: 77}", 0, 0, 0},
		{"rpm and tpm of both layers", "limits: {rpm: 4, tpm: 90}\n", ", limits: {rpm: 3, tpm: 80}", 0, 0, 0},
		{"a rule and rpm", rule("requests", 13, 4, ""), ", limits: {rpm: 3}", 13 * time.Second, 4, 1},
	}
	return append(all, rateCase{"three rules", `rate_limits:
  - {name: a, subject_kind: api_key, metric: requests, window_seconds: 5, limit: 3}
  - {name: b, subject_kind: user, metric: tokens, window_seconds: 31, limit: 200}
  - {name: c, subject_kind: team, metric: requests, window_seconds: 17, limit: 4, model: m}
`, ", limits: {tpm: 200}", 5 * time.Second, 3, 1})
}

// TestRetryAfterIsHonestForEveryRate: ERR-2, RAT-1, RUN-1, BR-137. Random traffic
// under each kind of limit; each refusal says when: a request at that second is
// admitted, one a second sooner is not. And no interval ever holds more than the
// limit, by a count of the test's own.
func TestRetryAfterIsHonestForEveryRate(t *testing.T) {
	for i, c := range rateCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(i), 7))
			w := newWorld(t, halves+c.settings+"keys:\n  - {name: k, secret: "+limitKey+", team: t, user: u"+c.key+"}\n")
			var passed []int64
			send := func() answer {
				a := w.chat(limitKey, "m")
				if a.status == 200 {
					passed = append(passed, w.clock.Now())
				}
				return a
			}
			gap := 900_000 // microseconds between two requests, at most
			if c.limit > 100 && c.units == 1 {
				gap = 40_000
			}
			for refusals, sent := 0, 0; refusals < 4; sent++ {
				if sent > 2000 {
					t.Fatal("nothing is ever refused")
				}
				w.clock.Advance(time.Duration(random.IntN(gap)) * time.Microsecond)
				a := send()
				if a.status == 200 {
					continue
				}
				refusals++
				wait, err := strconv.Atoi(a.header.Get("Retry-After"))
				if a.status != 429 || err != nil || wait < 1 || wait > 60 != (a.header.Get("x-should-retry") == "false") {
					t.Fatalf("refused with %v, Retry-After %q, x-should-retry %q", a, a.header.Get("Retry-After"), a.header.Get("x-should-retry"))
				}
				until := w.clock.Now() + int64(wait)*1_000_000
				if wait > 1 {
					w.clock.Set(until - 1_000_000)
					if early := send(); early.status == 200 {
						t.Fatalf("told to wait %d s, and admitted a second sooner: %s", wait, a.body)
					}
				}
				w.clock.Set(until)
				w.must(send(), 200, "")
			}
			for i, end := range passed {
				units := int64(0)
				for _, at := range passed[:i+1] {
					if c.window > 0 && end-at < c.window.Microseconds() {
						units += c.units
					}
				}
				if units > c.limit && c.window > 0 {
					t.Fatalf("%d units within %s up to request %d, the limit is %d", units, c.window, i, c.limit)
				}
			}
			w.balanced()
		})
	}
}

// rates is what the headers of RAT-3 say: limit remaining reset.
func rates(a answer) string {
	h := a.header
	if h.Get("X-RateLimit-Limit")+h.Get("X-RateLimit-Remaining")+h.Get("X-RateLimit-Reset") == "" {
		return ""
	}
	return h.Get("X-RateLimit-Limit") + " " + h.Get("X-RateLimit-Remaining") + " " + h.Get("X-RateLimit-Reset")
}

// TestRateHeadersDescribeTheSmallestShare: RAT-3, BR-140. Three requests four
// seconds apart, each of 11 + 50 tokens, 36 used.
func TestRateHeadersDescribeTheSmallestShare(t *testing.T) {
	for _, c := range []struct{ name, settings, key, headers string }{
		{"nothing applies", "", "", "; ; "},
		{"concurrency and budgets never", `budgets: [{name: b, scope: org, metric: tokens, limit: 200, period: day}]`, ", limits: {concurrency: 2}", "; ; "},
		{"a rule", "rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 10, limit: 5}]", "", "5 4 10; 5 3 10; 5 2 10"},
		{"what slides out comes back", "rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 4, limit: 5}]", "", "5 4 4; 5 4 4; 5 4 4"},
		{"tokens are corrected", "rate_limits: [{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 1000}]", "", "1000 939 61; 1000 903 61; 1000 867 61"},
		{"rpm", "", ", limits: {rpm: 6}", "6 5 10; 6 4 16; 6 3 22"},
		{"the smaller share of two rules", "rate_limits: [{name: a, subject_kind: org, metric: requests, window_seconds: 10, limit: 5}, {name: b, subject_kind: api_key, metric: requests, window_seconds: 60, limit: 4}]", "", "4 3 60; 4 2 60; 4 1 60"},
		{"a rule before a larger rpm", "rate_limits: [{name: a, subject_kind: org, metric: requests, window_seconds: 10, limit: 5}]", ", limits: {rpm: 600}", "5 4 10; 5 3 10; 5 2 10"},
		{"a rule on the model", "rate_limits: [{name: a, subject_kind: org, metric: requests, window_seconds: 10, limit: 5, model: alias}]", "", "5 4 10; 5 3 10; 5 2 10"},
		{"a disabled rule is none", "rate_limits: [{name: a, subject_kind: org, metric: requests, window_seconds: 10, limit: 5, enabled: false}]", "", "; ; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, halves+c.settings+"\nkeys:\n  - {name: k, secret: "+limitKey+c.key+"}\n")
			var got []string
			for range 3 {
				got = append(got, rates(w.must(w.chat(limitKey, "m"), 200, "")))
				w.clock.Advance(4 * time.Second)
			}
			if strings.Join(got, "; ") != c.headers {
				t.Errorf("the headers say %q, want %q", strings.Join(got, "; "), c.headers)
			}
		})
	}
	t.Run("a refusal has them too", func(t *testing.T) {
		w := newWorld(t, halves+"rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 10, limit: 1}]\nkeys:\n  - {name: k, secret: "+limitKey+"}\n")
		w.must(w.chat(limitKey, "m"), 200, "")
		w.clock.Advance(3 * time.Second)
		if got := rates(w.must(w.chat(limitKey, "m"), 429, "rate_limited")); got != "1 0 7" {
			t.Errorf("a refusal says %q", got)
		}
	})
}

// TestAModelsRuleCountsEveryNameOfIt: RAT-2. Declared on the model or its alias,
// asked for by either; another model has its own.
func TestAModelsRuleCountsEveryNameOfIt(t *testing.T) {
	for _, declared := range []string{"m", "alias"} {
		w := newWorld(t, `
models:
  - {name: m, aliases: [alias, another], provider: sim, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: free}
  - {name: other, provider: sim, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: free}
rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 3, model: `+declared+`}]
keys:
  - {name: k, secret: `+limitKey+`}
`)
		for _, name := range []string{"m", "alias", "other", "another", "other"} {
			w.must(w.chat(limitKey, name), 200, "")
		}
		for _, name := range []string{"alias", "m", "another"} {
			w.must(w.chat(limitKey, name), 429, "rate_limited")
		}
		w.must(w.chat(limitKey, "other"), 200, "")
		if l := w.limit(limitKey, "r"); l.Used != "3" {
			t.Errorf("declared on %s: %+v", declared, l)
		}
	}
}

// TestATokenRuleIsOneOverAllThatItCovers: BR-020, USE-3. Three of 500 tokens over
// two models: 500, 1,000, refused.
func TestATokenRuleIsOneOverAllThatItCovers(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: a, provider: sim, upstream: "sim?in=11&out=489", max_output_tokens: 489, price: free}
  - {name: b, provider: sim, upstream: "sim?in=11&out=489", max_output_tokens: 489, price: free}
rate_limits: [{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 1000}]
keys:
  - {name: k, secret: `+limitKey+`}
`)
	for i, model := range []string{"a", "b"} {
		w.must(w.chat(limitKey, model), 200, "")
		if got, want := w.limit(limitKey, "r").Used, strconv.Itoa(500*(i+1)); got != want {
			t.Errorf("%s tokens used, want %s", got, want)
		}
	}
	w.must(w.chat(limitKey, "a"), 429, "rate_limited")
	w.must(w.chat(limitKey, "b"), 429, "rate_limited")
}

// TestAnEdgeDoesNotDoubleARule: BR-144. 100 in a minute: a hundred at second 59,
// none of a hundred at second 61, all of them at second 119.
func TestAnEdgeDoesNotDoubleARule(t *testing.T) {
	w := newWorldAt(t, at(t, "12:00:59"), pennyKey("rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 100}]\n", ""))
	for _, c := range []struct {
		at   string
		want int
	}{{"12:00:59", 100}, {"12:01:01", 0}, {"12:01:58", 0}, {"12:01:59", 100}} {
		w.clock.Set(at(t, c.at))
		if got := count(volley(120, 60, func(int) answer { return w.chat(limitKey, "m") }), 200); got != c.want {
			t.Errorf("at %s %d passed, want %d", c.at, got, c.want)
		}
	}
	w.balanced()
}

// TestCachedTokensAreLeftOutWhereAsked: BR-145, USE-3. 10,000 tokens a request,
// 8,000 of them from a cache: five a minute fit 10,000, or one.
func TestCachedTokensAreLeftOutWhereAsked(t *testing.T) {
	for _, c := range []struct {
		name, settings, key, code string
		want                      int
	}{
		{"tpm", "", ", limits: {tpm: 10000, count_cached: false}", "api_key_tpm_exceeded", 5},
		{"tpm of all tokens", "", ", limits: {tpm: 10000}", "api_key_tpm_exceeded", 1},
		{"a workspace's tpm", "limits: {tpm: 10000, count_cached: false}\n", "", "workspace_tpm_exceeded", 5},
		{"a rule", "rate_limits: [{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 10000, estimate: input, count_cached: false}]\n", "", "rate_limited", 5},
		{"a rule of all tokens", "rate_limits: [{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 10000, estimate: input}]\n", "", "rate_limited", 1},
		{"a budget", "budgets: [{name: b, scope: org, metric: tokens, limit: 10000, period: day, count_cached: false, enforcement: guard}]\n", "", "budget_exceeded", 5},
		{"a budget of all tokens", "budgets: [{name: b, scope: org, metric: tokens, limit: 10000, period: day, enforcement: guard}]\n", "", "budget_exceeded", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.settings+`
models:
  - {name: m, provider: sim, upstream: "sim?in=9000&cached=8000&out=1000", max_output_tokens: 1000, price: free}
keys:
  - {name: k, secret: `+limitKey+c.key+`}
`)
			if got := w.admitted(limitKey, "m", c.code); got != c.want {
				t.Errorf("%d passed, want %d", got, c.want)
			}
			w.balanced()
		})
	}
}

// TestTagsAttributeAndDoNotEnforce: BR-188, RAT-5. With the tag: limited; without
// it, or with another: not. One rule a tag, each request counts for all of its own.
func TestTagsAttributeAndDoNotEnforce(t *testing.T) {
	w := newWorld(t, pennyKey(`rate_limits:
  - {name: batch, subject_kind: tag, subject_id: batch, metric: requests, window_seconds: 60, limit: 1}
  - {name: night, subject_kind: tag, subject_id: night, metric: requests, window_seconds: 60, limit: 3}
`, ""))
	w.must(w.chat(limitKey, "m", "X-Weir-Tags", "batch,night"), 200, "")
	for _, tags := range []string{"batch", " batch , other", "night,batch"} {
		w.must(w.chat(limitKey, "m", "X-Weir-Tags", tags), 429, "rate_limited")
	}
	for _, tags := range []string{"", "other", "Batch", "batch2"} {
		w.must(w.chat(limitKey, "m", "X-Weir-Tags", tags), 200, "")
	}
	w.must(w.chat(limitKey, "m"), 200, "")
	if l := w.limit(limitKey, "night", "X-Weir-Tags", "night"); l.Used != "1" {
		t.Errorf("refused requests counted: %+v", l)
	}
	eleven := strings.TrimSuffix(strings.Repeat("a,", 11), ",")
	for _, c := range []struct {
		tags   string
		status int
	}{
		{eleven, 200},
		{"a,b,c,d,e,f,g,h,i,j", 200},
		{"a,b,c,d,e,f,g,h,i,j,k", 400},
		{"a b", 400},
		{"ä", 400},
		{"a,,b", 400},
		{strings.Repeat("x", 64), 200},
		{strings.Repeat("x", 65), 400},
		{"Team:a/b=c.d_e-f", 200},
		{"a*", 400},
	} {
		if a := w.chat(limitKey, "m", "X-Weir-Tags", c.tags); a.status != c.status {
			t.Errorf("tags %q got %v, want %d", c.tags, a, c.status)
		}
	}
	w.balanced()
}

// TestFailuresKeepTheirRequestsAndGiveBackTheirTokens: RAT-1, RES-10, ORD-5. What
// failed without output counts as a request and as no tokens, in rules and TPM.
func TestFailuresKeepTheirRequestsAndGiveBackTheirTokens(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: e500, provider: sim, upstream: "sim?status=500", max_output_tokens: 50, price: free}
  - {name: reset, provider: sim, upstream: "sim?cut=headers", max_output_tokens: 50, price: free}
rate_limits:
  - {name: requests, subject_kind: org, metric: requests, window_seconds: 60, limit: 4}
  - {name: tokens, subject_kind: org, metric: tokens, window_seconds: 60, limit: 61}
keys:
  - {name: k, secret: `+limitKey+`, limits: {rpm: 100, tpm: 11}}
`)
	for _, model := range []string{"e500", "reset", "e500", "reset"} {
		if a := w.chat(limitKey, model); a.status != 500 && a.status != 502 {
			t.Fatalf("%s: %v", model, a)
		}
	}
	w.used(limitKey, "requests", "4")
	w.used(limitKey, "tokens", "0")
	w.must(w.chat(limitKey, "e500"), 429, "rate_limited")
	w.balanced()
}

// TestAVolleyNeverPassesARule: RAT-1, ORD-2. 100 at once: just what the rule has
// room for, of requests and of tokens that are held.
func TestAVolleyNeverPassesARule(t *testing.T) {
	for _, c := range []struct {
		settings string
		fit      int
	}{
		{"{name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 7}", 7},
		{"{name: r, subject_kind: api_key, metric: tokens, window_seconds: 60, limit: 499}", 8},
		{"{name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 60, model: m}", 60},
		{"{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 120, estimate: input}", 10},
	} {
		w := newWorld(t, pennyKey("rate_limits: ["+c.settings+"]\n", ""))
		answers := w.together(100, c.fit, func(int) answer { return w.chat(limitKey, "m") })
		if got := count(answers, 200); got != c.fit {
			t.Errorf("%s: %d passed, want %d", c.settings, got, c.fit)
		}
		w.await("nobody", func(n simulator.Totals) bool { return n.InFlight == 0 })
		w.balanced()
	}
}

// TestNothingIsTakenByReading: GET /v1/key and /v1/models take nothing of any
// rate, however often: ORD-3, RAT-1.
func TestNothingIsTakenByReading(t *testing.T) {
	w := newWorld(t, pennyKey("rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 1}]\n", ", limits: {rpm: 1, concurrency: 1}"))
	for range 5 {
		for _, path := range []string{"/v1/key", "/v1/models"} {
			w.must(w.do(context.Background(), http.MethodGet, path, limitKey, ""), 200, "")
		}
	}
	w.must(w.chat(limitKey, "m"), 200, "")
}
