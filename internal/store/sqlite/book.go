// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps the books in one SQLite file, for one process (STO-1).
//
// The file is the truth. Memory holds the open reservations, the workspaces'
// generations and a bounded cache of counter rows, all of them replaced only
// after the commit that changed them (ENGINE 10). One connection writes, under
// one mutex; reports and configuration are read beside it.
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
	// refusalsPerWrite bounds how many refusal records ride in one batch.
	refusalsPerWrite = 1024
	// flushAfter is how long a refusal record waits for a batch to ride in.
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
	// OnClockStep, if set, hears of the clock's steps. It must not call the book.
	OnClockStep func(store.ClockStep)
	// OnFlushError, if set, hears of refusal records that could not be written.
	OnFlushError func(error)
	// BeforeSweep, if set, runs once the books are known to balance and before
	// what is open is swept: there the spool of the last process is applied
	// (ENGINE 9).
	BeforeSweep func(b *Book) error
}

// Book is an open SQLite file. It fills every role of package store and is safe
// for concurrent use.
type Book struct {
	options   Options
	connector driver.Connector
	read      *sql.DB
	lock      *os.File
	recovery  store.Recovery
	wake      chan struct{} // one refusal record or more waits

	mu          sync.Mutex // guards what follows
	closed      bool
	stale       bool // memory and connection must be made anew from the file
	writer      *writer
	instant     *shelf.Instant
	open        shelf.Open
	counters    *cache
	generations map[string]int64
	refusals    shelf.Refusals

	commits atomic.Int64 // since the last checkpoint began

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
		if err := b.store(page, changes, &rows); err != nil {
			return nil, err
		}
	}
	b.keep(page, changes, &rows)
	if len(changes.Refused) > 0 {
		b.refusals.Add(changes.Refused, at)
		b.ring()
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
	if !b.stale {
		return nil
	}
	if err := b.reload(ctx); err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	return nil
}

// transact runs fn in a transaction and remembers when the connection is spent.
func (b *Book) transact(fn func() error) error {
	err := b.writer.inTx(fn)
	b.commits.Add(1)
	if errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, errBroken) {
		b.stale = true
	}
	return err
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

func (b *Book) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Flush writes the refusal records that wait.
func (b *Book) Flush(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.refusals.Waiting() {
		return nil
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	return b.flush()
}

func (b *Book) flush() error {
	for b.refusals.Waiting() {
		list := b.refusals.Take(refusalsPerWrite)
		if err := b.transact(func() error { return b.writer.addRefusals(list) }); err != nil {
			b.refusals.Put(list)
			return fmt.Errorf("write refusal records: %w", err)
		}
	}
	return nil
}

// Start begins to write refusal records in the background, each within 100 ms,
// and to checkpoint the log there.
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
	work.Go(func() { b.checkpointing(ctx) })
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

// Close writes what waits and releases the file.
func (b *Book) Close() error {
	b.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	var errs []error
	if !b.stale {
		errs = append(errs, b.flush())
	}
	b.closed = true
	if b.writer != nil {
		errs = append(errs, b.writer.close())
	}
	errs = append(errs, b.read.Close(), b.lock.Close())
	return errors.Join(errs...)
}
