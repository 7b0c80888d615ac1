// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

const (
	dayNoon = DayMicros / 2
	// QuarterMicros is a quarter hour.
	QuarterMicros = DayMicros / 96
)

// groupColumns are what tables of roll-ups call what usage is grouped by.
var groupColumns = map[store.By]string{
	store.ByKey: "key", store.ByModel: "model", store.ByProvider: "provider", store.ByUser: "member",
	store.ByTeam: "team", store.ByProject: "project",
}

// Columns are the columns that a report's groups are read from, and what is read
// from each goes where Field says.
func Columns(by []store.By) (names []string, of []store.By) {
	for _, b := range by {
		if name := groupColumns[b]; name != "" {
			names, of = append(names, name), append(of, b)
		}
	}
	return names, of
}

// Digest names a group in a row's key. Names may be longer than a key can be.
type Digest [16]byte

// DigestOf is a group's.
func DigestOf(g *ledger.Group) (d Digest) {
	var b []byte
	for _, s := range [...]string{g.Key, g.Model, g.Provider, g.User, g.Team, g.Project} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	sum := sha256.Sum256(b)
	copy(d[:], sum[:])
	return d
}

// Rolled is one row to be written.
type Rolled struct {
	ledger.Rollup
	Digest Digest
}

// Rollups adds up events and other roll-ups, so that each row is written once.
type Rollups struct {
	whole int64
	rows  map[rollupKey]*ledger.Rollup
}

type rollupKey struct {
	workspace string
	quarter   int64
	group     ledger.Group
}

// NewRollups starts empty. whole is Sums.Whole's: what was admitted before it goes
// to its day.
func NewRollups(whole int64) *Rollups {
	return &Rollups{whole: whole, rows: make(map[rollupKey]*ledger.Rollup)}
}

// Event counts one event, if it is usage.
func (l *Rollups) Event(e *ledger.Event) {
	if e.Reports() {
		r := e.Rollup()
		l.Add(&r)
	}
}

// Add counts what is rolled up already.
func (l *Rollups) Add(r *ledger.Rollup) {
	key := rollupKey{r.Workspace, r.Quarter, r.Group}
	if key.quarter < l.whole {
		key.quarter -= key.quarter % DayMicros
	}
	if row := l.rows[key]; row != nil {
		row.Add(r)
		return
	}
	row := *r
	row.Quarter = key.quarter
	l.rows[key] = &row
}

// Rows are the rows to add to those of the store, in the order of their keys.
func (l *Rollups) Rows() []Rolled {
	list := make([]Rolled, 0, len(l.rows))
	for _, r := range l.rows {
		list = append(list, Rolled{*r, DigestOf(&r.Group)})
	}
	slices.SortFunc(list, func(a, b Rolled) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Quarter, b.Quarter), bytes.Compare(a.Digest[:], b.Digest[:]))
	})
	return list
}

// Plan says where the figures of a report are read from: roll-ups of spans, events
// of the quarters that they cannot tell apart, and whatever is in no roll-up.
type Plan struct {
	Spans []Span
	// Cuts are quarters that the report's ends or a local midnight lie in.
	Cuts []int64
}

// Span is what roll-ups of First up to Past count for, and of which local date.
type Span struct {
	First, Past int64
	Day         window.Day
}

// NewPlan plans a report where roll-ups are of first to last, both included.
func NewPlan(q *store.UsageQuery, whole, first, last int64) Plan {
	var p Plan
	p.days(q, first, min(whole, last+1))
	byDay := slices.Contains(q.By, store.ByDay)
	from, to := max(q.From, whole, first), min(q.To, last+QuarterMicros)
	for from < to {
		day, past := window.Day(0), to
		if byDay {
			day = window.DayAt(from, q.Zone)
			past = min(to, (day + 1).Start(q.Zone))
		}
		p.part(from, past, day)
		from = past
	}
	slices.Sort(p.Cuts)
	p.Cuts = slices.Compact(p.Cuts)
	return p
}

// days plans for what stands for whole days: each counts at its noon.
func (p *Plan) days(q *store.UsageQuery, first, past int64) {
	for start := first - first%DayMicros; start < past; start += DayMicros {
		noon := start + dayNoon
		if noon < q.From || noon >= q.To {
			continue
		}
		s := Span{First: start, Past: start + DayMicros}
		if slices.Contains(q.By, store.ByDay) {
			s.Day = window.DayAt(noon, q.Zone)
		}
		if n := len(p.Spans); n > 0 && p.Spans[n-1].Past == s.First && p.Spans[n-1].Day == s.Day {
			p.Spans[n-1].Past = s.Past
		} else {
			p.Spans = append(p.Spans, s)
		}
	}
}

// part plans for what is of one local date.
func (p *Plan) part(from, past int64, day window.Day) {
	first, end := window.QuarterAt(from+QuarterMicros-1), window.QuarterAt(past)
	if first < end {
		p.Spans = append(p.Spans, Span{First: first, Past: end, Day: day})
	}
	if first != from {
		p.Cuts = append(p.Cuts, window.QuarterAt(from))
	}
	if end != past {
		p.Cuts = append(p.Cuts, end)
	}
}
