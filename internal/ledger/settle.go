// SPDX-License-Identifier: Apache-2.0

package ledger

import "github.com/weirhq/weir/internal/window"

// end settles, voids or undoes a reservation. Whoever removes its open row has
// ended it; for everybody later the event tells what happened (ENGINE 6).
func (b *batch) end(op *Op) Result {
	if op.Reservation == nil {
		return b.undoUnknown(op)
	}
	r := b.row(op)
	if r == nil || r.Tombstone {
		return b.endLate(op)
	}
	if !op.knows(r) {
		return Result{Verdict: Carry, Reservation: r}
	}
	kind := EventSettled
	switch op.Verb {
	case Void:
		kind = EventVoided
	case Undo:
		kind = EventUndone
	default:
	}
	// Without a usage there is one event all the same: how it ended.
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
	if r != nil && !r.Tombstone && r.Workspace == op.Workspace {
		// The operation could not name its counters: the next one can.
		return Result{Verdict: Carry, Reservation: r}
	}
	ended, ok := b.page.Ended[op.ID]
	switch {
	case ended.Swept != nil && ended.Corrections == 0:
		// No provider saw what the sweep has charged: it is corrected (RES-2).
		return Result{Verdict: Carry, Reservation: ended.Swept}
	case ok || r != nil:
		return Result{Verdict: Already}
	}
	b.entomb(op)
	return Result{Verdict: Done}
}

// finish releases every hold, charges the attempts and removes the open row.
func (b *batch) finish(r *Reservation, kind EventKind, attempts []Attempt, s *Settlement) {
	b.release(r, kind, attempts)
	var total Amounts
	for i := range attempts {
		a := attempts[i].amounts()
		total.Spend = saturatingAdd(total.Spend, a.Spend)
		total.Tokens = saturatingAdd(total.Tokens, a.Tokens)
		b.event(r, kind, int32(i), &attempts[i])
	}
	for i := range r.Holds {
		b.announce(&r.Holds[i], r.Holds[i].due(attempts))
	}
	if kind == EventSettled || kind == EventSwept {
		b.quarter(r, total, 1)
	}
	b.close(r.skipped(attempts), kind, total, s)
}

// release takes a reservation's holds out of their counters, and puts what was
// used in the place of the estimate that a bucket or a window took (RUN-1, RAT-1).
// Those of requests keep what they took, unless no provider saw the request
// (RES-10).
func (b *batch) release(r *Reservation, kind EventKind, attempts []Attempt) {
	b.flows = nil
	for i := range r.Holds {
		h := &r.Holds[i]
		switch {
		case h.Kind == KindGauge && r.SlotsFreed:
		case !h.Kind.flows() || kind == EventUndone:
			b.giveBack(i, h, r.At)
		case h.Charges != MetricNone:
			b.settleFlow(i, h, saturatingSub(h.due(attempts), h.Taken), r.At)
		}
	}
}

