// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
)

// change is one change of a limit: the declaration after it, and how many more
// requests pass then. The first two were counted before.
type change struct {
	name, after string
	more        int
	// used is what the limit shows right after the change.
	used string
}

// identityModels are two models of a cent a request; the first has an alias.
var identityModels = strings.Replace(penny, "name: m,", "name: m, aliases: [alias],", 1) +
	strings.TrimPrefix(strings.Replace(penny, "name: m,", "name: other,", 1), "\nmodels:\n")

func identityConfig(kind, limit string) string {
	return identityModels + kind + ":\n  - {" + limit + "}\nkeys:\n  - {name: k, secret: " + limitKey + ", team: t, project: j, user: u}\n"
}

// budgetChanges are of a budget of the team of four cents a day (BUD-4).
func budgetChanges() []change {
	return []change{
		{"nothing", `name: b, scope: team, metric: spend, limit: "0.04", period: day, enforcement: hard`, 2, "0.02"},
		{"a larger amount", `name: b, scope: team, metric: spend, limit: "0.05", period: day, enforcement: hard`, 3, "0.02"},
		{"a smaller amount", `name: b, scope: team, metric: spend, limit: "0.03", period: day, enforcement: hard`, 1, "0.02"},
		{"an amount below what is used", `name: b, scope: team, metric: spend, limit: "0.01", period: day, enforcement: hard`, 0, "0.02"},
		{"the name", `name: renamed, was: b, scope: team, metric: spend, limit: "0.04", period: day, enforcement: hard`, 2, "0.02"},
		{"the action", `name: b, scope: team, metric: spend, limit: "0.035", period: day, enforcement: guard`, 2, "0.02"},
		{"the thresholds", `name: b, scope: team, metric: spend, limit: "0.04", period: day, enforcement: hard, warn_percent: [10, 90]`, 2, "0.02"},
		{"what is done when short", `name: b, scope: team, metric: spend, limit: "0.04", period: day, enforcement: hard, on_short: shrink`, 2, "0.02"},
		{"a spelling of the zone", `name: b, scope: team, metric: spend, limit: "0.04", period: day, time_zone: UTC, enforcement: hard`, 2, "0.02"},
		{"the period", `name: b, scope: team, metric: spend, limit: "0.04", period: week, enforcement: hard`, 4, "0"},
		{"the zone", `name: b, scope: team, metric: spend, limit: "0.04", period: day, time_zone: Asia/Tokyo, enforcement: hard`, 4, "0"},
		{"a length for the period", `name: b, scope: team, metric: spend, limit: "0.04", window: 24h, enforcement: hard`, 4, "0"},
		{"the metric", `name: b, scope: team, metric: tokens, limit: 244, period: day, enforcement: hard`, 4, "0"},
		{"the scope", `name: b, scope: project, metric: spend, limit: "0.04", period: day, enforcement: hard`, 4, "0"},
		{"the model", `name: b, scope: team, metric: spend, limit: "0.04", period: day, enforcement: hard, model: m`, 4, "0"},
		{"the provider", `name: b, scope: team, metric: spend, limit: "0.04", period: day, enforcement: hard, provider: sim`, 4, "0"},
	}
}

// ruleChanges are of a rule of four requests a minute (RAT-4).
func ruleChanges() []change {
	return []change{
		{"nothing", "name: b, subject_kind: team, metric: requests, window_seconds: 60, limit: 4", 2, "2"},
		{"a larger limit", "name: b, subject_kind: team, metric: requests, window_seconds: 60, limit: 5", 3, "2"},
		{"a smaller limit", "name: b, subject_kind: team, metric: requests, window_seconds: 60, limit: 2", 0, "2"},
		{"the name", "name: renamed, was: b, subject_kind: team, metric: requests, window_seconds: 60, limit: 4", 2, "2"},
		{"the window", "name: b, subject_kind: team, metric: requests, window_seconds: 61, limit: 4", 4, "0"},
		{"the model", "name: b, subject_kind: team, metric: requests, window_seconds: 60, limit: 4, model: m", 4, "0"},
		{"the metric", "name: b, subject_kind: team, metric: tokens, window_seconds: 60, limit: 244", 4, "0"},
		{"whose", "name: b, subject_kind: project, metric: requests, window_seconds: 60, limit: 4", 4, "0"},
	}
}

