// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// reopen: what was acknowledged is there after a restart.
func reopen(t *testing.T, driver Driver) {
	place, c := t.TempDir(), clock.NewManual(Noon)
	first := driver.openAt(t, place, Options{Clock: c})
	d, s := newDesk(t, first, c, 1, false), newShop("acme")
	for i := range int64(20) {
		apply(t, first, s.settle(s.open(t, d, dollar), i))
	}
	s.budget = 0
	refused := s.admit(d, "m1", dollar)
	apply(t, first, refused)
	e := edit("acme", "key", "k1", "ci", 0)
	e.AddSecret = &store.KeySecret{Hash: [32]byte{5}}
	change(t, first, Noon, e)
	before := balanced(t, first)
	secret, err := first.StoreSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	second := driver.openAt(t, place, Options{Clock: c})
	if after := balanced(t, second); !reflect.DeepEqual(before, after) {
		t.Errorf("books changed from\n%+v to\n%+v", before, after)
	}
	if again, err := second.StoreSecret(t.Context()); err != nil || !reflect.DeepEqual(secret, again) {
		t.Errorf("the store's secret changed: %v", err)
	}
	if got, err := second.KeyBySecret(t.Context(), [32]byte{5}); err != nil || got.KeyID != "k1" {
		t.Errorf("secret: %+v, %v", got, err)
	}
	stale := s.admit(d, "m1", dollar)
	stale.Generation = 1
	change(t, second, Noon, edit("acme", "key", "k1", "ci", 1))
	if v := apply(t, second, stale)[0].Verdict; v != ledger.Stale {
		t.Errorf("verdict %d: the generation did not go on", v)
	}
}

// startSweeps: a start charges what a dead process left open, before anything
// else (RES-1, RES-5, ENGINE 9).
func startSweeps(t *testing.T, driver Driver) {
	place, c := t.TempDir(), clock.NewManual(Noon)
	first := driver.openAt(t, place, Options{Clock: c})
	d, s := newDesk(t, first, c, 1, false), newShop("acme")
	r := s.open(t, d, 7*dollar)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := driver.openAt(t, place, Options{Clock: c})
	books := balanced(t, second)
	if len(books.Reservations) != 0 || len(books.Events) != 1 || books.Events[0].Kind != ledger.EventSwept {
		t.Errorf("%d open, events %+v", len(books.Reservations), books.Events)
	}
	apply(t, second, s.settle(r, 2*dollar))
	for counter, state := range balanced(t, second).Counters {
		if counter.Limit == "budget" && state.Settled != 2*dollar {
			t.Errorf("settled %d after the true usage came late, want %d", state.Settled, 2*dollar)
		}
	}
}

// startLeaves: a start leaves alone what other processes run, and whoever has the
// reservation settles it (ENGINE 9).
func startLeaves(t *testing.T, driver Driver) {
	place, c := t.TempDir(), clock.NewManual(Noon)
	first := driver.openAt(t, place, Options{Clock: c})
	d, s := newDesk(t, first, c, 1, false), newShop("acme")
	r := s.open(t, d, 7*dollar)
	second := driver.openAt(t, place, Options{Clock: c})
	if books := balanced(t, second); len(books.Reservations) != 1 || len(books.Events) != 0 {
		t.Errorf("%d open, events %+v, want one open and none", len(books.Reservations), books.Events)
	}
	if v := apply(t, second, s.settle(r, 2*dollar))[0].Verdict; v != ledger.Done {
		t.Errorf("verdict %d by another store, want done", v)
	}
	if v := apply(t, first, s.settle(r, 2*dollar))[0].Verdict; v != ledger.Already {
		t.Errorf("verdict %d by the first, want already", v)
	}
	balanced(t, first)
}

// clockBehind: a clock more than an hour behind the books refuses the start,
// unless it is accepted (ENGINE 7).
func clockBehind(t *testing.T, driver Driver) {
	place, c := t.TempDir(), clock.NewManual(Noon)
	first := driver.openAt(t, place, Options{Clock: c})
	s := newShop("acme")
	s.open(t, newDesk(t, first, c, 1, false), dollar)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c.Advance(-61 * time.Minute)
	if refused, err := driver.Open(t.Context(), place, Options{Clock: c}); !errors.Is(err, store.ErrClock) {
		t.Errorf("open: %v, %v, want ErrClock", refused, err)
	}
	var steps []store.ClockStep
	accepted := driver.openAt(t, place, Options{Clock: c, AcceptClock: true, OnClockStep: func(s store.ClockStep) { steps = append(steps, s) }})
	balanced(t, accepted)
	if len(steps) != 1 || steps[0].From != Noon || steps[0].To != c.Now() {
		t.Errorf("steps %+v, want one from the last instant", steps)
	}
}
