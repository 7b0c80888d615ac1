// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/sim"
)

// ends tells whether a batch settles something.
func ends(changes *ledger.Changes, kind ledger.EventKind) bool {
	return slices.ContainsFunc(changes.Events, func(e ledger.Event) bool { return e.Kind == kind })
}

// each changes every counter of a kind that a batch is given.
func each(kind ledger.Kind, change func(*ledger.State)) func(*ledger.Page) {
	return func(page *ledger.Page) {
		for _, s := range page.Counters {
			if s.Kind == kind {
				change(s)
			}
		}
	}
}

// charged tells which counters an ending is charged to.
func charged(changes *ledger.Changes, kind ledger.EventKind, each func(*ledger.Event, ledger.Charge)) {
	for i := range changes.Events {
		if e := &changes.Events[i]; e.Kind == kind {
			for _, c := range e.Charges {
				each(e, c)
			}
		}
	}
}

// damaged is a flaw with the rules that may notice it first.
type damaged = struct {
	flaw  sim.Flaw
	rules []string
}

// flaws are books that break a rule.
func flaws() map[string]damaged {
	store := func(f func(*ledger.Page, *ledger.Changes), rules ...string) damaged {
		return damaged{sim.Flaw{Store: func(_ []*ledger.Op, p *ledger.Page, c *ledger.Changes) { f(p, c) }}, rules}
	}
	load := func(f func(*ledger.Page), rules ...string) damaged { return damaged{sim.Flaw{Load: f}, rules} }
	return map[string]damaged{
		"a settlement is lost": store(func(_ *ledger.Page, c *ledger.Changes) {
			if ends(c, ledger.EventSettled) {
				*c = ledger.Changes{}
			}
		}, "a reservation ends once"),
		"a settlement is applied twice": store(func(p *ledger.Page, c *ledger.Changes) {
			charged(c, ledger.EventSettled, func(_ *ledger.Event, charge ledger.Charge) { p.Counters[charge.Counter].Settled += charge.Amount })
		}, "settled is what events charged"),
		"an event is written twice": store(func(_ *ledger.Page, c *ledger.Changes) {
			if ends(c, ledger.EventSettled) {
				c.Events = append(c.Events, c.Events[len(c.Events)-1])
			}
		}, "an event happens once"),
		"a hold is not stored": store(func(_ *ledger.Page, c *ledger.Changes) {
			if len(c.Opened) > 0 {
				c.Counters = nil
			}
		}, "held is what is open", "settled is what events charged", "a decision sees what was used", "held is never negative"),
		"a reservation is not stored": store(func(_ *ledger.Page, c *ledger.Changes) { c.Opened = nil }, "open reservations"),
		"a sweep charges nothing": store(func(p *ledger.Page, c *ledger.Changes) {
			charged(c, ledger.EventSwept, func(e *ledger.Event, charge ledger.Charge) {
				s := p.Counters[charge.Counter]
				s.Settled -= charge.Amount
				for i := range 33 {
					if s.Days != nil && s.Days.Sums[i] >= charge.Amount {
						s.Days.Sums[i] -= charge.Amount
						break
					}
				}
				e.Spend, e.Tokens, e.Charges = 0, 0, nil
				c.Quarters = nil
			})
		}, "an event says what was used"),
		"a worst case is not stored": store(func(_ *ledger.Page, c *ledger.Changes) {
			for _, r := range c.Opened {
				r.Worst = ledger.Amounts{}
			}
		}, "what is admitted is held"),
		"a charge misses one of its counters": store(func(p *ledger.Page, c *ledger.Changes) {
			for i := range c.Events {
				if e := &c.Events[i]; e.Kind == ledger.EventSettled && len(e.Charges) > 1 {
					last := e.Charges[len(e.Charges)-1]
					p.Counters[last.Counter].Settled -= last.Amount
					e.Charges = e.Charges[:len(e.Charges)-1]
				}
			}
		}, "a charge reaches its counters"),
		"a refused request is charged": store(func(_ *ledger.Page, c *ledger.Changes) {
			for _, call := range c.Refused {
				c.Events = append(c.Events, ledger.Event{ID: call.ID, Workspace: call.Workspace, Kind: ledger.EventSettled, Place: call.Place, Spend: 1})
			}
		}, "a refused request consumes nothing", "events belong to an operation"),
		"slots are not seen": load(each(ledger.KindGauge, func(s *ledger.State) { s.Held = 0 }),
			"a decision sees what was used", "held is what is open", "held is never negative"),
		"slots leak": load(each(ledger.KindGauge, func(s *ledger.State) { s.Held += 2 }),
			"a decision sees what was used", "held is what is open"),
		"caps are not seen": load(each(ledger.KindDays, func(s *ledger.State) { s.Days = nil }), "no limit is passed", "the books balance"),
		"spend is not seen": load(each(ledger.KindFixed, func(s *ledger.State) { s.Settled /= 2 }), "a decision sees what was used", "settled is what events charged"),
		"a bucket refills at twice its rate": load(each(ledger.KindBucket, func(s *ledger.State) { s.Deficit -= s.Deficit / 3 }),
			"no interval has more than its bucket gives", "the books balance"),
		"rules are not seen": load(each(ledger.KindSliding, func(s *ledger.State) { s.Sliding = nil }), "a decision sees what was used", "the books balance"),
		"a bucket is off by one": store(func(p *ledger.Page, c *ledger.Changes) {
			for _, at := range c.Counters {
				if s := p.Counters[at]; s.Kind == ledger.KindBucket {
					s.Deficit++
				}
			}
		}, "the books balance"),
		"a window is off by one": store(func(p *ledger.Page, c *ledger.Changes) {
			for _, at := range c.Counters {
				if s := p.Counters[at]; s.Sliding != nil && len(s.Sliding.Marks) > 0 {
					s.Sliding.Marks[0].Units++
				}
			}
		}, "the books balance", "a decision sees what was used"),
		"a call is not written":     store(func(_ *ledger.Page, c *ledger.Changes) { c.Calls = nil }, "the books balance"),
		"old configurations decide": load(func(p *ledger.Page) { p.Generations = nil }, "no decision on an old configuration"),
	}
}

func TestABrokenBookIsFoundAndItsScriptShrunk(t *testing.T) {
	t.Parallel()
	const seeds, steps, longest = 40, 800, 16
	all := flaws()
	maps.Copy(all, limitFlaws())
	maps.Copy(all, declaredFlaws())
	for name, damaged := range all {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				err := sim.RunFlawed(seed, steps, damaged.flaw)
				if err == nil {
					continue
				}
				var f *sim.Failure
				if !errors.As(err, &f) || !slices.Contains(damaged.rules, f.Rule) {
					t.Fatalf("want one of %q, have %v", damaged.rules, err)
				}
				if f.Seed != seed || len(f.Script) > longest || len(f.Trace) == 0 {
					t.Errorf("the report is of no use: %v", err)
				}
				if again := sim.RunFlawed(seed, steps, damaged.flaw); again == nil || again.Error() != err.Error() {
					t.Errorf("the same seed is not the same run: %v, then %v", err, again)
				}
				return
			}
			t.Fatalf("%d seeds did not notice", seeds)
		})
	}
}
