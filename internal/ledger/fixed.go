// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"slices"
)

// readFixed reads a counter that starts anew with each window.
func (c *Check) readFixed(s *State, r *Reading) {
	r.Amount, r.Used, r.Held = saturatingAdd(c.Amount, s.Raised), s.Settled, s.Held
	if _, end := c.Window.Bounds(c.Counter.Window); end < math.MaxInt64 {
		r.ResetsAt = end
	}
	c.readAmount(r, r.Amount)
}

// named tells whether every fixed check names the window that at lies in.
func (op *Op) named(at int64) bool {
	for list := range op.checkLists() {
		for i := range list {
			c := &list[i]
			if c.Kind != KindFixed {
				continue
			}
			if start, _ := c.Window.Bounds(at); c.Counter.Window != start {
				return false
			}
		}
	}
	return true
}

// Name gives every fixed check of the operation the window that at lies in; a
// move's keep the windows of its reservation's admission, and a seed's the one
// that its caller has counted. It writes into the
// operation's own checks, so it is for one that no book has seen.
func (op *Op) Name(at int64) {
	if op.Verb == Move && op.Reservation != nil {
		at = op.Reservation.At
	}
	if op.Verb == Amend && op.Entry != nil && op.Entry.Kind == EventSeed {
		return
	}
	for list := range op.checkLists() {
		for i := range list {
			if list[i].Kind == KindFixed {
				list[i].Counter.Window, _ = list[i].Window.Bounds(at)
			}
		}
	}
}

// Carried returns what to submit after the answer Carry: a copy that names the
// windows of the answer's instant and the reservation as the book has it. The
// operation itself stays as it was: a book may keep it.
func (op *Op) Carried(answer *Result) *Op {
	next := *op
	if answer.Reservation != nil {
		next.Reservation = answer.Reservation
	}
	next.Checks = slices.Clone(op.Checks)
	next.Candidates = slices.Clone(op.Candidates)
	for i := range next.Candidates {
		next.Candidates[i].Checks = slices.Clone(next.Candidates[i].Checks)
	}
	next.Name(answer.At)
	return &next
}
