// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"
)

// A sliding window is half open: what was taken at t counts at every instant of
// [t, t+length). So two requests that are exactly one window apart lie in no
// interval of that length together, and neither stands in the other's way
// (RAT-1).
const (
	// slotsPerWindow is how finely sums are kept (ENGINE 8). With the one that
	// now lies in, slotsPerWindow+1 of them cover the window.
	slotsPerWindow = 60
	// maxStamps: request rules with a limit up to it keep exact instants.
	maxStamps = 128
	// minLength and maxLength bound a window, in microseconds (RAT-7).
	minLength, maxLength = 1_000_000, 86_400_000_000
)

// Sliding is what a sliding window holds: units by instant, or summed by a
// sixtieth of the window.
type Sliding struct {
	// Length of the window in microseconds, as of the first taking into it.
	Length int64
	// Exact: slots are the instants of takings themselves; else sub-buckets.
	Exact bool
	// Restarts counts how often the clock was set back and units were moved: of a
	// request from before, nobody can tell any more which are its own.
	Restarts int64
	// Marks are in the order of their slots and hold more than zero units.
	Marks []Mark
}

// Mark is what was taken in one slot: an instant in Unix microseconds, or
// floor(ms × 60 / window in ms) (ENGINE 8).
type Mark struct{ Slot, Units int64 }

func (w *Sliding) clone() *Sliding {
	if w == nil {
		return nil
	}
	c := *w
	c.Marks = slices.Clone(w.Marks)
	return &c
}

func (w *Sliding) millis() int64 { return max(1, w.Length/1000) }

// slot is the one that an instant lies in.
func (w *Sliding) slot(at int64) int64 {
	if w.Exact {
		return at
	}
	return saturatingMul(at/1000, slotsPerWindow) / w.millis()
}

// ends is the first instant at which a slot counts no more: the window after its
// instant, or for a sum the first millisecond of the slot a window after its own.
func (w *Sliding) ends(slot int64) int64 {
	if w.Exact {
		return saturatingAdd(slot, w.Length)
	}
	return saturatingMul(ceilDiv(saturatingMul(saturatingAdd(slot, slotsPerWindow+1), w.millis()), slotsPerWindow), 1000)
}

// each calls fn for what counts at an instant, the oldest first, until it returns
// false. What lies in the future counts as taken now (ENGINE 7).
func (w *Sliding) each(at int64, fn func(ends, units int64) bool) {
	now := w.slot(at)
	for _, m := range w.Marks {
		if ends := w.ends(min(m.Slot, now)); ends > at && !fn(ends, m.Units) {
			return
		}
	}
}

// sum is what the window holds at an instant.
func (w *Sliding) sum(at int64) int64 {
	var total int64
	w.each(at, func(_, units int64) bool {
		total = saturatingAdd(total, units)
		return true
	})
	return total
}

// freesAt is the instant at which so many units will have slid out.
func (w *Sliding) freesAt(units, at int64) int64 {
	free := at
	w.each(at, func(ends, n int64) bool {
		units, free = saturatingSub(units, n), ends
		return units > 0
	})
	return free
}

// emptyAt is the instant at which all will have slid out.
func (w *Sliding) emptyAt(at int64) int64 {
	empty := at
	w.each(at, func(ends, _ int64) bool {
		empty = ends
		return true
	})
	return empty
}

// retreat brings what lies in the future to the present, its amount kept: the
// clock was ahead (ENGINE 7).
func (w *Sliding) retreat(at int64) {
	now, moved := w.slot(at), int64(0)
	for len(w.Marks) > 0 {
		last := w.Marks[len(w.Marks)-1]
		if last.Slot <= now {
			break
		}
		moved = saturatingAdd(moved, last.Units)
		w.Marks = w.Marks[:len(w.Marks)-1]
	}
	if moved > 0 {
		w.put(now, moved)
		w.Restarts++
	}
}

// drop forgets what has slid out.
func (w *Sliding) drop(at int64) {
	w.Marks = slices.DeleteFunc(w.Marks, func(m Mark) bool { return w.ends(m.Slot) <= at })
}

func (w *Sliding) find(slot int64) (index int, found bool) {
	return slices.BinarySearchFunc(w.Marks, slot, func(m Mark, slot int64) int { return cmp.Compare(m.Slot, slot) })
}

