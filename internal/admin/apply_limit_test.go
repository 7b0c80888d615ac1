// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// governed is a file with a budget on every kind of subject and two rules.
func governed(t *testing.T) []admin.Declared {
	t.Helper()
	planned := declaredKey(t, "ci", secretOne, 5, func(k *tenant.Key) { k.Plan, k.User = "intern", "ada" })
	return []admin.Declared{
		declaredProvider(t, 1, nil), aliased(t, declaredModel(t, "m1", 2), "short"), declaredPlan(t, "intern", 3), planned,
		nested(declaredBudget(t, "hourly", 6, of(budget.ScopeKey, "ci")), "key", "ci"),
		nested(declaredBudget(t, "hourly", 4, of(budget.ScopePlan, "intern")), "plan", "intern"),
		declaredBudget(t, "hourly", 7, nil),
		declaredBudget(t, "of ci", 8, of(budget.ScopeKey, "ci")),
		declaredBudget(t, "of intern", 9, of(budget.ScopePlan, "intern")),
		declaredBudget(t, "narrow", 10, func(b *budget.Budget) { b.Model = "short" }),
		declaredRule(t, "all", 11, nil),
		declaredRule(t, "ci's", 12, func(r *rule.Rule) { r.SubjectKind, r.SubjectID, r.Model = rule.SubjectKey, "ci", "short" }),
	}
}

func of(scope budget.Scope, subject string) func(*budget.Budget) {
	return func(b *budget.Budget) { b.Scope, b.Subject = scope, subject }
}

func (w *world) used(name string) int64 {
	w.t.Helper()
	view, err := w.KeyLimits(w.t.Context(), system, admin.KeyRequest{Key: "ci"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range view.Limits {
		if l.Name+" of "+l.Scope == name {
			return map[string]int64{"0": 0, "11": 11, "1": 1}[l.Used]
		}
	}
	w.t.Fatalf("no %s among %+v", name, view.Limits)
	return 0
}

// STO-2, BR-177: the file's budgets and rules bound what they name.
func TestTheFilesLimitsBoundWhatTheyName(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		file := governed(t)
		out := w.apply(file...)
		for _, made := range []string{"plan intern", "budget hourly of key ci", "budget hourly of plan intern", "budget hourly", "rate_limit ci's"} {
			if !slices.Contains(out.Created, made) {
				t.Errorf("created %v lacks %s", out.Created, made)
			}
		}
		if again := w.apply(file...); again.Any() || again.Unchanged != len(file) {
			t.Errorf("again: %+v", again)
		}
		w.request(secretOne, "short", "").settle(10, 1)
		for name, want := range map[string]int64{
			"hourly of key": 11, "hourly of plan": 11, "hourly of org": 11, "of ci of key": 11, "of intern of plan": 11,
			"narrow of org": 11, "all of org": 1, "ci's of api_key": 1,
		} {
			if got := w.used(name); got != want {
				t.Errorf("%s: used %d, want %d", name, got, want)
			}
		}
		list, err := w.BudgetList(ctx, system, admin.BudgetListRequest{})
		if err != nil || len(list.Budgets) != 6 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, b := range list.Budgets {
			_, err := w.BudgetUpdate(ctx, system, admin.BudgetUpdateRequest{ID: b.ID, Body: asJSON[admin.BudgetFields](t, `{"limit":1}`)})
			refused(t, err, fault.DeclaredInFile)
			_, err = w.BudgetDelete(ctx, system, admin.BudgetRequest{ID: b.ID})
			refused(t, err, fault.DeclaredInFile)
			if nested := b.Origin == "weir.yaml:6"; nested != (b.OwnerKind == "key" && b.OwnerName == "ci") {
				t.Errorf("owner of %+v", b)
			}
		}
		_, err = w.BudgetReset(ctx, system, admin.BudgetResetRequest{ID: "hourly", Body: admin.ResetFields{Reason: "r"}})
		if err != nil {
			t.Errorf("the workspace's own goes first: %v", err)
		}
		actions := map[string]bool{}
		for _, e := range w.audits() {
			actions[e.Action] = true
		}
		if !actions["models.budget.create"] || !actions["models.rate_limit.create"] || !actions["plan.create"] {
			t.Errorf("audited %v", actions)
		}
	})
}

