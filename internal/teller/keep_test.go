// SPDX-License-Identifier: Apache-2.0

package teller_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

// drawer is a spool in memory.
type drawer struct {
	mu   sync.Mutex
	next uint64
	kept map[uint64]*ledger.Op
	room int
	puts int
	fail error
}

var errNoRoom = errors.New("no room")

func newDrawer(room int) *drawer { return &drawer{kept: map[uint64]*ledger.Op{}, room: room} }

func (d *drawer) Put(ops []*ledger.Op) (keys []uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.puts++
	for _, op := range ops {
		if d.fail != nil {
			return nil, d.fail
		}
		if len(d.kept) == d.room {
			return keys, errNoRoom
		}
		kept, err := ledger.DecodeOp(op.Encode())
		if err != nil {
			return keys, err
		}
		d.next++
		d.kept[d.next] = kept
		keys = append(keys, d.next)
	}
	return keys, nil
}

func (d *drawer) Drop(keys []uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		if d.kept[key] == nil {
			return errors.New("dropped what was not kept")
		}
		delete(d.kept, key)
	}
	return nil
}

func (d *drawer) count() (kept, puts int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.kept), d.puts
}

// left is what a restart would find, in order.
func (d *drawer) left() (ops []*ledger.Op) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(d.kept)) {
		ops = append(ops, d.kept[key])
	}
	return ops
}

// restart applies to the book what a spool kept.
func restart(t *testing.T, b *book, ops []*ledger.Op) {
	t.Helper()
	for _, op := range ops {
		for {
			results, err := b.Apply(t.Context(), []*ledger.Op{op})
			if err != nil {
				t.Fatal(err)
			}
			r := &results[0]
			if r.Verdict == ledger.Carry {
				op = op.Carried(r)
				continue
			}
			if r.Verdict != ledger.Done && r.Verdict != ledger.Already {
				t.Fatalf("%s from the spool: verdict %d", op.ID, r.Verdict)
			}
			break
		}
	}
}

// pass lets so much of a test's own time pass.
func pass(d time.Duration) { <-time.After(d) }

func post(t *testing.T, l *teller.Teller, op *ledger.Op) {
	t.Helper()
	if err := l.Post(op, nil); err != nil {
		t.Error(err)
	}
}

// TestTheSpoolTakesWhatTheBookCannot: RES-8, RES-11. Nobody waits, a kill loses
// nothing, and when the book is back everything is charged once.
func TestTheSpoolTakesWhatTheBookCannot(t *testing.T) {
	inBoth(t, func(t *testing.T, inline bool) {
		b, d := newBook(), newDrawer(1000)
		l := open(t, b, teller.Options{Spool: d, Inline: inline, Limits: teller.Limits{Settlements: 8}})
		var open []*ledger.Reservation
		for n := range 100 {
			open = append(open, submit(t, l, admit(n+1), ledger.Admitted))
		}
		if _, puts := d.count(); puts != 0 {
			t.Fatalf("%d writes to the spool of a book that works", puts)
		}
		b.set(always(errDown))
		began := time.Now()
		for _, r := range open[:50] {
			post(t, l, settle(r))
			synctest.Wait()
		}
		for _, r := range open[50:] { // at the latest after three failures the lane is closed
			post(t, l, settle(r))
			synctest.Wait()
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("posting took %s", took)
		}
		pass(time.Second)
		if kept, _ := d.count(); kept != len(open) {
			t.Fatalf("%d of %d are kept", kept, len(open))
		}
		if _, err := l.Submit(t.Context(), admit(1000)); !errors.Is(err, teller.ErrUnavailable) {
			t.Fatalf("an admission meanwhile: %v", err)
		}
		killed := d.left()
		b.set(nil)
		pass(5 * time.Second)
		if kept, _ := d.count(); kept != 0 || b.running() != 0 || !l.Healthy() {
			t.Fatalf("%d kept, %d run, healthy %t", kept, b.running(), l.Healthy())
		}
		restart(t, b, killed)
		if len(b.events) != len(open) {
			t.Fatalf("%d events of %d requests", len(b.events), len(open))
		}
	})
}

