// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
)

// audit keeps its own books out of what batches answered and wrote, and holds
// every decision against them. It is the plainest way of saying what must be
// true, not the fastest, and calls none of the ledger's arithmetic.
type audit struct {
	tally *Tally
	rows  map[ledger.ID]*ledger.Reservation // open, tombstones not
	// admitted are all reservations that ever were, as they were last.
	admitted   map[ledger.ID]*ledger.Reservation
	tombstones map[ledger.ID]bool

	held, settled, credits map[ledger.Counter]int64
	days                   map[ledger.Counter]*calendar
	buckets                map[ledger.Counter]*flow
	rules                  map[ledger.Counter]*pane
	// passed is how far the book's clock has gone forwards: a bucket never refills
	// for more than that and nothing slides out of a window sooner, however the
	// clock is set. stepped: it was set back at least once.
	passed  int64
	stepped bool
	events  map[eventKey]bool
	// endings counts the events that end a reservation; net is what all of its
	// events charge together.
	endings map[ledger.ID]int
	net     map[ledger.ID]int64
	tokens  map[ledger.ID]int64

	d    *decision
	next int // of d.changes.Events: not yet taken
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
		tally: t, rows: map[ledger.ID]*ledger.Reservation{}, admitted: map[ledger.ID]*ledger.Reservation{}, tombstones: map[ledger.ID]bool{},
		held: map[ledger.Counter]int64{}, settled: map[ledger.Counter]int64{}, credits: map[ledger.Counter]int64{},
		days: map[ledger.Counter]*calendar{}, buckets: map[ledger.Counter]*flow{}, rules: map[ledger.Counter]*pane{},
		events: map[eventKey]bool{}, endings: map[ledger.ID]int{}, net: map[ledger.ID]int64{}, tokens: map[ledger.ID]int64{},
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
	if d.at > d.before && d.before != 0 {
		a.passed += d.at - d.before
	}
	a.stepped = a.stepped || d.at < d.before
	a.tally.Batches++
	if len(d.results) != len(d.ops) {
		a.fail("results", "%d results of %d operations", len(d.results), len(d.ops))
		return
	}
	for i, op := range d.ops {
		a.step(op, &d.results[i], a.eventsOf(int32(i)))
	}
	if a.next != len(d.changes.Events) {
		a.fail("events belong to an operation", "%d of %d do not", len(d.changes.Events)-a.next, len(d.changes.Events))
	}
	for _, c := range d.changes.Counters {
		a.compare(c, b.counters[c])
	}
	if len(b.open) != len(a.rows)+len(a.tombstones) {
		a.fail("open reservations", "the book has %d, the answers say %d and %d tombstones", len(b.open), len(a.rows), len(a.tombstones))
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
		a.done(op, events)
	case ledger.Stale:
		a.tally.Stale++
	case ledger.Carry:
		a.tally.Carried++
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
	if e.Kind <= ledger.EventUndone && e.Attempt == 0 {
		a.endings[e.ID]++
		if n := a.endings[e.ID]; n > 1 {
			a.fail("a reservation ends once", "%s has %d endings", e.ID, n)
		}
	}
	for i := range e.Charges {
		c := &e.Charges[i]
		if c.Credit {
			a.credits[c.Counter] += c.Amount
			continue
		}
		a.settled[c.Counter] += c.Amount
		if c.Kind == ledger.KindDays {
			a.calendar(c.Counter).add(e.AdmittedAt, c.Amount)
		}
	}
}

// compare holds a row that a batch wrote against the audit's own figures: held
// is what is open, settled is what events charged (RES-7).
func (a *audit) compare(c ledger.Counter, s *ledger.State) {
	if s == nil {
		s = &ledger.State{}
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
	case ledger.Settle, ledger.Void, ledger.Undo, ledger.Sweep:
	default:
		return
	}
	id := op.ID
	if op.Reservation != nil {
		id = op.Reservation.ID
	}
	row := a.rows[id]
	if row == nil {
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
	a.charged(row, events)
	a.release(row)
	a.returned(row, events)
	delete(a.rows, id)
}

// late takes what came after the end: a tombstone's making and going, or the
// real usage of a request that was swept (RES-2).
func (a *audit) late(op *ledger.Op, id ledger.ID, events []ledger.Event) {
	switch {
	case len(events) > 0:
		a.tally.Corrected++
		if row := a.admitted[id]; row != nil {
			a.corrected(row, events)
		}
	case op.Verb == ledger.Sweep:
		delete(a.tombstones, id)
	default:
		a.tally.Tombstones++
		a.tombstones[id] = true
	}
}

// charged holds the events of an ending against the reservation: each counter
// that bears an attempt gets it whole, and no other gets anything.
func (a *audit) charged(row *ledger.Reservation, events []ledger.Event) {
	for i := range events {
		e := &events[i]
		due := map[ledger.Counter]int64{}
		for j := range row.Holds {
			h := &row.Holds[j]
			own := h.Model != "" && (h.Model != e.Model || h.Provider != e.Provider)
			if own || h.Kind == ledger.KindBucket || h.Kind == ledger.KindSliding || h.Kind == ledger.KindGauge {
				continue
			}
			switch h.Charges {
			case ledger.Spend:
				due[h.Counter] = e.Spend
			case ledger.Tokens:
				due[h.Counter] = e.Tokens
			default:
			}
		}
		for j := range e.Charges {
			c := &e.Charges[j]
			if due[c.Counter] != c.Amount {
				a.fail("a charge reaches its counters", "%s charged %d to %s, not %d", e.ID, c.Amount, c.Counter.Limit, due[c.Counter])
			}
			delete(due, c.Counter)
		}
		for c, amount := range due {
			if amount != 0 {
				a.fail("a charge reaches its counters", "%s charged nothing to %s, not %d", e.ID, c.Limit, amount)
			}
		}
	}
}

func (a *audit) hold(row *ledger.Reservation, sign int64) {
	for i := range row.Holds {
		if h := &row.Holds[i]; h.Held != 0 {
			a.held[h.Counter] += sign * h.Held
		}
	}
}

func (a *audit) release(row *ledger.Reservation) { a.hold(row, -1) }