// BUD-4, RAT-4, STO-2: a counter goes on through every change that leaves what is
// counted, also when its limit or key was away or is renamed; else it starts anew.
func TestTheFilesCountersGoOnUnlessSomethingElseIsCounted(t *testing.T) {
	change := func(i int, d func(t *testing.T) admin.Declared) func(t *testing.T, file []admin.Declared) []admin.Declared {
		return func(t *testing.T, file []admin.Declared) []admin.Declared {
			was := file[i]
			next := d(t)
			next.OwnerKind, next.OwnerName = was.OwnerKind, was.OwnerName
			file[i] = next
			return file
		}
	}
	renamed := func(d admin.Declared, was string) admin.Declared { d.Was = was; return d }
	for name, c := range map[string]struct {
		step    func(t *testing.T, file []admin.Declared) []admin.Declared
		counter string
		want    int64
	}{
		"amount": {change(4, func(t *testing.T) admin.Declared {
			return declaredBudget(t, "hourly", 6, func(b *budget.Budget) { b.Scope, b.Subject, b.Limit = budget.ScopeKey, "ci", 900 })
		}), "hourly of key", 11},
		"name of a nested budget": {change(4, func(t *testing.T) admin.Declared {
			return renamed(declaredBudget(t, "of the hour", 6, of(budget.ScopeKey, "ci")), "hourly")
		}), "of the hour of key", 11},
		"window": {change(4, func(t *testing.T) admin.Declared {
			return declaredBudget(t, "hourly", 6, func(b *budget.Budget) { b.Scope, b.Subject, b.Period = budget.ScopeKey, "ci", budget.Week })
		}), "hourly of key", 0},
		"metric": {change(6, func(t *testing.T) admin.Declared {
			return declaredBudget(t, "hourly", 7, func(b *budget.Budget) { b.Metric, b.Limit = budget.Spend, 5_000_000_000 })
		}), "hourly of org", 0},
		"alias by its model": {change(9, func(t *testing.T) admin.Declared {
			return declaredBudget(t, "narrow", 10, func(b *budget.Budget) { b.Model = "m1" })
		}), "narrow of org", 11},
		"no model": {change(9, func(t *testing.T) admin.Declared { return declaredBudget(t, "narrow", 10, nil) }), "narrow of org", 0},
		"a rule's amount": {change(10, func(t *testing.T) admin.Declared {
			return declaredRule(t, "all", 11, func(r *rule.Rule) { r.Limit = 9 })
		}), "all of org", 1},
		"a rule's window": {change(10, func(t *testing.T) admin.Declared {
			return declaredRule(t, "all", 11, func(r *rule.Rule) { r.WindowSeconds = 3600 })
		}), "all of org", 0},
	} {
		t.Run(name, func(t *testing.T) {
			overEvery(t, func(t *testing.T, w *world) {
				w.apply(governed(t)...)
				w.request(secretOne, "m1", "").settle(10, 1)
				w.apply(c.step(t, governed(t))...)
				if got := w.used(c.counter); got != c.want {
					t.Errorf("used %d, want %d", got, c.want)
				}
			})
		})
	}
	t.Run("away and back", func(t *testing.T) {
		overEvery(t, func(t *testing.T, w *world) {
			file := governed(t)
			w.apply(file...)
			w.request(secretOne, "m1", "").settle(10, 1)
			if out := w.apply(file[:3]...); len(out.Retired) != 9 || !slices.Contains(out.Retired, "budget hourly of key ci") && !slices.ContainsFunc(out.Retired, func(s string) bool { return strings.HasPrefix(s, "budget hourly of key_") }) {
				t.Errorf("gone: %+v", out)
			}
			if out := w.apply(file...); len(out.Revived) != 9 || len(out.Created) != 0 {
				t.Errorf("back: %+v", out)
			}
			for counter, want := range map[string]int64{"hourly of key": 11, "hourly of plan": 11, "narrow of org": 11, "all of org": 1} {
				if got := w.used(counter); got != want {
					t.Errorf("%s: used %d, want %d", counter, got, want)
				}
			}
		})
	})
	t.Run("key renamed", func(t *testing.T) {
		overEvery(t, func(t *testing.T, w *world) {
			file := governed(t)
			w.apply(file...)
			w.request(secretOne, "m1", "").settle(10, 1)
			file[3] = renamed(declaredKey(t, "robot", secretOne, 5, func(k *tenant.Key) { k.Plan, k.User = "intern", "ada" }), "ci")
			file[4].OwnerName = "robot"
			file[7] = declaredBudget(t, "of ci", 8, of(budget.ScopeKey, "robot"))
			file[11] = declaredRule(t, "ci's", 12, func(r *rule.Rule) { r.SubjectKind, r.SubjectID, r.Model = rule.SubjectKey, "robot", "m1" })
			if out := w.apply(file...); !slices.Equal(out.Renamed, []string{"key robot"}) || len(out.Retired)+len(out.Created)+len(out.Changed) != 0 {
				t.Errorf("renamed: %+v", out)
			}
			view, err := w.KeyLimits(t.Context(), system, admin.KeyRequest{Key: "robot"})
			if err != nil || view.Name != "robot" || !slices.ContainsFunc(view.Limits, func(l admit.LimitView) bool { return l.Name == "of ci" && l.Used == "11" }) {
				t.Errorf("%+v, %v", view, err)
			}
		})
	})
}

