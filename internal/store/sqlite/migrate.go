// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"

	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

//go:embed migrations/*.sql
var migrations embed.FS

// files are this program's migrations.
func files() (fs.FS, error) { return fs.Sub(migrations, "migrations") }

// ReadSchema tells how a file's schema stands to this program, and changes
// nothing. A file that is not there has none.
func ReadSchema(ctx context.Context, path string) (s store.Schema, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return schemaOf(0)
	}
	connector, err := sqlite.NewConnector(dsn(path, "query_only(1)"))
	if err != nil {
		return s, err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	var made int
	have := int64(0)
	if err := db.QueryRowContext(ctx, sqlHasSchema).Scan(&made); err != nil {
		return s, fmt.Errorf("read the schema of %s: %w", path, known(err))
	}
	if made > 0 {
		if err := db.QueryRowContext(ctx, sqlSchema).Scan(&have); err != nil {
			return s, fmt.Errorf("read the schema of %s: %w", path, known(err))
		}
	}
	return schemaOf(have)
}

// schemaOf is the schema of a file that has had so many migrations. Only a program
// that knows all of them opens it: one process uses it, and what newer ones wrote
// into it need not be what an older one reads.
func schemaOf(have int64) (store.Schema, error) {
	list, err := files()
	if err != nil {
		return store.Schema{}, err
	}
	known, err := shelf.Migrations(list)
	if err != nil {
		return store.Schema{}, err
	}
	s := shelf.Schema(known, have, have)
	return s, s.Check()
}

// Migrate brings a file's schema up to date and returns what it was before. No
// process has the file open meanwhile. Errors: ErrLocked, ErrNewerSchema.
func Migrate(ctx context.Context, path string) (before store.Schema, err error) {
	path, err = realPath(path)
	if err != nil {
		return before, fmt.Errorf("migrate the store: %w", err)
	}
	lock, err := shelf.LockFile(path + ".lock")
	if err != nil {
		return before, fmt.Errorf("migrate the store: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if before, err = ReadSchema(ctx, path); err != nil {
		return before, err
	}
	connector, err := sqlite.NewConnector(dsn(path, "journal_mode(WAL)"))
	if err != nil {
		return before, err
	}
	return before, migrate(ctx, connector)
}

// migrate brings the schema up to date, or refuses one that a newer program made
// (STO-3).
func migrate(ctx context.Context, connector driver.Connector) (err error) {
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	list, err := files()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, list)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	have, _, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if _, err := schemaOf(have); err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	return nil
}
