// SPDX-License-Identifier: Apache-2.0

package ledger

// reading evaluates one check. r is the reservation that a move hands on, nil at
// admission: what it holds does not stand in its own way, and its windows are
// those of its admission (BUD-3).
func (b *batch) reading(c *Check, wants Amounts, free bool, moved *Reservation) Reading {
	r := Reading{Check: c, Amount: c.Amount, Wanted: wants.Of(c.Wants)}
	if c.Kind == KindPolicy {
		r.Pass = c.Mode == Track || c.Amount > 0 && b.at < c.Amount
		if !r.Pass {
			r.WaitMicros = -1
		}
		return r
	}
	if c.Kind.flows() {
		b.restart(c.Counter, c.Kind)
	}
	s, in, once := b.peek(c.Counter, c.Kind), b.at, false
	if moved != nil {
		in, once = moved.At, b.disown(&s, c, moved)
	}
	switch c.Kind {
	case KindFixed:
		c.readFixed(&s, &r)
	case KindDays:
		c.readDays(&s, &r, in)
	case KindBucket:
		c.readBucket(&s, &r, b.at)
	case KindSliding:
		c.readSliding(&s, &r, b.at)
	case KindGauge:
		c.readGauge(&s, &r)
	case KindFunds:
		c.readFunds(&s, &r)
	case KindRoster:
		c.readRoster(&s, b.knowsMember(c), &r)
	case KindPolicy:
	}
	if once || free && c.Wants == Spend && c.Kind != KindFunds {
		r.Pass, r.WaitMicros, r.Reason = true, 0, ""
	}
	return r
}

// restart brings a bucket or a window that lies in the future to the present, its
// amount kept (ENGINE 7). It is the one thing that a refusal writes: a full one
// admits nothing, and would else wait until the clock has caught up.
func (b *batch) restart(c Counter, kind Kind) {
	s := b.counters.Find(c)
	if s == nil || s.At <= b.at {
		return
	}
	s = b.touch(c, kind)
	s.At = b.at
	if s.Sliding != nil {
		s.Sliding.retreat(b.at)
	}
}

// disown takes what a reservation holds on a check's counter out of s, and tells
// whether it was counted there once and for all (requests, slots: ORD-4).
func (b *batch) disown(s *State, c *Check, r *Reservation) (once bool) {
	for i := range r.Holds {
		h := &r.Holds[i]
		if h.Counter != c.Counter {
			continue
		}
		if h.once() {
			return true
		}
		s.hold(-h.Held)
		switch h.Kind {
		case KindBucket:
			s.giveBack(h, h.Taken, r.At, b.at)
		case KindSliding:
			if change, of := s.owes(h, -h.Taken, b.at); change != 0 {
				s.Sliding = s.Sliding.clone() // the page's own stays as it is
				s.correct(change, of, b.at)
			}
		default:
		}
	}
	return false
}

// readAmount compares use with an amount, by the check's mode (SPEC section 5).
func (c *Check) readAmount(r *Reading, amount int64) {
	switch c.Mode {
	case Track:
		r.Pass = true
	case Observe:
		r.Pass = r.Used < amount
	case Reserve, Take:
		r.Pass = fits(saturatingAdd(r.Used, r.Held), r.Wanted, amount)
	}
	if r.Pass {
		return
	}
	r.WaitMicros = -1
	switch {
	case c.Mode == Observe:
	case r.Wanted > amount && c.Kind != KindFunds:
		// No sum is too large for funds for ever: more may be paid in.
		r.Reason = ReasonLarger
	case fits(r.Used, r.Wanted, amount):
		r.Reason = ReasonHeld
	}
}

// fits: an addition that would overflow refuses (SPEC section 1).
func fits(used, wanted, amount int64) bool {
	sum := used + wanted
	return sum >= used && sum <= amount
}

// charge adds a settled amount to a hold's counter and returns the event's line;
// nil when there is nothing to charge.
func (b *batch) charge(h *Hold, amount, admittedAt int64) *Charge {
	if amount == 0 {
		return nil
	}
	switch h.Kind {
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
		s.chargeDay(amount, admittedAt, b.at)
		s.At = b.at
	default: // buckets and windows take and give units, gauges only hold
		return nil
	}
	return &Charge{Counter: h.Counter, Kind: h.Kind, Amount: amount}
}

// The reasons of a Reading.
const (
	ReasonHeld   = "held"              // only held amounts are in the way (ERR-2)
	ReasonLarger = "larger_than_limit" // the request alone exceeds the limit (RUN-2)
)
