// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/ledger"
)

// cutGrace is what a request has to end in once it is cut.
const cutGrace = 2 * time.Second

// running are the governed requests under way, and the reservations that they
// keep alive.
type running struct {
	mu     sync.Mutex
	n      int
	closed bool          // nothing enters any more
	left   bool          // nothing more should be sent here, though it would enter
	idle   chan struct{} // closed when closed and n is 0
	leases map[*lease]struct{}
}

// lease is a reservation that is renewed while its request runs (RES-5).
type lease struct {
	reservation *ledger.Reservation
	due         int64 // of the next renewal, Unix microseconds
}

func newRunning() *running {
	return &running{idle: make(chan struct{}), leases: make(map[*lease]struct{})}
}

// enter counts a request in; false: the gateway is stopping.
func (r *running) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	if r.closed && r.n == 0 {
		close(r.idle)
	}
}

// close lets nothing in any more; the channel is closed when all have left.
func (r *running) close() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		if r.n == 0 {
			close(r.idle)
		}
	}
	return r.idle
}

func (r *running) stopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed || r.left
}

func (r *running) keep(reservation *ledger.Reservation, due int64) *lease {
	l := &lease{reservation: reservation, due: due}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leases[l] = struct{}{}
	return l
}

func (r *running) drop(l *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.leases, l)
}

// due takes out what is to be renewed now, and says when next.
func (r *running) due(now, next int64) []*ledger.Reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []*ledger.Reservation
	for l := range r.leases {
		if l.due <= now {
			l.due = next
			due = append(due, l.reservation)
		}
	}
	return due
}

// Renew prolongs the reservation of every running request a third of whose hold
// has passed (RES-5), and returns when that is done or ctx has ended. It is
// called about once a second. A renewal that fails cuts nothing.
func (g *Gateway) Renew(ctx context.Context) {
	now := g.Clock.Now()
	due := g.running.due(now, now+g.HoldMicros/3)
	done := make(chan struct{}, len(due))
	for _, r := range due {
		op := &ledger.Op{Verb: ledger.Renew, Workspace: r.Workspace, Reservation: r, HoldMicros: g.HoldMicros}
		if err := g.Teller.Post(op, func(ledger.Result, error) { done <- struct{}{} }); err != nil {
			return // the teller has stopped
		}
	}
	for range due {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// Leave makes /readyz red while requests are admitted as before: a load balancer
// turns to others before anything is refused (STO-4).
func (g *Gateway) Leave() {
	g.running.mu.Lock()
	defer g.running.mu.Unlock()
	g.running.left = true
}

// Drain refuses new governed requests and waits for those that run. When ctx
// ends first, they are cut, charged with what they have shown, and get a moment
// to end in (STO-4). It reports whether all have ended: one that does not is
// held up by a client that takes nothing, and ends with its connection.
func (g *Gateway) Drain(ctx context.Context) bool {
	idle := g.running.close()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		g.stop(errStopping)
	}
	moment := time.NewTimer(cutGrace)
	defer moment.Stop()
	select {
	case <-idle:
		return true
	case <-moment.C:
		return false
	}
}
