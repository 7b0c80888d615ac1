// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// batch is one run of Batch: the page it works on and what it has changed.
type batch struct {
	page     *Page
	counters *Near // of page
	at       int64
	place    int32
	dirty    map[*State]Counter // states are found faster than keys
	changes  *Changes
	flows    []Flow   // of the operation that is being decided
	charges  []Charge // of the event that is being made
}

// Batch decides ops in order at one instant (Unix microseconds), each seeing the
// effect of the earlier ones, and returns one result for each. It changes the
// page's working copies and nothing else, and never fails: an operation that
// breaks a bound gets Invalid.
func Batch(page *Page, ops []*Op, at int64) ([]Result, *Changes) {
	page.prepare()
	b := &batch{page: page, counters: Nearby(page), at: at, dirty: make(map[*State]Counter, 8), changes: &Changes{}}
	b.changes.expect(ops)
	results := make([]Result, len(ops))
	for i, op := range ops {
		b.place = int32(i)
		results[i] = b.step(op)
		results[i].At, results[i].Place = at, b.place
	}
	b.changes.Counters = make([]Counter, 0, len(b.dirty))
	for _, c := range b.dirty {
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

// expect makes room for what ends: their records are long, and lists that grow one
// by one are copied as often.
func (c *Changes) expect(ops []*Op) {
	ending := 0
	for _, op := range ops {
		if op.Settlement != nil {
			ending++
		}
	}
	c.Events, c.Calls = slices.Grow(c.Events, ending), slices.Grow(c.Calls, ending)
}

// prepare makes the maps that a book had nothing for.
func (p *Page) prepare() {
	if p.Counters == nil {
		p.Counters = make(map[Counter]*State)
	}
	if p.Open == nil {
		p.Open = make(map[ID]*Reservation)
	}
	if p.Ended == nil {
		p.Ended = make(map[ID]Ending)
	}
}

func (b *batch) step(op *Op) Result {
	if !op.valid() {
		return Result{Verdict: Invalid}
	}
	if op.Verb == Admit && op.Again {
		// Before anything else may answer: what happened, happened.
		if known, ok := b.lookUp(op); ok {
			return known
		}
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
	case Amend:
		return b.amend(op)
	case FreeSlots:
		return b.freeSlots(op)
	default:
		return Result{Verdict: Invalid}
	}
}

func (op *Op) valid() bool {
	if op.Workspace == "" || len(op.Candidates) > MaxCandidates || op.HoldMicros < 0 {
		return false
	}
	checks := 0
	for list := range op.checkLists() {
		checks += len(list)
		for i := range list {
			if !list[i].valid(op.Workspace) {
				return false
			}
		}
	}
	for i := range op.Candidates {
		if op.Candidates[i].Wants.negative() || op.Candidates[i].Worst.negative() {
			return false
		}
	}
	if checks > MaxChecks || op.Reservation != nil && op.Reservation.Workspace != op.Workspace {
		return false
	}
	switch op.Verb {
	case Admit:
		return !op.ID.IsZero()
	case Move, Void, Renew, Sweep, FreeSlots:
		return op.Reservation != nil
	case Settle:
		return op.Reservation != nil && op.Settlement.valid()
	case Undo:
		return op.Reservation != nil || !op.ID.IsZero()
	case Fund:
		return op.Entry != nil && len(op.Checks) == 1 && op.Checks[0].Kind == KindFunds && !op.ID.IsZero()
	case Adjust:
		return op.Reservation != nil && op.Entry != nil
	case Read:
		return true
	case Amend:
		return op.amendable()
	default:
		return false
	}
}

func (c *Check) valid(workspace string) bool {
	switch {
	case c.Kind == KindPolicy:
		return true
	case c.Kind < KindPolicy || c.Kind > KindRoster || c.Mode < Track || c.Mode > Take:
		return false
	case c.Kind == KindSliding && !c.slides(), c.Kind == KindRoster && !c.lists(), !c.warns():
		return false
	default:
		return c.Counter.Workspace == workspace && c.Amount >= 0 && c.Credit >= 0
	}
}

func (s *Settlement) valid() bool {
	if s == nil || len(s.Attempts) > MaxAttempts {
		return false
	}
	for i := range s.Attempts {
		if s.Attempts[i].amounts().negative() {
			return false
		}
	}
	return true
}

// peek is a counter's state to look at: a copy, so that a refused operation
// leaves no trace.
func (b *batch) peek(c Counter, kind Kind) State {
	if s := b.counters.Find(c); s != nil {
		return *s
	}
	return State{Kind: kind, At: b.at}
}

// touch is a counter's working copy for a change: its row is stored at the end
// of the batch. A counter that the book found no row for starts at zero.
func (b *batch) touch(c Counter, kind Kind) *State {
	s := b.counters.Find(c)
	if s == nil {
		s = &State{Kind: kind, At: b.at}
		b.counters.Put(c, s)
	}
	if s.Kind == 0 {
		s.Kind = kind
	}
	b.dirty[s] = c
	return s
}

// row is the open row of the operation's reservation or tombstone; nil when it
// has ended or never was.
func (b *batch) row(op *Op) *Reservation {
	r := b.page.Open[op.Reservation.ID]
	if r == nil || r.Workspace != op.Workspace {
		return nil
	}
	return r
}

// knows tells whether the operation named every counter that r holds. It does
// not when r was moved after its caller read it; then the book may not have
// loaded them, and the operation is carried.
func (op *Op) knows(r *Reservation) bool {
	known := op.Reservation.Holds
	for i := range r.Holds {
		c := r.Holds[i].Counter
		if i < len(known) && known[i].Counter == c {
			continue
		}
		if !slices.ContainsFunc(known, func(h Hold) bool { return h.Counter == c }) {
			return false
		}
	}
	return true
}
