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
	row := r.Reservation
	if op.Verb == ledger.Move {
		a.tally.Moved++
		before := a.rows[row.ID]
		if before == nil {
			a.fail("only what is open is moved", "%s", row.ID)
			return
		}
		a.release(before)
		a.returned(before, nil)
		a.judge(op, r, before)
		a.take(row, true)
		return
	}
	if a.admitted[row.ID] != nil {
		if !op.Again || a.rows[row.ID] == nil {
			a.fail("an id is used once", "%s was admitted again", row.ID)
		}
		return
	}
	a.tally.Admitted++
	a.judge(op, r, nil)
	a.take(row, false)
}

// take books what a reservation holds now.
func (a *audit) take(row *ledger.Reservation, moved bool) {
	a.hold(row, 1)
	for i := range row.Holds {
		h := &row.Holds[i]
		if h.Kind == ledger.KindBucket && h.Taken != 0 && (!moved || h.Charges != ledger.MetricNone) {
			f := a.flow(h.Counter)
			f.take(row.ID, h.Taken, h.Limit, a.passed)
			if why := f.excess(a.passed); why != "" {
				a.fail("no interval has more than its bucket gives", "%s, %s of %q: %s", row.ID, h.Counter.Limit, h.Counter.Subject, why)
			}
		}
	}
	a.enter(row)
	a.rows[row.ID], a.admitted[row.ID] = row, row
}

func holdsOn(row *ledger.Reservation, c ledger.Counter) bool {
	return slices.ContainsFunc(row.Holds, func(h ledger.Hold) bool { return h.Counter == c })
}

// judge holds an admission against every check that it passed, by the audit's
// own figures before it.
func (a *audit) judge(op *ledger.Op, r *ledger.Result, moved *ledger.Reservation) {
	c := &op.Candidates[r.Candidate]
	if op.Generation != 0 && op.Generation < a.d.generations[op.Workspace] {
		a.fail("no decision on an old configuration", "%s: generation %d, in force %d", r.Reservation.ID, op.Generation, a.d.generations[op.Workspace])
	}
	if r.Reservation.Worst != c.Wants {
		a.fail("what is admitted is held", "%s: worst case %+v, wanted %+v", r.Reservation.ID, r.Reservation.Worst, c.Wants)
	}
	in := a.d.at
	if moved != nil {
		in = moved.At
	}
	for _, list := range [2][]ledger.Check{op.Checks, c.Checks} {
		for i := range list {
			check := &list[i]
			if moved != nil && (check.Wants == ledger.Requests || check.Wants == ledger.Slots) && holdsOn(moved, check.Counter) {
				continue // counted once (ORD-4)
			}
			if why := a.objection(check, c, in); why != "" {
				a.fail("no limit is passed", "%s was admitted against %s of %s: %s", r.Reservation.ID, check.Name, check.Scope, why)
			}
			a.holds(check, c, r.Reservation)
		}
	}
}

// holds: what a check reserves, the reservation holds.
func (a *audit) holds(check *ledger.Check, c *ledger.Candidate, row *ledger.Reservation) {
	want := c.Wants.Of(check.Wants)
	if want == 0 || check.Kind != ledger.KindGauge && check.Mode != ledger.Reserve {
		return
	}
	held := int64(0)
	for i := range row.Holds {
		if row.Holds[i].Counter == check.Counter {
			held += row.Holds[i].Held
		}
	}
	if held != want {
		a.fail("what is admitted is held", "%s holds %d on %s, not %d", row.ID, held, check.Name, want)
	}
}

func figures(used, held, want, amount int64) string {
	return fmt.Sprintf("used %d, held %d, wanted %d, amount %d", used, held, want, amount)
}

// objection says why a check should refuse; empty: it should not, or this is
// not the place to tell (a bucket is judged by its whole history, see flow).
func (a *audit) objection(check *ledger.Check, c *ledger.Candidate, at int64) string {
	want := c.Wants.Of(check.Wants)
	used, held := a.settled[check.Counter], a.held[check.Counter]
	amount := check.Amount
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
	if a.tally.RefusedBy == nil {
		a.tally.RefusedBy = map[string]int{}
	}
	a.tally.RefusedBy[string(check.Code)]++
	if op.Verb == ledger.Move || check.Kind == ledger.KindBucket {
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
	if a.objection(check, c, a.d.at) == "" {
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
	// ahead: a charge's admission lay in the future of the batch that wrote or
	// read it.
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