// TestPostWaitsOnlyWhenTheSpoolIsFull too.
func TestPostWaitsOnlyWhenTheSpoolIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, d := newBook(), newDrawer(10)
		var failed atomic.Int64
		l := open(t, b, teller.Options{Spool: d, Limits: teller.Limits{Settlements: 4}, Hooks: teller.Hooks{
			Spooled: func(_, others int, err error) {
				if others > 0 && errors.Is(err, errNoRoom) {
					failed.Add(1)
				}
			},
		}})
		var open []*ledger.Reservation
		for n := range 20 {
			open = append(open, submit(t, l, admit(n+1), ledger.Admitted))
		}
		b.set(always(errDown))
		var posted atomic.Int64
		go func() {
			for _, r := range open {
				post(t, l, settle(r))
				posted.Add(1)
			}
		}()
		pass(10 * time.Second)
		if kept, puts := d.count(); kept != 10 || posted.Load() != 14 || failed.Load() == 0 || puts > 50 {
			t.Fatalf("%d kept, %d posted, %d failures told, %d writes", kept, posted.Load(), failed.Load(), puts)
		}
		b.set(nil)
		pass(5 * time.Second)
		if kept, _ := d.count(); kept != 0 || posted.Load() != 20 || b.running() != 0 {
			t.Fatalf("%d kept, %d posted, %d run", kept, posted.Load(), b.running())
		}
	})
}

// TestNobodyIsRefusedBeforeTheUndoIsKept: ENGINE 6. The refusal says that
// nothing is charged; a kill right after it must not make that untrue.
func TestNobodyIsRefusedBeforeTheUndoIsKept(t *testing.T) {
	for _, happened := range []bool{true, false} {
		inBoth(t, func(t *testing.T, inline bool) {
			b, d := newBook(), newDrawer(100)
			l := open(t, b, teller.Options{Spool: d, Inline: inline})
			b.set(func([]*ledger.Op) (error, bool) { return errUnknown, happened })
			_, err := l.Submit(t.Context(), admit(1))
			killed := d.left()
			defer b.set(nil)
			if !errors.Is(err, teller.ErrUnavailable) || len(killed) != 1 || killed[0].Verb != ledger.Undo || killed[0].ID != id(1) {
				t.Fatalf("error %v, kept %+v", err, killed)
			}
			b.set(nil)
			restart(t, b, killed)
			if b.running() != 0 {
				t.Fatal("the reservation is open")
			}
			if r := b.open[id(1)]; !happened && (r == nil || !r.Tombstone) {
				t.Fatal("no tombstone stops a late commit")
			}
		})
	}
}

// TestStopLeavesTheRestToTheSpool: STO-4, RES-8.
func TestStopLeavesTheRestToTheSpool(t *testing.T) {
	for _, spooled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b, d := newBook(), newDrawer(100)
			left := 0
			o := teller.Options{OutcomeUnknown: unknown, Hooks: teller.Hooks{Left: func(n int) { left = n }}}
			if spooled {
				o.Spool = d
			}
			l := teller.New(b, o)
			l.Start()
			r := submit(t, l, admit(1), ledger.Admitted)
			b.set(always(errDown))
			post(t, l, settle(r))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := l.Stop(ctx)
			if (err == nil) != spooled || spooled && left != 1 {
				t.Fatalf("stop: %v, %d left", err, left)
			}
			b.set(nil)
			restart(t, b, d.left())
			if spooled && (b.running() != 0 || b.events[0].Spend != 7) {
				t.Fatalf("%d run, events %+v", b.running(), b.events)
			}
		})
	}
}

// TestABatchThatHangsRefusesInTime: RES-8. Those who wait and those who come are
// refused and called off; settlements survive; when the batch comes back after
// all, nothing of it stays.
func TestABatchThatHangsRefusesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := gated(), newDrawer(100)
		var closed atomic.Int64
		l := open(t, g, teller.Options{Spool: d, Hooks: teller.Hooks{Closed: func(_ int, now bool) {
			if now {
				closed.Add(1)
			} else {
				closed.Add(-1)
			}
		}}})
		refused := func(n int, within time.Duration) {
			began := time.Now()
			_, err := l.Submit(t.Context(), admit(n))
			if took := time.Since(began); !errors.Is(err, teller.ErrUnavailable) || took > within {
				t.Errorf("admission %d: %v after %s", n, err, took)
			}
		}
		var work sync.WaitGroup
		work.Go(func() { refused(1, 1500*time.Millisecond) })
		<-g.entered
		work.Go(func() { refused(2, 1500*time.Millisecond) })
		work.Wait()
		refused(3, 0)
		if l.Healthy() || closed.Load() != 1 {
			t.Errorf("healthy %t, closed %d", l.Healthy(), closed.Load())
		}
		r := &ledger.Reservation{ID: id(1), Workspace: workspace}
		post(t, l, &ledger.Op{Verb: ledger.Void, Workspace: workspace, Reservation: r})
		synctest.Wait()
		if kept, _ := d.count(); kept != 2 {
			t.Errorf("%d kept: the undoing of the admission that hangs, and an ending", kept)
		}
		close(g.pass)
		pass(5 * time.Second)
		if kept, _ := d.count(); kept != 0 || g.running() != 0 || !l.Healthy() || closed.Load() != 0 {
			t.Errorf("%d kept, %d run, healthy %t, closed %d", kept, g.running(), l.Healthy(), closed.Load())
		}
	})
}

