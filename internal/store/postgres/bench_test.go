// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/teller"
)

// percentiles reports p50 and p99 of durations, in microseconds.
func percentiles(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, name+"-p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, name+"-p99-µs")
}

// race runs one until N cycles are done by so many callers; one returns what its
// reservation took.
func race(b *testing.B, callers int, one func(caller int) (time.Duration, error)) {
	b.Helper()
	took := make([][]time.Duration, callers)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wait sync.WaitGroup
	b.ResetTimer()
	for i := range callers {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				t, err := one(i)
				if err != nil {
					b.Errorf("caller %d: %v", i, err)
					return
				}
				took[i] = append(took[i], t)
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	percentiles(b, "reserve", slices.Concat(took...))
}

// gatewayLanes is how many a gateway has (package app).
const gatewayLanes = 4

// shares is a gateway's way to a book: reserve and wait, settle and go on.
func shares(b *testing.B, books ...*postgres.Book) (one func(workspace string, caller int) (time.Duration, error), stop func()) {
	b.Helper()
	var tellers []*teller.Teller
	for _, book := range books {
		t := teller.New(book, teller.Options{
			Lanes: gatewayLanes, Now: book.Now, OutcomeUnknown: func(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) },
		})
		t.Start()
		tellers = append(tellers, t)
	}
	one = func(workspace string, caller int) (time.Duration, error) {
		book, t := books[caller%len(books)], tellers[caller%len(books)]
		op := cycle(newID(book.Now()), workspace, "", book.Now())
		start := time.Now()
		result, err := t.Submit(context.Background(), op)
		took := time.Since(start)
		if err != nil || result.Verdict != ledger.Admitted {
			return 0, fmt.Errorf("admit: verdict %d, %w", result.Verdict, err)
		}
		return took, t.Post(settle(result.Reservation, 1_000_000), nil)
	}
	return one, func() {
		for _, t := range tellers {
			if err := t.Stop(context.Background()); err != nil {
				b.Error(err)
			}
		}
	}
}

// BenchmarkHotTenant is reserve and settle on the same four counters.
func BenchmarkHotTenant(b *testing.B) {
	for _, replicas := range []int{1, 2, 4} {
		for _, callers := range []int{1, 16, 64, 256} {
			if callers < replicas {
				continue
			}
			b.Run(fmt.Sprintf("replicas=%d/callers=%d", replicas, callers), func(b *testing.B) {
				url := server.Database(b)
				books := make([]*postgres.Book, replicas)
				for i := range books {
					books[i] = open(b, postgres.Options{URL: url})
				}
				one, stop := shares(b, books...)
				race(b, callers, func(caller int) (time.Duration, error) { return one("hot", caller) })
				stop()
				guessed := int64(0)
				for _, book := range books {
					guessed += book.Guessed()
				}
				b.ReportMetric(float64(guessed)/float64(b.N), "guessed/cycle")
			})
		}
	}
}

