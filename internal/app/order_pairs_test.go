// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/simulator"
)

// families has a limit of every family with room for all that a test sends.
const (
	families = `funds: prepaid_hold
limits: {rpm: 1000, tpm: 100000, concurrency: 100}
plans: [{name: p, budgets: [{name: plan budget, metric: tokens, limit: 100000, period: day, enforcement: hard}]}]
budgets:
  - {name: hard spend, scope: team, metric: spend, limit: "10", period: day, enforcement: hard}
  - {name: guard tokens, scope: user, metric: tokens, limit: 100000, window: 1h, enforcement: guard}
  - {name: soft spend, scope: project, metric: spend, limit: "10", period: month, enforcement: soft}
  - {name: on the model, scope: org, metric: spend, limit: "10", period: week, model: m}
rate_limits:
  - {name: requests, subject_kind: org, metric: requests, window_seconds: 60, limit: 1000}
  - {name: tokens, subject_kind: api_key, metric: tokens, window_seconds: 60, limit: 100000}
  - {name: on the model too, subject_kind: user, metric: requests, window_seconds: 60, limit: 1000, model: m}
`
	familyKey = `, team: t, project: j, user: u, plan: p, caps: {day: "10", seven_day: "10", thirty_day: "10"}, limits: {rpm: 1000, tpm: 100000, concurrency: 100}, budgets: [{name: own, metric: spend, limit: "10", window: 30d, enforcement: hard}]`
)

// uses is what every limit of a key shows: used and held.
func (w *world) uses(secret string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, l := range w.limits(secret) {
		all[l.Name+" of "+l.Scope+" "+l.Window] = l.Used + " used, " + l.Held + " held, " + l.Remaining + " left"
	}
	return all
}

// same fails the test unless nothing has changed but the process's bucket.
func (w *world) same(before, after map[string]string) {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] && !strings.HasPrefix(name, "local rate limit") {
			w.t.Errorf("%s was %s, and is %s", name, before[name], after[name])
		}
	}
}

