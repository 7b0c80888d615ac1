// SPDX-License-Identifier: Apache-2.0

package ledger

// NoticeBudgetWarning is the Kind of a notice that a budget was used up to a
// threshold or past its soft limit.
const NoticeBudgetWarning = "models.budget.warning"

// The levels of a notice.
const (
	LevelThreshold = "threshold"
	LevelSoft      = "soft"
)

// WarnedSoft is the mark in State.Warned of an announced soft limit, above any
// percentage.
const WarnedSoft = 1 << 7

// Notice is an effect for the outbox: the settled amount of a counter has reached
// a level for the first time (BUD-5). Percent is the threshold's, 100 for a soft
// limit; Amount and Used are in the metric's unit.
type Notice struct {
	At        int64
	Place     int32
	Workspace string
	Kind      string
	Counter   Counter
	// Name and Scope are the limit's words for people.
	Name, Scope  string
	Metric       Metric
	Level        string
	Percent      uint8
	Amount, Used int64
}

// Alarm is what a hold remembers of its check for warnings: the amount and the
// thresholds of the admission, and whether it is a soft limit.
type Alarm struct {
	Name, Scope string
	Amount      int64
	Percents    []uint8
	Soft        bool
}
