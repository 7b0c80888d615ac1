// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// Usage sums roll-ups and events into the rows of a report.
type Usage struct {
	query  *store.UsageQuery
	whole  int64
	events int // that were looked at
	groups map[string]*group
}

type group struct {
	values []string
	row    store.UsageRow
}

// NewUsage starts a report. whole is Sums.Whole's.
func NewUsage(q *store.UsageQuery, whole int64) *Usage {
	return &Usage{query: q, whole: whole, groups: make(map[string]*group)}
}

// Add counts one event, if the report asks for it.
func (u *Usage) Add(e *ledger.Event) {
	u.events++
	at := e.AdmittedAt
	if at < u.whole {
		at += dayNoon - at%DayMicros
	}
	if !e.Reports() || at < u.query.From || at >= u.query.To {
		return
	}
	r := e.Rollup()
	u.add(&r, window.DayAt(at, u.query.Zone))
}

// Events is how many events the report has looked at.
func (u *Usage) Events() int { return u.events }

// AddSum counts what one span of the report's Plan has of one group, of which
// only what Columns names need be set.
func (u *Usage) AddSum(s *Span, r *ledger.Rollup) { u.add(r, s.Day) }

// AddDay counts what stands for its day of UTC, if the report asks for it.
func (u *Usage) AddDay(r *ledger.Rollup) {
	if noon := r.Quarter + dayNoon; noon >= u.query.From && noon < u.query.To {
		u.add(r, window.DayAt(noon, u.query.Zone))
	}
}

func (u *Usage) add(r *ledger.Rollup, day window.Day) {
	values := make([]string, len(u.query.By))
	var name []byte
	for i, by := range u.query.By {
		if by == store.ByDay {
			values[i] = day.String()
		} else if field := Field(&r.Group, by); field != nil {
			values[i] = *field
		}
		name = append(binary.AppendUvarint(name, uint64(len(values[i]))), values[i]...)
	}
	g := u.groups[string(name)]
	if g == nil {
		g = &group{values: values}
		u.groups[string(name)] = g
	}
	g.row.Spend, g.row.Tokens = Saturate(g.row.Spend, r.Spend), Saturate(g.row.Tokens, r.Tokens)
	g.row.Requests, g.row.Events = g.row.Requests+r.Requests, g.row.Events+r.Events
}

// Field is what a report that is grouped by something reads; nil for days.
func Field(g *ledger.Group, by store.By) *string {
	switch by {
	case store.ByKey:
		return &g.Key
	case store.ByModel:
		return &g.Model
	case store.ByProvider:
		return &g.Provider
	case store.ByUser:
		return &g.User
	case store.ByTeam:
		return &g.Team
	case store.ByProject:
		return &g.Project
	default:
		return nil
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