// TestARefusedRequestConsumesNothingOfAnyOtherLimit: ORD-2, ORD-1, BR-134. Each
// limit in turn has room for one request, beside all others with room; what it
// refuses leaves every use, hold and slot as it was, and nothing is sent.
func TestARefusedRequestConsumesNothingOfAnyOtherLimit(t *testing.T) {
	for _, c := range []struct {
		name, from, to, code string
		status               int
	}{
		{"funds", "", "", "insufficient_balance", 402},
		{"day cap", `caps: {day: "10"`, `caps: {day: "0.01"`, "day_limit_reached", 402},
		{"7-day cap", `caps: {day: "10", seven_day: "10"`, `caps: {seven_day: "0.01"`, "seven_day_limit_reached", 402},
		{"30-day cap", `caps: {day: "10", seven_day: "10", thirty_day: "10"`, `caps: {thirty_day: "0.01"`, "thirty_day_limit_reached", 402},
		{"the key's budget", `metric: spend, limit: "10", window: 30d`, `metric: spend, limit: "0.01", window: 30d`, "budget_exceeded", 429},
		{"the plan's budget", "metric: tokens, limit: 100000, period: day", "metric: tokens, limit: 61, period: day", "budget_exceeded", 429},
		{"a hard budget", `scope: team, metric: spend, limit: "10"`, `scope: team, metric: spend, limit: "0.019"`, "budget_exceeded", 429},
		{"a guard budget", "scope: user, metric: tokens, limit: 100000", "scope: user, metric: tokens, limit: 61", "budget_exceeded", 429},
		{"a budget on the model", `scope: org, metric: spend, limit: "10"`, `scope: org, metric: spend, limit: "0.01"`, "budget_exceeded", 429},
		{"key rpm", `limits: {rpm: 1000, tpm: 100000, concurrency: 100}, budgets`, `limits: {rpm: 1, tpm: 100000, concurrency: 100}, budgets`, "api_key_rpm_exceeded", 429},
		{"key tpm", `limits: {rpm: 1000, tpm: 100000, concurrency: 100}, budgets`, `limits: {rpm: 1000, tpm: 61, concurrency: 100}, budgets`, "api_key_tpm_exceeded", 429},
		{"workspace rpm", "limits: {rpm: 1000, tpm: 100000, concurrency: 100}\n", "limits: {rpm: 1, tpm: 100000, concurrency: 100}\n", "workspace_rpm_exceeded", 429},
		{"workspace tpm", "limits: {rpm: 1000, tpm: 100000, concurrency: 100}\n", "limits: {rpm: 1000, tpm: 61, concurrency: 100}\n", "workspace_tpm_exceeded", 429},
		{"a rule of requests", "metric: requests, window_seconds: 60, limit: 1000}", "metric: requests, window_seconds: 60, limit: 1}", "rate_limited", 429},
		{"a rule of tokens", "metric: tokens, window_seconds: 60, limit: 100000", "metric: tokens, window_seconds: 60, limit: 61", "rate_limited", 429},
		{"a rule on the model", "limit: 1000, model: m", "limit: 1, model: m", "rate_limited", 429},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := pennyKey(families, familyKey)
			if c.from != "" && strings.Count(text, c.from) != 1 {
				t.Fatalf("%q stands %d times in the file", c.from, strings.Count(text, c.from))
			}
			if c.from != "" {
				text = strings.Replace(text, c.from, c.to, 1)
			}
			if strings.HasPrefix(c.name, "workspace") { // no key above its workspace (RUN-4)
				text = strings.Replace(text, "limits: {rpm: 1000, tpm: 100000, concurrency: 100}, budgets", "budgets", 1)
			}
			w := newWorld(t, text)
			w.fund(map[bool]string{true: "0.01", false: "10"}[c.name == "funds"])
			w.must(w.chat(limitKey, "m"), 200, "")
			before := w.uses(limitKey)
			if len(before) < 15 {
				t.Fatalf("only %d limits are shown: %v", len(before), before)
			}
			for i := range 6 {
				if i%2 == 0 {
					w.must(w.chat(limitKey, "m"), c.status, c.code)
				} else {
					w.must(w.stream(limitKey, "m", ""), c.status, c.code)
				}
			}
			w.same(before, w.uses(limitKey))
			if n := w.provider.Bill().Requests; n != 1 {
				t.Errorf("%d requests reached the provider", n)
			}
			w.rest(limitKey)
			w.balanced()
		})
	}
}

// TestASlotThatIsTakenConsumesNothingOfAnyOtherLimit: ORD-2, RUN-3. The same for
// concurrency, of both layers, and for what others hold of a hard budget.
func TestASlotThatIsTakenConsumesNothingOfAnyOtherLimit(t *testing.T) {
	for _, c := range []struct{ name, from, to, code string }{
		{"key", "concurrency: 100}, budgets", "concurrency: 1}, budgets", "api_key_concurrency_exceeded"},
		{"workspace", "concurrency: 100}\n", "concurrency: 1}\n", "workspace_concurrency_exceeded"},
		{"a hold", `scope: team, metric: spend, limit: "10"`, `scope: team, metric: spend, limit: "0.019"`, "budget_exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(pennyKey(families, familyKey), c.from, c.to, 1)
			if c.name == "workspace" {
				text = strings.Replace(text, "concurrency: 100}, budgets", "concurrency: 0}, budgets", 1)
			}
			w := newWorld(t, text)
			w.fund("10")
			w.provider.Hold()
			done := make(chan answer, 1)
			go func() { done <- w.chat(limitKey, "m") }()
			w.await("the first", func(n simulator.Totals) bool { return n.Held == 1 })
			before := w.uses(limitKey)
			for range 5 {
				w.must(w.chat(limitKey, "m"), 429, c.code)
			}
			w.same(before, w.uses(limitKey))
			w.provider.Release()
			w.must(<-done, 200, "")
			w.rest(limitKey)
			w.balanced()
		})
	}
}
