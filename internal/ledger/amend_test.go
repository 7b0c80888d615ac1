// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/window"
)

// amend is one entry over checks; the amount is in every metric.
func amend(n int, kind ledger.EventKind, amount int64, checks ...ledger.Check) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Amend, ID: id(n), Workspace: workspace, Checks: checks,
		Entry: &ledger.Entry{
			Kind: kind, Reason: "because", Actor: "ada",
			Amounts: ledger.Amounts{Spend: amount, Tokens: amount, Uncached: amount},
		},
	}
}

func TestARaiseAddsToThisWindowAlone(t *testing.T) {
	// BUD-9, BUD-2.
	b := newBook()
	check := budget("b", ledger.Reserve, dollar)
	b.charge(t, 1, dollar, check)
	r := expectRefusal(t, b.one(start, admit(2, ledger.Amounts{Spend: 1}, check)), "budget_exceeded")
	if r.Reading.Amount != dollar {
		t.Fatalf("amount %d", r.Reading.Amount)
	}
	raised := expect(t, b.one(start, amend(3, ledger.EventRaise, dollar/2, check)), ledger.Done)
	if got := raised.Readings[0]; got.Amount != dollar+dollar/2 || got.Used != dollar || got.Remaining() != dollar/2 {
		t.Fatalf("reading %+v", got)
	}
	admitted := expect(t, b.one(start, admit(4, ledger.Amounts{Spend: dollar / 2}, check)), ledger.Admitted)
	if got := admitted.Reservation.Checks[0].Amount; got != dollar+dollar/2 {
		t.Fatalf("recorded amount %d", got)
	}
	expectRefusal(t, b.one(start, admit(5, ledger.Amounts{Spend: 1}, check)), "budget_exceeded")
	next := admit(6, ledger.Amounts{Spend: dollar + 1}, check)
	next.Name(start + hour)
	refusal := expectRefusal(t, b.one(start+hour, next), "budget_exceeded")
	if refusal.Reading.Amount != dollar || refusal.Reading.Reason != ledger.ReasonLarger {
		t.Fatalf("the next window: %+v", refusal.Reading)
	}
	again := amend(7, ledger.EventRaise, dollar, check)
	carried := expect(t, b.one(start+hour, again), ledger.Carry)
	expect(t, b.one(start+hour, again.Carried(&carried)), ledger.Done)
	expectBalanced(t, b, start+hour)
	b.counters[check.Counter].Raised++
	if d := b.verify(start + hour); len(d) != 1 || d[0].Figure != "raised" || d[0].Want != dollar/2 {
		t.Fatalf("differences %+v", d)
	}
}

func TestAnEntryIsBookedOnceByItsID(t *testing.T) {
	for _, kind := range []ledger.EventKind{ledger.EventRaise, ledger.EventReset, ledger.EventSeed} {
		b := newBook()
		check := budget("b", ledger.Reserve, dollar)
		b.charge(t, 1, 10, check)
		op := amend(2, kind, 5, check)
		expect(t, b.one(start, op), ledger.Done)
		events, state := len(b.events), b.state(check.Counter)
		expect(t, b.one(start+1, op), ledger.Already)
		again := *op
		again.Again = true
		expect(t, b.one(start+2, &again), ledger.Already)
		if got := b.state(check.Counter); len(b.events) != events || got.Settled != state.Settled || got.Raised != state.Raised {
			t.Fatalf("%s was booked twice: %+v", kind, got)
		}
		e := b.events[events-1]
		if e.Kind != kind || e.ID != op.ID || e.Reason != "because" || e.Actor != "ada" || e.Spend != 0 || len(e.Charges) != 1 {
			t.Fatalf("event %+v", e)
		}
		if n := len(b.quarters); n != 1 {
			t.Fatalf("%s wrote a quarter: %d", kind, n)
		}
	}
}

