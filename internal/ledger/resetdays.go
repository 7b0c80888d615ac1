// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"

	"github.com/weirhq/weir/internal/window"
)

// A row of days that was reset can be derived anew from its key's quarters, which
// keep what was spent: those up to the reset's own count nothing but what was
// charged after it, and the row keeps that by quarter.

// maxLate bounds the quarters that a row keeps. Only requests that ran at the
// reset, or were admitted in its quarter hour, need one.
const maxLate = 24

// LateSum is what was charged after a reset to the quarter hour, at its start or
// earlier, in which its request was admitted.
type LateSum struct{ Quarter, Amount int64 }

// resetDays empties every day that the row keeps, and returns the charges that
// do it: one for each date. Older days stay in the sum of all.
func (s *State) resetDays(c *Check) []Charge {
	d := s.Days
	if d == nil {
		return nil
	}
	zone, err := window.Zone(d.Zone)
	if err != nil {
		zone = c.zone()
	}
	var charges []Charge
	for i, amount := range d.Sums {
		if amount == 0 {
			continue
		}
		s.settle(-amount)
		charges = append(charges, Charge{
			Counter: c.Counter, Kind: c.Kind, Amount: -amount, At: (d.Last - window.Day(i)).Start(zone),
		})
	}
	d.Sums, d.Late = [daysKept]int64{}, nil
	return charges
}

// keepLate remembers a charge to a quarter that a rebuild would leave out.
func (s *State) keepLate(amount, admittedAt int64) {
	quarter := window.QuarterAt(admittedAt)
	if s.ResetAt == 0 || quarter > window.QuarterAt(s.ResetAt) {
		return
	}
	d := s.Days
	i, found := slices.BinarySearchFunc(d.Late, quarter, func(l LateSum, q int64) int {
		switch {
		case l.Quarter < q:
			return -1
		case l.Quarter > q:
			return 1
		default:
			return 0
		}
	})
	switch {
	case found:
		d.Late[i].Amount = s.add(d.Late[i].Amount, amount)
		return
	case len(d.Late) < maxLate:
	default:
		// The two oldest become one: it may lie in another day than it did.
		d.Late[1].Amount = s.add(d.Late[0].Amount, d.Late[1].Amount)
		d.Late = d.Late[1:]
		i = max(0, i-1)
	}
	d.Late = slices.Insert(d.Late, i, LateSum{Quarter: quarter, Amount: amount})
}

// rebuilt fills new days from quarters, the ones before a reset from what the row
// itself has kept. Days of a row that was reset are not those of its events' own
// dates in the new zone, so single days are not verified (Days.Moved).
func (s *State) rebuilt(c *Check, late []LateSum, quarters []QuarterSum) {
	from := int64(0)
	if s.ResetAt != 0 {
		from = window.QuarterAt(s.ResetAt) + 1
	}
	for _, q := range quarters {
		if s.ResetAt == 0 || q.Quarter >= from {
			s.addDay(q.Spend, window.DayAt(q.Quarter, c.zone()))
		}
	}
	for _, l := range late {
		s.addDay(l.Amount, window.DayAt(l.Quarter, c.zone()))
	}
	if s.ResetAt != 0 {
		// Until the day of the reset is gone: also where nothing was spent since.
		s.Days.roll(window.DayAt(s.ResetAt, c.zone()))
		s.Days.Late, s.Days.Moved = late, true
	}
}
