// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

func TestEveryKindAdmitsByItsMode(t *testing.T) {
	// Each row: what is settled and held before, what is asked, and whether it
	// passes, with the reason that a refusal gives.
	for _, c := range []struct {
		name                         string
		check                        ledger.Check
		settled, held, credits, asks int64
		pass                         bool
		reason                       string
	}{
		{"track never refuses", budget("b", ledger.Track, 10), 100, 0, 0, 5, true, ""},
		{"guard below its amount", budget("b", ledger.Observe, 10), 9, 50, 0, 500, true, ""},
		{"guard at its amount", budget("b", ledger.Observe, 10), 10, 0, 0, 0, false, ""},
		{"hard exactly at its amount (BUD-2)", budget("b", ledger.Reserve, 10), 3, 4, 0, 3, true, ""},
		{"hard one over, held in the way (ERR-2)", budget("b", ledger.Reserve, 10), 3, 4, 0, 4, false, "held"},
		{"hard one over, settled", budget("b", ledger.Reserve, 10), 7, 0, 0, 4, false, ""},
		{"hard with more than all of it (RUN-2)", budget("b", ledger.Reserve, 10), 0, 0, 0, 11, false, "larger_than_limit"},
		{"hard does not overflow", budget("b", ledger.Reserve, math.MaxInt64), math.MaxInt64 - 1, 0, 0, 5, false, ""},
		{"slots free", slots(4), 0, 3, 0, 1, true, ""},
		{"slots taken", slots(4), 0, 4, 0, 1, false, ""},
		{"prepaid with a nano-dollar left (BAL-2)", funds(ledger.Observe, 0), 9, 0, 10, 500, true, ""},
		{"prepaid at zero", funds(ledger.Observe, 0), 10, 0, 10, 0, false, ""},
		{"credit line (BAL-1)", funds(ledger.Observe, 5), 14, 0, 10, 9, true, ""},
		{"credit line spent", funds(ledger.Observe, 5), 15, 0, 10, 9, false, ""},
		{"holding funds exactly (BAL-6)", funds(ledger.Reserve, 0), 3, 4, 10, 3, true, ""},
		{"holding funds, held in the way", funds(ledger.Reserve, 0), 3, 4, 10, 4, false, "held"},
		{"holding funds, spent", funds(ledger.Reserve, 0), 7, 0, 10, 4, false, ""},
		{"holding funds, nothing asked and nothing left", funds(ledger.Reserve, 0), 10, 0, 10, 0, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			b.counters[c.check.Counter] = &ledger.State{
				Kind: c.check.Kind, Settled: c.settled, Held: c.held, Credits: c.credits, At: start,
			}
			w := ledger.Amounts{Spend: c.asks, Slots: c.asks}
			r := b.one(start, admit(1, w, c.check))
			if (r.Verdict == ledger.Admitted) != c.pass || r.Readings[0].Pass != c.pass {
				t.Fatalf("verdict %d, reading %+v", r.Verdict, r.Readings[0])
			}
			if r.Readings[0].Reason != c.reason {
				t.Fatalf("reason %q, want %q", r.Readings[0].Reason, c.reason)
			}
		})
	}
}

func TestTheFirstCheckThatFailsIsTheAnswer(t *testing.T) {
	// ORD-1: any subset may be exhausted; the earliest of it answers.
	checks := []ledger.Check{
		policy("apikey_inactive", start),
		funds(ledger.Observe, 0),
		policy("model_not_allowed", 0),
		capOf(1, 0, nil, 1), capOf(7, 0, nil, 1), capOf(30, 0, nil, 1),
		budget("b", ledger.Reserve, 0),
		rpm(0), tpm(0), slots(0),
	}
	passing := []ledger.Check{
		policy("apikey_inactive", start+1),
		funds(ledger.Observe, 1),
		policy("model_not_allowed", math.MaxInt64),
		capOf(1, 1, nil, 1), capOf(7, 1, nil, 1), capOf(30, 1, nil, 1),
		budget("b", ledger.Reserve, dollar),
		rpm(10), tpm(1000), slots(1),
	}
	for failing := range 1 << len(checks) {
		list := make([]ledger.Check, len(checks))
		first := -1
		for i := range checks {
			list[i] = passing[i]
			if failing&(1<<i) != 0 {
				list[i] = checks[i]
				if first < 0 {
					first = i
				}
			}
		}
		r := newBook().one(start, admit(1, wants(cent, 10, 10), list...))
		if first < 0 {
			expect(t, r, ledger.Admitted)
			continue
		}
		if got := expectRefusal(t, r, checks[first].Code); got.Index != first {
			t.Fatalf("subset %b: index %d, want %d", failing, got.Index, first)
		}
		if len(r.Readings) != len(list) {
			t.Fatal("explain needs every reading")
		}
	}
}

