// SPDX-License-Identifier: Apache-2.0

package teller

import (
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
)

// Done tells how a batch of Next ended and returns the answers that follow. A
// failed batch of several is run again one by one, so that one bad operation
// does not refuse the others; when the outcome is unknown they are marked Again.
func (m *Machine) Done(b *Batch, results []ledger.Result, err error, now int64) []Completion {
	m.running, m.stalled, b.ended = false, false, true
	for _, e := range b.entries {
		e.running = false
	}
	if err == nil && len(results) != len(b.Ops) {
		err = fmt.Errorf("book answered %d of %d operations", len(results), len(b.Ops))
	}
	if err != nil {
		return m.failed(b, err, now)
	}
	m.keep.forgo()
	if b.probe {
		m.probed(b, now)
		return nil
	}
	m.failures, m.pause = 0, 0
	if slices.ContainsFunc(results, func(r ledger.Result) bool { return r.Verdict == ledger.Admitted || r.Verdict == ledger.Done }) {
		m.wroteAt = now
	}
	var out []Completion
	for i, e := range b.entries {
		out = m.decided(out, e, &results[i], now)
	}
	return out
}

// decided handles one operation's result.
func (m *Machine) decided(out []Completion, e *entry, r *ledger.Result, now int64) []Completion {
	switch {
	case e.calledOff:
		return out // answered, and its undoing is on its way
	case r.Verdict == ledger.Carry:
		e.op = e.op.Carried(r)
		e.tries++
		switch {
		case e.settles && e.tries < maxTries:
			m.settlements.unpop(e)
		case e.settles:
			m.delay(e, now)
		case e.tries < maxTries && !e.gone && !m.stopping:
			m.carried = append(m.carried, e)
		default:
			return m.refuse(out, e, ErrUnavailable)
		}
		return out
	case r.Verdict == ledger.Stale && e.op.Again:
		// The first sending may still be committing. Nobody may admit this id
		// again before that is known, so it is called off.
		return m.refuse(out, e, ErrUnavailable)
	case r.Verdict == ledger.Admitted && e.gone && e.op.Verb == ledger.Admit:
		m.settlements.push(&entry{op: undoing(e.op, r.Reservation), settles: true, queuedAt: now})
		return out
	}
	return m.answer(out, e, *r, nil)
}

// failed handles a batch that the book could not apply.
func (m *Machine) failed(b *Batch, err error, now int64) []Completion {
	if b.probe {
		m.shut(now)
		return m.refuseAll(fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	if m.unknown(err) {
		for _, e := range b.entries {
			again := *e.op
			again.Again = true
			e.op = &again
		}
	}
	entries := slices.DeleteFunc(b.entries, func(e *entry) bool { return e.calledOff })
	if len(entries) != 1 {
		m.failures++
		m.singles = append(m.singles, entries...)
		return nil
	}
	// What has failed alone before says nothing of the book.
	e := entries[0]
	if e.alone == 0 {
		m.failures++
	}
	e.alone++
	e.tries++
	var out []Completion
	switch {
	case e.settles:
		m.delay(e, now)
	case m.unknown(err) && e.tries < maxTries && m.failures < m.limits.Failures && !e.gone && !m.stopping:
		m.singles = append([]*entry{e}, m.singles...)
	default:
		out = m.refuse(out, e, fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	if m.failures < m.limits.Failures {
		return out
	}
	m.shut(now)
	return append(out, m.refuseAll(fmt.Errorf("%w: %w", ErrUnavailable, err))...)
}

// shut closes the lane until a probe is answered, waiting longer each time. What
// is to be applied must survive until then.
func (m *Machine) shut(now int64) {
	m.closed, m.asked = true, false
	m.wantAll()
	m.pause = min(max(2*m.pause, m.limits.ProbeMicros), m.limits.MaxProbeMicros)
	m.probeAt = now + m.pause
}

// delay puts a settlement aside that failed on its own. It is sent again, alone,
// until it is applied.
func (m *Machine) delay(e *entry, now int64) {
	pause := m.limits.ProbeMicros << min(e.tries, 16)
	e.notBefore = now + min(pause, m.limits.MaxProbeMicros)
	m.delayed = append(m.delayed, e)
	m.keep.want(e)
}

// refuseAll answers every admission that waits; settlements among the singles
// go back to their queue, in front, in order.
func (m *Machine) refuseAll(err error) []Completion {
	var out []Completion
	singles := m.singles
	m.singles = nil
	for i := len(singles) - 1; i >= 0; i-- {
		if singles[i].settles {
			m.settlements.unpop(singles[i])
		}
	}
	for _, e := range singles {
		if !e.settles {
			out = m.refuse(out, e, err)
		}
	}
	for _, e := range m.carried {
		out = m.refuse(out, e, err)
	}
	m.carried = nil
	for m.admissions.n > 0 {
		out = m.refuse(out, m.admissions.pop(), err)
	}
	return out
}

// refuse answers an admission with an error. If an earlier sending of it may
// have happened, that is undone, whatever becomes of this process.
func (m *Machine) refuse(out []Completion, e *entry, err error) []Completion {
	if e.op.Again && e.op.Verb == ledger.Admit {
		m.undo(e)
	}
	return m.answer(out, e, ledger.Result{}, err)
}

func (m *Machine) answer(out []Completion, e *entry, r ledger.Result, err error) []Completion {
	if e.ticket != 0 {
		delete(m.waiting, e.ticket)
	}
	m.keep.end(e, err == nil)
	return append(out, Completion{Ticket: e.ticket, Op: e.op, Result: r, Err: err, Kept: e.keeping == keepDone})
}

// undoing is the operation that gives back all that an admission took: of the
// reservation that it made, or, when nobody knows whether it did, of its id.
func undoing(op *ledger.Op, r *ledger.Reservation) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Undo, ID: op.ID, Workspace: op.Workspace, Process: op.Process, HoldMicros: op.HoldMicros,
		Reservation: r, Settlement: &ledger.Settlement{Outcome: "nobody waited"},
	}
}
