// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
	"github.com/weirhq/weir/internal/window"
)

// Books is everything that a snapshot shows.
type Books struct {
	Counters     map[ledger.Counter]ledger.State
	Reservations []ledger.Reservation
	Events       []ledger.Event
	Quarters     []ledger.QuarterSum
	Closings     []store.Closing
	Calls        []store.Call
	Dropped      int64
	Rollups      []ledger.Rollup
	Unrolled     []ledger.Event
	Whole        int64
}

// Take copies one snapshot. Counters that mean nothing are left out: a book may
// keep such rows or not.
func Take(ctx context.Context, v store.Verifiable) (*Books, error) {
	b := &Books{Counters: make(map[ledger.Counter]ledger.State)}
	err := v.View(ctx, func(r store.Reader) error {
		return firstError(
			r.Counters(func(c ledger.Counter, s *ledger.State) error {
				if !s.IsZero() {
					b.Counters[c] = *s.Clone()
				}
				return nil
			}),
			r.Reservations(func(v *ledger.Reservation) error { b.Reservations = append(b.Reservations, *v); return nil }),
			r.Events(func(e *ledger.Event) error { b.Events = append(b.Events, *e); return nil }),
			r.Quarters(func(q ledger.QuarterSum) error { b.Quarters = append(b.Quarters, q); return nil }),
			r.Calls(func(c *store.Call) error { b.Calls = append(b.Calls, *c); return nil }),
			r.Closings(func(c store.Closing) error { b.Closings = append(b.Closings, c); return nil }),
			func() (err error) { b.Dropped, err = r.Dropped(); return err }(),
			r.Rollups(func(r *ledger.Rollup) error { b.Rollups = append(b.Rollups, *r); return nil }),
			r.Unrolled(func(e *ledger.Event) error { b.Unrolled = append(b.Unrolled, *e); return nil }),
			func() (err error) { b.Whole, err = r.Whole(); return err }(),
		)
	})
	return b, err
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// Balance checks the books' equations (RES-7): held is what is open, settled,
// credits and raises are what events name, quarters are what events spent, and a
// roster counts its members.
func (b *Books) Balance() error {
	held, settled, credits := b.sums()
	members := int64(0)
	for c, s := range b.Counters {
		if s.Kind == ledger.KindRoster {
			if c.Subject == "" {
				members += s.Settled
			} else {
				members -= s.Settled
			}
			continue
		}
		if s.Held != held[c] {
			return fmt.Errorf("%+v: held %d, open reservations hold %d", c, s.Held, held[c])
		}
		if s.Settled != settled[c] || s.Credits != credits[c] {
			return fmt.Errorf("%+v: settled %d credits %d, events say %d and %d", c, s.Settled, s.Credits, settled[c], credits[c])
		}
		if s.Saturated {
			return fmt.Errorf("%+v is saturated", c)
		}
	}
	for _, sums := range []map[ledger.Counter]int64{held, settled, credits} {
		for c, sum := range sums {
			if _, ok := b.Counters[c]; !ok && sum != 0 {
				return fmt.Errorf("%+v has no row, but %d", c, sum)
			}
		}
	}
	if members != 0 {
		return fmt.Errorf("rosters count %d members too many", members)
	}
	return firstError(b.raisesAgree(), b.quartersAgree(), b.verified())
}

func (b *Books) sums() (held, settled, credits map[ledger.Counter]int64) {
	held, settled, credits = make(map[ledger.Counter]int64), make(map[ledger.Counter]int64), make(map[ledger.Counter]int64)
	for i := range b.Reservations {
		for _, h := range b.Reservations[i].Holds {
			held[h.Counter] += h.Held
		}
	}
	for _, c := range b.Closings {
		if c.Credit {
			credits[c.Counter] += c.Amount
		} else {
			settled[c.Counter] += c.Amount
		}
	}
	for i := range b.Events {
		for _, c := range b.Events[i].Charges {
			switch {
			case c.Raise:
			case c.Credit:
				credits[c.Counter] += c.Amount
			default:
				settled[c.Counter] += c.Amount
			}
		}
	}
	return held, settled, credits
}

// verified is what weir verify does, at an instant just after the last change, or
// after the earliest one that events may have been dropped at (store.Cut).
func (b *Books) verified() error {
	at := b.Dropped + 62*shelf.DayMicros
	for _, s := range b.Counters {
		at = max(at, s.At)
	}
	v := ledger.NewVerifier(at)
	if b.Dropped > 0 {
		v.Dropped(b.Dropped)
	}
	v.RolledFrom(b.Whole)
	for c, s := range b.Counters {
		v.Counter(c, &s)
	}
	for i := range b.Reservations {
		v.Reservation(&b.Reservations[i])
	}
	for _, c := range b.Closings {
		v.Closing(c.Counter, c.Kind, c.Credit, c.Amount)
	}
	for i := range b.Events {
		v.Event(&b.Events[i])
	}
	for i := range b.Calls {
		v.Call(&b.Calls[i].Call)
	}
	for i := range b.Rollups {
		v.Rollup(&b.Rollups[i])
	}
	for i := range b.Unrolled {
		v.Unrolled(&b.Unrolled[i])
	}
	return firstDifference(v.Differences())
}

func firstDifference(list []ledger.Difference) error {
	for _, d := range list {
		return fmt.Errorf("%+v: %s is %d, the records say %d (%s)", d.Counter, d.Figure, d.Have, d.Want, d.ID)
	}
	return nil
}

// RolledUp compares roll-ups with events that may have been written past the book.
func (b *Books) RolledUp() error {
	v := ledger.NewVerifier(b.Whole)
	v.RolledFrom(b.Whole)
	for i := range b.Events {
		e := b.Events[i]
		e.Charges, e.Flows = nil, nil
		v.Event(&e)
	}
	for i := range b.Rollups {
		v.Rollup(&b.Rollups[i])
	}
	for i := range b.Unrolled {
		v.Unrolled(&b.Unrolled[i])
	}
	return firstDifference(v.Differences())
}

func (b *Books) raisesAgree() error {
	raised := make(map[ledger.Counter]int64)
	for i := range b.Events {
		for _, c := range b.Events[i].Charges {
			if c.Raise {
				raised[c.Counter] += c.Amount
			}
		}
	}
	for c, s := range b.Counters {
		if s.Raised != raised[c] {
			return fmt.Errorf("%+v: raised by %d, events say %d", c, s.Raised, raised[c])
		}
	}
	return nil
}

// quartersAgree cannot tell what closed events had spent. The row of a day's first
// quarter may stand for others of the day, which a late correction may have given
// rows again: where they differ, the day is compared.
func (b *Books) quartersAgree() error {
	if len(b.Closings) > 0 {
		return nil
	}
	type key struct {
		workspace, key string
		quarter        int64
	}
	spent := make(map[key]int64)
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case ledger.EventSettled, ledger.EventSwept, ledger.EventCorrection:
			spent[key{e.Workspace, e.Subjects.Key, window.QuarterAt(e.AdmittedAt)}] += e.Spend
		default:
		}
	}
	rows, whole := make(map[key]int64), make(map[key]bool)
	for _, q := range b.Quarters {
		rows[key{q.Workspace, q.Key, q.Quarter}] += q.Spend
	}
	dayOf := func(k key) key { return key{k.workspace, k.key, k.quarter - k.quarter%shelf.DayMicros} }
	for k, spend := range spent {
		day := dayOf(k)
		if _, first := rows[day]; first && rows[k] != spend {
			whole[day] = true
		}
	}
	byDay := func(k key) key {
		if day := dayOf(k); whole[day] {
			return day
		}
		return k
	}
	want, have := make(map[key]int64), make(map[key]int64)
	for k, spend := range spent {
		want[byDay(k)] += spend
	}
	for _, q := range b.Quarters {
		have[byDay(key{q.Workspace, q.Key, q.Quarter})] += q.Spend
	}
	for _, sums := range []map[key]int64{want, have} { // nothing spent is nothing said
		maps.DeleteFunc(sums, func(_ key, spend int64) bool { return spend == 0 })
	}
	if !reflect.DeepEqual(want, have) {
		return fmt.Errorf("quarters are %v, events say %v", have, want)
	}
	return nil
}

// balanced takes the books and checks them.
func (d *desk) balanced(t *testing.T) *Books {
	t.Helper()
	return balanced(t, d.store)
}

func balanced(t *testing.T, v store.Verifiable) *Books {
	t.Helper()
	books, err := Take(t.Context(), v)
	if err != nil {
		t.Fatalf("view: %v", err)
	}
	if err := books.Balance(); err != nil {
		t.Fatalf("books do not balance: %v", err)
	}
	return books
}
