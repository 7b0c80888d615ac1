// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// maxAmended bounds the counters that one entry changes.
const maxAmended = 64

// amendable tells whether an entry says something that can be done to each of
// its checks: only a fixed window is raised or seeded, and a counter once.
func (op *Op) amendable() bool {
	if op.Entry == nil || op.ID.IsZero() || op.Reservation != nil || len(op.Candidates) > 0 ||
		len(op.Checks) < 1 || len(op.Checks) > maxAmended {
		return false
	}
	for i := range op.Checks {
		c := &op.Checks[i]
		amount := op.Entry.Amounts.Of(c.Charges)
		if op.Entry.Kind != EventReset && slices.ContainsFunc(op.Checks[:i], c.sameCounter) {
			return false
		}
		switch {
		case op.Entry.Kind == EventRaise && c.Kind == KindFixed && amount > 0:
		case op.Entry.Kind == EventSeed && c.Kind == KindFixed && amount >= 0:
		case op.Entry.Kind == EventReset && (c.Kind == KindFixed || c.Kind == KindDays || c.Kind.flows()):
		default:
			return false
		}
	}
	return true
}

func (c *Check) sameCounter(d Check) bool { return c.Counter == d.Counter }

// amend raises the amount of open windows, sets what they have used to zero, or
// books what they had used before their limit was made (BUD-8, BUD-9). It is one
// event whatever it changes, and an ID is booked once.
//
// Raise and reset mean the windows of now, and are carried when they name others.
// What a seed counts is one window's: it is booked there, open or not.
func (b *batch) amend(op *Op) Result {
	if _, ended := b.page.Ended[op.ID]; ended {
		return Result{Verdict: Already}
	}
	if b.page.Open[op.ID] != nil {
		return Result{Verdict: Invalid} // an id is used once
	}
	if op.Entry.Kind != EventSeed && !op.named(b.at) {
		return Result{Verdict: Carry}
	}
	e := Event{
		ID: op.ID, Workspace: op.Workspace, Kind: op.Entry.Kind, At: b.at, Place: b.place, AdmittedAt: b.at,
		Subjects: op.Subjects, Reason: op.Entry.Reason, Actor: op.Entry.Actor,
	}
	result := Result{Verdict: Done, Readings: make([]Reading, 0, len(op.Checks))}
	for i := range op.Checks {
		c := &op.Checks[i]
		amount := op.Entry.Amounts.Of(c.Charges)
		switch op.Entry.Kind {
		case EventRaise:
			b.raise(c, amount, &e)
		case EventReset:
			b.reset(c, &e)
		default:
			b.seed(c, amount, &e)
		}
		result.Readings = append(result.Readings, b.reading(c, Amounts{}, false, nil))
	}
	b.page.Ended[op.ID] = Ending{Kind: e.Kind}
	b.changes.Events = append(b.changes.Events, e)
	return result
}

func (b *batch) raise(c *Check, amount int64, e *Event) {
	s := b.touch(c.Counter, c.Kind)
	s.Raised = s.add(s.Raised, amount)
	s.At = b.at
	e.Charges = append(e.Charges, Charge{Counter: c.Counter, Kind: c.Kind, Amount: amount, Raise: true})
}

// seed charges what the caller has counted, like a settlement.
func (b *batch) seed(c *Check, amount int64, e *Event) {
	h := Hold{Counter: c.Counter, Kind: c.Kind, Charges: c.Charges, Alarm: c.alarm()}
	if charge := b.charge(&h, amount, b.at); charge != nil {
		e.Charges = append(e.Charges, *charge)
		b.announce(&h, amount)
	}
}

// reset sets to zero what a counter shows as used. The charge that does it is
// booked, so a counter stays the sum of its events; what is held stays. From then
// on nothing that was charged before is given back: the counter never becomes
// better than new (State.forgiven).
func (b *batch) reset(c *Check, e *Event) {
	s := b.touch(c.Counter, c.Kind)
	switch c.Kind {
	case KindDays:
		e.Charges = append(e.Charges, s.resetDays(c)...)
	case KindBucket, KindSliding:
		e.Flows = append(e.Flows, b.resetFlow(c)...)
		s.ResetAt = b.at
		return
	default:
		if s.Settled != 0 {
			e.Charges = append(e.Charges, Charge{Counter: c.Counter, Kind: c.Kind, Amount: -s.Settled})
		}
		s.Settled = 0
	}
	s.Warned, s.ResetAt, s.At = 0, b.at, b.at
}

// resetFlow fills a bucket, or empties a sliding window, and tells what flowed.
func (b *batch) resetFlow(c *Check) []CounterFlow {
	b.restart(c.Counter, c.Kind)
	b.flows = nil
	s := b.touch(c.Counter, c.Kind)
	if w := s.Sliding; w != nil && w.sum(b.at) > 0 { // else nothing flows, and nothing is to change
		w.drop(b.at)
		for _, m := range slices.Clone(w.Marks) {
			w.put(m.Slot, -m.Units)
			b.record(0, s, Flow{Since: s.At, Of: min(w.starts(m.Slot), b.at), Units: -m.Units})
			s.At = b.at
		}
	}
	now := *s
	if now.refill(s.rate(&Hold{Limit: c.Amount}), b.at); now.Deficit > 0 {
		flow := Flow{Since: s.At, Units: -now.Deficit}
		s.Rate, s.At, s.Deficit = s.rate(&Hold{Limit: c.Amount}), b.at, 0
		s.Returned += now.Deficit
		b.record(0, s, flow)
	}
	return b.counterFlows([]Hold{{Counter: c.Counter, Kind: c.Kind}})
}

// starts is an instant in a slot.
func (w *Sliding) starts(slot int64) int64 {
	if w.Exact {
		return slot
	}
	return saturatingMul(ceilDiv(saturatingMul(slot, w.millis()), slotsPerWindow), 1000)
}

// forgiven tells whether what was charged or taken at an instant was reset since.
// An instant that nobody knows (0) is taken for one before.
func (s *State) forgiven(at int64) bool { return s.ResetAt != 0 && at <= s.ResetAt }
