// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// move hands a reservation to the next candidate that fits, all or nothing: a
// dearer one tops up, a cheaper one releases the difference. RPM and slots are
// charged once (ORD-4). A refused move leaves the reservation as it was.
//
// Moved or not, a request belongs to the windows of its admission (BUD-3), so a
// move's checks name those.
func (b *batch) move(op *Op) Result {
	r := b.row(op)
	if r == nil || r.Tombstone {
		return Result{Verdict: Missing}
	}
	if !op.knows(r) || !op.named(r.At) {
		return Result{Verdict: Carry, Reservation: r}
	}
	chosen, result := b.choose(op, r)
	if result.Verdict != Admitted {
		return result
	}
	moved := *r
	c := &op.Candidates[chosen]
	moved.Model, moved.Provider, moved.Price = c.Model, c.Provider, c.Price
	moved.Candidate, moved.Worst, moved.Checks = int32(chosen), c.worst(), recordChecks(result.Readings)
	b.flows = slices.Clip(r.Flows)
	moved.Holds = b.moveHolds(r, op.Checks, c)
	moved.Flows = b.flows
	b.page.Open[r.ID] = &moved
	b.changes.Replaced = append(b.changes.Replaced, &moved)
	result.Reservation = &moved
	return result
}

// moveHolds gives back what the last candidate held and takes what the next one
// asks for. What admission counts once (requests, slots) stays as it was taken,
// and so do the emptied holds of the last candidate's own checks: an attempt of
// it that is charged finds its counters by them.
func (b *batch) moveHolds(r *Reservation, common []Check, c *Candidate) []Hold {
	holds := make([]Hold, 0, len(r.Holds)+len(c.Checks))
	for i := range r.Holds {
		h := r.Holds[i]
		if !h.once() {
			b.giveBack(i, &h, r.At)
			h.Held, h.Taken = 0, 0
		}
		holds = append(holds, h)
	}
	holds = b.takeAll(common, c, false, holds)
	holds = b.takeAll(c.Checks, c, true, holds)
	if !r.SlotsFreed {
		return holds
	}
	// Its end gives no slot back any more, so none is taken.
	for i := len(r.Holds); i < len(holds); i++ {
		if h := &holds[i]; h.Kind == KindGauge && h.Held != 0 {
			b.touch(h.Counter, h.Kind).hold(-h.Held)
			h.Held = 0
		}
	}
	return holds
}
