// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// aBudget is a day's spend of the whole workspace.
func aBudget(limit money.Nanos, enforcement string) *budget.Budget {
	return &budget.Budget{
		ID: "bud_1", Name: "org day", Scope: budget.ScopeOrg, Metric: budget.Spend, Limit: int64(limit),
		Period: budget.Day, Enforcement: enforcement,
	}
}

// costly is a request that may cost 103 + 10,000 thousandths of a cent: its worst
// case is 10,103,000 nano-dollars.
const costly = 10_103_000

func TestAHardBudgetHoldsTheWorstCase(t *testing.T) { // BUD-2, BR-021
	w := newWorld(t)
	w.budgets = []*budget.Budget{aBudget(2*costly, budget.Hard)}
	p, first := w.admit(chat("big"))
	_, _ = w.admit(chat("big")) // lands exactly on it
	f := w.refuse(chat("big"), fault.BudgetExceeded)
	if f.Details.Reason != ledger.ReasonHeld || f.RetryAfterSeconds != 5 || f.NoRetry || f.Details.LimitID != "bud_1" || f.Details.Window != "day" {
		t.Errorf("held only: %+v %+v", f, f.Details)
	}
	w.settle(p, first, 103, 1000)
	f = w.refuse(chat("big"), fault.BudgetExceeded)
	if f.Details.Used != "0.010103" || f.Details.Held != "0.010103" || f.Details.Amount != "0.020206" {
		t.Errorf("figures: %+v", f.Details)
	}
}

func TestABudgetRefusesByItsEnforcement(t *testing.T) { // BUD-1, BR-002, BR-006
	for _, c := range []struct {
		enforcement string
		admitted    int
	}{{budget.Hard, 1}, {budget.Guard, 2}, {budget.Soft, 5}} {
		t.Run(c.enforcement, func(t *testing.T) {
			w := newWorld(t)
			w.budgets = []*budget.Budget{aBudget(costly*3/2, c.enforcement)}
			admitted := 0
			for range 5 {
				p, result := w.try(chat("big"))
				if result.Verdict != ledger.Admitted {
					if f := p.Refuse(&result); f.Code != fault.BudgetExceeded || !strings.Contains(f.Message, `budget "org day" of org "acme"`) {
						t.Errorf("refused by %s: %s", f.Code, f.Message)
					}
					continue
				}
				admitted++
				w.settle(p, result, 103, 1000)
			}
			if admitted != c.admitted {
				t.Errorf("%d admitted, want %d", admitted, c.admitted)
			}
		})
	}
}

func TestANarrowedBudgetFollowsTheModelWhateverItIsCalled(t *testing.T) { // BR-004, BR-177, RAT-2
	for _, declared := range []string{"big", "fast"} { // fast is an alias of big
		w := newWorld(t)
		b := aBudget(costly, budget.Hard)
		b.Model = declared
		w.budgets = []*budget.Budget{b}
		w.admit(chat("fast"))
		w.refused(chat("big"), fault.BudgetExceeded)
		w.refused(chat("fast"), fault.BudgetExceeded)
		w.admit(chat("half"))
	}
	w := newWorld(t)
	b := aBudget(costly, budget.Hard)
	b.Provider = "p"
	w.budgets = []*budget.Budget{b}
	w.admit(chat("big"))
	w.refused(chat("big"), fault.BudgetExceeded)
	w.admit(chat("free")) // PRC-4
}

func TestEveryUserHasACounterOfItsOwn(t *testing.T) { // KEY-7, BR-002, BR-003
	w := newWorld(t)
	b := aBudget(costly, budget.Hard)
	b.Scope = budget.ScopeUser
	w.budgets = []*budget.Budget{b}
	for i := range 20 {
		w.who.User = fmt.Sprintf("u%d", i)
		w.admit(chat("big"))
		f := w.refuse(chat("big"), fault.BudgetExceeded)
		if f.Details.Subject != w.who.User || f.Details.Scope != "user" {
			t.Errorf("details %+v", f.Details)
		}
	}
	w.who.User = ""
	w.admit(chat("big"))
	w.admit(chat("big"))
}

