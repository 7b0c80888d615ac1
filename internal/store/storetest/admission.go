// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

const (
	callers = 16
	rounds  = 12
)

// together runs fn in so many goroutines and waits for all.
func together(n int, fn func(i int)) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { fn(i) })
	}
	wait.Wait()
}

// concurrentHolds: neither budget nor slots are ever passed, whoever asks at
// once (BUD-2, RUN-3, RES-1).
func concurrentHolds(t *testing.T, d *desk) {
	s := newShop("acme")
	s.budget, s.slots = 50*dollar, 4
	var running, spent, refused atomic.Int64
	together(callers, func(i int) {
		for range rounds {
			result := d.do(t, s.admit(d, "m1", 2*dollar))
			// Sent again after a lost refusal, it finds its tombstone: already.
			if result.Verdict != ledger.Admitted {
				refused.Add(1)
				continue
			}
			if n := running.Add(1); n > s.slots {
				t.Errorf("%d requests run at once, %d may", n, s.slots)
			}
			running.Add(-1)
			if d.do(t, s.settle(result.Reservation, dollar+int64(i))).Verdict > ledger.Already {
				t.Errorf("settle: not done")
			}
			spent.Add(dollar + int64(i))
		}
	})
	books := d.balanced(t)
	for c, state := range books.Counters {
		if c.Limit == "budget" && (state.Settled+state.Held > s.budget || state.Settled != spent.Load()) {
			t.Errorf("budget: settled %d held %d of %d, settlements say %d", state.Settled, state.Held, s.budget, spent.Load())
		}
	}
	if refused.Load() == 0 || len(books.Reservations) != tombstonesIn(books) {
		t.Errorf("%d refused, %d still open", refused.Load(), len(books.Reservations))
	}
}

func tombstonesIn(b *Books) int {
	n := 0
	for i := range b.Reservations {
		if b.Reservations[i].Tombstone {
			n++
		}
	}
	return n
}

// refusalIsFree: a refusal changes no counter (ORD-1).
func refusalIsFree(t *testing.T, d *desk) {
	s := newShop("acme")
	s.budget = 10 * dollar
	s.open(t, d, 8*dollar)
	before := d.balanced(t).Counters
	d.clock.Advance(time.Second)
	for range rounds {
		result := d.do(t, s.admit(d, "m1", 3*dollar))
		if d.faulty && result.Verdict == ledger.Already {
			continue // its refusal was lost
		}
		if result.Verdict != ledger.Refused || result.Refusal.Check.Counter.Limit != "budget" {
			t.Fatalf("verdict %d, want a refusal by the budget", result.Verdict)
		}
	}
	if after := d.balanced(t).Counters; !reflect.DeepEqual(before, after) {
		t.Errorf("counters changed from\n%+v to\n%+v", before, after)
	}
}

// settleTwice: a settlement happens once, whoever comes first (RES-2).
func settleTwice(t *testing.T, d *desk) {
	s := newShop("acme")
	r := s.open(t, d, 8*dollar)
	var done, already atomic.Int64
	together(callers, func(i int) {
		switch v := d.do(t, s.settle(r, int64(i+1)*dollar)).Verdict; v {
		case ledger.Done:
			done.Add(1)
		case ledger.Already:
			already.Add(1)
		default:
			t.Errorf("verdict %d", v)
		}
	})
	// The answer to the one that did it may be lost: then its repetition finds it done.
	if done.Load() > 1 || done.Load() == 0 && !d.faulty || done.Load()+already.Load() != callers {
		t.Errorf("%d done, %d already", done.Load(), already.Load())
	}
	books := d.balanced(t)
	if len(books.Events) != 1 || len(books.Calls) != 1 {
		t.Errorf("%d events and %d calls, want one each", len(books.Events), len(books.Calls))
	}
}

// endings: at rest nothing is held (RES-7), and only what RES-2 and RES-5 charge
// is charged.
func endings(t *testing.T, d *desk) {
	for _, c := range []struct {
		verb    ledger.Verb
		outcome string
		spend   int64
	}{
		{ledger.Void, "voided", 0},
		{ledger.Undo, "undone", 0},
		{ledger.Sweep, "swept", 8 * dollar},
	} {
		s := newShop("acme-" + c.outcome)
		r := s.open(t, d, 8*dollar)
		d.do(t, s.end(c.verb, r))
		call, events, err := d.store.Call(t.Context(), s.workspace, r.ID)
		if err != nil || call.Outcome != c.outcome || call.Spend != c.spend || len(events) != 1 {
			t.Errorf("%s: call %q, spend %d, %d events, %v", c.outcome, call.Outcome, call.Spend, len(events), err)
		}
	}
	for counter, state := range d.balanced(t).Counters {
		if state.Held != 0 {
			t.Errorf("%+v holds %d", counter, state.Held)
		}
	}
}

