// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/window"
)

// verifiedDays are the local dates that a days counter is compared on: what the
// longest cap can see. Older ones may have left the row.
const verifiedDays = 30

// Verifier recomputes counters from what is written of them: a money or token
// counter is its closings and the events that name it, held amounts and gauges
// are the open reservations, buckets and sliding windows what the call log says
// was taken and given back (RES-7). Roll-ups are the events that they were made
// from. Feed it one snapshot, in this order: counters, reservations, closings,
// events, calls; roll-ups and events without one at any time after RolledFrom.
//
// Single days are not compared where a clock that was set back by more than a
// day has moved them (Days.Moved); their total is.
type Verifier struct {
	at       int64
	counters map[Counter]*account
	open     map[ID]bool
	replays  map[Counter]*replay
	dropped  int64
	rosters  map[string]*roster // by workspace
	rolled   rolled
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
	Counters, Reservations, Tombstones, Closings, Events, Calls, Rollups int64
	// Partial are buckets and windows that were not compared: the call log begins
	// after what they still hold. Saturated counters cannot be compared: a sum was
	// cut (section 1).
	Partial, Saturated int64
}

// Difference is one figure of one counter that is not what the records say. An
// ending of a reservation that is open all the same has no counter, but an ID.
type Difference struct {
	Counter Counter
	Kind    Kind
	// Figure is "settled", "credits", "held", "raised", "ending", a local date, or of
	// a roster "members". Of a bucket
	// it is "deficit", "returned" (both in 1/60,000 of a unit), "rate" or "at"; of a
	// sliding window the instant that units belong to, "in the window", "length of a
	// slot" or "at"; of both "changes": of how many the counter and the records
	// know. With an ID it is how that request found the counter.
	Figure     string
	Have, Want int64
	ID         ID
}

// NewVerifier returns one for a snapshot taken at the instant at.
func NewVerifier(at int64) *Verifier {
	return &Verifier{
		at: at, counters: make(map[Counter]*account), open: make(map[ID]bool), replays: make(map[Counter]*replay),
		dropped: math.MinInt64, rolled: rolled{from: math.MaxInt64},
	}
}

// Dropped says that calls that were admitted before an instant may be gone from
// the log: of buckets and windows that changed until shortly after it, nothing is
// known to be missing. Without it the log is taken to be whole.
func (v *Verifier) Dropped(before int64) { v.dropped = before }

// Counter takes one counter's row.
func (v *Verifier) Counter(c Counter, s *State) {
	v.counts.Counters++
	if s.Kind == KindRoster {
		v.roster(c, s)
		return
	}
	a := &account{row: s.Clone(), kind: s.Kind}
	if d := s.Days; d != nil {
		a.zone = time.UTC
		if zone, err := window.Zone(d.Zone); err == nil {
			a.zone = zone
		}
		a.today = window.DayAt(v.at, a.zone)
	}
	v.counters[c] = a
	if s.Kind.flows() {
		v.replays[c] = newReplay(s.Kind, a.row, v.at)
	}
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
	v.flows(r.Holds, r.Flows, r.ID)
}

// Call takes one record of the call log.
func (v *Verifier) Call(c *Call) {
	v.counts.Calls++
	v.flows(c.Holds, c.Flows, c.ID)
}

func (v *Verifier) flows(holds []Hold, flows []Flow, id ID) {
	for _, f := range flows {
		if f.Hold >= 0 && int(f.Hold) < len(holds) {
			h := &holds[f.Hold]
			v.replay(h.Counter, h.Kind).take(kept{f, id})
		}
	}
}

func (v *Verifier) replay(c Counter, kind Kind) *replay {
	r := v.replays[c]
	if r == nil {
		r = newReplay(kind, nil, v.at)
		v.replays[c] = r
	}
	return r
}

// Closing takes what dropped events added to one counter (RES-6).
func (v *Verifier) Closing(c Counter, kind Kind, credit bool, amount int64) {
	v.counts.Closings++
	v.account(c, kind).add(credit, amount)
}

// Event takes one event.
func (v *Verifier) Event(e *Event) {
	v.counts.Events++
	if e.Reports() && e.AdmittedAt >= v.rolled.from {
		v.rolled.want(e, 1)
	}
	if e.Kind <= EventUndone && v.open[e.ID] {
		v.broken = append(v.broken, Difference{
			Counter: Counter{Workspace: e.Workspace}, Figure: "ending", Have: 1, ID: e.ID,
		})
	}
	for i := range e.Flows {
		f := &e.Flows[i]
		v.replay(f.Counter, f.Kind).take(kept{f.Flow, e.ID})
	}
	for i := range e.Charges {
		c := &e.Charges[i]
		a := v.account(c.Counter, c.Kind)
		if c.Raise {
			a.want.Raised = a.want.add(a.want.Raised, c.Amount)
			continue
		}
		a.add(c.Credit, c.Amount)
		if a.zone == nil {
			continue
		}
		back := int64(a.today) - int64(window.DayAt(cmp.Or(c.At, e.AdmittedAt), a.zone))
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
// empty when the books balance. Nothing is taken afterwards.
func (v *Verifier) Differences() []Difference {
	v.counts.Partial, v.counts.Saturated = 0, 0
	all := append(slices.Concat(v.broken, v.rolled.differences()), v.rosterDifferences()...)
	for c, r := range v.replays {
		if r.row != nil && r.row.Saturated {
			continue
		}
		broken, partial := r.finish(v.dropped)
		for _, d := range broken {
			d.Counter = c
			all = append(all, d)
		}
		if partial {
			v.counts.Partial++
		}
	}
	for c, a := range v.counters {
		switch {
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
	figure("raised", row.Raised, a.want.Raised)
	if row.Days == nil || row.Days.Moved {
		return out
	}
	for back := range a.days {
		date := a.today - window.Day(back)
		figure(date.String(), row.Days.sum(date, 1), a.days[back])
	}
	return out
}
