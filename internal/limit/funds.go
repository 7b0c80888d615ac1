// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/tenant"
)

// FundsCounter is the workspace's one funds counter. It is kept for open
// workspaces too, so that going prepaid sees what was paid in (BAL-3, BUD-8).
func FundsCounter(workspace string) ledger.Counter {
	return ledger.Counter{Workspace: workspace, Limit: "funds"}
}

// funds is check 2. Type enterprise adds the credit line (BAL-1). A mode of
// funding that is not known here is a prepaid one: it refuses rather than let
// everything pass.
func funds(s Subject) []ledger.Check {
	check := ledger.Check{
		Counter: FundsCounter(s.Workspace.ID), Kind: ledger.KindFunds, Mode: ledger.Observe,
		Wants: ledger.Spend, Charges: ledger.Spend, Code: fault.InsufficientBalance,
		Name: "balance", Scope: "workspace", Origin: "workspace",
	}
	switch s.Workspace.Funds {
	case tenant.Open:
		check.Mode = ledger.Track
	case tenant.PrepaidHold:
		check.Mode = ledger.Reserve
	}
	if s.Workspace.Type == tenant.Enterprise {
		check.Credit = int64(s.Workspace.CreditLine)
	}
	return []ledger.Check{check}
}
