// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/window"
)

const (
	aDay      = int64(24 * time.Hour / time.Microsecond)
	retention = 90 * aDay
	// daysWhole is how old quarters are that no zone's days can need.
	daysWhole = 60 * aDay
	// manySteps is more than any test's prune takes.
	manySteps = 10_000
)

// cutAt is the cut of an instant, as the program makes it.
func cutAt(now int64) store.Cut {
	old := now - retention
	return store.Cut{Calls: old, Events: old - old%aDay, Quarters: now - daysWhole, Notices: old}
}

// prune makes every step of a cut and checks the books after each. Events go when
// they are rolled up.
func prune(ctx context.Context, s Store, cut store.Cut, limit int) (sum store.Pruned, err error) {
	if _, err := Roll(ctx, s, limit); err != nil {
		return sum, err
	}
	for range manySteps {
		step, done, err := s.Prune(ctx, cut, limit)
		if err != nil {
			return sum, err
		}
		books, err := Take(ctx, s)
		if err != nil {
			return sum, err
		}
		if err := books.Balance(); err != nil {
			return sum, fmt.Errorf("after a step: %w", err)
		}
		sum.Calls, sum.Events, sum.Closings = sum.Calls+step.Calls, sum.Events+step.Events, sum.Closings+step.Closings
		sum.Quarters, sum.Rollups, sum.Notices, sum.Kept = sum.Quarters+step.Quarters, sum.Rollups+step.Rollups, sum.Notices+step.Notices, sum.Kept+step.Kept
		if done {
			return sum, nil
		}
	}
	return sum, errors.New("it never ends")
}

func (d *desk) prune(t *testing.T, limit int) store.Pruned {
	t.Helper()
	sum, err := prune(t.Context(), d.store, cutAt(d.clock.Now()), limit)
	if err != nil {
		t.Fatalf("prune: %v", err)
	}
	return sum
}

func (d *desk) after(days int) { d.clock.Advance(time.Duration(days) * 24 * time.Hour) }

// pruneByAge: what is older than the cut is gone, what is younger, runs or is no
// usage stays, and no counter shows another figure (RES-6, BR-167).
func pruneByAge(t *testing.T, driver Driver) {
	for _, limit := range []int{1, 3, 1000} {
		d, s := driver.desk(t), newShop("acme")
		running := s.open(t, d, dollar)
		apply(t, d.store, s.settle(s.open(t, d, 3*dollar), 2*dollar))
		for _, kind := range []ledger.EventKind{ledger.EventRaise, ledger.EventReset, ledger.EventSeed} {
			apply(t, d.store, s.amend(d, kind, dollar))
		}
		top := &ledger.Op{
			Verb: ledger.Fund, ID: d.newID(), Workspace: s.workspace, Checks: s.checks()[:1],
			Entry: &ledger.Entry{Kind: ledger.EventTopUp, Amounts: ledger.Amounts{Spend: 9}},
		}
		warned := s.admit(d, "m1", dollar)
		warned.Checks[5].WarnPercent = []uint8{1}
		over := *s
		over.budget = 0
		apply(t, d.store, top, over.admit(d, "m1", dollar))
		apply(t, d.store, s.settle(apply(t, d.store, warned)[0].Reservation, 5*dollar))
		d.clock.Advance(time.Hour)
		apply(t, d.store, s.settle(s.open(t, d, 3*dollar), dollar))
		d.after(50)
		young := s.open(t, d, 3*dollar)
		apply(t, d.store, s.settle(young, dollar))
		before := d.balanced(t)
		if step := d.prune(t, limit); step != (store.Pruned{}) && step != (store.Pruned{Quarters: step.Quarters}) {
			t.Fatalf("%+v after 50 days", step)
		}
		d.after(45)
		step := d.prune(t, limit)
		books := d.balanced(t)
		if step.Calls != 4 || step.Events != 3 || step.Quarters == 0 || len(books.Calls) != 1 || books.Calls[0].ID != young.ID {
			t.Errorf("limit %d: dropped %+v, left %+v", limit, step, books.Calls)
		}
		if len(books.Events) != 5 || len(books.Closings) == 0 || len(books.Reservations) != 1 || books.Reservations[0].ID != running.ID {
			t.Errorf("limit %d: events %+v, %d closings, open %+v", limit, books.Events, len(books.Closings), books.Reservations)
		}
		if !reflect.DeepEqual(books.Counters, before.Counters) {
			t.Errorf("limit %d: counters are\n%+v, were\n%+v", limit, books.Counters, before.Counters)
		}
		if book, ok := d.store.(outbox); ok {
			if list, err := book.Outbox(t.Context()); err != nil || len(list) != 0 || step.Notices == 0 {
				t.Errorf("limit %d: %d notices are left, %v", limit, len(list), err)
			}
		}
		apply(t, d.store, s.settle(running, dollar))
		if books = d.balanced(t); len(books.Calls) != 2 {
			t.Errorf("limit %d: %d calls after a late end", limit, len(books.Calls))
		}
		if again := d.prune(t, limit); again.Events != 0 || again.Calls != 0 {
			t.Errorf("limit %d: %+v after a late end: its records count from there", limit, again)
		}
	}
}

