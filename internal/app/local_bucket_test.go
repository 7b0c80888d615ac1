// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// TestTheProcessesBucketRefillsByStep: RAT-6. Three requests, then one every ten
// seconds, at the instant of the step and not before; a full bucket takes no more.
func TestTheProcessesBucketRefillsByStep(t *testing.T) {
	w := newWorldAt(t, at(t, "12:00:00"), "local_rate_limit: {type: requests, max_tokens: 3, tokens_per_fill: 1, fill_interval: 10s}\n"+
		pennyKey("", "")+"  - {name: second, secret: "+secondKey+"}\n")
	for i, key := range []string{limitKey, secondKey, limitKey} {
		w.must(w.chat(key, "m"), 200, "")
		if l := w.limit(limitKey, "local rate limit"); l.Remaining != []string{"2", "1", "0"}[i] || l.Scope != "process" {
			t.Errorf("shown %+v", l)
		}
	}
	a := w.must(w.chat(secondKey, "m"), 429, "rate_limited") // over all keys
	if got := a.header.Get("Retry-After"); got != "10" {
		t.Errorf("Retry-After %q, want 10", got)
	}
	w.clock.Set(at(t, "12:00:09"))
	if got := w.must(w.chat(limitKey, "m"), 429, "rate_limited").header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q, want 1", got)
	}
	w.clock.Set(at(t, "12:00:10"))
	if n := w.admitted(limitKey, "m", "rate_limited"); n != 1 {
		t.Errorf("%d passed after a step", n)
	}
	w.clock.Set(at(t, "12:05:00"))
	if n := w.admitted(limitKey, "m", "rate_limited"); n != 3 {
		t.Errorf("%d passed from a full bucket", n)
	}
	w.restart() // in memory: full again
	if n := w.admitted(limitKey, "m", "rate_limited"); n != 3 {
		t.Errorf("%d passed after a restart", n)
	}
	w.balanced()
}

// TestTheProcessesBucketTakesTheEstimateAndIsCorrected: RAT-6. 11 tokens are taken
// while a request runs, 61 when it has ended; a failure gives them back.
func TestTheProcessesBucketTakesTheEstimateAndIsCorrected(t *testing.T) {
	w := newWorld(t, "local_rate_limit: {type: tokens, max_tokens: 100, tokens_per_fill: 61, fill_interval: 1m}\n"+`
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: free}
  - {name: fails, provider: sim, upstream: "sim?status=500", max_output_tokens: 50, price: free}
keys:
  - {name: k, secret: `+limitKey+`}
`)
	left := func(want string) {
		t.Helper()
		if l := w.limit(limitKey, "local rate limit"); l.Remaining != want {
			t.Errorf("%s are left, want %s", l.Remaining, want)
		}
	}
	w.must(w.chat(limitKey, "fails"), 500, "simulated_error")
	left("100")
	w.provider.Hold()
	done := make(chan answer, 1)
	go func() { done <- w.chat(limitKey, "m") }()
	w.await("the request", func(n simulator.Totals) bool { return n.Held == 1 })
	left("89")
	w.provider.Release()
	w.must(<-done, 200, "")
	left("39")
	w.must(w.chat(limitKey, "m"), 200, "")
	left("0") // in debt: -22
	if got := w.must(w.chat(limitKey, "m"), 429, "rate_limited").header.Get("Retry-After"); got != "60" {
		t.Errorf("Retry-After %q, want 60", got)
	}
	w.clock.Advance(time.Minute)
	left("39")
	w.must(w.chat(limitKey, "m"), 200, "")
	w.balanced()
}

// TestARefusalOfTheProcessesBucketLeavesEveryLimitAsItWas: RAT-6, ORD-2. Nothing
// reaches the provider; the call log shows the bucket among the checks.
func TestARefusalOfTheProcessesBucketLeavesEveryLimitAsItWas(t *testing.T) {
	w := newWorld(t, "local_rate_limit: {max_tokens: 1, tokens_per_fill: 1, fill_interval: 1h}\n"+pennyKey(families, familyKey))
	w.fund("10")
	w.must(w.chat(limitKey, "m"), 200, "")
	before := w.uses(limitKey)
	for range 5 {
		shown := w.shown(w.must(w.chat(limitKey, "m"), 429, "rate_limited"))
		for _, c := range shown.Checks {
			if refused := c.Verdict != "pass"; refused != (c.Name == "local rate limit") {
				t.Errorf("the record says %s of %s", c.Verdict, c.Name)
			}
		}
	}
	w.same(before, w.uses(limitKey))
	if n := w.provider.Bill().Requests; n != 1 {
		t.Errorf("%d requests reached the provider", n)
	}
	w.rest(limitKey)
	w.balanced()
}

// TestARefusalOfTheProcessesBucketWritesNothing: RAT-6, KEY-7, ORD-2. It makes no
// user; every limit that is asked before it answers first.
func TestARefusalOfTheProcessesBucketWritesNothing(t *testing.T) {
	w := newWorld(t, "local_rate_limit: {max_tokens: 1, tokens_per_fill: 1, fill_interval: 1h}\nmax_users: 1\n"+
		pennyKey("", ", attribute_users: header"))
	w.must(w.chat(limitKey, "m"), 200, "")
	for _, user := range []string{"a", "b", "c", "a"} {
		w.must(w.chat(limitKey, "m", "X-Weir-User", user), 429, "rate_limited")
	}
	w.must(w.chat(limitKey, "none", "X-Weir-User", "a"), 404, "model_not_found")
	w.clock.Advance(time.Hour)
	w.must(w.chat(limitKey, "m", "X-Weir-User", "first"), 200, "")
	w.must(w.chat(limitKey, "m", "X-Weir-User", "first"), 429, "rate_limited")
	for _, user := range []string{"a", "b", "c"} {
		w.must(w.chat(limitKey, "m", "X-Weir-User", user), 400, "user_limit_reached")
	}
	w.balanced()
}

// TestWhatAnotherLimitRefusesTakesNoPlaceInTheProcessesBucket: RAT-6, ORD-2. Of 64
// requests that another limit refuses, none is in the way of one that it lets
// through, while they are decided.
func TestWhatAnotherLimitRefusesTakesNoPlaceInTheProcessesBucket(t *testing.T) {
	w := newWorld(t, "local_rate_limit: {max_tokens: 15, tokens_per_fill: 1, fill_interval: 1h}\n"+
		pennyKey("", ", limits: {rpm: 10}")+"  - {name: second, secret: "+secondKey+", limits: {rpm: 10}}\n")
	answers := volley(128, 64, func(i int) answer { return w.chat([]string{limitKey, secondKey}[i%2], "m") })
	if got := count(answers, 200); got != 15 {
		t.Errorf("%d were admitted, want 15", got)
	}
	if n := w.provider.Bill().Requests; n != 15 {
		t.Errorf("%d requests reached the provider, want 15", n)
	}
	if l := w.limit(limitKey, "local rate limit"); l.Remaining != "0" {
		t.Errorf("%s are left", l.Remaining)
	}
	w.balanced()
}
