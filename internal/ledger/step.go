// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// batch is one run of Batch: the page it works on and what it has changed.
type batch struct {
	page    *Page
	at      int64
	place   int32
	dirty   map[Counter]bool
	changes *Changes
}

// Batch decides ops in order at one instant (Unix microseconds), each seeing the
// effect of the earlier ones, and returns one result for each. It changes the
// page's working copies and nothing else, and never fails: an operation that
// breaks a bound gets Invalid.
func Batch(page *Page, ops []*Op, at int64) ([]Result, *Changes) {
	b := &batch{page: page, at: at, dirty: make(map[Counter]bool, 8), changes: &Changes{}}
	results := make([]Result, len(ops))
	for i, op := range ops {
		b.place = int32(i)
		results[i] = b.step(op)
		results[i].At, results[i].Place = at, b.place
	}
	b.changes.Counters = make([]Counter, 0, len(b.dirty))
	for c := range b.dirty {
		b.changes.Counters = append(b.changes.Counters, c)
	}
	slices.SortFunc(b.changes.Counters, func(x, y Counter) int {
		if x.Less(y) {
			return -1
		}
		return 1
	})
	return results, b.changes
}

func (b *batch) step(op *Op) Result {
	if !op.valid() {
		return Result{Verdict: Invalid}
	}
	if op.Generation > 0 && op.Generation < b.page.Generations[op.Workspace] {
		return Result{Verdict: Stale}
	}
	switch op.Verb {
	case Admit:
		return b.admit(op)
	case Move:
		return b.move(op)
	case Settle, Void, Undo:
		return b.end(op)
	case Renew:
		return b.renew(op)
	case Sweep:
		return b.sweep(op)
	case Fund:
		return b.fund(op)
	case Adjust:
		return b.adjust(op)
	case Read:
		return b.read(op)
	default:
		return Result{Verdict: Invalid}
	}
}

func (op *Op) valid() bool {
	checks := 0
	for _, list := range op.checkLists() {
		checks += len(list)
		for i := range list {
			if w := list[i].Counter.Workspace; list[i].Kind != KindPolicy && w != op.Workspace {
				return false
			}
		}
	}
	if checks > MaxChecks || len(op.Candidates) > MaxCandidates || op.Workspace == "" {
		return false
	}
	switch op.Verb {
	case Admit:
		return !op.ID.IsZero()
	case Move, Settle, Void, Renew, Sweep, Adjust:
		return op.Reservation != nil && op.Reservation.Workspace == op.Workspace &&
			(op.Verb != Settle || op.Settlement != nil && len(op.Settlement.Attempts) <= MaxAttempts) &&
			(op.Verb != Adjust || op.Entry != nil)
	case Undo:
		return op.Reservation != nil || !op.ID.IsZero()
	case Fund:
		return op.Entry != nil && len(op.Checks) == 1 && op.Checks[0].Kind == KindFunds && !op.ID.IsZero()
	case Read:
		return true
	default:
		return false
	}
}

// state returns the working copy of a counter. A counter that the book did not
// load starts at zero; books load what Needs names, so that is a new row.
func (b *batch) state(c Counter, kind Kind) *State {
	s := b.page.Counters[c]
	if s == nil {
		s = &State{Kind: kind, At: b.at}
		b.page.Counters[c] = s
	}
	if s.Kind == 0 {
		s.Kind = kind
	}
	return s
}

// touch is state for a change: the row is stored at the end of the batch.
func (b *batch) touch(c Counter, kind Kind) *State {
	s := b.state(c, kind)
	b.dirty[c] = true
	return s
}

// reading evaluates one check. own is what the request itself holds already (a
// move); it does not stand in its own way.
func (b *batch) reading(c *Check, wants Amounts, free bool, own *Hold) Reading {
	r := Reading{Check: c, Wanted: wants.Of(c.Wants)}
	if c.Kind == KindPolicy {
		r.Pass = c.Mode == Track || c.Amount > 0 && b.at < c.Amount
		if !r.Pass {
			r.WaitMicros = -1
		}
		return r
	}
	s := *b.state(c.Counter, c.Kind)
	if own != nil {
		s.Held = saturatingSub(s.Held, own.Held)
		if c.Kind == KindBucket {
			s.spill(own.Limit, -own.Taken, b.at)
		}
	}
	switch c.Kind {
	case KindFixed:
		c.readFixed(&s, &r, b.at)
	case KindDays:
		c.readDays(&s, &r, b.at)
	case KindBucket:
		c.readBucket(&s, &r, b.at)
	case KindGauge:
		c.readGauge(&s, &r)
	case KindFunds:
		c.readFunds(&s, &r)
	case KindPolicy:
	default:
		r.WaitMicros = -1
	}
	if free && c.Wants == Spend && c.Kind != KindFunds {
		r.Pass, r.WaitMicros, r.Reason = true, 0, ""
	}
	return r
}

// take charges an admitted request to one check's counter and returns what to
// undo or settle later; nil when the check has no counter.
func (b *batch) take(c *Check, wants Amounts) *Hold {
	if c.Kind == KindPolicy {
		return nil
	}
	h := &Hold{Counter: c.Counter, Kind: c.Kind, Wants: c.Wants, Charges: c.Charges}
	want := wants.Of(c.Wants)
	switch c.Kind {
	case KindBucket:
		s := b.touch(c.Counter, c.Kind)
		s.spill(c.Amount, want, b.at)
		h.Taken, h.Limit = want, c.Amount
	case KindGauge:
		s := b.touch(c.Counter, c.Kind)
		s.hold(want)
		s.At, h.Held = b.at, want
	case KindFixed, KindFunds:
		if c.Mode == Reserve && want != 0 {
			s := b.touch(c.Counter, c.Kind)
			s.hold(want)
			s.At, h.Held = b.at, want
		}
	case KindDays:
		h.Zone, h.ZoneEpoch = zoneName(c.Zone), c.ZoneEpoch
	case KindPolicy:
	}
	return h
}

// charge adds a settled amount to a hold's counter and returns the event's line.
func (b *batch) charge(h *Hold, amount, admittedAt int64) *Charge {
	switch h.Kind {
	case KindBucket, KindGauge, KindPolicy:
		return nil
	case KindFixed, KindFunds:
		s := b.touch(h.Counter, h.Kind)
		s.settle(amount)
		s.At = b.at
	case KindDays:
		s := b.touch(h.Counter, h.Kind)
		if s.Days == nil {
			s.Days = &Days{Zone: h.Zone, ZoneEpoch: h.ZoneEpoch}
		}
		s.settle(amount)
		s.chargeDay(amount, admittedAt)
		s.At = b.at
	}
	if amount == 0 {
		return nil
	}
	return &Charge{Counter: h.Counter, Kind: h.Kind, Amount: amount}
}
