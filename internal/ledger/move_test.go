// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/ledger"
)

func move(r *ledger.Reservation, checks []ledger.Check, candidates ...ledger.Candidate) *ledger.Op {
	return &ledger.Op{Verb: ledger.Move, Workspace: workspace, Reservation: r, Checks: checks, Candidates: candidates}
}

// attempt is what a provider of a model reported.
func attempt(model string, spend, tokens int64) ledger.Attempt {
	return ledger.Attempt{Model: model, Provider: "p_" + model, Spend: spend, Tokens: tokens, Input: tokens}
}

func TestAMoveReplacesWhatFollowsTheCandidate(t *testing.T) {
	// ORD-4: dearer tops up, cheaper releases; requests and slots count once.
	for _, c := range []struct {
		name string
		to   ledger.Amounts
	}{
		{"dearer", wants(3*dollar, 100, 900)},
		{"cheaper", wants(dollar, 100, 10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			r := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 50), everything()...)), ledger.Admitted).Reservation
			moved := expect(t, b.one(start, move(r, everything(), candidate("n", c.to))), ledger.Admitted).Reservation
			want := []int64{0, c.to.Spend, 0, 0, c.to.Spend, 0, 1, 100, 1}
			if diff := cmp.Diff(want, figures(b)); diff != "" {
				t.Fatal(diff)
			}
			if moved.Model != "n" || moved.Worst != c.to || moved.ID != r.ID || moved.At != r.At || r.Model != "m" {
				t.Fatalf("moved %+v", moved)
			}
			expectBalanced(t, b, start)
			expect(t, b.one(start, settle(moved, attempt("n", dollar, 120))), ledger.Done)
			if diff := cmp.Diff([]int64{dollar, 0, dollar, dollar, 0, dollar, 1, 120, 0}, figures(b)); diff != "" {
				t.Fatal(diff)
			}
			expectBalanced(t, b, start)
		})
	}
}

func TestAMoveDoesNotStandInItsOwnWay(t *testing.T) {
	// All that the limits allow is this request's already.
	tight := []ledger.Check{budget("hard", ledger.Reserve, 2*dollar), rpm(1), tpm(100), slots(1)}
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 0), tight...)), ledger.Admitted).Reservation
	moved := expect(t, b.one(start, move(r, tight, candidate("n", wants(2*dollar, 100, 0)))), ledger.Admitted)
	for _, reading := range moved.Readings {
		if !reading.Pass {
			t.Fatalf("reading %+v", reading)
		}
	}
}

func TestARefusedMoveLeavesEverythingAsItWas(t *testing.T) {
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 50), everything()...)), ledger.Admitted).Reservation
	before := figures(b)
	tooDear := candidate("n", wants(1001*dollar, 100, 50))
	op := move(r, everything(), tooDear)
	page := b.page([]*ledger.Op{op})
	results, changes := ledger.Batch(page, []*ledger.Op{op}, start)
	expectRefusal(t, results[0], "insufficient_balance")
	if !changes.Empty() || len(changes.Refused) != 0 {
		t.Fatalf("changes %+v", changes)
	}
	if diff := cmp.Diff(before, figures(b)); diff != "" || b.open[r.ID] != r {
		t.Fatal(diff)
	}
	// A cheaper one further down the route still takes it.
	got := expect(t, b.one(start, move(r, everything(), tooDear, candidate("o", wants(cent, 1, 1)))), ledger.Admitted)
	if got.Candidate != 1 || got.Reservation.Model != "o" {
		t.Fatalf("candidate %d", got.Candidate)
	}
}

func TestAnAttemptIsChargedToTheLimitsOfItsOwnModel(t *testing.T) {
	// BUD-1, RES-2: each model has a budget of its own, both providers share one.
	own := func(model string) []ledger.Check {
		return []ledger.Check{budget("of "+model, ledger.Reserve, dollar), budget("of both", ledger.Observe, dollar)}
	}
	b := newBook()
	op := admit(1, ledger.Amounts{}, budget("all", ledger.Reserve, dollar))
	op.Candidates = []ledger.Candidate{candidate("m", wants(50*cent, 10, 10), own("m")...)}
	r := expect(t, b.one(start, op), ledger.Admitted).Reservation
	for _, model := range []string{"n", "m", "n"} { // there, back and there again
		r = expect(t, b.one(start, move(r, op.Checks, candidate(model, wants(30*cent, 10, 10), own(model)...))), ledger.Admitted).Reservation
		for _, other := range []string{"m", "n"} {
			want := int64(0)
			if other == model {
				want = 30 * cent
			}
			if s := b.state(budget("of "+other, 1, 0).Counter); s.Held != want {
				t.Fatalf("on %s, the budget of %s holds %d", model, other, s.Held)
			}
		}
		expectBalanced(t, b, start)
	}
	expect(t, b.one(start, settle(r, attempt("m", 7*cent, 5), attempt("n", 20*cent, 6))), ledger.Done)
	for limit, want := range map[string]int64{"all": 27 * cent, "of m": 7 * cent, "of n": 20 * cent, "of both": 27 * cent} {
		if s := b.state(budget(limit, 1, 0).Counter); s.Settled != want || s.Held != 0 {
			t.Errorf("%s: %+v, want %d", limit, s, want)
		}
	}
	expectBalanced(t, b, start)
}

