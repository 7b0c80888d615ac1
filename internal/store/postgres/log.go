// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// idSlackMicros is how far the time inside an id may lie from its admission's.
const idSlackMicros = int64(day / time.Microsecond)

// querier is a pool or one transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func queryAll[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, known(err)
	}
	return collect(rows, scan)
}

// Expired is store.Sweepable's. What somebody is settling just now is left out.
func (b *Book) Expired(ctx context.Context, limit int) ([]*ledger.Reservation, error) {
	list, err := queryAll(ctx, b.reports, scanReservation, sqlExpired, b.Now(), max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("list what has expired: %w", err)
	}
	return list, nil
}

// Outbox lists every notice that a batch has written, in order.
func (b *Book) Outbox(ctx context.Context) ([]ledger.Notice, error) {
	list, err := queryAll(ctx, b.reports, scanNotice, sqlOutbox)
	if err != nil {
		return nil, fmt.Errorf("list notices: %w", err)
	}
	return list, nil
}

// Call is store.Log's.
func (b *Book) Call(ctx context.Context, workspace string, id ledger.ID) (store.Call, []ledger.Event, error) {
	if err := b.Flush(ctx); err != nil {
		return store.Call{}, nil, err
	}
	var call store.Call
	var events []ledger.Event
	err := b.snapshot(ctx, func(tx pgx.Tx) (err error) {
		name, raw := escape(workspace), uuidOf(id)
		if events, err = queryAll(ctx, tx, scanEvent, sqlCallEvents, name, raw); err != nil {
			return err
		}
		running, err := queryAll(ctx, tx, scanReservation, sqlRunning, name, raw)
		if err != nil {
			return err
		}
		if len(running) == 1 && !running[0].Tombstone {
			call = store.Running(running[0])
			return nil
		}
		call, err = scanCall(tx.QueryRow(ctx, sqlCall, name, raw))
		return err
	})
	if err != nil {
		return store.Call{}, nil, fmt.Errorf("read call %s: %w", id, err)
	}
	return call, events, nil
}

// CallsByClientID is store.Log's.
func (b *Book) CallsByClientID(ctx context.Context, workspace, clientID string, limit int) ([]store.Call, error) {
	return b.calls(ctx, sqlClientCalls, escape(workspace), escape(clientID), max(0, limit))
}

// Calls is store.Log's.
func (b *Book) Calls(ctx context.Context, workspace string, q store.CallQuery) ([]store.Call, error) {
	args := []any{escape(workspace), before(q.Before), escape(q.Outcome), max(0, q.Limit)}
	if q.Key != "" {
		return b.calls(ctx, sqlKeyCalls, append(args, escape(q.Key))...)
	}
	return b.calls(ctx, sqlCalls, args...)
}

func (b *Book) calls(ctx context.Context, query string, args ...any) ([]store.Call, error) {
	if err := b.Flush(ctx); err != nil {
		return nil, err
	}
	list, err := queryAll(ctx, b.reports, scanCall, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the call log: %w", err)
	}
	return list, nil
}

// before is the id that a page ends at: zero is the greatest of all.
func before(id ledger.ID) pgtype.UUID {
	if id.IsZero() {
		copy(id[:], slices.Repeat([]byte{0xff}, len(id)))
	}
	return uuidOf(id)
}

// uuidOf is an id as a parameter whose type every mode of execution knows.
func uuidOf(id ledger.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// idAt is the least id of an instant, within what ids can say.
func idAt(at int64) pgtype.UUID {
	const last = int64(1)<<48 - 1
	millis := min(max(0, at/1000), last)
	return uuidOf(ledger.NewID(millis*1000, [10]byte{}))
}

// AuditList is store.Log's.
func (b *Book) AuditList(ctx context.Context, workspace string, before int64, limit int) ([]store.Audit, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	list, err := queryAll(ctx, b.reports, scanAudit, sqlListAudit, escape(workspace), before, max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	return list, nil
}

// FundEntries is store.Log's.
func (b *Book) FundEntries(ctx context.Context, workspace string, last ledger.ID, limit int) ([]ledger.Event, error) {
	list, err := queryAll(ctx, b.reports, scanEvent, sqlFundEvents, escape(workspace), before(last), max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("read fund entries: %w", err)
	}
	return list, nil
}
