// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// View is store.Verifiable's: a read transaction of SQLite's WAL. The tables are
// the books as of one batch, all of it or nothing.
func (b *Book) View(ctx context.Context, fn func(store.Reader) error) error {
	if err := b.catchUp(ctx); err != nil {
		return err
	}
	return b.snapshot(ctx, func(tx *sql.Tx) error {
		// A transaction's snapshot is taken by its first read.
		var at int64
		if err := tx.QueryRowContext(ctx, sqlInstant).Scan(&at); err != nil {
			return known(err)
		}
		return fn(&reader{ctx: ctx, tx: tx})
	})
}

func (b *Book) snapshot(ctx context.Context, fn func(*sql.Tx) error) (err error) {
	tx, err := b.read.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin to read: %w", known(err))
	}
	defer func() {
		if end := tx.Rollback(); !errors.Is(end, sql.ErrTxDone) {
			err = errors.Join(err, end)
		}
	}()
	return fn(tx)
}

// reader walks one snapshot; it lives as long as View's call.
type reader struct {
	ctx context.Context // of the one View that made it
	tx  *sql.Tx
}

func walk[T any](r *reader, scan func(row) (T, error), query string, fn func(*T) error) error {
	rows, err := r.tx.QueryContext(r.ctx, query)
	if err != nil {
		return known(err)
	}
	return each(rows, scan, fn)
}

// Counters walks in key order.
func (r *reader) Counters(fn func(ledger.Counter, *ledger.State) error) error {
	return walk(r, scanCounter, sqlCounters, func(c *counterRow) error { return fn(c.counter, &c.state) })
}

// Reservations walks the open ones, tombstones included.
func (r *reader) Reservations(fn func(*ledger.Reservation) error) error {
	return walk(r, scanReservation, sqlReservations, func(v **ledger.Reservation) error { return fn(*v) })
}

// Events walks by workspace and id.
func (r *reader) Events(fn func(*ledger.Event) error) error {
	return walk(r, scanEvent, sqlEvents, fn)
}

// Quarters walks by workspace and key.
func (r *reader) Quarters(fn func(ledger.QuarterSum) error) error {
	return walk(r, scanQuarter, sqlQuarters, func(q *ledger.QuarterSum) error { return fn(*q) })
}

// Closings walks in key order.
func (r *reader) Closings(fn func(store.Closing) error) error {
	return walk(r, scanClosing, sqlClosings, func(c *store.Closing) error { return fn(*c) })
}

// Calls walks by workspace and id.
func (r *reader) Calls(fn func(*store.Call) error) error {
	return walk(r, scanCall, sqlAllCalls, fn)
}

// Dropped is what the snapshot says of its calls.
func (r *reader) Dropped() (before int64, err error) {
	return readInstant(r.ctx, r.tx, metaDropped)
}
