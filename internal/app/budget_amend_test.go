// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/money"
)

// amendable is a kind of budget: what declares it, whose use an amendment must
// name, and with which fields a second key shares or does not share it.
type amendable struct{ name, settings, key, subject string }

// amendables are budgets of two cents a day of every scope, hard and guard, for
// one subject and for each; the one that is amended is named b.
func amendables() (all []amendable) {
	key := ", team: t, project: j, user: u"
	for _, enforcement := range []string{"hard", "guard"} {
		rest := `metric: spend, limit: "0.02", period: day, enforcement: ` + enforcement + "}"
		for _, scope := range []string{"team t", "project j", "user u", "key k"} {
			kind, subject := scope[:len(scope)-2], scope[len(scope)-1:]
			all = append(all,
				amendable{"of a " + kind + " " + enforcement, "budgets: [{name: b, scope: " + kind + ", subject: " + subject + ", " + rest + "]\n", key, ""},
				amendable{"of each " + kind + " " + enforcement, "budgets: [{name: b, scope: " + kind + ", " + rest + "]\n", key, subject})
		}
		all = append(all,
			amendable{"of the workspace " + enforcement, "budgets: [{name: b, scope: org, " + rest + "]\n", key, ""},
			amendable{"on a model " + enforcement, "budgets: [{name: b, scope: org, model: m, " + rest + "]\n", key, ""},
			amendable{"with the key " + enforcement, "", key + ", budgets: [{name: b, " + rest + "]", ""},
			amendable{"with its plan " + enforcement, "plans: [{name: p, budgets: [{name: b, " + rest + "]}]\n", key + ", plan: p", "k"},
			amendable{"of its plan " + enforcement, "plans: [{name: p}]\nbudgets: [{name: b, scope: plan, subject: p, " + rest + "]\n", key + ", plan: p", "k"})
	}
	return all
}

// named is the subject of an amendment; "" leaves it out.
func named(subject string) admin.Option[string] {
	if subject == "" {
		return admin.Option[string]{}
	}
	return admin.Some(subject)
}

// TestARaiseHoldsForTheWindowAlone: BUD-9, ADM-4, of budgets of every scope. The
// request after it passes; it is shown; sent again under its key it raises no
// further; a restart keeps it; the next window is without it.
func TestARaiseHoldsForTheWindowAlone(t *testing.T) {
	for _, c := range amendables() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pennyKey(c.settings, c.key))
			if n := w.admitted(limitKey, "m", "budget_exceeded"); n != 2 {
				t.Fatalf("%d fit two cents", n)
			}
			for range 2 {
				answer, err := w.admin.BudgetRaise(context.Background(), admin.BudgetRaiseRequest{
					ID: w.budgetID("b"), IdempotencyKey: "once",
					Body: admin.RaiseFields{Amount: admin.Some[int64](30_000), Subject: named(c.subject), Reason: "a demonstration"},
				})
				if err != nil {
					t.Fatal(err)
				}
				if answer.RaisedUSD != "0.03" || answer.UsedUSD != "0.02" || answer.RemainUSD != "0.03" || answer.LimitUSD != "0.02" {
					t.Fatalf("after the raise %+v", answer)
				}
			}
			w.must(w.chat(limitKey, "m"), 200, "")
			if l := w.limit(limitKey, "b"); l.Amount != "0.05" || l.Used != "0.03" || l.Remaining != "0.02" {
				t.Fatalf("the key is shown %+v", l)
			}
			w.restart()
			if n := w.admitted(limitKey, "m", "budget_exceeded"); n != 2 {
				t.Fatalf("%d more fit five cents", n)
			}
			w.clock.Set(instant(t, "2026-07-21T00:00:00Z"))
			if n := w.admitted(limitKey, "m", "budget_exceeded"); n != 2 {
				t.Fatalf("%d fit the next window, want 2", n)
			}
			w.balanced()
			w.rest(limitKey)
		})
	}
}

// TestAResetUnblocksAtOnceAndForgetsNoSpend: BUD-9, RES-9, ADM-4. The request
// after it passes; usage and caps keep what was spent; the books balance.
func TestAResetUnblocksAtOnceAndForgetsNoSpend(t *testing.T) {
	for _, c := range amendables() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pennyKey(c.settings, c.key))
			for round := range 3 {
				if n := w.admitted(limitKey, "m", "budget_exceeded"); n != 2 {
					t.Fatalf("round %d: %d fit two cents", round, n)
				}
				answer, err := w.admin.BudgetReset(context.Background(), admin.BudgetResetRequest{
					ID: w.budgetID("b"), Body: admin.ResetFields{Subject: named(c.subject), Reason: "a mistake"},
				})
				if err != nil {
					t.Fatal(err)
				}
				if answer.UsedUSD != "0" || answer.RemainUSD != "0.02" {
					t.Fatalf("after the reset %+v", answer)
				}
				w.used(limitKey, "b", "0")
			}
			w.must(w.chat(limitKey, "m"), 200, "")
			w.used(limitKey, "b", "0.01")
			if got := w.spend("k"); got != 7*money.Dollar/100 {
				t.Errorf("reports keep %s USD, want 0.07", got)
			}
			if l := w.limit(limitKey, "day spend"); l.Used != "0.07" {
				t.Errorf("the key's days keep %s USD", l.Used)
			}
			w.restart()
			w.used(limitKey, "b", "0.01")
			w.balanced()
		})
	}
}

