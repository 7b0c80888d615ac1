// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
)

// audit keeps its own books out of what operations asked for and what batches
// answered and wrote, and holds every decision against them. It is the plainest
// way of saying what must be true, not the fastest, and calls none of the ledger's
// arithmetic. That the operations ask for what is declared is held apart (demand).
type audit struct {
	tally *Tally
	open  map[ledger.ID]bool // tombstones not
	// bonds are of all requests that were ever admitted.
	bonds      map[ledger.ID]*bond
	tombstones map[ledger.ID]bool

	held, settled, credits, raised map[ledger.Counter]int64
	// resets are the instants of the last one of each counter.
	resets  map[ledger.Counter]int64
	days    map[ledger.Counter]*calendar
	buckets map[ledger.Counter]*flow
	rules   map[ledger.Counter]*pane
	told    map[ledger.Counter]told
	members map[string]map[string]bool // named users by workspace
	// passed is how far the book's clock has gone forwards: a bucket never refills
	// for more than that and nothing slides out of a window sooner, however the
	// clock is set. stepped: it was set back at least once.
	passed  int64
	stepped bool
	last    int64 // the instant of the last batch
	events  map[eventKey]bool
	// endings counts the events that end a reservation; net is what all of its
	// events charge together, adjusted what operators added to that.
	endings  map[ledger.ID]int
	net      map[ledger.ID]int64
	tokens   map[ledger.ID]int64
	adjusted map[ledger.ID]int64
	// corrections counts the operators' corrections of a request.
	corrections map[ledger.ID]int
	// booked are top-ups and amendments.
	booked map[ledger.ID]int

	d       *decision
	next    int      // of d.changes.Events: not yet taken
	notices []string // that the operation has to bring
	// rule is the first that did not hold.
	rule, what string
}

type eventKey struct {
	id      ledger.ID
	attempt int32
	kind    ledger.EventKind
}

func newAudit(t *Tally) *audit {
	return &audit{
		tally: t, open: map[ledger.ID]bool{}, bonds: map[ledger.ID]*bond{}, tombstones: map[ledger.ID]bool{},
		held: map[ledger.Counter]int64{}, settled: map[ledger.Counter]int64{}, credits: map[ledger.Counter]int64{},
		raised: map[ledger.Counter]int64{}, resets: map[ledger.Counter]int64{}, told: map[ledger.Counter]told{},
		days: map[ledger.Counter]*calendar{}, buckets: map[ledger.Counter]*flow{}, rules: map[ledger.Counter]*pane{},
		members: map[string]map[string]bool{}, events: map[eventKey]bool{}, endings: map[ledger.ID]int{},
		net: map[ledger.ID]int64{}, tokens: map[ledger.ID]int64{}, adjusted: map[ledger.ID]int64{}, corrections: map[ledger.ID]int{}, booked: map[ledger.ID]int{},
	}
}

func (a *audit) fail(rule, format string, args ...any) {
	if a.rule == "" {
		a.rule, a.what = rule, fmt.Sprintf(format, args...)
	}
}

// decided takes one committed batch, operation by operation, and compares the
// rows that it left behind.
func (a *audit) decided(b *book, d *decision) {
	a.d, a.next = d, 0
	if d.at > a.last && a.last != 0 {
		a.passed += d.at - a.last
	}
	a.stepped = a.stepped || d.at < a.last
	a.last = d.at
	a.tally.Batches++
	if len(d.results) != len(d.ops) {
		a.fail("results", "%d results of %d operations", len(d.results), len(d.ops))
		return
	}
	for i, op := range d.ops {
		a.step(op, &d.results[i], a.eventsOf(int32(i)))
		a.warned(int32(i))
	}
	if a.next != len(d.changes.Events) {
		a.fail("events belong to an operation", "%d of %d do not", len(d.changes.Events)-a.next, len(d.changes.Events))
	}
	for _, c := range d.changes.Counters {
		a.compare(c, b.counters[c])
	}
	if len(b.open) != len(a.open)+len(a.tombstones) {
		a.fail("open reservations", "the book has %d, the answers say %d and %d tombstones", len(b.open), len(a.open), len(a.tombstones))
	}
}

func (a *audit) eventsOf(place int32) []ledger.Event {
	from := a.next
	for a.next < len(a.d.changes.Events) && a.d.changes.Events[a.next].Place == place {
		a.next++
	}
	return a.d.changes.Events[from:a.next]
}

// step takes one operation's result and the events that it wrote.
func (a *audit) step(op *ledger.Op, r *ledger.Result, events []ledger.Event) {
	for i := range events {
		a.event(&events[i])
	}
	changed := r.Verdict == ledger.Done && op.Verb != ledger.Read && op.Verb != ledger.Renew
	if len(events) > 0 && !changed {
		a.fail("a refused request consumes nothing", "verb %d, verdict %d wrote %d events", op.Verb, r.Verdict, len(events))
	}
	switch r.Verdict {
	case ledger.Admitted:
		a.admission(op, r)
	case ledger.Refused:
		a.refusal(op, r)
	case ledger.Done:
		if op.Verb == ledger.Read {
			a.tally.Looked++
			a.read(op, r, nil)
		}
		a.done(op, events)
	case ledger.Stale:
		a.tally.Stale++
	case ledger.Carry:
		a.tally.Carried++
		a.carried(op)
	case ledger.Already, ledger.Missing:
	case ledger.Invalid:
		a.fail("operations are valid", "verb %d of %s is invalid", op.Verb, op.ID)
	}
}

