// SPDX-License-Identifier: Apache-2.0

// Package limit compiles what a workspace and a key declare into the checks of
// one request, in the published order (SPEC section 2). It holds the limits'
// meaning: which counter each uses, how it admits, which code refuses.
//
// It decides nothing: the ledger evaluates the checks.
package limit

import (
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/tenant"
)

// Subject is what the limits of one request belong to.
type Subject struct {
	Workspace *tenant.Workspace
	Key       *tenant.Key
	// Zone is the workspace's zone, already loaded.
	Zone *time.Location
	// Set holds the workspace's plans, budgets and rules; nil: it has none.
	Set *Set
	// User is who is charged as the user, "" for nobody: the key's own, or the one
	// that the request names (KEY-7), which is then Named.
	User  string
	Named bool
	Tags  []string // of the request, distinct (RAT-5)
}

// Compiled are the checks that a request brings, around the place where check 3
// (the model policy) stands.
type Compiled struct {
	// Before are checks 1 and 2, After checks 4 and 5.
	Before, After []ledger.Check
	// Narrowed are those on one model or provider, in the published order: check
	// 4, then 6. Each is checked per candidate.
	Narrowed []Narrowed
	Effect
}

// Narrowed is a check of what one model, or one provider, is used for. Model is
// the name as it was declared: a model's or an alias.
type Narrowed struct {
	Model, Provider string
	Check           ledger.Check
}

// Effect is what checks mean for the rest of an admission.
type Effect struct {
	// SpendLimited: prepaid funds, a cap, or a budget of spend that refuses
	// applies, so an unpriced model is refused (PRC-3).
	SpendLimited bool
	// Reserving: a limit takes the worst case in advance, of money or of tokens,
	// so the output bound is written into the request (EST-2).
	Reserving bool
}

// See adds what one more check means.
func (e *Effect) See(c *ledger.Check) {
	e.SpendLimited = e.SpendLimited || c.Wants == ledger.Spend && c.Mode != ledger.Track
	e.Reserving = e.Reserving || c.Mode == ledger.Reserve || c.Mode == ledger.Take && c.Wants == ledger.Tokens
}

// stage is one family in the published order. The list is data: the order is
// held by a test, and the docs table is made from it.
type stage struct {
	Name    string
	Codes   []fault.Code
	before  bool
	compile func(Subject) ([]ledger.Check, []Narrowed)
}

func stages() []stage {
	return []stage{
		{"key", []fault.Code{fault.APIKeyInactive}, true, whole(keyStatus)},
		{"users", nil, true, whole(users)}, // not in the published table
		{"funds", []fault.Code{fault.InsufficientBalance}, true, whole(funds)},
		{"spend caps", []fault.Code{fault.DayLimitReached, fault.SevenDayLimitReached, fault.ThirtyDayLimitReached}, false, whole(caps)},
		{"budgets", []fault.Code{fault.BudgetExceeded}, false, budgets},
		{"runtime", []fault.Code{
			fault.APIKeyRPMExceeded, fault.APIKeyTPMExceeded, fault.APIKeyConcurrencyExceeded,
			fault.WorkspaceRPMExceeded, fault.WorkspaceTPMExceeded, fault.WorkspaceConcurrencyExceeded,
		}, false, whole(runtime)},
		{"rate rules", []fault.Code{fault.RateLimited}, false, rates},
	}
}

// whole is a family of which nothing is narrowed to a model.
func whole(compile func(Subject) []ledger.Check) func(Subject) ([]ledger.Check, []Narrowed) {
	return func(s Subject) ([]ledger.Check, []Narrowed) { return compile(s), nil }
}

// Compile builds the checks of one request in its workspace.
func Compile(s Subject) Compiled {
	var c Compiled
	for _, stage := range stages() {
		list, narrowed := stage.compile(s)
		if stage.before {
			c.Before = append(c.Before, list...)
		} else {
			c.After = append(c.After, list...)
		}
		c.Narrowed = append(c.Narrowed, narrowed...)
		for i := range list {
			c.See(&list[i])
		}
	}
	return c
}

// Order lists every refusal of the compiled checks in the published order.
func Order() []fault.Code {
	var codes []fault.Code
	for _, stage := range stages() {
		codes = append(codes, stage.Codes...)
	}
	return codes
}

// keyStatus is check 1's second half: the key's own state, judged at the
// decision's instant and on the decision's generation (KEY-2, ADM-4).
func keyStatus(s Subject) []ledger.Check {
	check := ledger.Check{
		Kind: ledger.KindPolicy, Mode: ledger.Observe, Code: fault.APIKeyInactive,
		Name: "key status", Scope: "key", Origin: "key",
	}
	switch {
	case s.Key.Disabled:
		return []ledger.Check{check}
	case s.Key.Plan != "" && s.Set.Plan(s.Key.Plan) == nil:
		// Nobody knows what the plan would limit.
		check.Origin = "plan"
		return []ledger.Check{check}
	case s.Key.ExpiresAt > 0:
		check.Amount = s.Key.ExpiresAt
		return []ledger.Check{check}
	default:
		return nil
	}
}
