// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store"
)

const sqlVacuumInto = `VACUUM INTO ?`

// Backup is store.Copyable's. It folds what was answered before it was called, and
// copies one snapshot of the tables beside the batches: none of them waits for it.
// SQLite's log keeps growing until it is done. The copy needs no journal.
func (b *Book) Backup(ctx context.Context, path string) (bytes int64, err error) {
	b.mu.Lock()
	err = b.ready(ctx)
	b.mu.Unlock()
	if err == nil {
		err = b.catchUp(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("back up: %w", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("back up to %s: %w", path, errors.Join(fs.ErrExist, err))
	}
	// Nothing bears the name before it is whole. The file is made with mode 0600.
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return 0, fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = os.Remove(part.Name()) }() // it has its name by then
	if err = b.copyInto(ctx, part.Name()); err == nil {
		bytes, err = settled(part)
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return 0, fmt.Errorf("back up to %s: %w", path, err)
	}
	if err := publish(part.Name(), path); err != nil {
		return 0, fmt.Errorf("back up to %s: %w", path, err)
	}
	return bytes, nil
}

func (b *Book) copyInto(ctx context.Context, path string) (err error) {
	c, err := connect(ctx, b.connector)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	run, ok := c.conn.(driver.ExecerContext)
	if !ok {
		return errDriver
	}
	if _, err = run.ExecContext(ctx, sqlVacuumInto, []driver.NamedValue{{Ordinal: 1, Value: path}}); err != nil {
		return err
	}
	return withoutJournal(ctx, path)
}

// withoutJournal tells a copy that the batches after its snapshot are not its own.
func withoutJournal(ctx context.Context, path string) (err error) {
	connector, err := sqlite.NewConnector(dsn(path, "journal_mode(MEMORY)"))
	if err != nil {
		return err
	}
	c, err := connect(ctx, connector)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.exec(sqlCloseJournal)
}

// settled brings a file to the disk and tells its size.
func settled(f *os.File) (int64, error) {
	if err := f.Sync(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// publish gives a whole file its name, unless another has it.
func publish(part, path string) error {
	err := os.Link(part, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without links: two who make the same file meet here.
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			err = os.Rename(part, path)
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a file's name last, where a folder can be synced.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = f.Sync() // some systems have no such thing
	return f.Close()
}

// errInspected ends an Inspect before the sweep.
var errInspected = errors.New("inspected")

// Inspect reads a store's file that no process has open, such as a backup: it
// calls fn with a copy in a temporary folder, brought to this program's schema,
// and changes nothing. Errors are Open's, and fn's.
func Inspect(ctx context.Context, path string, c clock.Clock, fn func(*Book) error) (err error) {
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("read %s: SQLite's log lies beside it: it is in use, or was not closed: %w", path, store.ErrLocked)
	}
	for _, file := range journalPaths(path) {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read %s: its journal lies beside it: it is in use, or was not closed: %w", path, errors.Join(store.ErrLocked, err))
		}
	}
	folder, err := os.MkdirTemp("", "weir-inspect-")
	if err != nil {
		return fmt.Errorf("make room for a copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	into := filepath.Join(folder, "copy.db")
	if err := copyFile(path, into); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	if err := isStore(ctx, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	var failed error
	_, err = Open(ctx, Options{Path: into, Clock: c, AcceptClock: true, Moved: true, BeforeSweep: func(b *Book) error {
		failed = fn(b)
		return errInspected
	}})
	if errors.Is(err, errInspected) {
		return failed
	}
	return err
}

// errNoStore: opening it would make an empty store of it, whose books balance.
var errNoStore = errors.New("it is no store of weir")

func isStore(ctx context.Context, path string) (err error) {
	connector, err := sqlite.NewConnector(dsn(path, "query_only(1)"))
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	var secret []byte
	if err := db.QueryRowContext(ctx, sqlMeta, metaSecret).Scan(&secret); err != nil || len(secret) == 0 {
		return errors.Join(errNoStore, err)
	}
	return nil
}

func copyFile(path, into string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenFile(into, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