// staleGeneration: no operation runs on an older snapshot (ADM-4, ENGINE 13).
func staleGeneration(t *testing.T, d *desk) {
	s := newShop("acme")
	change := func(workspace, id string) int64 {
		err := d.store.Change(t.Context(), Noon, []store.Edit{{Object: store.Object{Workspace: workspace, Kind: "budget", ID: id, Name: id}}})
		if err != nil {
			t.Fatalf("change: %v", err)
		}
		_, now, err := d.store.Since(t.Context(), s.workspace, 1)
		if err != nil {
			t.Fatalf("since: %v", err)
		}
		return now
	}
	verdict := func(generation int64) ledger.Verdict {
		op := s.admit(d, "m1", dollar)
		op.Generation = generation
		return d.do(t, op).Verdict
	}
	first := change("acme", "b1")
	running := s.open(t, d, dollar)
	if v := verdict(first); v != ledger.Admitted {
		t.Errorf("on the present generation: verdict %d", v)
	}
	change("other", "b1")
	if v := verdict(first); v != ledger.Admitted {
		t.Errorf("after another workspace's change: verdict %d", v)
	}
	second := change("acme", "b2")
	if v := verdict(first); v != ledger.Stale {
		t.Errorf("after a change: verdict %d", v)
	}
	third := change("", "p1")
	if v := verdict(second); v != ledger.Stale {
		t.Errorf("after a change that all share: verdict %d", v)
	}
	if v := verdict(third); v != ledger.Admitted {
		t.Errorf("on the newest generation: verdict %d", v)
	}
	if v := d.do(t, s.settle(running, dollar)).Verdict; v != ledger.Done && v != ledger.Already {
		t.Errorf("a settlement is never stale: verdict %d", v)
	}
	d.balanced(t)
}

// lateSettle: a real usage corrects a sweep, once (RES-2).
func lateSettle(t *testing.T, d *desk) {
	s := newShop("acme")
	r := s.open(t, d, 8*dollar)
	d.do(t, s.end(ledger.Sweep, r))
	d.clock.Advance(time.Minute)
	together(callers, func(int) { d.do(t, s.settle(r, 3*dollar)) })
	books := d.balanced(t)
	for c, state := range books.Counters {
		if (c.Limit == "budget" || c.Limit == "funds" || c.Limit == "days") && state.Settled != 3*dollar {
			t.Errorf("%s: settled %d, want the real usage", c.Limit, state.Settled)
		}
	}
	_, events, err := d.store.Call(t.Context(), s.workspace, r.ID)
	if err != nil || len(events) != 2 || events[0].Kind != ledger.EventSwept || events[1].Kind != ledger.EventCorrection {
		t.Errorf("events %+v, %v", events, err)
	}
}

// lateOldCopy: who comes after a sweep with a copy from before a move corrects
// what the sweep charged, not what his copy says (RES-2, ORD-4).
func lateOldCopy(t *testing.T, d *desk) {
	s := newShop("acme")
	r := s.open(t, d, 8*dollar)
	move := s.admit(d, "m2", 9*dollar)
	move.Verb, move.Reservation = ledger.Move, r
	moved := d.do(t, move)
	if moved.Verdict != ledger.Admitted {
		t.Fatalf("move: verdict %d", moved.Verdict)
	}
	d.do(t, s.end(ledger.Sweep, moved.Reservation))
	d.clock.Advance(time.Minute)
	together(callers, func(int) { d.do(t, s.settle(r, 3*dollar)) })
	for c, state := range d.balanced(t).Counters {
		if (c.Limit == "funds" || c.Limit == "days") && state.Settled != 3*dollar || state.Held != 0 {
			t.Errorf("%+v: settled %d, held %d, want the real usage and nothing held", c, state.Settled, state.Held)
		}
	}
}

