// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"github.com/weirhq/weir/internal/window"
)

// daysKept covers the longest cap (30 days) and settlements that arrive a few
// days late; one row per key serves all three caps (ENGINE 8).
const daysKept = 33

// Days are spend sums by local date: Sums[i] belongs to the date Last - i.
type Days struct {
	Last      window.Day
	Zone      string
	ZoneEpoch uint32
	Sums      [daysKept]int64
	// Moved: the clock was set back, and sums were moved to the day that it was
	// then. They are no longer those of the events' own dates.
	Moved bool
	// Late is kept after a reset, in the order of its quarters.
	Late []LateSum
}

func (d *Days) isZero() bool {
	for _, s := range d.Sums {
		if s != 0 {
			return false
		}
	}
	return true
}

// roll makes day the latest date, dropping what has become too old.
func (d *Days) roll(day window.Day) {
	shift := int64(day) - int64(d.Last)
	if shift <= 0 {
		return
	}
	d.Last = day
	if shift >= daysKept {
		d.Sums, d.Moved = [daysKept]int64{}, false
		return
	}
	copy(d.Sums[shift:], d.Sums[:daysKept-shift])
	for i := range shift {
		d.Sums[i] = 0
	}
}

// retreat brings a row that lies in the future back to today, its amounts kept:
// the clock was ahead, and a row that stayed there would count nothing until its
// date comes (ENGINE 7). Tomorrow is not the future yet: days may end unevenly.
func (d *Days) retreat(today window.Day) {
	shift := int64(d.Last) - int64(today)
	if shift <= 1 {
		return
	}
	var moved Days
	for i, amount := range d.Sums {
		back := max(0, int64(i)-shift)
		moved.Sums[back] = saturatingAdd(moved.Sums[back], amount)
	}
	d.Last, d.Sums, d.Moved = today, moved.Sums, true
}

// sum adds the span of local dates that ends with day.
func (d *Days) sum(day window.Day, span int32) int64 {
	var total int64
	for i := range int64(span) {
		back := int64(d.Last) - int64(day) + i
		if back >= 0 && back < daysKept {
			total = saturatingAdd(total, d.Sums[back])
		}
	}
	return total
}

// chargeDay books an amount under the local date of the admission, in the zone
// that the row is kept in now: a charge belongs to its admission (RES-10).
func (s *State) chargeDay(amount, admittedAt, at int64) {
	zone, err := window.Zone(s.Days.Zone)
	if err != nil {
		zone = time.UTC
	}
	s.Days.retreat(window.DayAt(at, zone))
	s.addDay(amount, window.DayAt(admittedAt, zone))
	s.keepLate(amount, admittedAt)
}

func (s *State) addDay(amount int64, day window.Day) {
	s.Days.roll(day)
	back := int64(s.Days.Last) - int64(day)
	if back < daysKept {
		s.Days.Sums[back] = s.add(s.Days.Sums[back], amount)
	}
}

// NeedsRebuild tells whether the row is kept in another zone than the check's.
func (c *Check) NeedsRebuild(s *State) bool {
	return c.Kind == KindDays && s.Days != nil && s.Days.ZoneEpoch < c.ZoneEpoch
}

// QuarterSum is what a key used in one UTC quarter hour. Quarters are the
// atoms of every zone's days: all offsets in use are multiples of 15 minutes.
type QuarterSum struct {
	Workspace, Key          string
	Quarter                 int64 // start, Unix microseconds
	Spend, Tokens, Requests int64
}

// Rebuild derives the days of a key anew from its quarters, in any order, in the
// check's zone.
func (c *Check) Rebuild(s *State, quarters []QuarterSum) {
	var late []LateSum
	if s.Days != nil {
		late = s.Days.Late
	}
	s.Days = &Days{Zone: zoneName(c.Zone), ZoneEpoch: c.ZoneEpoch}
	s.rebuilt(c, late, quarters)
}

// RebuildFrom is the earliest instant whose quarters Rebuild can use.
func RebuildFrom(at int64) int64 {
	return at - int64((daysKept+2)*24*time.Hour/time.Microsecond)
}

func zoneName(zone *time.Location) string {
	if zone == nil {
		return "UTC"
	}
	return zone.String()
}

func (c *Check) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// readDays: spend caps look at settled use alone (CAP-1).
func (c *Check) readDays(s *State, r *Reading, at int64) {
	d := s.Days
	if d == nil {
		d = &Days{}
	}
	today := window.DayAt(at, c.zone())
	r.Used = d.sum(today, c.Span)
	r.Pass = c.Mode == Track || r.Used < c.Amount
	if c.Mode == Track {
		return
	}
	r.ResetsAt = c.daysReset(d, today)
	if !r.Pass {
		r.WaitMicros = -1
	}
}

// daysReset is the start of the first local day on which the cap has room
// again if nothing more is spent; when it has room, the next day's start.
func (c *Check) daysReset(d *Days, today window.Day) int64 {
	for ahead := int32(1); ahead <= c.Span; ahead++ {
		next := today + window.Day(ahead)
		if d.sum(next, c.Span) < c.Amount {
			return next.Start(c.zone())
		}
	}
	return (today + window.Day(c.Span)).Start(c.zone())
}
