// SPDX-License-Identifier: Apache-2.0

// Package tenant says who pays, who is limited and who may: workspaces, keys
// and the secrets that name them, with their strict JSON form.
//
// It is not for deciding a request (ledger) or for compiling limits into checks
// (limit); it holds the settings that both start from.
package tenant

import "github.com/weirhq/weir/internal/money"

// The types of a workspace (SPEC BAL-1).
const (
	Personal   = "personal"   // pays from its balance
	Enterprise = "enterprise" // pays from its balance and a credit line
)

// How a workspace is funded (SPEC BAL-1, BAL-6).
const (
	Open        = "open"         // no funds check
	Prepaid     = "prepaid"      // refused once the balance is spent
	PrepaidHold = "prepaid_hold" // the worst case is held in advance
)

// What a hard budget does with a request whose worst case does not fit (SPEC
// BUD-10).
const (
	Refuse = "refuse"
	Shrink = "shrink" // lowers its output bound to what fits
)

// Defaults of a workspace (SPEC BUD-10, KEY-7).
const (
	DefaultShrinkFloor = 1024
	DefaultMaxUsers    = 1_000_000
)

// DefaultWorkspace is the name of the workspace that a first start makes.
const DefaultWorkspace = "default"

// Workspace is the tenant: it owns keys and limits, and it pays.
//
// The zero value is not valid; NewWorkspace has the defaults. ID and Name stand
// beside its JSON form, not in it.
type Workspace struct {
	ID, Name string
	Type     string // Personal or Enterprise
	Funds    string // Open, Prepaid or PrepaidHold
	// CreditLine is what an enterprise workspace may owe, at least 0.
	CreditLine money.Nanos
	// Zone is the IANA name of the zone whose calendar days caps follow; empty
	// means UTC (SPEC CAP-3).
	Zone string
	// ZoneEpoch grows when Zone changes, so that the days of one zone are never
	// added to those of another.
	ZoneEpoch     uint32
	Limits        RuntimeLimits
	TypeDefaults  map[string]RuntimeLimits // by Type (SPEC RUN-5)
	KeyTemplate   *Template                // nil: none
	BudgetRefusal int                      // 429 or 402 (SPEC ERR-7)
	HideAmounts   bool                     // refusals name no amounts (SPEC ERR-1)
	// HoldOutputTokens bounds what budgets and token rules hold for a request's
	// output; 0: its worst case. OnShort (Refuse or Shrink) is what hard budgets
	// do that say nothing, ShrinkFloor the least output bound that Shrink goes
	// down to (SPEC BUD-10).
	HoldOutputTokens int64
	OnShort          string
	ShrinkFloor      int64
	// MaxUsers bounds the users that requests may name (SPEC KEY-7).
	MaxUsers int64
	// Inherit says that the shared providers, models, routes and prices can be
	// used here (SPEC 14).
	Inherit bool
}

// NewWorkspace returns a workspace with every default: enterprise, open, UTC,
// no limits, inheriting.
func NewWorkspace(id, name string) *Workspace {
	return &Workspace{
		ID: id, Name: name, Type: Enterprise, Funds: Open, BudgetRefusal: 429, Inherit: true,
		OnShort: Refuse, ShrinkFloor: DefaultShrinkFloor, MaxUsers: DefaultMaxUsers,
	}
}

// RuntimeLimits are the limits of one layer (SPEC section 5). For a workspace
// nil is unset, which leaves the type's default in force, and 0 is unlimited,
// explicitly. For a key both mean no limit of its own.
type RuntimeLimits struct {
	RPM         *int64 // requests a minute
	TPM         *int64 // tokens a minute
	Concurrency *int64 // requests in flight
	// CountCached false leaves cache reads out of TPM; nil is true (SPEC USE-3).
	CountCached *bool
}

// Metric names one runtime limit.
type Metric string

// The runtime limits in the published order (SPEC 2, check 5).
const (
	RPM         Metric = "rpm"
	TPM         Metric = "tpm"
	Concurrency Metric = "concurrency"
)

// Metrics lists the runtime limits in the published order.
func Metrics() []Metric { return []Metric{RPM, TPM, Concurrency} }

// Of returns the limit on one metric, nil when it is unset.
func (l RuntimeLimits) Of(m Metric) *int64 {
	if at := l.at(m); at != nil {
		return *at
	}
	return nil
}

func (l *RuntimeLimits) at(m Metric) **int64 {
	switch m {
	case RPM:
		return &l.RPM
	case TPM:
		return &l.TPM
	case Concurrency:
		return &l.Concurrency
	default:
		return nil
	}
}

// LeavesCacheReads tells whether TPM counts no cache reads.
func (l RuntimeLimits) LeavesCacheReads() bool { return l.CountCached != nil && !*l.CountCached }

// The origins of a workspace's effective runtime limit (SPEC RUN-5).
const (
	FromWorkspace   = "workspace"
	FromTypeDefault = "type default"
	Unlimited       = "unlimited"
)

// Layer returns the workspace's effective limit on one metric and where it
// comes from: its own value, else its type's default, else none (SPEC RUN-5).
// A value of 0 is unlimited, whichever origin it has.
func (w *Workspace) Layer(m Metric) (value int64, origin string) {
	if own := w.Limits.Of(m); own != nil {
		return *own, FromWorkspace
	}
	if byType := w.TypeDefaults[w.Type].Of(m); byType != nil {
		return *byType, FromTypeDefault
	}
	return 0, Unlimited
}

// LayerLeavesCacheReads tells whether the workspace's effective TPM counts no
// cache reads: what the layer says that the value comes from.
func (w *Workspace) LayerLeavesCacheReads() bool {
	if w.Limits.TPM != nil {
		return w.Limits.LeavesCacheReads()
	}
	return w.TypeDefaults[w.Type].LeavesCacheReads()
}

// Adopt carries over what a new version of a workspace keeps of the one before
// it: its identity, and the zone's epoch, which grows when the zone changed.
func (w *Workspace) Adopt(previous *Workspace) {
	w.ID = previous.ID
	w.ZoneEpoch = previous.ZoneEpoch
	if w.Zone != previous.Zone {
		w.ZoneEpoch++
	}
}
