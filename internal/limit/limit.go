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
}

// Compiled are the checks that a key's every request brings, around the place
// where check 3 (the model policy) stands.
type Compiled struct {
	// Before are checks 1 and 2, After checks 4 and 5.
	Before, After []ledger.Check
	// SpendLimited: prepaid funds or a cap applies, so an unpriced model is
	// refused (PRC-3). Reserving: a limit holds the worst case, of money or of
	// tokens, so the output bound is written into the request (EST-2).
	SpendLimited, Reserving bool
}

// stage is one family in the published order. The list is data: the order is
// held by a test, and the docs table is made from it.
type stage struct {
	Name    string
	Codes   []fault.Code
	before  bool
	compile func(Subject) []ledger.Check
}

func stages() []stage {
	return []stage{
		{"key", []fault.Code{fault.APIKeyInactive}, true, keyStatus},
		{"funds", []fault.Code{fault.InsufficientBalance}, true, funds},
		{"spend caps", []fault.Code{fault.DayLimitReached, fault.SevenDayLimitReached, fault.ThirtyDayLimitReached}, false, caps},
		{"runtime", []fault.Code{
			fault.APIKeyRPMExceeded, fault.APIKeyTPMExceeded, fault.APIKeyConcurrencyExceeded,
			fault.WorkspaceRPMExceeded, fault.WorkspaceTPMExceeded, fault.WorkspaceConcurrencyExceeded,
		}, false, runtime},
	}
}

// Compile builds the checks of one key in its workspace.
func Compile(s Subject) Compiled {
	var c Compiled
	for _, stage := range stages() {
		list := stage.compile(s)
		if stage.before {
			c.Before = append(c.Before, list...)
		} else {
			c.After = append(c.After, list...)
		}
		for i := range list {
			blocks := list[i].Wants == ledger.Spend && list[i].Mode != ledger.Track
			c.SpendLimited = c.SpendLimited || blocks
			c.Reserving = c.Reserving || list[i].Mode == ledger.Reserve
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
	case s.Key.ExpiresAt > 0:
		check.Amount = s.Key.ExpiresAt
		return []ledger.Check{check}
	default:
		return nil
	}
}
