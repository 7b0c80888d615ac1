// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

const (
	holdMicros = 2 * minute
	sweepEvery = 5 * second
	// wayMicros is a batch's way to the book, or an answer's back.
	wayMicros = 300 * micro
	// patience bounds how long a replica waits for the book's answer.
	patience = second
)

// replica is one process: the real lane, and what the gateway does around it.
type replica struct {
	world   *world
	number  int
	up      bool
	life    int   // grows with each start: what an earlier one planned is void
	drift   int64 // of its clock to virtual time
	machine *teller.Machine
	waiting map[teller.Ticket]func(teller.Completion)
	ticket  teller.Ticket
	known   [workspaces]*configuration
	running []*request
	// doubtful are requests that the lane may still have to undo.
	doubtful []*request
	mishaps  []mishap
	batches  int
	wakeAt   int64
	sweepAt  int64
}

type mishap struct {
	kind   MishapKind
	micros int64
}

// sending is a batch on its way.
type sending struct {
	number  int
	batch   *teller.Batch
	results []ledger.Result
	err     error
}

func (r *replica) start() {
	r.up = true
	r.life++
	r.machine = teller.NewMachine(teller.Limits{Batch: 16}, outcomeUnknown)
	r.waiting = map[teller.Ticket]func(teller.Completion){}
	r.known = r.world.book.configurations
	r.wakeAt, r.sweepAt = math.MaxInt64, math.MaxInt64
	r.sweepSoon()
}

// crash loses everything that is not in the book: what waits, what runs, and
// what nobody has heard of yet. Batches that are on their way arrive.
func (r *replica) crash(downMicros int64) {
	if !r.up {
		return
	}
	r.world.tally.Crashes++
	r.up = false
	r.life++
	for _, q := range append(r.running, r.doubtful...) {
		q.lost = true
	}
	r.running, r.doubtful = nil, nil
	r.world.postAgain(r)
	r.world.after(downMicros, func() {
		if !r.up {
			r.world.note("r%d restarts", r.number)
			r.world.recover()
			r.start()
		}
	})
}

// later schedules a task of this life.
func (r *replica) later(micros int64, do func()) {
	life := r.life
	r.world.after(micros, func() {
		if r.up && r.life == life {
			do()
		}
	})
}

func (r *replica) clock() int64 { return r.world.now + r.drift }

// newID makes a request's id.
func (r *replica) newID() ledger.ID {
	var random [10]byte
	binary.BigEndian.PutUint64(random[2:], r.world.newSerial())
	return ledger.NewID(r.clock(), random)
}

// submit queues an operation; then, if any, gets the answer.
func (r *replica) submit(op *ledger.Op, then func(teller.Completion)) (teller.Ticket, error) {
	ticket := teller.Ticket(0)
	if then != nil {
		r.ticket++
		ticket = r.ticket
	}
	if err := r.machine.Enqueue(op, ticket, r.clock()); err != nil {
		return 0, err
	}
	if then != nil {
		r.waiting[ticket] = then
	}
	r.pump()
	return ticket, nil
}

// pump runs what the lane has to run, or wakes it when it will have.
func (r *replica) pump() {
	if !r.up {
		return
	}
	batch, until := r.machine.Next(r.clock())
	if batch != nil {
		r.send(batch)
		return
	}
	if until == teller.Never {
		return
	}
	at := r.world.now + max(0, until-r.clock())
	if at >= r.wakeAt {
		return
	}
	r.wakeAt = at
	r.later(at-r.world.now, func() {
		if r.wakeAt == at {
			r.wakeAt = math.MaxInt64
			r.pump()
		}
	})
}

