// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/ledger"
)

// everything is one check of each kind, wide open.
func everything() []ledger.Check {
	return []ledger.Check{
		funds(ledger.Reserve, 1000*dollar), capOf(1, 1000*dollar, nil, 1), capOf(30, 1000*dollar, nil, 1),
		budget("hard", ledger.Reserve, 1000*dollar), budget("soft", ledger.Track, dollar),
		rpm(1000), tpm(100_000), slots(100),
	}
}

// figures are what the kinds hold: funds, days, hard and soft budget's settled
// and held, then RPM and TPM taken, then slots.
func figures(b *book) []int64 {
	f, d := b.state(funds(1, 0).Counter), b.state(counter("days"))
	h, s := b.state(budget("hard", 1, 0).Counter), b.state(budget("soft", 1, 0).Counter)
	return []int64{
		f.Settled, f.Held, d.Settled, h.Settled, h.Held, s.Settled,
		b.state(counter("rpm")).Deficit / 60_000, b.state(counter("tpm")).Deficit / 60_000, b.state(counter("slots")).Held,
	}
}

func TestEachEndingLeavesWhatItShould(t *testing.T) {
	// ORD-5, RES-2, RES-5, RES-10. Held: $2, 100 in and 50 out; used: $1, 120.
	for _, c := range []struct {
		name    string
		verb    ledger.Verb
		kind    ledger.EventKind
		figures []int64
	}{
		{"settle", ledger.Settle, ledger.EventSettled, []int64{dollar, 0, dollar, dollar, 0, dollar, 1, 120, 0}},
		{"void owes nothing and keeps the request", ledger.Void, ledger.EventVoided, []int64{0, 0, 0, 0, 0, 0, 1, 0, 0}},
		{"undo gives everything back", ledger.Undo, ledger.EventUndone, []int64{0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"sweep charges the worst case", ledger.Sweep, ledger.EventSwept, []int64{2 * dollar, 0, 2 * dollar, 2 * dollar, 0, 2 * dollar, 1, 150, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			op := admit(1, wants(2*dollar, 100, 50), everything()...)
			op.Note, op.ClientID = []byte("note"), "client"
			r := expect(t, b.one(start, op), ledger.Admitted).Reservation
			if diff := cmp.Diff([]int64{0, 2 * dollar, 0, 0, 2 * dollar, 0, 1, 100, 1}, figures(b)); diff != "" {
				t.Fatalf("while it runs: %s", diff)
			}
			finish := end(c.verb, r)
			finish.Settlement = &ledger.Settlement{Note: []byte("end")}
			if c.verb == ledger.Settle {
				finish.Settlement.Attempts = []ledger.Attempt{used(dollar, 120)}
			}
			expect(t, b.one(start, finish), ledger.Done)
			if diff := cmp.Diff(c.figures, figures(b)); diff != "" {
				t.Fatal(diff)
			}
			if len(b.events) != 1 || b.events[0].Kind != c.kind || b.events[0].Attempt != 0 {
				t.Fatalf("events %+v", b.events)
			}
			call := b.calls[0]
			if call.Outcome != c.kind.String() || call.Spend != c.figures[0] || string(call.Note) != "note" ||
				string(call.End) != "end" || call.ClientID != "client" || len(call.Checks) != 8 {
				t.Fatalf("call %+v", call)
			}
			expectBalanced(t, b, start)

			// Whatever comes later finds it ended, and only a sweep is corrected.
			for _, again := range []ledger.Verb{ledger.Settle, ledger.Void, ledger.Undo, ledger.Sweep} {
				if c.verb == ledger.Sweep && again != ledger.Sweep {
					continue
				}
				late := end(again, r)
				late.Settlement = &ledger.Settlement{Attempts: []ledger.Attempt{used(9*dollar, 999)}}
				expect(t, b.one(start, late), ledger.Already)
			}
			if diff := cmp.Diff(c.figures, figures(b)); diff != "" || len(b.events) != 1 {
				t.Fatalf("ended twice: %s", diff)
			}
		})
	}
}

func TestALateSettlementCorrectsASweepOnce(t *testing.T) {
	// RES-2: in the windows of the admission.
	for _, c := range []struct {
		verb  ledger.Verb
		spend int64
	}{{ledger.Settle, dollar}, {ledger.Settle, 3 * dollar}, {ledger.Void, 0}, {ledger.Undo, 0}} {
		b := newBook()
		r := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 50), everything()...)), ledger.Admitted).Reservation
		expect(t, b.one(start+holdFor, end(ledger.Sweep, r)), ledger.Done)
		late := end(c.verb, r)
		if c.verb == ledger.Settle {
			late.Settlement = &ledger.Settlement{Attempts: []ledger.Attempt{used(c.spend, 120)}}
		}
		expect(t, b.one(start+holdFor, late), ledger.Done)
		got := figures(b)
		for _, i := range []int{0, 2, 3, 5} {
			if got[i] != c.spend {
				t.Errorf("verb %d: figure %d is %d, want %d", c.verb, i, got[i], c.spend)
			}
		}
		e := b.events[1]
		if e.Kind != ledger.EventCorrection || e.AdmittedAt != start || e.Spend != c.spend-2*dollar {
			t.Errorf("event %+v", e)
		}
		expect(t, b.one(start+holdFor, late), ledger.Already)
		expectBalanced(t, b, start+holdFor)
	}
}

