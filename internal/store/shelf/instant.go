// SPDX-License-Identifier: Apache-2.0

// Package shelf is what books that keep their state in one process share: the
// instants of batches, the set of open reservations, the bound on refusal
// records and the sums of usage reports.
//
// Nothing in it but Instant.Peek is safe for concurrent use: a book calls it
// under its mutex.
package shelf

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store"
)

// Bounds on how a clock may move (ENGINE 7), in microseconds.
const (
	standsStill = int64(10 * time.Second / time.Microsecond)
	farStep     = int64(time.Hour / time.Microsecond)
)

// Instant gives each batch its instant: the clock's, but standing still while
// the clock is up to ten seconds behind.
type Instant struct {
	clock  clock.Clock
	last   atomic.Int64
	onStep func(store.ClockStep)
}

// NewInstant continues after last (0: a new store) or refuses with ErrClock when
// the clock is more than an hour behind it, unless accept. onStep may be nil.
func NewInstant(c clock.Clock, last int64, accept bool, onStep func(store.ClockStep)) (*Instant, error) {
	now := c.Now()
	if now < last-farStep && !accept {
		return nil, fmt.Errorf("the clock says %s, the store's last instant is %s: %w", utc(now), utc(last), store.ErrClock)
	}
	i := &Instant{clock: c, onStep: onStep}
	i.last.Store(last)
	return i, nil
}

func utc(at int64) string { return time.UnixMicro(at).UTC().Format(time.RFC3339) }

// Next is the instant of a batch that starts now.
func (i *Instant) Next() int64 {
	now, last := i.clock.Now(), i.last.Load()
	if now < last && last-now <= standsStill {
		return last
	}
	if last != 0 && i.onStep != nil && (now < last || now-last > farStep) {
		i.onStep(store.ClockStep{From: last, To: now})
	}
	i.last.Store(now)
	return now
}

// Peek estimates the next batch's instant and changes nothing. It takes no
// lock: callers name windows by it while a batch commits.
func (i *Instant) Peek() int64 {
	now, last := i.clock.Now(), i.last.Load()
	if now < last && last-now <= standsStill {
		return last
	}
	return now
}
