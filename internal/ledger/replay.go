// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
	"time"
)

const (
	// refillWindow is as much of a bucket's past as is replayed before its last
	// change: what was earlier is taken as recorded.
	refillWindow = 2 * 60_000_000
	// maxPending bounds the flows of one counter that wait for an earlier one. The
	// call log comes by ids, so only requests that run at the same time wait, or
	// those around a clock that was set back.
	maxPending = 1 << 16
	// longestRequest bounds how long before a flow its request was admitted: a flow
	// may be missing when older calls were dropped.
	longestRequest = 86_400_000_000
)

// replay recomputes a bucket or a sliding window from the flows of the call log.
// They come in any order and are taken up in that of Seq, whatever the clock did.
//
// It begins with the counter's first flow, or after one that is so old that
// nothing of what a window held then is left; a bucket's level is recorded. Where
// the log does not reach back that far it begins with the first flow that found
// nothing taken.
type replay struct {
	kind    Kind
	row     *State // nil: there is none
	ref     int64  // the row's last change
	state   State  // after the flow before next
	next    int64  // 0: not begun
	sureAt  int64  // from then on a window holds all that it should
	last    int64
	pending map[int64]kept
	partial bool // given up: the log does not tell
	broken  []Difference
}

// kept is a flow with the request that it belongs to.
type kept struct {
	Flow
	id ID
}

func newReplay(kind Kind, row *State, at int64) *replay {
	r := &replay{kind: kind, row: row, ref: at, pending: make(map[int64]kept)}
	if row != nil {
		r.ref = row.At
	}
	return r
}

// fresh tells whether a flow found nothing taken.
func (f *Flow) fresh() bool { return f.Units > 0 && f.Level == f.Units }

// old tells whether nothing of a flow can be left at the last change.
func (r *replay) old(f *Flow) bool {
	if r.kind == KindBucket {
		return f.At < saturatingSub(r.ref, refillWindow)
	}
	return f.At < saturatingSub(r.ref, 2*f.Length)
}

// take takes up a flow, when those before it have come.
func (r *replay) take(f kept) {
	r.last = max(r.last, f.Seq)
	switch {
	case r.partial || f.Seq < r.next:
		return
	case r.old(&f.Flow):
		r.resume(f)
		r.sureAt = saturatingAdd(f.At, 2*f.Length)
		for seq := range r.pending {
			if seq < r.next {
				delete(r.pending, seq)
			}
		}
	default:
		if r.next == 0 && f.Seq == 1 {
			r.next, r.state = 1, State{Kind: r.kind, At: f.Since}
		}
		r.pending[f.Seq] = f
	}
	r.drain()
	if len(r.pending) > maxPending {
		r.partial, r.pending = true, nil
	}
}

// drain takes up all flows that follow.
func (r *replay) drain() {
	for r.next != 0 && !r.partial {
		f, ok := r.pending[r.next]
		if !ok {
			return
		}
		delete(r.pending, f.Seq)
		r.next++
		if r.kind == KindBucket {
			r.pour(&f)
		} else {
			r.slide(&f)
		}
		r.state.At = f.At
	}
}

// resume takes the state after a flow as it is recorded: of a window only that
// nothing of it will be left.
func (r *replay) resume(f kept) {
	r.next = f.Seq + 1
	r.state = State{Kind: r.kind, At: f.At, Sliding: &Sliding{}}
	if r.kind == KindBucket {
		r.state = State{Kind: r.kind, At: f.At, Deficit: f.Level, Rate: f.Limit, Returned: f.Returned}
	}
}

// pour repeats a bucket's flow.
func (r *replay) pour(f *kept) {
	s := &r.state
	r.since(f)
	s.At = min(s.At, f.Since)
	s.refill(f.Limit, f.At)
	s.Deficit, s.Rate = s.add(s.Deficit, f.Units), f.Limit
	if f.Units < 0 {
		s.Returned -= f.Units
	}
	r.figure("deficit", f.Level, s.Deficit, f.id)
	r.figure("returned", f.Returned, s.Returned, f.id)
	s.Deficit, s.Returned = f.Level, f.Returned
}

// slide repeats a sliding window's flow.
func (r *replay) slide(f *kept) {
	s := &r.state
	r.since(f)
	if s.Sliding == nil || f.fresh() && f.At < r.sureAt {
		s.Sliding, r.sureAt = &Sliding{}, 0
	}
	w := s.Sliding
	if at := min(f.Since, f.At); at < s.At && w.Length > 0 {
		w.retreat(at)
	}
	w.drop(f.At)
	w.shape(f.Length, f.Exact)
	w.put(w.slot(f.Of), f.Units)
	sum := w.sum(f.At)
	s.add(sum, 0)
	if f.At < r.sureAt || sum == f.Level {
		return
	}
	// Which of its units are too many or missing is not recorded.
	r.figure("in the window", f.Level, sum, f.id)
	r.partial, r.pending = true, nil
}

