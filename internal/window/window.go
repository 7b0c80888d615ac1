// SPDX-License-Identifier: Apache-2.0

// Package window is the arithmetic of the windows that limits count in:
// calendar days, weeks and months of any time zone, quarter hours of UTC, and
// fixed lengths aligned to the Unix epoch (SPEC CAP-3, BUD-1). Windows are never
// aligned to a first use, and always contain the instant that they are asked
// for.
//
// Instants are Unix microseconds; those more than 273,000 years from 1970 are
// taken as just so far. The package reads no clock, and no time zone
// but those of the database that is embedded in it.
package window

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Day is a local date: the number of days from 1970-01-01 in the proleptic
// Gregorian calendar. Trailing days are plain subtraction on it: the seven days
// that end with d begin with d-6, whatever the zone did meanwhile.
type Day int32

// DayOf is the day of a date. Months and days out of range are normalised as
// time.Date does.
func DayOf(year int, month time.Month, day int) Day {
	// UTC has every midnight, and each once.
	return Day(floorDiv(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix(), dayMicros/1e6))
}

// DayAt is the local date of an instant in loc; nil is UTC.
//
// Where a zone sets its clock back over midnight, the repeated end of yesterday
// belongs to the new day: a day that has begun does not end and begin again, so
// for every instant Start(DayAt(at)) <= at < Start(DayAt(at)+1).
func DayAt(at int64, loc *time.Location) Day {
	at = clampInstant(at)
	if loc == nil || loc == time.UTC {
		return localDay(at, 0)
	}
	return calendarAt(at, loc).dayAt(at)
}

// Start is the first instant whose local date in loc is d or later; nil is UTC.
// That is midnight, or where the zone's clock skips midnight the instant of the
// skip; of a midnight that occurs twice the first. A date that the zone skipped
// is an empty day: it starts when the next one does.
func (d Day) Start(loc *time.Location) int64 {
	d = min(max(d, -maxDay), maxDay)
	midnight := int64(d) * dayMicros
	if loc == nil || loc == time.UTC {
		return midnight
	}
	return calendarAt(midnight, loc).start(d)
}

// Date is the day's year, month and day of the month.
func (d Day) Date() (year int, month time.Month, day int) {
	return time.Unix(int64(d)*(dayMicros/1e6), 0).UTC().Date()
}

// String is the date as in ISO 8601: 2026-03-08.
func (d Day) String() string {
	year, month, day := d.Date()
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day)
}

// monday is the Monday of the day's week. 1970-01-01 was a Thursday.
func (d Day) monday() Day { return Day(floorDiv(int64(d)+3, 7)*7 - 3) }

// QuarterAt is the start of the quarter hour of UTC that contains at.
func QuarterAt(at int64) int64 {
	start, _ := aligned(clampInstant(at), hourMicros/4)
	return start
}

// Period is a calendar period.
type Period uint8

// The periods. Weeks begin on Monday (SPEC BUD-1).
const (
	PeriodNone Period = iota
	PeriodDay
	PeriodWeek
	PeriodMonth
)

// Spec says which windows a limit counts in. With neither a length nor a
// period there is one window, all of time.
type Spec struct {
	Length int64          // micros, at most MaxLength; positive: windows of this length, aligned to the Unix epoch
	Period Period         // otherwise: calendar periods
	Zone   *time.Location // the calendar's zone; nil is UTC. Lengths ignore it
}

// String is the word for the windows: day, week, month, or a length as
// ParseLength reads it, in the largest unit that divides it; "" for all of time.
func (s Spec) String() string {
	switch {
	case s.Length > 0:
		for _, unit := range []byte("wdhms") {
			if micros := unitMicros(unit); s.Length%micros == 0 {
				return strconv.FormatInt(s.Length/micros, 10) + string(unit)
			}
		}
		return strconv.FormatInt(s.Length, 10) + "us"
	case s.Period == PeriodDay:
		return "day"
	case s.Period == PeriodWeek:
		return "week"
	case s.Period == PeriodMonth:
		return "month"
	default:
		return ""
	}
}

// Bounds is the window that contains at: its first instant and the first
// instant after it.
func (s Spec) Bounds(at int64) (start, end int64) {
	at = clampInstant(at)
	if s.Length > 0 {
		return aligned(at, min(s.Length, MaxLength))
	}
	if s.Period == PeriodNone {
		return math.MinInt64, math.MaxInt64
	}
	first, next := s.Period.days(DayAt(at, s.Zone))
	return first.Start(s.Zone), next.Start(s.Zone)
}

// days is the first day of the period that contains d, and of the next one.
func (p Period) days(d Day) (first, next Day) {
	switch p {
	case PeriodWeek:
		return d.monday(), d.monday() + 7
	case PeriodMonth:
		year, month, _ := d.Date()
		return DayOf(year, month, 1), DayOf(year, month+1, 1)
	default:
		return d, d + 1
	}
}

// aligned is the window of so many micros, aligned to the epoch, around at.
func aligned(at, length int64) (start, end int64) {
	start = floorDiv(at, length) * length
	return start, start + length
}

// clampInstant keeps instants where arithmetic on days cannot overflow.
func clampInstant(at int64) int64 {
	return min(max(at, -maxDay*dayMicros), maxDay*dayMicros)
}

// The bounds of a window's length (SPEC BUD-1).
const (
	MinLength = int64(10 * time.Second / time.Microsecond)
	MaxLength = 366 * dayMicros
)

// The kinds of refusal of ParseLength, for errors.Is.
var (
	ErrLengthSyntax = errors.New(`is not a whole number and one of s, m, h, d, w`)
	ErrLengthRange  = errors.New("is not between 10s and 366d")
)

// ParseLength reads a window's length, such as "90s", "1h" or "30d", as micros:
// a whole number without sign or leading zero, then s, m, h, d or w, from 10s to
// 366d (SPEC BUD-1). A day has 24 hours here: "24h" and "1d" are one window.
func ParseLength(s string) (int64, error) {
	unit := int64(0)
	if s != "" {
		unit = unitMicros(s[len(s)-1])
	}
	if unit == 0 || len(s) < 2 || s[0] == '0' && len(s) > 2 {
		return 0, fmt.Errorf("window length %s %w", quote(s), ErrLengthSyntax)
	}
	number := s[:len(s)-1]
	for i := range len(number) {
		if number[i] < '0' || number[i] > '9' {
			return 0, fmt.Errorf("window length %s %w", quote(s), ErrLengthSyntax)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > MaxLength/unit || n*unit < MinLength {
		return 0, fmt.Errorf("window length %s %w", quote(s), ErrLengthRange)
	}
	return n * unit, nil
}

// unitMicros is the length of one unit, 0 when there is no such unit.
func unitMicros(letter byte) int64 {
	switch letter {
	case 's':
		return hourMicros / 3600
	case 'm':
		return hourMicros / 60
	case 'h':
		return hourMicros
	case 'd':
		return dayMicros
	case 'w':
		return 7 * dayMicros
	default:
		return 0
	}
}
