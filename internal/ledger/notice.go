// SPDX-License-Identifier: Apache-2.0

package ledger

import "math/bits"

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

// alarm is what is remembered of a check that warns; nil for any other.
func (c *Check) alarm() *Alarm {
	soft := c.Mode == Track
	if c.Kind != KindFixed || c.Charges == MetricNone || c.Amount == 0 || !soft && len(c.WarnPercent) == 0 {
		return nil
	}
	return &Alarm{Name: c.Name, Scope: c.Scope, Amount: c.Amount, Percents: c.WarnPercent, Soft: soft}
}

// warns tells whether a check's thresholds can be: ascending, 1 to 100.
func (c *Check) warns() bool {
	last := uint8(0)
	for _, percent := range c.WarnPercent {
		if percent <= last || percent > 100 {
			return false
		}
		last = percent
	}
	return len(c.WarnPercent) == 0 || c.Kind == KindFixed
}

// announce writes the notices that a charge to a hold's counter brings about: of
// several thresholds the highest, and a soft limit's, each once (BUD-5). The
// marks are in the counter, so no other amount, replica or crash repeats one.
func (b *batch) announce(h *Hold, charged int64) {
	a := h.Alarm
	s := b.counters.Find(h.Counter)
	if a == nil || s == nil || charged <= 0 {
		return
	}
	amount := saturatingAdd(a.Amount, s.Raised)
	var highest uint8
	for _, percent := range a.Percents {
		if reaches(s.Settled, amount, percent) {
			highest = max(highest, percent)
		}
	}
	if uint16(highest) > s.Warned&^WarnedSoft {
		b.touch(h.Counter, h.Kind).Warned = s.Warned&WarnedSoft | uint16(highest)
		b.notice(h, LevelThreshold, highest)
	}
	if a.Soft && s.Warned&WarnedSoft == 0 && reaches(s.Settled, amount, 100) {
		b.touch(h.Counter, h.Kind).Warned |= WarnedSoft
		b.notice(h, LevelSoft, 100)
	}
}

func (b *batch) notice(h *Hold, level string, percent uint8) {
	s := b.counters.Find(h.Counter)
	b.changes.Outbox = append(b.changes.Outbox, Notice{
		At: b.at, Place: b.place, Workspace: h.Counter.Workspace, Kind: NoticeBudgetWarning, Counter: h.Counter,
		Name: h.Alarm.Name, Scope: h.Alarm.Scope, Metric: h.Charges, Level: level, Percent: percent,
		Amount: saturatingAdd(h.Alarm.Amount, s.Raised), Used: s.Settled,
	})
}

// reaches tells whether used is at least so many percent of the amount, exactly.
func reaches(used, amount int64, percent uint8) bool {
	if used <= 0 || amount <= 0 {
		return false
	}
	haveHigh, have := bits.Mul64(uint64(used), 100)
	wantHigh, want := bits.Mul64(uint64(amount), uint64(percent))
	return haveHigh > wantHigh || haveHigh == wantHigh && have >= want
}
