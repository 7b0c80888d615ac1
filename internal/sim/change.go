// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
)

// ChangeKind says what an operator changes.
type ChangeKind uint8

// The changes.
const (
	ChangeKeyRPM ChangeKind = iota
	ChangeKeyTPM
	ChangeKeyConcurrency
	ChangeWorkspaceRPM
	ChangeWorkspaceTPM
	ChangeWorkspaceConcurrency
	ChangeCap
	ChangeZone
	ChangeFunds
	ChangeStatus
	ChangePlan
	ChangeSubjects
	ChangeMaxUsers
	ChangeHoldOutput
	ChangeOnShort
	ChangeBudgetLimit
	ChangeBudgetEnforcement
	ChangeBudgetWarnings
	ChangeBudgetWindow
	ChangeBudgetNarrowing
	ChangeRuleLimit
	ChangeRuleEnabled
	ChangeRuleWindow
	changeKinds
)

func changeNames() [changeKinds]string {
	return [changeKinds]string{
		"key rpm", "key tpm", "key concurrency", "workspace rpm", "workspace tpm", "workspace concurrency", "cap", "zone", "funds",
		"status", "plan", "team and project", "max users", "hold output tokens", "on short", "budget limit", "budget enforcement",
		"budget warnings", "budget window", "budget narrowing", "rule limit", "rule enabled", "rule window",
	}
}

// initialChanges give a new configuration its runtime limits, caps and settings.
func initialChanges() []ChangeKind {
	return []ChangeKind{
		ChangeKeyRPM, ChangeKeyTPM, ChangeKeyConcurrency, ChangeWorkspaceRPM, ChangeWorkspaceTPM, ChangeWorkspaceConcurrency,
		ChangeCap, ChangeHoldOutput, ChangeOnShort, ChangeMaxUsers,
	}
}

// changed applies an operator's change.
func (c *configuration) changed(e *Event, generation int64) *configuration {
	next := *c
	w, key := *c.workspace(), *c.keys[e.Key]
	switch {
	case e.Change == changeKinds: // nothing
	case e.Change >= ChangeRuleLimit:
		next.rules = slices.Clone(c.rules)
		changeRule(&next.rules[e.Amount%int64(len(next.rules))], e)
	case e.Change >= ChangeBudgetLimit:
		next.budgets = slices.Clone(c.budgets)
		changeBudget(&next.budgets[e.Amount%int64(len(next.budgets))], e)
	case e.Change >= ChangeStatus:
		changeSettings(&w, &key, e)
	default:
		changeLimits(&w, &key, e)
	}
	if e.Change == ChangeZone {
		w.Adopt(c.workspace())
	}
	next.keys[e.Key] = &key
	next.declare(&w, generation)
	return &next
}

// pick is the event's choice among values.
func pick[T any](e *Event, values ...T) *T { return &values[e.Amount%int64(len(values))] }

func changeLimits(w *tenant.Workspace, key *tenant.Key, e *Event) {
	switch e.Change {
	case ChangeKeyRPM:
		key.Limits.RPM = pick[int64](e, 0, 2, 10, 60, 600)
	case ChangeKeyTPM:
		key.Limits.TPM = pick[int64](e, 0, 2500, 30_000, 1_000_000)
		counted := e.Amount%3 > 0
		key.Limits.CountCached = &counted
	case ChangeKeyConcurrency:
		key.Limits.Concurrency = pick[int64](e, 0, 1, 3, 10, 100)
	case ChangeWorkspaceRPM:
		w.Limits.RPM = pick[int64](e, 0, 0, 5, 30, 300, 1000)
	case ChangeWorkspaceTPM:
		w.Limits.TPM = pick[int64](e, 0, 0, 5000, 100_000, 3_000_000)
		counted := e.Amount%3 > 0
		w.Limits.CountCached = &counted
	case ChangeWorkspaceConcurrency:
		w.Limits.Concurrency = pick[int64](e, 0, 2, 8, 30, 100)
	case ChangeCap:
		spend := money.Nanos(*pick[int64](e, 0, 5, 50, 500, 5000)) * money.Dollar / 100
		week, month := 3*spend, 5*spend
		key.Caps = tenant.Caps{Day: &spend, SevenDay: &week, ThirtyDay: &month}
	case ChangeZone:
		names := zones()
		w.Zone = *pick(e, names[:]...)
	case ChangeFunds:
		w.Funds = *pick(e, tenant.Open, tenant.Prepaid, tenant.PrepaidHold)
	default:
	}
}

func changeSettings(w *tenant.Workspace, key *tenant.Key, e *Event) {
	switch e.Change {
	case ChangeStatus:
		key.Disabled = e.Amount%5 == 0
	case ChangePlan:
		key.Plan = *pick(e, "", "gold", "silver", "gold", "silver", "", "gold", "silver", "gone")
	case ChangeSubjects:
		key.Team, key.Project = teams()[e.Amount%3], projects()[e.Amount/3%3]
	case ChangeMaxUsers:
		w.MaxUsers = *pick[int64](e, 2, 3, 4, 100, 1000)
	case ChangeHoldOutput:
		w.HoldOutputTokens = *pick[int64](e, 0, 0, 100, 700)
	case ChangeOnShort:
		w.OnShort = *pick(e, tenant.Refuse, tenant.Shrink)
		w.ShrinkFloor = *pick[int64](e, 1, 16, 128)
	default:
	}
}

// draw is a second number of the event, apart from the limit that it picks.
func (e *Event) draw() int64 { return e.Amount / 7 }

func changeBudget(b *declaredBudget, e *Event) {
	before := *b
	switch e.Change {
	case ChangeBudgetLimit:
		b.setLimit(e.draw())
	case ChangeBudgetEnforcement:
		b.Enforcement = enforcements()[e.draw()%3]
	case ChangeBudgetWarnings:
		b.setWarnings(int(e.draw()))
	case ChangeBudgetWindow:
		b.setWindow(int(e.draw())%5, int(e.draw()))
	case ChangeBudgetNarrowing:
		b.narrow(int(e.draw())%3, int(e.draw()))
	default:
	}
	// What the script itself says about counting anew (BUD-4).
	utc := func(zone string) bool { return zone == "" || zone == "UTC" }
	sameZone := b.Zone == before.Zone || utc(b.Zone) && utc(before.Zone)
	if !sameZone || b.Period != before.Period || b.WindowMicros != before.WindowMicros || b.Model != before.Model || b.Provider != before.Provider {
		b.serial++
	}
	if b.Counts(&before.Budget) {
		b.Epoch++
	}
}

func changeRule(r *declaredRule, e *Event) {
	before := *r
	switch e.Change {
	case ChangeRuleLimit:
		r.setLimit(e.draw())
	case ChangeRuleEnabled:
		r.Enabled = !r.Enabled
	case ChangeRuleWindow:
		r.setWindow(int(e.draw()))
	default:
	}
	if r.WindowSeconds != before.WindowSeconds || r.Enabled && !before.Enabled {
		r.serial++
	}
	if r.Counts(&before.Rule) {
		r.Epoch++
	}
}
