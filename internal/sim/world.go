// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
)

// start is the virtual time at which runs begin: 2026-03-08 03:00 UTC, two hours
// before Havana's clocks skip a midnight.
const start = 1_772_938_800 * second

// Bounds of a run.
const (
	traced = 60
	// maxRest bounds the tasks between the end of the script and rest.
	maxRest = 200_000
	// verifyEvery is how many batches pass between two whole verifications.
	verifyEvery = 128
)

// world is one run.
type world struct {
	script   *script
	now      int64
	tasks    tasks
	pushed   int
	book     *book
	peer     Peer // nil: there is none
	audit    *audit
	tally    Tally
	replicas []*replica
	requests []*request
	postings []*posting
	serial   uint64
	// calm: the script is over and nothing goes wrong any more.
	calm   bool
	trace  []string
	failed *Failure
}

// task is something that happens at an instant. Equal instants keep their order.
type task struct {
	at    int64
	order int
	do    func()
}

type tasks []task

func (t tasks) Len() int { return len(t) }
func (t tasks) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].order < t[j].order
}
func (t tasks) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *tasks) Push(x any)   { *t = append(*t, x.(task)) }
func (t *tasks) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	(*t)[last] = task{}
	*t = (*t)[:last]
	return x
}

// play runs a script. Nothing in it depends on anything but the script.
func play(s *script, spoil flaw) (Tally, *Failure) {
	w := &world{script: s, now: start}
	w.book, w.audit = newBook(s, spoil), newAudit(&w.tally)
	w.join()
	for n := range s.replicas {
		r := &replica{world: w, number: n}
		w.replicas = append(w.replicas, r)
		r.start()
	}
	w.next(0)
	for w.failed == nil && len(w.tasks) > 0 {
		if w.tally.Steps >= s.steps && !w.calm {
			w.rest()
		}
		if w.tally.Steps > s.steps+maxRest {
			w.fail("everything comes to rest", "%d tasks after the script there are still %d", maxRest, len(w.tasks))
			break
		}
		t := heap.Pop(&w.tasks).(task)
		w.now = t.at
		w.tally.Steps++
		t.do()
	}
	if w.failed == nil {
		w.settleUp()
	}
	w.part()
	return w.tally, w.failed
}

// after schedules a task.
func (w *world) after(micros int64, do func()) {
	w.pushed++
	heap.Push(&w.tasks, task{at: w.now + max(0, micros), order: w.pushed, do: do})
}

// next schedules the n-th event of the script, and each the one behind it.
func (w *world) next(n int) {
	if n == len(w.script.events) {
		w.after(0, w.rest)
		return
	}
	e := &w.script.events[n]
	w.after(start+e.At-w.now, func() {
		if w.calm {
			return
		}
		w.happen(e)
		w.next(n + 1)
	})
}

// rest ends the script: what is under way goes on, nothing new happens.
func (w *world) rest() {
	if w.calm {
		return
	}
	w.calm = true
	w.book.lockedUntil = min(w.book.lockedUntil, w.now)
	w.note("rest")
	for _, r := range w.replicas {
		r.mishaps = nil
		r.sweepSoon()
	}
}

func (w *world) happen(e *Event) {
	r := w.replicas[e.Replica%len(w.replicas)]
	if e.Kind != Arrive {
		w.note("%s", e.String())
	}
	switch e.Kind {
	case Arrive:
		w.tally.Arrivals++
		if r = w.upFrom(r); r != nil {
			r.arrive(e)
		}
	case Mishap:
		w.tally.Mishaps[e.Mishap]++
		if e.Mishap == LockedOut {
			w.book.lockedUntil = max(w.book.lockedUntil, w.now+e.Amount)
			return
		}
		for range e.Count {
			r.mishaps = append(r.mishaps, mishap{e.Mishap, e.Amount})
		}
	case Crash:
		r.crash(e.Amount)
	case Step:
		w.tally.ClockSteps++
		w.book.offset += e.Amount
		for _, other := range w.replicas {
			other.sweepAt = math.MaxInt64 // what it planned was by the old clock
		}
		w.sweepSoon()
	case Drift:
		r.drift = e.Amount
		r.pump()
	case Change:
		w.tally.Changes++
		before := w.book.configurations[e.Workspace]
		w.book.configure(e.Workspace, before.changed(e, w.generation(before)))
	case Pay, Amend:
		w.post(r, e)
	case Adjust:
		w.adjust(r, e)
	case Look:
		if r = w.upFrom(r); r != nil {
			r.look(e)
		}
	case eventKinds:
	}
}

// upFrom is a replica that is up: r, or the next one that a balancer finds.
func (w *world) upFrom(r *replica) *replica {
	for i := range w.replicas {
		if other := w.replicas[(r.number+i)%len(w.replicas)]; other.up {
			return other
		}
	}
	return nil
}

func (w *world) sweepSoon() {
	for _, r := range w.replicas {
		r.sweepSoon()
	}
}

func (w *world) note(format string, args ...any) {
	if len(w.trace) == 2*traced {
		w.trace = append(w.trace[:0], w.trace[traced:]...)
	}
	w.trace = append(w.trace, fmt.Sprintf("%13.6fs ", float64(w.now-start)/1e6)+fmt.Sprintf(format, args...))
}

func (w *world) fail(rule, format string, args ...any) {
	if w.failed != nil {
		return
	}
	w.failed = &Failure{
		Seed: w.script.seed, Step: w.tally.Steps, Rule: rule, What: fmt.Sprintf(format, args...), Script: w.script.events,
		Trace: append([]string{}, w.trace[max(0, len(w.trace)-traced):]...),
	}
}

// apply has the book decide a batch, and the audit look at it.
func (w *world) apply(r *replica, b *sending) {
	if w.failed != nil {
		return
	}
	d, err := w.book.apply(w.now, b.batch.Ops)
	w.follow(b.batch.Ops, d, err)
	b.err = err
	switch {
	case err == nil:
	case errors.Is(err, errConflict):
		w.tally.Conflicts++
		return
	case errors.Is(err, errDown):
		return
	default:
		w.fail("rows are stored", "%v", err)
		return
	}
	b.results = d.results
	w.note("r%d batch %d: %s", r.number, b.number, outline(d))
	w.audited(d)
	if len(d.changes.Opened) > 0 {
		w.sweepSoon()
	}
}

// audited has the audit look at a batch.
func (w *world) audited(d *decision) {
	w.audit.decided(w.book, d)
	if w.audit.rule == "" && w.tally.Batches%verifyEvery == 0 {
		w.audit.verify(w.book)
	}
	if w.audit.rule != "" {
		w.fail(w.audit.rule, "%s", w.audit.what)
	}
}

func (w *world) newSerial() uint64 {
	w.serial++
	return w.serial
}
