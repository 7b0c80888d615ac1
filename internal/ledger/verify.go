// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/window"
)

// verifiedDays are the local dates that a days counter is compared on: what the
// longest cap can see. Older ones may have left the row.
const verifiedDays = 30

// Verifier recomputes counters from what is written of them: a money or token
// counter is its closings and the events that name it, held amounts and gauges
// are the open reservations (RES-7). Feed it one snapshot, in this order:
// counters, reservations, closings, events.
//
// Single days are not compared where a clock that was set back by more than a
// day has moved them (Days.Moved); their total is.
//
// Buckets are not compared. Their state is what has not yet flowed back since
// the last minute's decisions, at the limit of each; only replaying admissions
// and settlements in (instant, place) order gives it, and none of it is money.
type Verifier struct {
	at       int64
	counters map[Counter]*account
	open     map[ID]bool
	broken   []Difference
	counts   VerifyCounts
}

// account is one counter's row beside what it should be.
type account struct {
	row   *State // nil: there is none
	kind  Kind
	want  State
	today window.Day
	zone  *time.Location
	days  [verifiedDays]int64 // days[i] is the date today - i
}

// VerifyCounts says how much was looked at, for a report.
type VerifyCounts struct {
	Counters, Reservations, Tombstones, Closings, Events int64
	// Buckets are counters that were not compared. Saturated ones cannot be: a
	// sum was cut (section 1).
	Buckets, Saturated int64
}

// Difference is one figure of one counter that is not what the records say. An
// ending of a reservation that is open all the same has no counter, but an ID.
type Difference struct {
	Counter Counter
	Kind    Kind
	// Figure is "settled", "credits", "held", "ending", or a local date.
	Figure     string
	Have, Want int64
	ID         ID
}

// NewVerifier returns one for a snapshot taken at the instant at.
func NewVerifier(at int64) *Verifier {
	return &Verifier{at: at, counters: make(map[Counter]*account), open: make(map[ID]bool)}
}

// Counter takes one counter's row.
func (v *Verifier) Counter(c Counter, s *State) {
	v.counts.Counters++
	a := &account{row: s.Clone(), kind: s.Kind}
	if d := s.Days; d != nil {
		a.zone = time.UTC
		if zone, err := window.Zone(d.Zone); err == nil {
			a.zone = zone
		}
		a.today = window.DayAt(v.at, a.zone)
	}
	v.counters[c] = a
}

// Reservation takes one open reservation or tombstone.
func (v *Verifier) Reservation(r *Reservation) {
	if r.Tombstone {
		v.counts.Tombstones++
		return
	}
	v.counts.Reservations++
	v.open[r.ID] = true
	for i := range r.Holds {
		h := &r.Holds[i]
		if h.Held != 0 && (h.Kind != KindGauge || !r.SlotsFreed) {
			v.account(h.Counter, h.Kind).want.hold(h.Held)
		}
	}
}

// Closing takes what dropped events added to one counter (RES-6).
func (v *Verifier) Closing(c Counter, kind Kind, credit bool, amount int64) {
	v.counts.Closings++
	v.account(c, kind).add(credit, amount)
}

// Event takes one event.
func (v *Verifier) Event(e *Event) {
	v.counts.Events++
	if e.Kind <= EventUndone && v.open[e.ID] {
		v.broken = append(v.broken, Difference{
			Counter: Counter{Workspace: e.Workspace}, Figure: "ending", Have: 1, ID: e.ID,
		})
	}
	for i := range e.Charges {
		c := &e.Charges[i]
		a := v.account(c.Counter, c.Kind)
		a.add(c.Credit, c.Amount)
		if a.zone == nil {
			continue
		}
		back := int64(a.today) - int64(window.DayAt(e.AdmittedAt, a.zone))
		if back >= 0 && back < verifiedDays {
			a.days[back] = saturatingAdd(a.days[back], c.Amount)
		}
	}
}

func (v *Verifier) account(c Counter, kind Kind) *account {
	a := v.counters[c]
	if a == nil {
		a = &account{kind: kind}
		v.counters[c] = a
	}
	return a
}

func (a *account) add(credit bool, amount int64) {
	if credit {
		a.want.Credits = a.want.add(a.want.Credits, amount)
		return
	}
	a.want.settle(amount)
}

// Counts says how much was looked at. Ask after Differences.
func (v *Verifier) Counts() VerifyCounts { return v.counts }

// Differences lists everything that is not what the records say, by counter;
// empty when the books balance.
func (v *Verifier) Differences() []Difference {
	v.counts.Buckets, v.counts.Saturated = 0, 0
	all := slices.Clone(v.broken)
	for c, a := range v.counters {
		switch {
		case a.kind == KindBucket:
			v.counts.Buckets++
		case a.row != nil && a.row.Saturated || a.want.Saturated:
			v.counts.Saturated++
		default:
			all = append(all, a.differences(c)...)
		}
	}
	slices.SortFunc(all, func(x, y Difference) int {
		switch {
		case x.Counter.Less(y.Counter):
			return -1
		case y.Counter.Less(x.Counter):
			return 1
		default:
			return cmp.Or(cmp.Compare(x.Figure, y.Figure), x.ID.Compare(y.ID))
		}
	})
	return all
}

func (a *account) differences(c Counter) []Difference {
	var out []Difference
	figure := func(name string, have, want int64) {
		if have != want {
			out = append(out, Difference{Counter: c, Kind: a.kind, Figure: name, Have: have, Want: want})
		}
	}
	row := a.row
	if row == nil {
		row = &State{}
	}
	figure("settled", row.Settled, a.want.Settled)
	figure("credits", row.Credits, a.want.Credits)
	figure("held", row.Held, a.want.Held)
	if row.Days == nil || row.Days.Moved {
		return out
	}
	for back := range a.days {
		date := a.today - window.Day(back)
		figure(date.String(), row.Days.sum(date, 1), a.days[back])
	}
	return out
}
