// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// once: requests and slots are counted once a request, whichever candidates it
// tries (ORD-4); the rest follows the candidate.
func (h *Hold) once() bool { return h.Wants == Requests || h.Wants == Slots }

// bears tells whether the hold is charged for an attempt on model and provider.
func (h *Hold) bears(model, provider string) bool {
	return h.Model == "" && h.Provider == "" || h.Model == model && h.Provider == provider
}

// due is what a hold's counter owes for all attempts.
func (h *Hold) due(attempts []Attempt) int64 {
	var total int64
	for i := range attempts {
		if h.SkipMissing && attempts[i].Estimated {
			continue
		}
		if h.bears(attempts[i].Model, attempts[i].Provider) {
			total = saturatingAdd(total, attempts[i].amounts().Of(h.Charges))
		}
	}
	return total
}

func (a *Attempt) amounts() Amounts {
	return Amounts{Spend: a.Spend, Tokens: a.Tokens, Input: a.Input, Uncached: a.Uncached}
}

// takeAll charges each counter once, though several checks may read it. own
// marks a candidate's own checks.
func (b *batch) takeAll(list []Check, c *Candidate, own bool, holds []Hold) []Hold {
	var model, provider string
	if own {
		model, provider = c.Model, c.Provider
	}
	for i := range list {
		check := &list[i]
		if check.Kind == KindPolicy {
			continue
		}
		if check.Kind == KindRoster {
			b.enrol(check)
			continue
		}
		at := findHold(holds, check.Counter, model, provider)
		if at < 0 {
			at = len(holds)
			holds = append(holds, Hold{
				Counter: check.Counter, Kind: check.Kind, Wants: check.Wants, Charges: check.Charges,
				Model: model, Provider: provider, SkipMissing: check.SkipMissing,
			})
		}
		b.take(at, &holds[at], check, c.Wants)
	}
	return holds
}

// findHold finds the hold that stands for a counter already; -1: none does.
func findHold(holds []Hold, c Counter, model, provider string) int {
	for i := range holds {
		h := &holds[i]
		if h.Counter == c && (h.once() || h.bears(model, provider)) {
			return i
		}
	}
	return -1
}

// take charges an admitted request to one check's counter, unless an earlier
// check on it did. A hold that charges remains even where nothing is taken: its
// settlement finds the counter by it.
func (b *batch) take(i int, h *Hold, c *Check, wants Amounts) {
	if h.Charges == MetricNone {
		h.Charges, h.SkipMissing = c.Charges, c.SkipMissing
	}
	if h.Alarm == nil {
		h.Alarm = c.alarm()
	}
	want := wants.Of(c.Wants)
	switch c.Kind {
	case KindBucket, KindSliding:
		b.pour(i, h, c, want)
	case KindDays:
		h.Zone, h.ZoneEpoch = zoneName(c.Zone), c.ZoneEpoch
	case KindGauge, KindFixed, KindFunds:
		if h.Held == 0 && want != 0 && (c.Kind == KindGauge || c.Mode == Reserve) {
			s := b.touch(c.Counter, c.Kind)
			s.hold(want)
			s.At, h.Held = b.at, want
		}
	case KindPolicy, KindRoster:
	}
}

// giveBack empties the i-th hold of a request admitted at admittedAt: what it
// held, and the units that it took.
func (b *batch) giveBack(i int, h *Hold, admittedAt int64) {
	if h.Held != 0 {
		s := b.touch(h.Counter, h.Kind)
		s.hold(-h.Held)
		s.At = b.at
	}
	if h.Kind.flows() {
		b.settleFlow(i, h, -h.Taken, admittedAt)
	}
}

// rate is the limit that refills a bucket for an operation that brings none.
func (s *State) rate(h *Hold) int64 {
	if s.Rate > 0 {
		return s.Rate
	}
	return h.Limit
}

// skipped is the reservation with the holds marked that an attempt charged
// nothing for want of a usage (RES-3): a later adjustment of the request leaves
// their counters alone too, since it says what to add to a charge that they have
// not had.
func (r *Reservation) skipped(attempts []Attempt) *Reservation {
	if !slices.ContainsFunc(attempts, func(a Attempt) bool { return a.Estimated }) {
		return r
	}
	marked := *r
	marked.Holds = slices.Clone(r.Holds)
	for i := range marked.Holds {
		h := &marked.Holds[i]
		h.Skipped = h.SkipMissing && slices.ContainsFunc(attempts, func(a Attempt) bool {
			return a.Estimated && h.bears(a.Model, a.Provider)
		})
	}
	return &marked
}
