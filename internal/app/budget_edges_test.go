// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// penny is a model of which each request costs exactly one cent and uses 61 tokens.
const penny = `
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.01"}}
`

// tenantOf is a workspace of its own with one key, all of whose subjects are set.
func tenantOf(i int, settings string) (text, secret string) {
	secret = fmt.Sprintf("the-secret-of-the-key-of-workspace-%d", i)
	return fmt.Sprintf("  - name: w%d\n    keys: [{name: k, secret: %s, team: t, project: j, user: u, plan: p}]\n%s", i, secret, settings), secret
}

// edge is a kind of window with the instant at which the one around start ends,
// worked out by hand from the zone's calendar.
type edge struct{ name, window, end string }

func edges() []edge {
	return []edge{
		{"day", "period: day", "2026-07-21T00:00:00Z"},
		{"day in Havana", "period: day, time_zone: America/Havana", "2026-07-21T04:00:00Z"},
		{"day in Chatham", "period: day, time_zone: Pacific/Chatham", "2026-07-21T11:15:00Z"},
		{"week", "period: week", "2026-07-27T00:00:00Z"},
		{"week in Havana", "period: week, time_zone: America/Havana", "2026-07-27T04:00:00Z"},
		{"week in Chatham", "period: week, time_zone: Pacific/Chatham", "2026-07-26T11:15:00Z"},
		{"month", "period: month", "2026-08-01T00:00:00Z"},
		{"month in Tokyo", "period: month, time_zone: Asia/Tokyo", "2026-07-31T15:00:00Z"}, // BR-040
		{"month in Chatham", "period: month, time_zone: Pacific/Chatham", "2026-07-31T11:15:00Z"},
		{"10s", "window: 10s", "2026-07-20T12:00:10Z"},
		{"1h", "window: 1h", "2026-07-20T13:00:00Z"},
		{"24h", "window: 24h", "2026-07-21T00:00:00Z"},
		{"1440m", "window: 1440m", "2026-07-21T00:00:00Z"}, // BR-050
		{"1d", "window: 1d", "2026-07-21T00:00:00Z"},
		{"7d", "window: 7d", "2026-07-23T00:00:00Z"},
		{"1w", "window: 1w", "2026-07-23T00:00:00Z"},
		{"4w", "window: 4w", "2026-07-30T00:00:00Z"},
		{"366d", "window: 366d", "2027-02-13T00:00:00Z"},
	}
}

// TestEveryBudgetResetsAtItsEdgeAndOnlyThere: every scope × every kind of window,
// by spend and by tokens, hard and guard. BUD-1, BUD-3, BR-013, BR-015, BR-040,
// BR-044, BR-045, BR-048, BR-050, BR-051, BR-053.
func TestEveryBudgetResetsAtItsEdgeAndOnlyThere(t *testing.T) {
	type spent struct {
		what, secret string
		end          int64
	}
	var all []spent
	text := strings.Builder{}
	text.WriteString(penny + "workspaces:\n")
	for _, scope := range []string{"org", "team", "project", "user", "key", "plan"} {
		for i, e := range edges() {
			metric, limit := "spend", `"0.02"`
			if i%2 == 0 {
				metric, limit = "tokens", "122"
			}
			b := fmt.Sprintf("{name: b, metric: %s, limit: %s, %s, enforcement: %s}", metric, limit, e.window, []string{"hard", "guard"}[i%3%2])
			settings := "    plans: [{name: p}]\n    budgets: [" + strings.Replace(b, "metric:", "scope: "+scope+", metric:", 1) + "]\n"
			if scope == "plan" {
				settings = "    plans: [{name: p, budgets: [" + b + "]}]\n"
			}
			workspace, secret := tenantOf(len(all), settings)
			text.WriteString(workspace)
			end, err := time.Parse(time.RFC3339, e.end)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, spent{scope + " " + e.name, secret, end.UnixMicro()})
		}
	}
	w := newWorldAt(t, start-int64(time.Minute/time.Microsecond), text.String())
	secrets := make([]string, len(all))
	for i := range all {
		secrets[i] = all[i].secret
	}
	w.warm(secrets)
	w.clock.Set(start)
	spend := func(s spent) {
		t.Helper()
		for n, want := range []int{200, 200, 429} {
			if a := w.chat(s.secret, "m"); a.status != want {
				t.Fatalf("%s at %s: request %d: %v, want %d", s.what, time.UnixMicro(w.clock.Now()).UTC(), n, a, want)
			}
		}
	}
	for _, s := range all {
		spend(s)
		a := w.must(w.chat(s.secret, "m"), 429, "budget_exceeded")
		shown := w.budgetOf(s.secret)
		if resets, err := time.Parse(time.RFC3339, shown.ResetsAt); err != nil || resets.UnixMicro() != s.end || shown.Remaining != "0" || !strings.Contains(a.body, shown.ResetsAt) {
			t.Fatalf("%s: resets at %s, %s remain; refused with %s", s.what, shown.ResetsAt, shown.Remaining, a.body)
		}
	}
	slices.SortStableFunc(all, func(a, b spent) int { return int(min(1, max(-1, a.end-b.end))) })
	for i, s := range all {
		if w.clock.Now() < s.end {
			w.clock.Set(s.end - 1)
			for _, later := range all[i:] {
				if later.end > s.end+int64(time.Hour/time.Microsecond) {
					break
				}
				w.must(w.chat(later.secret, "m"), 429, "budget_exceeded")
			}
			w.clock.Set(s.end)
		}
		spend(s)
	}
	w.balanced()
}

// budgetOf is what a key is shown of its one budget.
func (w *world) budgetOf(secret string) (found struct{ Used, Remaining, ResetsAt string }) {
	w.t.Helper()
	for _, l := range parseLimits(w.t, w.must(w.do(w.t.Context(), "GET", "/v1/key", secret, ""), 200, "").body) {
		if l.Name == "b" {
			found.Used, found.Remaining, found.ResetsAt = l.Used, l.Remaining, l.ResetsAt
			return found
		}
	}
	w.t.Fatal("the key's budget is not shown")
	return found
}