func TestARefusalWritesNothing(t *testing.T) {
	// ORD-2: the page is deep-equal before and after, new counters included.
	all := []ledger.Check{
		funds(ledger.Reserve, dollar), capOf(1, dollar, nil, 1), capOf(7, dollar, nil, 1),
		budget("hard", ledger.Reserve, dollar), budget("soft", ledger.Track, dollar), rpm(10), tpm(1000), slots(5),
	}
	for _, warm := range []bool{false, true} {
		b := newBook()
		if warm {
			r := expect(t, b.one(start, admit(1, wants(cent, 10, 10), all...)), ledger.Admitted)
			expect(t, b.one(start, settle(r.Reservation, used(cent, 12))), ledger.Done)
			expect(t, b.one(start, admit(2, wants(cent, 10, 10), all...)), ledger.Admitted)
		}
		for last, code := range map[int]fault.Code{0: "insufficient_balance", 3: "budget_exceeded", 5: "api_key_rpm_exceeded", 7: "api_key_concurrency_exceeded"} {
			list := append([]ledger.Check(nil), all...)
			list[last].Amount, list[last].Credit = 0, 0
			op := admit(9, wants(cent, 10, 10), list...)
			before, after := b.page([]*ledger.Op{op}), b.page([]*ledger.Op{op})
			results, changes := ledger.Batch(after, []*ledger.Op{op}, start+second)
			expectRefusal(t, results[0], code)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("a refusal by %s changed the page:\n%s", code, diff)
			}
			if !changes.Empty() || len(changes.Refused) != 1 || changes.Refused[0].Code != string(code) {
				t.Fatalf("changes %+v", changes)
			}
		}
	}
}

func TestSeveralChecksOnOneCounterChargeItOnce(t *testing.T) {
	b := newBook()
	observed := budget("b", ledger.Observe, dollar)
	r := expect(t, b.one(start, admit(1, wants(30*cent, 10, 10),
		observed, budget("b", ledger.Reserve, dollar), budget("b", ledger.Reserve, 2*dollar),
		tpm(1000), tpm(500), slots(3), slots(2))), ledger.Admitted)
	if s := b.state(observed.Counter); s.Held != 30*cent {
		t.Fatalf("held %d: the reserving check must hold, once", s.Held)
	}
	if s := b.state(slots(1).Counter); s.Held != 1 {
		t.Fatalf("slots held %d", s.Held)
	}
	expect(t, b.one(start, settle(r.Reservation, used(20*cent, 100))), ledger.Done)
	if s := b.state(observed.Counter); s.Held != 0 || s.Settled != 20*cent {
		t.Fatalf("state %+v", s)
	}
	if s := b.state(tpm(1).Counter); s.Deficit != 100*60_000 {
		t.Fatalf("deficit %d", s.Deficit)
	}
	expectBalanced(t, b, start)
}

func TestConcurrentHoldsStopAtTheLimit(t *testing.T) {
	t.Log("BR-025: 50 at once on a hard budget of 1,000 units, 100 each")
	b := newBook()
	ops := make([]*ledger.Op, 50)
	for i := range ops {
		ops[i] = admit(i+1, ledger.Amounts{Spend: 100}, budget("b", ledger.Reserve, 1000))
	}
	admitted := 0
	for _, r := range b.apply(start, ops...) {
		if r.Verdict == ledger.Admitted {
			admitted++
		} else if r.Refusal.Reading.Reason != "held" {
			t.Fatalf("reason %q", r.Refusal.Reading.Reason)
		}
	}
	if s := b.state(budget("b", ledger.Reserve, 0).Counter); admitted != 10 || s.Held != 1000 {
		t.Fatalf("admitted %d, held %d", admitted, s.Held)
	}
}

