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
	"github.com/weirhq/weir/internal/teller"
)

// records are the roles of what has happened, but for reading it.
type records interface {
	store.Verifiable
	store.Retainable
	store.Keeper
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
	shared         *replica     // nil: the store is this process's alone
	spool          *spool.Spool // nil: the store keeps nothing either
	unspooled      atomic.Int64 // settlements that the spool could not take
	moved          bool         // a store is opened that has been moved
	settlePatience time.Duration
}

// settlePatience is how long a stop waits for a store that takes no settlements.
const settlePatience = 10 * time.Second

// openCore opens the store and what decides on it. serving tells a server, which
// keeps files of its own beside a shared store, from a command.
func openCore(ctx context.Context, file *config.File, o Options, log *slog.Logger, serving bool) (_ *core, err error) {
	c := &core{clock: o.Clock, process: processID(), log: log, settlePatience: settlePatience}
	if o.hooks.settle > 0 {
		c.settlePatience = o.hooks.settle
	}
	if c.clock == nil {
		c.clock = clock.System()
	}
	if err = c.openStore(ctx, file, o, serving); err != nil {
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
	if c.shared != nil {
		c.directory.Among(c.shared.newest)
	}
	c.teller = c.newTeller()
	c.teller.Start()
	copyable, _ := c.book.(store.Copyable)
	var shared store.Shared
	if c.shared != nil {
		shared = c.shared.book
	}
	c.admin = admin.New(admin.Options{
		Shared:  shared,
		Objects: c.book, Secrets: c.book, Log: c.book, Verifiable: c.book, Copyable: copyable, Decider: c.teller, Snapshots: c.directory,
		Prices: prices, Clock: c.clock, Durable: file.Process.Durable(), Store: file.Process.StoreName(), Version: Version(),
	})
	if err := c.admin.EnsureDefault(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make the default workspace: %w", err), c.stopTeller(ctx))
	}
	return c, nil
}

func (c *core) newTeller() *teller.Teller {
	o := teller.Options{
		OutcomeUnknown: func(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) },
		Now:            c.book.Now,
		Inline:         c.shared == nil, // those of one process wait for nobody but the disk
		Hooks:          tellerHooks(c.log, c.clock),
	}
	if c.shared != nil {
		o.Lanes = c.shared.lanes
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
func tellerHooks(log *slog.Logger, c clock.Clock) teller.Hooks {
	failed := &sometimes{clock: c}
	return teller.Hooks{
		Failed: func(ops int, err error) {
			if n := failed.tell(); n > 0 {
				log.Error("the store refused a batch", "operations", ops, "error", err, "failures", n)
			}
		},
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