// TestWhatIsCountedDecidesWhetherACounterGoesOn: BUD-4, RAT-4, STO-2. A budget and
// a rule are changed in the file, after two of four requests; a restart changes
// nothing, and the old counter comes back with the old declaration.
func TestWhatIsCountedDecidesWhetherACounterGoesOn(t *testing.T) {
	for kind, changes := range map[string][]change{"budgets": budgetChanges(), "rate_limits": ruleChanges()} {
		for _, c := range changes {
			t.Run(kind+" "+c.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, identityConfig(kind, changes[0].after))
				w.must(w.chat(limitKey, "m"), 200, "")
				w.must(w.chat(limitKey, "m"), 200, "")
				w.write(identityConfig(kind, c.after))
				w.restart()
				name := "b"
				if strings.Contains(c.after, "renamed") {
					name = "renamed"
				}
				w.used(limitKey, name, c.used)
				code := map[string]string{"budgets": "budget_exceeded", "rate_limits": "rate_limited"}[kind]
				if n := w.admitted(limitKey, "m", code); n != c.more {
					t.Errorf("%d more passed, want %d", n, c.more)
				}
				w.balanced()
				w.rest(limitKey)
			})
		}
	}
}

// TestTheAPIChangesLimitsAsTheFileDoes: BUD-4, RAT-4, ADM-4. Each change holds for
// the very next request.
func TestTheAPIChangesLimitsAsTheFileDoes(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name, body string
		more       int
	}{
		{"a larger amount", `{"limit":50000}`, 3},
		{"a smaller amount", `{"limit_usd":"0.02"}`, 0},
		{"the name", `{"name":"renamed"}`, 2},
		{"the action", `{"enforcement":"guard"}`, 2},
		{"the thresholds", `{"warn_percent":[1,2,3]}`, 2},
		{"the period", `{"period":"week"}`, 4},
		{"a length", `{"period":null,"window":"1h"}`, 4},
		{"the zone", `{"time_zone":"Asia/Tokyo"}`, 4},
		{"the metric", `{"metric":"tokens","limit":244}`, 4},
		{"the scope", `{"scope":"org","subject":null}`, 4},
		{"the model", `{"model":"m"}`, 4},
	} {
		t.Run("budget "+c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, identityModels+"keys:\n  - {name: k, secret: "+limitKey+", team: t}\n")
			made, err := w.admin.BudgetCreate(ctx, admin.BudgetCreateRequest{Body: fieldsOf[admin.BudgetFields](t, `{"name":"b","scope":"team","subject":"t","metric":"spend","limit":40000,"period":"day","enforcement":"hard"}`)})
			if err != nil {
				t.Fatal(err)
			}
			w.must(w.chat(limitKey, "m"), 200, "")
			w.must(w.chat(limitKey, "m"), 200, "")
			if _, err := w.admin.BudgetUpdate(ctx, admin.BudgetUpdateRequest{ID: made.ID, Body: fieldsOf[admin.BudgetFields](t, c.body)}); err != nil {
				t.Fatal(err)
			}
			if n := w.admitted(limitKey, "m", "budget_exceeded"); n != c.more {
				t.Errorf("%d more passed, want %d", n, c.more)
			}
			w.balanced()
		})
	}
	for _, c := range []struct {
		name string
		body []string
		more int
	}{
		{"a larger limit", []string{`{"limit":5}`}, 3},
		{"the name", []string{`{"name":"renamed"}`}, 2},
		{"the window", []string{`{"window_seconds":61}`}, 4},
		{"the model", []string{`{"model":"alias"}`}, 4},
		{"the metric", []string{`{"metric":"tokens","limit":244}`}, 4},
		{"off and on", []string{`{"enabled":false}`, `{"enabled":true}`}, 4},
		{"on while it is", []string{`{"enabled":true}`}, 2},
	} {
		t.Run("rule "+c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, identityModels+"keys:\n  - {name: k, secret: "+limitKey+", team: t}\n")
			made, err := w.admin.RateLimitCreate(ctx, admin.RateLimitCreateRequest{Body: fieldsOf[admin.RateLimitFields](t, `{"name":"b","subject_kind":"team","metric":"requests","window_seconds":60,"limit":4}`)})
			if err != nil {
				t.Fatal(err)
			}
			w.must(w.chat(limitKey, "m"), 200, "")
			w.must(w.chat(limitKey, "m"), 200, "")
			for _, body := range c.body {
				if _, err := w.admin.RateLimitUpdate(ctx, admin.RateLimitUpdateRequest{ID: made.ID, Body: fieldsOf[admin.RateLimitFields](t, body)}); err != nil {
					t.Fatal(err)
				}
			}
			if n := w.admitted(limitKey, "m", "rate_limited"); n != c.more {
				t.Errorf("%d more passed, want %d", n, c.more)
			}
			w.balanced()
		})
	}
}

