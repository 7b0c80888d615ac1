// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

const (
	// metaFilling names in meta where the content comes from of a database that
	// nobody has yet compared with that.
	metaFilling = "filling_from"
	// fillRows is how many rows are sent at once.
	fillRows = 1000
	// daysFilled is how many days back have tables of their own.
	daysFilled = 100
)

// contents are the tables of what a store holds, in the order of their locks;
// replicas says who uses it.
var contents = []string{
	"reservations", "counters", "meta", "generations", "objects", "key_secrets", "credentials",
	"events", "calls", "key_quarters", "closings", "rollups", "outbox", "audit", "kept",
}

const (
	// sqlOwner tells whether the role may make tables of days.
	sqlOwner = `SELECT pg_has_role(c.relowner, 'USAGE') AND has_schema_privilege(current_schema(), 'CREATE')
FROM pg_class c WHERE c.oid = 'events'::regclass`
	// What is copied with roll-ups comes before every transaction there is.
	sqlFilledRolled = `UPDATE rolling SET through = 1`
	sqlFilledAt     = `INSERT INTO replicas (id, name, started_at, seen_at, stopped) VALUES ($1, $2, $3, $3, true)`
	// What is numbered goes on behind what is there.
	sqlNumbers = `SELECT setval(pg_get_serial_sequence('audit', 'seq'), greatest(1, (SELECT coalesce(max(seq), 0) FROM audit))),
 setval(pg_get_serial_sequence('outbox', 'seq'), greatest(1, (SELECT coalesce(max(seq), 0) FROM outbox)))`
	sqlOtherReplicas = `SELECT id FROM replicas WHERE id <> $1 LIMIT 1`
	sqlDropMeta      = `DELETE FROM meta WHERE name = $1`

	// filledBy is the process that stands for the source in replicas: its last
	// instant is the store's.
	filledBy = "moved"
)

var _ store.Fillable = (*Book)(nil)

// unfilled refuses a database that a move has not finished.
func (b *Book) unfilled(ctx context.Context) error {
	if b.options.Unfinished {
		return nil
	}
	from, err := b.meta(ctx, metaFilling)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("a move from %s into it was not finished; run weir move again: %w", from, store.ErrUnfinished)
	}
	return err
}

// Fill is store.Fillable's.
func (b *Book) Fill(ctx context.Context, from store.Whole, name string, at int64, told func(table string, rows int64)) error {
	if told == nil {
		told = func(string, int64) {}
	}
	if b.reach == 0 {
		return fmt.Errorf("fill the database: a newer program knows more of its schema: %w", store.ErrNewerSchema)
	}
	err := b.transact(ctx, func(tx pgx.Tx) error { return b.claim(ctx, tx, name) })
	if err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	err = b.transact(ctx, func(tx pgx.Tx) error {
		if err := b.makeRoom(ctx, tx, name); err != nil {
			return err
		}
		f := &filling{ctx: ctx, tx: tx, told: told, days: make(map[string]bool)}
		if err := tx.QueryRow(ctx, sqlOwner).Scan(&f.makesDays); err != nil {
			return err
		}
		now := time.UnixMicro(b.Now()).UTC().Truncate(day)
		f.first, f.last = now.AddDate(0, 0, -daysFilled), now.AddDate(0, 0, daysAhead)
		err := from.Whole(ctx, func(books store.Reader, rest store.Rest) error { return f.all(books, rest) })
		if err != nil {
			return err
		}
		for _, s := range []struct {
			sql  string
			args []any
		}{
			{sqlNumbers, nil},
			{sqlFilledRolled, nil},
			{sqlFilledAt, []any{filledBy, escape(name), at}},
		} {
			if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	return nil
}

// alone keeps everybody else out of the tables.
func alone(ctx context.Context, tx pgx.Tx) error {
	for _, statement := range []string{
		`SET LOCAL lock_timeout = '5s'`, `LOCK TABLE ` + strings.Join(contents, ", ") + `, replicas IN EXCLUSIVE MODE`,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// claim makes sure that nothing is there, or only what a move has left, and that
// nobody opens the database from now on.
func (b *Book) claim(ctx context.Context, tx pgx.Tx, name string) error {
	if err := alone(ctx, tx); err != nil {
		return err
	}
	var from []byte
	err := tx.QueryRow(ctx, sqlMeta, metaFilling).Scan(&from)
	if err == nil || !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	for _, table := range append([]string{"replicas"}, contents...) {
		taken, where := false, ""
		switch table {
		case "meta":
			continue // the store's secret was made with it
		case "counters":
			where = " WHERE kind <> 0"
		}
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+where+`)`).Scan(&taken); err != nil {
			return err
		}
		if taken {
			return fmt.Errorf("the database is not empty: there are rows in table %s: %w", table, store.ErrConflict)
		}
	}
	_, err = tx.Exec(ctx, sqlPutMeta, metaFilling, []byte(name))
	return err
}

// makeRoom takes away what a move has left.
func (b *Book) makeRoom(ctx context.Context, tx pgx.Tx, name string) error {
	// A large store takes longer than a report may.
	for _, statement := range []string{`SET LOCAL statement_timeout = 0`, `SET LOCAL idle_in_transaction_session_timeout = 0`} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := alone(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `TRUNCATE `+strings.Join(contents, ", ")+`, replicas`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlPutMeta, metaCompatible, bytesOf(b.reach)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqlPutMeta, metaFilling, []byte(name))
	return err
}

// Finish is store.Fillable's.
func (b *Book) Finish(ctx context.Context) error {
	err := b.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE replicas IN EXCLUSIVE MODE`); err != nil {
			return err
		}
		other := ""
		err := tx.QueryRow(ctx, sqlOtherReplicas, filledBy).Scan(&other)
		if err == nil {
			return fmt.Errorf("process %s has begun to use the database: %w", text(other), store.ErrConflict)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		_, err = tx.Exec(ctx, sqlDropMeta, metaFilling)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish the filling: %w", err)
	}
	return nil
}

// filling copies rows into one transaction.
type filling struct {
	ctx  context.Context // of the one Fill that made it
	tx   pgx.Tx
	told func(string, int64)

	makesDays   bool
	first, last time.Time       // the days that may have tables of their own
	days        map[string]bool // looked after
	rows        [][]any
}

// table copies what walk puts, a thousand rows at a time.
func (f *filling) table(name string, columns []string, walk func(put putter) error) error {
	sent := int64(0)
	flush := func() error {
		n, err := f.tx.CopyFrom(f.ctx, pgx.Identifier{name}, columns, pgx.CopyFromRows(f.rows))
		f.rows = f.rows[:0]
		sent += n
		f.told(name, sent)
		return err
	}
	err := walk(func(row ...any) error {
		if f.rows = append(f.rows, row); len(f.rows) < fillRows {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	return nil
}

// dayOf makes the table of the day of an id before its first row is there.
func (f *filling) dayOf(table string, id ledger.ID) error {
	start := time.UnixMilli(id.Millis()).UTC().Truncate(day)
	if !f.makesDays || start.Before(f.first) || start.After(f.last) {
		return nil
	}
	name := table + start.Format("_20060102")
	if f.days[name] {
		return nil
	}
	f.days[name] = true
	return makeDay(f.ctx, f.tx, name, start)
}
