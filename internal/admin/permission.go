// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"

	"github.com/weirhq/weir/internal/fault"
)

// Op names an operation. A change's name is also its action in the audit.
type Op string

// The operations.
const (
	OpKeyList         Op = "keys.list"
	OpKeyCreate       Op = "keys.create"
	OpKeyShow         Op = "keys.show"
	OpKeyUpdate       Op = "keys.update"
	OpKeyDelete       Op = "keys.delete"
	OpKeyRotate       Op = "keys.rotate"
	OpKeyDisable      Op = "keys.disable"
	OpKeyEnable       Op = "keys.enable"
	OpKeyLimits       Op = "keys.limits"
	OpKeyReset        Op = "keys.reset"
	OpWorkspaceShow   Op = "workspace.show"
	OpWorkspaceUpdate Op = "workspace.update"
	OpWorkspaceList   Op = "workspaces.list"
	OpFundsShow       Op = "funds.show"
	OpFundsEntries    Op = "funds.entries"
	OpFundsBook       Op = "funds.book"
	OpUsage           Op = "usage.show"
	OpRequestList     Op = "requests.list"
	OpRequestShow     Op = "requests.show"
	OpRequestAdjust   Op = "requests.adjust"
	OpVerify          Op = "verify.run"
	OpBackup          Op = "backup.write"
	OpReplicaList     Op = "replicas.list"
	OpReplicaForget   Op = "replicas.forget"
	OpPriceList       Op = "prices.list"
	OpPriceShow       Op = "prices.show"
	OpPriceCost       Op = "prices.cost"
	OpPriceImport     Op = "prices.import"
	OpModelList       Op = "models.list"
	OpModelShow       Op = "models.show"
	OpProviderList    Op = "providers.list"
	OpProviderShow    Op = "providers.show"
	OpBudgetList      Op = "models.budget.list"
	OpBudgetCreate    Op = "models.budget.create"
	OpBudgetUpdate    Op = "models.budget.update"
	OpBudgetDelete    Op = "models.budget.delete"
	OpBudgetRaise     Op = "models.budget.raise"
	OpBudgetReset     Op = "models.budget.reset"
	OpRateLimitList   Op = "models.rate_limit.list"
	OpRateLimitCreate Op = "models.rate_limit.create"
	OpRateLimitUpdate Op = "models.rate_limit.update"
	OpRateLimitDelete Op = "models.rate_limit.delete"
	OpRateLimitReset  Op = "models.rate_limit.reset"
	OpPlanList        Op = "plan.list"
	OpPlanCreate      Op = "plan.create"
	OpPlanShow        Op = "plan.show"
	OpPlanUpdate      Op = "plan.update"
	OpPlanDelete      Op = "plan.delete"
	OpAuditList       Op = "audit.list"
	OpStatus          Op = "status.show"
)

// Operation is one line of the table of operations: who may, and where it
// stands in the HTTP API.
type Operation struct {
	Op           Op
	Least        Role
	Method, Path string // below Base
	Summary      string
}

// Base is the path that every operation stands below.
const Base = "/api/v1"

