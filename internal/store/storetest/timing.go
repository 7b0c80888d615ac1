// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

func (d Driver) desk(t *testing.T) *desk {
	t.Helper()
	c := clock.NewManual(Noon)
	return newDesk(t, d.open(t, Options{Clock: c}), c, 1, false)
}

// clockSteps: up to ten seconds backwards time stands still, more is believed
// and told (ENGINE 7).
func clockSteps(t *testing.T, driver Driver) {
	c := clock.NewManual(Noon)
	var steps []store.ClockStep
	s := driver.open(t, Options{Clock: c, OnClockStep: func(step store.ClockStep) { steps = append(steps, step) }})
	d, shop := newDesk(t, s, c, 1, false), newShop("acme")
	at := func() int64 { return apply(t, s, shop.admit(d, "m1", dollar))[0].At }
	second := time.Second.Microseconds()
	for _, step := range []struct {
		clock, want int64
		told        int
	}{
		{Noon, Noon, 0},
		{Noon - 10*second, Noon, 0},
		{Noon - 1, Noon, 0},
		{Noon + second, Noon + second, 0},
		{Noon - 10*second, Noon - 10*second, 1},
		{Noon + 3600*second, Noon + 3600*second, 2},
		{Noon + 3700*second, Noon + 3700*second, 2},
	} {
		c.Set(step.clock)
		if now := s.Now(); now != step.want {
			t.Errorf("clock at %d: now is %d, want %d", step.clock-Noon, now-Noon, step.want-Noon)
		}
		if got := at(); got != step.want || len(steps) != step.told {
			t.Errorf("clock at %d: instant %d, %d steps told; want %d and %d", step.clock-Noon, got-Noon, len(steps), step.want-Noon, step.told)
		}
	}
}

// zoneRebuild: trailing days are derived anew in another zone from the quarters
// (CAP-3, ENGINE 11).
func zoneRebuild(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	s.cap = 3 * dollar
	d.clock.Set(time.Date(2026, 3, 9, 20, 0, 0, 0, time.UTC).UnixMicro())
	apply(t, d.store, s.settle(s.open(t, d, dollar), 4*dollar))
	d.clock.Set(Noon)
	r := s.open(t, d, dollar)
	apply(t, d.store, s.settle(r, dollar))
	zone, err := window.Zone("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	s.zone, s.zoneEpoch = zone, 2
	for range 2 {
		// In Tokyo 20:00 UTC is the next day's 05:00: both charges are of one date.
		result := apply(t, d.store, s.admit(d, "m1", dollar))[0]
		if result.Verdict != ledger.Refused || result.Refusal.Reading.Used != 5*dollar {
			t.Fatalf("verdict %d, refusal %+v, want the day's cap with 5 dollars used", result.Verdict, result.Refusal)
		}
	}
	balanced(t, d.store)
}

// closed: nothing works after Close, and it says so.
func closed(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	if err := d.store.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if _, err := d.store.Apply(t.Context(), []*ledger.Op{s.admit(d, "m1", dollar)}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("apply: %v, want ErrUnavailable", err)
	}
	if _, err := d.store.Object(t.Context(), "acme", "budget", "b1"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("object: %v, want ErrUnavailable", err)
	}
	if err := d.store.Change(t.Context(), Noon, []store.Edit{{}}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("change: %v, want ErrUnavailable", err)
	}
	if err := d.store.View(t.Context(), func(store.Reader) error { return nil }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("view: %v, want ErrUnavailable", err)
	}
}
