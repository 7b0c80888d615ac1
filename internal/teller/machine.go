// SPDX-License-Identifier: Apache-2.0

package teller

import (
	"errors"
	"math"

	"github.com/weirhq/weir/internal/ledger"
)

// Limits bound a lane. Zero fields take the defaults.
type Limits struct {
	// Batch is the most operations of one batch.
	Batch int
	// Admissions is the most that wait for a lane; then it is busy. A workspace
	// may fill a quarter of it, or three quarters while nobody else waits.
	Admissions int
	// Settlements is where Post begins to block; those in the spool do not
	// count. Nothing is ever dropped.
	Settlements int
	// LingerMicros is how long a batch of settlements alone waits for an
	// admission to ride with: nobody waits for a settlement, and otherwise the
	// next admission queues behind its flush (ENGINE 2).
	LingerMicros int64
	// Failures in a row close the lane: admissions are refused at once, and it
	// probes the book, waiting between ProbeMicros and MaxProbeMicros.
	Failures                    int
	ProbeMicros, MaxProbeMicros int64
}

// The defaults of Limits.
const (
	DefaultBatch          = 1024
	DefaultAdmissions     = 4096
	DefaultSettlements    = 65536
	DefaultLingerMicros   = 2_000
	DefaultFailures       = 3
	DefaultProbeMicros    = 50_000
	DefaultMaxProbeMicros = 1_000_000
)

// maxTries bounds how often one admission is carried or sent again. A
// settlement is sent until it is applied.
const maxTries = 5

func (l Limits) withDefaults() Limits {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Batch, DefaultBatch)
	set(&l.Admissions, DefaultAdmissions)
	set(&l.Settlements, DefaultSettlements)
	set(&l.Failures, DefaultFailures)
	micros := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	micros(&l.LingerMicros, DefaultLingerMicros)
	micros(&l.ProbeMicros, DefaultProbeMicros)
	micros(&l.MaxProbeMicros, max(DefaultMaxProbeMicros, l.ProbeMicros))
	return l
}

// What an operation can be answered with instead of a result. All of them are
// ErrUnavailable: nothing was admitted, and the answer is 503 (RES-8).
var (
	ErrUnavailable = errors.New("the books cannot be reached")
	ErrBusy        = busy("too many admissions wait")
	ErrStopped     = busy("the teller has stopped")
	// ErrFull: the settlements' queue is at its bound. Only a Machine says it;
	// a Teller's Post waits.
	ErrFull = busy("too many settlements wait")
)

type busy string

func (b busy) Error() string        { return string(b) }
func (b busy) Is(target error) bool { return target == ErrUnavailable }

// Never is the instant that a lane with nothing to do waits until.
const Never = math.MaxInt64

// Ticket names one operation that waits for its answer; 0 wants none.
type Ticket uint64

// Batch is what a lane runs next: Ops, in order, in one call of the book. It is
// nil when there is nothing to run before the instant Until.
type Batch struct {
	Ops     []*ledger.Op
	entries []*entry
	probe   bool
	ended   bool
}

// Completion answers one ticket: with a result, or with an error.
type Completion struct {
	Ticket Ticket
	Op     *ledger.Op // as it was decided
	Result ledger.Result
	Err    error
	// Kept: nobody has applied it, and it is in the spool.
	Kept bool
}

// entry is one operation on its way.
type entry struct {
	op        *ledger.Op
	ticket    Ticket
	settles   bool
	queuedAt  int64
	tries     int
	alone     int   // how often it failed on its own
	notBefore int64 // of a settlement that waits to be sent again
	running   bool
	gone      bool // nobody waits for the answer any more
	calledOff bool // and its undoing is queued
	applied   bool // or given up: it has been answered
	keeping   keeping
	key       uint64 // in the spool
}

// settles tells which verbs end something: they are never refused, and nobody
// waits for them.
func settles(v ledger.Verb) bool {
	switch v {
	case ledger.Settle, ledger.Void, ledger.Undo, ledger.Sweep, ledger.Renew, ledger.FreeSlots:
		return true
	default:
		return false
	}
}

// Machine is one lane: what waits, what runs, and what to do next. It has no
// goroutine, no lock and no clock, so a simulation can drive it; its owner runs
// one batch at a time. Instants are Unix microseconds of the owner's clock,
// which may be set back.
type Machine struct {
	limits  Limits
	unknown func(error) bool

	settlements fifo     // first come, first applied
	delayed     []*entry // settlements that failed alone, to be sent again alone
	singles     []*entry // of a failed batch, to be run one by one
	carried     []*entry // admissions that go first
	admissions  turns
	waiting     map[Ticket]*entry

	running  bool
	stopping bool
	retried  bool // a delayed settlement had its turn; the others are next
	failures int  // in a row
	closed   bool
	stalled  bool
	probeAt  int64
	pause    int64
	prober   [10]byte // tells its probes from those of other lanes and processes
	asked    bool     // to probe a book that has not shown lately that it writes
	wroteAt  int64    // when it last did

	keep keep
}

// NewMachine is an empty lane. unknown tells whether after an error the batch
// may have happened all the same; nil takes that for every error, which is safe
// and leaves more tombstones behind.
func NewMachine(limits Limits, unknown func(error) bool) *Machine {
	if unknown == nil {
		unknown = func(error) bool { return true }
	}
	return &Machine{limits: limits.withDefaults(), unknown: unknown, waiting: make(map[Ticket]*entry)}
}