// movedSettle: what a failover has taken meanwhile is released too, though the
// settlement names the holds of its admission (DIS-1, ORD-4).
func movedSettle(t *testing.T, d *desk) {
	s := newShop("acme")
	r := s.open(t, d, 8*dollar)
	move := s.admit(d, "m2", 9*dollar)
	move.Verb, move.Reservation = ledger.Move, r
	if v := d.do(t, move).Verdict; v != ledger.Admitted {
		t.Fatalf("move: verdict %d", v)
	}
	// Others use the second model, so its counter is not zero.
	other := d.do(t, s.admit(d, "m2", dollar))
	d.do(t, s.settle(r, 4*dollar))
	d.do(t, s.settle(other.Reservation, dollar))
	for c, state := range d.balanced(t).Counters {
		if state.Held != 0 {
			t.Errorf("%+v holds %d", c, state.Held)
		}
	}
}

// expired: what nobody settles or renews in time is found (RES-5).
func expired(t *testing.T, d *desk) {
	s := newShop("acme")
	first, second := s.open(t, d, dollar), s.open(t, d, dollar)
	d.clock.Advance(20 * time.Minute)
	d.do(t, s.end(ledger.Renew, second))
	third := s.open(t, d, dollar)
	d.clock.Advance(20 * time.Minute)
	ids := func() (ids []ledger.ID) {
		list, err := d.store.Expired(t.Context(), 10)
		if err != nil {
			t.Fatalf("expired: %v", err)
		}
		for _, r := range list {
			if !r.Tombstone {
				ids = append(ids, r.ID)
			}
		}
		return ids
	}
	if got := ids(); len(got) != 1 || got[0] != first.ID {
		t.Errorf("expired: %v, want the one that was not renewed", got)
	}
	d.clock.Advance(20 * time.Minute)
	list, err := d.store.Expired(t.Context(), 2)
	if err != nil || len(list) != 2 || list[0].ID != first.ID {
		t.Errorf("expired, at most 2: %d, %v", len(list), err)
	}
	for _, r := range []*ledger.Reservation{first, second, third} {
		d.do(t, s.end(ledger.Sweep, r))
	}
	if got := ids(); len(got) != 0 {
		t.Errorf("after the sweep: %v", got)
	}
	d.balanced(t)
}

// topUpTwice: money that was paid in once is booked once (BAL-3).
func topUpTwice(t *testing.T, d *desk) {
	s := newShop("acme")
	op := &ledger.Op{
		Verb: ledger.Fund, ID: d.newID(), Workspace: s.workspace, Checks: s.checks()[:1],
		Entry: &ledger.Entry{Kind: ledger.EventTopUp, Amounts: ledger.Amounts{Spend: 5 * dollar}, Reason: "invoice 7", Actor: "ada"},
	}
	together(callers, func(int) { d.do(t, op) })
	if got := d.balanced(t).Counters[s.counter("funds")].Credits; got != 5*dollar {
		t.Errorf("credits are %d, want one top-up", got)
	}
	entries, err := d.store.FundEntries(t.Context(), s.workspace, ledger.ID{}, 10)
	if err != nil || len(entries) != 1 || entries[0].Spend != 5*dollar || entries[0].Actor != "ada" || entries[0].Reason != "invoice 7" {
		t.Errorf("fund entries: %+v, %v", entries, err)
	}
}

// adjustTwice: corrections of one request are numbered, so that each is booked
// once however often it is sent (RES-9).
func adjustTwice(t *testing.T, d *desk) {
	s := newShop("acme")
	r := s.open(t, d, 8*dollar)
	d.do(t, s.settle(r, 5*dollar))
	for number := range int32(4) {
		op := s.end(ledger.Adjust, r)
		op.Entry = &ledger.Entry{Number: number, Amounts: ledger.Amounts{Spend: -dollar}, Reason: "wrong price", Actor: "ada"}
		together(callers, func(int) { d.do(t, op) })
	}
	if got := d.balanced(t).Counters[s.counter("funds")].Settled; got != dollar {
		t.Errorf("settled %d after four corrections of a dollar, want a dollar", got)
	}
}

// consistentView: a snapshot of a running store balances (RES-7).
func consistentView(t *testing.T, d *desk) {
	s := newShop("acme")
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		together(4, func(int) {
			for range 3 * rounds {
				if result := d.do(t, s.admit(d, "m1", dollar)); result.Verdict == ledger.Admitted {
					d.do(t, s.settle(result.Reservation, dollar/2))
				}
			}
		})
	}()
	for running := true; running; {
		select {
		case <-finished:
			running = false
		default:
		}
		d.balanced(t)
	}
}

