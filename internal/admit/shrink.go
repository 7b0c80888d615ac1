// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"slices"
	"sort"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// OutputHeader tells the output bound of an answer that a short budget lowered.
const OutputHeader = "X-Weir-Max-Output-Tokens"

// Shrunk is the output bound of each completion with which a refused request
// would fit the hard budgets in its way; ok is false when it may not be lowered,
// or not so far (BUD-10, on_short: shrink). The request is then built again with
// it as its OutputCap: others may have come in between, so that may be refused
// too.
func (p *Plan) Shrunk(result *ledger.Result) (bound int64, ok bool) {
	if result.Refusal == nil || result.Refusal.Check.Code != fault.BudgetExceeded {
		return 0, false
	}
	bound = p.fits(result, func(c *ledger.Check) bool {
		return c.Kind == ledger.KindFixed && p.Snapshot.Limits.Shrinks(c.Counter.Limit, p.Snapshot.Workspace)
	})
	return bound, bound >= max(1, p.Snapshot.Workspace.ShrinkFloor)
}

// fits is the largest output bound of each completion with which a refused request
// would pass the checks that refuse it now, all of which must be reserving ones
// that may admits; 0 when there is none below its own.
func (p *Plan) fits(result *ledger.Result, may func(*ledger.Check) bool) int64 {
	if result.Candidate >= len(p.Targets) {
		return 0
	}
	target := &p.Targets[result.Candidate]
	bound := target.Want.OutputTokens
	for i := range result.Readings {
		r := &result.Readings[i]
		switch {
		case r.Pass:
		case r.Check.Mode != ledger.Reserve || !may(r.Check):
			return 0
		default:
			bound = target.fitting(r.Check.Wants, less(less(r.Amount, r.Used), r.Held), bound)
		}
	}
	if bound == target.Want.OutputTokens {
		return 0
	}
	return bound
}

// shrinkable tells whether a hard budget of an operation may lower its output.
func (p *Plan) shrinkable(op *ledger.Op) bool {
	if !p.Snapshot.Limits.MayShrink(p.Snapshot.Workspace) {
		return false
	}
	may := func(c ledger.Check) bool {
		return c.Kind == ledger.KindFixed && c.Mode == ledger.Reserve && p.Snapshot.Limits.Shrinks(c.Counter.Limit, p.Snapshot.Workspace)
	}
	return slices.ContainsFunc(op.Checks, may) ||
		slices.ContainsFunc(op.Candidates, func(c ledger.Candidate) bool { return slices.ContainsFunc(c.Checks, may) })
}

// fitting is the largest output bound up to most whose worst case is within room.
func (p *Planned) fitting(m ledger.Metric, room, most int64) int64 {
	n := sort.Search(int(most), func(i int) bool {
		w := p.Want
		w.OutputTokens = int64(i) + 1
		worst, unpriced := p.worst(w)
		return unpriced || worst.Of(m) > room
	})
	return int64(n)
}
