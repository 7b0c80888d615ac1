// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
)

// DaysCounter keeps a key's spend by local day from its first call on, whether
// or not a cap is set: a cap set later sees what was spent (CAP-1, BUD-8).
func DaysCounter(workspace, key string) ledger.Counter {
	return ledger.Counter{Workspace: workspace, Limit: "days", Subject: key}
}

// caps is the first half of check 4: day, then 7-day, then 30-day.
func caps(s Subject) []ledger.Check {
	base := ledger.Check{
		Counter: DaysCounter(s.Workspace.ID, s.Key.ID), Kind: ledger.KindDays, Mode: ledger.Track,
		Wants: ledger.Spend, Charges: ledger.Spend, Zone: s.Zone, ZoneEpoch: s.Workspace.ZoneEpoch, Span: 1,
		Code: fault.DayLimitReached, Name: "day spend", Scope: "key", Origin: "always kept",
	}
	var list []ledger.Check
	add := func(limit *money.Nanos, span int32, name, field string, code fault.Code) {
		if limit == nil || *limit == 0 {
			return
		}
		c := base
		c.Mode, c.Amount, c.Span, c.Name, c.Code = ledger.Observe, int64(*limit), span, name, code
		c.Origin = keyOrigin(s, field)
		list = append(list, c)
	}
	add(s.Key.Caps.Day, 1, "day cap", "caps.day", fault.DayLimitReached)
	add(s.Key.Caps.SevenDay, 7, "7-day cap", "caps.seven_day", fault.SevenDayLimitReached)
	add(s.Key.Caps.ThirtyDay, 30, "30-day cap", "caps.thirty_day", fault.ThirtyDayLimitReached)
	if len(list) == 0 {
		return []ledger.Check{base}
	}
	return list
}

// keyOrigin tells whether a key's value was given or copied (KEY-4, EFF-1).
func keyOrigin(s Subject, field string) string {
	if date, ok := s.Key.FromTemplate[field]; ok {
		return "from template, " + date
	}
	return "key"
}