func TestEntriesThatCannotBeAreInvalid(t *testing.T) {
	fixed := budget("b", ledger.Reserve, dollar)
	many := make([]ledger.Check, 65)
	for i := range many {
		many[i] = budget(string(rune('a'+i)), ledger.Reserve, dollar)
	}
	other := amend(1, ledger.EventReset, 0, fixed)
	other.Checks[0].Counter.Workspace = "ws_b"
	anonymous := amend(1, ledger.EventReset, 0, fixed)
	anonymous.ID = ledger.ID{}
	for name, op := range map[string]*ledger.Op{
		"nothing":        amend(1, ledger.EventReset, 0),
		"too many":       amend(1, ledger.EventReset, 0, many...),
		"raise by 0":     amend(1, ledger.EventRaise, 0, fixed),
		"raise by less":  amend(1, ledger.EventRaise, -1, fixed),
		"raise of days":  amend(1, ledger.EventRaise, 1, capOf(1, 1, nil, 1)),
		"raise twice":    amend(1, ledger.EventRaise, 1, fixed, fixed),
		"seed by less":   amend(1, ledger.EventSeed, -1, fixed),
		"seed a bucket":  amend(1, ledger.EventSeed, 1, rpm(1)),
		"reset slots":    amend(1, ledger.EventReset, 0, slots(1)),
		"reset funds":    amend(1, ledger.EventReset, 0, funds(ledger.Observe, 1)),
		"another kind":   amend(1, ledger.EventTopUp, 1, fixed),
		"another's":      other,
		"without an id":  anonymous,
		"without a kind": amend(1, 0, 1, fixed),
	} {
		if v := newBook().one(start, op).Verdict; v != ledger.Invalid {
			t.Errorf("%s: verdict %d", name, v)
		}
	}
}

func TestAResetKeepsWhatIsHeldAndForgetsWhatWasCharged(t *testing.T) {
	// BUD-9: of three requests one was settled, one was swept, one runs.
	b := newBook()
	checks := []ledger.Check{budget("b", ledger.Reserve, 10*dollar), capOf(1, 10*dollar, nil, 1), capOf(7, 10*dollar, nil, 1), tpm(1000), rule(1000)}
	var rows []*ledger.Reservation
	for n := range 3 {
		rows = append(rows, expect(t, b.one(start, admit(n+1, wants(3*dollar, 100, 100), checks...)), ledger.Admitted).Reservation)
	}
	b.one(start+1, settle(rows[0], used(dollar, 100)))
	b.one(start+1, end(ledger.Sweep, rows[1]))
	result := expect(t, b.one(start+2, amend(9, ledger.EventReset, 0, checks...)), ledger.Done)
	for i, r := range result.Readings {
		if r.Used != 0 || r.Remaining() != checks[i].Amount-r.Held {
			t.Errorf("%s: %+v", r.Check.Name, r)
		}
	}
	if held := result.Readings[0].Held; held != 3*dollar {
		t.Errorf("held %d", held)
	}
	expectBalanced(t, b, start+2)
	// What the swept one did not use, and what the running one took before, is
	// given back to nobody; what it used beyond its estimate counts.
	expect(t, b.one(start+3, settle(rows[1], used(dollar, 50))), ledger.Done)
	expect(t, b.one(start+3, settle(rows[2], used(2*dollar, 150))), ledger.Done)
	read := b.one(start+3, &ledger.Op{Verb: ledger.Read, Workspace: workspace, Checks: checks})
	for i, want := range []int64{2 * dollar, 2 * dollar, 2 * dollar, 50, 50} {
		if got := read.Readings[i].Used; got != want {
			t.Errorf("%s: used %d, want %d", checks[i].Name, got, want)
		}
	}
	expectBalanced(t, b, start+3)
	// A correction of what was charged before changes nothing, of the rest it counts.
	for i, want := range []int64{2 * dollar, dollar} {
		op := end(ledger.Adjust, b.calls[2*i].Reservation())
		op.Entry = &ledger.Entry{Amounts: ledger.Amounts{Spend: -dollar}}
		expect(t, b.one(start+4, op), ledger.Done)
		if got := b.state(checks[0].Counter).Settled; got != want {
			t.Errorf("settled %d, want %d", got, want)
		}
	}
	expectBalanced(t, b, start+4)
}