// BR-016: what would never count anything is a problem, at its line.
func TestALimitThatWouldNeverCountIsAProblem(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		base := governed(t)[:4]
		with := func(d ...admin.Declared) []admin.Declared { return append(slices.Clone(base), d...) }
		for says, d := range map[string]admin.Declared{
			"model \"nosuch\"":    declaredBudget(t, "b", 9, func(b *budget.Budget) { b.Model = "nosuch" }),
			"provider \"nosuch\"": declaredBudget(t, "b", 9, func(b *budget.Budget) { b.Provider = "nosuch" }),
			"key \"nosuch\"":      declaredBudget(t, "b", 9, of(budget.ScopeKey, "nosuch")),
			"plan \"nosuch\"":     declaredBudget(t, "b", 9, of(budget.ScopePlan, "nosuch")),
			"not declared":        nested(declaredBudget(t, "b", 9, of(budget.ScopeKey, "nosuch")), "key", "nosuch"),
			"the model \"other\"": declaredRule(t, "r", 9, func(r *rule.Rule) { r.Model = "other" }),
			"the key \"other\"":   declaredRule(t, "r", 9, func(r *rule.Rule) { r.SubjectKind, r.SubjectID = rule.SubjectKey, "other" }),
			"the plan \"gone\"":   declaredKey(t, "k", secretTwo, 9, func(k *tenant.Key) { k.Plan = "gone" }),
		} {
			problems := w.applyFails(says, with(d)...)
			if len(problems) != 1 || problems[0].Line != 9 {
				t.Errorf("%s: %+v", says, problems)
			}
		}
		w.applyFails("declared twice", with(declaredBudget(t, "b", 8, nil), declaredBudget(t, "b", 9, nil))...)
		// A retired key is none, nor is what the file takes away from what the API made.
		w.apply(base...)
		w.budget(`{"name":"made","scope":"org","metric":"tokens","period":"day","limit":5,"model":"m1"}`)
		w.budget(`{"name":"of ci","scope":"key","subject":"ci","metric":"tokens","period":"day","limit":5}`)
		w.key("mine", func(f *admin.KeyFields) { f.Plan = admin.Some("intern") })
		w.applyFails("which is retired", append(slices.Clone(base[:3]), declaredBudget(t, "b", 9, of(budget.ScopeKey, "ci")))...)
		w.applyFails("the model \"m1\"", base[0], base[2], base[3])
		w.applyFails("the plan \"intern\"", base[0], base[1])
		if out := w.apply(base[:3]...); !slices.Equal(out.Retired, []string{"budget of ci", "key ci"}) {
			t.Errorf("a key's budgets go with it: %+v", out)
		}
		// One of the API's keys may be named, and stays while it is.
		w.apply(append(slices.Clone(base[:3]), declaredBudget(t, "of mine", 9, of(budget.ScopeKey, "mine")))...)
		_, err := w.KeyDelete(ctx, system, admin.KeyRequest{Key: "mine"})
		if f := refused(t, err, fault.Conflict); !strings.Contains(f.Message, "weir.yaml:9") {
			t.Errorf("message %q", f.Message)
		}
	})
}

// BUD-8: also in the file, and once.
func TestAFilesBudgetMayBeginWithItsWindow(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		file := governed(t)
		w.apply(file...)
		w.request(secretOne, "m1", "").settle(10, 1)
		w.clock.Advance(time.Minute)
		file = append(file, declaredBudget(t, "late", 20, func(b *budget.Budget) { b.CountFrom = budget.WindowStart }))
		for range 2 {
			w.apply(file...)
			if got := w.used("late of org"); got != 11 {
				t.Errorf("used %d", got)
			}
		}
	})
}
