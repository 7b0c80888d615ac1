// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the books in PostgreSQL, for any number of processes
// (STO-1).
//
// A batch is one transaction: it locks what its operations name in one order,
// decides, and writes (ENGINE 3, 5). Nothing that decides is kept in memory:
// what is remembered of rows are guesses, which the database confirms in the
// statement that locks them. Admission has connections of its own; reports and
// configuration use others.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// The defaults of Options.
const (
	DefaultConnections  = 8
	DefaultReporting    = 4
	DefaultCounterCache = 50_000
	DefaultLockTimeout  = 500 * time.Millisecond
	DefaultBatchTimeout = 2 * time.Second
)

const (
	// refusalsPerWrite bounds how many refusal records one statement writes.
	refusalsPerWrite = 512
	// flushAfter is how long a refusal record waits for others.
	flushAfter = 50 * time.Millisecond
)

// Options say how a book is opened.
type Options struct {
	// URL is the database's: postgres://user:password@host/name?sslmode=…, or a
	// list of key=value. Its parameter pooling=transaction sets Pooling.
	URL string
	// Pooling: a pooler in transaction mode (PgBouncer) stands between. Then
	// nothing is left in a session: no prepared statement, no setting.
	Pooling bool
	// Process names this process among those that share the book; Name and Version
	// say for people where and what it is.
	Process, Name, Version string
	// ListenURL leads to the database past a pooler, for notices of changes; "":
	// URL, or with Pooling nowhere.
	ListenURL string
	// Connections bounds those of admission, Reporting those of everything else.
	Connections, Reporting int
	// LockTimeout is how long a batch waits for others' locks, BatchTimeout how
	// long it may take in all: then its callers are refused.
	LockTimeout, BatchTimeout time.Duration
	// EarlyRelease lets a batch's locks go before it is on the disk; its answers
	// wait for that all the same. It is for many replicas on the same counters,
	// and slow disks. A standby that follows asynchronously may lack what was
	// acknowledged, with this setting or without.
	EarlyRelease bool
	// Clock is a test's. nil: the database's own. Local is this process's; nil: the
	// system's.
	Clock, Local clock.Clock
	// CounterCache bounds the counter rows that are remembered.
	CounterCache int
	// AcceptClock opens a book whose last instant is more than an hour ahead of
	// the clock.
	AcceptClock bool
	// MigrateByHand: an older schema is not brought up to date but refused, and the
	// role may lack the rights to make the tables of days (postgres.migrate: manual).
	MigrateByHand bool
	// Unfinished opens a database that a move has not finished, for the next move.
	Unfinished bool
	// Migrations are a test's, in place of this program's.
	Migrations fs.FS
	// OnClockStep, if set, hears of the clock's steps. It must not call the book.
	OnClockStep func(store.ClockStep)
	// OnError, if set, hears of what failed in the background: refusal records
	// that could not be written, days that could not be prepared.
	OnError func(error)

	lossy     bool                                  // a test's: nobody waits for the disk
	onAcquire func(context.Context, *pgx.Conn) bool // a test's, before each use of a connection
}

// Book is an open database. It fills every role of package store and is safe for
// concurrent use.
type Book struct {
	options  Options
	files    fs.FS
	head     *statement // the settings of one transaction, under a pooler
	shapes   []shape
	batches  *pgxpool.Pool
	reports  *pgxpool.Pool
	instant  *instant
	counters *recent[ledger.Counter, row]
	opened   *recent[openKey, opened]
	// generations are those of workspaces, as last read.
	generations *recent[string, int64]
	gate        gate
	barrier     barrier
	guessed     atomic.Int64 // batches that took one round trip
	closed      atomic.Bool
	behind      atomic.Bool // the schema has gone on without this program
	beats       beats
	recovery    store.Recovery
	warnings    []string
	migrations  []store.Migration
	reach       int64         // what a program has to know of the schema; 0: this one cannot say
	wake        chan struct{} // one refusal record or more waits

	writing sync.Mutex // one writer of refusal records at a time
	mu      sync.Mutex // guards refusals
	records shelf.Refusals

	pruneMu sync.Mutex // guards pruning
	pruning pruning

	running sync.Mutex // guards what follows
	stop    func()
	started bool
}

var (
	_ store.Book       = (*Book)(nil)
	_ store.Sweepable  = (*Book)(nil)
	_ store.Objects    = (*Book)(nil)
	_ store.Secrets    = (*Book)(nil)
	_ store.Log        = (*Book)(nil)
	_ store.Verifiable = (*Book)(nil)
	_ store.Shared     = (*Book)(nil)
	_ store.Retainable = (*Book)(nil)
)

// Recovery is what Open found. It sweeps nothing: what is open may be another
// process's.
func (b *Book) Recovery() store.Recovery { return b.recovery }

// Now estimates the instant of a batch that would start now.
func (b *Book) Now() int64 { return b.instant.peek() }

