// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/ledger"
)

// ENGINE 9: a dead process's slots go back once, whatever becomes of the request;
// money and tokens stay held until it ends.
func TestADeadProcessesSlotsGoBackOnce(t *testing.T) {
	for name, ending := range map[string]ledger.Verb{"settle": ledger.Settle, "void": ledger.Void, "undo": ledger.Undo, "sweep": ledger.Sweep} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			first := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 50), everything()...)), ledger.Admitted).Reservation
			other := expect(t, b.one(start, admit(2, wants(2*dollar, 100, 50), everything()...)), ledger.Admitted).Reservation
			freed := expect(t, b.one(start, end(ledger.FreeSlots, first)), ledger.Done).Reservation
			if diff := cmp.Diff([]int64{0, 4 * dollar, 0, 0, 4 * dollar, 0, 2, 200, 1}, figures(b)); diff != "" {
				t.Fatalf("after the release: %s", diff)
			}
			expectBalanced(t, b, start)
			expect(t, b.one(start, end(ledger.FreeSlots, first)), ledger.Already)
			expect(t, b.one(start, end(ledger.FreeSlots, freed)), ledger.Already)

			// The process was not dead: it settles what it knows.
			finish := end(ending, first)
			finish.Settlement = &ledger.Settlement{Attempts: []ledger.Attempt{used(dollar, 120)}}
			expect(t, b.one(start, finish), ledger.Done)
			if held := b.state(counter("slots")).Held; held != 1 {
				t.Errorf("%d slots are held, one request runs", held)
			}
			expect(t, b.one(start, end(ledger.FreeSlots, first)), ledger.Already)
			expect(t, b.one(start, end(ledger.Sweep, other)), ledger.Done)
			if held := b.state(counter("slots")).Held; held != 0 {
				t.Errorf("%d slots are held at rest", held)
			}
			expectBalanced(t, b, start)
		})
	}
}

// ORD-4: the next candidate of a request whose slots went back takes none either.
func TestAMoveTakesNoSlotForARequestWhoseSlotsWentBack(t *testing.T) {
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(2*dollar, 100, 50), budget("hard", ledger.Reserve, 1000*dollar))), ledger.Admitted).Reservation
	expect(t, b.one(start, end(ledger.FreeSlots, r)), ledger.Done)
	move := admit(1, wants(3*dollar, 100, 50), everything()...)
	move.Verb, move.Reservation = ledger.Move, r
	moved := expect(t, b.one(start, move), ledger.Admitted).Reservation
	if held := b.state(counter("slots")).Held; held != 0 {
		t.Errorf("%d slots are held", held)
	}
	expectBalanced(t, b, start)
	expect(t, b.one(start, end(ledger.Void, moved)), ledger.Done)
	if held := b.state(counter("slots")).Held; held != 0 {
		t.Errorf("%d slots are held at rest", held)
	}
}