func TestAFreeCandidatePassesSpentMoneyLimitsButNotFunds(t *testing.T) {
	// PRC-4.
	spent := []ledger.Check{capOf(1, cent, nil, 1), budget("hard", ledger.Reserve, cent), budget("guard", ledger.Observe, cent)}
	for _, c := range []struct {
		name   string
		checks []ledger.Check
		code   fault.Code
	}{
		{"caps and budgets", spent, ""},
		{"empty prepaid funds", append([]ledger.Check{funds(ledger.Observe, 0)}, spent...), "insufficient_balance"},
		{"empty holding funds", append([]ledger.Check{funds(ledger.Reserve, 0)}, spent...), "insufficient_balance"},
		{"runtime limits", append([]ledger.Check{rpm(0)}, spent...), "api_key_rpm_exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			r := expect(t, b.one(start, admit(1, ledger.Amounts{Spend: cent}, spent...)), ledger.Admitted)
			expect(t, b.one(start, settle(r.Reservation, used(2*cent, 1))), ledger.Done)

			op := admit(2, ledger.Amounts{Requests: 1, Slots: 1, Tokens: 50}, c.checks...)
			op.Candidates[0].Free = true
			got := b.one(start, op)
			if c.code == "" {
				expect(t, got, ledger.Admitted)
			} else {
				expectRefusal(t, got, c.code)
			}
		})
	}
}

func TestARouteStepsDownToWhatFits(t *testing.T) {
	// ORD-4: the first candidate for which everything passes is charged, alone.
	b := newBook()
	dear := candidate("dear", wants(dollar, 10, 10), budget("dear only", ledger.Reserve, dollar/2))
	cheap := candidate("cheap", wants(cent, 10, 10), budget("cheap only", ledger.Reserve, dollar))
	op := admit(1, ledger.Amounts{}, budget("all", ledger.Reserve, 2*dollar))
	op.Candidates = []ledger.Candidate{dear, cheap}
	r := expect(t, b.one(start, op), ledger.Admitted)
	if r.Candidate != 1 || r.Reservation.Model != "cheap" || len(r.Readings) != 2 {
		t.Fatalf("chose %d, %+v", r.Candidate, r.Reservation)
	}
	if _, ok := b.counters[dear.Checks[0].Counter]; ok {
		t.Fatal("the skipped candidate was charged")
	}
}

func TestWithNoCandidateLeftTheFirstAllowedOneAnswers(t *testing.T) {
	// ORD-4 and ERR-2: its code, the soonest wait of all.
	rule := func(limit string, amount int64) ledger.Check {
		c := tpm(amount)
		c.Counter = counter(limit)
		c.Code = "rate_limited"
		return c
	}
	b := newBook()
	slow, quick := rule("slow", 60), rule("quick", 600)
	for i, c := range []ledger.Check{slow, quick} {
		expect(t, b.one(start, admit(i+1, wants(0, c.Amount, 0), c)), ledger.Admitted)
	}
	op := admit(9, ledger.Amounts{})
	op.Candidates = []ledger.Candidate{
		candidate("forbidden", wants(0, 10, 0), policy("model_not_allowed", 0)),
		candidate("slow", wants(0, 10, 0), slow),
		candidate("quick", wants(0, 10, 0), quick),
	}
	r := b.one(start, op)
	refusal := expectRefusal(t, r, "rate_limited")
	if r.Candidate != 1 || refusal.Check.Counter.Limit != "slow" || refusal.WaitMicros != second {
		t.Fatalf("candidate %d, wait %d", r.Candidate, refusal.WaitMicros)
	}
}

func TestAWaitIsTheLongestOfAllRuntimeLimits(t *testing.T) {
	// ERR-2: code names the first, Retry-After lasts for all.
	b := newBook()
	expect(t, b.one(start, admit(1, wants(0, 60, 0), rpm(60), tpm(60), slots(1))), ledger.Admitted)
	for range 3 {
		r := b.one(start, admit(2, ledger.Amounts{Requests: 60, Input: 30, Slots: 1}, rpm(60), tpm(60), slots(1)))
		if got := expectRefusal(t, r, "api_key_rpm_exceeded"); got.WaitMicros != 30*second || got.Reading.WaitMicros != second {
			t.Fatalf("wait %d of %d", got.WaitMicros, got.Reading.WaitMicros)
		}
	}
	r := b.one(start, admit(2, ledger.Amounts{Requests: 60, Input: 61}, rpm(60), tpm(60)))
	if got := expectRefusal(t, r, "api_key_rpm_exceeded"); got.WaitMicros != -1 {
		t.Fatalf("a later limit can never be passed, yet it says to wait %d", got.WaitMicros)
	}
}

