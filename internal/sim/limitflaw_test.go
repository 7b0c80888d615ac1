// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"slices"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/sim"
)

// everyCheck changes each check that an operation asks for, or leaves it out.
func everyCheck(keep func(*ledger.Check) bool) func(*ledger.Op) {
	filter := func(list []ledger.Check) []ledger.Check {
		list = slices.Clone(list)
		return slices.DeleteFunc(list, func(c ledger.Check) bool { return !keep(&c) })
	}
	return func(op *ledger.Op) {
		op.Checks = filter(op.Checks)
		for i := range op.Candidates {
			op.Candidates[i].Checks = filter(op.Candidates[i].Checks)
		}
	}
}

// changeCheck changes each check that an operation asks for.
func changeCheck(change func(*ledger.Check)) func(*ledger.Op) {
	each := func(list []ledger.Check) []ledger.Check {
		list = slices.Clone(list)
		for i := range list {
			change(&list[i])
		}
		return list
	}
	return func(op *ledger.Op) {
		op.Checks = each(op.Checks)
		for i := range op.Candidates {
			op.Candidates[i].Checks = each(op.Candidates[i].Checks)
		}
	}
}

// declaredFlaws are limits that are not compiled as they are declared.
func declaredFlaws() map[string]damaged {
	build := func(f func(*ledger.Op), rules ...string) damaged {
		return damaged{sim.Flaw{Build: f}, append(rules, "every declared limit stands in the operation")}
	}
	scope := func(name string) func(*ledger.Check) bool {
		return func(c *ledger.Check) bool { return c.Scope != name }
	}
	return map[string]damaged{
		"a limit forgets its epoch": build(changeCheck(func(c *ledger.Check) { c.Counter.Epoch = min(c.Counter.Epoch, 1) })),
		"teams have no limits":      build(everyCheck(scope("team"))),
		"plans have no limits":      build(everyCheck(scope("plan"))),
		"tags have no limits":       build(everyCheck(scope("tag"))),
		"a hard budget tracks": build(changeCheck(func(c *ledger.Check) {
			c.Mode = max(ledger.Track, c.Mode-2*ledger.Mode(flag(c.Mode == ledger.Reserve)))
		})),
		"users share one counter": build(changeCheck(func(c *ledger.Check) {
			c.Counter.Subject = map[bool]string{false: c.Counter.Subject}[c.Scope == "user"]
		})),
		"missing usage is charged": build(changeCheck(func(c *ledger.Check) { c.SkipMissing = false })),
		"cache reads are counted": build(changeCheck(func(c *ledger.Check) {
			c.Charges = map[bool]ledger.Metric{false: c.Charges, true: ledger.Tokens}[c.Charges == ledger.Uncached]
		})),
		"thresholds are forgotten":      build(changeCheck(func(c *ledger.Check) { c.WarnPercent = nil })),
		"anybody may name users":        build(everyCheck(func(c *ledger.Check) bool { return c.Code != fault.UserLimitReached })),
		"a model's limits bind no one":  build(func(op *ledger.Op) { op.Candidates = slices.Clone(op.Candidates); dropOwn(op) }),
		"the order is another":          build(func(op *ledger.Op) { op.Checks = slices.Clone(op.Checks); slices.Reverse(op.Checks) }),
		"the output is not held":        build(func(op *ledger.Op) { op.Candidates = slices.Clone(op.Candidates); holdInput(op) }, "a request is held at its estimate"),
		"a sweep charges what was held": build(func(op *ledger.Op) { op.Candidates = slices.Clone(op.Candidates); forgetWorst(op) }, "a request is held at its estimate"),
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func dropOwn(op *ledger.Op) {
	for i := range op.Candidates {
		op.Candidates[i].Checks = nil
	}
}

func holdInput(op *ledger.Op) {
	for i := range op.Candidates {
		op.Candidates[i].Wants.Tokens = op.Candidates[i].Wants.Input
	}
}

func forgetWorst(op *ledger.Op) {
	for i := range op.Candidates {
		op.Candidates[i].Worst = op.Candidates[i].Wants
	}
}

// limitFlaws are books that break what is promised of budgets, rules and users.
func limitFlaws() map[string]damaged {
	store := func(f func([]*ledger.Op, *ledger.Page, *ledger.Changes), rules ...string) damaged {
		return damaged{sim.Flaw{Store: f}, rules}
	}
	load := func(f func(*ledger.Page), rules ...string) damaged { return damaged{sim.Flaw{Load: f}, rules} }
	return map[string]damaged{
		"holds stay behind at a window's edge": store(func(_ []*ledger.Op, p *ledger.Page, c *ledger.Changes) {
			for _, r := range c.Closed {
				for i := range r.Holds {
					if h := &r.Holds[i]; h.Held > 0 && h.Kind == ledger.KindFixed && r.At/60_000_000 < p.Counters[h.Counter].At/60_000_000 {
						p.Counters[h.Counter].Held += h.Held
					}
				}
			}
		}, "held is what is open"),
		"a warning is told twice":     load(each(ledger.KindFixed, func(s *ledger.State) { s.Warned = 0 }), "each level is announced once"),
		"a warning is lost":           store(func(_ []*ledger.Op, _ *ledger.Page, c *ledger.Changes) { c.Outbox = nil }, "each level is announced once"),
		"a raise is not seen":         load(each(ledger.KindFixed, func(s *ledger.State) { s.Raised = 0 }), "a decision sees what was used", "a window is raised by its entries"),
		"a raise outlasts its window": store(nextWindow, "a window is raised by its entries", "a decision sees what was used"),
		"a raise is booked elsewhere": store(func(_ []*ledger.Op, p *ledger.Page, c *ledger.Changes) {
			for i := range c.Events {
				if e := &c.Events[i]; e.Kind == ledger.EventRaise {
					e.Charges[0].Amount++
					p.Counters[e.Charges[0].Counter].Raised++
				}
			}
		}, "an entry changes what it names"),
		"a user is counted twice": store(func(_ []*ledger.Op, p *ledger.Page, c *ledger.Changes) {
			for _, at := range c.Counters {
				if s := p.Counters[at]; s.Kind == ledger.KindRoster && at.Subject == "" {
					s.Settled++
				}
			}
		}, "a user is counted once"),
		"users are forgotten": load(func(p *ledger.Page) {
			for c, s := range p.Counters {
				if s.Kind == ledger.KindRoster && c.Subject == "" {
					s.Settled = 0
				}
			}
		}, "a user is counted once", "a decision sees what was used"),
		"a move forgets its own limits": store(func(_ []*ledger.Op, _ *ledger.Page, c *ledger.Changes) {
			for _, r := range c.Replaced {
				r.Holds = slices.DeleteFunc(slices.Clone(r.Holds), func(h ledger.Hold) bool { return h.Model != "" && h.Held == 0 })
			}
		}, "a charge reaches its counters", "what is admitted is held"),
		"a reset leaves something": store(func(_ []*ledger.Op, p *ledger.Page, c *ledger.Changes) {
			for i := range c.Events {
				if e := &c.Events[i]; e.Kind == ledger.EventReset && len(e.Charges) > 0 && e.Charges[0].Kind == ledger.KindFixed {
					e.Charges[0].Amount++
					p.Counters[e.Charges[0].Counter].Settled++
				}
			}
		}, "a reset leaves nothing"),
		"a correction goes to one counter only": store(func(_ []*ledger.Op, p *ledger.Page, c *ledger.Changes) {
			for i := range c.Events {
				if e := &c.Events[i]; e.Kind == ledger.EventCorrection && len(e.Charges) > 1 {
					for _, lost := range e.Charges[1:] {
						p.Counters[lost.Counter].Settled -= lost.Amount
					}
					e.Charges = e.Charges[:1]
				}
			}
		}, "a charge reaches its counters"),
		"a seed is told to nobody": store(func(_ []*ledger.Op, _ *ledger.Page, c *ledger.Changes) {
			if ends(c, ledger.EventSeed) {
				c.Outbox = nil
			}
		}, "each level is announced once"),
	}
}

// nextWindow raises the window after the one that is raised, too.
func nextWindow(ops []*ledger.Op, p *ledger.Page, c *ledger.Changes) {
	for _, op := range ops {
		if op.Verb != ledger.Amend || op.Entry.Kind != ledger.EventRaise || !ends(c, ledger.EventRaise) {
			continue
		}
		next := op.Checks[0].Counter
		_, next.Window = op.Checks[0].Window.Bounds(next.Window)
		p.Counters[next] = &ledger.State{Kind: ledger.KindFixed, Raised: op.Entry.Amounts.Of(op.Checks[0].Charges)}
		c.Counters = append(c.Counters, next)
	}
}