// send takes a batch to the book, as the script's mishaps have it.
func (r *replica) send(batch *teller.Batch) {
	r.batches++
	b := &sending{number: r.batches, batch: batch}
	way := wayMicros + int64(r.number)*37
	m := mishap{kind: mishapCount}
	if len(r.mishaps) > 0 {
		m, r.mishaps = r.mishaps[0], r.mishaps[1:]
	}
	deliver := r.world.after
	if r.world.peer != nil { // a call within one process: it dies with it, and is never made twice
		deliver = r.later
		if m.kind == Late || m.kind == Twice {
			m.kind = AnswerLost
		}
	}
	apply := func() { r.world.apply(r, b) }
	answer := func() { r.answered(b, b.results, b.err) }
	loses := func() { r.answered(b, nil, errUnknown) }
	switch m.kind {
	case Delayed:
		deliver(way+min(m.micros, patience), apply)
		r.later(2*way+min(m.micros, patience), answer)
	case AnswerLost:
		deliver(way, apply)
		r.later(way+min(m.micros, patience), loses)
	case BatchLost:
		r.later(way+min(m.micros, patience), loses)
	case Failed:
		b.err = errDown
		r.later(2*way, answer)
	case Late:
		r.later(way, loses)
		deliver(2*way+m.micros, apply)
	case Twice:
		// Whose answer is known is not delivered again: only what a replica gave up.
		deliver(way, apply)
		r.later(2*way, loses)
		again := &sending{number: b.number, batch: batch}
		deliver(2*way+m.micros, func() { r.world.apply(r, again) })
	default:
		deliver(way, apply)
		r.later(2*way, answer)
	}
}

// answered tells the lane how its batch ended, and those who wait.
func (r *replica) answered(b *sending, results []ledger.Result, err error) {
	if err != nil {
		r.world.note("r%d batch %d: %v", r.number, b.number, err)
	}
	for _, c := range r.machine.Done(b.batch, results, err, r.clock()) {
		r.tell(c)
	}
	if r.machine.Idle() {
		r.doubtful = nil
	}
	r.pump()
}

func (r *replica) tell(c teller.Completion) {
	then := r.waiting[c.Ticket]
	if then == nil {
		return
	}
	delete(r.waiting, c.Ticket)
	then(c)
}

// refresh loads the configuration that is in force.
func (r *replica) refresh(workspace int) error {
	if r.world.now < r.world.book.lockedUntil {
		return errDown
	}
	r.known[workspace] = r.world.book.configurations[workspace]
	return nil
}

// sweepSoon sees to it that what is open now will be swept in time (RES-5). With
// nothing open there is nothing to look for, so time passes in one step.
func (r *replica) sweepSoon() {
	if !r.up || len(r.world.book.open) == 0 || r.sweepAt != math.MaxInt64 {
		return
	}
	now := r.world.now
	at := max(now+sweepEvery+int64(r.number)*300*milli, r.world.book.nextExpiry())
	r.sweepAt = at
	r.later(at-now, func() {
		if r.sweepAt == at {
			r.sweepAt = math.MaxInt64
			r.sweep()
		}
	})
}

func (r *replica) sweep() {
	expired, err := r.world.book.expired(r.world.now)
	if err == nil {
		r.world.alsoExpired(expired)
		for _, row := range expired {
			op := &ledger.Op{Verb: ledger.Sweep, Workspace: row.Workspace, Reservation: row}
			if _, err := r.submit(op, nil); err != nil {
				r.world.note("r%d sweep: %v", r.number, err)
			}
		}
	}
	r.sweepSoon()
}

// outline is a batch in one line of the trace.
func outline(d *decision) string {
	verbs := [...]string{"", "admit", "move", "settle", "void", "undo", "renew", "sweep", "fund", "adjust", "read", "amend"}
	verdicts := [...]string{"", "admitted", "refused", "stale", "carry", "done", "already", "missing", "invalid"}
	var b strings.Builder
	fmt.Fprintf(&b, "at %s", span(d.at-start))
	for i, op := range d.ops {
		id := op.ID
		if op.Reservation != nil {
			id = op.Reservation.ID
		}
		again := ""
		if op.Again {
			again = " again"
		}
		fmt.Fprintf(&b, "; %s%s #%d %s", verbs[op.Verb], again, binary.BigEndian.Uint64(id[8:]), verdicts[d.results[i].Verdict])
		if refusal := d.results[i].Refusal; refusal != nil {
			fmt.Fprintf(&b, " (%s)", refusal.Check.Code)
		}
	}
	return b.String()
}