func TestOperationsPastTheirBoundsAreRefusedWhole(t *testing.T) {
	many := make([]ledger.Check, ledger.MaxChecks+1)
	for i := range many {
		many[i] = budget(fmt.Sprint(i), ledger.Track, 1)
	}
	foreign := rpm(1)
	foreign.Counter.Workspace = "ws_b"
	negative := rpm(-1)
	r := &ledger.Reservation{ID: id(1), Workspace: workspace}
	for name, op := range map[string]*ledger.Op{
		"no verb":              {Workspace: workspace},
		"no workspace":         {Verb: ledger.Read},
		"no id":                {Verb: ledger.Admit, Workspace: workspace},
		"no candidate":         {Verb: ledger.Admit, ID: id(1), Workspace: workspace},
		"too many checks":      admit(1, ledger.Amounts{}, many...),
		"another workspace":    admit(1, ledger.Amounts{}, foreign),
		"a negative limit":     admit(1, ledger.Amounts{}, negative),
		"a check of no kind":   admit(1, ledger.Amounts{}, ledger.Check{Counter: counter("x"), Mode: ledger.Track}),
		"negative wants":       admit(1, ledger.Amounts{Slots: -1}, slots(1)),
		"negative usage":       settle(r, used(-1, 0)),
		"too many attempts":    settle(r, make([]ledger.Attempt, ledger.MaxAttempts+1)...),
		"no settlement":        end(ledger.Settle, r),
		"no reservation":       {Verb: ledger.Sweep, Workspace: workspace},
		"a foreign one":        {Verb: ledger.Undo, Workspace: "ws_b", Reservation: r},
		"no entry":             {Verb: ledger.Fund, ID: id(1), Workspace: workspace, Checks: []ledger.Check{funds(ledger.Observe, 0)}},
		"a top-up of nothing":  fund(1, 0, funds(ledger.Observe, 0)),
		"funds on a budget":    fund(1, 1, budget("b", ledger.Track, 1)),
		"an adjustment alone":  end(ledger.Adjust, r),
		"too many candidates":  {Verb: ledger.Admit, ID: id(1), Workspace: workspace, Candidates: make([]ledger.Candidate, ledger.MaxCandidates+1)},
		"a negative hold time": {Verb: ledger.Renew, Workspace: workspace, Reservation: r, HoldMicros: -1},
	} {
		b := newBook()
		if got := b.one(start, op); got.Verdict != ledger.Invalid {
			t.Errorf("%s: verdict %d", name, got.Verdict)
		}
		if len(b.counters)+len(b.open)+len(b.events) != 0 {
			t.Errorf("%s: something was written", name)
		}
	}
}

func TestAnOldSnapshotIsStale(t *testing.T) {
	// ENGINE 13: a settlement never is.
	b := newBook()
	b.generations[workspace] = 7
	op := admit(1, ledger.Amounts{Slots: 1}, slots(1))
	op.Generation = 6
	expect(t, b.one(start, op), ledger.Stale)
	op.Generation = 7
	r := expect(t, b.one(start, op), ledger.Admitted)
	b.generations[workspace] = 8
	expect(t, b.one(start, settle(r.Reservation)), ledger.Done)
}

func TestTheBatchSeesItsEarlierOperations(t *testing.T) {
	b := newBook()
	first := admit(1, ledger.Amounts{Slots: 1}, slots(1))
	r := expect(t, b.one(start, first), ledger.Admitted)
	// RES-11: a settlement that stands before an admission frees its slot for it.
	results := b.apply(start, settle(r.Reservation), admit(2, ledger.Amounts{Slots: 1}, slots(1)), admit(3, ledger.Amounts{Slots: 1}, slots(1)))
	expect(t, results[0], ledger.Done)
	expect(t, results[1], ledger.Admitted)
	expectRefusal(t, results[2], "api_key_concurrency_exceeded")
	for i, r := range results {
		if r.At != start || int(r.Place) != i {
			t.Fatalf("result %d: at %d, place %d", i, r.At, r.Place)
		}
	}
}
