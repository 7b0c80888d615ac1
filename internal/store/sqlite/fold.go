// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/frame"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// foldEvery is how old a row of the journal becomes while little happens, or twice
// that. A file that takes no writes is found out by then, whoever asks (RES-8).
const foldEvery = time.Second / 2

// pace says when the journal is folded, all in rows of the other tables.
type pace struct {
	// step is about how many one fold writes: the more, the fewer pages for each and
	// the fewer batches that meet its flush, and the longer a change of configuration
	// waits: 0.1 s.
	step int
	// above is how many the journal may hold before a fold begins beside the
	// batches, most how many before a batch folds first.
	above, most int
	// segment is how long a segment of the journal grows, in bytes.
	segment int64
}

var defaultPace = pace{step: 9600, above: 12_000, most: 48_000, segment: segmentBytes}

// putsAtOnce is how many statements a fold runs before others may: about 0.2 ms.
const putsAtOnce = 32

// fold is the oldest batches of the journal, put together: each row of a table
// is written once, however often it changed.
type fold struct {
	through  int64
	open     map[ledger.ID]*put // nil: open no more
	counters map[ledger.Counter]*counterBody
	events   []*eventBody
	calls    []*callBody
	quarters []ledger.QuarterSum
	notices  []ledger.Notice
}

func newFold(batches []*batch) *fold {
	f := &fold{
		through: batches[len(batches)-1].seq,
		open:    make(map[ledger.ID]*put), counters: make(map[ledger.Counter]*counterBody),
	}
	events, calls := 0, 0
	for _, b := range batches {
		events, calls = events+len(b.events), calls+len(b.calls)
	}
	f.events, f.calls = make([]*eventBody, 0, events), make([]*callBody, 0, calls)
	for _, b := range batches {
		for i := range b.puts {
			f.open[b.puts[i].ID] = &b.puts[i]
		}
		for _, id := range b.ended {
			f.open[id] = nil
		}
		for i := range b.counters {
			f.counters[b.counters[i].counter] = &b.counters[i]
		}
		for i := range b.events {
			f.events = append(f.events, &b.events[i])
		}
		for i := range b.calls {
			f.calls = append(f.calls, &b.calls[i])
		}
		f.quarters = append(f.quarters, b.quarters...)
		f.notices = append(f.notices, b.notices...)
	}
	f.quarters = shelf.Quarters(f.quarters)
	// In the order of the keys a page is looked for once.
	slices.SortFunc(f.events, func(x, y *eventBody) int {
		return cmp.Or(cmp.Compare(x.Workspace, y.Workspace), x.ID.Compare(y.ID))
	})
	slices.SortFunc(f.calls, func(x, y *callBody) int {
		return cmp.Or(cmp.Compare(x.Workspace, y.Workspace), x.ID.Compare(y.ID))
	})
	return f
}

