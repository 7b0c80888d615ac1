// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

// Bounds of values where they enter (SPEC 1, BUD-1).
const (
	MaxTokens   = 1_000_000_000_000_000 // of a token budget
	MaxOwned    = 20                    // budgets of one key or plan
	MaxWarnings = 10                    // thresholds of a budget
	MaxPercent  = 100                   // of a threshold
)

// second is the unit of a window's length, in microseconds.
const second = 1_000_000

// Validate tells everything that is wrong with a budget, as document.Problems
// whose paths are those of its JSON form. What it names (key, plan, model,
// provider) may not exist: that needs the workspace.
func (b *Budget) Validate() error {
	var problems document.Problems
	if b.Name != "" {
		if err := ValidName(b.Name); err != nil {
			problems.Add("name", "%v", err)
		}
	}
	if b.Metric != Spend && b.Metric != Tokens {
		problems.Add("metric", "must be %s or %s", Spend, Tokens)
	}
	if !slices.Contains(Scopes(), b.Scope) {
		problems.Add("scope", "must be %s", listed(Scopes()))
	} else {
		b.checkSubject(&problems)
	}
	b.checkLimit(&problems)
	b.checkWindow(&problems)
	b.checkNarrowing(&problems)
	b.checkWarnings(&problems)
	b.checkEnforcement(&problems)
	return problems.Err()
}

// ValidName tells what is wrong with a budget's own name.
func ValidName(name string) error {
	if owned(name) {
		return errors.New("must not begin like the name of a budget that a key or plan has: choose another")
	}
	return tenant.ValidLimitName(name)
}

// perKey reports whether a budget bounds keys, alone or by their plan: A's
// budgets (SPEC section 5).
func (b *Budget) perKey() bool { return b.Scope == ScopeKey || b.Scope == ScopePlan }

func (b *Budget) checkSubject(problems *document.Problems) {
	var err error
	switch {
	case b.Owner != "" && (!b.perKey() || b.Subject != b.Owner):
		err = errors.New("a budget of a key or plan bounds just that one")
	case b.Scope == ScopeOrg && b.Subject != "":
		err = errors.New("scope org is the whole workspace: leave it out")
	case b.Scope == ScopePlan && b.Subject == "":
		err = errors.New("is required: name the plan, each of whose keys has this budget for itself")
	case b.Subject == "":
	case b.Scope == ScopeKey:
		err = tenant.ValidKeyName(b.Subject)
	case b.Scope == ScopePlan:
		err = tenant.ValidPlanName(b.Subject)
	default:
		err = tenant.ValidSubject(b.Subject)
	}
	if err != nil {
		problems.Add("subject", "%v", err)
	}
}

func (b *Budget) checkLimit(problems *document.Problems) {
	switch {
	case b.Limit > 0 && b.Metric == Spend && b.Limit <= int64(money.MaxAmount):
	case b.Limit > 0 && b.Metric == Tokens && b.Limit <= MaxTokens:
	case b.Metric == Spend:
		problems.Add("limit", "must be above 0 and at most %s dollars", money.MaxAmount)
	case b.Metric == Tokens:
		problems.Add("limit", "must be from 1 to %d tokens", int64(MaxTokens))
	}
}

func (b *Budget) checkWindow(problems *document.Problems) {
	switch {
	case b.Period == "" && b.WindowMicros == 0:
		problems.Add("", "needs one of period (%s, %s, %s) and window (a length such as 1h or 30d)", Day, Week, Month)
	case b.Period != "" && b.WindowMicros != 0:
		problems.Add("", "has both period and window: leave one out")
	case b.Period != "":
		b.checkCalendar(problems)
	case b.WindowMicros < window.MinLength || b.WindowMicros > window.MaxLength || b.WindowMicros%second != 0:
		problems.Add("window", "%v", errWindow)
	case b.Zone != "":
		problems.Add("time_zone", "is for a calendar period: a window of fixed length is aligned to the Unix epoch, leave it out")
	}
}

