// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations are the files of this program's schema.
func Migrations() fs.FS {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return embedded // the folder is in the binary
	}
	return files
}

const (
	// metaCompatible names in meta the least schema that a program has to know.
	metaCompatible = "schema_compatible"
	// ddlPatience is how long a migration waits for a lock: whoever comes after it
	// waits, too. It tries again ddlTries times, after ddlRest each.
	ddlPatience = 2 * time.Second
	ddlRest     = time.Second
	ddlTries    = 60
	// aliveMicros is how long after its last beat a process counts as running.
	aliveMicros = 45_000_000

	sqlHasSchema = `SELECT to_regclass('goose_db_version') IS NOT NULL`
	sqlSchema    = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
	// A process of before schema 2 does not say which one it knows.
	sqlOlder = `SELECT id, name, version, started_at, beat_at FROM replicas r
WHERE NOT stopped AND beat_at > ` + beatNow + ` - $2 AND coalesce((to_jsonb(r)->>'schema')::bigint, 1) < $3 ORDER BY started_at, id`
)

// ReadSchema tells how a database's schema stands to this program, and changes
// nothing.
func ReadSchema(ctx context.Context, o Options) (s store.Schema, err error) {
	err = o.connected(ctx, func(b *Book, _ *pgxpool.Config) (err error) {
		if s, err = b.schema(ctx); err != nil || len(s.Pending) == 0 || s.Have == 0 {
			return err
		}
		s.Older, err = b.older(ctx, shelf.Reach(&s))
		return err
	})
	return s, err
}

// Migrate brings a database's schema up to date and makes the tables of days
// ahead, at least daysAhead. step, if set, hears of each migration before it
// runs. It returns the schema as it was before.
//
// Errors: ErrNewerSchema, ErrUnavailable, and a sentence that names a running
// process that would be left behind.
func Migrate(ctx context.Context, o Options, days int, step func(store.Migration)) (before store.Schema, err error) {
	err = o.connected(ctx, func(b *Book, config *pgxpool.Config) (err error) {
		if before, err = b.upgrade(ctx, config, step); err != nil {
			return err
		}
		var read int64
		if err := b.reports.QueryRow(ctx, `SELECT `+micros).Scan(&read); err != nil {
			return known(err)
		}
		return b.makeDays(ctx, b.instant.reading(read), max(days, daysAhead))
	})
	return before, err
}

// connected calls fn with a book that reports alone can use.
func (o Options) connected(ctx context.Context, fn func(*Book, *pgxpool.Config) error) error {
	b, config, err := newBook(o)
	if err != nil {
		return err
	}
	err = b.connect(ctx, config)
	if err == nil {
		err = b.checkServer(ctx)
	}
	if err == nil {
		err = fn(b, config)
	}
	if b.reports != nil {
		b.reports.Close()
	}
	return b.named(config, err)
}

// schema reads what the database says of its schema.
func (b *Book) schema(ctx context.Context) (store.Schema, error) {
	made := false
	if err := b.reports.QueryRow(ctx, sqlHasSchema).Scan(&made); err != nil {
		return store.Schema{}, known(err)
	}
	have, compatible := int64(0), int64(0)
	if made {
		if err := b.reports.QueryRow(ctx, sqlSchema).Scan(&have); err != nil {
			return store.Schema{}, fmt.Errorf("read the schema's version: %w", known(err))
		}
	}
	if have > 0 {
		value, err := b.meta(ctx, metaCompatible)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Schema{}, err
		}
		compatible = numberOf(value)
	}
	s := shelf.Schema(b.migrations, have, compatible)
	return s, s.Check()
}

func numberOf(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value))
}