// prunedMissing: who comes when the records are gone is told so, and what was
// charged stays charged (RES-6, RES-9).
func prunedMissing(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	swept, settled := s.open(t, d, 3*dollar), s.open(t, d, 3*dollar)
	apply(t, d.store, s.end(ledger.Sweep, swept), s.settle(settled, dollar))
	d.after(40)
	between := s.open(t, d, 3*dollar)
	apply(t, d.store, s.end(ledger.Sweep, between))
	adjust := func(r *ledger.Reservation) *ledger.Op {
		op := s.end(ledger.Adjust, r)
		op.Entry = &ledger.Entry{Kind: ledger.EventCorrection, Amounts: ledger.Amounts{Spend: -dollar}, Reason: "late", Actor: "ada"}
		return op
	}
	d.after(55)
	before := d.balanced(t)
	d.prune(t, 2)
	for _, op := range []*ledger.Op{s.settle(swept, 0), s.end(ledger.Void, swept), adjust(swept), s.settle(settled, 0), adjust(settled), s.end(ledger.Renew, settled)} {
		if v := apply(t, d.store, op)[0].Verdict; v != ledger.Missing {
			t.Errorf("verb %d of a request whose records are gone: verdict %d, want Missing", op.Verb, v)
		}
	}
	if after := d.balanced(t); !reflect.DeepEqual(before.Counters, after.Counters) {
		t.Errorf("counters are\n%+v, were\n%+v", after.Counters, before.Counters)
	}
	for _, id := range []ledger.ID{swept.ID, settled.ID} {
		if _, _, err := d.store.Call(t.Context(), s.workspace, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", id, err)
		}
	}
	// Its call is gone, its event is not: the caller's own copy says what was held.
	cut := cutAt(d.clock.Now())
	cut.Calls = d.clock.Now()
	if _, err := prune(t.Context(), d.store, cut, 2); err != nil {
		t.Fatal(err)
	}
	if v := apply(t, d.store, s.settle(between, dollar))[0].Verdict; v != ledger.Done {
		t.Errorf("a late usage after the call's record is gone: verdict %d", v)
	}
	d.balanced(t)
}

// prunedWhole: the events of a request go together: half of them would tell
// another ending, or another number of corrections (RES-2, RES-9).
func prunedWhole(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	var list []*ledger.Reservation
	for range 3 {
		r := s.open(t, d, 9*dollar)
		op := s.settle(r, dollar)
		for range 6 {
			op.Settlement.Attempts = append(op.Settlement.Attempts, op.Settlement.Attempts[0])
		}
		apply(t, d.store, op)
		list = append(list, r)
	}
	correct := func(number int32) ledger.Verdict {
		op := s.end(ledger.Adjust, list[1])
		op.Entry = &ledger.Entry{Kind: ledger.EventCorrection, Number: number, Amounts: ledger.Amounts{Spend: -dollar}}
		return apply(t, d.store, op)[0].Verdict
	}
	d.after(30)
	if v := correct(0); v != ledger.Done {
		t.Fatalf("verdict %d", v)
	}
	d.after(65)
	if _, err := Roll(t.Context(), d.store, 1); err != nil {
		t.Fatal(err)
	}
	for range manySteps {
		_, done, err := d.store.Prune(t.Context(), cutAt(d.clock.Now()), 2)
		if err != nil {
			t.Fatal(err)
		}
		events := make(map[ledger.ID]int)
		for _, e := range d.balanced(t).Events {
			events[e.ID]++
		}
		for id, n := range events {
			if want := map[bool]int{true: 8, false: 7}[id == list[1].ID]; n != want {
				t.Fatalf("%s has %d events, want all %d or none", id, n, want)
			}
		}
		if done {
			break
		}
	}
	if books := d.balanced(t); len(books.Events) != 8 || books.Events[0].ID != list[1].ID {
		t.Errorf("left %+v, want what was corrected lately", books.Events)
	}
	if v := correct(0); v != ledger.Already {
		t.Errorf("the same correction: verdict %d", v)
	}
	if v := correct(1); v != ledger.Done {
		t.Errorf("the next correction: verdict %d", v)
	}
	d.balanced(t)
}