func (b *Budget) checkCalendar(problems *document.Problems) {
	if period(b.Period) == window.PeriodNone {
		problems.Add("period", "must be %s, %s or %s", Day, Week, Month)
	}
	if _, err := window.Zone(b.Zone); err != nil {
		problems.Add("time_zone", "%v", err)
	}
}

func (b *Budget) checkNarrowing(problems *document.Problems) {
	if b.Model != "" && b.Provider != "" {
		problems.Add("provider", "a budget is narrowed to a model or to a provider: leave one out")
	}
	if b.Model != "" {
		if err := tenant.ValidModelName(b.Model); err != nil {
			problems.Add("model", "%v", err)
		}
	}
	if b.Provider != "" {
		// Providers are named as workspaces are.
		if err := tenant.ValidWorkspaceName(b.Provider); err != nil {
			problems.Add("provider", "%v", err)
		}
	}
}

func (b *Budget) checkWarnings(problems *document.Problems) {
	if len(b.WarnPercent) > MaxWarnings {
		problems.Add("warn_percent", "has %d thresholds, more than %d", len(b.WarnPercent), MaxWarnings)
	}
	last := int64(0)
	for i, percent := range b.WarnPercent {
		if percent < 1 || percent > MaxPercent || percent <= last {
			problems.Add(fmt.Sprintf("warn_percent[%d]", i), "must be a whole number from 1 to %d, ascending", MaxPercent)
		}
		last = percent
	}
}

func (b *Budget) checkEnforcement(problems *document.Problems) {
	if b.Enforcement != Hard && b.Enforcement != Guard && b.Enforcement != Soft {
		problems.Add("enforcement", "must be %s, %s or %s", Hard, Guard, Soft)
	}
	if b.Shrink != nil && b.Enforcement != Hard {
		problems.Add("on_short", "is for enforcement: hard, which alone holds anything: leave it out")
	}
	if b.SkipMissingUsage && !b.perKey() {
		problems.Add("on_missing_usage", "skip is for budgets of scope key and plan: leave it out")
	}
	if b.Uncached && b.Metric != Tokens {
		problems.Add("count_cached", "false is for token budgets: leave it out")
	}
	if b.CountFrom != "" && b.CountFrom != WindowStart {
		problems.Add("count_from", "must be %s or %s", now, WindowStart)
	}
}

// Spec is the window that a budget counts in. It fails when its zone is not
// known.
func (b *Budget) Spec() (window.Spec, error) {
	if b.Period == "" {
		return window.Spec{Length: b.WindowMicros}, nil
	}
	zone, err := window.Zone(b.Zone)
	if err != nil {
		return window.Spec{}, fmt.Errorf("the window of budget %s: %w", document.Quote(b.Name), err)
	}
	return window.Spec{Period: period(b.Period), Zone: zone}, nil
}

// zone is the one spelling of a budget's zone.
func (b *Budget) zone() string {
	if b.Zone == "UTC" {
		return ""
	}
	return b.Zone
}

func period(word string) window.Period {
	switch word {
	case Day:
		return window.PeriodDay
	case Week:
		return window.PeriodWeek
	case Month:
		return window.PeriodMonth
	default:
		return window.PeriodNone
	}
}

// Counts reports whether b counts something else than its previous version did,
// so that it needs a counter, and an epoch, of its own (SPEC BUD-4): another
// window, metric, scope, subject, model or provider, or tokens with cache reads
// instead of without. The name, the amount, and what happens at the end of it
// change no sum.
func (b *Budget) Counts(previous *Budget) bool {
	type sum struct {
		scope                            Scope
		subject, metric, model, provider string
		period, zone                     string
		windowMicros                     int64
		uncached                         bool
	}
	of := func(b *Budget) sum {
		return sum{b.Scope, b.Subject, b.Metric, b.Model, b.Provider, b.Period, b.zone(), b.WindowMicros, b.Uncached}
	}
	return of(b) != of(previous)
}