// plain is a database that is used as most use one, for comparison: the same
// rows of so many workspaces, without batches.
func plain(b *testing.B, connections int, workspaces ...string) *pgxpool.Pool {
	b.Helper()
	url := server.Database(b)
	book := open(b, postgres.Options{URL: url})
	for _, workspace := range workspaces {
		if _, err := book.Apply(b.Context(), []*ledger.Op{cycle(newID(book.Now()), workspace, "", book.Now())}); err != nil {
			b.Fatal(err)
		}
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pool.Exec(b.Context(), plainCall); err != nil {
		b.Fatal(err)
	}
	return pool
}

const (
	plainLock    = `SELECT lim, settled, held, state FROM counters WHERE workspace = $1 ORDER BY lim FOR UPDATE`
	plainUpdate  = `UPDATE counters SET settled = settled + $2, held = held + $3 WHERE workspace = $1`
	plainReserve = `INSERT INTO reservations (workspace, id, expires_at, process, body) VALUES ($1, $2, $3, 'p1', $4)`
	plainRemove  = `DELETE FROM reservations WHERE workspace = $1 AND id = $2`
	plainEvent   = `INSERT INTO events VALUES ($1, $2, 0, 1, $3, $3, '', 'gpt-5', 1, 1, $4)`
	plainRecord  = `INSERT INTO calls VALUES ($1, $2, '', 'settled', '', $3, $3, 'gpt-5', '', 1, $4)`

	// plainCall does the same in one call of the server, for whatever counters it is
	// given.
	plainCall = `CREATE FUNCTION plain_change(limits text[], spent bigint, more bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE name text; r record; sum bigint := 0;
BEGIN
  FOREACH name IN ARRAY limits LOOP
    SELECT c.settled, c.held, c.win, c.state INTO r FROM counters c
    WHERE c.workspace = 'hot' AND c.lim = name AND c.epoch = 1 AND c.subject = '' ORDER BY c.win DESC LIMIT 1 FOR UPDATE;
    IF r.settled + r.held + more > 1152921504606846976 THEN RAISE EXCEPTION 'refused'; END IF;
    UPDATE counters c SET held = c.held + more, settled = c.settled + spent
    WHERE c.workspace = 'hot' AND c.lim = name AND c.epoch = 1 AND c.subject = '' AND c.win = r.win;
    sum := sum + r.held;
  END LOOP;
  RETURN sum;
END $$;
CREATE FUNCTION plain_reserve(limits text[], id uuid, at bigint, body bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE sum bigint := plain_change(limits, 0, 1);
BEGIN
  INSERT INTO reservations (workspace, id, expires_at, process, body) VALUES ('hot', id, at, 'p1', body);
  RETURN sum;
END $$;
CREATE FUNCTION plain_settle(limits text[], id uuid, at bigint, body bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE sum bigint; wanted uuid := id;
BEGIN
  DELETE FROM reservations WHERE workspace = 'hot' AND reservations.id = wanted;
  sum := plain_change(limits, 1, -1);
  INSERT INTO events VALUES ('hot', wanted, 0, 1, at, at, '', 'gpt-5', 1, 1, body);
  INSERT INTO calls VALUES ('hot', wanted, '', 'settled', '', at, at, 'gpt-5', '', 1, body);
  RETURN sum;
END $$`
)

// plainLimits are the counters of cycle, in the order of their keys.
var plainLimits = []string{"budget", "funds", "rpm", "slots"}

var plainBody = make([]byte, 700)

type execution struct {
	sql  string
	args []any
}

func transaction(ctx context.Context, pool *pgxpool.Pool, list ...execution) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, e := range list {
			if _, err := tx.Exec(ctx, e.sql, e.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkOneTransactionEach is what the hot tenant is measured against: begin,
// select for update, update, insert, commit, for each request by itself.
func BenchmarkOneTransactionEach(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			pool := plain(b, 16, "hot")
			race(b, callers, func(int) (time.Duration, error) { return plainCycle(b.Context(), pool, "hot") })
		})
	}
}

// plainCycle is one request in two transactions of its own; it returns what the
// first took.
func plainCycle(ctx context.Context, pool *pgxpool.Pool, workspace string) (time.Duration, error) {
	at := time.Now().UnixMicro()
	id := [16]byte(newID(at))
	lock := execution{plainLock, []any{workspace}}
	start := time.Now()
	err := transaction(ctx, pool, lock, execution{plainUpdate, []any{workspace, 0, 1}}, execution{plainReserve, []any{workspace, id, at, plainBody}})
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	return took, transaction(ctx, pool, execution{plainRemove, []any{workspace, id}}, lock, execution{plainUpdate, []any{workspace, 1, -1}},
		execution{plainEvent, []any{workspace, id, at, plainBody}}, execution{plainRecord, []any{workspace, id, at, plainBody}})
}

// BenchmarkLoneReserve takes turns at one reservation by the book and one by a call
// of a function on the server, so that both see the same machine.
func BenchmarkLoneReserve(b *testing.B) {
	pool, book := plain(b, 2, "hot"), open(b, postgres.Options{URL: server.Database(b)})
	ctx := b.Context()
	var ours, theirs []time.Duration
	for b.Loop() {
		op := cycle(newID(book.Now()), "hot", "", book.Now())
		start := time.Now()
		if results, err := book.Apply(ctx, []*ledger.Op{op}); err != nil || results[0].Verdict != ledger.Admitted {
			b.Fatalf("%+v, %v", results, err)
		}
		ours = append(ours, time.Since(start))
		id := [16]byte(op.ID)
		start = time.Now()
		if _, err := pool.Exec(ctx, `SELECT plain_reserve($1, $2, $3, $4)`, plainLimits, id, start.UnixMicro(), plainBody); err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(start))
	}
	percentiles(b, "book", ours)
	percentiles(b, "call", theirs)
	b.ReportMetric(float64(ours[len(ours)/2])/float64(theirs[len(theirs)/2]), "ratio")
}

// BenchmarkOneCall does it in one call of a function on the server.
func BenchmarkOneCall(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			pool := plain(b, 16, "hot")
			ctx := context.Background()
			race(b, callers, func(int) (time.Duration, error) {
				at := time.Now().UnixMicro()
				id := [16]byte(newID(at))
				start := time.Now()
				_, err := pool.Exec(ctx, `SELECT plain_reserve($1, $2, $3, $4)`, plainLimits, id, at, plainBody)
				took := time.Since(start)
				if err != nil {
					return 0, err
				}
				_, err = pool.Exec(ctx, `SELECT plain_settle($1, $2, $3, $4)`, plainLimits, id, at, plainBody)
				return took, err
			})
		})
	}
}