// prunedRebuild: a row of days is rebuilt in another zone as if no quarter had
// become a day (CAP-3, ENGINE 11).
func prunedRebuild(t *testing.T, driver Driver) {
	for _, name := range []string{"Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kathmandu", "America/New_York"} {
		d, s := driver.desk(t), newShop("acme")
		whole := memory.New(memory.Options{Clock: d.clock})
		s.cap = 1
		s.budget = 0 // the answer is a refusal: it shows the reading
		for i := range 24 * 8 {
			open := *s
			open.cap, open.budget = 1000*dollar, 1000*dollar
			op := open.admit(d, "m1", dollar)
			r := apply(t, d.store, op)[0].Reservation
			apply(t, whole, op)
			apply(t, d.store, open.settle(r, int64(i)+1))
			apply(t, whole, open.settle(r, int64(i)+1))
			d.clock.Advance(10*time.Hour + 7*time.Minute)
		}
		if step := d.prune(t, 5); step.Quarters == 0 {
			t.Fatal("no quarter has become a day")
		}
		zone, err := window.Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		s.zone, s.zoneEpoch = zone, 2
		for _, span := range []int32{1, 7, 30} {
			op := s.admit(d, "m1", dollar)
			op.Checks[1].Span = span
			have, want := apply(t, d.store, op)[0], apply(t, whole, op)[0]
			if have.Readings[1].Used != want.Readings[1].Used || span > 1 && want.Readings[1].Used == 0 {
				t.Errorf("%s: %d days have %d, with every quarter %d", name, span, have.Readings[1].Used, want.Readings[1].Used)
			}
		}
		d.balanced(t)
	}
}

// pruneWhileOthersWrite: steps between the batches of many callers.
func pruneWhileOthersWrite(t *testing.T, d *desk) {
	s := newShop("acme")
	s.budget = 1000 * dollar
	for range rounds {
		d.do(t, s.settle(s.open(t, d, dollar), dollar))
	}
	late := s.open(t, d, dollar)
	if _, err := Roll(t.Context(), d.store, 50); err != nil {
		t.Fatal(err)
	}
	d.after(100)
	together(callers, func(i int) {
		switch i {
		case 0:
			for done := false; !done; {
				var err error
				if _, done, err = d.store.Prune(t.Context(), cutAt(d.clock.Now()), 2); err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Error(err)
					return
				}
			}
		case 1:
			d.do(t, s.settle(late, dollar))
		default:
			for range rounds {
				d.do(t, s.settle(s.open(t, d, dollar), dollar))
			}
		}
	})
	books := d.balanced(t)
	sums := make(map[string]int64)
	for c, state := range books.Counters {
		sums[c.Limit] += state.Settled
	}
	const all = (rounds + 1 + (callers-2)*rounds) * dollar
	if sums["funds"] != all || sums["budget"] != all || len(books.Closings) == 0 {
		t.Errorf("funds %d, budgets %d, want %d; %d closings", sums["funds"], sums["budget"], all, len(books.Closings))
	}
}

// aged is a random history over many days, beside a book that drops nothing.
type agedMix struct {
	*mix
	cut int64 // what was admitted before it may be gone
}

