// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// Names of meta: until where calls were dropped, and quarters made days.
const (
	metaDropped = "calls_dropped_before"
	metaWhole   = "quarters_whole_before"
)

// pruning is how far the steps for one cut have come. It is only where to look
// next: what was done is in the file.
type pruning struct {
	cut       store.Cut
	phase     int
	row       int64 // of calls or notices: looked at
	workspace string
	id        ledger.ID // of events: looked at
	key       string
	inKey     bool
	since     int64 // quarters, or roll-ups, before it are days already
}

// part is what one step takes away; more tells that there may be more of its kind.
type part struct {
	store.Pruned
	more  bool
	write func(w *writer) error // nil: nothing
	then  func(p *pruning)      // after the commit
}

// phases are taken one after the other.
var phases = [...]func(*Book, context.Context, *pruning, int) (part, error){
	(*Book).oldCalls, (*Book).oldRollups, (*Book).oldEvents, (*Book).oldQuarters, (*Book).oldNotices,
	(*Book).oldKept,
}

// Prune is store.Retainable's. A step reads beside the batches what it drops, and
// writes while one waits that comes just then: as long as a fold at most. No fold
// comes between, so nothing is added to what was read.
func (b *Book) Prune(ctx context.Context, cut store.Cut, limit int) (step store.Pruned, done bool, err error) {
	b.pruneMu.Lock()
	defer b.pruneMu.Unlock()
	if b.pruning.cut != cut || b.pruning.phase == len(phases) {
		b.pruning = pruning{cut: cut, since: -1}
		if err := b.catchUp(ctx); err != nil { // what is not in the tables is not looked at
			return step, false, err
		}
	}
	b.foldMu.Lock()
	defer b.foldMu.Unlock()
	b.mu.Lock()
	err = b.ready(ctx)
	w := b.writer
	b.mu.Unlock()
	if err != nil {
		return step, false, err
	}
	p := &b.pruning
	todo, err := phases[p.phase](b, ctx, p, max(2, limit))
	if err != nil {
		return step, false, fmt.Errorf("look for what is older than it must be kept: %w", err)
	}
	if todo.write != nil {
		if err := w.transact(func() error { return todo.write(w) }); err != nil {
			return step, false, fmt.Errorf("drop what is older than it must be kept: %w", err)
		}
	}
	if todo.then != nil {
		todo.then(p)
	}
	if !todo.more {
		*p = pruning{cut: cut, since: -1, phase: p.phase + 1}
	}
	return todo.Pruned, p.phase == len(phases), nil
}

// aged is a row and its instant.
type aged struct{ row, at int64 }

func scanAged(r row) (a aged, err error) {
	if err := r.Scan(&a.row, &a.at); err != nil {
		return a, known(err)
	}
	return a, nil
}

