// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"math/bits"

	"github.com/weirhq/weir/internal/ledger"
)

// RateHeaders are X-RateLimit-Limit, -Remaining and -Reset (RAT-3).
type RateHeaders struct {
	Limit, Remaining, ResetSeconds int64
}

// Rate picks the runtime limit with the smallest remaining share; ok is false
// when none applies. Concurrency and budgets never stand here. admitted says
// whether the request's own want has been taken since the reading.
func Rate(readings []ledger.Reading, admitted bool, at int64) (h RateHeaders, ok bool) {
	for i := range readings {
		r := &readings[i]
		if r.Check.Kind != ledger.KindBucket {
			continue
		}
		limit, used := r.Check.Amount, r.Used
		reset := r.ResetsAt - at
		if admitted {
			used += r.Wanted
			reset += r.Wanted * 60_000_000 / limit
		}
		left := max(0, limit-used)
		if !ok || smallerShare(left, limit, h.Remaining, h.Limit) {
			h = RateHeaders{Limit: limit, Remaining: left, ResetSeconds: max(0, ceilSeconds(reset))}
		}
		ok = true
	}
	return h, ok
}

// smallerShare compares a/b with c/d without a float.
func smallerShare(a, b, c, d int64) bool {
	hi1, lo1 := bits.Mul64(uint64(a), uint64(d))
	hi2, lo2 := bits.Mul64(uint64(c), uint64(b))
	return hi1 < hi2 || hi1 == hi2 && lo1 < lo2
}