func fieldsOf[T any](t *testing.T, text string) (fields T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// TestADisabledRuleCountsNothingAndStartsEmpty: RAT-4, through the file.
func TestADisabledRuleCountsNothingAndStartsEmpty(t *testing.T) {
	config := func(enabled string) string {
		return identityConfig("rate_limits", "name: b, subject_kind: org, metric: requests, window_seconds: 60, limit: 3, enabled: "+enabled)
	}
	w := newWorld(t, config("true"))
	if n := w.admitted(limitKey, "m", "rate_limited"); n != 3 {
		t.Fatalf("%d passed", n)
	}
	w.reload(config("false"), func() bool { return w.chat(limitKey, "m").status == 200 })
	for range 5 {
		w.must(w.chat(limitKey, "m"), 200, "")
	}
	w.write(config("true"))
	w.restart()
	w.used(limitKey, "b", "0")
	if n := w.admitted(limitKey, "m", "rate_limited"); n != 3 {
		t.Errorf("%d passed when it was on again, want 3", n)
	}
	w.balanced()
}

// TestARotationKeepsEveryCounter: BUD-4, KEY-3. By the file and by the API: caps,
// budgets, rules and buckets of the key go on.
func TestARotationKeepsEveryCounter(t *testing.T) {
	const settings = `budgets: [{name: each, scope: key, metric: spend, limit: "0.03", period: day, enforcement: hard}]
rate_limits: [{name: rule, subject_kind: api_key, metric: requests, window_seconds: 3600, limit: 10}]
`
	const key = `, caps: {day: "1"}, limits: {rpm: 10}, budgets: [{name: own, metric: tokens, limit: 1000, window: 30d}]`
	used := map[string]string{"each": "0.02", "rule": "2", "own": "122", "day cap": "0.02", "rpm": "2"}
	w := newWorld(t, pennyKey(settings, key))
	w.must(w.chat(limitKey, "m"), 200, "")
	w.must(w.chat(limitKey, "m"), 200, "")
	w.reload(strings.Replace(pennyKey(settings, key), limitKey, secondKey, 1), func() bool {
		return w.do(context.Background(), "GET", "/v1/key", secondKey, "").status == 200
	})
	w.must(w.chat(limitKey, "m"), 401, "invalid_api_key")
	for name, want := range used {
		w.used(secondKey, name, want)
	}
	w.must(w.chat(secondKey, "m"), 200, "")
	w.must(w.chat(secondKey, "m"), 429, "budget_exceeded")
	w.balanced()
}