func TestAMovedRequestStaysInTheWindowOfItsAdmission(t *testing.T) {
	// BUD-3.
	b := newBook()
	checks := []ledger.Check{budget("b", ledger.Reserve, dollar), capOf(1, dollar, nil, 1)}
	r := expect(t, b.one(start, admit(1, ledger.Amounts{Spend: cent}, checks...)), ledger.Admitted).Reservation
	op := move(r, []ledger.Check{budget("b", ledger.Reserve, dollar), checks[1]}, candidate("n", ledger.Amounts{Spend: 2 * cent}))
	op.Name(start + hour)
	moved := expect(t, b.one(start+hour, op), ledger.Admitted).Reservation
	expect(t, b.one(start+hour, settle(moved, attempt("n", 2*cent, 1))), ledger.Done)
	if s := b.state(checks[0].Counter); s.Settled != 2*cent || s.Held != 0 {
		t.Fatalf("state %+v", s)
	}
	wrong := move(r, []ledger.Check{budget("b", ledger.Reserve, dollar)}, candidate("n", ledger.Amounts{}))
	wrong.Checks[0].Counter.Window = start + hour
	b = newBook()
	expect(t, b.one(start, admit(1, ledger.Amounts{Spend: cent}, checks...)), ledger.Admitted)
	carried := expect(t, b.one(start+hour, wrong), ledger.Carry)
	expect(t, b.one(start+hour, wrong.Carried(&carried)), ledger.Admitted)
}

func TestAnOperationThatDoesNotKnowOfAMoveIsCarried(t *testing.T) {
	// Its counters may not be loaded; changed unseen, their rows would be lost.
	for _, verb := range []ledger.Verb{ledger.Settle, ledger.Void, ledger.Undo, ledger.Sweep} {
		b := newBook()
		op := admit(1, ledger.Amounts{Spend: cent})
		r := expect(t, b.one(start, op), ledger.Admitted).Reservation
		own := budget("of n", ledger.Reserve, dollar)
		other := admit(2, ledger.Amounts{Spend: 5 * cent}, own)
		expect(t, b.one(start, other), ledger.Admitted)
		expect(t, b.one(start, move(r, nil, candidate("n", ledger.Amounts{Spend: 2 * cent}, own))), ledger.Admitted)

		finish := end(verb, r)
		finish.Settlement = &ledger.Settlement{Attempts: []ledger.Attempt{attempt("n", cent, 1)}}
		carried := expect(t, b.one(start, finish), ledger.Carry)
		expect(t, b.one(start, finish.Carried(&carried)), ledger.Done)
		if s := b.state(own.Counter); s.Held != 5*cent {
			t.Errorf("verb %d: held %d", verb, s.Held)
		}
		expectBalanced(t, b, start)
	}
}

func TestASweepAfterAMoveAndALateSettlementBalance(t *testing.T) {
	b := newBook()
	ownM, ownN := budget("of m", ledger.Reserve, dollar), budget("of n", ledger.Reserve, dollar)
	op := admit(1, ledger.Amounts{}, tpm(1000))
	op.Candidates = []ledger.Candidate{candidate("m", wants(10*cent, 10, 0), ownM)}
	r := expect(t, b.one(start, op), ledger.Admitted).Reservation
	r = expect(t, b.one(start, move(r, op.Checks, candidate("n", wants(20*cent, 10, 10), ownN))), ledger.Admitted).Reservation
	expect(t, b.one(start, end(ledger.Sweep, r)), ledger.Done)
	expect(t, b.one(start, settle(r, attempt("m", cent, 3), attempt("n", 2*cent, 4))), ledger.Done)
	if m, n := b.state(ownM.Counter), b.state(ownN.Counter); m.Settled != cent || n.Settled != 2*cent {
		t.Fatalf("m %+v, n %+v", m, n)
	}
	if got := b.state(tpm(1).Counter).Deficit; got != 7*60_000 {
		t.Fatalf("TPM deficit %d", got)
	}
	expectBalanced(t, b, start)
}

func TestAMoveAfterItsEndIsMissing(t *testing.T) {
	b := newBook()
	r := expect(t, b.one(start, admit(1, ledger.Amounts{Slots: 1}, slots(1))), ledger.Admitted).Reservation
	expect(t, b.one(start, settle(r)), ledger.Done)
	expect(t, b.one(start, move(r, nil, candidate("n", ledger.Amounts{}))), ledger.Missing)
}
