// SPDX-License-Identifier: Apache-2.0

// Package teller stands between those who have one operation and a book that
// takes batches: while one batch commits, the next one gathers (ENGINE 2).
//
// A Machine is one lane without goroutines; a Teller runs several over a Book.
// It decides nothing (ledger) and stores nothing (store).
package teller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
)

// Book decides batches and keeps them.
type Book interface {
	// Apply decides ops in order, in one durable transaction, and returns one
	// result for each. When it fails none of them happened, unless Options'
	// OutcomeUnknown says otherwise of the error.
	Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error)
}

// MaxLanes bounds Options.Lanes.
const MaxLanes = 64

// Options of a Teller. Zero values take the defaults.
type Options struct {
	// Lanes is how many batches may be under way at once; a workspace always
	// has the same lane. Default 1.
	Lanes  int
	Limits Limits
	// Clock measures waiting. Default the system's.
	Clock clock.Clock
	// Now estimates the book's clock: Submit names an operation's windows by it,
	// so that only those at a window's edge are decided twice. nil: the caller
	// has named them.
	Now func() int64
	// OutcomeUnknown tells whether a batch may have happened though Apply
	// failed. Default: always so, see NewMachine.
	OutcomeUnknown func(error) bool
	// Stall is how long a batch may take before those who wait for the lane are
	// refused. Default DefaultStall.
	Stall time.Duration
	// Inline lets Submit run the batch on its own goroutine while the lane does
	// nothing: a lone caller waits for two hand-overs less. It is for books that
	// wait for nobody but their disk: meanwhile Submit does not look at its ctx.
	Inline bool
	// Spool keeps settlements while the book fails. Without one they wait in
	// memory alone.
	Spool Spool
	Hooks Hooks
}

// Hooks tell an observer what no caller sees. They are called on a lane's way
// and must be quick. Each may be nil.
type Hooks struct {
	// Applied: a batch was committed, after so long.
	Applied func(ops int, tookMicros int64)
	// Failed: the book refused a batch. Every failure is told.
	Failed func(ops int, err error)
	// Closed: a lane stopped admitting, or does again.
	Closed func(lane int, closed bool)
	// Full: a Post waits because so many settlements are queued.
	Full func(lane, queued int)
	// DeadLetter: a settlement found no reservation, or breaks a bound. It was
	// not booked, and is not sent again.
	DeadLetter func(op *ledger.Op, verdict ledger.Verdict)
	// Spooled: the spool keeps so many more settlements. Others, if any, wait in
	// memory alone, for the reason that err tells.
	Spooled func(kept, others int, err error)
	// Undropped: the spool still keeps what has been applied; it comes back at
	// the next start and is answered Already.
	Undropped func(n int, err error)
	// Left: at the stop so many settlements were not applied and are in the spool.
	Left func(n int)
}

// Teller gathers operations into batches. It is safe for concurrent use.
type Teller struct {
	book    Book
	options Options
	lanes   []*lane
	seed    maphash.Seed
	work    sync.WaitGroup
	stop    sync.Once
	ctx     context.Context // of the book's calls: a caller that goes away cancels nothing
	cancel  context.CancelFunc
	spooler spooler
}

// lane is one Machine and those who wait for it.
type lane struct {
	number  int
	mu      sync.Mutex
	machine *Machine
	waiters map[Ticket]*waiter
	last    Ticket
	room    *sync.Cond // a settlement left the queue, or the lane ended
	wake    chan struct{}
	stop    chan struct{} // closed: leave when idle
	blocked int           // posts that wait for room: the lane does not end before them
	ended   bool
	busy    bool // a batch is under way
	parked  bool // run waits for the end of a batch that somebody else runs
	probed  chan struct{}
	// spoolFailed: the spool could not take all; the next failed batch tries again.
	spoolFailed bool
}

// waiter is one operation whose answer somebody wants. The lane's lock covers
// its fields until done is closed or then was called.
type waiter struct {
	result ledger.Result
	err    error
	done   chan struct{}
	then   func(ledger.Result, error)
}

