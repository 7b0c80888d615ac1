// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/teller"
)

const (
	// followEvery is how often changes are asked for that no notice told of (ADM-4).
	followEvery = time.Second
	// followPatience bounds one look.
	followPatience = 3 * time.Second
	// lookEvery is how often a process looks at the others; deadMicros
	// without a sign of life make one dead (ENGINE 9); steadyMicros must this process
	// itself have given them without a gap before it judges others: after an outage
	// all of them are silent.
	lookEvery    = 5 * time.Second
	deadMicros   = 45_000_000
	steadyMicros = 20_000_000
	// leftPage is how many reservations of a dead process are read at once.
	leftPage = 512
)

// replica is what a process is among others on a shared store.
type replica struct {
	book     store.Shared
	state    *state // nil: a command's
	lanes    int
	standing atomic.Pointer[standing]
	// freed are the dead processes whose slots have been given back, with the last
	// sign of life that is known of them.
	freed map[string]int64
}

// share begins the work of one process among several.
func (s *Server) share(ctx context.Context) {
	if s.core.shared == nil {
		return
	}
	notices := make(chan struct{}, 1)
	s.background.Go(func() {
		s.core.shared.book.Listen(ctx, func() {
			select {
			case notices <- struct{}{}:
			default:
			}
		})
	})
	s.background.Go(func() { s.follow(ctx, notices) })
	s.background.Go(func() { s.looking(ctx) })
}

// follow brings configuration up to date that no admission asks for: one that is
// decided on an old snapshot is answered stale all the same (ADM-4).
func (s *Server) follow(ctx context.Context, notices <-chan struct{}) {
	tick := time.NewTicker(max(followEvery, s.options.hooks.every))
	defer tick.Stop()
	since := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-notices:
		case <-tick.C:
		}
		since = s.core.refresh(ctx, since)
	}
}

// refresh loads what changed after a generation and returns the one that is loaded.
func (c *core) refresh(ctx context.Context, since int64) int64 {
	ctx, cancel := context.WithTimeout(ctx, followPatience)
	defer cancel()
	workspaces, now, err := c.shared.book.Changed(ctx, since)
	if err == nil {
		err = c.directory.Follow(ctx, workspaces, now)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.log.Debug("changes of the configuration could not be read; they are read again", "error", err)
		}
		return since
	}
	return now
}

// newest is the newest generation of the store, since or later.
func (r *replica) newest(ctx context.Context, since int64) (int64, error) {
	_, now, err := r.book.Changed(ctx, since)
	return now, err
}

func (s *Server) looking(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.core.look(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("the other processes could not be looked at", "error", err)
		}
	}
}

// look is one look at the other processes.
func (c *core) look(ctx context.Context) error {
	list, err := c.shared.book.Replicas(ctx)
	if err != nil {
		return err
	}
	c.stand(&list)
	return c.releaseDead(ctx, &list)
}

// releaseDead gives back the slots of dead processes. Their money and tokens stay
// held until their holds end: a process may come back with what was used.
func (c *core) releaseDead(ctx context.Context, list *store.Replicas) error {
	if list.Steady == 0 || list.Now-list.Steady < steadyMicros {
		return nil
	}
	for _, r := range list.List {
		if r.ID == c.process || r.Open == 0 || list.Now-r.SeenAt < deadMicros || c.shared.freed[r.ID] == r.SeenAt && r.SeenAt != 0 {
			continue
		}
		n, err := c.freeSlots(ctx, r.ID)
		if err != nil {
			return err
		}
		c.shared.freed[r.ID] = r.SeenAt
		if n > 0 {
			c.log.Warn("a process has given no sign of life; its slots are free again", "process", r.ID, "at", r.Name, "requests", n)
		}
	}
	return nil
}

func (c *core) freeSlots(ctx context.Context, process string) (freed int, err error) {
	err = c.left(ctx, process, func(r *ledger.Reservation) error {
		if r.Tombstone || r.SlotsFreed {
			return nil
		}
		freed++
		return c.teller.Post(&ledger.Op{Verb: ledger.FreeSlots, Workspace: r.Workspace, Reservation: r}, nil)
	})
	return freed, err
}

// left walks through what a process left open.
func (c *core) left(ctx context.Context, process string, do func(*ledger.Reservation) error) error {
	for after := (*ledger.Reservation)(nil); ; {
		list, err := c.shared.book.Left(ctx, process, after, leftPage)
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := do(r); err != nil {
				return err
			}
		}
		if len(list) < leftPage {
			return nil
		}
		after = list[len(list)-1]
	}
}

// sweepProcess charges what a dead process left open at its worst case, now.
func (c *core) sweepProcess(ctx context.Context, b teller.Book, process string) (swept int, err error) {
	err = c.left(ctx, process, func(r *ledger.Reservation) error {
		for op := (&ledger.Op{Verb: ledger.Sweep, Workspace: r.Workspace, Reservation: r}); ; {
			results, err := b.Apply(ctx, []*ledger.Op{op})
			if err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
				return err
			}
			switch {
			case err != nil: // it is sent again: a sweep that happened is answered Already
				if ctx.Err() != nil {
					return err
				}
			case results[0].Verdict == ledger.Carry:
				op = op.Carried(&results[0])
			default:
				if results[0].Verdict == ledger.Done && !r.Tombstone {
					swept++
				}
				return nil
			}
		}
	})
	return swept, err
}
