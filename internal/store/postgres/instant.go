// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// Bounds on how the time may move (ENGINE 7), in microseconds.
const (
	standsStill = int64(10 * time.Second / time.Microsecond)
	farStep     = int64(time.Hour / time.Microsecond)
)

// instant gives batches their time: the database's clock, or a test's, never
// before what this process or a row that the batch changes has seen, unless that
// lies more than ten seconds ahead.
type instant struct {
	test   clock.Clock // nil: the database's clock
	local  clock.Clock
	onStep func(store.ClockStep)

	mu     sync.Mutex // guards what follows
	last   int64
	offset int64 // of the database's clock to the local one
	far    int64 // the same as beats measure it: at a test's clock too, and for people
}

// measure compares the clocks by a question that was sent at a local instant and
// that the database answered at. What the way took is no difference.
func (i *instant) measure(sent, at int64) {
	received := i.local.Now()
	far := int64(0)
	switch {
	case at > received:
		far = at - received
	case at < sent:
		far = at - sent
	}
	i.mu.Lock()
	i.far = far
	i.mu.Unlock()
}

// distance is the database's clock less the local one, 0 where they may be the
// same.
func (i *instant) distance() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.far
}

// reading is the clock's time in a batch that read the database's as at.
func (i *instant) reading(at int64) int64 {
	if i.test != nil {
		return i.test.Now()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.offset = at - i.local.Now()
	return at
}

// floor is the instant of a batch at now that changes these rows.
func (i *instant) floor(now int64, states map[ledger.Counter]*ledger.State) int64 {
	at := now
	for _, s := range states {
		if s.At > at && s.At-now <= standsStill {
			at = s.At
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.standing(at)
}

func (i *instant) standing(now int64) int64 {
	if now < i.last && i.last-now <= standsStill {
		return i.last
	}
	return now
}

// take makes at, which floor gave, the last instant.
func (i *instant) take(at int64) {
	i.mu.Lock()
	from := i.last
	if at >= from || from-at > standsStill { // else: another lane has gone on meanwhile
		i.last = at
	}
	i.mu.Unlock()
	back, forth := from-at, at-from
	if from != 0 && i.onStep != nil && (back > standsStill || forth > farStep) {
		i.onStep(store.ClockStep{From: from, To: at})
	}
}

// estimate is what the clock may show now.
func (i *instant) estimate() int64 {
	if i.test != nil {
		return i.test.Now()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.local.Now() + i.offset
}

// peek estimates the instant of a batch that would start now.
func (i *instant) peek() int64 {
	now := i.estimate()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.standing(now)
}

// latest is the last instant of a batch, 0 before the first.
func (i *instant) latest() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.last
}

// begin takes up the store's last instant, or refuses one that lies more than an
// hour ahead.
func (i *instant) begin(now, last int64, accept bool) error {
	if now < last-farStep && !accept {
		return fmt.Errorf("the database's clock says %s, the store's last instant is %s: %w", utc(now), utc(last), store.ErrClock)
	}
	i.mu.Lock()
	i.last = last
	at := i.standing(now)
	i.mu.Unlock()
	if last != 0 && now < last-standsStill {
		i.take(at)
	}
	return nil
}

func utc(at int64) string { return time.UnixMicro(at).UTC().Format(time.RFC3339) }
