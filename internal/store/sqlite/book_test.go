// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

func TestTheSQLiteBookKeepsTheContract(t *testing.T) {
	for _, c := range []struct {
		name  string
		cache int
		hurry bool
	}{
		{"AmpleCache", 0, false},
		{"CacheOfThreeRows", 3, false},
		{"FoldsAfterEachBatch", 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &driver{cache: c.cache, hurry: c.hurry, books: make(map[string]*sqlite.Book)}
			storetest.Run(t, storetest.Driver{Keeps: true, Open: d.open, Killed: d.killed})
		})
	}
}

type driver struct {
	cache int
	hurry bool

	mu    sync.Mutex // guards books
	books map[string]*sqlite.Book
}

const fileName = "weir.db"

func (d *driver) open(ctx context.Context, place string, o storetest.Options) (storetest.Store, error) {
	options := sqlite.Options{
		Path: filepath.Join(place, fileName), Clock: o.Clock, AcceptClock: o.AcceptClock,
		OnClockStep: o.OnClockStep, CounterCache: d.cache,
	}
	if o.BeforeSweep != nil {
		options.BeforeSweep = func(b *sqlite.Book) error { return o.BeforeSweep(b) }
	}
	if d.hurry {
		options = options.Hurry()
	}
	b, err := sqlite.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	b.Start()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.books[place] = b
	return b, nil
}

func (d *driver) killed(place, into string) (err error) {
	d.mu.Lock()
	b := d.books[place]
	d.mu.Unlock()
	b.Freeze(func() { err = copyStore(place, into) })
	return err
}

// The files of a store besides its locks, and the index of SQLite's log, which is
// made anew from that.
var (
	tableFiles   = []string{fileName, fileName + "-wal"}
	journalFiles = []string{fileName + ".journal0", fileName + ".journal1"}
	storeFiles   = append(slices.Clone(tableFiles), journalFiles...)
)

func copyStore(place, into string) error { return copyFiles(place, into, storeFiles) }

// copyFiles leaves out what is not there.
func copyFiles(place, into string, names []string) error {
	for _, name := range names {
		from, err := os.Open(filepath.Join(place, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		to, err := os.Create(filepath.Join(into, name))
		if err != nil {
			return err
		}
		if _, err := io.Copy(to, from); err != nil {
			return err
		}
		if err := from.Close(); err != nil {
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
	}
	return nil
}
