// SPDX-License-Identifier: Apache-2.0

package ledger

// move hands a reservation to the next candidate that fits, all or nothing: a
// dearer one tops up, a cheaper one releases the difference. RPM and slots are
// charged once (ORD-4). A refused move leaves the reservation as it was.
func (b *batch) move(op *Op) Result {
	r := b.page.Open[op.Reservation.ID]
	if r == nil || r.Tombstone {
		return Result{Verdict: Missing}
	}
	if !b.named(op) {
		return Result{Verdict: Carry}
	}
	chosen, result := b.choose(op, func(c *Check) *Hold { return findHold(r.Holds, c) })
	if result.Verdict == Refused {
		return result
	}
	moved := *r
	c := &op.Candidates[chosen]
	moved.Model, moved.Provider, moved.Price = c.Model, c.Provider, c.Price
	moved.Candidate, moved.Worst, moved.Checks = int32(chosen), c.Wants, recordChecks(result.Readings)
	moved.Holds = b.moveHolds(r, op.Checks, c)
	b.page.Open[r.ID] = &moved
	b.changes.Replaced = append(b.changes.Replaced, &moved)
	result.Reservation = &moved
	return result
}

// moveHolds gives back what the last candidate held and takes what the next one
// asks for. What admission counts once (requests, slots) stays as it was taken.
func (b *batch) moveHolds(r *Reservation, common []Check, c *Candidate) []Hold {
	var holds []Hold
	for i := range r.Holds {
		h := &r.Holds[i]
		if h.Wants == Requests || h.Wants == Slots {
			holds = append(holds, *h)
			continue
		}
		if h.Held != 0 {
			s := b.touch(h.Counter, h.Kind)
			s.hold(-h.Held)
			s.At = b.at
		}
		if h.Kind == KindBucket {
			b.touch(h.Counter, h.Kind).spill(h.Limit, -h.Taken, b.at)
		}
	}
	holds = b.takeAll(common, c, holds)
	return b.takeAll(c.Checks, c, holds)
}
