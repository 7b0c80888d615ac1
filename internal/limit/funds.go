// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// FundsCounter is the workspace's one funds counter. It is kept for open
// workspaces too, so that going prepaid sees what was paid in (BAL-3, BUD-8).
func FundsCounter(workspace string) ledger.Counter {
	return ledger.Counter{Workspace: workspace, Limit: "funds"}
}

// funds is check 2. Type enterprise adds the credit line (BAL-1).
func funds(s Subject) []ledger.Check {
	check := ledger.Check{
		Counter: FundsCounter(s.Workspace.ID), Kind: ledger.KindFunds, Mode: ledger.Track,
		Wants: ledger.Spend, Charges: ledger.Spend, Code: fault.InsufficientBalance,
		Name: "balance", Scope: "workspace", Origin: "workspace",
	}
	if s.Workspace.Type == "enterprise" {
		check.Credit = int64(s.Workspace.CreditLine)
	}
	switch s.Workspace.Funds {
	case "prepaid":
		check.Mode = ledger.Observe
	case "prepaid_hold":
		check.Mode = ledger.Reserve
	}
	return []ledger.Check{check}
}