// TestABookThatOnlyReadsIsNotHealthy: RES-8. Nobody asks it to admit anything.
func TestABookThatOnlyReadsIsNotHealthy(t *testing.T) {
	inBoth(t, func(t *testing.T, inline bool) {
		b := newBook()
		l := open(t, b, teller.Options{Inline: inline})
		if !l.Healthy() || len(b.batches()) == 0 {
			t.Fatal("a new book has shown nothing yet")
		}
		pass(time.Second / 2)
		before := len(b.batches())
		if !l.Healthy() || len(b.batches()) != before {
			t.Fatal("it was asked again at once")
		}
		b.set(func(ops []*ledger.Op) (error, bool) {
			if slices.ContainsFunc(ops, func(op *ledger.Op) bool { return op.Verb != ledger.Read }) {
				return errDown, false
			}
			return nil, true
		})
		pass(time.Second)
		if l.Healthy() {
			t.Fatal("a book that cannot be written")
		}
		b.set(nil)
		pass(2 * time.Second)
		healthy := l.Healthy()
		pass(time.Second)
		if !healthy || b.rows() != 0 {
			t.Fatalf("healthy %t, with %d rows of probes", healthy, b.rows())
		}
	})
}

// TestAKillAtAnyMomentOfAnyOutageChargesOnce: whatever fails and when, what was
// answered is in the book or in the spool once the outage is known, and a restart
// charges it once, by its real usage.
func TestAKillAtAnyMomentOfAnyOutageChargesOnce(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			b, d := newBook(), newDrawer(10_000)
			l := teller.New(b, teller.Options{Spool: d, Inline: seed%2 == 0, OutcomeUnknown: unknown})
			l.Start()
			b.set(func([]*ledger.Op) (error, bool) { // with the book's lock
				switch random.IntN(6) {
				case 0:
					return errDown, false
				case 1:
					return errUnknown, random.IntN(2) == 0
				default:
					return nil, true
				}
			})
			var answered sync.Map
			var work sync.WaitGroup
			for n := range 40 {
				work.Go(func() {
					pass(time.Duration(n/4) * 10 * time.Millisecond)
					r, err := l.Submit(t.Context(), admit(n+1, slots(1000)))
					if err == nil && r.Verdict == ledger.Admitted {
						answered.Store(r.Reservation.ID, true)
						post(t, l, settle(r.Reservation))
					}
				})
			}
			work.Wait()
			b.set(always(errDown))
			if _, err := l.Submit(t.Context(), admit(1000)); err == nil {
				t.Fatal("admitted by a book that is down")
			}
			pass(2 * time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := l.Stop(ctx); err != nil {
				t.Fatal(err)
			}
			b.set(nil)
			restart(t, b, d.left())
			charged := map[ledger.ID]int64{}
			for _, e := range b.events {
				if _, ok := answered.Load(e.ID); ok != (e.Kind == ledger.EventSettled) {
					t.Fatalf("seed %d: %s was %s, answered %t", seed, e.ID, e.Kind, ok)
				}
				charged[e.ID] += e.Spend
			}
			answered.Range(func(key, _ any) bool {
				if id, ok := key.(ledger.ID); !ok || charged[id] != 7 {
					t.Errorf("seed %d: %s was charged %d", seed, key, charged[id])
				}
				return true
			})
			if b.running() != 0 {
				t.Fatalf("seed %d: %d run", seed, b.running())
			}
		})
	}
}
