// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
)

// told is what was announced of one counter, by the audit's own count.
type told struct {
	percent uint8
	soft    bool
}

// announce expects the notices that a charge must bring: of several thresholds
// that are reached the highest, a soft limit's besides, each once (BUD-5). It is
// called after the charge was booked.
func (a *audit) announce(d *due, charged int64) {
	if !d.warns || charged <= 0 {
		return
	}
	t := a.told[d.counter]
	used, amount := a.settled[d.counter], d.amount+a.raised[d.counter]
	expect := func(level string, percent uint8) {
		a.notices = append(a.notices, noticed(d.counter, level, percent, used, amount))
		a.tally.Notices++
	}
	highest := uint8(0)
	for _, percent := range d.percents {
		if used*100 >= amount*int64(percent) {
			highest = max(highest, percent)
		}
	}
	if highest > t.percent {
		t.percent = highest
		expect(ledger.LevelThreshold, highest)
	}
	if d.soft && !t.soft && used >= amount {
		t.soft = true
		expect(ledger.LevelSoft, 100)
	}
	a.told[d.counter] = t
}

func noticed(c ledger.Counter, level string, percent uint8, used, amount int64) string {
	return fmt.Sprintf("%s/%s/%d/%q/%d %s %d: %d of %d", c.Workspace, c.Limit, c.Epoch, c.Subject, c.Window, level, percent, used, amount)
}

// warned compares the notices of one operation with those that it had to bring.
func (a *audit) warned(place int32) {
	var have []string
	for i := range a.d.changes.Outbox {
		if n := &a.d.changes.Outbox[i]; n.Place == place {
			have = append(have, noticed(n.Counter, n.Level, n.Percent, n.Used, n.Amount))
		}
	}
	if !slices.Equal(have, a.notices) {
		a.fail("each level is announced once", "told %q, want %q", have, a.notices)
	}
	a.notices = a.notices[:0]
}