// New returns a teller over a book. Nothing runs before Start.
func New(book Book, options Options) *Teller {
	if options.Clock == nil {
		options.Clock = clock.System()
	}
	if options.Stall <= 0 {
		options.Stall = DefaultStall
	}
	t := &Teller{book: book, options: options, seed: maphash.MakeSeed(), spooler: spooler{wake: make(chan struct{}, 1)}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for i := range min(max(options.Lanes, 1), MaxLanes) {
		l := &lane{
			number: i, machine: NewMachine(options.Limits, options.OutcomeUnknown), waiters: make(map[Ticket]*waiter),
			wake: make(chan struct{}, 1), stop: make(chan struct{}),
		}
		_, _ = rand.Read(l.machine.prober[:]) // never fails since Go 1.24
		l.room = sync.NewCond(&l.mu)
		l.machine.keep.on = options.Spool != nil
		t.lanes = append(t.lanes, l)
	}
	return t
}

// Start begins to run batches. It is called once.
func (t *Teller) Start() {
	for _, l := range t.lanes {
		t.work.Go(func() { t.run(l) })
	}
	t.startSpooler()
}

func (t *Teller) lane(workspace string) *lane {
	if len(t.lanes) == 1 {
		return t.lanes[0]
	}
	return t.lanes[maphash.String(t.seed, workspace)%uint64(len(t.lanes))]
}

// Submit has one operation decided and waits for its result. The teller owns op
// from now on. An error means that nothing was admitted: ErrUnavailable (503),
// or ctx's when the caller went away; an admission that is decided all the same
// is undone. A Fund or Adjust that ended with an error may have happened;
// submitting it again under its ID or Number books it once.
func (t *Teller) Submit(ctx context.Context, op *ledger.Op) (ledger.Result, error) {
	if t.options.Now != nil {
		op.Name(t.options.Now())
	}
	l := t.lane(op.Workspace)
	w := &waiter{done: make(chan struct{})}
	ticket, err := t.enqueue(l, op, w)
	if err != nil {
		return ledger.Result{}, err
	}
	if t.options.Inline {
		t.ride(l)
	}
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	_, known := l.machine.Cancel(ticket)
	if known {
		delete(l.waiters, ticket)
	}
	l.mu.Unlock()
	if !known { // answered meanwhile
		<-w.done
		return w.result, w.err
	}
	return ledger.Result{}, fmt.Errorf("wait for the books: %w", context.Cause(ctx))
}

// Post hands over a settlement (or another ending) and returns once it is
// queued: any admission submitted after that is decided after it (RES-11). It
// is sent until it is applied. While Limits.Settlements wait, Post waits, which
// holds back whoever makes them; nothing is dropped. then, if any, is called
// once with the outcome, on the lane's goroutine; it must be quick and must not
// wait for the teller. After Stop: ErrStopped, and the op is still the caller's.
func (t *Teller) Post(op *ledger.Op, then func(ledger.Result, error)) error {
	var w *waiter
	if then != nil {
		w = &waiter{then: then}
	}
	_, err := t.enqueue(t.lane(op.Workspace), op, w)
	return err
}

func (t *Teller) enqueue(l *lane, op *ledger.Op, w *waiter) (Ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for told := false; ; told = true {
		if l.ended {
			return 0, ErrStopped
		}
		ticket := Ticket(0)
		if w != nil {
			ticket = l.last + 1
		}
		err := l.machine.Enqueue(op, ticket, t.options.Clock.Now())
		if err == nil {
			if w != nil {
				l.last, l.waiters[ticket] = ticket, w
			}
			if !t.options.Inline || settles(op.Verb) {
				l.poke() // who submits inline looks himself
			}
			t.wakeSpooler(l)
			return ticket, nil
		}
		if !errors.Is(err, ErrFull) {
			return 0, err
		}
		if full := t.options.Hooks.Full; full != nil && !told {
			full(l.number, l.machine.Backlog())
		}
		l.blocked++
		l.room.Wait()
		l.blocked--
	}
}

func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Stop refuses admissions, those that wait too, and returns when all
// settlements are applied; end what posts them first. When ctx ends before, it
// gives up: each that waits is answered with ErrStopped, and the error says how
// many there were.
func (t *Teller) Stop(ctx context.Context) error {
	t.stop.Do(func() {
		for _, l := range t.lanes {
			l.mu.Lock()
			told := l.answer(l.machine.Stop())
			l.mu.Unlock()
			t.tell(told)
			close(l.stop)
		}
	})
	drained := make(chan struct{})
	go func() {
		t.work.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
		t.cancel()
		<-drained
	}
	t.cancel()
	t.spooler.work.Wait()
	lost, left := 0, 0
	for _, l := range t.lanes {
		n, kept := t.abandon(l)
		lost, left = lost+n, left+kept
	}
	if told := t.options.Hooks.Left; told != nil && left > 0 {
		told(left)
	}
	if lost > 0 {
		return fmt.Errorf("stop the teller: %d settlements were not applied: %w", lost, context.Cause(ctx))
	}
	return nil
}

// abandon ends a lane: what it could not apply goes to the spool.
func (t *Teller) abandon(l *lane) (lost, kept int) {
	l.mu.Lock()
	l.ended = true
	l.machine.wantAll()
	taken := l.machine.keep.take()
	l.mu.Unlock()
	t.keep(l, taken)
	l.mu.Lock()
	abandoned := l.machine.Abandon(ErrStopped)
	for i := range abandoned {
		switch c := &abandoned[i]; {
		case c.Kept:
			kept++
		case c.Op.Verb != ledger.Renew && c.Op.Verb != ledger.Sweep && c.Op.Verb != ledger.FreeSlots: // the next start does these anyway
			lost++
		}
	}
	told := l.answer(abandoned)
	l.tellProbed()
	l.room.Broadcast()
	l.mu.Unlock()
	t.tell(told)
	return lost, kept
}

// run drives one lane until it is stopped and idle, or given up.
func (t *Teller) run(l *lane) {
	stop := l.stop
	for t.ctx.Err() == nil {
		now := t.options.Clock.Now()
		l.mu.Lock()
		if l.busy {
			l.parked = true
			l.mu.Unlock()
			if t.wait(l, stop, Never) {
				stop = nil
			}
			continue
		}
		batch, until := l.machine.Next(now)
		l.busy = batch != nil
		if batch == nil && stop == nil && l.blocked == 0 && l.machine.Idle() {
			// Under the lock: a Post that comes later is refused, not lost.
			l.ended = true
			l.room.Broadcast()
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if batch != nil {
			t.apply(l, batch)
			continue
		}
		if t.wait(l, stop, until-now) {
			stop = nil
		}
	}
}

// ride runs the next batch, unless one is under way, and wakes the lane for what
// is left.
func (t *Teller) ride(l *lane) {
	l.mu.Lock()
	if l.busy {
		l.mu.Unlock()
		return // the lane looks again when that is done
	}
	batch, _ := l.machine.Next(t.options.Clock.Now())
	l.busy = batch != nil
	l.mu.Unlock()
	if batch != nil {
		t.carry(l, batch)
	}
	l.mu.Lock()
	more := l.parked || !l.machine.Idle()
	l.parked = false
	l.mu.Unlock()
	if more {
		l.poke()
	}
}

// carry applies a batch on a caller's goroutine. A book that panics ends the
// process, as it does on the lane's own: whoever serves the caller must not
// recover from it and leave the lane busy for ever.
func (t *Teller) carry(l *lane, batch *Batch) {
	defer func() {
		if p := recover(); p != nil {
			go panic(p)
			select {}
		}
	}()
	t.apply(l, batch)
}

// wait returns when there is something to do; stopped tells that it was asked
// to leave. Only a lane that has to wait for an instant starts a timer.
func (t *Teller) wait(l *lane, stop chan struct{}, micros int64) (stopped bool) {
	var due <-chan time.Time
	if micros < Never/2 {
		timer := time.NewTimer(time.Duration(micros) * time.Microsecond)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-l.wake:
	case <-due:
	case <-t.ctx.Done():
	case <-stop:
		return true
	}
	return false
}

func (t *Teller) apply(l *lane, batch *Batch) {
	hooks := &t.options.Hooks
	began := t.options.Clock.Now()
	watch := time.AfterFunc(t.options.Stall, func() { t.stalled(l, batch) })
	results, err := t.book.Apply(t.ctx, batch.Ops)
	watch.Stop()
	now := t.options.Clock.Now()
	if err != nil && hooks.Failed != nil {
		hooks.Failed(len(batch.Ops), err)
	} else if err == nil && hooks.Applied != nil {
		hooks.Applied(len(batch.Ops), now-began)
	}
	l.mu.Lock()
	healthy := l.machine.Healthy()
	completions := l.machine.Done(batch, results, err, now)
	changed := l.machine.Healthy() != healthy
	if taken := l.machine.keep.take(); len(taken) > 0 {
		// Before anybody is answered: no answer may say that nothing is charged
		// while only this process knows how to call it off (ENGINE 6).
		l.mu.Unlock()
		t.keep(l, taken)
		l.mu.Lock()
	}
	drops := l.machine.keep.drops()
	told := l.answer(completions)
	l.tellProbed()
	l.busy = false
	l.room.Broadcast()
	l.mu.Unlock()
	t.drop(drops)
	if changed && hooks.Closed != nil {
		hooks.Closed(l.number, healthy)
	}
	t.tell(told)
}

// answer wakes those who wait and returns what is left to tell without the lock,
// which the caller holds.
func (l *lane) answer(completions []Completion) (told []answered) {
	for i := range completions {
		c := &completions[i]
		w := l.waiters[c.Ticket]
		if w != nil {
			delete(l.waiters, c.Ticket)
			w.result, w.err = c.Result, c.Err
			if w.done != nil {
				close(w.done)
			}
		}
		if settles(c.Op.Verb) || w != nil && w.then != nil {
			told = append(told, answered{c, w})
		}
	}
	return told
}

// answered is a settlement, or what was posted, with its outcome; w is nil if
// nobody asked.
type answered struct {
	*Completion
	w *waiter
}

func (t *Teller) tell(told []answered) {
	for _, a := range told {
		lost := a.Result.Verdict == ledger.Missing || a.Result.Verdict == ledger.Invalid
		ends := settles(a.Op.Verb) && a.Op.Verb != ledger.Renew
		if dead := t.options.Hooks.DeadLetter; dead != nil && a.Err == nil && lost && ends {
			dead(a.Op, a.Result.Verdict)
		}
		if a.w != nil && a.w.then != nil {
			a.w.then(a.Result, a.Err)
		}
	}
}
