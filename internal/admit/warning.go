// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/weirhq/weir/internal/ledger"
)

// WarningHeader carries one item for each budget that is nearly used, or past a
// soft limit (BUD-5).
const WarningHeader = "X-Weir-Budget-Warning"

// Warnings are the items of that header for an admitted request: what is settled
// and held, its own hold included, has reached a threshold or a soft limit. at is
// the decision's instant. hide leaves the share out (ERR-1: a workspace can hide
// amounts).
func Warnings(readings []ledger.Reading, at int64, hide bool) string {
	var items []string
	for i := range readings {
		r := &readings[i]
		if r.Check.Kind != ledger.KindFixed || r.Amount <= 0 {
			continue
		}
		used := sum(r.Used, r.Held)
		if r.Check.Mode == ledger.Reserve {
			used = sum(used, r.Wanted)
		}
		percent := percentOf(used, r.Amount)
		level := ""
		for _, threshold := range r.Check.WarnPercent {
			if percent >= int64(threshold) {
				level = "threshold"
			}
		}
		if r.Check.Mode == ledger.Track && percent >= 100 {
			level = "soft"
		}
		if level == "" {
			continue
		}
		item := quoted(r.Check.Name)
		if !hide {
			item += fmt.Sprintf(";used_pct=%d", percent)
		}
		item += ";level=" + level
		if r.ResetsAt > at {
			item += fmt.Sprintf(";reset=%d", ceilSeconds(r.ResetsAt-at))
		}
		items = append(items, item)
	}
	return strings.Join(items, ", ")
}

// percentOf is used in whole percent of amount, rounded down; both at least 0.
func percentOf(used, amount int64) int64 {
	hi, lo := bits.Mul64(uint64(max(0, used)), 100)
	if hi >= uint64(amount) {
		return 1_000_000_000 // past every threshold
	}
	share, _ := bits.Div64(hi, lo, uint64(amount))
	return int64(min(share, 1_000_000_000))
}

// quoted is a string as structured header fields write it (RFC 9651): other
// characters than printable ASCII cannot stand in one.
func quoted(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			b.WriteByte('?')
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