func TestEachAttemptIsChargedAndIsAnEvent(t *testing.T) {
	// RES-2.
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 50), everything()...)), ledger.Admitted).Reservation
	expect(t, b.one(start, settle(r, used(dollar, 10), used(cent, 20), used(0, 30))), ledger.Done)
	if got := figures(b); got[0] != dollar+cent || got[7] != 60 {
		t.Fatalf("figures %v", got)
	}
	for i, e := range b.events {
		if int(e.Attempt) != i || e.Kind != ledger.EventSettled {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
	if q := b.quarters; len(q) != 1 || q[0].Spend != dollar+cent || q[0].Tokens != 60 || q[0].Requests != 1 || q[0].Key != "key_1" {
		t.Fatalf("quarters %+v", q)
	}
	expectBalanced(t, b, start)
}

func TestARenewalProlongsAndTouchesNoCounter(t *testing.T) {
	// RES-5.
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(dollar, 1, 1), everything()...)), ledger.Admitted).Reservation
	op := end(ledger.Renew, r)
	page := b.page([]*ledger.Op{op})
	_, changes := ledger.Batch(page, []*ledger.Op{op}, start+10*minute)
	if len(changes.Counters) != 0 || len(changes.Replaced) != 1 || changes.Replaced[0].ExpiresAt != start+10*minute+holdFor {
		t.Fatalf("changes %+v", changes)
	}
	if r.ExpiresAt != start+holdFor {
		t.Fatal("the earlier answer's reservation was changed")
	}
	expect(t, b.one(start, op), ledger.Done)
	expect(t, b.one(start, settle(r, used(0, 0))), ledger.Done)
	expect(t, b.one(start, op), ledger.Missing)
}

func TestAnEndingOfWhatNobodyKnowsIsMissing(t *testing.T) {
	// ENGINE 6: a dead letter, and the caller's alarm.
	b := newBook()
	r := &ledger.Reservation{ID: id(1), Workspace: workspace}
	for _, verb := range []ledger.Verb{ledger.Settle, ledger.Void, ledger.Undo, ledger.Renew, ledger.Move} {
		op := end(verb, r)
		op.Settlement = &ledger.Settlement{}
		expect(t, b.one(start, op), ledger.Missing)
	}
	expect(t, b.one(start, end(ledger.Sweep, r)), ledger.Already)
	adjust := end(ledger.Adjust, r)
	adjust.Entry = &ledger.Entry{}
	expect(t, b.one(start, adjust), ledger.Missing)
}

