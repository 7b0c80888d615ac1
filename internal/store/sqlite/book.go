// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps the books in one SQLite file, for one process (STO-1).
//
// The file is the truth. A batch is one row of its journal; folds move the oldest
// rows into the other tables, beside the batches, and whoever reads those has
// everything folded first (ADR 0007). Memory holds what is not folded, the open
// reservations, the workspaces' generations and a bounded cache of counter rows,
// all of them replaced only after the commit that changed them (ENGINE 10). One
// connection writes; reports and configuration are read beside it.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// DefaultCounterCache is how many counter rows stay in memory.
const DefaultCounterCache = 200_000

const (
	fileMode = 0o600
	// readers bounds the connections of reports and configuration.
	readers = 4
	// refusalsPerWrite bounds how many refusal records one transaction writes,
	// refusalsPerFold how many ride in a fold.
	refusalsPerWrite = 512
	refusalsPerFold  = 64
	// flushAfter is how long a refusal record waits for others to be written with.
	flushAfter = 50 * time.Millisecond
)

// Options say how a book is opened.
type Options struct {
	// Path is the database file; it is made, with mode 0600, if it is not there.
	Path string
	// Clock is the book's; nil is the system's.
	Clock clock.Clock
	// CounterCache bounds the counter rows in memory; 0 is DefaultCounterCache.
	CounterCache int
	// AcceptClock opens a book whose last instant is more than an hour ahead of
	// the clock.
	AcceptClock bool
	// Moved opens a file whose content has been moved to another store.
	Moved bool
	// OnClockStep, if set, hears of the clock's steps. It must not call the book.
	OnClockStep func(store.ClockStep)
	// OnFlushError, if set, hears of refusal records that could not be written.
	OnFlushError func(error)
	// BeforeSweep, if set, runs once the books are known to balance and before
	// what is open is swept: there the spool of the last process is applied
	// (ENGINE 9).
	BeforeSweep func(b *Book) error

	pace pace // tests hurry it
}

// Book is an open SQLite file. It fills every role of package store and is safe
// for concurrent use.
type Book struct {
	options   Options
	path      string // links resolved
	connector driver.Connector
	read      *sql.DB
	aside     *sql.DB // of one connection that no report can take: steps of Prune read with it
	lock      *os.File
	recovery  store.Recovery
	wake      chan struct{} // one refusal record or more waits
	full      chan struct{} // the journal is long

	// One fold at a time, or one write of refusal records. It is taken before mu,
	// which is taken before the writer's: a fold runs beside the batches, which
	// wait for it only where they write themselves.
	foldMu sync.Mutex

	mu          sync.Mutex // guards what follows
	closed      bool
	writer      *writer // spent: memory too must be made anew from the file
	lookups     lookups
	instant     *shelf.Instant
	open        shelf.Open
	bodies      map[ledger.ID][]byte // of open, packed
	counters    *cache
	tail        tail
	journal     *journal // nil: everything is in the tables, and no file is there
	packer      packer
	generations map[string]int64
	refusals    shelf.Refusals

	backlog atomic.Int64 // rows of the tail
	stuck   atomic.Bool  // the last fold failed: a batch that could not be folded is refused

	pruneMu sync.Mutex // guards pruning; taken before all others
	pruning pruning

	running sync.Mutex // guards stop
	stop    func()
}

var (
	_ store.Book       = (*Book)(nil)
	_ store.Sweepable  = (*Book)(nil)
	_ store.Objects    = (*Book)(nil)
	_ store.Secrets    = (*Book)(nil)
	_ store.Log        = (*Book)(nil)
	_ store.Verifiable = (*Book)(nil)
	_ store.Retainable = (*Book)(nil)
	_ store.Copyable   = (*Book)(nil)
	_ store.Movable    = (*Book)(nil)
)

// Recovery is what Open found and settled.
func (b *Book) Recovery() store.Recovery { return b.recovery }

// Now estimates the instant of a batch that would start now.
func (b *Book) Now() int64 { return b.instant.Peek() }

