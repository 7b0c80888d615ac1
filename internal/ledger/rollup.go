// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/weirhq/weir/internal/window"
)

// Group is what usage is kept apart by.
type Group struct{ Key, Model, Provider, User, Team, Project string }

// Rollup is what one group of a workspace used in the quarter hour of UTC that
// its requests were admitted in, corrections included (ENGINE 11).
type Rollup struct {
	Workspace string
	Quarter   int64
	Group
	Spend, Tokens, Requests, Events int64
	// FirstMillis and LastMillis are the least and the greatest time inside the ids
	// of its requests, in Unix milliseconds.
	FirstMillis, LastMillis int64
}

// Reports tells whether an event is usage: what a request was charged and what
// corrected it, not what was paid in.
func (v *Event) Reports() bool {
	switch v.Kind {
	case EventSettled, EventSwept, EventCorrection:
		return true
	default:
		return false
	}
}

// Rollup is what one event that Reports adds to reports.
func (v *Event) Rollup() Rollup {
	s := &v.Subjects
	r := Rollup{
		Workspace: v.Workspace, Quarter: window.QuarterAt(v.AdmittedAt),
		Group: Group{Key: s.Key, Model: v.Model, Provider: v.Provider, User: s.User, Team: s.Team, Project: s.Project},
		Spend: v.Spend, Tokens: v.Tokens, Events: 1, FirstMillis: v.ID.Millis(), LastMillis: v.ID.Millis(),
	}
	if v.Kind != EventCorrection && v.Attempt == 0 {
		r.Requests = 1
	}
	return r
}

// Add puts another roll-up of the same group and quarter into r; sums saturate.
func (r *Rollup) Add(o *Rollup) {
	r.Spend, r.Tokens = saturatingAdd(r.Spend, o.Spend), saturatingAdd(r.Tokens, o.Tokens)
	r.Requests, r.Events = r.Requests+o.Requests, r.Events+o.Events
	r.FirstMillis, r.LastMillis = min(r.FirstMillis, o.FirstMillis), max(r.LastMillis, o.LastMillis)
}

// rolled compares roll-ups with events, a quarter of a workspace at a time:
// whatever the number of groups, two figures each are kept of it.
type rolled struct {
	from     int64 // quarters before it may stand for days, and their events be gone
	quarters map[rolledKey]*rolledSums
}

type rolledKey struct {
	workspace string
	quarter   int64
}

// rolledFigures are the words of Difference.Figure, in the order of the sums.
var rolledFigures = [...]string{"rolled-up spend", "rolled-up tokens", "rolled-up requests", "rolled-up events"}

// rolledSums are those of roll-ups and of events. mixed is the sum of all figures,
// each multiplied by a number that its group gives: a figure under another group
// changes it.
type rolledSums struct {
	have, want           [len(rolledFigures)]int64
	haveMixed, wantMixed uint64
}

func (v *rolled) at(r *Rollup) *rolledSums {
	if v.quarters == nil {
		v.quarters = make(map[rolledKey]*rolledSums)
	}
	key := rolledKey{r.Workspace, r.Quarter}
	s := v.quarters[key]
	if s == nil {
		s = &rolledSums{}
		v.quarters[key] = s
	}
	return s
}

func (r *Rollup) figures() [len(rolledFigures)]int64 {
	return [...]int64{r.Spend, r.Tokens, r.Requests, r.Events}
}

func (r *Rollup) mixed() (sum uint64) {
	h := fnv.New64a()
	for _, s := range [...]string{r.Key, r.Model, r.Provider, r.User, r.Team, r.Project} {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		_, _ = h.Write([]byte(s))
	}
	factor := h.Sum64()
	for _, n := range r.figures() {
		sum += factor * uint64(n)
		factor = factor*6364136223846793005 + 1442695040888963407
	}
	return sum
}

// RolledFrom asks for roll-ups to be compared with events, those of quarters from
// an instant on: the events of before it may be gone (RES-6).
func (v *Verifier) RolledFrom(from int64) { v.rolled.from = from }

// Rollup takes one roll-up.
func (v *Verifier) Rollup(r *Rollup) {
	v.counts.Rollups++
	if r.Quarter < v.rolled.from {
		return
	}
	s := v.rolled.at(r)
	for i, n := range r.figures() {
		s.have[i] = saturatingAdd(s.have[i], n)
	}
	s.haveMixed += r.mixed()
}

// Unrolled takes one event that no roll-up holds yet, beside Event.
func (v *Verifier) Unrolled(e *Event) {
	if e.Reports() && e.AdmittedAt >= v.rolled.from {
		v.rolled.want(e, -1)
	}
}

func (v *rolled) want(e *Event, sign int64) {
	r := e.Rollup()
	s := v.at(&r)
	for i, n := range r.figures() {
		s.want[i] = saturatingAdd(s.want[i], sign*n)
	}
	s.wantMixed += uint64(sign) * r.mixed()
}

func (v *rolled) differences() []Difference {
	var out []Difference
	for key, s := range v.quarters {
		c := Counter{Workspace: key.workspace, Limit: "usage", Window: key.quarter}
		same := true
		for i, name := range rolledFigures {
			if s.have[i] != s.want[i] {
				same = false
				out = append(out, Difference{Counter: c, Figure: name, Have: s.have[i], Want: s.want[i]})
			}
		}
		if same && s.haveMixed != s.wantMixed {
			out = append(out, Difference{Counter: c, Figure: "rolled-up groups", Have: int64(s.haveMixed >> 1), Want: int64(s.wantMixed >> 1)})
		}
	}
	return out
}
