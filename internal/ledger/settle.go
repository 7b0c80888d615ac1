// SPDX-License-Identifier: Apache-2.0

package ledger

import "github.com/weirhq/weir/internal/window"

// end settles, voids or undoes a reservation. Whoever removes its open row has
// ended it; for everybody later the event tells what happened (ENGINE 6).
func (b *batch) end(op *Op) Result {
	if op.Reservation == nil {
		return b.undoUnknown(op)
	}
	r := b.page.Open[op.Reservation.ID]
	if r == nil || r.Tombstone {
		return b.endLate(op)
	}
	kind := EventSettled
	switch op.Verb {
	case Void:
		kind = EventVoided
	case Undo:
		kind = EventUndone
	default:
	}
	attempts := []Attempt{{Model: r.Model, Provider: r.Provider, Price: r.Price}}
	if op.Verb == Settle && len(op.Settlement.Attempts) > 0 {
		attempts = op.Settlement.Attempts
	}
	b.finish(r, kind, attempts, op.Settlement)
	return Result{Verdict: Done, Reservation: r}
}

// undoUnknown ends an admission whose outcome could not be learnt in time: when
// it did happen everything goes back, else a tombstone stops it from happening.
func (b *batch) undoUnknown(op *Op) Result {
	r := b.page.Open[op.ID]
	if r != nil && !r.Tombstone {
		// Its counters were not named by the operation: the caller reads the
		// reservation that this answer carries and names them.
		return Result{Verdict: Missing, Reservation: r}
	}
	if _, ended := b.page.Ended[op.ID]; ended || r != nil {
		return Result{Verdict: Already}
	}
	b.entomb(op)
	return Result{Verdict: Done}
}

// finish releases every hold, charges the attempts and removes the open row.
func (b *batch) finish(r *Reservation, kind EventKind, attempts []Attempt, s *Settlement) {
	b.release(r, kind)
	var total Amounts
	for i := range attempts {
		a := Amounts{Spend: attempts[i].Spend, Tokens: attempts[i].Tokens, Input: attempts[i].Input}
		total.Spend = saturatingAdd(total.Spend, a.Spend)
		total.Tokens = saturatingAdd(total.Tokens, a.Tokens)
		b.event(r, kind, int32(i), &attempts[i], a)
	}
	b.correctBuckets(r, total)
	if kind == EventSettled || kind == EventSwept {
		b.quarter(r, total, 1)
	}
	b.close(r, kind, total, s)
}

// release takes a reservation's holds out of their counters.
func (b *batch) release(r *Reservation, kind EventKind) {
	for i := range r.Holds {
		h := &r.Holds[i]
		if h.Kind == KindGauge && r.SlotsFreed {
			continue
		}
		if h.Held != 0 {
			s := b.touch(h.Counter, h.Kind)
			s.hold(-h.Held)
			s.At = b.at
		}
		if kind == EventUndone && h.Kind == KindBucket && h.Charges == MetricNone {
			b.touch(h.Counter, h.Kind).spill(h.Limit, -h.Taken, b.at)
		}
	}
}

// correctBuckets replaces the estimate that a bucket took by what was used
// (RUN-1). A bucket of requests keeps what it took (RES-10).
func (b *batch) correctBuckets(r *Reservation, total Amounts) {
	for i := range r.Holds {
		h := &r.Holds[i]
		if h.Kind == KindBucket && h.Charges != MetricNone {
			if delta := saturatingSub(total.Of(h.Charges), h.Taken); delta != 0 {
				b.touch(h.Counter, h.Kind).spill(h.Limit, delta, b.at)
			}
		}
	}
}

// event charges one attempt to every counter and appends its event.
func (b *batch) event(r *Reservation, kind EventKind, attempt int32, a *Attempt, amounts Amounts) {
	e := Event{
		ID: r.ID, Workspace: r.Workspace, Attempt: attempt, Kind: kind, At: b.at, Place: b.place,
		AdmittedAt: r.At, Subjects: r.Subjects, Model: a.Model, Provider: a.Provider, Price: a.Price,
		Spend: amounts.Spend, Tokens: amounts.Tokens, Detail: a.Detail,
	}
	e.Charges = b.chargeAll(r, amounts)
	b.changes.Events = append(b.changes.Events, e)
}

func (b *batch) chargeAll(r *Reservation, amounts Amounts) []Charge {
	var charges []Charge
	for i := range r.Holds {
		h := &r.Holds[i]
		amount := amounts.Of(h.Charges)
		if amount == 0 {
			continue
		}
		if c := b.charge(h, amount, r.At); c != nil {
			charges = append(charges, *c)
		}
	}
	return charges
}

func (b *batch) quarter(r *Reservation, total Amounts, requests int64) {
	b.changes.Quarters = append(b.changes.Quarters, QuarterSum{
		Workspace: r.Workspace, Key: r.Subjects.Key, Quarter: window.QuarterAt(r.At),
		Spend: total.Spend, Tokens: total.Tokens, Requests: requests,
	})
}