// Apply is store.Book's.
func (b *Book) Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	if len(ops) > store.MaxBatch {
		return nil, fmt.Errorf("apply %d operations: at most %d", len(ops), store.MaxBatch)
	}
	if b.stuck.Load() || b.backlog.Load() >= int64(b.options.pace.most) {
		if err := b.foldOldest(ctx); err != nil {
			return nil, errors.Join(store.ErrUnavailable, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	at := b.instant.Next()
	page, err := b.load(ops, at)
	if err != nil {
		return nil, fmt.Errorf("load a batch: %w", err)
	}
	results, changes := ledger.Batch(page, ops, at)
	rows, err := b.open.Rows(page, changes)
	if err != nil {
		return nil, err
	}
	if !changes.Empty() {
		batch := b.enter(page, changes, &rows)
		if err := b.store(batch); err != nil {
			return nil, err
		}
		b.keep(batch)
	}
	if len(changes.Refused) > 0 {
		b.refusals.Add(changes.Refused, at)
		ring(b.wake)
	}
	return results, nil
}

// ready tells whether the book can work; one whose memory may differ from its
// file reads that anew first.
func (b *Book) ready(ctx context.Context) error {
	if b.closed {
		return fmt.Errorf("the book is closed: %w", store.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	if b.writer != nil && !b.writer.spent.Load() && (b.journal == nil || !b.journal.broken) {
		return nil
	}
	if err := b.reload(ctx); err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	return nil
}

// Expired is store.Sweepable's.
func (b *Book) Expired(ctx context.Context, limit int) ([]*ledger.Reservation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	return b.open.Expired(b.instant.Peek(), limit), nil
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Flush writes the refusal records that wait; those that come meanwhile may wait
// for the next one.
func (b *Book) Flush(ctx context.Context) error {
	for range shelf.MaxRefusals/refusalsPerWrite + 1 {
		if more, err := b.flush(ctx); err != nil {
			return fmt.Errorf("write refusal records: %w", err)
		} else if !more {
			return nil
		}
	}
	return nil
}

// flush writes some; more tells that others may wait.
func (b *Book) flush(ctx context.Context) (more bool, err error) {
	b.foldMu.Lock()
	defer b.foldMu.Unlock()
	b.mu.Lock()
	if !b.refusals.Waiting() {
		b.mu.Unlock()
		return false, nil
	}
	if err := b.ready(ctx); err != nil {
		b.mu.Unlock()
		return false, err
	}
	list, w := b.refusals.Take(refusalsPerWrite), b.writer
	b.mu.Unlock()
	if err = w.transact(func() error { return w.addRefusals(list) }); err != nil {
		b.mu.Lock()
		b.refusals.Put(list)
		b.mu.Unlock()
	}
	return err == nil, err
}

// Start begins to write refusal records in the background, each within 100 ms,
// and to fold the journal there.
func (b *Book) Start() {
	b.running.Lock()
	defer b.running.Unlock()
	if b.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	b.stop = func() { cancel(); work.Wait() }
	work.Go(func() { b.flushing(ctx) })
	work.Go(func() { b.folding(ctx) })
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
		if err := b.Flush(ctx); err != nil && ctx.Err() == nil && b.options.OnFlushError != nil {
			b.options.OnFlushError(err)
		}
	}
}

// Close writes what waits, folds the journal and releases the file.
func (b *Book) Close() error {
	b.Stop()
	b.mu.Lock()
	closed, spent := b.closed, b.writer == nil || b.writer.spent.Load()
	b.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	if !spent {
		errs = append(errs, b.Flush(context.Background()))
		// What cannot be folded now is in the journal for the next start.
		if err := b.foldUpTo(context.Background(), b.newest()); err != nil && !errors.Is(err, store.ErrUnavailable) {
			errs = append(errs, err)
		}
	}
	b.foldMu.Lock()
	defer b.foldMu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	errs = append(errs, b.endJournal())
	if b.writer != nil {
		errs = append(errs, b.writer.spend())
	}
	errs = append(errs, b.lookups.close(), b.read.Close(), b.aside.Close(), b.lock.Close())
	return errors.Join(errs...)
}
