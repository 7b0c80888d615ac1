// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/sqlite"
)

// openStore opens the store; one that lasts has its spool applied before
// anything that is open is taken for a dead process's (ENGINE 9).
func (c *core) openStore(ctx context.Context, file *config.File, o Options, serving bool) error {
	if _, shared := file.Process.StoreURL(); shared {
		return c.openPostgres(ctx, file, o, serving)
	}
	if path, ok := file.Process.StorePath(); ok {
		return c.openSQLite(ctx, path, file, o)
	}
	options := memory.Options{Clock: c.clock}
	_, _ = rand.Read(options.Secret[:]) // never fails since Go 1.24
	c.book = memory.New(options)
	return nil
}

func (c *core) openSQLite(ctx context.Context, path string, file *config.File, o Options) error {
	b, err := sqlite.Open(ctx, sqlite.Options{
		Path: path, Clock: c.clock, AcceptClock: o.AcceptClock, Moved: c.moved,
		OnClockStep:  func(s store.ClockStep) { c.log.Error("the clock stepped", "from", s.From, "to", s.To) },
		OnFlushError: func(err error) { c.log.Error("refusal records could not be written", "error", err) },
		BeforeSweep: func(b *sqlite.Book) error {
			beside, err := spoolBeside(path)
			if err != nil {
				return err
			}
			if c.spool, err = openSpool(beside, file.Process.Bounds.MaxSpoolBytes, c.log); err != nil {
				return err
			}
			return applySpool(ctx, b, c.spool, c.log)
		},
	})
	if err != nil {
		if c.spool != nil {
			err = errors.Join(err, c.spool.Close())
		}
		if errors.Is(err, store.ErrMoved) {
			err = fmt.Errorf("%w; weir move --undo lets it be opened again, without what has been counted there", err)
		}
		return fmt.Errorf("open the store %s: %w", path, err)
	}
	c.book = b
	b.Start()
	if r := b.Recovery(); r.Swept > 0 {
		c.log.Warn("requests that a dead process left open were charged at their worst case", "count", r.Swept, "nanos", r.SpendNanos)
	}
	return nil
}

// maxLanes is how many batches of a process may be under way at once (ENGINE 2).
const maxLanes = 4

// openPostgres opens the book that processes share. A server takes its folder
// first: its spool is applied, and what the process before it in that folder left
// open is charged, before anything is admitted (ENGINE 9).
func (c *core) openPostgres(ctx context.Context, file *config.File, o Options, serving bool) (err error) {
	p := &file.Process
	c.shared = &replica{lanes: int(min(p.Postgres.Connections, maxLanes)), freed: make(map[string]int64)}
	if serving {
		if c.shared.state, err = takeState(file.StateFolder()); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, c.shared.state.release())
			}
		}()
	}
	options := postgresOptions(file, o)
	options.Process = c.process
	options.OnClockStep = func(s store.ClockStep) { c.log.Error("the clock stepped", "from", s.From, "to", s.To) }
	options.OnError = func(err error) { c.log.Warn("the database could not do work in the background", "error", err) }
	b, err := postgres.Open(ctx, options)
	if err != nil {
		return fmt.Errorf("open the store %s: %w", p.StoreName(), err)
	}
	// The store's time decides, whatever this process's clock says (ENGINE 7).
	c.book, c.shared.book, c.clock = b, b, storeClock{b}
	if !serving {
		return nil
	}
	for _, warning := range b.Warnings() {
		c.log.Warn("the database could be set up better", "warning", warning)
	}
	if err := c.takeOver(ctx, b, p.Bounds.MaxSpoolBytes); err != nil {
		return errors.Join(err, c.closeStore())
	}
	b.Start()
	remarks, err := b.Remarks(ctx)
	if err != nil {
		c.log.Debug("the database does not tell of its standbys", "error", err)
	}
	for _, remark := range remarks {
		c.log.Warn("the database holds a risk", "remark", remark)
	}
	return nil
}

// takeOver applies what the process before left in its spool, charges what it left
// open beside, and makes the folder this process's.
func (c *core) takeOver(ctx context.Context, b *postgres.Book, maxSpoolBytes int64) (err error) {
	state := c.shared.state
	if c.spool, err = openSpool(state.spoolPath(), maxSpoolBytes, c.log); err != nil {
		return err
	}
	if err := applySpool(ctx, b, c.spool, c.log); err != nil {
		return err
	}
	for _, process := range state.before {
		swept, err := c.sweepProcess(ctx, b, process)
		if err != nil {
			return fmt.Errorf("charge what process %s left open: %w", process, err)
		}
		if swept > 0 {
			c.log.Warn("requests that a dead process left open were charged at their worst case", "process", process, "count", swept)
		}
		if err := b.Forget(ctx, process, store.Audit{}); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if err := state.write(c.process); err != nil {
		return err
	}
	// It is known to the others before it holds anything of theirs.
	return b.Beat(ctx)
}

// storeClock is the clock of a store that processes share.
type storeClock struct{ store.Book }

// processName says for people where a process runs.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}