// rule is a rate rule on tokens, in a window of a minute.
func rule(amount int64) ledger.Check {
	return ledger.Check{
		Counter: counter("rule"), Kind: ledger.KindSliding, Mode: ledger.Take, Wants: ledger.Input, Charges: ledger.Tokens,
		Amount: amount, Window: window.Spec{Length: minute}, Code: "rate_limited", Name: "rule",
	}
}

// afterReset sums what was charged to a days counter since its last reset, by
// local date of the admissions. Events are in the order of their decisions.
func (b *book) afterReset(c ledger.Counter, zone *time.Location) map[window.Day]int64 {
	sums := map[window.Day]int64{}
	for i := range b.events {
		e := &b.events[i]
		for _, charge := range e.Charges {
			if charge.Counter != c {
				continue
			}
			if e.Kind == ledger.EventReset {
				clear(sums)
				continue
			}
			sums[window.DayAt(e.AdmittedAt, zone)] += charge.Amount
		}
	}
	maps.DeleteFunc(sums, func(_ window.Day, amount int64) bool { return amount == 0 })
	return sums
}

func TestNoAmendmentUnbalancesTheBooks(t *testing.T) {
	// BUD-8, BUD-9, RES-7: counter = sum of events with raises, resets and seeds
	// among all other operations; a hard limit is passed by no more than was
	// raised; no use is ever below zero; and days that are derived anew in another
	// zone are those of the charges since the reset.
	auckland, err := window.Zone("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(true)
		entries := 0
		amendment := func(t *rapid.T) {
			checks := slices.Concat(m.common(), own("m"), []ledger.Check{rule(700)})
			for i := range checks {
				if checks[i].Kind == ledger.KindFixed {
					checks[i].Counter.Window, _ = checks[i].Window.Bounds(m.at)
				}
			}
			kind := rapid.SampledFrom([]ledger.EventKind{ledger.EventRaise, ledger.EventReset, ledger.EventReset, ledger.EventSeed}).Draw(t, "kind")
			var some []ledger.Check
			for _, c := range checks {
				able := c.Kind == ledger.KindFixed || kind == ledger.EventReset && c.Kind != ledger.KindGauge && c.Kind != ledger.KindFunds
				able = able && (kind != ledger.EventSeed || c.Counter.Limit == "soft")
				double := slices.ContainsFunc(some, func(d ledger.Check) bool { return d.Counter == c.Counter })
				if able && !double && rapid.Bool().Draw(t, c.Counter.Limit) {
					some = append(some, c)
				}
			}
			if len(some) == 0 {
				return
			}
			entries++
			if v := m.one(m.at, amend(5000+entries, kind, rapid.Int64Range(1, dollar).Draw(t, "amount"), some...)).Verdict; v != ledger.Done {
				t.Fatalf("verdict %d", v)
			}
		}
		t.Repeat(map[string]func(*rapid.T){"batch": m.step, "amend": amendment, "": func(t *rapid.T) {
			m.check(t)
			for c, s := range m.counters {
				most := map[string]int64{"hard": 5 * dollar, "of m": 3 * dollar, "of n": 3 * dollar, "of o": 3 * dollar}[c.Limit]
				if s.Settled < 0 || most > 0 && s.Settled+s.Held > most+s.Raised {
					t.Fatalf("%s: settled %d, held %d, raised %d", c.Limit, s.Settled, s.Held, s.Raised)
				}
			}
			m.rebuilt(t, auckland)
		}})
	})
}

// rebuilt derives a copy of the days anew, and compares each with the events.
func (m *machine) rebuilt(t *rapid.T, zone *time.Location) {
	check := capOf(30, dollar, zone, 9)
	s := m.counters[check.Counter]
	if s == nil || s.Days == nil {
		return
	}
	row := s.Clone()
	check.Rebuild(row, m.quarters)
	want := m.afterReset(check.Counter, zone)
	for back, have := range row.Days.Sums {
		date := row.Days.Last - window.Day(back)
		if have != want[date] {
			t.Fatalf("%s in %s: have %d, want %d", date, zone, have, want[date])
		}
	}
}
