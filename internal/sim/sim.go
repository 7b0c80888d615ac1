// SPDX-License-Identifier: Apache-2.0

// Package sim runs whole Weirs in virtual time: several replicas, each the real
// teller.Machine and the real admit.Build and admit.Settle, in front of one
// model book that runs ledger.Batch. Clients, providers, operators and mishaps
// are a script drawn from a seed, so the same seed is always the same run.
//
// One goroutine, no clock, no sleeping: a heap of tasks, and time is that of the
// next one. After each batch the audit, which shares no code with the ledger's
// decisions, checks what a book must never break; at the end everything that
// was sent must have been charged. A failing script is shrunk before it is shown.
//
// It simulates no protocol and no transport: that is simulator's and the
// gateway's own tests'.
package sim

import (
	"fmt"
	"strings"
)

// Failure is a broken invariant: what, when, and the least script that was
// found to break it.
type Failure struct {
	Seed uint64
	// Step counts the tasks of the run until it broke; Rule names the invariant.
	Step       int
	Rule, What string
	Script     []Event
	// Trace are the last things that happened.
	Trace []string
}

// Error shows everything that is needed to understand and to repeat it.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, step %d: %s: %s\nscript (%d events):\n", f.Seed, f.Step, f.Rule, f.What, len(f.Script))
	for i := range f.Script {
		fmt.Fprintf(&b, "  %s\n", f.Script[i].String())
	}
	b.WriteString("trace:\n")
	for _, line := range f.Trace {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// maxReplays bounds how often a failing script is run again to shrink it.
const maxReplays = 400

// Run plays the script of a seed for so many steps, then lets everything come
// to rest. It returns a *Failure when an invariant broke.
func Run(seed uint64, steps int) error {
	_, err := runWith(seed, steps, flaw{})
	return err
}

// runWith is Run over a book that spoil may damage, for the tests of the checks.
func runWith(seed uint64, steps int, spoil flaw) (Tally, error) {
	s := draw(seed, steps)
	tally, f := play(s, spoil)
	if f == nil {
		return tally, nil
	}
	return tally, shrink(s, f, spoil)
}

// Tally counts what a run came across: a check of something that never happens
// shows nothing.
type Tally struct {
	Steps, Batches, Arrivals                              int
	Admitted, Refused, Unavailable, Moved, Sent           int
	Settled, Swept, Voided, Undone, Corrected, Tombstones int
	Stale, Carried, Renewed, Conflicts                    int
	Crashes, ClockSteps, Changes, Funded                  int
	Adjusted, Notices, Shrunk, Looked, Warned             int
	Amended                                               [3]int // raises, resets, seeds
	Mishaps                                               [mishapCount]int
	RefusedBy                                             map[string]int
	// Combined counts the admissions under each combination of a budget's scope,
	// window, metric, enforcement and narrowing, Refusing the refusals by it.
	Combined, Refusing map[string]int
}

// Add adds another run's.
func (t *Tally) Add(o *Tally) {
	for i, n := range o.counts() {
		*t.counts()[i] += *n
	}
	count(&t.RefusedBy, o.RefusedBy)
	count(&t.Combined, o.Combined)
	count(&t.Refusing, o.Refusing)
}

func count(into *map[string]int, from map[string]int) {
	if *into == nil {
		*into = map[string]int{}
	}
	for name, n := range from {
		(*into)[name] += n
	}
}

func (t *Tally) counts() []*int {
	list := []*int{
		&t.Steps, &t.Batches, &t.Arrivals, &t.Admitted, &t.Refused, &t.Unavailable, &t.Moved, &t.Sent,
		&t.Settled, &t.Swept, &t.Voided, &t.Undone, &t.Corrected, &t.Tombstones,
		&t.Stale, &t.Carried, &t.Renewed, &t.Conflicts, &t.Crashes, &t.ClockSteps, &t.Changes, &t.Funded,
		&t.Adjusted, &t.Notices, &t.Shrunk, &t.Looked, &t.Warned, &t.Amended[0], &t.Amended[1], &t.Amended[2],
	}
	for i := range t.Mishaps {
		list = append(list, &t.Mishaps[i])
	}
	return list
}

// shrink drops events, half of them at first, then single ones, while the same
// rule still breaks.
func shrink(s *script, f *Failure, spoil flaw) *Failure {
	replays := 0
	for size := (len(s.events) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(s.events) && replays < maxReplays; {
			less := *s
			less.events = append(append([]Event{}, s.events[:from]...), s.events[min(from+size, len(s.events)):]...)
			replays++
			if _, again := play(&less, spoil); again != nil && again.Rule == f.Rule {
				s, f = &less, again
				continue // the next ones stand here now
			}
			from += size
		}
	}
	return f
}