func TestAnAdmissionSentAgainIsDecidedOnce(t *testing.T) {
	// ENGINE 6: each state that the first sending can have left behind.
	sent := func() *ledger.Op {
		op := admit(1, wants(dollar, 1, 1), everything()...)
		op.Again = true
		return op
	}
	t.Run("it had happened", func(t *testing.T) {
		b := newBook()
		first := expect(t, b.one(start, admit(1, wants(dollar, 1, 1), everything()...)), ledger.Admitted)
		b.generations[workspace] = 9 // what happened, happened, before the change
		again := sent()
		again.Generation = 8
		got := expect(t, b.one(start+second, again), ledger.Admitted)
		if got.Reservation != first.Reservation || len(got.Readings) != len(first.Readings) {
			t.Fatalf("got %+v", got)
		}
		for i := range got.Readings {
			if got.Readings[i].Remaining() != first.Readings[i].Remaining() {
				t.Fatalf("reading %d: %+v", i, got.Readings[i])
			}
		}
		if s := b.state(slots(1).Counter); s.Held != 1 {
			t.Fatalf("slots %d", s.Held)
		}
	})
	t.Run("it had happened and ended", func(t *testing.T) {
		b := newBook()
		r := expect(t, b.one(start, admit(1, wants(dollar, 1, 1), everything()...)), ledger.Admitted)
		expect(t, b.one(start, end(ledger.Sweep, r.Reservation)), ledger.Done)
		expect(t, b.one(start, sent()), ledger.Already)
	})
	t.Run("it had not happened", func(t *testing.T) {
		b := newBook()
		expect(t, b.one(start, sent()), ledger.Admitted)
	})
	t.Run("it is refused now: a tombstone", func(t *testing.T) {
		b := newBook()
		op := sent()
		op.Checks[7].Amount = 0
		expectRefusal(t, b.one(start, op), "api_key_concurrency_exceeded")
		tombstone := b.open[id(1)]
		if tombstone == nil || !tombstone.Tombstone || len(b.counters) != 0 {
			t.Fatalf("tombstone %+v", tombstone)
		}
		expect(t, b.one(start, sent()), ledger.Already)
		expect(t, b.one(start, settle(tombstone)), ledger.Missing)
		expect(t, b.one(start, end(ledger.Sweep, tombstone)), ledger.Done)
		if len(b.open)+len(b.events)+len(b.calls) != 0 {
			t.Fatal("a tombstone leaves nothing behind")
		}
	})
	t.Run("an id is used once", func(t *testing.T) {
		b := newBook()
		op := admit(1, ledger.Amounts{Slots: 1}, slots(5))
		results := b.apply(start, op, op)
		expect(t, results[0], ledger.Admitted)
		expect(t, results[1], ledger.Invalid)
	})
}

func TestAnAdmissionOfUnknownOutcomeIsUndoneByItsID(t *testing.T) {
	// ENGINE 6.
	undo := &ledger.Op{Verb: ledger.Undo, ID: id(1), Workspace: workspace, HoldMicros: holdFor}
	t.Run("it had happened", func(t *testing.T) {
		b := newBook()
		expect(t, b.one(start, admit(1, wants(dollar, 10, 1), everything()...)), ledger.Admitted)
		named := expect(t, b.one(start, undo), ledger.Carry)
		expect(t, b.one(start, undo.Carried(&named)), ledger.Done)
		if diff := cmp.Diff(make([]int64, 9), figures(b)); diff != "" {
			t.Fatal(diff)
		}
		expect(t, b.one(start, undo), ledger.Already)
		expectBalanced(t, b, start)
	})
	t.Run("it had not happened, and never will", func(t *testing.T) {
		b := newBook()
		expect(t, b.one(start, undo), ledger.Done)
		if r := b.open[id(1)]; r == nil || !r.Tombstone || r.ExpiresAt != start+holdFor {
			t.Fatalf("tombstone %+v", r)
		}
		expect(t, b.one(start, undo), ledger.Already)
		again := admit(1, wants(dollar, 10, 1), everything()...)
		again.Again = true
		expect(t, b.one(start, again), ledger.Already)
	})
}

func TestASweepIsCorrectedByWhoKnowsLessThanTheBook(t *testing.T) {
	// RES-2: found by internal/sim. The book had moved the request, or admitted it
	// at all, without its caller hearing of it; then it was swept.
	old := expect(t, newBook().one(start, admit(1, wants(dollar, 10, 1), everything()...)), ledger.Admitted).Reservation
	move := &ledger.Op{
		Verb: ledger.Move, Workspace: workspace, Reservation: old, Checks: everything(),
		Candidates: []ledger.Candidate{candidate("n", wants(3*dollar, 30, 3), budget("of n", ledger.Reserve, 9*dollar))},
	}
	move.Name(start)
	for name, late := range map[string]*ledger.Op{
		"a settlement by an old copy": settle(old, ledger.Attempt{Model: "m", Provider: "p"}),
		"an undo by its id":           {Verb: ledger.Undo, ID: id(1), Workspace: workspace, HoldMicros: holdFor},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			expect(t, b.one(start, admit(1, wants(dollar, 10, 1), everything()...)), ledger.Admitted)
			moved := expect(t, b.one(start, move), ledger.Admitted).Reservation
			expect(t, b.one(start, end(ledger.Sweep, moved)), ledger.Done)
			named := expect(t, b.one(start, late), ledger.Carry)
			expect(t, b.one(start, late.Carried(&named)), ledger.Done)
			for c, s := range b.counters {
				if s.Settled != 0 || s.Held != 0 {
					t.Errorf("%s: settled %d, held %d", c.Limit, s.Settled, s.Held)
				}
			}
			expectBalanced(t, b, start)
			expect(t, b.one(start, late), ledger.Already)
		})
	}
}

