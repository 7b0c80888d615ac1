// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/window"
)

// admission judges a request that was let in, or moved.
func (a *audit) admission(op *ledger.Op, r *ledger.Result) {
	id := r.Reservation.ID
	if op.Verb == ledger.Move {
		a.tally.Moved++
		b := a.bonds[id]
		if b == nil || !a.open[id] {
			a.fail("only what is open is moved", "%s", id)
			return
		}
		before := b.clone()
		a.hold(b, -1)
		a.read(op, r, before)
		a.returned(id, b)
		b.unbind()
		a.judge(op, r, before)
		a.take(op, r, b)
		return
	}
	if a.bonds[id] != nil {
		if !op.Again || !a.open[id] {
			a.fail("an id is used once", "%s was admitted again", id)
		}
		return
	}
	a.tally.Admitted++
	a.read(op, r, nil)
	a.judge(op, r, nil)
	b := &bond{at: a.d.at}
	a.bonds[id] = b
	a.take(op, r, b)
	a.enrol(op)
}

// take books what a request holds from now on.
func (a *audit) take(op *ledger.Op, r *ledger.Result, b *bond) {
	id := r.Reservation.ID
	already := len(b.dues) // of a request that moves: what it had
	b.bind(op, &op.Candidates[r.Candidate])
	a.hold(b, 1)
	for i := range b.dues {
		d := &b.dues[i]
		switch {
		case d.taken == 0 || d.once() && i < already:
		case d.kind == ledger.KindBucket:
			f := a.flow(d.counter)
			f.take(id, d.taken, d.limit, a.passed)
			if why := f.excess(a.passed); why != "" {
				a.fail("no interval has more than its bucket gives", "%s, %s of %q: %s", id, d.counter.Limit, d.counter.Subject, why)
			}
		case d.kind == ledger.KindSliding:
			a.enter(id, d)
		default:
		}
	}
	a.open[id] = true
	a.agrees(r.Reservation, b)
}

// agrees compares what a reservation says that it holds with its bond.
func (a *audit) agrees(row *ledger.Reservation, b *bond) {
	if row.Worst != b.worst {
		a.fail("what is admitted is held", "%s: worst case %+v, wanted %+v", row.ID, row.Worst, b.worst)
	}
	have := map[ledger.Counter]int64{}
	for i := range row.Holds {
		have[row.Holds[i].Counter] += row.Holds[i].Held
	}
	want := map[ledger.Counter]int64{}
	for i := range b.dues {
		want[b.dues[i].counter] += b.dues[i].held
	}
	for i := range b.dues {
		if c := b.dues[i].counter; have[c] != want[c] {
			a.fail("what is admitted is held", "%s holds %d on %s, not %d", row.ID, have[c], c.Limit, want[c])
		}
	}
	if len(have) != len(want) {
		a.fail("what is admitted is held", "%s holds on %d counters, not %d", row.ID, len(have), len(want))
	}
}

// enrol notes the user whom an admitted request named.
func (a *audit) enrol(op *ledger.Op) {
	for i := range op.Checks {
		check := &op.Checks[i]
		if check.Kind != ledger.KindRoster {
			continue
		}
		members := a.members[op.Workspace]
		if members == nil {
			members = map[string]bool{}
			a.members[op.Workspace] = members
		}
		if !members[check.Marker.Subject] {
			members[check.Marker.Subject] = true
			if int64(len(members)) > check.Amount {
				a.fail("no limit is passed", "%d users, at most %d", len(members), check.Amount)
			}
		}
	}
}

// windowed: a fixed check counts in the window that an instant lies in (BUD-3).
func (a *audit) windowed(check *ledger.Check, at int64) {
	if check.Kind != ledger.KindFixed {
		return
	}
	if c := check.Counter.Window; c > at || windowName(check, c) != windowName(check, at) || windowName(check, c) == windowName(check, c-1) {
		a.fail("a charge belongs to the window of its admission", "%s at %d counts in the window of %d", check.Name, at, c)
	}
}

// carried: an admission or a move is put off when it names other windows than its
// own, or does not know what its request holds; never else.
func (a *audit) carried(op *ledger.Op) {
	in := a.d.at
	if op.Verb == ledger.Move {
		b := a.bonds[op.Reservation.ID]
		in = b.at
		for i := range b.dues {
			c := b.dues[i].counter
			if !slices.ContainsFunc(op.Reservation.Holds, func(h ledger.Hold) bool { return h.Counter == c }) {
				return
			}
		}
	} else if op.Verb != ledger.Admit {
		return
	}
	lists := [][]ledger.Check{op.Checks}
	for i := range op.Candidates {
		lists = append(lists, op.Candidates[i].Checks)
	}
	for _, check := range slices.Concat(lists...) {
		if check.Kind == ledger.KindFixed && windowName(&check, check.Counter.Window) != windowName(&check, in) {
			return
		}
	}
	a.fail("nothing is put off without a reason", "verb %d of %s", op.Verb, op.ID)
}

