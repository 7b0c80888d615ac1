// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/window"
)

// BUD-1.
var bounds = []struct {
	name       string
	length     string
	period     window.Period
	zone       string
	at         string
	start, end string
}{
	{"an hour", "1h", 0, "", "2026-11-30T09:59:59.999999Z", "2026-11-30T09:00:00Z", "2026-11-30T10:00:00Z"},
	{"an hour's first instant", "1h", 0, "", "2026-11-30T10:00:00Z", "2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"},
	{"24h is aligned to the epoch", "24h", 0, "", "2026-11-30T09:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
	{"7d begin on the epoch's Thursday", "7d", 0, "", "2026-11-30T09:00:00Z", "2026-11-26T00:00:00Z", "2026-12-03T00:00:00Z"},
	{"30d", "30d", 0, "", "1970-01-31T00:00:00Z", "1970-01-31T00:00:00Z", "1970-03-02T00:00:00Z"},
	{"a length ignores the zone", "1d", 0, "Asia/Tokyo", "2026-11-30T09:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
	{"before the epoch", "1d", 0, "", "1969-12-31T23:59:59Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
	{"a day", "", window.PeriodDay, "", "2026-11-30T09:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
	{"a week's Monday", "", window.PeriodWeek, "", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
	{"a week's Sunday", "", window.PeriodWeek, "", "2026-11-29T23:59:59.999999Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
	{"a week before the epoch", "", window.PeriodWeek, "", "1969-12-28T12:00:00Z", "1969-12-22T00:00:00Z", "1969-12-29T00:00:00Z"},
	{"a week with a 23-hour day", "", window.PeriodWeek, "Europe/Berlin", "2026-03-25T00:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
	{"a month", "", window.PeriodMonth, "", "2026-11-30T23:59:59.999999Z", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"},
	{"December", "", window.PeriodMonth, "", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	{"a leap February", "", window.PeriodMonth, "", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
	{"a month east of UTC", "", window.PeriodMonth, "Pacific/Kiritimati", "2026-10-31T10:00:00Z", "2026-10-31T10:00:00Z", "2026-11-30T10:00:00Z"},
	{"a week without its Friday", "", window.PeriodWeek, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"},
}

func TestWindowsAreAlignedToTheCalendarOrTheEpoch(t *testing.T) {
	for _, c := range bounds {
		s := window.Spec{Period: c.period, Zone: zone(t, c.zone)}
		if c.length != "" {
			var err error
			if s.Length, err = window.ParseLength(c.length); err != nil {
				t.Fatal(err)
			}
		}
		start, end := s.Bounds(micros(t, c.at))
		if text(start) != c.start || text(end) != c.end {
			t.Errorf("%s: [%s, %s), want [%s, %s)", c.name, text(start), text(end), c.start, c.end)
		}
	}
}

// BR-040: a month of Tokyo ends at Tokyo's midnight.
func TestBR040AMonthEndsAtTheZonesMidnight(t *testing.T) {
	s := window.Spec{Period: window.PeriodMonth, Zone: zone(t, "Asia/Tokyo")}
	july, end := s.Bounds(micros(t, "2026-07-31T14:59:59Z"))
	if text(july) != "2026-06-30T15:00:00Z" || text(end) != "2026-07-31T15:00:00Z" {
		t.Errorf("July is [%s, %s)", text(july), text(end))
	}
	if august, _ := s.Bounds(micros(t, "2026-07-31T15:00:00Z")); august != end {
		t.Errorf("August begins at %s", text(august))
	}
}

// BR-041: a day of Amsterdam in which the clocks go forward has 23 hours.
func TestBR041ADayCountsInItsZone(t *testing.T) {
	s := window.Spec{Period: window.PeriodDay, Zone: zone(t, "Europe/Amsterdam")}
	for _, at := range []string{"2026-03-28T23:00:00Z", "2026-03-29T10:00:00Z", "2026-03-29T21:59:59.999999Z"} {
		start, end := s.Bounds(micros(t, at))
		if text(start) != "2026-03-28T23:00:00Z" || text(end) != "2026-03-29T22:00:00Z" || end-start != 23*hour {
			t.Errorf("at %s the day is [%s, %s)", at, text(start), text(end))
		}
	}
	if next, _ := s.Bounds(micros(t, "2026-03-29T22:00:00Z")); text(next) != "2026-03-29T22:00:00Z" {
		t.Errorf("the next day begins at %s", text(next))
	}
}

// BR-044: a day begins at midnight, not at its first use.
func TestBR044ADayIsNeverAlignedToItsFirstUse(t *testing.T) {
	for _, s := range []window.Spec{{Period: window.PeriodDay}, {Length: day}} {
		start, end := s.Bounds(micros(t, "2026-05-12T15:43:00Z"))
		if text(start) != "2026-05-12T00:00:00Z" || text(end) != "2026-05-13T00:00:00Z" {
			t.Errorf("[%s, %s)", text(start), text(end))
		}
		if next, _ := s.Bounds(micros(t, "2026-05-13T00:00:00Z")); next != end {
			t.Errorf("the next day begins at %s", text(next))
		}
	}
}

// BUD-1, CAP-3: whatever the window, it holds its instant, every instant of a
// window names the same window, and the next one begins where it ends.
func TestWindowsTileTime(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		p := somewhere(names).Draw(t, "place")
		s := window.Spec{Zone: p.loc, Period: window.Period(rapid.IntRange(1, 3).Draw(t, "period"))}
		if rapid.Bool().Draw(t, "fixed length") {
			s.Length = rapid.Int64Range(window.MinLength, window.MaxLength).Draw(t, "length")
		}
		start, end := s.Bounds(p.at)
		if p.at < start || p.at >= end {
			t.Fatalf("%s is outside [%s, %s)", text(p.at), text(start), text(end))
		}
		for _, at := range []int64{start, rapid.Int64Range(start, end-1).Draw(t, "inside"), end - 1} {
			if a, b := s.Bounds(at); a != start || b != end {
				t.Fatalf("[%s, %s) at %s, [%s, %s) at %s", text(start), text(end), text(p.at), text(a), text(b), text(at))
			}
		}
		if next, _ := s.Bounds(end); next != end {
			t.Fatalf("after %s comes %s", text(end), text(next))
		}
		if _, last := s.Bounds(start - 1); last != start {
			t.Fatalf("before %s ends %s", text(start), text(last))
		}
	})
}

func TestWithoutLengthAndPeriodThereIsOneWindow(t *testing.T) {
	if start, end := (window.Spec{}).Bounds(0); start != math.MinInt64 || end != math.MaxInt64 {
		t.Errorf("[%d, %d)", start, end)
	}
}

func TestQuartersAreUTCs(t *testing.T) {
	for at, want := range map[string]string{
		"2026-11-30T09:00:00Z":        "2026-11-30T09:00:00Z",
		"2026-11-30T09:14:59.999999Z": "2026-11-30T09:00:00Z",
		"2026-11-30T09:15:00Z":        "2026-11-30T09:15:00Z",
		"1969-12-31T23:59:59Z":        "1969-12-31T23:45:00Z",
	} {
		if got := window.QuarterAt(micros(t, at)); text(got) != want {
			t.Errorf("%s: %s, want %s", at, text(got), want)
		}
	}
}

// BUD-1: equal lengths are one window.
func TestParseLengthReadsANumberAndAUnit(t *testing.T) {
	for length, want := range map[string]int64{
		"10s": 10 * second, "90s": 90 * second, "1m": minute, "60m": hour, "1h": hour, "24h": day, "1d": day, "7d": 7 * day, "1w": 7 * day,
		"30d": 30 * day, "52w": 364 * day, "366d": 366 * day, "31622400s": 366 * day,
	} {
		if got, err := window.ParseLength(length); err != nil || got != want {
			t.Errorf("ParseLength(%q) = %d, %v; want %d", length, got, err, want)
		}
	}
}

// BUD-1.
func TestOtherLengthsAreRefused(t *testing.T) {
	for _, length := range []string{
		"", "s", "1", "10", "h1", "1 h", " 1h", "1h ", "+1h", "-1h", "-10s", "1.5h", "1e3s", "0x10s", "01h", "1h30m", "1H", "1D", "1M", "1y", "1ms",
		"10us", "10ns", "1hour", "1_000s", "\uff11h", "NaNs", "P1D",
	} {
		if got, err := window.ParseLength(length); !errors.Is(err, window.ErrLengthSyntax) {
			t.Errorf("ParseLength(%q) = %d, %v", length, got, err)
		}
	}
	for _, length := range []string{"0s", "0d", "1s", "9s", "367d", "53w", "8785h", "31622401s", "9223372036854775807s", "99999999999999999999d"} {
		if got, err := window.ParseLength(length); !errors.Is(err, window.ErrLengthRange) {
			t.Errorf("ParseLength(%q) = %d, %v", length, got, err)
		}
	}
}

var lengthForm = regexp.MustCompile(`^(0|[1-9][0-9]*)([smhdw])$`)

// FuzzParseLength holds the parser against a regular expression and math/big.
func FuzzParseLength(f *testing.F) {
	for _, length := range []string{"", "10s", "366d", "367d", "52w", "01h", "1h30m", "99999999999999999999d"} {
		f.Add(length)
	}
	units := map[string]int64{"s": second, "m": minute, "h": hour, "d": day, "w": 7 * day}
	f.Fuzz(func(t *testing.T, length string) {
		got, err := window.ParseLength(length)
		want := new(big.Int)
		if parts := lengthForm.FindStringSubmatch(length); parts != nil {
			want.SetString(parts[1], 10)
			want.Mul(want, big.NewInt(units[parts[2]]))
		}
		fits := want.Cmp(big.NewInt(10*second)) >= 0 && want.Cmp(big.NewInt(366*day)) <= 0
		if fits != (err == nil) || fits && want.Int64() != got {
			t.Fatalf("ParseLength(%.80q) = %d, %.200v; want %s", length, got, err, want)
		}
	})
}

// FuzzZone shows that no name makes Zone fail in another way than by refusal.
func FuzzZone(f *testing.F) {
	for _, name := range []string{"", "UTC", "Local", "Europe/Berlin", "../x", strings.Repeat("x", 300)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		loc, err := window.Zone(name)
		if (loc == nil) != (err != nil) || err != nil && !errors.Is(err, window.ErrUnknownZone) {
			t.Fatalf("Zone(%q) = %v, %v", name, loc, err)
		}
	})
}
