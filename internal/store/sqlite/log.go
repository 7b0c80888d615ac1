// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// lastID is above every id.
var lastID = [17]byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

// Call is store.Log's.
func (b *Book) Call(ctx context.Context, workspace string, id ledger.ID) (store.Call, []ledger.Event, error) {
	// First: who ends after this look is in what catches up.
	running := b.openOne(workspace, id)
	if err := b.catchUp(ctx); err != nil {
		return store.Call{}, nil, err
	}
	var call store.Call
	var events []ledger.Event
	err := b.snapshot(ctx, func(tx *sql.Tx) (err error) {
		events, err = queryAll(ctx, tx, scanEvent, sqlCallEvents, workspace, id[:])
		if err != nil || running != nil {
			return err
		}
		call, err = scanCall(tx.QueryRowContext(ctx, sqlCall, workspace, id[:]))
		return err
	})
	if err != nil {
		return store.Call{}, nil, fmt.Errorf("read call %s: %w", id, err)
	}
	if running != nil {
		call = store.Running(running)
	}
	slices.SortFunc(events, func(x, y ledger.Event) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Attempt, y.Attempt))
	})
	return call, events, nil
}

// CallsByClientID is store.Log's.
func (b *Book) CallsByClientID(ctx context.Context, workspace, clientID string, limit int) ([]store.Call, error) {
	return b.calls(ctx, sqlClientCalls, workspace, clientID, max(0, limit))
}

// Calls is store.Log's.
func (b *Book) Calls(ctx context.Context, workspace string, q store.CallQuery) ([]store.Call, error) {
	args := []any{workspace, before(q.Before), q.Outcome, max(0, q.Limit)}
	if q.Key != "" {
		return b.calls(ctx, sqlKeyCalls, append(args, q.Key)...)
	}
	return b.calls(ctx, sqlCalls, args...)
}

func (b *Book) calls(ctx context.Context, query string, args ...any) ([]store.Call, error) {
	if err := b.catchUp(ctx); err != nil {
		return nil, err
	}
	list, err := queryAll(ctx, b.read, scanCall, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the call log: %w", err)
	}
	return list, nil
}

func before(id ledger.ID) []byte {
	if id.IsZero() {
		return lastID[:]
	}
	return id[:]
}

// idAt is the least id of an instant, within what ids can say.
func idAt(at int64) []byte {
	const last = int64(1)<<48 - 1
	millis := min(max(0, at/1000), last)
	id := ledger.NewID(millis*1000, [10]byte{})
	return id[:]
}

// AuditList is store.Log's.
func (b *Book) AuditList(ctx context.Context, workspace string, before int64, limit int) ([]store.Audit, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	list, err := queryAll(ctx, b.read, scanAudit, sqlListAudit, workspace, before, max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	return list, nil
}

// FundEntries is store.Log's.
func (b *Book) FundEntries(ctx context.Context, workspace string, last ledger.ID, limit int) ([]ledger.Event, error) {
	if err := b.catchUp(ctx); err != nil {
		return nil, err
	}
	list, err := queryAll(ctx, b.read, scanEvent, sqlFundEvents, workspace, before(last), max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("read fund entries: %w", err)
	}
	return list, nil
}

// Outbox are the notices that nobody has sent, the first first.
func (b *Book) Outbox(ctx context.Context) ([]ledger.Notice, error) {
	if err := b.catchUp(ctx); err != nil {
		return nil, err
	}
	list, err := queryAll(ctx, b.read, scanNotice, sqlNotices)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return list, nil
}

// openOne is the open reservation of an id; nil: none.
func (b *Book) openOne(workspace string, id ledger.ID) *ledger.Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.open[id]
	if r == nil || r.Workspace != workspace || r.Tombstone {
		return nil
	}
	return r
}

// row is what sql.Row and sql.Rows share.
type row interface{ Scan(into ...any) error }

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func queryAll[T any](ctx context.Context, q querier, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, known(err)
	}
	var list []T
	err = each(rows, scan, func(v *T) error {
		list = append(list, *v)
		return nil
	})
	return list, err
}

// each closes rows.
func each[T any](rows *sql.Rows, scan func(row) (T, error), fn func(*T) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return err
		}
		if err := fn(&v); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return known(err)
	}
	return nil
}
