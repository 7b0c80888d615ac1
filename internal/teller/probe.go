// SPDX-License-Identifier: Apache-2.0

package teller

import (
	"time"

	"github.com/weirhq/weir/internal/ledger"
)

const (
	// probeWorkspace is nobody's.
	probeWorkspace = "weir.probe"
	probeHold      = int64(time.Minute / time.Microsecond)
	// fresh is how long a write says that the book writes; asking waits as long
	// for the answer. Together they keep /readyz true within two seconds (RES-8).
	fresh = time.Second
)

// newProbe writes something that means nothing, a tombstone: a book that can
// still be read says nothing of whether it can be written.
func (m *Machine) newProbe(now int64) *Batch {
	op := &ledger.Op{Verb: ledger.Undo, ID: ledger.NewID(now, m.prober), Workspace: probeWorkspace, HoldMicros: probeHold}
	return &Batch{probe: true, Ops: []*ledger.Op{op}}
}

// probed opens a closed lane by half: one more failure closes it again, unless
// a batch succeeds first. What the probe wrote is removed.
func (m *Machine) probed(b *Batch, now int64) {
	if m.closed {
		m.failures = max(0, m.limits.Failures-2)
	}
	m.closed, m.asked, m.wroteAt = false, false, now
	r := &ledger.Reservation{ID: b.Ops[0].ID, Workspace: probeWorkspace}
	sweep := &ledger.Op{Verb: ledger.Sweep, Workspace: probeWorkspace, Reservation: r}
	m.settlements.push(&entry{op: sweep, settles: true, queuedAt: now})
}

// ask has the next batch find out whether the book writes, unless that is known.
func (m *Machine) ask(now int64) {
	age := now - m.wroteAt
	m.asked = m.asked || !m.closed && (age < 0 || age >= fresh.Microseconds())
}

// Healthy tells whether every lane admits. One that has written nothing for a
// second has to show first that it can; that takes a second at most.
func (t *Teller) Healthy() bool {
	deadline := time.NewTimer(fresh)
	defer deadline.Stop()
	for _, l := range t.lanes {
		if !t.healthy(l, deadline.C) {
			return false
		}
	}
	return true
}

func (t *Teller) healthy(l *lane, deadline <-chan time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended && !l.machine.stopping {
		l.machine.ask(t.options.Clock.Now())
	}
	for l.machine.asked {
		if l.probed == nil {
			l.probed = make(chan struct{})
		}
		answered := l.probed
		l.poke()
		l.mu.Unlock()
		select {
		case <-answered:
		case <-deadline:
			l.mu.Lock()
			return false
		}
		l.mu.Lock()
	}
	return l.machine.Healthy() && !l.ended
}

// tellProbed wakes those who asked. It is called with the lane's lock.
func (l *lane) tellProbed() {
	if l.probed != nil && !l.machine.asked {
		close(l.probed)
		l.probed = nil
	}
}
