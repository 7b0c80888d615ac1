// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"slices"
)

// State is one counter's row. The zero State, with its kind, is a counter that
// nothing has touched; books may drop rows that equal it.
type State struct {
	Kind Kind
	// Settled is what was charged, Held what open reservations hold, both in
	// the metric's unit. A gauge uses Held alone, a bucket neither.
	Settled, Held int64
	// Credits are a funds counter's top-ups, credits and adjustments.
	Credits int64
	// Deficit is how far a bucket is below full, in 1/60,000 of a unit. Rate is
	// the limit of the last admission: it refills the bucket at a settlement,
	// which brings no limit of its own.
	Deficit, Rate int64
	// Returned is all that a bucket was ever given back, in 1/60,000 of a unit; it
	// wraps around. Only differences of it mean anything.
	Returned int64
	// Sliding is what a sliding window holds.
	Sliding *Sliding
	// Seq counts the changes of a bucket or a sliding window. It orders them in
	// the call log, whatever the clock does (RES-7).
	Seq int64
	// Warned is the highest threshold that was announced, in percent, and
	// WarnedSoft once the soft limit was.
	Warned uint16
	// Raised is added to the amount of every check on this window (BUD-9).
	Raised int64
	// ResetAt is the instant of the last reset, 0 without one: what was charged
	// until then is forgiven, and so nothing of it is given back.
	ResetAt int64
	// Days are a days counter's sums by local date.
	Days *Days
	// At is the instant of the last change, in Unix microseconds.
	At int64
	// Saturated: an addition would have overflowed and was cut (section 1).
	Saturated bool
}

// Clone returns a copy that shares nothing.
func (s *State) Clone() *State {
	c := *s
	if s.Days != nil {
		d := *s.Days
		d.Late = slices.Clone(d.Late)
		c.Days = &d
	}
	c.Sliding = s.Sliding.clone()
	return &c
}

// IsZero tells whether the row means nothing and need not be stored.
func (s *State) IsZero() bool {
	return s.Settled == 0 && s.Held == 0 && s.Credits == 0 && s.Deficit == 0 && s.Seq == 0 && s.Warned == 0 &&
		s.Raised == 0 && s.ResetAt == 0 && !s.Saturated && (s.Days == nil || s.Days.isZero())
}

// settle adds a charge, which may be negative (a correction), and saturates.
func (s *State) settle(amount int64) { s.Settled = s.add(s.Settled, amount) }

func (s *State) hold(amount int64) { s.Held = s.add(s.Held, amount) }

func (s *State) add(a, b int64) int64 {
	sum := saturatingAdd(a, b)
	if sum == math.MaxInt64 || sum == math.MinInt64 {
		s.Saturated = true
	}
	return sum
}

func saturatingAdd(a, b int64) int64 {
	sum := a + b
	if a > 0 && b > 0 && sum < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && sum >= 0 {
		return math.MinInt64
	}
	return sum
}

func saturatingSub(a, b int64) int64 {
	if b == math.MinInt64 {
		return saturatingAdd(saturatingAdd(a, math.MaxInt64), 1)
	}
	return saturatingAdd(a, -b)
}
