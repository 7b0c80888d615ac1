// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

type keyID struct{ workspace, id string }

// cache keeps keys and secrets that were seen.
//
// Whoever has read a workspace's snapshot finds nothing here that is older
// (ADM-4), because of three rules. A snapshot is published after everything that
// changed up to its generation has been dropped, under turn. What was read from
// the store goes in under turn too, and only if nothing was dropped since before
// the read began: a load that was overtaken by a change must not bring the old
// state back. And nothing goes in before its workspace has a snapshot, since a
// first load does not say which keys have changed.
type cache struct {
	keys    *otter.Cache[keyID, *tenant.Key] // nil: there is no such key
	secrets *otter.Cache[[32]byte, seen]
	unknown *otter.Cache[[32]byte, unknown]

	turn  sync.Mutex
	epoch atomic.Int64 // grows, under turn, with every drop
}

// seen is a secret as it was read. changed: it may have changed since, so it must
// be read again; it is still known to have been a key's.
type seen struct {
	store.KeySecret
	changed bool
}

// unknown is a secret that was no key's: until when that is remembered, Unix
// microseconds, and a generation of the store that the look-up had seen.
type unknown struct{ until, generation int64 }

// keep runs set unless something was dropped after epoch.
func (c *cache) keep(epoch int64, set func()) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if c.epoch.Load() == epoch {
		set()
	}
}

// publish drops the changed keys, then runs set, which makes the snapshot
// visible that knows of them. first: no snapshot was there before.
func (c *cache) publish(changed map[keyID]bool, first bool, set func()) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if first || len(changed) > 0 {
		c.epoch.Add(1)
		// What is remembered as unknown may be a new key's: a first load does not say
		// which keys there are.
		c.unknown.InvalidateAll()
	}
	if len(changed) > 0 {
		c.drop(changed)
	}
	set()
}

// drop walks the secrets once for all keys: they are not indexed by key.
func (c *cache) drop(changed map[keyID]bool) {
	for id := range changed {
		c.keys.Invalidate(id)
	}
	again := make(map[[32]byte]seen)
	for hash, s := range c.secrets.All() {
		if changed[keyID{s.Workspace, s.KeyID}] {
			s.changed = true
			again[hash] = s
		}
	}
	for hash, s := range again {
		c.secrets.Set(hash, s)
	}
}

// allowance bounds look-ups: in no interval of a second are there more than
// lookUpsPerSecond.
type allowance struct {
	mu    sync.Mutex
	taken [lookUpsPerSecond]int64 // instants, a ring; 0: none
	next  int
}

func (a *allowance) take(now int64) bool {
	const second = 1_000_000
	a.mu.Lock()
	defer a.mu.Unlock()
	oldest := a.taken[a.next]
	// An instant in the future is of a clock that was set back since.
	if oldest != 0 && oldest <= now && now-oldest < second {
		return false
	}
	a.taken[a.next] = now
	a.next = (a.next + 1) % len(a.taken)
	return true
}

// flights lets callers that want the same thing at the same time share one load.
type flights[K comparable, V any] struct {
	mu      sync.Mutex
	running map[K]*flight[V]
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// do runs load, or waits for one that runs already. A load outlives the caller
// that began it, because others may wait for it; its time is bounded.
func (f *flights[K, V]) do(ctx context.Context, what K, load func(context.Context) (V, error)) (V, error) {
	f.mu.Lock()
	if other := f.running[what]; other != nil {
		f.mu.Unlock()
		select {
		case <-other.done:
			return other.value, other.err
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
	own := &flight[V]{done: make(chan struct{}), err: errors.New("the load was broken off")}
	if f.running == nil {
		f.running = make(map[K]*flight[V])
	}
	f.running[what] = own
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.running, what)
		f.mu.Unlock()
		close(own.done)
	}()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	own.value, own.err = load(bounded)
	return own.value, own.err
}
