// SPDX-License-Identifier: Apache-2.0

package ledger

// slotRetryMicros is the Retry-After of a concurrency refusal: nobody can say
// when a running request ends, so one second (ERR-2).
const slotRetryMicros = 1_000_000

// readGauge reads requests in flight.
func (c *Check) readGauge(s *State, r *Reading) {
	r.Held = s.Held
	c.readAmount(r, c.Amount)
	if !r.Pass {
		r.WaitMicros, r.Reason = slotRetryMicros, ""
	}
}

// freeSlots gives back the slots of a request whose process died. The row is
// marked, so that they never go back twice; its money and tokens stay held, since
// the process may return with what it used (ENGINE 9).
func (b *batch) freeSlots(op *Op) Result {
	r := b.row(op)
	if r == nil || r.Tombstone || r.SlotsFreed {
		return Result{Verdict: Already, Reservation: r}
	}
	if !op.knows(r) {
		return Result{Verdict: Carry, Reservation: r}
	}
	for i := range r.Holds {
		if h := &r.Holds[i]; h.Kind == KindGauge && h.Held != 0 {
			s := b.touch(h.Counter, h.Kind)
			s.hold(-h.Held)
			s.At = b.at
		}
	}
	freed := *r
	freed.SlotsFreed = true
	b.page.Open[r.ID] = &freed
	b.changes.Replaced = append(b.changes.Replaced, &freed)
	return Result{Verdict: Done, Reservation: &freed}
}
