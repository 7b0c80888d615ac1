// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"github.com/weirhq/weir/internal/ledger"
)

func TestWhatRanAtAResetGivesNothingBackOfWhatOthersTookSince(t *testing.T) {
	// BUD-9: a bucket or a window that was reset is never better than new.
	for _, check := range []ledger.Check{tpm(1000), rule(1000)} {
		for name, ends := range map[string]func(r *ledger.Reservation) *ledger.Op{
			"void":   func(r *ledger.Reservation) *ledger.Op { return end(ledger.Void, r) },
			"undo":   func(r *ledger.Reservation) *ledger.Op { return end(ledger.Undo, r) },
			"settle": func(r *ledger.Reservation) *ledger.Op { return settle(r, used(1, 40)) },
			"move": func(r *ledger.Reservation) *ledger.Op {
				op := end(ledger.Move, r)
				op.Candidates = []ledger.Candidate{candidate("n", wants(1, 0, 0))}
				return op
			},
		} {
			b := newBook()
			before := expect(t, b.one(start, admit(1, wants(1, 700, 0), check)), ledger.Admitted).Reservation
			expect(t, b.one(start, amend(2, ledger.EventReset, 0, check)), ledger.Done)
			expect(t, b.one(start+1, admit(3, wants(1, 600, 0), check)), ledger.Admitted)
			b.one(start+2, ends(before))
			read := b.one(start+2, &ledger.Op{Verb: ledger.Read, Workspace: workspace, Checks: []ledger.Check{check}})
			if got := read.Readings[0].Used; got != 600 {
				t.Errorf("%s, %s: used %d, want 600", check.Name, name, got)
			}
			expectBalanced(t, b, start+2)
		}
	}
}

func TestACorrectionOfWhatWasChargedAfterAResetCounts(t *testing.T) {
	// RES-2, BUD-9: a request that ran at the reset is swept, and its usage arrives
	// in the same batch, in a later one, or after the second reset.
	check := budget("b", ledger.Reserve, 10*dollar)
	for _, c := range []struct {
		name    string
		batches func(sweep, late, reset *ledger.Op) [][]*ledger.Op
		want    int64
	}{
		{"same batch", func(s, l, _ *ledger.Op) [][]*ledger.Op { return [][]*ledger.Op{{s, l}} }, dollar},
		{"later", func(s, l, _ *ledger.Op) [][]*ledger.Op { return [][]*ledger.Op{{s}, {l}} }, dollar},
		{"after a reset", func(s, l, r *ledger.Op) [][]*ledger.Op { return [][]*ledger.Op{{s}, {r}, {l}} }, 0},
	} {
		b := newBook()
		r := expect(t, b.one(start, admit(1, wants(3*dollar, 1, 1), check)), ledger.Admitted).Reservation
		expect(t, b.one(start, amend(2, ledger.EventReset, 0, check)), ledger.Done)
		for i, batch := range c.batches(end(ledger.Sweep, r), settle(r, used(dollar, 1)), amend(3, ledger.EventReset, 0, check)) {
			for _, result := range b.apply(start+int64(i)+1, batch...) {
				expect(t, result, ledger.Done)
			}
		}
		if got := b.state(check.Counter).Settled; got != c.want {
			t.Errorf("%s: settled %d, want %d", c.name, got, c.want)
		}
		expectBalanced(t, b, start+9)
	}
}

func TestAZoneChangeForgetsNoReset(t *testing.T) {
	// CAP-3, BUD-9: the row is derived anew from quarters that keep what was spent.
	b := newBook()
	utc := capOf(7, 100*dollar, nil, 1)
	var running *ledger.Reservation
	for n, at := range []int64{start - 3*day, start - hour, start - minute} {
		r := expect(t, b.one(at, admit(n+1, wants(5*dollar, 1, 1), utc)), ledger.Admitted).Reservation
		if at == start-hour {
			running = r
			continue
		}
		b.one(at, settle(r, used(5*dollar, 1)))
	}
	expect(t, b.one(start, amend(8, ledger.EventReset, 0, utc)), ledger.Done)
	b.one(start+minute, settle(running, used(2*dollar, 1)))
	r := expect(t, b.one(start+minute, admit(9, wants(dollar, 1, 1), utc)), ledger.Admitted).Reservation
	b.one(start+hour, settle(r, used(dollar, 1)))
	later := capOf(7, 100*dollar, zone(t, "Asia/Kathmandu"), 2)
	for _, check := range []ledger.Check{utc, later, capOf(7, 100*dollar, zone(t, "America/New_York"), 3)} {
		read := b.one(start+hour, &ledger.Op{Verb: ledger.Read, Workspace: workspace, Checks: []ledger.Check{check}})
		if got := read.Readings[0].Used; got != 3*dollar {
			t.Errorf("in %v: used %d, want %d", check.Zone, got, 3*dollar)
		}
	}
	b.one(start+2*hour, admit(10, wants(dollar, 1, 1), later))
	expectBalanced(t, b, start+2*hour)
}

func TestARowThatARebuildLeftEmptyIsNotComparedByDay(t *testing.T) {
	// RES-7: the reset of one zone's date is booked at its start, which lies on
	// another date elsewhere.
	b := newBook()
	spend(t, b, 1, start, 5*dollar, capOf(7, 100*dollar, nil, 1))
	expect(t, b.one(start+minute, amend(2, ledger.EventReset, 0, capOf(7, 100*dollar, nil, 1))), ledger.Done)
	moved := capOf(7, 100*dollar, zone(t, "America/New_York"), 2)
	expect(t, b.one(start+hour, amend(3, ledger.EventReset, 0, moved)), ledger.Done)
	spend(t, b, 4, start+2*hour, dollar, moved)
	expectBalanced(t, b, start+2*hour)
}
