// SPDX-License-Identifier: Apache-2.0

package price

import (
	"cmp"
	"errors"
	"slices"
)

// MaxVersions bounds the rows of one model that hold one after another.
const MaxVersions = 64

// Schedule is the rows of one model, each from its ValidFromMicros until the
// next one's: dated prices (PRC-1). The row in force when a request is admitted
// is the one that it is charged by, however long it runs (PRC-2).
type Schedule []*Row

// ErrSameStart says that two rows of one model begin at the same instant.
var ErrSameStart = errors.New("begins when another price of the same model does: give each its own valid_from")

// NewSchedule puts rows in their order.
func NewSchedule(rows []*Row) (Schedule, error) {
	s := Schedule(slices.Clone(rows))
	slices.SortStableFunc(s, func(a, b *Row) int { return cmp.Compare(a.ValidFromMicros, b.ValidFromMicros) })
	for i := 1; i < len(s); i++ {
		if s[i].ValidFromMicros == s[i-1].ValidFromMicros {
			return nil, ErrSameStart
		}
	}
	if len(s) > MaxVersions {
		return nil, errors.New("has too many dated prices")
	}
	return s, nil
}

// At is the row in force at an instant, in Unix microseconds; nil before the
// first one.
func (s Schedule) At(at int64) *Row {
	var found *Row
	for _, r := range s {
		if r.ValidFromMicros <= at {
			found = r
		}
	}
	return found
}

// Next is the first instant after at at which another row begins, 0 for never.
func (s Schedule) Next(at int64) int64 {
	for _, r := range s {
		if r.ValidFromMicros > at {
			return r.ValidFromMicros
		}
	}
	return 0
}

// Sooner is the earlier of two instants of which 0 is never.
func Sooner(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