// since: a clock that was set back may have moved the state to an earlier
// instant than that of its last flow, nothing moves it to a later one.
func (r *replay) since(f *kept) {
	if f.Since > r.state.At {
		r.figure("at", f.Since, r.state.At, f.id)
	}
}

func (r *replay) figure(name string, have, want int64, id ID) {
	if have != want && !r.state.Saturated {
		r.broken = append(r.broken, Difference{Kind: r.kind, Figure: name, Have: have, Want: want, ID: id})
	}
}

// missing notes that the counter has changed have times when the records know of
// want, unless some may have been dropped with the log's beginning. at is an
// instant after them.
func (r *replay) missing(have, want, at, dropped int64) {
	if at >= saturatingAdd(dropped, longestRequest) {
		r.figure("changes", have, want, ID{})
	}
}

// finish takes up what still waits, and compares with the row. Calls before the
// instant dropped may be gone from the log.
func (r *replay) finish(dropped int64) (differences []Difference, partial bool) {
	expected := max(1, r.next)
	for _, seq := range slices.Sorted(maps.Keys(r.pending)) {
		first, waits := r.pending[seq]
		if !waits {
			continue
		}
		if first.Seq != expected {
			// What is missing was done until the state's instant before this flow.
			r.missing(first.Seq-1, expected-1, first.Since, dropped)
		}
		expected = first.Seq + 1
		switch {
		case r.kind == KindBucket:
			delete(r.pending, first.Seq)
			r.resume(first)
		case first.fresh():
			r.next, r.sureAt, r.state = first.Seq, 0, State{Kind: r.kind, At: first.Since}
		default:
			delete(r.pending, first.Seq)
			r.next = 0
		}
		if r.drain(); r.next != 0 {
			expected = r.next
		}
		if r.partial {
			break
		}
	}
	if !r.partial {
		r.compare(dropped)
	}
	return r.broken, r.partial && len(r.broken) == 0
}

// compare holds the state after the last flow against the row.
func (r *replay) compare(dropped int64) {
	row := r.row
	switch {
	case row == nil:
		if r.next != 0 && r.left() != 0 {
			r.figure("changes", 0, r.last, ID{})
		}
		return
	case row.Seq != r.last:
		if row.Seq < r.last {
			r.figure("changes", row.Seq, r.last, ID{})
		} else {
			r.missing(row.Seq, r.last, row.At, dropped)
		}
		r.partial = true
		return
	case row.Seq == 0: // nothing was ever taken
	case r.next == 0:
		r.partial = true
		return
	}
	if row.At > r.state.At && row.Seq != 0 {
		r.figure("at", row.At, r.state.At, ID{})
	}
	if r.kind == KindSliding {
		r.compareMarks(row)
		return
	}
	r.figure("deficit", row.Deficit, r.state.Deficit, ID{})
	r.figure("rate", row.Rate, r.state.Rate, ID{})
	r.figure("returned", row.Returned, r.state.Returned, ID{})
}

// left is what is still taken at ref.
func (r *replay) left() int64 {
	s := r.state
	if s.Sliding != nil {
		return s.Sliding.sum(r.ref)
	}
	s.refill(s.Rate, r.ref)
	return s.Deficit
}

func (r *replay) compareMarks(row *State) {
	have, want := row.Sliding.orEmpty(), r.state.Sliding.orEmpty().clone()
	if row.At < r.state.At && want.Length > 0 {
		want.retreat(row.At)
	}
	if len(have.Marks) > 0 && len(want.Marks) > 0 && have.grain() != want.grain() {
		r.figure("length of a slot", have.grain(), want.grain(), ID{})
		return
	}
	for _, m := range have.Marks {
		r.figure(have.name(m.Slot), m.Units, want.units(m.Slot), ID{})
	}
	for _, m := range want.Marks {
		if _, found := have.find(m.Slot); !found {
			r.figure(want.name(m.Slot), 0, m.Units, ID{})
		}
	}
}

func (w *Sliding) orEmpty() *Sliding {
	if w == nil {
		return &Sliding{}
	}
	return w
}

// grain is what a slot spans: a microsecond, or a sixtieth of the window.
func (w *Sliding) grain() int64 {
	if w.Exact {
		return 1
	}
	return w.Length / slotsPerWindow
}

func (w *Sliding) units(slot int64) int64 {
	if i, found := w.find(slot); found {
		return w.Marks[i].Units
	}
	return 0
}

// name is a slot's first instant, for people.
func (w *Sliding) name(slot int64) string {
	return time.UnixMicro(w.starts(slot)).UTC().Format("2006-01-02T15:04:05.000000Z")
}
