// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/teller"
)

// TestBatchesInAnyOrderNeverDeadlock lets several books decide batches that name
// the same counters and reservations in random order, new rows among them
// (ENGINE 5).
func TestBatchesInAnyOrderNeverDeadlock(t *testing.T) {
	const replicas, rounds, size = 4, 40, 24
	url := server.Database(t)
	before := strings.Count(server.Log(t), "deadlock detected")
	var mu sync.Mutex
	var running []*ledger.Reservation
	var group sync.WaitGroup
	for replica := range replicas {
		book := open(t, postgres.Options{URL: url})
		random := rand.New(rand.NewPCG(uint64(replica), 7))
		group.Go(func() {
			for range rounds {
				var ops []*ledger.Op
				for range size {
					ops = append(ops, cycle(newID(book.Now()), fmt.Sprint("w", random.IntN(3)), fmt.Sprint("k", random.IntN(40)), book.Now()))
				}
				mu.Lock()
				random.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
				for _, r := range running[:min(len(running), size)] {
					ops = append(ops, settle(r, 1000)) // others settle some of them too
				}
				mu.Unlock()
				random.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
				results, err := book.Apply(context.Background(), ops)
				if err != nil {
					t.Errorf("apply: %v", err)
					return
				}
				mu.Lock()
				for _, r := range results {
					if r.Verdict == ledger.Admitted {
						running = append(running, r.Reservation)
					}
				}
				if len(running) > 4*size {
					running = running[size:]
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if after := strings.Count(server.Log(t), "deadlock detected"); after != before {
		t.Errorf("the server broke %d deadlocks", after-before)
	}
	balanced(t, open(t, postgres.Options{URL: url}))
}

// storm runs requests through tellers until each worker has done its share, and
// tells how many were admitted, all of which it settled.
type storm struct {
	books   []*postgres.Book
	tellers []*teller.Teller
}

func newStorm(t *testing.T, o postgres.Options, replicas int) *storm {
	t.Helper()
	s := &storm{}
	for range replicas {
		book := open(t, o)
		book.Start()
		s.books = append(s.books, book)
		s.tellers = append(s.tellers, teller.New(book, teller.Options{
			Now: book.Now, OutcomeUnknown: func(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) },
		}))
	}
	return s
}

func (s *storm) run(t *testing.T, workers, each int) (admitted int64) {
	t.Helper()
	var count atomic.Int64
	var group sync.WaitGroup
	for _, one := range s.tellers {
		one.Start()
	}
	for i := range workers {
		group.Go(func() {
			book, one := s.books[i%len(s.books)], s.tellers[i%len(s.tellers)]
			for done := 0; done < each; {
				result, err := one.Submit(t.Context(), cycle(newID(book.Now()), "acme", fmt.Sprint("k", i%3), book.Now()))
				if err != nil {
					if !errors.Is(err, teller.ErrUnavailable) {
						t.Errorf("submit: %v", err)
						return
					}
					<-time.After(5 * time.Millisecond) // as clients do
					continue
				}
				done++
				if result.Verdict != ledger.Admitted {
					t.Errorf("verdict %d", result.Verdict)
					return
				}
				count.Add(1)
				err = one.Post(settle(result.Reservation, 1000), func(r ledger.Result, err error) {
					if err != nil || r.Verdict != ledger.Done && r.Verdict != ledger.Already {
						t.Errorf("settle: verdict %d, %v", r.Verdict, err)
					}
				})
				if err != nil {
					t.Errorf("post: %v", err)
				}
			}
		})
	}
	group.Wait()
	for _, one := range s.tellers {
		if err := one.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	return count.Load()
}

// exact checks that each admitted request was charged once and nothing is held.
func (s *storm) exact(t *testing.T, admitted int64) {
	t.Helper()
	books := balanced(t, s.books[0])
	settled := int64(0)
	for i := range books.Events {
		if books.Events[i].Kind == ledger.EventSettled {
			settled++
		}
	}
	if settled != admitted {
		t.Errorf("%d settled, %d were admitted", settled, admitted)
	}
	for i := range books.Reservations {
		if !books.Reservations[i].Tombstone {
			t.Errorf("%s is still open", books.Reservations[i].ID)
		}
	}
	for c, state := range books.Counters {
		if c.Limit == "budget" && (state.Settled != 1000*admitted || state.Held != 0) {
			t.Errorf("budget: settled %d held %d for %d requests", state.Settled, state.Held, admitted)
		}
	}
}

// TestKilledSessionsChangeNothingTwice ends sessions at random moments, in the
// middle of commits too: what was acknowledged is there once (ENGINE 6).
func TestKilledSessionsChangeNothingTwice(t *testing.T) {
	url := server.Database(t)
	s := newStorm(t, postgres.Options{URL: url}, 2)
	stop := make(chan struct{})
	var killer sync.WaitGroup
	kills := 0
	killer.Go(func() {
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Errorf("connect: %v", err)
			return
		}
		defer func() { _ = conn.Close(context.Background()) }()
		for kills < 60 { // on a slow machine nobody would get through
			select {
			case <-stop:
				return
			default:
			}
			var n int
			// A pause on the server, so that some batches pass; then whoever works.
			err := conn.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pg_sleep(random() / 50)) AS pause,
 pg_stat_activity WHERE application_name = 'weir' AND datname = current_database() AND (state <> 'idle' OR random() < 0.2)`).Scan(&n)
			if err != nil {
				t.Errorf("kill: %v", err)
				return
			}
			kills += n
		}
	})
	admitted := s.run(t, 12, 50)
	close(stop)
	killer.Wait()
	t.Logf("%d admitted, %d sessions killed", admitted, kills)
	if admitted == 0 || kills < 10 {
		t.Errorf("%d admitted, %d sessions killed: too few of either", admitted, kills)
	}
	s.exact(t, admitted)
}