// event books what one event charges.
func (a *audit) event(e *ledger.Event) {
	key := eventKey{e.ID, e.Attempt, e.Kind}
	if a.events[key] {
		a.fail("an event happens once", "%s %s, attempt %d, twice", e.ID, e.Kind, e.Attempt)
	}
	a.events[key] = true
	a.net[e.ID] += e.Spend
	a.tokens[e.ID] += e.Tokens
	if e.Kind > ledger.EventCorrection {
		a.booked[e.ID]++
	}
	if e.Kind <= ledger.EventUndone && e.Attempt == 0 {
		a.endings[e.ID]++
		if n := a.endings[e.ID]; n > 1 {
			a.fail("a reservation ends once", "%s has %d endings", e.ID, n)
		}
	}
	for i := range e.Charges {
		c := &e.Charges[i]
		switch {
		case c.Credit:
			a.credits[c.Counter] += c.Amount
		case c.Raise:
			a.raised[c.Counter] += c.Amount
		default:
			a.settled[c.Counter] += c.Amount
			if c.Kind == ledger.KindDays && e.Kind != ledger.EventReset {
				a.calendar(c.Counter).add(e.AdmittedAt, c.Amount)
			}
		}
	}
}

// compare holds a row that a batch wrote against the audit's own figures: held
// is what is open, settled is what events charged (RES-7).
func (a *audit) compare(c ledger.Counter, s *ledger.State) {
	if s == nil {
		s = &ledger.State{}
	}
	if s.Kind == ledger.KindRoster {
		a.enrolled(c, s)
		return
	}
	if s.Held < 0 || s.Deficit < 0 {
		a.fail("held is never negative", "%s of %q: held %d, deficit %d", c.Limit, c.Subject, s.Held, s.Deficit)
	}
	if s.Held != a.held[c] {
		a.fail("held is what is open", "%s of %q, window %d: held %d, open reservations hold %d", c.Limit, c.Subject, c.Window, s.Held, a.held[c])
	}
	if s.Settled != a.settled[c] || s.Credits != a.credits[c] {
		a.fail("settled is what events charged", "%s of %q, window %d: settled %d, credits %d; events say %d and %d",
			c.Limit, c.Subject, c.Window, s.Settled, s.Credits, a.settled[c], a.credits[c])
	}
	if s.Raised != a.raised[c] {
		a.fail("a window is raised by its entries", "%s of %q, window %d: raised %d, want %d", c.Limit, c.Subject, c.Window, s.Raised, a.raised[c])
	}
}

// enrolled holds the rows of a roster against those who were named (KEY-7).
func (a *audit) enrolled(c ledger.Counter, s *ledger.State) {
	members := a.members[c.Workspace]
	if c.Subject == "" && s.Settled != int64(len(members)) || c.Subject != "" && (s.Settled != 1 || !members[c.Subject]) {
		a.fail("a user is counted once", "%s %q counts %d of %d members", c.Limit, c.Subject, s.Settled, len(members))
	}
}

// done takes an operation that was carried out.
func (a *audit) done(op *ledger.Op, events []ledger.Event) {
	switch op.Verb {
	case ledger.Renew:
		a.tally.Renewed++
		return
	case ledger.Fund:
		a.tally.Funded++
		return
	case ledger.Amend:
		a.amended(op, events)
		return
	case ledger.Settle, ledger.Void, ledger.Undo, ledger.Sweep, ledger.Adjust:
	default:
		return
	}
	id := op.ID
	if op.Reservation != nil {
		id = op.Reservation.ID
	}
	if !a.open[id] {
		a.late(op, id, events)
		return
	}
	if len(events) == 0 || events[0].ID != id || events[0].Kind > ledger.EventUndone {
		a.fail("a reservation ends once", "%s ended without an event of it", id)
		return
	}
	switch events[0].Kind {
	case ledger.EventSettled:
		a.tally.Settled++
	case ledger.EventSwept:
		a.tally.Swept++
	case ledger.EventVoided:
		a.tally.Voided++
	default:
		a.tally.Undone++
	}
	b := a.bonds[id]
	a.hold(b, -1)
	a.charged(op, b, events)
	delete(a.open, id)
}

// late takes what came after the end: a tombstone's making and going, the real
// usage of a request that was swept (RES-2), or an operator's correction.
func (a *audit) late(op *ledger.Op, id ledger.ID, events []ledger.Event) {
	switch {
	case len(events) > 0:
		b := a.bonds[id]
		if op.Verb == ledger.Adjust {
			a.tally.Adjusted++
		} else {
			a.tally.Corrected++
		}
		if b == nil || len(events) != 1 || b.ended == 0 {
			a.fail("what has ended is corrected", "%s", id)
			return
		}
		if op.Verb != ledger.Adjust && !b.swept {
			a.fail("a reservation ends once", "%s was settled, and was not swept", id)
		}
		a.corrected(op, b, &events[0])
	case op.Verb == ledger.Sweep:
		delete(a.tombstones, id)
	default:
		a.tally.Tombstones++
		a.tombstones[id] = true
	}
}
