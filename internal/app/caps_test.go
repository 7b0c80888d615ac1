// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
)

const capKey = "the-secret-of-the-capped-key"

// capConfig: a request costs 320 µ$, a cap of 300 µ$ is spent by one.
func capConfig(zone, caps string) string {
	return `time_zone: ` + zone + `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: the-secret-of-the-capped-key, caps: ` + caps + `}
`
}

func instant(t *testing.T, s string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

// TestDayCapsFollowTheZonesCalendar: CAP-3, BR-040, BR-041, BR-044, BR-045. A
// day's cap is spent a while before the local day ends; it refuses up to the
// last microsecond and admits from the first of the next local day, however
// long the day is and whether or not its midnight exists.
func TestDayCapsFollowTheZonesCalendar(t *testing.T) {
	for _, c := range []struct{ zone, spent, ends string }{
		{"Asia/Tokyo", "2026-07-31T10:00:00Z", "2026-07-31T15:00:00Z"},
		{"Europe/Amsterdam", "2026-03-29T10:00:00Z", "2026-03-29T22:00:00Z"}, // 23 hours
		{"Europe/Amsterdam", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"}, // 25 hours, from its first instant
		{"America/Havana", "2026-03-07T20:00:00Z", "2026-03-08T05:00:00Z"},   // midnight does not exist: 00:00 is 01:00
		{"America/Havana", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z"}, // nor here
		{"Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z"},
		{"Pacific/Chatham", "2026-07-20T00:00:00Z", "2026-07-20T11:15:00Z"}, // +12:45
		{"Asia/Kathmandu", "2026-07-20T00:00:00Z", "2026-07-20T18:15:00Z"},  // +5:45
		{"Australia/Lord_Howe", "2026-04-04T12:59:59Z", "2026-04-04T13:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"}, // half an hour back
		{"Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-30T10:00:00Z"},        // the 30th never was
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"UTC", "2026-07-20T15:43:00Z", "2026-07-21T00:00:00Z"}, // not 24 hours after the first use
	} {
		t.Run(c.zone+" "+c.spent, func(t *testing.T) {
			t.Parallel()
			w := newWorldAt(t, instant(t, c.spent), capConfig(c.zone, `{day: "0.0003"}`))
			w.must(w.chat(capKey, "m"), 200, "")
			w.must(w.chat(capKey, "m"), 402, "day_limit_reached")
			end := instant(t, c.ends)
			w.clock.Set(end - 1)
			w.must(w.chat(capKey, "m"), 402, "day_limit_reached")
			w.clock.Set(end)
			w.must(w.chat(capKey, "m"), 200, "")
			w.settled("1", "10")
		})
	}
}

// TestTrailingCapsCountLocalDates: the 7-day cap frees what was spent on a date
// when that date leaves the window, the 30-day cap later; the first in the
// published order answers (CAP-1).
func TestTrailingCapsCountLocalDates(t *testing.T) {
	w := newWorldAt(t, instant(t, "2026-03-01T12:00:00Z"), capConfig("Europe/Berlin", `{day: "0.0003", seven_day: "0.0006", thirty_day: "0.0009"}`))
	day := func(date string) { w.clock.Set(instant(t, date+"T12:00:00Z")) }
	w.must(w.chat(capKey, "m"), 200, "")
	w.must(w.chat(capKey, "m"), 402, "day_limit_reached")
	day("2026-03-02")
	w.must(w.chat(capKey, "m"), 200, "")
	w.must(w.chat(capKey, "m"), 402, "day_limit_reached")
	day("2026-03-03")
	w.must(w.chat(capKey, "m"), 402, "seven_day_limit_reached")
	w.clock.Set(instant(t, "2026-03-07T22:59:59Z"))
	w.must(w.chat(capKey, "m"), 402, "seven_day_limit_reached")
	w.clock.Set(instant(t, "2026-03-07T23:00:00Z")) // the 8th in Berlin: the 1st has left
	w.must(w.chat(capKey, "m"), 200, "")
	day("2026-03-20")
	w.must(w.chat(capKey, "m"), 402, "thirty_day_limit_reached")
	w.clock.Set(instant(t, "2026-03-30T21:59:59Z"))
	w.must(w.chat(capKey, "m"), 402, "thirty_day_limit_reached")
	w.clock.Set(instant(t, "2026-03-30T22:00:00Z")) // the 31st: the 1st has left
	w.must(w.chat(capKey, "m"), 200, "")
	w.settled("1", "10")
}

// TestACapThatIsSetLaterSeesTheWindowsSpend, and no more than it: CAP-1, CAP-2,
// BR-047, BUD-8. Raising it takes effect at once and forgets nothing (ADM-4).
func TestACapThatIsSetLaterSeesTheWindowsSpend(t *testing.T) {
	ctx := context.Background()
	w := newWorldAt(t, instant(t, "2026-05-01T12:00:00Z"), `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
`)
	made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k")}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w.must(w.chat(made.Secret, "m"), 200, "")
	}
	setDay := func(usd string) {
		t.Helper()
		_, err := w.admin.KeyUpdate(ctx, admin.KeyUpdateRequest{Key: "k", Body: admin.KeyFields{
			Caps: admin.Some(admin.CapFields{Day: admin.Some(usd)}),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Set(instant(t, "2026-07-20T12:00:00Z"))
	setDay("0.0003")
	w.must(w.chat(made.Secret, "m"), 200, "")
	w.must(w.chat(made.Secret, "m"), 402, "day_limit_reached")
	setDay("0.00064")
	w.must(w.chat(made.Secret, "m"), 200, "")
	w.must(w.chat(made.Secret, "m"), 402, "day_limit_reached")
	setDay("0")
	w.must(w.chat(made.Secret, "m"), 200, "")
	setDay("0.00096")
	w.must(w.chat(made.Secret, "m"), 402, "day_limit_reached")
	w.settled("1", "10")
}

// TestChangingTheZoneRederivesTheDays: CAP-3. What was spent yesterday evening in
// one zone is today's in another.
func TestChangingTheZoneRederivesTheDays(t *testing.T) {
	w := newWorldAt(t, instant(t, "2026-07-20T22:30:00Z"), capConfig("Asia/Tokyo", `{day: "0.0003"}`))
	w.must(w.chat(capKey, "m"), 200, "") // 07:30 on the 21st in Tokyo
	w.must(w.chat(capKey, "m"), 402, "day_limit_reached")
	w.clock.Set(instant(t, "2026-07-21T06:30:00Z"))
	w.write(capConfig("America/Los_Angeles", `{day: "0.0003"}`)) // the 20th, 23:30; spent on the 20th, 15:30
	w.restart()
	w.must(w.chat(capKey, "m"), 402, "day_limit_reached")
	w.clock.Set(instant(t, "2026-07-21T07:00:00Z"))
	w.must(w.chat(capKey, "m"), 200, "")
	w.settled("1", "10")
}
