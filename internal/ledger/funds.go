// SPDX-License-Identifier: Apache-2.0

package ledger

// readFunds reads a workspace's balance. Used is settled spend less what was
// paid in, so it is negative while money is there; available = Credit - Used.
// Observing, admission needs available > 0 (BAL-2); reserving (prepaid_hold),
// the worst case must fit (BAL-6).
func (c *Check) readFunds(s *State, r *Reading) {
	r.Used, r.Held = saturatingSub(s.Settled, s.Credits), s.Held
	c.readAmount(r, c.Credit)
	// A candidate that costs nothing still needs funds (PRC-4).
	if c.Mode == Reserve && r.Pass && r.Used >= c.Credit {
		r.Pass, r.WaitMicros = false, -1
	}
}

// fund books a top-up, a credit or an adjustment (BAL-3, BAL-5).
func (b *batch) fund(op *Op) Result {
	if _, ended := b.page.Ended[op.ID]; ended {
		return Result{Verdict: Already}
	}
	e, c := op.Entry, &op.Checks[0]
	amount := e.Amounts.Spend
	switch e.Kind {
	case EventTopUp, EventCredit:
		if amount <= 0 {
			return Result{Verdict: Invalid}
		}
	case EventAdjustment:
		if amount == 0 {
			return Result{Verdict: Invalid}
		}
	default:
		return Result{Verdict: Invalid}
	}
	s := b.touch(c.Counter, c.Kind)
	s.Credits = s.add(s.Credits, amount)
	s.At = b.at
	b.page.Ended[op.ID] = Ending{Kind: e.Kind}
	b.changes.Events = append(b.changes.Events, Event{
		ID: op.ID, Workspace: op.Workspace, Kind: e.Kind, At: b.at, Place: b.place, AdmittedAt: b.at,
		Spend: amount, Reason: e.Reason, Actor: e.Actor,
		Charges: []Charge{{Counter: c.Counter, Kind: c.Kind, Amount: amount, Credit: true}},
	})
	return Result{Verdict: Done, Readings: []Reading{b.reading(c, Amounts{}, false, nil)}}
}
