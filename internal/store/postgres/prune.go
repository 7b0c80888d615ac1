// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// metaDropped names in meta until where calls were dropped.
const metaDropped = "calls_dropped_before"

// Prune is store.Retainable's. A step sees one snapshot: what a batch adds
// meanwhile makes it fail, and it is made again. Of several processes one prunes;
// for the others nothing is left to do.
func (b *Book) Prune(ctx context.Context, cut store.Cut, limit int) (step store.Pruned, done bool, err error) {
	limit = max(1, limit)
	err = b.snapshotToWrite(ctx, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(pruneLock)).Scan(&mine); err != nil || !mine {
			done = true
			return err
		}
		p := &pruner{ctx: ctx, tx: tx, limit: limit, step: &step}
		for _, phase := range []func(store.Cut) (bool, error){p.calls, p.events, p.quarters, p.notices} {
			if did, err := phase(cut); did || err != nil {
				return err
			}
		}
		done = true
		return nil
	})
	if err != nil {
		return store.Pruned{}, false, fmt.Errorf("drop what is older than it must be kept: %w", err)
	}
	return step, done, nil
}

// snapshotToWrite runs fn in a transaction that sees one snapshot.
func (b *Book) snapshotToWrite(ctx context.Context, fn func(pgx.Tx) error) error {
	tx, err := b.reports.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if err := fn(tx); err != nil {
		return known(err)
	}
	// A step whose commit is in doubt may be made again: it finds what is left.
	return known(tx.Commit(ctx))
}

// pruner makes one step; each of its phases tells whether it did something.
type pruner struct {
	ctx   context.Context // of the one Prune that made it
	tx    pgx.Tx
	limit int
	step  *store.Pruned
}

// newest is above the ids of all that happened before an instant.
func newest(before int64) pgtype.UUID { return idAt(shelf.Saturate(before, idSlackMicros)) }

func (p *pruner) calls(cut store.Cut) (bool, error) {
	tag, err := p.tx.Exec(p.ctx, sqlDropCalls, cut.Calls, newest(cut.Calls), p.limit)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	p.step.Calls = tag.RowsAffected()
	return true, p.raise(cut.Calls)
}

// events closes whole requests.
func (p *pruner) events(cut store.Cut) (bool, error) {
	rows, err := p.tx.Query(p.ctx, sqlCloseEvents, cut.Events, newest(cut.Events), p.limit)
	if err != nil {
		return false, err
	}
	gone, err := collect(rows, scanEvent)
	if err != nil || len(gone) == 0 {
		return false, err
	}
	closings := shelf.Closings(gone)
	for i := range closings {
		c := &closings[i]
		k := &c.Counter
		_, err := p.tx.Exec(p.ctx, sqlAddClosing, escape(k.Workspace), escape(k.Limit), int64(k.Epoch), escape(k.Subject), k.Window,
			c.Day, c.Credit, int16(c.Kind), c.Amount)
		if err != nil {
			return false, err
		}
	}
	p.step.Events, p.step.Closings = int64(len(gone)), int64(len(closings))
	return true, p.raise(cut.Events) // what corrections gave back to windows is gone with them
}

func (p *pruner) quarters(cut store.Cut) (bool, error) {
	before := cut.Quarters - cut.Quarters%shelf.DayMicros
	rows, err := p.tx.Query(p.ctx, sqlOldQuarters, before, shelf.DayMicros, p.limit)
	if err != nil {
		return false, err
	}
	old, err := collect(rows, scanQuarter)
	if err != nil || len(old) == 0 {
		return false, err
	}
	days, gone := shelf.WholeDays(old)
	for _, q := range days {
		if _, err := p.tx.Exec(p.ctx, sqlAddQuarter, escape(q.Workspace), escape(q.Key), q.Quarter, q.Spend, q.Tokens, q.Requests); err != nil {
			return false, err
		}
	}
	for _, q := range gone {
		if _, err := p.tx.Exec(p.ctx, sqlDropQuarter, escape(q.Workspace), escape(q.Key), q.Quarter); err != nil {
			return false, err
		}
	}
	p.step.Quarters = int64(len(gone))
	return true, nil
}

func (p *pruner) notices(cut store.Cut) (bool, error) {
	tag, err := p.tx.Exec(p.ctx, sqlDropNotices, cut.Notices, p.limit)
	p.step.Notices = tag.RowsAffected()
	return p.step.Notices > 0, err
}

// raise keeps until where calls were dropped.
func (p *pruner) raise(before int64) error {
	now, err := dropped(p.ctx, p.tx)
	if err != nil {
		return err
	}
	_, err = p.tx.Exec(p.ctx, sqlPutMeta, metaDropped, binary.BigEndian.AppendUint64(nil, uint64(max(now, before))))
	return err
}

func dropped(ctx context.Context, tx pgx.Tx) (int64, error) {
	var value []byte
	err := tx.QueryRow(ctx, sqlMeta, metaDropped).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil || len(value) != 8 {
		return 0, known(err)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// Dropped is until where calls were dropped.
func (r *reader) Dropped() (before int64, err error) { return dropped(r.ctx, r.tx) }
