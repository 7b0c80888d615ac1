// SPDX-License-Identifier: Apache-2.0

// Package budget says what a budget is: so much spend or so many tokens of one
// subject in one window, and what happens at the end of it (SPEC BUD-1 to
// BUD-10), with its strict JSON form.
//
// It decides nothing: package limit compiles budgets into checks, and package
// ledger evaluates those.
package budget

// KindBudget is the kind of object that a budget is.
const KindBudget = "budget"

// Scope says whose use a budget bounds.
type Scope string

// The scopes in the order in which they are checked (SPEC section 2, check 4).
const (
	ScopeKey     Scope = "key"
	ScopePlan    Scope = "plan"
	ScopeUser    Scope = "user"
	ScopeProject Scope = "project"
	ScopeTeam    Scope = "team"
	ScopeOrg     Scope = "org"
)

// Scopes lists the scopes in the published order.
func Scopes() []Scope {
	return []Scope{ScopeKey, ScopePlan, ScopeUser, ScopeProject, ScopeTeam, ScopeOrg}
}

// The metrics.
const (
	Spend  = "spend"
	Tokens = "tokens"
)

// The calendar periods. Weeks begin on Monday.
const (
	Day   = "day"
	Week  = "week"
	Month = "month"
)

// What a budget does (SPEC BUD-1). A's block and record are read as guard and
// soft.
const (
	Hard  = "hard"  // holds the worst case of each request: can't be overrun by holds
	Guard = "guard" // refuses once the settled use has reached the limit
	Soft  = "soft"  // never refuses; warns
)

// Budget is one budget. ID, Name and Epoch stand beside its JSON form, not in
// it. Name is unique among the budgets of its owner: the workspace, or the key
// or plan that it was declared with.
type Budget struct {
	ID, Name string
	// Epoch grows when what is counted changes, which Counts tells (SPEC BUD-4).
	Epoch uint32
	// Owner is the id of the key or plan that it was declared with; "" is the
	// workspace.
	Owner string
	Scope Scope
	// Subject is the one that it bounds: a key's or plan's id, or the name of a
	// team, project or user. Empty: each one separately (never so for plans);
	// always empty for org. A plan's budget counts each of its keys separately.
	Subject string
	Metric  string // Spend or Tokens
	// Limit is above 0, in nano-dollars or tokens.
	Limit int64
	// Period is a calendar period in Zone ("" is UTC). Empty: WindowMicros is a
	// fixed length, aligned to the Unix epoch.
	Period       string
	Zone         string
	WindowMicros int64
	// Model or Provider narrows it to what one model, or one provider, is used
	// for. At most one is set.
	Model, Provider string
	// WarnPercent are thresholds, ascending, each from 1 to 100 (SPEC BUD-5).
	WarnPercent []int64
	Enforcement string // Hard, Guard or Soft
	// SkipMissingUsage: a request whose provider reported no usage is not charged
	// to this budget (SPEC RES-3; key and plan budgets only).
	SkipMissingUsage bool
	// Uncached leaves cache reads out of a token budget (SPEC USE-3).
	Uncached bool
	// Shrink lowers the output bound of a request to what a hard budget has left
	// (SPEC BUD-10, on_short: shrink); nil: as the workspace says.
	Shrink *bool
	// CountFrom is "" or WindowStart: a new budget begins with what its window
	// has already seen (SPEC BUD-8).
	CountFrom string
	// System: set by a system administrator; the workspace's own can't change it
	// (SPEC BUD-7).
	System bool
}

// WindowStart is the value of CountFrom that counts what the window has seen.
const WindowStart = "window_start"