// close removes the open row and writes the request's call record.
func (b *batch) close(r *Reservation, kind EventKind, total Amounts, s *Settlement) {
	delete(b.page.Open, r.ID)
	b.page.Ended[r.ID] = Ending{Kind: kind}
	b.changes.Closed = append(b.changes.Closed, r)
	call := Call{
		ID: r.ID, Workspace: r.Workspace, Key: r.Subjects.Key, Outcome: kind.String(), At: r.At, Place: r.Place,
		EndedAt: b.at, Generation: r.Generation, Model: r.Model, Provider: r.Provider, Price: r.Price,
		Subjects: r.Subjects, Worst: r.Worst, Spend: total.Spend, Tokens: total.Tokens,
		Checks: r.Checks, Holds: r.Holds, Note: r.Note, ClientID: r.ClientID,
	}
	if s != nil {
		call.End = s.Note
	}
	b.changes.Calls = append(b.changes.Calls, call)
}

// endLate handles an ending that came after another one. A real usage corrects
// an earlier sweep (RES-2); everything else was done already.
func (b *batch) endLate(op *Op) Result {
	ended, ok := b.page.Ended[op.Reservation.ID]
	if !ok {
		return Result{Verdict: Missing}
	}
	if ended.Kind != EventSwept || ended.Corrections > 0 {
		return Result{Verdict: Already}
	}
	var total Amounts
	if op.Verb == Settle {
		for i := range op.Settlement.Attempts {
			total.Spend = saturatingAdd(total.Spend, op.Settlement.Attempts[i].Spend)
			total.Tokens = saturatingAdd(total.Tokens, op.Settlement.Attempts[i].Tokens)
			total.Input = saturatingAdd(total.Input, op.Settlement.Attempts[i].Input)
		}
	}
	worst := op.Reservation.Worst
	delta := Amounts{
		Spend: saturatingSub(total.Spend, worst.Spend), Tokens: saturatingSub(total.Tokens, worst.Tokens),
		Input: saturatingSub(total.Input, worst.Input),
	}
	b.correct(op.Reservation, delta, &Entry{Kind: EventCorrection, Reason: "usage arrived after the sweep", Actor: "weir"})
	return Result{Verdict: Done, Reservation: op.Reservation}
}

// correct books a signed difference in the windows of the admission (RES-9).
func (b *batch) correct(r *Reservation, delta Amounts, entry *Entry) {
	ending := b.page.Ended[r.ID]
	e := Event{
		ID: r.ID, Workspace: r.Workspace, Attempt: ending.Corrections, Kind: EventCorrection, At: b.at, Place: b.place,
		AdmittedAt: r.At, Subjects: r.Subjects, Model: r.Model, Provider: r.Provider, Price: r.Price,
		Spend: delta.Spend, Tokens: delta.Tokens, Reason: entry.Reason, Actor: entry.Actor,
	}
	e.Charges = b.chargeAll(r, delta)
	for i := range r.Holds {
		h := &r.Holds[i]
		if h.Kind == KindBucket && h.Charges != MetricNone {
			b.touch(h.Counter, h.Kind).spill(h.Limit, delta.Of(h.Charges), b.at)
		}
	}
	ending.Corrections++
	b.page.Ended[r.ID] = ending
	b.changes.Events = append(b.changes.Events, e)
	b.quarter(r, delta, 0)
}

// sweep charges the worst case of a reservation that nobody settled (RES-5).
func (b *batch) sweep(op *Op) Result {
	r := b.page.Open[op.Reservation.ID]
	if r == nil {
		return Result{Verdict: Already}
	}
	if r.Tombstone {
		delete(b.page.Open, r.ID)
		b.changes.Closed = append(b.changes.Closed, r)
		return Result{Verdict: Done}
	}
	w := r.Worst
	b.finish(r, EventSwept, []Attempt{{
		Model: r.Model, Provider: r.Provider, Price: r.Price,
		Spend: w.Spend, Tokens: w.Tokens, Input: w.Input,
	}}, op.Settlement)
	return Result{Verdict: Done, Reservation: r}
}

// renew prolongs a running request; it touches no counter (RES-5).
func (b *batch) renew(op *Op) Result {
	r := b.page.Open[op.Reservation.ID]
	if r == nil || r.Tombstone {
		return Result{Verdict: Missing}
	}
	longer := *r
	longer.ExpiresAt = b.at + op.HoldMicros
	b.page.Open[r.ID] = &longer
	b.changes.Replaced = append(b.changes.Replaced, &longer)
	return Result{Verdict: Done, Reservation: &longer}
}

// fund books a top-up, a credit or an adjustment (BAL-3, BAL-5).
func (b *batch) fund(op *Op) Result {
	if _, ended := b.page.Ended[op.ID]; ended {
		return Result{Verdict: Already}
	}
	e, c := op.Entry, &op.Checks[0]
	amount := e.Amounts.Spend
	if amount == 0 || amount < 0 && e.Kind != EventAdjustment {
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

// adjust corrects an ended request by a signed amount (RES-9).
func (b *batch) adjust(op *Op) Result {
	if b.page.Open[op.Reservation.ID] != nil {
		return Result{Verdict: Invalid}
	}
	if _, ended := b.page.Ended[op.Reservation.ID]; !ended {
		return Result{Verdict: Missing}
	}
	b.correct(op.Reservation, op.Entry.Amounts, op.Entry)
	return Result{Verdict: Done, Reservation: op.Reservation}
}