// oldRows finds rows of before an instant. It ends where as many as it reads are
// all younger: behind a clock that was ahead some stay longer than they must.
func (b *Book) oldRows(ctx context.Context, p *pruning, query, drop string, before int64, limit int) (n int64, out part, err error) {
	list, err := queryAll(ctx, b.aside, scanAged, query, p.row, limit)
	if err != nil {
		return 0, out, err
	}
	var old []int64
	last := p.row
	for _, a := range list {
		last = a.row
		if a.at < before {
			old = append(old, a.row)
		}
	}
	out.more = len(list) == limit && len(old) > 0
	out.then = func(p *pruning) { p.row = last }
	if len(old) > 0 {
		out.write = func(w *writer) error {
			for _, row := range old {
				if err := w.exec(drop, row, before); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return int64(len(old)), out, nil
}

func (b *Book) oldCalls(ctx context.Context, p *pruning, limit int) (part, error) {
	before := p.cut.Calls
	n, out, err := b.oldRows(ctx, p, sqlCallAges, sqlDropCall, before, limit)
	out.Calls = n
	if drop := out.write; drop != nil {
		out.write = func(w *writer) error { return errors.Join(drop(w), w.raise(metaDropped, before)) }
	}
	return out, err
}

func (b *Book) oldNotices(ctx context.Context, p *pruning, limit int) (part, error) {
	n, out, err := b.oldRows(ctx, p, sqlNoticeAges, sqlDropNotice, p.cut.Notices, limit)
	out.Notices = n
	return out, err
}

// oldEvents closes the oldest requests of one workspace that it has not looked at.
func (b *Book) oldEvents(ctx context.Context, p *pruning, limit int) (out part, err error) {
	before, workspace := p.cut.Events-p.cut.Events%shelf.DayMicros, p.workspace
	if workspace == "" {
		if workspace, err = b.shopAfter(ctx, ""); err != nil || workspace == "" {
			return out, err
		}
	}
	list, err := queryAll(ctx, b.aside, scanEvent, sqlOldEvents, workspace, p.id[:], idAt(before), limit)
	if err != nil {
		return out, err
	}
	if len(list) == limit {
		// The last one may have more of them.
		last := list[len(list)-1].ID
		i := slices.IndexFunc(list, func(e ledger.Event) bool { return e.ID == last })
		whole, err := queryAll(ctx, b.aside, scanEvent, sqlCallEvents, workspace, last[:])
		if err != nil {
			return out, err
		}
		list = append(list[:i], whole...)
		out.then = func(p *pruning) { p.workspace, p.id = workspace, last }
	} else {
		next, err := b.shopAfter(ctx, workspace)
		if err != nil {
			return out, err
		}
		out.then = func(p *pruning) { p.workspace, p.id = next, ledger.ID{} }
		out.more = next != ""
	}
	out.more = out.more || len(list) >= limit
	gone := shelf.ClosableOf(list, before, nil)
	if len(gone) == 0 {
		return out, nil
	}
	closings := shelf.Closings(gone)
	out.Events, out.Closings = int64(len(gone)), int64(len(closings))
	out.write = func(w *writer) error { return w.closeEvents(gone, closings, before) }
	return out, nil
}

// shopAfter is the next workspace that has events; "" behind the last.
func (b *Book) shopAfter(ctx context.Context, workspace string) (next string, err error) {
	if err = b.aside.QueryRowContext(ctx, sqlNextShop, workspace).Scan(&next); err != nil {
		return "", known(err)
	}
	return next, nil
}

func (w *writer) closeEvents(gone []ledger.Event, closings []store.Closing, before int64) error {
	for i := range closings {
		c, amount := &closings[i], closings[i].Amount
		k := &c.Counter
		credit := int64(0)
		if c.Credit {
			credit = 1
		}
		key := []driver.Value{k.Workspace, k.Limit, int64(k.Epoch), k.Subject, k.Window, int64(c.Day), credit}
		err := w.query(sqlClosing, func(v []driver.Value) error {
			amount = shelf.Saturate(amount, integer(v[0]))
			return nil
		}, key...)
		if err == nil {
			err = w.exec(sqlPutClosing, append(key, int64(c.Kind), amount)...)
		}
		if err != nil {
			return err
		}
	}
	for i := range gone {
		e := &gone[i]
		if err := w.exec(sqlDropEvent, e.Workspace, e.ID[:], int64(e.Attempt), int64(e.Kind)); err != nil {
			return err
		}
	}
	// What corrections gave back to windows is gone with them.
	return w.raise(metaDropped, before)
}

// oldQuarters makes days of one key's quarters, and skips keys without any.
func (b *Book) oldQuarters(ctx context.Context, p *pruning, limit int) (part, error) {
	before := p.cut.Quarters - p.cut.Quarters%shelf.DayMicros
	at := *p // it is kept when the step is
	out := part{more: true, then: func(p *pruning) { *p = at }}
	if at.since < 0 {
		var since []byte
		if err := b.aside.QueryRowContext(ctx, sqlMeta, metaWhole).Scan(&since); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return out, known(err)
		}
		at.since = instantOf(since)
	}
	for range limit {
		if !at.inKey {
			err := b.aside.QueryRowContext(ctx, sqlNextKey, at.workspace, at.key).Scan(&at.workspace, &at.key)
			if errors.Is(err, sql.ErrNoRows) {
				// The next run begins where every key's quarters are days.
				out.more, out.write = false, func(w *writer) error { return w.raise(metaWhole, before) }
				return out, nil
			}
			if err != nil {
				return out, known(err)
			}
		}
		list, err := queryAll(ctx, b.aside, scanQuarter, sqlOldQuarters, at.workspace, at.key, at.since, before, limit)
		if err != nil {
			return out, err
		}
		at.inKey = len(list) == limit
		if days, gone := shelf.WholeDays(list); len(gone) > 0 {
			out.Quarters = int64(len(gone))
			out.write = func(w *writer) error { return w.closeQuarters(days, gone) }
			return out, nil
		}
	}
	return out, nil
}

func (w *writer) closeQuarters(days, gone []ledger.QuarterSum) error {
	for _, q := range days {
		if err := w.exec(sqlAddQuarter, q.Workspace, q.Key, q.Quarter, q.Spend, q.Tokens, q.Requests); err != nil {
			return err
		}
	}
	for _, q := range gone {
		if err := w.exec(sqlDropQuarter, q.Workspace, q.Key, q.Quarter); err != nil {
			return err
		}
	}
	return nil
}

// raise sets an instant of meta, unless it is later already.
func (w *writer) raise(name string, at int64) error {
	err := w.query(sqlMeta, func(v []driver.Value) error {
		at = max(at, instantOf(raw(v[0])))
		return nil
	}, name)
	if err != nil {
		return err
	}
	return w.exec(sqlPutMeta, name, binary.BigEndian.AppendUint64(nil, uint64(at)))
}

func instantOf(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value))
}
