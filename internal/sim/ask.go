// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/tenant"
)

// attribute reads whom and what a request is for, as the gateway does.
func (r *replica) attribute(e *Event) admit.Attribution {
	var named []string
	if e.User > 0 {
		named = []string{userName(e.User)}
	}
	who, f := admit.Attribute(r.known[e.Workspace].keys[e.Key], named, []string{strings.Join(tags(e.Tags), ",")}, nil)
	if f != nil {
		r.world.fail("what a request names is read", "%s: %v", e, f)
	}
	return who
}

// build makes the admission with what this replica knows of the configuration.
func (q *request) build(tentative bool) *admit.Plan {
	c := q.replica.known[q.Workspace]
	plan := admit.Build(admit.Request{
		ID: q.id, Key: c.keys[q.Key], Call: q.call(), Snapshot: c.snapshot, Who: q.replica.attribute(q.Event), Process: "replica",
		HoldMicros: holdMicros, OutputCap: q.outputCap, Tentative: tentative,
	})
	if spoil := q.replica.world.book.spoil.Build; spoil != nil {
		spoil(plan.Op)
	}
	q.expect(plan, c)
	return plan
}

// look reads a key's limits (EFF-1). The audit knows what there is to see.
func (r *replica) look(e *Event) {
	c := r.known[e.Workspace]
	op := admit.ReadOp(c.snapshot, c.keys[e.Key], r.attribute(e))
	op.Name(r.world.book.clock(r.world.now) + r.drift)
	if _, err := r.submit(op, nil); err != nil {
		r.world.note("look: %v", err)
	}
}

// shrink asks again, for less output if a short budget says what would fit, else
// for the last time (BUD-10).
func (q *request) shrink(result *ledger.Result) {
	bound, fits := q.plan.Shrunk(result)
	if why := q.misfit(result, bound, fits); why != "" {
		q.replica.world.fail("a short budget lowers the output to what fits", "#%d: %s", q.number, why)
	}
	if q.outputCap = 0; fits {
		q.outputCap = bound
		q.replica.world.tally.Shrunk++
	}
	q.final = !fits
	if q.tries >= decisionTries {
		q.unavailable(nil)
		return
	}
	q.admit()
}

// misfit tells what is wrong with a bound that was found by what a decision saw:
// everything that stood against the request must be a hard budget that shrinks;
// the bound fits all of them, and one more would not.
func (q *request) misfit(result *ledger.Result, bound int64, fits bool) string {
	c := q.replica.known[q.Workspace]
	least := max(1, c.workspace().ShrinkFloor)
	_, most := q.estimate(c)
	most.Tokens -= most.Input // the output that it asked for
	possible, room := true, func(int64) bool { return true }
	for i := range result.Readings {
		r := &result.Readings[i]
		if r.Pass {
			continue
		}
		possible = possible && c.shrinks(r.Check.Counter.Limit)
		before, free := room, r.Amount-r.Used-r.Held
		room = func(output int64) bool { return before(output) && q.costs(output).Of(r.Check.Wants) <= free }
	}
	switch {
	case fits && (bound < least || bound >= most.Tokens || !possible || !room(bound) || bound+1 < most.Tokens && room(bound+1)):
		return fmt.Sprintf("lowered to %d of %d", bound, most.Tokens)
	case !fits && possible && least < most.Tokens && room(least):
		return fmt.Sprintf("%d of %d would fit", least, most.Tokens)
	default:
		return ""
	}
}

// shrinks tells whether a limit is a hard budget that lowers what it is asked for.
func (c *configuration) shrinks(id string) bool {
	for i := range c.budgets {
		if b := &c.budgets[i]; b.ID == id && b.Enforcement == budget.Hard {
			return b.Shrink != nil && *b.Shrink || b.Shrink == nil && c.workspace().OnShort == tenant.Shrink
		}
	}
	return false
}

// costs is the worst case of so much output.
func (q *request) costs(output int64) ledger.Amounts {
	in, _, out := rates(modelOf(q.name))
	input := (q.TextBytes+2)/3 + 3 + 4
	return ledger.Amounts{Spend: input*in + output*out, Tokens: input + output}
}

// seen counts the combinations of a request's budgets: of one check, or of all.
func (q *request) seen(check *ledger.Check, into *map[string]int) {
	common, own := q.demands(q.replica.known[q.Workspace])
	for _, d := range append(common, own...) {
		if d.combination != "" && (check == nil || check.Counter.Limit == d.limit) {
			count(into, map[string]int{d.combination: 1})
		}
	}
}

// headed: the answer warns of every budget that is nearly used, the request's own
// hold included, and of no other (BUD-5).
func (q *request) headed(result *ledger.Result) {
	want := 0
	for i := range result.Readings {
		r := &result.Readings[i]
		if r.Check.Kind != ledger.KindFixed {
			continue
		}
		used := r.Used + r.Held
		if r.Check.Mode == ledger.Reserve {
			used += r.Wanted
		}
		least := int64(101)
		for _, percent := range r.Check.WarnPercent {
			least = min(least, int64(percent))
		}
		if r.Check.Mode == ledger.Track {
			least = min(least, 100)
		}
		if least <= 100 && used*100 >= r.Amount*least {
			want++
		}
	}
	text := admit.Warnings(result.Readings, result.At, false)
	if have := strings.Count(text, ";level="); have != want {
		q.replica.world.fail("an answer warns of what is nearly used", "#%d: %q, want %d", q.number, text, want)
	}
	q.replica.world.tally.Warned += want
}