func TestAdjustmentsAreSignedAndBookedOnce(t *testing.T) {
	// RES-9: in the windows of the admission.
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 50), everything()...)), ledger.Admitted).Reservation
	adjust := func(number int32, spend int64) *ledger.Op {
		op := end(ledger.Adjust, r)
		op.Entry = &ledger.Entry{Number: number, Amounts: ledger.Amounts{Spend: spend}, Reason: "refund", Actor: "ada"}
		return op
	}
	expect(t, b.one(start, adjust(0, -cent)), ledger.Invalid) // it runs
	expect(t, b.one(start, settle(r, used(dollar, 120))), ledger.Done)
	expect(t, b.one(start+hour, adjust(0, -40*cent)), ledger.Done)
	expect(t, b.one(start+hour, adjust(0, -40*cent)), ledger.Already)
	expect(t, b.one(start+hour, adjust(2, -40*cent)), ledger.Invalid)
	expect(t, b.one(start+hour, adjust(1, 10*cent)), ledger.Done)
	want := []int64{70 * cent, 0, 70 * cent, 70 * cent, 0, 70 * cent, 1, 120, 0}
	if diff := cmp.Diff(want, figures(b)); diff != "" {
		t.Fatal(diff)
	}
	if e := b.events[2]; e.Attempt != 1 || e.Reason != "refund" || e.Actor != "ada" || e.AdmittedAt != start {
		t.Fatalf("event %+v", e)
	}
	expectBalanced(t, b, start+hour)
}

func TestFundsAreTheSumOfTheirEntries(t *testing.T) {
	// BAL-2 to BAL-5: a running request may settle below zero; then nobody passes.
	b, check := newBook(), funds(ledger.Observe, 0)
	expectRefusal(t, b.one(start, admit(1, ledger.Amounts{}, check)), "insufficient_balance")
	expect(t, b.one(start, fund(100, dollar, check)), ledger.Done)
	expect(t, b.one(start, fund(100, dollar, check)), ledger.Already)
	r := expect(t, b.one(start, admit(2, ledger.Amounts{Spend: 5 * dollar}, check)), ledger.Admitted).Reservation
	if s := b.state(check.Counter); s.Held != 0 {
		t.Fatalf("observed funds hold %d", s.Held)
	}
	expect(t, b.one(start, settle(r, used(5*dollar, 1))), ledger.Done)
	below := expectRefusal(t, b.one(start, admit(3, ledger.Amounts{}, check)), "insufficient_balance")
	if below.Reading.Used != 4*dollar || below.Reading.Remaining() != 0 || below.WaitMicros != -1 {
		t.Fatalf("reading %+v", below.Reading)
	}
	topped := expect(t, b.one(start, fund(101, 6*dollar, check)), ledger.Done)
	if topped.Readings[0].Remaining() != 2*dollar {
		t.Fatalf("remaining %d", topped.Readings[0].Remaining())
	}
	expect(t, b.one(start, fund(102, -dollar, check)), ledger.Done)
	negative := fund(103, -dollar, check)
	negative.Entry.Kind = ledger.EventCredit
	expect(t, b.one(start, negative), ledger.Invalid)
	if s := b.state(check.Counter); s.Credits != 6*dollar || s.Settled != 5*dollar {
		t.Fatalf("state %+v", s)
	}
	expectBalanced(t, b, start)
}

func TestFundsThatHoldAdmitNoMoreThanThereIs(t *testing.T) {
	// BAL-6.
	b, check := newBook(), funds(ledger.Reserve, 0)
	expect(t, b.one(start, fund(100, dollar, check)), ledger.Done)
	for n, want := range []ledger.Verdict{ledger.Admitted, ledger.Admitted, ledger.Refused} {
		expect(t, b.one(start, admit(n+1, ledger.Amounts{Spend: 40 * cent}, check)), want)
	}
	expectBalanced(t, b, start)
}

func TestASettlementPastTheRangeSaturatesAndIsFlagged(t *testing.T) {
	// Section 1: never lost, never wrapped.
	b, check := newBook(), budget("b", ledger.Track, dollar)
	for n := range 2 {
		r := expect(t, b.one(start, admit(n+1, ledger.Amounts{}, check)), ledger.Admitted).Reservation
		expect(t, b.one(start, settle(r, used(1<<62+1<<61, 1))), ledger.Done)
	}
	s := b.state(check.Counter)
	if s.Settled != 1<<63-1 || !s.Saturated {
		t.Fatalf("state %+v", s)
	}
	expectBalanced(t, b, start)
}
