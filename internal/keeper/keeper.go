// SPDX-License-Identifier: Apache-2.0

// Package keeper remembers what providers keep for workspaces, so that a request
// can name nothing that others made (DIS-8).
//
// What an answer has made is on the disk before its client has read its end. Where
// the store does not take it, the answer goes on and this process remembers it
// until the store does: what is lost with the process is refused later, never
// given to somebody else.
package keeper

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
)

const (
	// Lifetime is how long something is remembered after it was last in an answer:
	// no provider keeps a stored answer for longer by itself.
	Lifetime = 31 * 24 * time.Hour
	// DefaultPatience is how long an answer waits for the store.
	DefaultPatience = 500 * time.Millisecond
	// storeTimeout bounds one call of the store.
	storeTimeout = 2 * time.Second
	// retryAfter is when a store that failed is tried again.
	retryAfter = 250 * time.Millisecond
	// maxWaiting bounds what waits for the store.
	maxWaiting = 100_000
	// perWrite bounds what is written at once.
	perWrite = 1024
)

// Options are what a keeper is made of.
type Options struct {
	Store store.Keeper
	Clock clock.Clock
	// Patience is DefaultPatience where it is 0.
	Patience time.Duration
	// Failed, if set, hears of a write that failed. Lost, if set, hears of how many
	// things will not be remembered.
	Failed func(error)
	Lost   func(n int)
}

// Keeper is safe for concurrent use.
type Keeper struct {
	options Options
	bell    chan struct{}
	quit    chan struct{}
	ended   chan struct{}

	mu      sync.Mutex // guards what follows
	waiting []waiting
	rows    int  // of waiting
	failing bool // the last write failed
	stopped bool
}

// waiting are rows that the store does not have yet, and who waits for that.
type waiting struct {
	list []route.Kept
	done chan struct{}
}

// New returns a keeper that has not started.
func New(o Options) *Keeper {
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Lost == nil {
		o.Lost = func(int) {}
	}
	return &Keeper{options: o, bell: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
}

// Start begins to write. Stop ends it.
func (k *Keeper) Start() { go k.run() }

// Stop writes what waits, if the store takes it, and ends the writing.
func (k *Keeper) Stop() {
	k.mu.Lock()
	stopped := k.stopped
	k.stopped = true
	k.mu.Unlock()
	if !stopped {
		close(k.quit)
	}
	<-k.ended
}

// Keep remembers, from now on for a Lifetime. It returns when that is durable, or
// when it takes too long: then it is written later. The list is the keeper's.
func (k *Keeper) Keep(list []route.Kept) {
	if len(list) == 0 {
		return
	}
	end := k.options.Clock.Now() + Lifetime.Microseconds()
	for i := range list {
		list[i].ExpiresAt = end
	}
	w := waiting{list: list, done: make(chan struct{})}
	k.mu.Lock()
	if k.stopped || k.rows+len(list) > maxWaiting {
		k.mu.Unlock()
		k.options.Lost(len(list))
		return
	}
	k.waiting, k.rows = append(k.waiting, w), k.rows+len(list)
	failing := k.failing
	k.mu.Unlock()
	select {
	case k.bell <- struct{}{}:
	default:
	}
	if failing {
		return
	}
	patience := time.NewTimer(k.options.Patience)
	defer patience.Stop()
	select {
	case <-w.done:
	case <-patience.C:
	}
}

// Held finds which providers keep what a workspace's request names. An error means
// that nobody could tell.
func (k *Keeper) Held(ctx context.Context, workspace string, ids []string) (route.Holdings, error) {
	held := make(route.Holdings, len(ids))
	wanted := make(map[route.KeptHash]bool, len(ids))
	hashes := make([]route.KeptHash, 0, len(ids))
	for _, id := range ids {
		if hash := route.HashKept(id); !wanted[hash] {
			wanted[hash] = true
			hashes = append(hashes, hash)
		}
	}
	now := k.options.Clock.Now()
	k.mu.Lock()
	for _, w := range k.waiting {
		for i := range w.list {
			if row := &w.list[i]; row.Workspace == workspace && wanted[row.Hash] {
				held.Hold(row.Hash, row.Provider)
			}
		}
	}
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	list, err := k.options.Store.Kept(ctx, workspace, hashes)
	if err != nil {
		return nil, fmt.Errorf("look up what providers keep: %w", err)
	}
	for i := range list {
		if row := &list[i]; row.ExpiresAt > now {
			held.Hold(row.Hash, row.Provider)
		}
	}
	return held, nil
}

func (k *Keeper) run() {
	defer close(k.ended)
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-k.quit:
			k.last()
			return
		case <-k.bell:
		case <-retry.C:
		}
		for {
			wrote, err := k.write()
			if err != nil {
				k.options.Failed(err)
				retry.Reset(retryAfter)
				break
			}
			if !wrote {
				break
			}
		}
	}
}

// last writes what waits at the end, once.
func (k *Keeper) last() {
	for {
		if wrote, err := k.write(); err != nil || !wrote {
			break
		}
	}
	k.mu.Lock()
	lost := k.rows
	k.mu.Unlock()
	if lost > 0 {
		k.options.Lost(lost)
	}
}

// write writes the oldest that wait; wrote is false when nothing does. Until it is
// through they go on waiting, so that Held sees them.
func (k *Keeper) write() (wrote bool, err error) {
	k.mu.Lock()
	n, rows := 0, 0
	for n < len(k.waiting) && (n == 0 || rows+len(k.waiting[n].list) <= perWrite) {
		rows += len(k.waiting[n].list)
		n++
	}
	batch := k.waiting[:n:n]
	k.mu.Unlock()
	if n == 0 {
		return false, nil
	}
	list := make([]route.Kept, 0, rows)
	for _, w := range batch {
		list = append(list, w.list...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	err = k.options.Store.Keep(ctx, list)
	k.mu.Lock()
	if k.failing = err != nil; err == nil {
		k.waiting, k.rows = k.waiting[n:], k.rows-rows
		if len(k.waiting) == 0 {
			k.waiting = nil
		}
	}
	k.mu.Unlock()
	if err != nil {
		return false, fmt.Errorf("remember what providers keep: %w", err)
	}
	for _, w := range batch {
		close(w.done)
	}
	return true, nil
}
