// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/store"
)

const (
	dayMicros = int64(24 * time.Hour / time.Microsecond)
	// leastEvents is how long usage events are kept at the least (RES-6).
	leastEvents = 62 * dayMicros
	// quartersWhole is how old a quarter hour is when it becomes a part of its day:
	// no zone's thirty days reach back so far (ENGINE 11).
	quartersWhole = 60 * dayMicros
	retainEvery   = time.Hour
	// retainStep is how many rows one step drops, retainRest how long the batches
	// then have the store for themselves.
	retainStep = 64
	retainRest = 10 * time.Millisecond
)

// retained is what the retention has done, for the metrics.
type retained struct {
	until atomic.Int64 // calls that ended before it are gone
	rows  atomic.Int64
}

// retain drops what is older than it must be kept, at the start and each hour
// (RES-6). It ends between two steps; the next start goes on.
func (s *Server) retain(ctx context.Context) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		if err := s.core.prune(ctx, s.file.Process.RetentionMicros, retainRest); err != nil && ctx.Err() == nil {
			s.log.Warn("records older than the retention could not be dropped; it is tried again in an hour", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prune makes every step of one run.
func (c *core) prune(ctx context.Context, retention int64, rest time.Duration) error {
	cut, err := c.cut(ctx, retention)
	if err != nil {
		return err
	}
	pause := time.NewTimer(rest)
	defer pause.Stop()
	for {
		step, done, err := c.book.Prune(ctx, cut, retainStep)
		if err != nil {
			return err
		}
		c.retained.rows.Add(step.Calls + step.Events + step.Quarters + step.Rollups + step.Notices + step.Kept)
		if done {
			c.retained.until.Store(cut.Calls)
			return nil
		}
		pause.Reset(rest)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// cut says what may go now. Events go by whole days, and never sooner than a
// window is over that one of them may be in.
func (c *core) cut(ctx context.Context, retention int64) (store.Cut, error) {
	longest, err := c.admin.LongestWindow(ctx)
	if err != nil {
		return store.Cut{}, err
	}
	now := c.book.Now()
	events := now - max(retention, leastEvents, longest)
	return store.Cut{
		Calls: now - retention, Notices: now - retention, Quarters: now - quartersWhole, Events: events - events%dayMicros,
		Kept: now,
	}, nil
}
