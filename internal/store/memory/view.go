// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

type reader struct {
	counters map[ledger.Counter]*ledger.State
	open     shelf.Open
	events   []ledger.Event
	quarters []ledger.QuarterSum
	closings []store.Closing
	calls    []store.Call
	dropped  int64
	whole    int64
	rolled   []ledger.Rollup
}

func compareQuarters(a, b ledger.QuarterSum) int {
	return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Quarter, b.Quarter))
}

func compareEvents(a, b ledger.Event) int {
	return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), a.ID.Compare(b.ID),
		cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Kind, b.Kind))
}

func compareCalls(a, b store.Call) int {
	return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), a.ID.Compare(b.ID))
}

// Counters walks in key order.
func (r *reader) Counters(fn func(ledger.Counter, *ledger.State) error) error {
	keys := slices.SortedFunc(maps.Keys(r.counters), func(a, b ledger.Counter) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	for _, c := range keys {
		if err := fn(c, r.counters[c].Clone()); err != nil {
			return err
		}
	}
	return nil
}

// Reservations walks the open ones, tombstones included.
func (r *reader) Reservations(fn func(*ledger.Reservation) error) error {
	list := slices.SortedFunc(maps.Values(r.open), func(a, b *ledger.Reservation) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), a.ID.Compare(b.ID))
	})
	return each(list, func(v **ledger.Reservation) error { return fn(*v) })
}

// Events walks by workspace and id.
func (r *reader) Events(fn func(*ledger.Event) error) error {
	slices.SortFunc(r.events, compareEvents)
	return each(r.events, fn)
}

// Quarters walks by workspace and key.
func (r *reader) Quarters(fn func(ledger.QuarterSum) error) error {
	slices.SortFunc(r.quarters, compareQuarters)
	return each(r.quarters, func(q *ledger.QuarterSum) error { return fn(*q) })
}

// Closings walks in key order.
func (r *reader) Closings(fn func(store.Closing) error) error {
	slices.SortFunc(r.closings, shelf.CompareClosings)
	return each(r.closings, func(c *store.Closing) error { return fn(*c) })
}

// Dropped is until where calls were dropped.
func (r *reader) Dropped() (before int64, err error) { return r.dropped, nil }

// Whole is before which usage is kept by days.
func (r *reader) Whole() (before int64, err error) { return r.whole, nil }

// Rollups are the days of events that are gone.
func (r *reader) Rollups(fn func(*ledger.Rollup) error) error { return each(r.rolled, fn) }

// Unrolled walks all events.
func (r *reader) Unrolled(fn func(*ledger.Event) error) error { return each(r.events, fn) }

// Calls walks by workspace and id.
func (r *reader) Calls(fn func(*store.Call) error) error {
	slices.SortFunc(r.calls, compareCalls)
	return each(r.calls, fn)
}

func each[T any](list []T, fn func(*T) error) error {
	for i := range list {
		if err := fn(&list[i]); err != nil {
			return err
		}
	}
	return nil
}