// windowName names the window of an instant by the calendar of its zone.
func windowName(check *ledger.Check, at int64) string {
	if length := check.Window.Length; length > 0 {
		return fmt.Sprint(at / length)
	}
	local := time.UnixMicro(at).In(check.Window.Zone)
	switch check.Window.Period {
	case window.PeriodDay:
		return local.Format(time.DateOnly)
	case window.PeriodWeek:
		year, week := local.ISOWeek()
		return fmt.Sprint(year, week)
	default:
		return local.Format("2006-01")
	}
}

// read holds what a decision saw against the audit's own figures before it. What
// a request that moves holds itself is out of them.
func (a *audit) read(op *ledger.Op, r *ledger.Result, moved *bond) {
	in := a.d.at
	if moved != nil {
		in = moved.at
	}
	for i := range r.Readings {
		s := &r.Readings[i]
		c := s.Check.Counter
		used, held, amount := a.settled[c], a.held[c], s.Check.Amount
		switch s.Check.Kind {
		case ledger.KindFixed:
			amount += a.raised[c]
			a.windowed(s.Check, in)
		case ledger.KindFunds:
			used -= a.credits[c]
		case ledger.KindGauge:
			if moved != nil && moved.has(s.Check) {
				continue
			}
		case ledger.KindRoster:
			used = int64(len(a.members[op.Workspace]))
		case ledger.KindSliding:
			a.slides(s, moved)
			continue
		default:
			continue
		}
		if s.Used != used || s.Held != held || s.Amount != amount {
			a.fail("a decision sees what was used", "%s, %s of %q: used %d, held %d of %d; want %d, %d of %d",
				op.ID, s.Check.Name, c.Subject, s.Used, s.Held, s.Amount, used, held, amount)
		}
	}
}

// judge holds an admission against every check that it passed, by the audit's
// own figures before it.
func (a *audit) judge(op *ledger.Op, r *ledger.Result, moved *bond) {
	c := &op.Candidates[r.Candidate]
	if op.Generation != 0 && op.Generation < a.d.generations[op.Workspace] {
		a.fail("no decision on an old configuration", "%s: generation %d, in force %d", r.Reservation.ID, op.Generation, a.d.generations[op.Workspace])
	}
	in := a.d.at
	if moved != nil {
		in = moved.at
	}
	for _, list := range [2][]ledger.Check{op.Checks, c.Checks} {
		for i := range list {
			check := &list[i]
			a.windowed(check, in)
			if moved != nil && moved.has(check) {
				continue // counted once (ORD-4)
			}
			if why := a.objection(check, c, in); why != "" {
				a.fail("no limit is passed", "%s was admitted against %s of %s: %s", r.Reservation.ID, check.Name, check.Scope, why)
			}
		}
	}
}

// has tells whether a request has been counted by a check of requests or slots.
func (b *bond) has(check *ledger.Check) bool {
	return slices.ContainsFunc(b.dues, func(d due) bool { return d.once() && d.counter == check.Counter })
}

func figures(used, held, want, amount int64) string {
	return fmt.Sprintf("used %d, held %d, wanted %d, amount %d", used, held, want, amount)
}

