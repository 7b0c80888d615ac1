// SPDX-License-Identifier: Apache-2.0

// Package memory is a book that keeps nothing on a disk: for tests, simulations
// and trials. It is plain on purpose, so that it can be held against the others.
package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// Book fills every role of package store and is safe for concurrent use.
type Book struct {
	mu          sync.Mutex // guards everything
	closed      bool
	instant     *shelf.Instant
	open        shelf.Open
	refusals    shelf.Refusals
	counters    map[ledger.Counter]*ledger.State
	events      []ledger.Event // in the order of their batches
	outbox      []ledger.Notice
	ended       map[callKey]ledger.Ending
	calls       map[callKey]store.Call
	quarters    map[quarterKey]ledger.QuarterSum
	closings    map[store.Closing]int64 // by what they are of, without an amount
	dropped     int64                   // calls that ended before it
	whole       int64                   // what was admitted before it may be in rolled, not in events
	rolled      []ledger.Rollup         // days of UTC
	kept        map[keptKey]route.Kept
	generations map[string]int64
	config
}

type callKey struct {
	workspace string
	id        ledger.ID
}

type quarterKey struct {
	workspace, key string
	quarter        int64
}

// Options say how a book is made.
type Options struct {
	// Clock is the book's; nil is the system's.
	Clock clock.Clock
	// OnClockStep, if set, hears of the clock's steps. It must not call the book.
	OnClockStep func(store.ClockStep)
	// Secret is the store's secret, 32 bytes that the caller drew.
	Secret [32]byte
}

var (
	_ store.Book       = (*Book)(nil)
	_ store.Sweepable  = (*Book)(nil)
	_ store.Objects    = (*Book)(nil)
	_ store.Secrets    = (*Book)(nil)
	_ store.Log        = (*Book)(nil)
	_ store.Verifiable = (*Book)(nil)
	_ store.Retainable = (*Book)(nil)
	_ store.Keeper     = (*Book)(nil)
)

// New makes an empty book.
func New(o Options) *Book {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	// A new book has no last instant that the clock could be behind.
	instant, _ := shelf.NewInstant(o.Clock, 0, true, o.OnClockStep)
	return &Book{
		instant: instant, open: make(shelf.Open), counters: make(map[ledger.Counter]*ledger.State),
		ended: make(map[callKey]ledger.Ending), calls: make(map[callKey]store.Call),
		quarters: make(map[quarterKey]ledger.QuarterSum), closings: make(map[store.Closing]int64), generations: make(map[string]int64),
		kept:   make(map[keptKey]route.Kept),
		config: newConfig(o.Secret),
	}
}

// Close makes every later call fail.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

func (b *Book) ready(ctx context.Context) error {
	if b.closed {
		return fmt.Errorf("the book is closed: %w", store.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}

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
	page := b.load(ops, at)
	results, changes := ledger.Batch(page, ops, at)
	rows, err := b.open.Rows(page, changes)
	if err != nil {
		return nil, err
	}
	b.keep(page, changes, &rows)
	b.refusals.Add(changes.Refused, at)
	b.keepRefusals()
	return results, nil
}

func (b *Book) load(ops []*ledger.Op, at int64) *ledger.Page {
	page := &ledger.Page{
		Generations: make(map[string]int64), Counters: make(map[ledger.Counter]*ledger.State),
		Open: make(map[ledger.ID]*ledger.Reservation), Ended: make(map[ledger.ID]ledger.Ending),
	}
	for _, op := range ops {
		page.Generations[op.Workspace] = b.generation(op.Workspace)
		op.Needs(func(c ledger.Counter, check *ledger.Check) {
			s := b.counters[c]
			if s == nil {
				return
			}
			if page.Counters[c] == nil {
				page.Counters[c] = s.Clone()
			}
			if key, ok := shelf.Rebuilds(op, check, page.Counters[c]); ok {
				check.Rebuild(page.Counters[c], b.keyQuarters(c.Workspace, key, ledger.RebuildFrom(at)))
			}
		}, func(id ledger.ID) {
			if r := b.open[id]; r != nil && r.Workspace == op.Workspace {
				page.Open[id] = r
			} else if ending, ok := b.ending(callKey{op.Workspace, id}); ok {
				page.Ended[id] = ending
			}
		})
	}
	return page
}

// ending tells how a reservation ended; with a swept one comes what was swept.
func (b *Book) ending(key callKey) (ledger.Ending, bool) {
	ending, ok := b.ended[key]
	if call, known := b.calls[key]; ok && known && ending.Kind == ledger.EventSwept {
		ending.Swept = call.Reservation()
	}
	return ending, ok
}

func (b *Book) keyQuarters(workspace, key string, from int64) []ledger.QuarterSum {
	var list []ledger.QuarterSum
	for _, q := range b.quarters {
		if q.Workspace == workspace && q.Key == key && q.Quarter >= from {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, compareQuarters)
	return list
}

func (b *Book) keep(page *ledger.Page, changes *ledger.Changes, rows *shelf.Rows) {
	b.open.Keep(rows)
	for _, c := range changes.Counters {
		b.counters[c] = page.Counters[c]
	}
	for i := range changes.Events {
		e := &changes.Events[i]
		b.events = append(b.events, *e)
		key := callKey{e.Workspace, e.ID}
		ending := b.ended[key]
		if e.Kind == ledger.EventCorrection {
			ending.Corrections++
		} else {
			ending.Kind = e.Kind
		}
		b.ended[key] = ending
	}
	b.outbox = append(b.outbox, changes.Outbox...)
	for i := range changes.Calls {
		c := &changes.Calls[i]
		b.calls[callKey{c.Workspace, c.ID}] = store.Call{Call: *c, Count: 1}
	}
	for _, q := range changes.Quarters {
		b.addQuarter(q)
	}
}

// keepRefusals writes at once what a book on a disk writes later.
func (b *Book) keepRefusals() {
	for b.refusals.Waiting() {
		for _, c := range b.refusals.Take(store.MaxBatch) {
			key := callKey{c.Workspace, c.ID}
			known, ok := b.calls[key]
			if ok && known.Outcome != c.Outcome {
				continue
			}
			if ok {
				known.Count += c.Count
				c = known
			}
			b.calls[key] = c
		}
	}
}

// Outbox lists every notice that a batch has written, in order.
func (b *Book) Outbox(ctx context.Context) ([]ledger.Notice, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(b.outbox), nil
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

func (b *Book) generation(workspace string) int64 {
	return max(b.generations[workspace], b.generations[""])
}

// View is store.Verifiable's: it walks a copy.
func (b *Book) View(ctx context.Context, fn func(store.Reader) error) error {
	b.mu.Lock()
	if err := b.ready(ctx); err != nil {
		b.mu.Unlock()
		return err
	}
	// Kept states, reservations and events are replaced, never changed.
	r := &reader{
		counters: maps.Clone(b.counters), open: maps.Clone(b.open), events: slices.Clone(b.events),
		quarters: slices.Collect(maps.Values(b.quarters)), calls: slices.Collect(maps.Values(b.calls)),
		dropped: b.dropped, whole: b.whole, rolled: slices.Clone(b.rolled),
	}
	for c, amount := range b.closings {
		c.Amount = amount
		r.closings = append(r.closings, c)
	}
	b.mu.Unlock()
	return fn(r)
}