// event charges one attempt to every counter that bears it and appends its event.
func (b *batch) event(r *Reservation, kind EventKind, attempt int32, a *Attempt) {
	e := Event{
		ID: r.ID, Workspace: r.Workspace, Attempt: attempt, Kind: kind, At: b.at, Place: b.place,
		AdmittedAt: r.At, Subjects: r.Subjects, Model: a.Model, Provider: a.Provider, Price: a.Price,
		Spend: a.Spend, Tokens: a.Tokens, Detail: a.Detail,
	}
	one := []Attempt{*a}
	b.charges = b.charges[:0]
	for i := range r.Holds {
		if c := b.charge(&r.Holds[i], r.Holds[i].due(one), r.At); c != nil {
			b.charges = append(b.charges, *c)
		}
	}
	e.Charges = append(e.Charges, b.charges...)
	b.changes.Events = append(b.changes.Events, e)
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
	if kind == EventSwept {
		swept := *r
		swept.EndedAt = b.at
		b.page.Ended[r.ID] = Ending{Kind: kind, Swept: &swept}
	}
	b.changes.Closed = append(b.changes.Closed, r)
	call := Call{
		ID: r.ID, Workspace: r.Workspace, Key: r.Subjects.Key, Outcome: kind.String(), At: r.At, Place: r.Place,
		EndedAt: b.at, Generation: r.Generation, Model: r.Model, Provider: r.Provider, Price: r.Price,
		Subjects: r.Subjects, Worst: r.Worst, Spend: total.Spend, Tokens: total.Tokens,
		Checks: r.Checks, Holds: r.Holds, Flows: joined(r.Flows, b.flows), Note: r.Note, ClientID: r.ClientID,
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
	r := op.Reservation
	if s := ended.Swept; s != nil && (s.Model != r.Model || s.Provider != r.Provider || s.Worst != r.Worst || !op.knows(s)) {
		// It was moved after its caller read it.
		return Result{Verdict: Carry, Reservation: s}
	}
	if ended.Swept != nil {
		r = ended.Swept
	}
	swept := r.worstCase()
	var attempts []Attempt
	if op.Verb == Settle {
		attempts = op.Settlement.Attempts
	}
	entry := &Entry{Kind: EventCorrection, Reason: "usage arrived after the sweep", Actor: "weir"}
	for i := range attempts {
		entry.Amounts.Spend = saturatingAdd(entry.Amounts.Spend, attempts[i].Spend)
		entry.Amounts.Tokens = saturatingAdd(entry.Amounts.Tokens, attempts[i].Tokens)
	}
	entry.Amounts.Spend = saturatingSub(entry.Amounts.Spend, swept[0].Spend)
	entry.Amounts.Tokens = saturatingSub(entry.Amounts.Tokens, swept[0].Tokens)
	b.correct(r, entry, func(i int, h *Hold) int64 {
		delta := saturatingSub(h.due(attempts), h.due(swept))
		whole := *h
		if h.Kind == KindBucket {
			// The sweep took the rest of the worst case, later than the admission.
			whole.Level = saturatingAdd(h.Level, saturatingMul(bucketScale, max(0, saturatingSub(h.due(swept), h.Taken))))
		}
		if h.Kind.flows() && h.Charges != MetricNone {
			b.settleFlow(i, &whole, delta, r.At)
		}
		return delta
	})
	return Result{Verdict: Done, Reservation: r}
}

// correct books a signed difference in the windows of the admission (RES-9).
// delta is what each hold's counter gets of it.
func (b *batch) correct(r *Reservation, entry *Entry, delta func(int, *Hold) int64) {
	b.flows = nil
	ending := b.page.Ended[r.ID]
	e := Event{
		ID: r.ID, Workspace: r.Workspace, Attempt: ending.Corrections, Kind: EventCorrection, At: b.at, Place: b.place,
		AdmittedAt: r.At, Subjects: r.Subjects, Model: r.Model, Provider: r.Provider, Price: r.Price,
		Spend: entry.Amounts.Spend, Tokens: entry.Amounts.Tokens, Reason: entry.Reason, Actor: entry.Actor,
	}
	for i := range r.Holds {
		h := &r.Holds[i]
		amount := delta(i, h)
		if s := b.counters.Find(h.Counter); amount < 0 && s != nil && s.forgiven(r.EndedAt) {
			continue // what it would give back was reset
		}
		if c := b.charge(h, amount, r.At); c != nil {
			e.Charges = append(e.Charges, *c)
			b.announce(h, amount)
		}
	}
	e.Flows = b.counterFlows(r.Holds)
	ending.Corrections++
	b.page.Ended[r.ID] = ending
	b.changes.Events = append(b.changes.Events, e)
	b.quarter(r, entry.Amounts, 0)
}

// sweep charges the worst case of a reservation that nobody settled (RES-5).
func (b *batch) sweep(op *Op) Result {
	r := b.row(op)
	if r == nil {
		return Result{Verdict: Already}
	}
	if r.Tombstone {
		delete(b.page.Open, r.ID)
		b.changes.Closed = append(b.changes.Closed, r)
		return Result{Verdict: Done}
	}
	if !op.knows(r) {
		return Result{Verdict: Carry, Reservation: r}
	}
	b.finish(r, EventSwept, r.worstCase(), op.Settlement)
	return Result{Verdict: Done, Reservation: r}
}

// worstCase is the usage that a sweep charges.
func (r *Reservation) worstCase() []Attempt {
	return []Attempt{{
		Model: r.Model, Provider: r.Provider, Price: r.Price,
		Spend: r.Worst.Spend, Tokens: r.Worst.Tokens, Input: r.Worst.Input, Uncached: r.Worst.Tokens,
	}}
}

// renew prolongs a running request; it touches no counter (RES-5).
func (b *batch) renew(op *Op) Result {
	r := b.row(op)
	if r == nil || r.Tombstone {
		return Result{Verdict: Missing}
	}
	longer := *r
	longer.ExpiresAt = b.at + op.HoldMicros
	b.page.Open[r.ID] = &longer
	b.changes.Replaced = append(b.changes.Replaced, &longer)
	return Result{Verdict: Done, Reservation: &longer}
}

// adjust corrects an ended request by a signed amount, in the sliding windows of
// its admission too (RES-9). Buckets are left alone: their minute has passed.
func (b *batch) adjust(op *Op) Result {
	r, entry := op.Reservation, op.Entry
	ended, ok := b.page.Ended[r.ID]
	switch {
	case b.page.Open[r.ID] != nil:
		return Result{Verdict: Invalid}
	case !ok:
		return Result{Verdict: Missing}
	case entry.Number < ended.Corrections:
		return Result{Verdict: Already}
	case entry.Number > ended.Corrections:
		return Result{Verdict: Invalid}
	}
	b.correct(r, entry, func(i int, h *Hold) int64 {
		if h.Skipped || !h.bears(r.Model, r.Provider) {
			return 0
		}
		delta := entry.Amounts.Of(h.Charges)
		if h.Kind == KindSliding {
			b.settleFlow(i, h, delta, r.At)
		}
		return delta
	})
	return Result{Verdict: Done, Reservation: r}
}