func TestMaxUsersBoundsWhomRequestsMayName(t *testing.T) { // KEY-7
	w := newWorld(t)
	w.ws.MaxUsers = 2
	for _, user := range []string{"a", "b", "a"} {
		w.who.User = user
		w.admit(chat("big"))
	}
	w.who.User = "c"
	if f := w.refuse(chat("big"), fault.UserLimitReached); f.HTTPStatus() != 400 || !strings.Contains(f.Message, "2 users") {
		t.Errorf("got %d %s", f.HTTPStatus(), f.Message)
	}
	w.who.User = "b"
	w.admit(chat("big"))
}

func TestAnAnswerWarnsOfBudgetsThatAreNearlyUsed(t *testing.T) { // BUD-5
	w := newWorld(t)
	hard := aBudget(4*costly, budget.Hard)
	hard.WarnPercent = []int64{50, 80}
	soft := aBudget(costly, budget.Soft)
	soft.ID, soft.Name = "bud_2", `the "soft" one`
	w.budgets = []*budget.Budget{hard, soft}
	for i, want := range []string{
		"", // a quarter held
		`"org day";used_pct=50;level=threshold;reset=43200, "the \"soft\" one";used_pct=100;level=soft;reset=43200`,
		`"org day";used_pct=75;level=threshold;reset=43200, "the \"soft\" one";used_pct=200;level=soft;reset=43200`,
		`"org day";used_pct=100;level=threshold;reset=43200, "the \"soft\" one";used_pct=300;level=soft;reset=43200`,
	} {
		p, result := w.admit(chat("big"))
		if got := admit.Warnings(result.Readings, result.At, false); got != want {
			t.Errorf("request %d: %s\nwant %s", i, got, want)
		}
		if got := admit.Warnings(result.Readings, result.At, true); strings.Contains(got, "used_pct") {
			t.Errorf("a hidden amount shows in %s", got)
		}
		w.settle(p, result, 103, 1000)
	}
}

func TestAShortBudgetLowersTheOutputBound(t *testing.T) { // BUD-10
	w := newWorld(t)
	w.ws.OnShort, w.ws.ShrinkFloor = tenant.Shrink, 100
	b := aBudget(costly+103_000+400*10_000+5, budget.Hard)
	w.budgets = []*budget.Budget{b}
	build := func(bound int64) *admit.Plan {
		w.made++
		p := w.build(chat("big"))
		p = admit.Build(admit.Request{ID: p.Op.ID, Key: w.key, Call: chat("big"), Snapshot: w.snapshot(), OutputCap: bound, Tentative: true})
		if !p.Op.Quiet {
			t.Error("the refusal would be recorded")
		}
		return p
	}
	first := build(0)
	if r := w.submit(first.Op); r.Verdict != ledger.Admitted {
		t.Fatalf("the first is refused: %+v", r.Refusal)
	}
	second := build(0)
	result := w.submit(second.Op)
	bound, ok := second.Shrunk(&result)
	if !ok || bound != 400 {
		t.Fatalf("shrunk to %d, %v, want 400", bound, ok)
	}
	third := build(bound)
	if r := w.submit(third.Op); r.Verdict != ledger.Admitted || third.Targets[0].WriteBound != 400 {
		t.Fatalf("verdict %d, writes %d", r.Verdict, third.Targets[0].WriteBound)
	}
	fourth := build(0)
	result = w.submit(fourth.Op)
	if bound, ok := fourth.Shrunk(&result); ok {
		t.Errorf("shrunk to %d below the floor", bound)
	}
	b.Shrink = at(false)
	if p := admit.Build(admit.Request{ID: first.Op.ID, Key: w.key, Call: chat("big"), Snapshot: w.snapshot(), Tentative: true}); p.Op.Quiet {
		t.Error("a budget that says refuse is tried smaller")
	}
}