// Enqueue adds an operation. A book may keep what it is given, so the caller
// must not change op any more.
func (m *Machine) Enqueue(op *ledger.Op, ticket Ticket, now int64) error {
	e := &entry{op: op, ticket: ticket, settles: settles(op.Verb), queuedAt: now}
	if e.settles {
		if m.Backlog()-m.keep.kept >= m.limits.Settlements {
			return ErrFull
		}
		m.settlements.push(e)
		if !m.Healthy() {
			m.keep.want(e)
		}
	} else {
		switch {
		case m.stopping:
			return ErrStopped
		case !m.Healthy():
			return ErrUnavailable
		case !m.room(op.Workspace):
			return ErrBusy
		}
		m.admissions.push(e, op.Workspace, op.Subjects.Key)
	}
	if ticket != 0 {
		m.waiting[ticket] = e
	}
	return nil
}

// room tells whether a workspace may queue one more admission.
func (m *Machine) room(workspace string) bool {
	own, all := m.admissions.countOf(workspace), m.admissions.n
	share := m.limits.Admissions / 4
	if own == all {
		share = m.limits.Admissions - share
	}
	return all < m.limits.Admissions && own < max(1, share)
}

// Cancel tells that nobody waits for a ticket any more. removed: the operation
// was still queued and will not be decided. known is false for a ticket that has
// been answered already. An admission that is decided all the same is undone,
// so that nothing leaks; settlements are never cancelled.
func (m *Machine) Cancel(ticket Ticket) (removed, known bool) {
	e := m.waiting[ticket]
	if e == nil {
		return false, false
	}
	delete(m.waiting, ticket)
	e.ticket, e.gone = 0, true
	if e.settles || e.running {
		return false, true
	}
	// One that was sent before may have happened: it is sent again to find out.
	if e.op.Again {
		return false, true
	}
	return m.drop(e), true
}

func (m *Machine) drop(e *entry) bool {
	return m.admissions.remove(e, e.op.Workspace, e.op.Subjects.Key) || remove(&m.carried, e) || remove(&m.singles, e)
}

// Next returns the batch to run now, or until when there is none to run. The
// batch's end must be told to Done before Next is asked again.
func (m *Machine) Next(now int64) (*Batch, int64) {
	if m.running {
		return nil, Never
	}
	if m.closed {
		if wait := m.probeAt - now; wait > 0 && wait <= m.pause { // else: due, or the clock was set back
			return nil, m.probeAt
		}
		return m.run(m.newProbe(now)), 0
	}
	if m.asked {
		return m.run(m.newProbe(now)), 0
	}
	if e := m.single(now); e != nil {
		return m.run(&Batch{entries: []*entry{e}}), 0
	}
	m.retried = false
	waits := len(m.carried) > 0 || m.admissions.n > 0
	if !waits && m.settlements.len() > 0 && m.settlements.len() < m.limits.Batch && !m.stopping {
		first := m.settlements.first()
		until, due := first.queuedAt+m.limits.LingerMicros, m.soonest()
		if now >= first.queuedAt && now < until && now < due {
			return nil, min(until, due)
		}
	}
	if !waits && m.settlements.len() == 0 {
		return nil, m.soonest()
	}
	return m.run(m.gather()), 0
}

// single is the next operation that has to run alone.
func (m *Machine) single(now int64) *entry {
	if len(m.singles) > 0 {
		e := m.singles[0]
		m.singles = m.singles[1:]
		return e
	}
	if m.retried && (m.settlements.len() > 0 || len(m.carried) > 0 || m.admissions.n > 0) {
		return nil
	}
	for i, e := range m.delayed {
		if wait := e.notBefore - now; wait <= 0 || wait > m.limits.MaxProbeMicros {
			m.delayed = append(m.delayed[:i], m.delayed[i+1:]...)
			m.retried = true
			return e
		}
	}
	return nil
}

// soonest is when the first delayed settlement is due.
func (m *Machine) soonest() int64 {
	at := int64(Never)
	for _, e := range m.delayed {
		at = min(at, e.notBefore)
	}
	return at
}

// gather takes all settlements first, so that one which was queued before an
// admission is applied before it (RES-11), then admissions in turn.
func (m *Machine) gather() *Batch {
	b := &Batch{}
	for len(b.entries) < m.limits.Batch && m.settlements.len() > 0 {
		b.entries = append(b.entries, m.settlements.pop())
	}
	for len(b.entries) < m.limits.Batch && len(m.carried) > 0 {
		b.entries = append(b.entries, m.carried[0])
		m.carried = m.carried[1:]
	}
	for len(b.entries) < m.limits.Batch && m.admissions.n > 0 {
		b.entries = append(b.entries, m.admissions.pop())
	}
	return b
}

func (m *Machine) run(b *Batch) *Batch {
	m.running = true
	if !b.probe {
		b.Ops = make([]*ledger.Op, len(b.entries))
		for i, e := range b.entries {
			b.Ops[i], e.running = e.op, true
		}
	}
	return b
}

// Backlog is the number of settlements that wait.
func (m *Machine) Backlog() int { return m.settlements.len() + len(m.delayed) }

// Idle tells that nothing waits and nothing runs.
func (m *Machine) Idle() bool {
	return !m.running && m.Backlog()+len(m.singles)+len(m.carried)+m.admissions.n == 0
}

// Healthy tells whether the lane admits.
func (m *Machine) Healthy() bool { return !m.closed && !m.stalled }

// Stop refuses admissions from now on, those that wait too, and lets
// settlements drain.
func (m *Machine) Stop() []Completion {
	m.stopping = true
	return m.refuseAll(ErrStopped)
}

// Abandon gives up everything that waits: each gets the error, and what was to
// be applied is left to a spool or to the sweep.
func (m *Machine) Abandon(err error) []Completion {
	var out []Completion
	for _, e := range append(append(m.settlements.all(), m.delayed...), m.singles...) {
		out = m.answer(out, e, ledger.Result{}, err)
	}
	m.settlements, m.delayed, m.singles = fifo{}, nil, nil
	return append(out, m.refuseAll(err)...)
}
