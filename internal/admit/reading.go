// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"math"
	"math/bits"

	"github.com/weirhq/weir/internal/ledger"
)

// RateHeaders are X-RateLimit-Limit, -Remaining and -Reset (RAT-3).
type RateHeaders struct {
	Limit, Remaining, ResetSeconds int64
}

// Rate picks the runtime limit or rate rule with the smallest remaining share, the first of
// equals; ok is false when none applies. Concurrency and budgets never stand
// here. admitted says whether the request's own want has been taken since the
// reading. at is the reading's instant.
func Rate(readings []ledger.Reading, admitted bool, at int64) (h RateHeaders, ok bool) {
	for i := range readings {
		r := &readings[i]
		limit := r.Check.Amount
		if r.Check.Kind != ledger.KindBucket && r.Check.Kind != ledger.KindSliding || r.Check.Mode != ledger.Take || limit <= 0 {
			continue
		}
		used, reset := r.Used, max(0, r.ResetsAt-at)
		switch {
		case !admitted:
		case r.Check.Kind == ledger.KindSliding:
			used = sum(used, r.Wanted)
			reset = max(reset, r.Check.FullAgain(at)-at)
		default:
			used = sum(used, r.Wanted)
			reset = sum(reset, refillMicros(r.Wanted, limit))
		}
		left := max(0, less(limit, used))
		if !ok || smallerShare(left, limit, h.Remaining, h.Limit) {
			h = RateHeaders{Limit: limit, Remaining: left, ResetSeconds: ceilSeconds(reset)}
		}
		ok = true
	}
	return h, ok
}

// refillMicros is how long a bucket of so many units a minute takes to refill
// units, rounded up to its step of a millisecond. The product passes 64 bits
// for the largest limits, the quotient may.
func refillMicros(units, limit int64) int64 {
	const millisPerMinute, microsPerMilli = 60_000, 1000
	hi, lo := bits.Mul64(uint64(units), millisPerMinute)
	if hi >= uint64(limit) {
		return math.MaxInt64
	}
	millis, rest := bits.Div64(hi, lo, uint64(limit))
	if rest > 0 {
		millis++
	}
	return product(int64(min(millis, math.MaxInt64)), microsPerMilli)
}

// smallerShare compares a/b with c/d without a float.
func smallerShare(a, b, c, d int64) bool {
	hi1, lo1 := bits.Mul64(uint64(a), uint64(d))
	hi2, lo2 := bits.Mul64(uint64(c), uint64(b))
	return hi1 < hi2 || hi1 == hi2 && lo1 < lo2
}