func bytesOf(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// newest is the last schema that this program knows.
func (b *Book) newest() int64 { return b.migrations[len(b.migrations)-1].Version }

// older lists running processes that know less than a schema.
func (b *Book) older(ctx context.Context, schema int64) ([]store.Replica, error) {
	list, err := queryAll(ctx, b.reports, func(r scanner) (one store.Replica, err error) {
		err = r.Scan(&one.ID, &one.Name, &one.Version, &one.StartedAt, &one.SeenAt)
		plain(&one.ID, &one.Name, &one.Version)
		return one, err
	}, sqlOlder, b.testNow(), int64(aliveMicros), schema)
	if err != nil {
		return nil, fmt.Errorf("look for running processes: %w", err)
	}
	return list, nil
}

// suit makes the schema one that this program can use: it brings it up to date,
// where migrations are not run by hand, or refuses (STO-3).
func (b *Book) suit(ctx context.Context, base *pgxpool.Config) error {
	s, err := b.schema(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(s.Pending) > 0 && b.options.MigrateByHand:
		return fmt.Errorf("it has schema %d, this program needs %d, and postgres.migrate is manual; run weir migrate: %w", s.Have, s.Want, store.ErrOlderSchema)
	case len(s.Pending) > 0:
		if _, err := b.upgrade(ctx, base, nil); err != nil {
			return err
		}
	case s.Have > s.Want:
		return nil
	}
	b.reach = shelf.Reach(&s)
	return nil
}

// upgrade runs what is pending. Of several processes that start at once one does
// it; the others wait for it and find nothing left.
func (b *Book) upgrade(ctx context.Context, base *pgxpool.Config, step func(store.Migration)) (before store.Schema, err error) {
	pool, err := b.migrationPool(ctx, base)
	if err != nil {
		return before, err
	}
	defer pool.Close()
	lock, err := pool.Begin(ctx)
	if err != nil {
		return before, known(err)
	}
	defer func() { _ = lock.Rollback(ctx) }()
	// It lasts as long as the migrations do.
	for _, statement := range []string{
		`SET LOCAL statement_timeout = 0`, `SET LOCAL lock_timeout = 0`, `SET LOCAL idle_in_transaction_session_timeout = 0`,
	} {
		if _, err := lock.Exec(ctx, statement); err != nil {
			return before, known(err)
		}
	}
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(schemaLock)); err != nil {
		return before, known(err)
	}
	if before, err = b.schema(ctx); err != nil {
		return before, err
	}
	return before, b.upgradeLocked(ctx, pool, before, step)
}

func (b *Book) upgradeLocked(ctx context.Context, pool *pgxpool.Pool, s store.Schema, step func(store.Migration)) (err error) {
	if len(s.Pending) == 0 {
		return nil
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, b.files)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	compatible := s.Compatible
	for _, m := range s.Pending {
		if m.CompatibleSince > compatible && s.Have > 0 {
			if err := b.leaveBehind(ctx, compatible, m); err != nil {
				return err
			}
		}
		compatible = max(compatible, m.CompatibleSince)
		if step != nil {
			step(m)
		}
		if err := patiently(ctx, func() error { _, err := provider.UpByOne(ctx); return err }); err != nil {
			return fmt.Errorf("run migration %d, %s (the role has to own the tables, and may have to create some): %w", m.Version, m.Name, known(err))
		}
	}
	_, err = b.reports.Exec(ctx, sqlPutMeta, metaCompatible, bytesOf(compatible))
	return known(err)
}

// leaveBehind makes older programs refuse to start before a migration that they
// could not use the tables after, and refuses to run it while one of them runs:
// one that starts meanwhile has told so, or sees what is written here.
func (b *Book) leaveBehind(ctx context.Context, compatible int64, m store.Migration) error {
	refuse := func() error {
		list, err := b.older(ctx, m.CompatibleSince)
		if err != nil || len(list) == 0 {
			return err
		}
		names := make([]string, len(list))
		for i := range list {
			names[i] = fmt.Sprintf("%s (%s, %s)", list[i].ID, list[i].Name, list[i].Version)
		}
		return fmt.Errorf("migration %d, %s, is only for programs that know schema %d: stop the older ones that run, %s",
			m.Version, m.Name, m.CompatibleSince, strings.Join(names, ", "))
	}
	if err := refuse(); err != nil {
		return err
	}
	if _, err := b.reports.Exec(ctx, sqlPutMeta, metaCompatible, bytesOf(m.CompatibleSince)); err != nil {
		return known(err)
	}
	err := refuse()
	if err != nil {
		_, back := b.reports.Exec(ctx, sqlPutMeta, metaCompatible, bytesOf(compatible))
		err = errors.Join(err, known(back))
	}
	return err
}

// migrationPool is of connections that take their time over what is done, and
// little over what has to be waited for.
func (b *Book) migrationPool(ctx context.Context, base *pgxpool.Config) (*pgxpool.Pool, error) {
	config := base.Copy()
	b.configure(config, 2) // one holds the lock
	if !b.options.Pooling {
		config.ConnConfig.RuntimeParams["statement_timeout"] = "0"
		config.ConnConfig.RuntimeParams["lock_timeout"] = milliseconds(ddlPatience)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, errors.Join(store.ErrUnavailable, err)
	}
	return pool, nil
}

// patiently tries again what did not get a lock, or got into another one's way.
func patiently(ctx context.Context, try func() error) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for left := ddlTries; ; left-- {
		err := try()
		pg := refusal(err)
		if pg == nil || pg.Code != codeNoLock && pg.Code != codeDeadlock || left == 0 {
			return err
		}
		rest.Reset(ddlRest)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-rest.C:
		}
	}
}