// Apply is store.Book's.
func (b *Book) Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	if len(ops) > store.MaxBatch {
		return nil, fmt.Errorf("apply %d operations: at most %d", len(ops), store.MaxBatch)
	}
	if b.behind.Load() {
		return nil, errors.Join(store.ErrUnavailable, store.ErrNewerSchema)
	}
	ctx, cancel := context.WithTimeout(ctx, b.options.BatchTimeout)
	defer cancel()
	needed := gather(ops)
	results, lost, err := b.apply(ctx, needed, ops)
	if !lost {
		return results, err
	}
	// Where one connection was lost the others are, too: a server that is back
	// should not be found out by a failed batch for each of them.
	b.batches.Reset()
	if errors.Is(err, store.ErrUnknownOutcome) {
		return nil, err
	}
	results, _, err = b.apply(ctx, needed, ops)
	return results, err
}

// apply decides ops on one connection; lost tells that it was lost meanwhile.
func (b *Book) apply(ctx context.Context, needed *needs, ops []*ledger.Op) (results []ledger.Result, lost bool, err error) {
	held, err := b.batches.Acquire(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("connect to the database: %w", errors.Join(store.ErrUnavailable, err))
	}
	defer held.Release() // a second time, it does nothing
	conn := held.Conn().PgConn()
	results, wrote, ok, err := b.one(ctx, conn, needed, ops)
	if !ok {
		results, wrote, err = b.two(ctx, conn, needed, ops)
	}
	lost = err != nil && conn.IsClosed() && ctx.Err() == nil
	if readOnly(err) {
		// Another server may have taken over, and this one goes on as its standby.
		b.batches.Reset()
		b.reports.Reset()
	}
	held.Release()
	if err == nil && (wrote || len(needed.lookups)+len(needed.claims) > 0) {
		// What was found may not be on the disk either.
		err = b.flushed(ctx)
	}
	return results, lost, err
}

// refused takes the refusals of one batch, to be written by themselves.
func (b *Book) refused(calls []ledger.Call, at int64) {
	if len(calls) == 0 {
		return
	}
	b.mu.Lock()
	b.records.Add(calls, at)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Flush writes the refusal records that wait.
func (b *Book) Flush(ctx context.Context) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	for {
		b.mu.Lock()
		list := b.records.Take(refusalsPerWrite)
		b.mu.Unlock()
		if len(list) == 0 {
			return nil
		}
		err := b.writeRefusals(ctx, list)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrUnavailable) && len(list) > 1 {
			b.writeSingly(ctx, list) // one that the database does not take keeps no other from being written
			continue
		}
		if errors.Is(err, store.ErrUnavailable) {
			b.mu.Lock()
			b.records.Put(list)
			b.mu.Unlock()
		}
		return fmt.Errorf("write refusal records: %w", err)
	}
}

func (b *Book) writeSingly(ctx context.Context, list []store.Call) {
	for i := range list {
		if err := b.writeRefusals(ctx, list[i:i+1]); err != nil {
			b.tell(ctx, fmt.Errorf("write a refusal record: %w", err))
		}
	}
}

func (b *Book) writeRefusals(ctx context.Context, list []store.Call) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.BatchTimeout)
	defer cancel()
	held, err := b.reports.Acquire(ctx)
	if err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	defer held.Release()
	args := callArgs(merged(list))
	batch := held.Conn().PgConn().ExecParams(ctx, stRefusals.sql, args, stRefusals.types, binaryFormat, binaryFormat)
	if _, err := batch.Close(); err != nil {
		return known(err)
	}
	return nil
}

// merged adds up records of one id: an operation that was sent again may have
// been refused twice.
func merged(list []store.Call) []countedCall {
	at := make(map[openKey]int, len(list))
	var out []countedCall
	for i := range list {
		key := openKey{list[i].Workspace, list[i].ID}
		if first, ok := at[key]; ok {
			out[first].count += list[i].Count
			continue
		}
		at[key] = len(out)
		out = append(out, countedCall{Call: &list[i].Call, count: list[i].Count})
	}
	return out
}

// Start begins the work in the background: refusal records are written within
// 100 ms, the process says every 10 s that it lives, and days are made ahead.
func (b *Book) Start() {
	b.running.Lock()
	defer b.running.Unlock()
	if b.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	b.stop, b.started = func() { cancel(); work.Wait() }, true
	work.Go(func() { b.flushing(ctx) })
	work.Go(func() { b.beating(ctx) })
}

// Stop ends what Start began; the book goes on without it.
func (b *Book) Stop() {
	b.running.Lock()
	defer b.running.Unlock()
	if b.stop != nil {
		b.stop()
		b.stop = nil
	}
}

func (b *Book) flushing(ctx context.Context) {
	timer := time.NewTimer(flushAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		timer.Reset(flushAfter)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := b.Flush(ctx); err != nil {
			b.tell(ctx, err)
			b.poke()
		}
	}
}

func (b *Book) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *Book) tell(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && b.options.OnError != nil {
		b.options.OnError(err)
	}
}

// Close writes what waits and ends every connection. A database that does not
// answer is told to OnError, and is no error of the closing.
func (b *Book) Close() error {
	b.Stop()
	if b.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.options.BatchTimeout)
	defer cancel()
	err := errors.Join(b.Flush(ctx), b.end(ctx))
	b.batches.Close()
	b.reports.Close()
	if Passing(err) {
		// Nothing is lost by it but records of refusals: a process that ends in an
		// outage has ended in order (STO-4).
		b.tell(context.Background(), err)
		return nil
	}
	return err
}