// apply decides one operation without a teller.
func apply(t *testing.T, b store.Book, ops ...*ledger.Op) []ledger.Result {
	t.Helper()
	results, err := b.Apply(t.Context(), ops)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return results
}

// heldTwice: a second admission of an id that is open fails its batch (ENGINE 6).
func heldTwice(t *testing.T, driver Driver) {
	d := driver.desk(t)
	s := newShop("acme")
	op := s.admit(d, "m1", dollar)
	if results := apply(t, d.store, op, op); results[0].Verdict != ledger.Admitted || results[1].Verdict != ledger.Invalid {
		t.Errorf("the same id twice in a batch: verdicts %d and %d", results[0].Verdict, results[1].Verdict)
	}
	other := s.admit(d, "m1", dollar)
	if _, err := d.store.Apply(t.Context(), []*ledger.Op{other, op}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the same id in a later batch: %v, want ErrConflict", err)
	}
	again := *op
	again.Again = true
	result := apply(t, d.store, &again)[0]
	if result.Verdict != ledger.Admitted || result.Reservation.ID != op.ID {
		t.Errorf("sent again: verdict %d", result.Verdict)
	}
	if books := balanced(t, d.store); len(books.Reservations) != 1 {
		t.Errorf("%d open, want one", len(books.Reservations))
	}
}

// tombstones: an id whose outcome was decided otherwise is never admitted late
// (ENGINE 6).
func tombstones(t *testing.T, driver Driver) {
	d := driver.desk(t)
	s := newShop("acme")
	s.budget = dollar
	refused := s.admit(d, "m1", 2*dollar)
	again := *refused
	again.Again = true
	if v := apply(t, d.store, &again)[0].Verdict; v != ledger.Refused {
		t.Fatalf("sent again over the budget: verdict %d", v)
	}
	undone := s.admit(d, "m1", dollar)
	undo := &ledger.Op{Verb: ledger.Undo, ID: undone.ID, Workspace: s.workspace, HoldMicros: holdMicros}
	apply(t, d.store, undo)
	s.budget = 100 * dollar
	for _, late := range []*ledger.Op{refused, undone} {
		late.Checks = s.checks()
		late.Name(d.store.Now())
		if _, err := d.store.Apply(t.Context(), []*ledger.Op{late}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("late admission: %v, want ErrConflict", err)
		}
		again := *late
		again.Again = true
		if v := apply(t, d.store, &again)[0].Verdict; v != ledger.Already {
			t.Errorf("sent again: verdict %d, want already", v)
		}
		if v := apply(t, d.store, &ledger.Op{Verb: ledger.Undo, ID: late.ID, Workspace: s.workspace})[0].Verdict; v != ledger.Already {
			t.Errorf("undone again: verdict %d, want already", v)
		}
	}
	if _, _, err := d.store.Call(t.Context(), s.workspace, undone.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a tombstone is no call: %v", err)
	}
	d.clock.Advance(time.Hour)
	list, err := d.store.Expired(t.Context(), 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("expired: %d, %v, want both tombstones", len(list), err)
	}
	for _, r := range list {
		apply(t, d.store, s.end(ledger.Sweep, r))
	}
	if books := balanced(t, d.store); len(books.Reservations) != 0 || len(books.Events) != 0 {
		t.Errorf("%d open, %d events, want none", len(books.Reservations), len(books.Events))
	}
}

// failedBatch: when Apply fails, nothing has happened, in memory neither.
func failedBatch(t *testing.T, driver Driver) {
	d := driver.desk(t)
	s := newShop("acme")
	taken := s.admit(d, "m1", dollar)
	open := apply(t, d.store, taken, s.admit(d, "m1", dollar))[1].Reservation
	before := balanced(t, d.store)
	ops := []*ledger.Op{s.admit(d, "m2", dollar), s.settle(open, dollar), s.admit(d, "m1", dollar), taken}
	if _, err := d.store.Apply(t.Context(), ops); err == nil {
		t.Fatal("a batch that admits an id twice passed")
	}
	if after := balanced(t, d.store); !reflect.DeepEqual(before, after) {
		t.Errorf("books changed from\n%+v to\n%+v", before, after)
	}
	if v := apply(t, d.store, s.settle(open, dollar))[0].Verdict; v != ledger.Done {
		t.Errorf("settle after the failure: verdict %d", v)
	}
	if _, err := d.store.Apply(t.Context(), make([]*ledger.Op, store.MaxBatch+1)); err == nil {
		t.Error("a batch beyond its bound passed")
	}
	balanced(t, d.store)
}
