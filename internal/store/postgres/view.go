// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// View is store.Verifiable's: one read-only transaction, whose snapshot lasts.
func (b *Book) View(ctx context.Context, fn func(store.Reader) error) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	return b.endless(ctx, func(tx pgx.Tx) error { return fn(&reader{ctx, tx}) })
}

// snapshot runs fn in a transaction that sees one snapshot, and has an end: an old
// snapshot keeps the dead versions of every counter alive.
func (b *Book) snapshot(ctx context.Context, fn func(pgx.Tx) error) error {
	if !b.options.Pooling {
		return b.reading(ctx, fn) // the session has the bounds
	}
	return b.reading(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlBounds, milliseconds(reportTimeout)); err != nil {
			return known(err)
		}
		return fn(tx)
	})
}

// endless is snapshot for a walk over everything, which may take longer.
func (b *Book) endless(ctx context.Context, fn func(pgx.Tx) error) error {
	return b.reading(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlBounds, "0"); err != nil {
			return known(err)
		}
		return fn(tx)
	})
}

func (b *Book) reading(ctx context.Context, fn func(pgx.Tx) error) (err error) {
	tx, err := b.reports.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin to read: %w", known(err))
	}
	defer func() {
		if end := tx.Rollback(ctx); err == nil && end != nil && !errors.Is(end, pgx.ErrTxClosed) {
			err = known(end)
		}
	}()
	return fn(tx)
}

// reader walks one snapshot; it lives as long as View's call.
type reader struct {
	ctx context.Context // of the one View that made it
	tx  pgx.Tx
}

func walk[T any](r *reader, scan func(scanner) (T, error), query string, fn func(*T) error) error {
	rows, err := r.tx.Query(r.ctx, query)
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
