// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// BUD-9: a raise is for its window alone, a reset sets what was used to zero.
// Both are entries, audited, booked once, and the books still balance.
func TestABudgetIsRaisedAndResetForItsWindow(t *testing.T) {
	for metric, c := range map[string]struct {
		limit, amount string
		raise         admin.RaiseFields
		remaining     int64
	}{
		"spend": {
			`"limit_usd":"0.0005"`, "0.0005",
			admin.RaiseFields{AmountUSD: admin.Some("0.0005"), Reason: "release week"},
			400,
		},
		"tokens": {`"limit":150`, "100", admin.RaiseFields{Amount: admin.Some(int64(100)), Reason: "release week"}, 100},
	} {
		t.Run(metric, func(t *testing.T) {
			overEvery(t, func(t *testing.T, w *world) {
				ctx := t.Context()
				w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
				k := w.key("ci", nil)
				b := w.budget(`{"name":"b","scope":"org","metric":"` + metric + `","period":"day","enforcement":"guard",` + c.limit + `}`)
				w.request(k.Secret, "m1", "").settle(100, 50) // $0.0006, 150 tokens
				if r := w.request(k.Secret, "m1", ""); r.result.Verdict != ledger.Refused {
					t.Fatalf("verdict %d", r.result.Verdict)
				}
				ask := admin.BudgetRaiseRequest{ID: "b", IdempotencyKey: "once", Body: c.raise}
				for _, replayed := range []bool{false, true} {
					out, err := w.BudgetRaise(ctx, system, ask)
					if err != nil || *out.Remaining != c.remaining || out.Raised == nil || out.Replayed != replayed || out.Version != b.Version {
						t.Fatalf("raised: %+v, %v", out, err)
					}
				}
				if r := w.request(k.Secret, "m1", ""); r.result.Verdict != ledger.Admitted {
					t.Fatalf("raised: verdict %d", r.result.Verdict)
				}
				entry := w.audits()[0]
				if entry.Action != "models.budget.raise" || entry.ID != b.ID || !strings.Contains(string(entry.After), `"amount":"`+c.amount+`"`) || !strings.Contains(string(entry.After), "release week") {
					t.Errorf("audit %+v %s", entry, entry.After)
				}
				reset, err := w.BudgetReset(ctx, system, admin.BudgetResetRequest{ID: b.ID, Body: admin.ResetFields{Reason: "a mistake"}})
				if err != nil || *reset.Used != 0 {
					t.Fatalf("reset: %+v, %v", reset, err)
				}
				if usage, err := w.Usage(ctx, system, admin.UsageRequest{}); err != nil || usage.Total.Spend != "0.0006" {
					t.Errorf("reports keep what was spent: %+v, %v", usage.Total, err)
				}
				w.clock.Advance(24 * time.Hour)
				if next := w.budgets()["b"]; next.Raised != nil || *next.Used != 0 || next.LimitUSD != b.LimitUSD || next.Limit != b.Limit {
					t.Errorf("the next window: %+v", next)
				}
				if v, err := w.Verify(ctx, system, admin.VerifyRequest{}); err != nil || !v.Balanced {
					t.Errorf("verified: %+v, %v", v, err)
				}
			})
		})
	}
}

func TestARaiseIsAnAmountWithItsReason(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		h := w.handler(admin.BySocket())
		spend := w.budget(`{"name":"s","scope":"org","metric":"spend","period":"day","limit":5}`)
		each := w.budget(`{"name":"e","scope":"user","metric":"tokens","period":"day","limit":5}`)
		for _, c := range []struct{ id, verb, body, param string }{
			{spend.ID, "raise", `{"amount":5}`, "reason"},
			{spend.ID, "raise", `{"amount":5,"reason":" "}`, "reason"},
			{spend.ID, "raise", `{"reason":"r"}`, "amount"},
			{spend.ID, "raise", `{"amount":-5,"reason":"r"}`, "amount"},
			{spend.ID, "raise", `{"amount":"5","reason":"r"}`, "amount"},
			{spend.ID, "raise", `{"amount_usd":"0","reason":"r"}`, "amount_usd"},
			{spend.ID, "raise", `{"amount":5,"reason":"r","subject":"ada"}`, "subject"},
			{each.ID, "raise", `{"amount":5,"reason":"r"}`, "subject"},
			{each.ID, "raise", `{"amount_usd":"5","reason":"r","subject":"ada"}`, "amount"},
			{each.ID, "reset", `{"reason":"r"}`, "subject"},
			{each.ID, "reset", `{"reason":"r","subject":"ada","amount":5}`, "amount"},
			{each.ID, "reset", `{}`, "reason"},
		} {
			got, refused := send(h, "POST", admin.Base+"/models/budgets/"+c.id+"/"+c.verb, c.body)
			if got.Code != 400 || refused.Detail.Param != c.param {
				t.Errorf("%s %s: %d %s, want %s", c.verb, c.body, got.Code, got.Body, c.param)
			}
		}
		out, err := w.BudgetRaise(t.Context(), system, admin.BudgetRaiseRequest{ID: each.ID, Body: admin.RaiseFields{
			Amount: admin.Some(int64(7)), Subject: admin.Some("ada"), Reason: "r",
		}})
		if err != nil || *out.Remaining != 12 || out.UseOf != "ada" {
			t.Errorf("raised for one: %+v, %v", out, err)
		}
	})
}