// TestAResetOfOneSubjectLeavesTheOthers: BUD-9. Two users, and a budget that each
// has for itself.
func TestAResetOfOneSubjectLeavesTheOthers(t *testing.T) {
	w := newWorld(t, pennyKey(`budgets: [{name: b, scope: user, metric: spend, limit: "0.01", period: day}]`+"\n", ", attribute_users: header"))
	for _, user := range []string{"ada", "bob"} {
		if n := w.admitted(limitKey, "m", "budget_exceeded", "X-Weir-User", user); n != 1 {
			t.Fatalf("%s: %d", user, n)
		}
	}
	reset := func(subject string) error {
		_, err := w.admin.BudgetReset(context.Background(), admin.BudgetResetRequest{ID: "b", Body: admin.ResetFields{Subject: named(subject), Reason: "r"}})
		return err
	}
	if err := reset(""); err == nil {
		t.Error("nobody was named, and it was reset")
	}
	if err := reset("ada"); err != nil {
		t.Fatal(err)
	}
	w.must(w.chat(limitKey, "m", "X-Weir-User", "ada"), 200, "")
	w.must(w.chat(limitKey, "m", "X-Weir-User", "bob"), 429, "budget_exceeded")
	w.balanced()
}

// TestAKeyResetOpensWhatTheKeyAloneUses: BUD-9. Its caps, its own budgets and its
// plan's; not what it shares with others.
func TestAKeyResetOpensWhatTheKeyAloneUses(t *testing.T) {
	const plan = "plans: [{name: p, budgets: [{name: planned, metric: tokens, limit: 122, period: week}]}]\n"
	shared := `budgets: [{name: shared, scope: team, metric: spend, limit: "0.02", period: month}, {name: each, scope: key, metric: spend, limit: "0.02", period: day}]` + "\n"
	for _, c := range []struct{ name, settings, key, code string }{
		{"caps", "", `, caps: {day: "0.02", seven_day: "0.02", thirty_day: "0.02"}`, "day_limit_reached"},
		{"its budget", "", `, budgets: [{name: own, metric: spend, limit: "0.02", window: 30d, enforcement: hard}]`, "budget_exceeded"},
		{"its plan's", plan, ", plan: p", "budget_exceeded"},
		{"all of them, and one that each key has", plan + shared, `, plan: p, caps: {day: "0.02"}, budgets: [{name: own, metric: tokens, limit: 122, window: 1h}]`, "day_limit_reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, pennyKey(c.settings, c.key))
			for range 3 {
				if n := w.admitted(limitKey, "m", c.code); n != 2 {
					t.Fatalf("%d passed", n)
				}
				if _, err := w.admin.KeyReset(context.Background(), admin.KeyResetRequest{Key: "k", Body: admin.KeyResetFields{Reason: "a mistake"}}); err != nil {
					t.Fatal(err)
				}
			}
			w.must(w.chat(limitKey, "m"), 200, "")
			if got := w.spend("k"); got != 7*money.Dollar/100 {
				t.Errorf("reports keep %s USD, want 0.07", got)
			}
			w.balanced()
		})
	}
	t.Run("not what it shares", func(t *testing.T) {
		w := newWorld(t, pennyKey(shared, ", team: t"))
		w.admitted(limitKey, "m", "budget_exceeded")
		if _, err := w.admin.KeyReset(context.Background(), admin.KeyResetRequest{Key: "k", Body: admin.KeyResetFields{Reason: "r"}}); err != nil {
			t.Fatal(err)
		}
		w.used(limitKey, "shared", "0.02")
		w.used(limitKey, "each", "0")
		w.must(w.chat(limitKey, "m"), 429, "budget_exceeded")
		w.balanced()
	})
}

// TestAmendmentsAreAudited: BUD-9, ADM-3. Who, what, how much and why.
func TestAmendmentsAreAudited(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pennyKey(`budgets: [{name: b, scope: org, metric: spend, limit: "0.02", period: day}]`+"\n", ""))
	if _, err := w.admin.BudgetRaise(ctx, admin.BudgetRaiseRequest{ID: "b", Body: admin.RaiseFields{AmountUSD: admin.Some("0.5"), Reason: "because"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.BudgetReset(ctx, admin.BudgetResetRequest{ID: "b", Body: admin.ResetFields{Reason: "therefore"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.KeyReset(ctx, admin.KeyResetRequest{Key: "k", Body: admin.KeyResetFields{Reason: "whatever"}}); err != nil {
		t.Fatal(err)
	}
	list, err := w.admin.AuditList(ctx, admin.AuditListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range list.Entries {
		found[e.Action] = e.Actor + " " + string(e.After)
	}
	for action, want := range map[string][]string{
		"models.budget.raise": {`"amount":"0.5`, `"reason":"because"`}, "models.budget.reset": {`"reason":"therefore"`}, "keys.reset": {`"reason":"whatever"`},
	} {
		for _, part := range want {
			if !strings.Contains(found[action], part) || strings.HasPrefix(found[action], " ") {
				t.Errorf("the audit says %q of %s, want %s in it", found[action], action, part)
			}
		}
	}
}
