// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/window"
)

func TestABatchInTheNextWindowCarriesTheOperation(t *testing.T) {
	// ENGINE 7: the caller named 12:00 to 13:00; the batch's instant is 13:00.
	b := newBook()
	op := admit(1, ledger.Amounts{Spend: cent}, budget("b", ledger.Reserve, dollar))
	named := op.Checks[0].Counter
	carried := expect(t, b.one(start+hour, op), ledger.Carry)
	if len(b.counters)+len(b.open) != 0 {
		t.Fatal("a carried operation wrote something")
	}
	next := op.Carried(&carried)
	if op.Checks[0].Counter != named {
		t.Fatal("the operation that the book saw was changed")
	}
	r := expect(t, b.one(start+hour, next), ledger.Admitted)
	if got := r.Reservation.Holds[0].Counter.Window; got != start+hour {
		t.Fatalf("window %d", got)
	}
	if r.Readings[0].ResetsAt != start+2*hour {
		t.Fatalf("resets at %d", r.Readings[0].ResetsAt)
	}
}

func TestANewWindowStartsAtZeroAndTheOldOneKeepsItsCharge(t *testing.T) {
	// BUD-3.
	b := newBook()
	first := budget("b", ledger.Reserve, dollar)
	r := expect(t, b.one(start, admit(1, ledger.Amounts{Spend: dollar}, first)), ledger.Admitted)
	op := admit(2, ledger.Amounts{Spend: dollar}, budget("b", ledger.Reserve, dollar))
	op.Name(start + hour)
	expect(t, b.one(start+hour, op), ledger.Admitted)
	expect(t, b.one(start+hour, settle(r.Reservation, used(dollar, 1))), ledger.Done)
	if s := b.state(first.Counter); s.Settled != dollar || s.Held != 0 {
		t.Fatalf("the window of the admission: %+v", s)
	}
	if s := b.state(op.Checks[0].Counter); s.Settled != 0 || s.Held != dollar {
		t.Fatalf("the next window: %+v", s)
	}
	expectBalanced(t, b, start+hour)
}

func TestAWindowOfAllTimeNeverResets(t *testing.T) {
	c := budget("b", ledger.Reserve, dollar)
	c.Window = window.Spec{}
	op := admit(1, ledger.Amounts{Spend: 2 * dollar}, c)
	op.Name(start)
	r := expectRefusal(t, newBook().one(start, op), "budget_exceeded")
	if r.Reading.ResetsAt != 0 {
		t.Fatalf("resets at %d", r.Reading.ResetsAt)
	}
}

func TestAnOverrunIsChargedInFull(t *testing.T) {
	// RES-2.
	b := newBook()
	hard := budget("b", ledger.Reserve, dollar)
	r := expect(t, b.one(start, admit(1, ledger.Amounts{Spend: cent}, hard)), ledger.Admitted)
	expect(t, b.one(start, settle(r.Reservation, used(5*dollar, 1))), ledger.Done)
	if s := b.state(hard.Counter); s.Settled != 5*dollar || s.Held != 0 {
		t.Fatalf("state %+v", s)
	}
}

func TestReadingShowsEveryLimitAndChangesNothing(t *testing.T) {
	b := newBook()
	checks := []ledger.Check{
		funds(ledger.Observe, dollar), capOf(7, dollar, nil, 1), budget("b", ledger.Reserve, dollar), rpm(10), slots(2),
	}
	expect(t, b.one(start, fund(1, dollar, checks[0])), ledger.Done)
	r := expect(t, b.one(start, admit(2, wants(40*cent, 1, 1), checks...)), ledger.Admitted)
	expect(t, b.one(start, settle(r.Reservation, used(30*cent, 1))), ledger.Done)
	expect(t, b.one(start, admit(3, wants(40*cent, 1, 1), checks...)), ledger.Admitted)
	page := b.page([]*ledger.Op{{Checks: checks}})
	results, changes := ledger.Batch(page, []*ledger.Op{{Verb: ledger.Read, Workspace: workspace, Checks: checks}}, start)
	if !changes.Empty() {
		t.Fatalf("changes %+v", changes)
	}
	got := expect(t, results[0], ledger.Done).Readings
	for i, want := range []struct{ used, held, remaining int64 }{
		{-70 * cent, 0, 170 * cent}, {30 * cent, 0, 70 * cent}, {30 * cent, 40 * cent, 30 * cent}, {2, 0, 8}, {0, 1, 1},
	} {
		if r := got[i]; r.Used != want.used || r.Held != want.held || r.Remaining() != want.remaining {
			t.Errorf("%s: used %d, held %d, remaining %d", r.Check.Name, r.Used, r.Held, r.Remaining())
		}
	}
	expect(t, b.one(start+hour, &ledger.Op{Verb: ledger.Read, Workspace: workspace, Checks: checks}), ledger.Carry)
}