// BUD-9: all open windows of a key: its caps, its own budgets and its plan's,
// and nobody else's.
func TestAKeysResetEmptiesWhatIsItsOwn(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		k := w.member()
		if _, err := w.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: "ci", Body: admin.KeyFields{
			Caps: admin.Some(admin.CapFields{Day: admin.Some("5"), ThirtyDay: admin.Some("50")}),
		}}); err != nil {
			t.Fatal(err)
		}
		for _, scope := range []string{`"key","subject":"ci"`, `"key"`, `"plan","subject":"intern"`, `"user"`, `"org"`} {
			w.budget(`{"name":"b ` + strings.ReplaceAll(scope, `"`, "") + `","scope":` + scope + `,"metric":"tokens","window":"1h","limit":500}`)
		}
		w.request(k.Secret, "m1", "").settle(100, 50)
		want := map[string]string{
			"day cap": "0", "30-day cap": "0", "b key,subject:ci": "0", "b key": "0", "b plan,subject:intern": "0",
			"b user": "150", "b org": "150",
		}
		view, err := w.KeyReset(ctx, system, admin.KeyResetRequest{Key: "ci", Body: admin.KeyResetFields{Reason: "a mistake"}})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, l := range view.Limits {
			if used, ok := want[l.Name]; ok {
				seen++
				if l.Used != used {
					t.Errorf("%s: used %s, want %s", l.Name, l.Used, used)
				}
			}
		}
		if seen != len(want) {
			t.Errorf("limits: %+v", view.Limits)
		}
		if v, err := w.Verify(ctx, system, admin.VerifyRequest{}); err != nil || !v.Balanced {
			t.Errorf("verified: %+v, %v", v, err)
		}
	})
}

// BUD-8: a new budget begins at zero, or with what its window has seen.
func TestABudgetBeginsAtZeroOrWithItsWindow(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredModel(t, "m2", 3))
		k := w.member()
		other := w.key("other", nil)
		w.request(k.Secret, "m1", "").settle(900, 100)
		w.clock.Advance(24 * time.Hour) // it was yesterday
		w.request(k.Secret, "m1", "").settle(100, 50)
		w.request(k.Secret, "m2", "").settle(10, 0)
		w.request(other.Secret, "m1", "").settle(1, 0)
		w.clock.Advance(time.Microsecond)
		for body, want := range map[string]int64{
			`"scope":"org"`:                                                                0,
			`"scope":"org","count_from":"now"`:                                             0,
			`"scope":"org","count_from":"window_start"`:                                    161,
			`"scope":"org","model":"m1","count_from":"window_start"`:                       151,
			`"scope":"org","provider":"up","count_from":"window_start"`:                    161,
			`"scope":"user","subject":"ada","count_from":"window_start"`:                   160,
			`"scope":"key","subject":"ci","count_from":"window_start"`:                     160,
			`"scope":"key","subject":"ci","model":"m2","count_from":"window_start"`:        10,
			`"scope":"team","subject":"platform","model":"m2","count_from":"window_start"`: 10,
		} {
			b := w.budget(`{"name":"b","metric":"tokens","period":"day","limit":5000,` + body + `}`)
			if *b.Used != want {
				t.Errorf("%s: used %d, want %d", body, *b.Used, want)
			}
			if _, err := w.BudgetDelete(ctx, system, admin.BudgetRequest{ID: b.ID}); err != nil {
				t.Fatal(err)
			}
		}
		// A plan's has a counter for each of its keys.
		w.budget(`{"name":"p","scope":"plan","subject":"intern","metric":"spend","period":"day","limit":5000000,"count_from":"window_start"}`)
		view, err := w.KeyLimits(ctx, system, admin.KeyRequest{Key: "ci"})
		if i := slices.IndexFunc(view.Limits, func(l admit.LimitView) bool { return l.Name == "p" }); err != nil || i < 0 || view.Limits[i].Used != "0.00061" {
			t.Errorf("%+v, %v", view.Limits, err)
		}
		// An Idempotency-Key that comes again seeds no second time.
		ask := admin.BudgetCreateRequest{IdempotencyKey: "once", Body: asJSON[admin.BudgetFields](t,
			`{"name":"again","scope":"org","metric":"tokens","period":"day","limit":5000,"count_from":"window_start"}`)}
		for range 2 {
			if b, err := w.BudgetCreate(ctx, system, ask); err != nil || *b.Used != 161 {
				t.Errorf("%+v, %v", b, err)
			}
		}
		if v, err := w.Verify(ctx, system, admin.VerifyRequest{}); err != nil || !v.Balanced {
			t.Errorf("verified: %+v, %v", v, err)
		}
	})
}

func TestAForeignBudgetIsNotFound(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.apply(declaredWorkspace(t, "other", 1, nil))
		mine := w.budget(`{"name":"b","scope":"org","metric":"tokens","period":"day","limit":5}`)
		foreign := admin.Actor{Name: "other's", Role: admin.Admin, Workspace: "other"}
		_, err := w.BudgetDelete(t.Context(), foreign, admin.BudgetRequest{ID: mine.ID})
		refused(t, err, fault.NotFound)
		_, err = w.BudgetReset(t.Context(), foreign, admin.BudgetResetRequest{ID: mine.ID, Body: admin.ResetFields{Reason: "r"}})
		refused(t, err, fault.NotFound)
	})
}