// forget leaves alone what may be gone, and does not run.
func (m *agedMix) forget(ctx context.Context) {
	m.known = slices.DeleteFunc(m.known, func(r *ledger.Reservation) bool {
		call, _, err := m.other.Call(ctx, r.Workspace, r.ID)
		return r.At < m.cut && (err != nil || call.Outcome != store.OutcomeRunning)
	})
}

// days makes some batches, days apart, with steps of a prune between.
func (m *agedMix) days(t *rapid.T) {
	for range rapid.IntRange(1, 12).Draw(t, "batches") {
		m.forget(t.Context())
		m.batch(t)
		m.desk.clock.Advance(time.Duration(rapid.IntRange(0, 25*24).Draw(t, "hours")) * time.Hour)
		m.forget(t.Context())
		cut := cutAt(m.desk.clock.Now())
		if rapid.Bool().Draw(t, "rolls") {
			if _, err := Roll(t.Context(), m.desk.store, 100); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "steps") {
			m.cut = max(m.cut, cut.Calls, cut.Events)
			if _, _, err := m.desk.store.Prune(t.Context(), cut, rapid.IntRange(1, 7).Draw(t, "limit")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// unchanged tells whether every counter is what it is where nothing was dropped,
// and whether the books balance.
func unchanged(ctx context.Context, v store.Verifiable, other *memory.Book) error {
	have, err := Take(ctx, v)
	if err != nil {
		return err
	}
	want, err := Take(ctx, other)
	if err != nil {
		return err
	}
	if err := firstError(have.Balance(), want.Balance()); err != nil {
		return err
	}
	for c, state := range want.Counters {
		if !reflect.DeepEqual(have.Counters[c], state) {
			return fmt.Errorf("%+v is %+v, where nothing was dropped %+v", c, have.Counters[c], state)
		}
	}
	if len(have.Counters) != len(want.Counters) {
		return fmt.Errorf("%d counters, where nothing was dropped %d", len(have.Counters), len(want.Counters))
	}
	return nil
}

func newAged(check int, d *desk, other *memory.Book) *agedMix {
	s := newShop(fmt.Sprintf("w%d", check))
	s.budget, s.slots, s.rpm, s.tpm = 20*dollar, 6, 20, 2000
	return &agedMix{mix: &mix{desk: d, other: other, shop: s}}
}

// pruneRandomly: at whatever moments and in whatever steps is pruned, every
// result and counter is what it is where nothing is, and the books balance (RES-6, RES-7).
func pruneRandomly(t *testing.T, driver Driver) {
	c := clock.NewManual(Noon)
	d := newDesk(t, driver.open(t, Options{Clock: c}), c, 1, false)
	other := memory.New(memory.Options{Clock: c})
	check := 0
	rapid.Check(t, func(t *rapid.T) {
		check++
		newAged(check, d, other).days(t)
		if err := unchanged(t.Context(), d.store, other); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := prune(t.Context(), d.store, cutAt(c.Now()), 1000); err != nil {
		t.Error(err)
	}
}

// pruneThroughKills: a kill between two steps loses nothing, and the next process
// goes on (RES-1, RES-6).
func pruneThroughKills(t *testing.T, driver Driver) {
	c, place := clock.NewManual(Noon), t.TempDir()
	d := newDesk(t, driver.openAt(t, place, Options{Clock: c}), c, 1, false)
	other := memory.New(memory.Options{Clock: c})
	check := 0
	rapid.Check(t, func(rt *rapid.T) {
		check++
		newAged(check, d, other).days(rt)
		left := t.TempDir()
		if err := driver.Killed(place, left); err != nil {
			rt.Fatal(err)
		}
		limit := rapid.IntRange(1, 300).Draw(rt, "limit of the next process")
		_, err := driver.Open(t.Context(), left, Options{Clock: c, BeforeSweep: func(s Store) error {
			for range 20 {
				if _, _, err := s.Prune(t.Context(), cutAt(c.Now()), limit); err != nil {
					return err
				}
			}
			return firstError(unchanged(t.Context(), s, other), errSame)
		}})
		if !errors.Is(err, errSame) {
			rt.Fatalf("after the kill: %v", err)
		}
	})
}
