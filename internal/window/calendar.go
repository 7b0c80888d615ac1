// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"sort"
	"time"
)

const (
	hourMicros = int64(time.Hour / time.Microsecond)
	dayMicros  = 24 * hourMicros

	// The years for which a zone's spans are worked out when it is loaded.
	// Others are worked out each time, around the instant in question.
	tableFromMicros = 946_684_800_000_000   // 2000-01-01
	tableToMicros   = 4_102_444_800_000_000 // 2100-01-01

	// marginMicros is more than the widest jump of any zone, a whole day
	// across the date line, plus the widest offset.
	marginMicros = 3 * dayMicros

	// maxDay bounds days, and with dayMicros instants, so that nothing here
	// can overflow: 273,790 years on either side of 1970.
	maxDay = 100_000_000
)

// span is a stretch of time with one offset from UTC.
type span struct {
	start  int64 // its first instant
	offset int64 // micros east of UTC
	// reached is the latest local date of any instant before start: what
	// keeps days in order when the zone's clock is set back over midnight.
	reached Day
}

// calendar is the spans of one zone from one instant up to another.
type calendar struct {
	from, to int64
	spans    []span // never empty; the first starts at from
}

// survey works out the spans of [from, to).
func survey(loc *time.Location, from, to int64) *calendar {
	c := &calendar{from: from, to: to}
	reached := Day(math.MinInt32)
	for at := from; at < to; {
		t := time.UnixMicro(at).In(loc)
		_, seconds := t.Zone()
		offset := int64(seconds) * int64(time.Second/time.Microsecond)
		if n := len(c.spans); n == 0 || c.spans[n-1].offset != offset {
			c.spans = append(c.spans, span{start: at, offset: offset, reached: reached})
		}
		next := to
		if _, end := t.ZoneBounds(); !end.IsZero() {
			next = min(to, end.UnixMicro())
		}
		// On the last day of a leap year ZoneBounds puts the end before
		// the instant itself (its years have 365 days). The end is never
		// late, so that day is walked by the hour.
		if next <= at {
			next = min(to, at+hourMicros)
		}
		reached = max(reached, localDay(next-1, offset))
		at = next
	}
	return c
}

// calendarAt is a calendar that covers at with a margin on both sides.
func calendarAt(at int64, loc *time.Location) *calendar {
	if at >= tableFromMicros+marginMicros && at < tableToMicros-marginMicros {
		if c, ok := zones.calendars.Load(loc); ok {
			return c.(*calendar)
		}
	}
	return survey(loc, at-marginMicros, at+marginMicros)
}

// dayAt is the latest local date reached by at.
func (c *calendar) dayAt(at int64) Day {
	i := sort.Search(len(c.spans), func(i int) bool { return c.spans[i].start > at }) - 1
	s := &c.spans[max(i, 0)]
	return max(s.reached, localDay(at, s.offset))
}

// start is the first instant whose local date is d or later.
func (c *calendar) start(d Day) int64 {
	last := len(c.spans) - 1
	i := sort.Search(last, func(i int) bool { return c.spans[i+1].reached >= d })
	s := &c.spans[i]
	return max(s.start, int64(d)*dayMicros-s.offset)
}

func localDay(at, offset int64) Day { return Day(floorDiv(at+offset, dayMicros)) }

// floorDiv is a/b rounded down; b must be positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
