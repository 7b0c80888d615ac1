// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/shelf"
)

// Names of meta: that every event has been rolled up, before which roll-ups stand
// for days, and before which they all are days.
const (
	metaRolled     = "rolled_up"
	metaRolledDays = "rollups_stand_for_days_before"
	metaDaysWhole  = "rollups_whole_before"
)

const (
	rollupColumns = `workspace, quarter, grp, key, model, provider, member, team, project, spend, tokens, requests, events, first_millis, last_millis`
	// Sums saturate: SQLite's own addition would turn into a float.
	sqlAddRollup = `INSERT INTO rollups (` + rollupColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (workspace, quarter, grp) DO UPDATE SET
spend = CASE WHEN excluded.spend > 0 AND spend > 9223372036854775807 - excluded.spend THEN 9223372036854775807
 WHEN excluded.spend < 0 AND spend < -9223372036854775807 - excluded.spend THEN -9223372036854775807
 ELSE spend + excluded.spend END,
tokens = CASE WHEN excluded.tokens > 0 AND tokens > 9223372036854775807 - excluded.tokens THEN 9223372036854775807
 WHEN excluded.tokens < 0 AND tokens < -9223372036854775807 - excluded.tokens THEN -9223372036854775807
 ELSE tokens + excluded.tokens END,
requests = requests + excluded.requests, events = events + excluded.events,
first_millis = min(first_millis, excluded.first_millis), last_millis = max(last_millis, excluded.last_millis)`
	sqlDropRollup = `DELETE FROM rollups WHERE workspace = ? AND quarter = ? AND grp = ?`
	sqlRollups    = `SELECT ` + rollupColumns + ` FROM rollups ORDER BY workspace, quarter, grp`
	sqlRollupShop = `SELECT coalesce(min(workspace), '') FROM rollups WHERE workspace > ?`
	sqlOldRollups = `SELECT ` + rollupColumns + ` FROM rollups
WHERE workspace = ? AND quarter >= ? AND quarter < ? AND quarter % 86400000000 <> 0 ORDER BY quarter LIMIT ?`
)

// roll adds the events of a fold to the roll-ups that reports are made of, in the
// fold's transaction: each is counted once, and no report has to wait for more
// than the folds.
func (w *writer) roll(events []*eventBody) error {
	if len(events) == 0 {
		return nil
	}
	whole, err := w.instant(metaRolledDays)
	if err != nil {
		return err
	}
	rolled := shelf.NewRollups(whole)
	for _, e := range events {
		event := e.Event
		if event.At == 0 { // it comes from a journal that was read
			whole := *event
			if err := whole.DecodeInto(e.body); err != nil {
				return err
			}
			event = &whole
		}
		rolled.Event(event)
	}
	return w.addRollups(rolled.Rows())
}

func (w *writer) addRollups(rows []shelf.Rolled) error {
	for i := range rows {
		r := &rows[i]
		err := w.exec(sqlAddRollup, r.Workspace, r.Quarter, r.Digest[:], r.Key, r.Model, r.Provider, r.User, r.Team, r.Project,
			r.Spend, r.Tokens, r.Requests, r.Events, r.FirstMillis, r.LastMillis)
		if err != nil {
			return err
		}
	}
	return nil
}

// instant reads one of meta; 0: it is not there.
func (w *writer) instant(name string) (at int64, err error) {
	err = w.query(sqlMeta, func(v []driver.Value) error {
		at = instantOf(raw(v[0]))
		return nil
	}, name)
	return at, err
}

// rollStored rolls up what an earlier program has stored.
func (w *writer) rollStored() error {
	done, err := w.instant(metaRolled)
	if err != nil || done > 0 {
		return err
	}
	rolled := shelf.NewRollups(0)
	err = w.query(sqlEvents, func(v []driver.Value) error {
		e := ledger.Event{Workspace: text(v[0]), Attempt: int32(integer(v[2])), Kind: ledger.EventKind(integer(v[3])), AdmittedAt: integer(v[4])}
		copy(e.ID[:], raw(v[1]))
		if err := e.DecodeInto(raw(v[5])); err != nil {
			return err
		}
		rolled.Event(&e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("roll up what is stored: %w", err)
	}
	return w.transact(func() error { return errors.Join(w.addRollups(rolled.Rows()), w.raise(metaRolled, 1)) })
}

// oldRollups makes days of the roll-ups of a workspace, those of before the day
// that events may go until. From its first step on they stand for days.
func (b *Book) oldRollups(ctx context.Context, p *pruning, limit int) (part, error) {
	before := p.cut.Events - p.cut.Events%shelf.DayMicros
	at := *p // it is kept when the step is
	out := part{more: true, then: func(p *pruning) { *p = at }}
	if at.since < 0 {
		var done []byte
		if err := b.aside.QueryRowContext(ctx, sqlMeta, metaDaysWhole).Scan(&done); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return out, known(err)
		}
		at.since = instantOf(done)
		if before > at.since {
			out.write = func(w *writer) error { return w.raise(metaRolledDays, before) }
			return out, nil
		}
	}
	for range limit {
		if !at.inKey {
			if err := b.aside.QueryRowContext(ctx, sqlRollupShop, at.workspace).Scan(&at.workspace); err != nil {
				return out, known(err)
			}
			if at.workspace == "" || at.since >= before {
				out.more, out.write = false, func(w *writer) error { return w.raise(metaDaysWhole, before) }
				return out, nil
			}
		}
		list, err := queryAll(ctx, b.aside, scanRollup, sqlOldRollups, at.workspace, at.since, before, limit)
		if err != nil {
			return out, err
		}
		if at.inKey = len(list) == limit; len(list) > 0 {
			out.Rollups = int64(len(list))
			out.write = func(w *writer) error { return w.closeRollups(list, before) }
			return out, nil
		}
	}
	return out, nil
}

func (w *writer) closeRollups(gone []shelf.Rolled, before int64) error {
	days := shelf.NewRollups(before)
	for i := range gone {
		days.Add(&gone[i].Rollup)
	}
	if err := w.addRollups(days.Rows()); err != nil {
		return err
	}
	for i := range gone {
		if err := w.exec(sqlDropRollup, gone[i].Workspace, gone[i].Quarter, gone[i].Digest[:]); err != nil {
			return err
		}
	}
	return nil
}

func scanRollup(r row) (out shelf.Rolled, err error) {
	var digest []byte
	err = r.Scan(&out.Workspace, &out.Quarter, &digest, &out.Key, &out.Model, &out.Provider, &out.User, &out.Team, &out.Project,
		&out.Spend, &out.Tokens, &out.Requests, &out.Events, &out.FirstMillis, &out.LastMillis)
	if err != nil {
		return out, known(err)
	}
	copy(out.Digest[:], digest)
	return out, nil
}

// Rollups walks by workspace and quarter.
func (r *reader) Rollups(fn func(*ledger.Rollup) error) error {
	return walk(r, scanRollup, sqlRollups, func(v *shelf.Rolled) error { return fn(&v.Rollup) })
}

// Unrolled has nothing to walk: events are rolled up when they come into their
// table.
func (r *reader) Unrolled(func(*ledger.Event) error) error { return nil }

// Whole is before which roll-ups stand for days.
func (r *reader) Whole() (before int64, err error) { return readInstant(r.ctx, r.tx, metaRolledDays) }

func readInstant(ctx context.Context, tx *sql.Tx, name string) (int64, error) {
	var value []byte
	err := tx.QueryRowContext(ctx, sqlMeta, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, known(err)
	}
	return instantOf(value), nil
}