// foldOldest moves the oldest rows of the journal into the tables, in one
// transaction, beside the batches. Refusal records ride along.
func (b *Book) foldOldest(ctx context.Context) error {
	b.foldMu.Lock()
	defer b.foldMu.Unlock()
	b.mu.Lock()
	if err := b.ready(ctx); err != nil || len(b.tail.batches) == 0 {
		b.stuck.Store(b.stuck.Load() && err != nil)
		b.mu.Unlock()
		return err
	}
	batches, riders, w := slices.Clone(b.tail.oldest(b.options.pace.step)), b.refusals.Take(refusalsPerFold), b.writer
	b.mu.Unlock()
	f := newFold(batches)
	err := w.transact(func() error {
		if err := w.addRefusals(riders); err != nil {
			return err
		}
		return w.fold(f)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.refusals.Put(riders)
		b.stuck.Store(true)
		return fmt.Errorf("fold the journal: %w", err)
	}
	b.stuck.Store(false)
	b.folded(f)
	return nil
}

// folded forgets what the tables have now.
func (b *Book) folded(f *fold) {
	b.tail.drop(f.through)
	b.counters.folded = b.tail.folded
	b.backlog.Store(int64(b.tail.rows))
	if b.journal != nil {
		b.journal.folded = max(b.journal.folded, f.through)
	}
}

// fold writes in the order of the tables' pages.
func (w *writer) fold(f *fold) error {
	if err := w.foldReservations(f.open); err != nil {
		return err
	}
	if err := w.foldCounters(f.counters); err != nil {
		return err
	}
	for _, e := range f.events {
		err := w.put(sqlAddEvent, e.Workspace, e.ID[:], int64(e.Attempt), int64(e.Kind), e.AdmittedAt, e.body)
		if err != nil {
			return err
		}
	}
	if err := w.roll(f.events); err != nil {
		return err
	}
	for _, c := range f.calls {
		w.body = append(append(w.body[:0], c.end...), c.put.body...)
		if err := w.put(sqlAddCall, c.Workspace, c.ID[:], c.Key, c.Outcome, c.EndedAt, c.ClientID, w.body); err != nil {
			return err
		}
	}
	for _, q := range f.quarters {
		if err := w.put(sqlAddQuarter, q.Workspace, q.Key, q.Quarter, q.Spend, q.Tokens, q.Requests); err != nil {
			return err
		}
	}
	for i := range f.notices {
		n := &f.notices[i]
		if err := w.put(sqlAddNotice, n.Workspace, n.Kind, n.At, ledger.AppendNotice(nil, n)); err != nil {
			return err
		}
	}
	return w.put(sqlSetThrough, f.through)
}

// put runs a statement of a fold, and now and then lets others run: what became
// ready while this goroutine ran may be queued behind it.
func (w *writer) put(query string, args ...driver.Value) error {
	if w.puts++; w.puts%putsAtOnce == 0 {
		runtime.Gosched()
	}
	return w.exec(query, args...)
}

// foldReservations changes the rows of those whose state the tables have, or
// shall have. Who was opened and ended meanwhile never gets a row.
func (w *writer) foldReservations(open map[ledger.ID]*put) error {
	for id, r := range open {
		number, has := w.numbers[id]
		var err error
		switch {
		case r == nil && has:
			err = w.put(sqlDeleteReservation, number)
			w.numbered = append(w.numbered, numbered{id, 0})
		case r != nil && has:
			err = w.put(sqlSetReservation, number, r.ExpiresAt, r.body)
		case r != nil:
			w.last++
			err = w.put(sqlAddReservation, w.last, r.Workspace, r.ID[:], r.ExpiresAt, r.body)
			w.numbered = append(w.numbered, numbered{id, w.last})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) foldCounters(counters map[ledger.Counter]*counterBody) error {
	list := make([]*counterBody, 0, len(counters))
	for _, c := range counters {
		list = append(list, c)
	}
	slices.SortFunc(list, func(x, y *counterBody) int {
		if x.counter.Less(y.counter) {
			return -1
		}
		return 1
	})
	for _, c := range list {
		k, s := &c.counter, c.state
		if err := w.put(sqlPutCounter, k.Workspace, k.Limit, int64(k.Epoch), k.Subject, k.Window, s.Held, s.At, c.body); err != nil {
			return err
		}
	}
	return nil
}

// catchUp brings everything that was done before it was called into the tables,
// refusal records too. The batches go on meanwhile.
func (b *Book) catchUp(ctx context.Context) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	return b.foldUpTo(ctx, b.newest())
}

// newest is the newest row of the journal.
func (b *Book) newest() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tail.last
}

func (b *Book) foldUpTo(ctx context.Context, row int64) error {
	for {
		b.mu.Lock()
		done := b.tail.folded >= row
		b.mu.Unlock()
		if done {
			return nil
		}
		// A spent connection is made anew by the next try.
		if err := b.foldOldest(ctx); err != nil && !errors.Is(err, errSpent) {
			return err
		}
	}
}

// folding keeps the journal short behind the batches' backs.
func (b *Book) folding(ctx context.Context) {
	tick := time.NewTicker(foldEvery)
	defer tick.Stop()
	var before int64 // the newest row at the last tick
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-b.full:
			err = b.foldOldest(ctx)
		case <-tick.C:
			err = b.foldUpTo(ctx, before)
			before = b.newest()
		}
		b.extendJournal()
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) && b.options.OnFlushError != nil {
			b.options.OnFlushError(err)
		}
	}
}

// extendJournal gives the journal the length at which a flush is fast. Where there
// is no room for it batches go on without.
func (b *Book) extendJournal() {
	for {
		var file *os.File
		b.mu.Lock()
		if b.journal != nil && !b.journal.broken {
			file = b.journal.extend()
		}
		b.mu.Unlock()
		if file == nil || frame.Flush(file) != nil {
			return
		}
	}
}