func TestHoldOutputTokensBoundsWhatIsHeld(t *testing.T) { // BUD-10, RES-5
	w := newWorld(t)
	w.ws.HoldOutputTokens = 100
	w.budgets = []*budget.Budget{aBudget(103_000+100*10_000, budget.Hard)}
	p, result := w.admit(chat("big"))
	if p.Targets[0].WriteBound != 1000 {
		t.Errorf("sent with %d, want 1000", p.Targets[0].WriteBound)
	}
	if r := result.Reservation; r.Worst.Spend != costly || r.Worst.Tokens != 1103 {
		t.Errorf("a sweep would charge %+v", r.Worst)
	}
	if v := admit.Describe(w.snapshot(), w.key, w.who, w.read()); v.HoldOutputTokens != 100 {
		t.Error("EFF-1 does not say so")
	}
	charged := w.settle(p, result, 103, 1000)
	if charged.Cost != costly {
		t.Errorf("charged %s", charged.Cost)
	}
	if r := last(w.read()); r.Used != costly || r.Held != 0 {
		t.Errorf("used %d, held %d", r.Used, r.Held)
	}
}

func last(list []ledger.Reading) ledger.Reading { return list[len(list)-1] }

func TestAPlanAndItsKeyBothLimit(t *testing.T) { // SPEC 14, BR-001
	w := newWorld(t)
	w.plans = []*tenant.Plan{{ID: "pla_1", Name: "intern", AllowedModels: &[]string{"big", "free"}, MaxOutputTokens: at(int64(50))}}
	w.key.Plan, w.key.AllowedModels, w.key.MaxOutputTokens = "intern", &[]string{"big", "half"}, at(int64(200))
	b := aBudget(2*(103_000+50*10_000), budget.Hard)
	b.Scope, b.Subject = budget.ScopePlan, "pla_1"
	w.budgets = []*budget.Budget{b}
	if got := w.snapshot().Models(w.key); fmt.Sprint(got) != "[big fast]" { // fast leads to big
		t.Errorf("may call %v", got)
	}
	w.refused(chat("half"), fault.ModelNotAllowed)
	w.refused(chat("free"), fault.ModelNotAllowed)
	w.refused(chat("nothing"), fault.ModelNotAllowed)
	long := chat("big")
	long.OutputBound = 51
	w.refused(long, fault.MaxOutputTokensExceeded)
	w.admit(chat("big"))
	w.admit(chat("big"))
	w.refused(chat("big"), fault.BudgetExceeded)
	w.key = &tenant.Key{ID: "key_2", Name: "other", Plan: "intern"}
	w.admit(chat("big")) // each key has a counter of its own
}

func TestARateRuleRefusesWithAnHonestWait(t *testing.T) { // RAT-1, RAT-3, ERR-2, BR-140
	w := newWorld(t)
	w.rules = []*rule.Rule{{
		ID: "rat_1", Name: "slow", SubjectKind: rule.SubjectKey, Metric: rule.Requests, WindowSeconds: 60, Limit: 2, Enabled: true,
	}}
	w.admit(chat("big"))
	w.clock.Set(start + 10*second)
	_, result := w.admit(chat("big"))
	if h, ok := admit.Rate(result.Readings, true, result.At); !ok || h != (admit.RateHeaders{Limit: 2, Remaining: 0, ResetSeconds: 60}) {
		t.Errorf("headers %+v %v", h, ok)
	}
	f := w.refuse(chat("big"), fault.RateLimited)
	if f.RetryAfterSeconds != 50 || f.NoRetry || f.Details.Window != "1m" || !strings.Contains(f.Message, `rate rule "slow" of key "ci"`) {
		t.Errorf("got %+v %+v: %s", f, f.Details, f.Message)
	}
	w.clock.Set(start + 60*second)
	w.admit(chat("big"))
	w.refused(chat("big"), fault.RateLimited)
}

func TestCachedTokensMayBeLeftOut(t *testing.T) { // USE-3, RAT-1, BR-145
	for _, uncached := range []bool{false, true} {
		w := newWorld(t)
		w.rules = []*rule.Rule{{
			ID: "rat_1", Name: "tokens", SubjectKind: rule.SubjectKey, Metric: rule.Tokens, WindowSeconds: 60, Limit: 10_000,
			Enabled: true, EstimateInput: true, Uncached: uncached,
		}}
		admitted := 0
		for range 8 {
			p, result := w.try(chat("big"))
			if result.Verdict != ledger.Admitted {
				break
			}
			admitted++
			w.settleCached(p, result, 1_990, 8_000, 10)
		}
		if want := map[bool]int{false: 1, true: 5}[uncached]; admitted != want {
			t.Errorf("without cache reads %v: %d admitted, want %d", uncached, admitted, want)
		}
	}
}
