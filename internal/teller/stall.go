// SPDX-License-Identifier: Apache-2.0

package teller

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/ledger"
)

// DefaultStall is how long a batch may take before its lane admits no more.
const DefaultStall = time.Second

// Stall tells that a batch does not come back. Admissions in it and behind it
// are refused, and called off: the book may yet admit them. Settlements in it
// must survive this process. Done ends it.
func (m *Machine) Stall(b *Batch) []Completion {
	m.stalled = true
	err := fmt.Errorf("%w: a batch does not come back", ErrUnavailable)
	var out []Completion
	for _, e := range b.entries {
		if e.settles {
			m.keep.want(e)
			continue
		}
		if e.ticket != 0 {
			delete(m.waiting, e.ticket)
			out = append(out, Completion{Ticket: e.ticket, Op: e.op, Err: err})
		}
		e.ticket, e.gone = 0, true
		if e.op.Verb == ledger.Admit {
			e.calledOff = true
			m.undo(e)
		}
	}
	m.wantAll()
	return append(out, m.refuseAll(err)...)
}

// undo calls off an admission that nobody knows the outcome of.
func (m *Machine) undo(e *entry) {
	undo := &entry{op: undoing(e.op, nil), settles: true, queuedAt: e.queuedAt}
	m.settlements.push(undo)
	m.keep.want(undo)
}

// stalled answers those who wait for a batch that does not come back: 503 at
// once, not after a hang (RES-8).
func (t *Teller) stalled(l *lane, batch *Batch) {
	l.mu.Lock()
	if batch.ended {
		l.mu.Unlock()
		return
	}
	healthy := l.machine.Healthy()
	completions := l.machine.Stall(batch)
	taken := l.machine.keep.take()
	l.mu.Unlock()
	t.keepWithin(l, taken, t.options.Stall/2)
	l.mu.Lock()
	told := l.answer(completions)
	l.mu.Unlock()
	if closed := t.options.Hooks.Closed; closed != nil && healthy {
		closed(l.number, true)
	}
	t.tell(told)
}

// keepWithin does not wait for ever: the spool may be on the disk that the book
// waits for.
func (t *Teller) keepWithin(l *lane, taken []*entry, patience time.Duration) {
	kept := make(chan struct{})
	t.spooler.work.Go(func() {
		t.keep(l, taken)
		close(kept)
	})
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-kept:
	case <-enough.C:
	}
}
