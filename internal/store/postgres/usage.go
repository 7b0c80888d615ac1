// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

const (
	sqlRollupSpan = `SELECT coalesce(min(quarter), 0), coalesce(max(quarter), -1) FROM rollups WHERE workspace = $1`
	// sqlSumRollups takes the columns that are grouped by, and how.
	sqlSumRollups = `SELECT s.n - 1, r.* FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS s (first, past, n), LATERAL (
 SELECT least(greatest(sum(spend), -9223372036854775807), 9223372036854775807)::bigint AS spend,
  least(greatest(sum(tokens), -9223372036854775807), 9223372036854775807)::bigint AS tokens,
  sum(requests)::bigint AS requests, sum(events)::bigint AS events%s
 FROM rollups WHERE workspace = $1 AND quarter >= s.first AND quarter < s.past%s) AS r`
	sqlQuarterIDs = `SELECT coalesce(min(first_millis), 0), coalesce(max(last_millis), -1) FROM rollups WHERE workspace = $1 AND quarter = $2`
	sqlCutEvents  = `SELECT ` + eventColumns + ` FROM events
WHERE workspace = $1 AND id >= $2 AND id < $3 AND admitted_at >= $4 AND admitted_at < $5 AND tx < $6`
	// sqlTailEvents: what a roll-up of before Sums.Whole would stand for lies up to
	// a day from where it counts.
	sqlTailEvents = `SELECT ` + eventColumns + ` FROM events
WHERE tx >= $1 AND workspace = $2 AND admitted_at >= $3 AND admitted_at < $4`
)

// Usage is store.Log's.
func (b *Book) Usage(ctx context.Context, q store.UsageQuery) (rows []store.UsageRow, err error) {
	err = b.snapshot(ctx, func(tx pgx.Tx) error {
		rows, err = readUsage(ctx, tx, &q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return rows, nil
}

// usage reads one report from one snapshot.
type usage struct {
	ctx     context.Context // of the one Usage that made it
	tx      pgx.Tx
	query   *store.UsageQuery
	sums    *shelf.Usage
	through int64 // transactions of before it are rolled up
}

func readUsage(ctx context.Context, tx pgx.Tx, q *store.UsageQuery) (rows []store.UsageRow, err error) {
	u := &usage{ctx: ctx, tx: tx, query: q}
	if u.through, err = rolledThrough(ctx, tx); err != nil {
		return nil, err
	}
	whole, err := metaInstant(ctx, tx, metaRolledDays)
	if err != nil {
		return nil, err
	}
	u.sums = shelf.NewUsage(q, whole)
	var first, last int64
	if err := tx.QueryRow(ctx, sqlRollupSpan, escape(q.Workspace)).Scan(&first, &last); err != nil {
		return nil, known(err)
	}
	if first <= last {
		plan := shelf.NewPlan(q, whole, first, last)
		if err := u.spans(plan.Spans); err != nil {
			return nil, err
		}
		for _, quarter := range plan.Cuts {
			if err := u.cut(quarter); err != nil {
				return nil, err
			}
		}
	}
	err = u.events(sqlTailEvents, u.through, escape(q.Workspace), shelf.Saturate(q.From, -shelf.DayMicros), shelf.Saturate(q.To, shelf.DayMicros))
	return u.sums.Rows(), err
}

func (u *usage) events(query string, args ...any) error {
	rows, err := u.tx.Query(u.ctx, query, args...)
	if err != nil {
		return known(err)
	}
	return each(rows, scanEvent, func(e *ledger.Event) error {
		u.sums.Add(e)
		return nil
	})
}

func (u *usage) spans(spans []shelf.Span) error {
	if len(spans) == 0 {
		return nil
	}
	columns, of := shelf.Columns(u.query.By)
	more, group := ``, ` HAVING count(*) > 0`
	if len(columns) > 0 {
		list := strings.Join(columns, ", ")
		more, group = `, `+list, ` GROUP BY `+list
	}
	var first, past []int64
	for i := range spans {
		first, past = append(first, spans[i].First), append(past, spans[i].Past)
	}
	rows, err := u.tx.Query(u.ctx, fmt.Sprintf(sqlSumRollups, more, group), escape(u.query.Workspace), first, past)
	if err != nil {
		return known(err)
	}
	return each(rows, func(r scanner) (out spanSum, err error) { return scanSum(r, of) }, func(s *spanSum) error {
		u.sums.AddSum(&spans[s.span], &s.Rollup)
		return nil
	})
}

type spanSum struct {
	ledger.Rollup
	span int
}

func scanSum(r scanner, of []store.By) (s spanSum, err error) {
	into := []any{&s.span, &s.Spend, &s.Tokens, &s.Requests, &s.Events}
	for _, by := range of {
		into = append(into, shelf.Field(&s.Group, by))
	}
	if err := r.Scan(into...); err != nil {
		return s, known(err)
	}
	plain(&s.Key, &s.Model, &s.Provider, &s.User, &s.Team, &s.Project)
	return s, nil
}

// cut reads the events of a quarter: their ids lie between those that its roll-ups
// name.
func (u *usage) cut(quarter int64) error {
	var first, last int64
	if err := u.tx.QueryRow(u.ctx, sqlQuarterIDs, escape(u.query.Workspace), quarter).Scan(&first, &last); err != nil {
		return known(err)
	}
	if last < first {
		return nil
	}
	return u.events(sqlCutEvents, escape(u.query.Workspace), idAt(first*1000), idAt((last+1)*1000), quarter, quarter+shelf.QuarterMicros, u.through)
}