// put adds units, or takes back at most what is there.
func (w *Sliding) put(slot, units int64) {
	i, found := w.find(slot)
	if !found {
		if units > 0 {
			w.Marks = slices.Insert(w.Marks, i, Mark{Slot: slot, Units: units})
		}
		return
	}
	m := &w.Marks[i]
	if m.Units = max(0, saturatingAdd(m.Units, units)); m.Units == 0 {
		w.Marks = slices.Delete(w.Marks, i, i+1)
	}
}

// coarsen makes sums of instants. None of them counts for less time by that.
func (w *Sliding) coarsen() {
	exact := w.Marks
	w.Exact, w.Marks = false, nil
	for _, m := range exact {
		w.put(w.slot(m.Slot), m.Units)
	}
}

// shape settles how the units of a taking are kept. An empty window takes what
// it is asked for; sums are never made instants again before that (ENGINE 8).
func (w *Sliding) shape(length int64, exact bool) {
	switch {
	case len(w.Marks) == 0:
		w.Length, w.Exact = length, exact
	case w.Exact && !exact:
		w.coarsen()
	}
}

// slides tells whether a sliding check is within its bounds: a rule counts
// requests or tokens, and neither its limit nor its window is 0 (RAT-7).
func (c *Check) slides() bool {
	length := c.Window.Length
	if c.Mode != Take && c.Mode != Track || c.Amount < 1 || length < minLength || length > maxLength || length%1000 != 0 {
		return false
	}
	switch c.Wants {
	case Requests:
		return c.Charges == MetricNone
	case Tokens, Input:
		return c.Charges == MetricNone || c.Charges == Tokens || c.Charges == Uncached
	default:
		return false
	}
}

// stamps tells whether a rule keeps exact instants.
func (c *Check) stamps() bool { return c.Wants == Requests && c.Amount <= maxStamps }

// readSliding admits when what the window holds and the want fit into the limit.
func (c *Check) readSliding(s *State, r *Reading, at int64) {
	w := s.Sliding
	if w == nil {
		w = &Sliding{}
	}
	r.Used = w.sum(at)
	over := saturatingSub(saturatingAdd(r.Used, r.Wanted), c.Amount)
	r.Pass = over <= 0 || c.Mode == Track
	r.ResetsAt = w.emptyAt(at)
	switch {
	case r.Pass:
	case r.Wanted > c.Amount:
		r.WaitMicros, r.Reason = -1, ReasonLarger
	default:
		r.WaitMicros = saturatingSub(w.freesAt(over, at), at)
	}
}

// FullAgain is the instant at which a sliding check has its whole limit free
// again if what it takes at an instant is the last (RAT-3).
func (c *Check) FullAgain(at int64) int64 {
	w := Sliding{Length: c.Window.Length, Exact: c.stamps()}
	return w.ends(w.slot(at))
}

// enter takes units into the window at an instant.
func (s *State) enter(c *Check, units, at int64) {
	if s.Sliding == nil {
		s.Sliding = &Sliding{}
	}
	w := s.Sliding
	w.drop(at)
	w.shape(c.Window.Length, c.stamps())
	w.put(w.slot(at), units)
	s.add(w.sum(at), 0) // marks a sum that was cut
	s.At = at
}

// owes is the change that a correction by units makes to the window of a hold's
// taking, and the instant that it is charged to. Zero: it has slid out, or there
// is nothing to give back.
//
// It is the instant of the taking (RES-10). After the clock was set back the
// request's own units may lie elsewhere: then none are given back, and what it
// used beyond is charged no later than now.
func (s *State) owes(h *Hold, units, at int64) (change, of int64) {
	w, of := s.Sliding, min(h.At, at)
	if w == nil || w.ends(w.slot(of)) <= at {
		return 0, of
	}
	if units > 0 {
		return units, of
	}
	if s.forgiven(h.At) {
		return 0, of
	}
	i, found := w.find(w.slot(of))
	if !found || h.Level != w.Restarts {
		return 0, of
	}
	return max(units, -w.Marks[i].Units), of
}

// correct charges to an instant what owes has said.
func (s *State) correct(change, of, at int64) {
	w := s.Sliding
	w.drop(at)
	w.put(w.slot(of), change)
	s.add(w.sum(at), 0) // marks a sum that was cut
	s.At = at
}