// operations is the one place of permissions (SPEC ADM-2): a method that is not
// in it is refused to everybody.
var operations = []Operation{
	{OpKeyList, Viewer, http.MethodGet, "/keys", "List keys"},
	{OpKeyCreate, Admin, http.MethodPost, "/keys", "Create a key"},
	{OpKeyShow, Viewer, http.MethodGet, "/keys/{key}", "Show a key"},
	{OpKeyUpdate, Admin, http.MethodPatch, "/keys/{key}", "Change a key"},
	{OpKeyDelete, Admin, http.MethodDelete, "/keys/{key}", "Delete a key; its records stay"},
	{OpKeyRotate, Admin, http.MethodPost, "/keys/{key}/rotate", "Give a key a new secret"},
	{OpKeyDisable, Admin, http.MethodPost, "/keys/{key}/disable", "Disable a key"},
	{OpKeyEnable, Admin, http.MethodPost, "/keys/{key}/enable", "Enable a key"},
	{OpKeyLimits, Viewer, http.MethodGet, "/keys/{key}/limits", "List every limit that applies to a key, with its use"},
	{OpKeyReset, Admin, http.MethodPost, "/keys/{key}/reset", "Set to zero what a key's caps and budgets have used"},
	{OpWorkspaceShow, Viewer, http.MethodGet, "/workspace", "Show the workspace"},
	{OpWorkspaceUpdate, Admin, http.MethodPatch, "/workspace", "Change the workspace"},
	{OpWorkspaceList, System, http.MethodGet, "/workspaces", "List workspaces"},
	{OpFundsShow, Viewer, http.MethodGet, "/funds", "Show the balance"},
	{OpFundsEntries, Viewer, http.MethodGet, "/funds/entries", "List top-ups, credits and adjustments"},
	{OpFundsBook, Admin, http.MethodPost, "/funds/entries", "Book a top-up, credit or adjustment"},
	{OpUsage, Viewer, http.MethodGet, "/usage", "Sum up usage"},
	{OpRequestList, Viewer, http.MethodGet, "/requests", "List requests"},
	{OpRequestShow, Viewer, http.MethodGet, "/requests/{id}", "Explain a request"},
	{OpRequestAdjust, Admin, http.MethodPost, "/requests/{id}/adjust", "Say what an ended request cost instead of what it was charged"},
	{OpVerify, System, http.MethodPost, "/verify", "Recompute every counter from its events"},
	{OpBackup, System, http.MethodPost, "/backup", "Copy the store to a new file on the server's machine"},
	{OpReplicaList, System, http.MethodGet, "/replicas", "List the processes that share the store"},
	{OpReplicaForget, System, http.MethodPost, "/replicas/{id}/forget", "Charge what a dead process left open, now"},
	{OpPriceList, Viewer, http.MethodGet, "/prices", "List prices"},
	{OpPriceShow, Viewer, http.MethodGet, "/prices/model", "Show the price of a model"},
	{OpPriceCost, Viewer, http.MethodPost, "/prices/cost", "Price a usage"},
	{OpPriceImport, System, http.MethodPost, "/prices/import", "Import a published price list"},
	{OpModelList, Viewer, http.MethodGet, "/models", "List models"},
	{OpModelShow, Viewer, http.MethodGet, "/models/{model}", "Show a model"},
	{OpProviderList, Viewer, http.MethodGet, "/providers", "List providers"},
	{OpProviderShow, Viewer, http.MethodGet, "/providers/{provider}", "Show a provider"},
	{OpBudgetList, Viewer, http.MethodGet, "/models/budgets", "List budgets with their live use"},
	{OpBudgetCreate, Editor, http.MethodPost, "/models/budgets", "Create a budget"},
	{OpBudgetUpdate, Editor, http.MethodPatch, "/models/budgets/{id}", "Change a budget"},
	{OpBudgetDelete, Editor, http.MethodDelete, "/models/budgets/{id}", "Delete a budget; what it counted stays"},
	{OpBudgetRaise, Editor, http.MethodPost, "/models/budgets/{id}/raise", "Raise a budget for its current window"},
	{OpBudgetReset, Editor, http.MethodPost, "/models/budgets/{id}/reset", "Set to zero what a budget's window has used"},
	{OpRateLimitList, Viewer, http.MethodGet, "/models/rate-limits", "List rate limits with their live use"},
	{OpRateLimitCreate, Admin, http.MethodPost, "/models/rate-limits", "Create a rate limit"},
	{OpRateLimitUpdate, Admin, http.MethodPatch, "/models/rate-limits/{id}", "Change a rate limit"},
	{OpRateLimitDelete, Admin, http.MethodDelete, "/models/rate-limits/{id}", "Delete a rate limit"},
	{OpRateLimitReset, Admin, http.MethodPost, "/models/rate-limits/{id}/reset", "Empty a rate limit's window"},
	{OpPlanList, Viewer, http.MethodGet, "/plans", "List plans"},
	{OpPlanCreate, Admin, http.MethodPost, "/plans", "Create a plan"},
	{OpPlanShow, Viewer, http.MethodGet, "/plans/{id}", "Show a plan"},
	{OpPlanUpdate, Admin, http.MethodPatch, "/plans/{id}", "Change a plan"},
	{OpPlanDelete, Admin, http.MethodDelete, "/plans/{id}", "Delete a plan that no key has"},
	{OpAuditList, Admin, http.MethodGet, "/audit", "List changes"},
	{OpStatus, Viewer, http.MethodGet, "/status", "Show what answers"},
}

// Operations lists every operation.
func Operations() []Operation { return append([]Operation(nil), operations...) }

// Lookup finds an operation's line; ok is false when there is none.
func Lookup(op Op) (line Operation, ok bool) {
	for _, line := range operations {
		if line.Op == op {
			return line, true
		}
	}
	return Operation{}, false
}

// permit refuses an actor whose role is below the operation's.
func permit(a Actor, op Op) error {
	line, ok := Lookup(op)
	if !ok || a.Role.rank() < line.Least.rank() {
		return fault.New(fault.Forbidden, "%s needs the role %s, %s has %s", op, line.Least, a.Name, a.Role)
	}
	return nil
}

// permitOnly is the refusal of a part of an operation that needs a higher role.
func permitOnly(a Actor, least Role) error {
	return fault.New(fault.Forbidden, "this needs the role %s, %s has %s", least, a.Name, a.Role)
}
