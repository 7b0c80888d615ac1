// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/window"
)

// CAP-3: days as the zones' calendars have them, ordinary and odd.
var days = []struct {
	zone, date, start, end string
}{
	{"", "2026-03-08", "2026-03-08T00:00:00Z", "2026-03-09T00:00:00Z"},
	// Havana goes from 23:59:59 to 01:00: the day has no midnight.
	{"America/Havana", "2026-03-07", "2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z"},
	{"America/Havana", "2026-03-08", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
	// And back from 01:00 to 00:00: it has two; the first one counts.
	{"America/Havana", "2026-10-31", "2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z"},
	{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
	{"Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"},
	{"Asia/Beirut", "2026-10-24", "2026-10-23T21:00:00Z", "2026-10-24T22:00:00Z"},
	{"Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
	{"Africa/Cairo", "2026-10-29", "2026-10-28T21:00:00Z", "2026-10-29T22:00:00Z"},
	{"Pacific/Chatham", "2026-07-01", "2026-06-30T11:15:00Z", "2026-07-01T11:15:00Z"},
	{"Pacific/Chatham", "2026-01-01", "2025-12-31T10:15:00Z", "2026-01-01T10:15:00Z"},
	{"Pacific/Chatham", "2026-09-27", "2026-09-26T11:15:00Z", "2026-09-27T10:15:00Z"},
	{"Pacific/Chatham", "2026-04-05", "2026-04-04T10:15:00Z", "2026-04-05T11:15:00Z"},
	{"Asia/Kathmandu", "2026-05-01", "2026-04-30T18:15:00Z", "2026-05-01T18:15:00Z"},
	{"Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"},
	{"Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z"},
	// Samoa crossed the date line and had no 30 December.
	{"Pacific/Apia", "2011-12-29", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
	{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z"},
	{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
	{"Pacific/Kwajalein", "1993-08-21", "1993-08-21T12:00:00Z", "1993-08-21T12:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
	{"America/Sao_Paulo", "2018-02-17", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
	{"America/Sao_Paulo", "2026-11-04", "2026-11-04T03:00:00Z", "2026-11-05T03:00:00Z"},
	{"Europe/Amsterdam", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
	{"Europe/Amsterdam", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
	// St. John's went back from 00:01 to 23:01 of the day before.
	{"America/St_Johns", "2006-10-28", "2006-10-28T02:30:00Z", "2006-10-29T02:30:00Z"},
	{"America/St_Johns", "2006-10-29", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"},
	// Juneau lived the 18th of October 1867 twice, in part.
	{"America/Juneau", "1867-10-19", "1867-10-18T08:57:41Z", "1867-10-20T08:57:41Z"},
	// Leap years end where package time's zone bounds are early.
	{"Europe/Berlin", "2028-12-31", "2028-12-30T23:00:00Z", "2028-12-31T23:00:00Z"},
	{"Europe/Berlin", "2128-12-31", "2128-12-30T23:00:00Z", "2128-12-31T23:00:00Z"},
	{"Europe/Berlin", "2126-03-31", "2126-03-30T23:00:00Z", "2126-03-31T22:00:00Z"},
}

// CAP-3.
func TestDaysStartAndEndWhereTheZonesCalendarSays(t *testing.T) {
	for _, c := range days {
		loc, d := zone(t, c.zone), date(t, c.date)
		start, end := d.Start(loc), (d + 1).Start(loc)
		if text(start) != c.start || text(end) != c.end {
			t.Errorf("%s %s: [%s, %s), want [%s, %s)", c.zone, c.date, text(start), text(end), c.start, c.end)
			continue
		}
		if d.String() != c.date {
			t.Errorf("%s is shown as %s", c.date, d)
		}
		if before := window.DayAt(start-1, loc); before >= d {
			t.Errorf("%s: just before %s is %s", c.zone, c.date, before)
		}
		if start == end {
			continue
		}
		for _, at := range []int64{start, start + (end-start)/2, end - 1} {
			if got := window.DayAt(at, loc); got != d {
				t.Errorf("%s: %s is in %s, want %s", c.zone, text(at), got, d)
			}
		}
	}
}

// CAP-3: the hour that repeats the end of yesterday does not reopen yesterday.
func TestADayThatHasBegunGoesOn(t *testing.T) {
	loc := zone(t, "America/St_Johns")
	repeated := micros(t, "2006-10-29T02:45:00Z")
	if clockDate(repeated, loc) != date(t, "2006-10-28") {
		t.Fatal("the clock on the wall does not show the day before")
	}
	if got := window.DayAt(repeated, loc); got != date(t, "2006-10-29") {
		t.Errorf("day %s", got)
	}
}

// CAP-3, for each zone and each day of sixteen years: days tile time without a
// gap, and begin on quarter hours of UTC, so that any zone's day is a sum of
// quarter hours.
func TestDaysOfEveryZoneTileTime(t *testing.T) {
	first, last := date(t, "2012-01-01"), date(t, "2028-01-01")
	for _, name := range zoneNames(t) {
		loc := zone(t, name)
		end := first.Start(loc)
		for d := first; d < last; d++ {
			start := end
			end = (d + 1).Start(loc)
			if window.QuarterAt(start) != start {
				t.Fatalf("%s: %s starts at %s, inside a quarter hour", name, d, text(start))
			}
			if end-start < 20*hour || end-start > 28*hour {
				t.Fatalf("%s: %s has %s", name, d, time.Duration(end-start)*time.Microsecond)
			}
			if window.DayAt(start, loc) != d || window.DayAt(end-1, loc) != d {
				t.Fatalf("%s: %s does not hold its first or last instant", name, d)
			}
			if clockDate(start, loc) != d || clockDate(start-1, loc) != d-1 {
				t.Fatalf("%s: %s does not start where its date does", name, d)
			}
		}
	}
}

// somewhere draws a zone, or a made-up one, and an instant of three centuries.
func somewhere(names []string) *rapid.Generator[place] {
	return rapid.Custom(func(t *rapid.T) place {
		p := place{at: rapid.Int64Range(-150*365*day, 200*365*day).Draw(t, "at")}
		if rapid.IntRange(0, 9).Draw(t, "fixed") == 0 {
			p.loc = time.FixedZone("fixed", rapid.IntRange(-14*3600, 14*3600).Draw(t, "offset"))
			return p
		}
		p.loc = zone(t, rapid.SampledFrom(names).Draw(t, "zone"))
		return p
	})
}

type place struct {
	loc *time.Location
	at  int64
}

// CAP-3.
func TestEveryInstantLiesInItsDay(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		p := somewhere(names).Draw(t, "place")
		d := window.DayAt(p.at, p.loc)
		start, end := d.Start(p.loc), (d + 1).Start(p.loc)
		if p.at < start || p.at >= end {
			t.Fatalf("%s: %s is outside its day [%s, %s)", p.loc, text(p.at), text(start), text(end))
		}
		if window.DayAt(start-1, p.loc) >= d || window.DayAt(end, p.loc) <= d {
			t.Fatalf("%s: %s does not end where its neighbours begin", p.loc, d)
		}
		// Only a repeated hour, or Alaska's repeated day, is not in the day
		// that the clock shows.
		if shown := clockDate(p.at, p.loc); shown > d || shown < d-1 {
			t.Fatalf("%s: %s is in %s, the clock shows %s", p.loc, text(p.at), d, shown)
		}
	})
}

// CAP-3: Start is the first instant of its date, held against package time.
func TestStartIsTheFirstInstantOfItsDate(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		p := somewhere(names).Draw(t, "place")
		d := clockDate(p.at, p.loc)
		start := d.Start(p.loc)
		if shown := clockDate(start, p.loc); shown < d {
			t.Fatalf("%s: %s starts at %s, where the clock shows %s", p.loc, d, text(start), shown)
		}
		skipped := start == (d + 1).Start(p.loc)
		if got := window.DayAt(start, p.loc); (got == d) == skipped {
			t.Fatalf("%s: %s starts in %s", p.loc, d, got)
		}
		for _, before := range []int64{1, rapid.Int64Range(1, 48*hour).Draw(t, "before")} {
			if shown := clockDate(start-before, p.loc); shown >= d {
				t.Fatalf("%s: %s starts at %s, but %s is %s already", p.loc, d, text(start), text(start-before), shown)
			}
		}
	})
}

// CAP-3.
func TestDaysNeverGoBack(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		p := somewhere(names).Draw(t, "place")
		later := p.at + rapid.Int64Range(0, 72*hour).Draw(t, "later")
		if window.DayAt(later, p.loc) < window.DayAt(p.at, p.loc) {
			t.Fatalf("%s: %s is in an earlier day than %s", p.loc, text(later), text(p.at))
		}
	})
}

func TestDatesAreTheGregorianCalendars(t *testing.T) {
	for d, want := range map[window.Day]string{
		0: "1970-01-01", -1: "1969-12-31", 20520: "2026-03-08", 11016: "2000-02-29", 47541: "2100-03-01", -719162: "0001-01-01",
	} {
		if d.String() != want || window.DayOf(d.Date()) != d {
			t.Errorf("day %d is %s, want %s", int32(d), d, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := window.Day(rapid.Int32Range(-100_000_000, 100_000_000).Draw(t, "day"))
		if got := window.DayOf(d.Date()); got != d {
			t.Fatalf("%d -> %s -> %d", int32(d), d, int32(got))
		}
	})
}

func TestTheEndsOfTimeDoNotOverflow(t *testing.T) {
	for _, name := range []string{"", "Europe/Berlin", "Pacific/Apia"} {
		loc := zone(t, name)
		for _, at := range []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64} {
			d := window.DayAt(at, loc)
			if (at < 0) != (d < 0) {
				t.Errorf("%q: instant %d is in day %d", name, at, int32(d))
			}
			for _, s := range []window.Spec{{Length: 10 * second}, {Length: math.MaxInt64}, {Period: window.PeriodMonth, Zone: loc}} {
				if start, end := s.Bounds(at); start >= end {
					t.Errorf("%q: window [%d, %d) around %d", name, start, end, at)
				}
			}
		}
		if low, high := window.Day(math.MinInt32).Start(loc), window.Day(math.MaxInt32).Start(loc); low >= 0 || high <= 0 {
			t.Errorf("%q: first day starts at %d, last at %d", name, low, high)
		}
	}
}

func BenchmarkDayAt(b *testing.B) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Pacific/Chatham", "Asia/Kathmandu"} {
		b.Run(name, func(b *testing.B) {
			loc, at := zone(b, name), micros(b, "2026-11-30T09:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				window.DayAt(at, loc)
			}
		})
	}
}

func BenchmarkStart(b *testing.B) {
	loc, d := zone(b, "Europe/Berlin"), date(b, "2026-11-30")
	b.ReportAllocs()
	for b.Loop() {
		d.Start(loc)
	}
}
