// SPDX-License-Identifier: Apache-2.0

package teller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts a teller that is stopped at the test's end.
func open(t *testing.T, b teller.Book, o teller.Options) *teller.Teller {
	t.Helper()
	if o.OutcomeUnknown == nil {
		o.OutcomeUnknown = unknown
	}
	l := teller.New(b, o)
	l.Start()
	t.Cleanup(func() {
		if err := l.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// inBoth runs a test with batches on the lane's goroutine alone, and on those of
// the callers too.
func inBoth(t *testing.T, test func(t *testing.T, inline bool)) {
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline=%t", inline), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, inline) })
		})
	}
}

// TestALoneCallersBatchRunsOnItsOwnGoroutine: nobody is waked for it, and Stop
// waits for it, though it began before.
func TestALoneCallersBatchRunsOnItsOwnGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gated()
		l := teller.New(g, teller.Options{Inline: true, OutcomeUnknown: unknown})
		l.Start()
		answered := make(chan ledger.Result, 1)
		go func() {
			r, err := l.Submit(t.Context(), admit(1))
			if err != nil {
				t.Error(err)
			}
			answered <- r
		}()
		<-g.entered
		stopped := make(chan error, 1)
		go func() { stopped <- l.Stop(context.Background()) }()
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Fatalf("Stop did not wait for a batch under way: %v", err)
		default:
		}
		close(g.pass)
		if r := <-answered; r.Verdict != ledger.Admitted {
			t.Errorf("verdict %d", r.Verdict)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

func submit(t *testing.T, l *teller.Teller, op *ledger.Op, want ledger.Verdict) *ledger.Reservation {
	t.Helper()
	r, err := l.Submit(t.Context(), op)
	if err != nil || r.Verdict != want {
		t.Errorf("verdict %d, error %v", r.Verdict, err)
	}
	return r.Reservation
}

// gate is a book whose batches wait until they are let through.
type gate struct {
	*book
	entered chan int
	pass    chan struct{}
}

func gated() *gate {
	return &gate{book: newBook(), entered: make(chan int, 100), pass: make(chan struct{})}
}

func (g *gate) Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	g.entered <- len(ops)
	select {
	case <-g.pass:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return g.book.Apply(ctx, ops)
}

func TestManyCallersNeverPassALimitAndAllAreSettled(t *testing.T) {
	for _, o := range []teller.Options{{Lanes: 1}, {Lanes: 4}, {Lanes: 1, Inline: true}, {Lanes: 4, Inline: true}} {
		b := newBook()
		l := open(t, b, o)
		var admitted, most atomic.Int64
		var work sync.WaitGroup
		for n := range 400 {
			work.Go(func() {
				r, err := l.Submit(t.Context(), admit(n+1, slots(20)))
				switch {
				case err != nil:
					t.Error(err)
				case r.Verdict == ledger.Admitted:
					now := admitted.Add(1)
					for {
						seen := most.Load()
						if now <= seen || most.CompareAndSwap(seen, now) {
							break
						}
					}
					admitted.Add(-1)
					submit(t, l, settle(r.Reservation), ledger.Done)
				}
			})
		}
		work.Wait()
		if most.Load() > 20 || b.running() != 0 {
			t.Fatalf("%d at once, %d left", most.Load(), b.running())
		}
	}
}

func TestWhileOneBatchCommitsTheNextOneGathers(t *testing.T) {
	inBoth(t, func(t *testing.T, inline bool) {
		g := gated()
		l := open(t, g, teller.Options{Inline: inline})
		var work sync.WaitGroup
		for n := range 11 {
			work.Go(func() { submit(t, l, admit(n+1), ledger.Admitted) })
			synctest.Wait()
		}
		close(g.pass)
		work.Wait()
		if got := g.batches(); len(got) != 2 || got[0] != 1 || got[1] != 10 {
			t.Fatalf("batches %v", got)
		}
	})
}

func TestAnAdmissionStartsNoTimerAndASettlementLingersTwoMillis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		l := open(t, b, teller.Options{})
		began := time.Now()
		first := submit(t, l, admit(1, slots(1)), ledger.Admitted)
		if took := time.Since(began); took != 0 {
			t.Fatalf("an admission waited %s", took)
		}
		done := make(chan time.Duration, 1)
		if err := l.Post(settle(first), func(ledger.Result, error) { done <- time.Since(began) }); err != nil {
			t.Fatal(err)
		}
		if took := <-done; took != 2*time.Millisecond {
			t.Fatalf("a settlement alone took %s", took)
		}
		// With an admission behind it, neither waits (RES-11).
		second := submit(t, l, admit(2, slots(1)), ledger.Admitted)
		began = time.Now()
		if err := l.Post(settle(second), nil); err != nil {
			t.Fatal(err)
		}
		third := submit(t, l, admit(3, slots(1)), ledger.Admitted)
		if took := time.Since(began); took != 0 {
			t.Fatalf("took %s", took)
		}
		submit(t, l, settle(third), ledger.Done)
	})
}

func TestACallerWhoGoesAwayLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gated()
		l := open(t, g, teller.Options{})
		leave := errors.New("client gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var work sync.WaitGroup
		for n := range 3 { // one in the batch, two queued
			work.Go(func() {
				if _, err := l.Submit(ctx, admit(n+1)); !errors.Is(err, leave) {
					t.Errorf("error %v", err)
				}
			})
			synctest.Wait()
		}
		cancel(leave)
		work.Wait()
		if n := <-g.entered; n != 1 {
			t.Fatalf("batch of %d", n)
		}
		close(g.pass)
		if err := l.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(g.events) != 1 || g.events[0].Kind != ledger.EventUndone || g.running() != 0 {
			t.Fatalf("events %+v", g.events)
		}
	})
}

func TestWithTheStoreDownAdmissionsFailAtOnceAndSettlementsWait(t *testing.T) {
	// RES-8.
	inBoth(t, func(t *testing.T, inline bool) {
		b := newBook()
		var failed, closed atomic.Int64
		l := open(t, b, teller.Options{Inline: inline, Hooks: teller.Hooks{
			Failed: func(int, error) { failed.Add(1) },
			Closed: func(_ int, is bool) {
				if is {
					closed.Add(1)
				} else {
					closed.Add(-1)
				}
			},
		}})
		r := submit(t, l, admit(1), ledger.Admitted)
		b.set(always(errDown))
		settled := make(chan error, 1)
		if err := l.Post(settle(r), func(_ ledger.Result, err error) { settled <- err }); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if _, err := l.Submit(t.Context(), admit(n+2)); !errors.Is(err, teller.ErrUnavailable) {
				t.Fatalf("error %v", err)
			}
		}
		if l.Healthy() || closed.Load() != 1 || failed.Load() < 3 {
			t.Fatalf("healthy %t, closed %d, failed %d", l.Healthy(), closed.Load(), failed.Load())
		}
		began := time.Now()
		for n := range 100 {
			if _, err := l.Submit(t.Context(), admit(n+10)); !errors.Is(err, teller.ErrUnavailable) {
				t.Fatalf("error %v", err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Fatalf("refusing took %s", took)
		}
		time.AfterFunc(time.Minute, func() { b.set(nil) })
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Minute+3*time.Second {
			t.Fatalf("the settlement took %s", took)
		}
		synctest.Wait()
		if !l.Healthy() || b.running() != 0 || closed.Load() != 0 {
			t.Fatalf("healthy %t, %d run", l.Healthy(), b.running())
		}
		submit(t, l, admit(500), ledger.Admitted)
	})
}

func TestPostWaitsAtItsBoundAndDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gated()
		var full atomic.Int64
		l := open(t, g, teller.Options{
			Limits: teller.Limits{Settlements: 4},
			Hooks:  teller.Hooks{Full: func(_, queued int) { full.Add(int64(queued)) }},
		})
		open := make([]*ledger.Reservation, 10)
		for n := range open {
			go func() { g.pass <- struct{}{} }()
			open[n] = submit(t, l, admit(n+1), ledger.Admitted)
		}
		go func() { _, _ = l.Submit(t.Context(), admit(99)) }() // keeps the lane busy
		synctest.Wait()
		var posted, settled atomic.Int64
		go func() {
			for _, r := range open {
				if err := l.Post(settle(r), func(ledger.Result, error) { settled.Add(1) }); err != nil {
					t.Error(err)
				}
				posted.Add(1)
			}
		}()
		synctest.Wait()
		if posted.Load() != 4 || full.Load() != 4 {
			t.Fatalf("posted %d, the hook saw %d", posted.Load(), full.Load())
		}
		close(g.pass)
		if err := l.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if posted.Load() != 10 || settled.Load() != 10 || g.running() != 1 {
			t.Fatalf("posted %d, settled %d, %d run", posted.Load(), settled.Load(), g.running())
		}
	})
}

func TestStopGivesUpWhenItsTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		l := teller.New(b, teller.Options{OutcomeUnknown: unknown})
		l.Start()
		r := submit(t, l, admit(1), ledger.Admitted)
		b.set(always(errDown))
		var got error
		if err := l.Post(settle(r), func(_ ledger.Result, err error) { got = err }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := l.Stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(got, teller.ErrStopped) {
			t.Fatalf("stop: %v, settlement: %v", err, got)
		}
		if err := l.Post(settle(r), nil); !errors.Is(err, teller.ErrStopped) {
			t.Fatalf("post: %v", err)
		}
		if _, err := l.Submit(t.Context(), admit(2)); !errors.Is(err, teller.ErrStopped) {
			t.Fatalf("submit: %v", err)
		}
		if err := l.Stop(t.Context()); err != nil {
			t.Fatalf("a second stop: %v", err)
		}
	})
}

func TestADeadLetterIsTold(t *testing.T) {
	b := newBook()
	told := make(chan ledger.Verdict, 2)
	l := open(t, b, teller.Options{Hooks: teller.Hooks{DeadLetter: func(_ *ledger.Op, v ledger.Verdict) { told <- v }}})
	submit(t, l, settle(&ledger.Reservation{ID: id(1), Workspace: workspace}), ledger.Missing)
	if v := <-told; v != ledger.Missing {
		t.Fatalf("verdict %d", v)
	}
	renew := settle(&ledger.Reservation{ID: id(1), Workspace: workspace})
	renew.Verb = ledger.Renew
	submit(t, l, renew, ledger.Missing)
	if len(told) != 0 {
		t.Fatal("a renewal that comes too late is no dead letter")
	}
}

func TestWorkspacesOfOtherLanesDoNotWait(t *testing.T) {
	// A lane stalls as one; others go on.
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		stalled := &stall{book: b, workspace: workspace, until: make(chan struct{})}
		l := open(t, stalled, teller.Options{Lanes: 64})
		go func() { _, _ = l.Submit(t.Context(), admit(1)) }()
		synctest.Wait()
		passed := 0
		for n := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := l.Submit(ctx, of(admit(n+2), fmt.Sprint("ws_", n), "")); err == nil {
				passed++
			}
			cancel()
		}
		if passed < 10 { // a few share the stalled lane
			t.Fatalf("%d of 20 passed", passed)
		}
		close(stalled.until)
	})
}

// stall is a book that hangs on one workspace.
type stall struct {
	*book
	workspace string
	until     chan struct{}
}

func (s *stall) Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	if ops[0].Workspace == s.workspace {
		<-s.until
	}
	return s.book.Apply(ctx, ops)
}

// trivial is a book that costs nothing.
type trivial struct{}

func (trivial) Apply(_ context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	results := make([]ledger.Result, len(ops))
	for i := range results {
		results[i].Verdict = ledger.Done
	}
	return results, nil
}

func BenchmarkTeller(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := teller.New(trivial{}, teller.Options{Inline: true})
			l.Start()
			op := admit(1, slots(1))
			var left atomic.Int64
			left.Store(int64(b.N))
			var work sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range callers {
				work.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := l.Submit(context.Background(), op); err != nil {
							b.Error(err)
						}
					}
				})
			}
			work.Wait()
			b.StopTimer()
			if err := l.Stop(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
