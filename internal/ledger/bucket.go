// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"math/bits"
)

// bucketScale: a bucket's deficit is kept in 1/60,000 of a unit, because a
// limit per minute refills limit/60,000 units a millisecond: integers at every
// rate, and a changed limit needs no conversion (ENGINE 8).
const bucketScale = 60_000

// refill lets the time since the last change flow back. A state that lies in
// the future (the clock was set back) restarts at the new instant with its
// amount kept (ENGINE 7).
func (s *State) refill(limit, at int64) {
	elapsedMillis := at/1000 - s.At/1000
	if elapsedMillis < 0 {
		s.At = at
		return
	}
	if elapsedMillis == 0 {
		return
	}
	s.Deficit = max(0, s.Deficit-saturatingMul(elapsedMillis, limit))
	s.At = at
}

// readBucket admits when the deficit and the cost fit into one minute's burst.
func (c *Check) readBucket(s *State, r *Reading, at int64) {
	now := *s
	now.refill(c.Amount, at)
	r.Used = unitsUp(now.Deficit)
	full := saturatingMul(bucketScale, c.Amount)
	need := saturatingSub(saturatingAdd(now.Deficit, saturatingMul(bucketScale, r.Wanted)), full)
	r.Pass = need <= 0 || c.Mode == Track
	r.ResetsAt = saturatingAdd(at, saturatingMul(ceilDiv(now.Deficit, c.Amount), 1000))
	switch {
	case r.Pass:
	case r.Wanted > c.Amount:
		r.WaitMicros, r.Reason = -1, ReasonLarger
	default:
		r.WaitMicros = saturatingMul(ceilDiv(need, c.Amount), 1000)
	}
}

// spill takes units out of the bucket and returns what its deficit grew by. It
// may go into debt: a correction is never refused (RUN-1).
func (s *State) spill(limit, units, at int64) int64 {
	s.refill(limit, at)
	before := s.Deficit
	s.Deficit = s.add(s.Deficit, saturatingMul(bucketScale, units))
	s.At, s.Rate = at, limit
	return s.Deficit - before
}

// giveBack puts units back that a request admitted at admittedAt did not use, and
// returns what its deficit changed by; zero leaves it as it was.
//
// A charge belongs to the instant of its admission (RES-10), so what time has
// refilled since is not given a second time: a bucket that has been full in
// between owes nothing. The bucket is then as if the request had asked for less,
// but where its deficit has been below the units meanwhile, which is bounded
// from both sides: by its level at the admission without what others gave back,
// and by what the request took alone.
func (s *State) giveBack(h *Hold, units, admittedAt, at int64) int64 {
	if at < admittedAt || s.forgiven(h.At) {
		return 0 // the clock was set back: nobody can tell; or it was reset since
	}
	rate := s.rate(h)
	refilled := saturatingMul(at/1000-admittedAt/1000, max(rate, h.Limit))
	least := saturatingSub(max(h.Level-s.Returned, saturatingMul(bucketScale, h.Taken)), refilled)
	now := *s
	now.refill(rate, at)
	back := max(0, min(saturatingMul(bucketScale, units), least, now.Deficit))
	if back == 0 {
		return 0
	}
	s.Deficit, s.Rate, s.At = now.Deficit-back, rate, at
	s.Returned += back
	return -back
}

func unitsUp(deficit int64) int64 { return ceilDiv(deficit, bucketScale) }

// ceilDiv is defined for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	if b <= 0 {
		return 0
	}
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

func saturatingMul(a, b int64) int64 {
	negative := (a < 0) != (b < 0)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > math.MaxInt64 {
		if negative {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	if negative {
		return -int64(lo)
	}
	return int64(lo)
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return uint64(-(a + 1)) + 1
	}
	return uint64(a)
}
