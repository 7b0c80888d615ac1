// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"sync"
)

// Gate makes answers wait until a test says so. Use NewGate.
type Gate struct {
	mu      sync.Mutex
	open    bool
	passes  int64
	changed chan struct{} // closed and replaced at each change
}

// NewGate gives a gate that is shut.
func NewGate() *Gate { return &Gate{changed: make(chan struct{})} }

// Open lets everybody pass, now and later.
func (g *Gate) Open() { g.change(func() { g.open, g.passes = true, 0 }) }

// Shut makes everybody who comes from now on wait.
func (g *Gate) Shut() { g.change(func() { g.open, g.passes = false, 0 }) }

// Let lets n more pass, whether they wait already or are still to come.
func (g *Gate) Let(n int64) { g.change(func() { g.passes += max(n, 0) }) }

func (g *Gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	close(g.changed)
	g.changed = make(chan struct{})
}

// try passes at once when it can; else it gives the channel that the next
// change closes.
func (g *Gate) try() (passed bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return true, nil
	}
	if g.passes > 0 {
		g.passes--
		return true, nil
	}
	return false, g.changed
}

// pass waits until the gate lets the caller through. waits is called with 1
// before a wait and with -1 after it.
func (g *Gate) pass(ctx context.Context, waits func(delta int64)) error {
	passed, changed := g.try()
	if passed {
		return nil
	}
	waits(1)
	defer waits(-1)
	for !passed {
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		passed, changed = g.try()
	}
	return nil
}