// objection says why a check should refuse; empty: it should not, or this is
// not the place to tell (a bucket is judged by its whole history, see flow).
func (a *audit) objection(check *ledger.Check, c *ledger.Candidate, at int64) string {
	want := c.Wants.Of(check.Wants)
	used, held := a.settled[check.Counter], a.held[check.Counter]
	amount := check.Amount + a.raised[check.Counter]
	switch check.Kind {
	case ledger.KindPolicy:
		if check.Amount == 0 || at >= check.Amount {
			return "policy"
		}
		return ""
	case ledger.KindDays:
		held = 0
		used = a.calendar(check.Counter).sum(check.Zone, at, check.Span)
	case ledger.KindFunds:
		used -= a.credits[check.Counter]
		amount = check.Credit
	case ledger.KindSliding:
		used, held = a.pane(check.Counter).sum(a.passed, check.Window.Length), 0
	case ledger.KindRoster:
		members := a.members[check.Counter.Workspace]
		if !members[check.Marker.Subject] && int64(len(members)) >= check.Amount {
			return fmt.Sprintf("%d users of %d", len(members), check.Amount)
		}
		return ""
	case ledger.KindBucket:
		return ""
	default:
	}
	if c.Free && check.Wants == ledger.Spend && check.Kind != ledger.KindFunds {
		return "" // PRC-4
	}
	switch {
	case check.Mode == ledger.Observe && used >= amount:
		return "spent: " + figures(used, held, want, amount)
	case check.Mode == ledger.Reserve && check.Kind == ledger.KindFunds && used >= amount:
		return "no funds: " + figures(used, held, want, amount)
	case (check.Mode == ledger.Reserve || check.Mode == ledger.Take) && used+held+want > amount:
		return "does not fit: " + figures(used, held, want, amount)
	default:
		return ""
	}
}

// refusal judges a request that was turned away: it took nothing, and the check
// that is named stands against it by the audit's figures too.
func (a *audit) refusal(op *ledger.Op, r *ledger.Result) {
	a.tally.Refused++
	if op.Verb == ledger.Admit && op.Again {
		a.tally.Tombstones++
		a.tombstones[op.ID] = true
	}
	check := r.Refusal.Check
	in := a.d.at
	if op.Verb == ledger.Move {
		b := a.bonds[op.Reservation.ID]
		in = b.at
		if b.has(check) {
			a.fail("nobody is refused without a reason", "%s was counted by %s before", op.Reservation.ID, check.Name)
		}
		a.hold(b, -1) // it does not stand in its own way
		defer a.hold(b, 1)
		a.read(op, r, b)
	} else {
		a.read(op, r, nil)
	}
	if a.tally.RefusedBy == nil {
		a.tally.RefusedBy = map[string]int{}
	}
	a.tally.RefusedBy[string(check.Code)]++
	if check.Kind == ledger.KindBucket || op.Verb == ledger.Move && check.Kind == ledger.KindSliding {
		return
	}
	if check.Kind == ledger.KindDays && a.calendar(check.Counter).ahead {
		return // a clock that was set back has moved its days (ENGINE 7)
	}
	c := &ledger.Candidate{}
	if len(op.Candidates) > 0 {
		c = &op.Candidates[r.Candidate]
	}
	if check.Kind == ledger.KindSliding {
		a.slack(check, c)
		return
	}
	if a.objection(check, c, in) == "" {
		a.fail("nobody is refused without a reason", "%s was refused by %s of %s: used %d, held %d, wanted %d, amount %d",
			op.ID, check.Name, check.Scope, r.Refusal.Reading.Used, r.Refusal.Reading.Held, r.Refusal.Reading.Wanted, check.Amount)
	}
}

// calendar is what one key spent by local date, kept as single charges so that
// any zone's days are a plain sum.
type calendar struct {
	zone    string
	charges []dated
	sums    map[window.Day]int64
	// ahead: a charge's admission lay in the future of the batch that wrote, read or
	// reset it.
	ahead bool
}

type dated struct{ at, amount int64 }

func (a *audit) calendar(c ledger.Counter) *calendar {
	k := a.days[c]
	if k == nil {
		k = &calendar{}
		a.days[c] = k
	}
	return k
}

func (k *calendar) add(at, amount int64) {
	k.charges = append(k.charges, dated{at, amount})
	k.sums = nil
}

// empty resets the days at an instant: what was charged counts no more. What was
// admitted at a later one, before the clock was set back, may count again once the
// zone changes: the quarters of before the reset are told by their instants.
func (k *calendar) empty(at int64) {
	k.ahead = k.ahead || slices.ContainsFunc(k.charges, func(c dated) bool { return c.at > at })
	k.charges, k.sums = nil, nil
}

// sum adds what was admitted on the span of local dates that ends at an instant.
func (k *calendar) sum(zone *time.Location, at int64, span int32) int64 {
	if zone == nil {
		zone = time.UTC
	}
	today := window.DayAt(at, zone)
	if k.sums == nil || k.zone != zone.String() {
		k.zone, k.sums = zone.String(), map[window.Day]int64{}
		for _, c := range k.charges {
			k.sums[window.DayAt(c.at, zone)] += c.amount
		}
	}
	total := int64(0)
	for day, amount := range k.sums {
		if day > today {
			k.ahead = true
		}
		if day <= today && day > today-window.Day(span) {
			total += amount
		}
	}
	return total
}
