// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"math"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// Usage sums events into the rows of a report.
type Usage struct {
	query  *store.UsageQuery
	groups map[string]*group
}

type group struct {
	values []string
	row    store.UsageRow
}

// NewUsage starts a report.
func NewUsage(q *store.UsageQuery) *Usage {
	return &Usage{query: q, groups: make(map[string]*group)}
}

// Reports tells whether an event of that kind is usage: what a request was
// charged and what corrected it, not what was paid in.
func Reports(k ledger.EventKind) bool {
	switch k {
	case ledger.EventSettled, ledger.EventSwept, ledger.EventCorrection:
		return true
	default:
		return false
	}
}

// Bodies tells whether the report needs more of an event than its instant, key,
// model and amounts.
func (u *Usage) Bodies() bool {
	return slices.ContainsFunc(u.query.By, func(b store.By) bool {
		return b != store.ByKey && b != store.ByModel && b != store.ByDay
	})
}

// Add counts one event, if the report asks for it.
func (u *Usage) Add(e *ledger.Event) {
	q := u.query
	if !Reports(e.Kind) || e.AdmittedAt < q.From || e.AdmittedAt >= q.To {
		return
	}
	values := make([]string, len(q.By))
	for i, by := range q.By {
		values[i] = u.value(by, e)
	}
	key := strings.Join(values, "\x00")
	g := u.groups[key]
	if g == nil {
		g = &group{values: values}
		u.groups[key] = g
	}
	g.row.Spend = Saturate(g.row.Spend, e.Spend)
	g.row.Tokens = Saturate(g.row.Tokens, e.Tokens)
	g.row.Events++
	if e.Kind != ledger.EventCorrection && e.Attempt == 0 {
		g.row.Requests++
	}
}

func (u *Usage) value(by store.By, e *ledger.Event) string {
	switch by {
	case store.ByKey:
		return e.Subjects.Key
	case store.ByModel:
		return e.Model
	case store.ByProvider:
		return e.Provider
	case store.ByUser:
		return e.Subjects.User
	case store.ByTeam:
		return e.Subjects.Team
	case store.ByProject:
		return e.Subjects.Project
	case store.ByDay:
		return window.DayAt(e.AdmittedAt, u.query.Zone).String()
	default:
		return ""
	}
}

// Rows are the report, ordered by the values of its groups.
func (u *Usage) Rows() []store.UsageRow {
	list := make([]*group, 0, len(u.groups))
	for _, g := range u.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *group) int { return slices.Compare(a.values, b.values) })
	rows := make([]store.UsageRow, len(list))
	for i, g := range list {
		rows[i] = g.row
		rows[i].Group = make(map[store.By]string, len(g.values))
		for j, by := range u.query.By {
			rows[i].Group[by] = g.values[j]
		}
	}
	return rows
}

// Saturate adds, and stops at the ends of int64 (SPEC section 1).
func Saturate(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	default:
		return a + b
	}
}

// Quarters adds up the sums of one batch, so that each row is written once.
func Quarters(list []ledger.QuarterSum) []ledger.QuarterSum {
	type key struct {
		workspace, key string
		quarter        int64
	}
	at := make(map[key]int, len(list))
	var out []ledger.QuarterSum
	for _, q := range list {
		k := key{q.Workspace, q.Key, q.Quarter}
		i, ok := at[k]
		if !ok {
			at[k] = len(out)
			out = append(out, q)
			continue
		}
		out[i].Spend = Saturate(out[i].Spend, q.Spend)
		out[i].Tokens = Saturate(out[i].Tokens, q.Tokens)
		out[i].Requests = Saturate(out[i].Requests, q.Requests)
	}
	return out
}
