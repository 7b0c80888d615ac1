// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// checkpointPages is how many pages of SQLite's log make a checkpoint, which the
// fold does that comes to it: 96 MiB. While its pages are flushed a batch may wait
// for the disk, so that it is done seldom.
const checkpointPages = "wal_autocheckpoint(24000)"

// sweepChunk is how many reservations of a dead process one batch sweeps.
const sweepChunk = 512

// Open opens the file, brings its schema up to date, checks that its books
// balance and sweeps what a dead process left open. Close releases it.
//
// Errors: ErrLocked, ErrNewerSchema, ErrMoved, ErrClock, ErrDamaged.
func Open(ctx context.Context, o Options) (*Book, error) {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.CounterCache <= 0 {
		o.CounterCache = DefaultCounterCache
	}
	if o.pace == (pace{}) {
		o.pace = defaultPace
	}
	path, err := realPath(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	b := &Book{options: o, path: path, wake: make(chan struct{}, 1), full: make(chan struct{}, 1)}
	if b.lock, err = shelf.LockFile(path + ".lock"); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := b.start(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Path, err), b.abandon())
	}
	return b, nil
}

func (b *Book) start(ctx context.Context, path string) error {
	if err := b.connect(ctx, path); err != nil {
		return err
	}
	if err := b.stays(ctx); err != nil {
		return err
	}
	if err := b.reload(ctx); err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return err
	}
	if b.options.BeforeSweep != nil {
		if err := b.options.BeforeSweep(b); err != nil {
			return fmt.Errorf("before the sweep: %w", err)
		}
	}
	return b.sweepAll(ctx)
}

// abandon closes what a failed Open had opened; the first error says it all.
func (b *Book) abandon() error {
	if b.writer != nil {
		_ = b.writer.spend()
	}
	if b.journal != nil {
		_ = b.journal.close()
	}
	_ = b.lookups.close()
	if b.read != nil {
		_ = b.read.Close()
		_ = b.aside.Close()
	}
	return b.lock.Close()
}

// realPath resolves links, so that one file has one lock.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// dsn: a commit is on the disk when it returns; a lock that somebody else has is
// an error at once, never a wait.
func dsn(path string, pragmas ...string) string {
	all := append([]string{
		"busy_timeout(0)", "synchronous(FULL)", "foreign_keys(1)", "trusted_schema(0)", "temp_store(MEMORY)",
	}, pragmas...)
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": all}.Encode()}
	return u.String()
}

func (b *Book) connect(ctx context.Context, path string) error {
	// SQLite's own choice on Linux; this build of it must be asked.
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return err
	}
	connector, err := sqlite.NewConnector(dsn(path, "journal_mode(WAL)", checkpointPages, "cache_size(-16384)"))
	if err != nil {
		return err
	}
	b.connector = connector
	if err := migrate(ctx, connector); err != nil {
		return err
	}
	reading, err := sqlite.NewConnector(dsn(path, "query_only(1)"))
	if err != nil {
		return err
	}
	b.lookups.connector = reading
	b.read = sql.OpenDB(reading)
	b.read.SetMaxOpenConns(readers)
	b.read.SetMaxIdleConns(readers)
	b.aside = sql.OpenDB(reading)
	b.aside.SetMaxOpenConns(1)
	return nil
}

// reload makes the connection and everything in memory anew from the file.
func (b *Book) reload(ctx context.Context) error {
	if b.writer != nil {
		_ = b.writer.spend() // nobody believes it any more
		b.writer = nil
	}
	if b.journal != nil {
		_ = b.journal.close()
		b.journal = nil
	}
	w, err := newWriter(ctx, b.connector)
	if err != nil {
		return err
	}
	open, bodies, err := w.reservations()
	if err != nil {
		return errors.Join(err, w.close())
	}
	generations, err := w.allGenerations()
	if err != nil {
		return errors.Join(err, w.close())
	}
	b.writer, b.open, b.bodies, b.generations = w, open, bodies, generations
	b.counters = newCache(b.options.CounterCache)
	if err = w.rollStored(); err == nil {
		err = b.recoverJournal()
	}
	if err != nil {
		w.spent.Store(true)
	}
	return err
}

func (w *writer) reservations() (shelf.Open, map[ledger.ID][]byte, error) {
	open, bodies := make(shelf.Open), make(map[ledger.ID][]byte)
	err := w.query(sqlReservations, func(v []driver.Value) error {
		var id ledger.ID
		copy(id[:], raw(v[1]))
		r, err := ledger.DecodeReservation(id, text(v[0]), integer(v[2]), raw(v[3]))
		open[id], bodies[id] = r, bytes.Clone(raw(v[3]))
		w.numbers[id] = integer(v[4])
		w.last = max(w.last, integer(v[4]))
		return err
	})
	return open, bodies, err
}

func (w *writer) allGenerations() (map[string]int64, error) {
	out := make(map[string]int64)
	err := w.query(sqlGenerations, func(v []driver.Value) error {
		out[text(v[0])] = integer(v[1])
		return nil
	})
	return out, err
}

// begin checks that the books balance and takes up their time.
func (b *Book) begin() error {
	err := b.writer.query(sqlInstant, func(v []driver.Value) error {
		b.recovery.LastAt = integer(v[0])
		return nil
	})
	if err != nil {
		return err
	}
	b.instant, err = shelf.NewInstant(b.options.Clock, b.recovery.LastAt, b.options.AcceptClock, b.options.OnClockStep)
	if err != nil {
		return err
	}
	held := make(map[ledger.Counter]int64)
	err = b.writer.query(sqlHeld, func(v []driver.Value) error {
		c := ledger.Counter{
			Workspace: text(v[0]), Limit: text(v[1]), Epoch: uint32(integer(v[2])), Subject: text(v[3]), Window: integer(v[4]),
		}
		held[c] = integer(v[5])
		return nil
	})
	if err != nil {
		return err
	}
	return shelf.Balance(held, b.open.Held())
}

// sweepAll settles what a dead process left open at its worst case, before the
// first admission (RES-1).
func (b *Book) sweepAll(ctx context.Context) error {
	for len(b.open) > 0 {
		ops := make([]*ledger.Op, 0, sweepChunk)
		for _, r := range b.open {
			if len(ops) == sweepChunk {
				break
			}
			ops = append(ops, &ledger.Op{Verb: ledger.Sweep, Workspace: r.Workspace, Reservation: r})
		}
		results, err := b.Apply(ctx, ops)
		if err != nil {
			return fmt.Errorf("sweep what was open: %w", err)
		}
		for i, op := range ops {
			if results[i].Verdict != ledger.Done {
				return fmt.Errorf("sweep %s: verdict %d: %w", op.Reservation.ID, results[i].Verdict, store.ErrDamaged)
			}
			if op.Reservation.Tombstone {
				b.recovery.Tombstones++
				continue
			}
			b.recovery.Swept++
			b.recovery.SpendNanos = shelf.Saturate(b.recovery.SpendNanos, op.Reservation.Worst.Spend)
		}
	}
	return nil
}
