// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// Flow is one change of a bucket or of a sliding window, as it is kept with the
// request that made it: their states are recomputed from these (RES-7). A state
// whose clock was set back may be brought to the present without one.
type Flow struct {
	// Hold is the index of the counter's hold in its reservation or call.
	Hold int32
	// Seq counts the counter's changes, from 1: their order.
	Seq int64
	// At is the instant of the decision, Since the state's before it, Of the
	// instant that a window's units belong to (RES-10).
	At, Since, Of int64
	// Limit refills the bucket from Since to At. Length and Exact are the window's.
	Limit, Length int64
	Exact         bool
	// Units were taken or, negative, given back: 1/60,000 of one in a bucket.
	// Level is what is taken in all after it, Returned the bucket's.
	Units, Level, Returned int64
}

// CounterFlow is a flow of a correction, which comes after the call's record.
type CounterFlow struct {
	Counter Counter
	Kind    Kind
	Flow
}

// flows tells whether a counter of the kind is taken from and given back to.
func (k Kind) flows() bool { return k == KindBucket || k == KindSliding }

// record keeps what has just been done to the state of the i-th hold.
func (b *batch) record(i int, s *State, f Flow) {
	s.Seq++
	f.Hold, f.Seq, f.At = int32(i), s.Seq, b.at
	if w := s.Sliding; w != nil {
		f.Length, f.Exact, f.Level = w.Length, w.Exact, w.sum(b.at)
	} else {
		f.Of, f.Limit, f.Level, f.Returned = b.at, s.Rate, s.Deficit, s.Returned
	}
	b.flows = append(b.flows, f)
}

// pour takes a want of an admission out of the i-th hold's bucket or window. A
// window that nothing is wanted of is shaped all the same: what the request will
// have used belongs to this instant.
func (b *batch) pour(i int, h *Hold, c *Check, want int64) {
	h.Limit = c.Amount
	if h.Taken != 0 || want == 0 && c.Kind == KindBucket {
		return
	}
	s := b.touch(c.Counter, c.Kind)
	since := s.At
	h.Taken, h.At = want, b.at
	if c.Kind == KindSliding {
		s.enter(c, want, b.at)
		h.Level = s.Sliding.Restarts
		b.record(i, s, Flow{Since: since, Of: b.at, Units: want})
		return
	}
	units := s.spill(c.Amount, want, b.at)
	h.Level = saturatingAdd(s.Deficit, s.Returned)
	b.record(i, s, Flow{Since: since, Units: units})
}

// settleFlow corrects the i-th hold's bucket or window by what an ended request
// used beyond what it took, or, negative, less.
func (b *batch) settleFlow(i int, h *Hold, units, admittedAt int64) {
	if units == 0 {
		return
	}
	b.restart(h.Counter, h.Kind)
	s := b.peek(h.Counter, h.Kind)
	flow := Flow{Since: s.At, Units: units}
	switch {
	case h.Kind == KindSliding:
		if flow.Units, flow.Of = s.owes(h, units, b.at); flow.Units == 0 {
			return
		}
		b.touch(h.Counter, h.Kind).correct(flow.Units, flow.Of, b.at)
	case units > 0:
		flow.Units = b.touch(h.Counter, h.Kind).spill(s.rate(h), units, b.at)
	default:
		if flow.Units = s.giveBack(h, -units, admittedAt, b.at); flow.Units == 0 {
			return
		}
		*b.touch(h.Counter, h.Kind) = s
	}
	b.record(i, b.touch(h.Counter, h.Kind), flow)
}

// counterFlows are the flows of a correction, with the counters of its holds.
func (b *batch) counterFlows(holds []Hold) []CounterFlow {
	var list []CounterFlow
	for _, f := range b.flows {
		h := &holds[f.Hold]
		list = append(list, CounterFlow{Counter: h.Counter, Kind: h.Kind, Flow: f})
	}
	return list
}

// joined is a request's flows with those of its end.
func joined(flows, end []Flow) []Flow {
	if len(end) == 0 {
		return flows
	}
	return append(slices.Clip(flows), end...)
}
