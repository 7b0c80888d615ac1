// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/observe"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/spool"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/teller"
)

// records are the roles of what has happened, but for reading it.
type records interface {
	store.Verifiable
	store.Retainable
}

// book is an opened store: every role of it.
type book interface {
	store.Book
	store.Objects
	store.Secrets
	store.Log
	records
	store.Sweepable
	Close() error
}

// core is what a server and a command on an unlocked store have in common.
type core struct {
	book      book
	clock     clock.Clock
	teller    *teller.Teller
	directory *directory.Directory
	admin     *admin.Service
	metrics   *observe.Metrics
	process   string
	log       *slog.Logger

	retained       retained
	spool          *spool.Spool // nil: the store keeps nothing either
	unspooled      atomic.Int64 // settlements that the spool could not take
	settlePatience time.Duration
}

// settlePatience is how long a stop waits for a store that takes no settlements.
const settlePatience = 10 * time.Second

func openCore(ctx context.Context, file *config.File, o Options, log *slog.Logger) (_ *core, err error) {
	c := &core{clock: o.Clock, process: processID(), log: log, settlePatience: settlePatience}
	if o.hooks.settle > 0 {
		c.settlePatience = o.hooks.settle
	}
	if c.clock == nil {
		c.clock = clock.System()
	}
	if err = c.openStore(ctx, file, o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.closeStore())
		}
	}()
	prices, err := price.Load()
	if err != nil {
		return nil, fmt.Errorf("read the built-in prices: %w", err)
	}
	if c.directory, err = directory.New(ctx, c.book, c.clock, prices); err != nil {
		return nil, err
	}
	c.teller = c.newTeller()
	c.teller.Start()
	_, durable := file.Process.StorePath()
	copyable, _ := c.book.(store.Copyable)
	c.admin = admin.New(admin.Options{
		Objects: c.book, Secrets: c.book, Log: c.book, Verifiable: c.book, Copyable: copyable, Decider: c.teller, Snapshots: c.directory,
		Prices: prices, Clock: c.clock, Durable: durable, Store: file.Process.Store, Version: Version(),
	})
	if err := c.admin.EnsureDefault(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make the default workspace: %w", err), c.stopTeller(ctx))
	}
	return c, nil
}

// openStore opens the store; one that lasts has its spool applied before
// anything that is open is taken for a dead process's (ENGINE 9).
func (c *core) openStore(ctx context.Context, file *config.File, o Options) error {
	path, durable := file.Process.StorePath()
	if !durable {
		options := memory.Options{Clock: c.clock}
		_, _ = rand.Read(options.Secret[:]) // never fails since Go 1.24
		c.book = memory.New(options)
		return nil
	}
	b, err := sqlite.Open(ctx, sqlite.Options{
		Path: path, Clock: c.clock, AcceptClock: o.AcceptClock,
		OnClockStep:  func(s store.ClockStep) { c.log.Error("the clock stepped", "from", s.From, "to", s.To) },
		OnFlushError: func(err error) { c.log.Error("refusal records could not be written", "error", err) },
		BeforeSweep: func(b *sqlite.Book) (err error) {
			if c.spool, err = openSpool(path, file.Process.Bounds.MaxSpoolBytes, c.log); err != nil {
				return err
			}
			return applySpool(ctx, b, c.spool, c.log)
		},
	})
	if err != nil {
		if c.spool != nil {
			err = errors.Join(err, c.spool.Close())
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

func (c *core) newTeller() *teller.Teller {
	o := teller.Options{
		OutcomeUnknown: func(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) },
		Now:            c.book.Now,
		Inline:         true, // both books wait for nobody but the disk
		Hooks:          tellerHooks(c.log),
	}
	if c.spool != nil {
		o.Spool, o.Hooks.Spooled = c.spool, c.spooled
	}
	return teller.New(c.book, o)
}

// processID names this process in reservations.
func processID() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	return "p_" + hex.EncodeToString(random[:])
}

// adminToken makes the configured token the admin token; without one a store
// that has none gets one, which is shown this once.
func (c *core) adminToken(ctx context.Context, configured string) (made string, err error) {
	if configured != "" {
		return "", c.admin.SetToken(ctx, configured)
	}
	return c.admin.EnsureToken(ctx)
}

// close settles what is queued, then closes the store.
func (c *core) close(ctx context.Context) error {
	return errors.Join(c.stopTeller(ctx), c.closeStore())
}

// tellerHooks logs what no caller sees. A dead letter is a charge that found no
// reservation: it must never happen, and is never quiet.
func tellerHooks(log *slog.Logger) teller.Hooks {
	return teller.Hooks{
		Failed: func(ops int, err error) { log.Error("the store refused a batch", "operations", ops, "error", err) },
		Closed: func(lane int, closed bool) { log.Error("admissions stopped or go on", "lane", lane, "stopped", closed) },
		Full:   func(lane, queued int) { log.Error("settlements wait for the store", "lane", lane, "queued", queued) },
		Undropped: func(n int, err error) {
			log.Warn("settlements are booked and still in the spool; the next start finds them booked", "count", n, "error", err)
		},
		Left: func(n int) {
			log.Warn("the store took no settlements; they are in the spool, and the next start books them", "count", n)
		},
		DeadLetter: func(op *ledger.Op, verdict ledger.Verdict) {
			log.Error("a settlement found no reservation and was not booked", "request_id", requestOf(op), "verdict", int(verdict))
		},
	}
}
