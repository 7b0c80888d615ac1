// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// BudgetCheck is a budget as it bounds one subject: a key's id for the scopes
// key and plan, "" for org, else the name of a user, project or team. The window
// is not named yet (ledger.Op.Name).
func BudgetCheck(workspace string, b *budget.Budget, subject string) (ledger.Check, error) {
	e, err := budgetEntry(workspace, b)
	return e.of(subject), err
}

func budgetEntry(workspace string, b *budget.Budget) (entry, error) {
	spec, err := b.Spec()
	if err != nil {
		return entry{}, err
	}
	c := ledger.Check{
		Counter: ledger.Counter{Workspace: workspace, Limit: b.ID, Epoch: b.Epoch},
		Kind:    ledger.KindFixed, Mode: modeOf(b), Wants: ledger.Spend, Charges: ledger.Spend,
		Amount: b.Limit, Window: spec, Code: fault.BudgetExceeded, Name: b.Name, Scope: string(b.Scope),
		Origin: budgetOrigin(b), SkipMissing: b.SkipMissingUsage,
	}
	if b.Metric == budget.Tokens {
		c.Wants, c.Charges = ledger.Tokens, ledger.Tokens
		if b.Uncached {
			c.Charges = ledger.Uncached
		}
	}
	for _, p := range b.WarnPercent {
		c.WarnPercent = append(c.WarnPercent, uint8(p))
	}
	return entry{check: c, model: b.Model, provider: b.Provider, length: nominal(b)}, nil
}

// modeOf is how a budget admits (BUD-1). What is not known here observes: it
// refuses rather than let everything pass.
func modeOf(b *budget.Budget) ledger.Mode {
	switch b.Enforcement {
	case budget.Hard:
		return ledger.Reserve
	case budget.Soft:
		return ledger.Track
	default:
		return ledger.Observe
	}
}

func budgetOrigin(b *budget.Budget) string {
	switch {
	case b.System:
		return "system"
	case b.Owner == "":
		return "budget"
	default:
		return string(b.Scope)
	}
}

// nominal is a window's length in microseconds, a month's being 30 days: it
// orders limits and nothing else.
func nominal(b *budget.Budget) int64 {
	const day = 86_400_000_000
	switch b.Period {
	case budget.Day:
		return day
	case budget.Week:
		return 7 * day
	case budget.Month:
		return 30 * day
	default:
		return b.WindowMicros
	}
}

// place is one scope of budgets or rules for one request: whose counters.
type place struct {
	scope string
	// declared is whom the limits were declared for, counted whose counters they
	// have: a plan's budgets count each of its keys (SPEC section 1).
	declared, counted string
}

// budgetPlaces are the subjects of a request in the published order. An absent
// one has no limits.
func budgetPlaces(s Subject) []place {
	all := []place{{string(budget.ScopeKey), s.Key.ID, s.Key.ID}}
	if plan := s.Set.Plan(s.Key.Plan); plan != nil {
		all = append(all, place{string(budget.ScopePlan), plan.ID, s.Key.ID})
	}
	for _, p := range []place{
		{string(budget.ScopeUser), s.User, s.User},
		{string(budget.ScopeProject), s.Key.Project, s.Key.Project},
		{string(budget.ScopeTeam), s.Key.Team, s.Key.Team},
	} {
		if p.declared != "" {
			all = append(all, p)
		}
	}
	return append(all, place{scope: string(budget.ScopeOrg)})
}

// budgets is the second half of check 4.
func budgets(s Subject) ([]ledger.Check, []Narrowed) {
	if s.Set == nil {
		return nil, nil
	}
	return gather(s.Set.budgets, budgetPlaces(s))
}

// gather lists the limits of places, in their order, those that are narrowed to
// a model or provider apart.
func gather(from map[whom][]entry, places []place) (list []ledger.Check, narrowed []Narrowed) {
	if len(from) == 0 {
		return nil, nil
	}
	for _, p := range places {
		for _, e := range find(from, p.scope, p.declared) {
			check := e.of(p.counted)
			if e.model == "" && e.provider == "" {
				list = append(list, check)
			} else {
				narrowed = append(narrowed, Narrowed{Model: e.model, Provider: e.provider, Check: check})
			}
		}
	}
	return list, narrowed
}
