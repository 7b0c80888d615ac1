// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

const (
	sqlRollupSpan = `SELECT coalesce(min(quarter), 0), coalesce(max(quarter), -1) FROM rollups WHERE workspace = ?`
	// A sum of halves does not overflow, which SQLite's own would answer with an
	// error.
	sqlSumRollups = `SELECT sum(spend >> 32), sum(spend & 4294967295), sum(tokens >> 32), sum(tokens & 4294967295), sum(requests), sum(events)%s
FROM rollups WHERE workspace = ? AND quarter >= ? AND quarter < ?%s`
	sqlQuarterIDs = `SELECT coalesce(min(first_millis), 0), coalesce(max(last_millis), -1) FROM rollups WHERE workspace = ? AND quarter = ?`
	sqlCutEvents  = `SELECT ` + eventColumns + ` FROM events
WHERE workspace = ? AND id >= ? AND id < ? AND admitted_at >= ? AND admitted_at < ?`
)

// Usage is store.Log's.
func (b *Book) Usage(ctx context.Context, q store.UsageQuery) ([]store.UsageRow, error) {
	if err := b.catchUp(ctx); err != nil {
		return nil, err
	}
	var rows []store.UsageRow
	err := b.snapshot(ctx, func(tx *sql.Tx) (err error) {
		u := &usage{ctx: ctx, tx: tx, query: &q}
		rows, err = u.read()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return rows, nil
}

// usage reads one report from one snapshot.
type usage struct {
	ctx   context.Context // of the one Usage that made it
	tx    *sql.Tx
	query *store.UsageQuery
	sums  *shelf.Usage
}

func (u *usage) read() ([]store.UsageRow, error) {
	whole, err := readInstant(u.ctx, u.tx, metaRolledDays)
	if err != nil {
		return nil, err
	}
	u.sums = shelf.NewUsage(u.query, whole)
	var first, last int64
	if err := u.tx.QueryRowContext(u.ctx, sqlRollupSpan, u.query.Workspace).Scan(&first, &last); err != nil {
		return nil, known(err)
	}
	if last < first {
		return u.sums.Rows(), nil
	}
	plan := shelf.NewPlan(u.query, whole, first, last)
	if err := u.spans(plan.Spans); err != nil {
		return nil, err
	}
	for _, quarter := range plan.Cuts {
		if err := u.cut(quarter); err != nil {
			return nil, err
		}
	}
	return u.sums.Rows(), nil
}

// sumRollups is the statement that sums one span's roll-ups by groups, and what its
// last columns are of.
func sumRollups(by []store.By) (statement string, of []store.By) {
	columns, of := shelf.Columns(by)
	more, group := ``, ` HAVING count(*) > 0`
	if len(columns) > 0 {
		list := strings.Join(columns, ", ")
		more, group = `, `+list, ` GROUP BY `+list
	}
	return fmt.Sprintf(sqlSumRollups, more, group), of
}

func (u *usage) spans(spans []shelf.Span) error {
	query, of := sumRollups(u.query.By)
	statement, err := u.tx.PrepareContext(u.ctx, query)
	if err != nil {
		return known(err)
	}
	defer func() { _ = statement.Close() }()
	for i := range spans {
		// To sort many rows at once takes much longer than to sort them by the day.
		for first := spans[i].First; first < spans[i].Past; first += shelf.DayMicros {
			rows, err := statement.QueryContext(u.ctx, u.query.Workspace, first, min(first+shelf.DayMicros, spans[i].Past))
			if err != nil {
				return known(err)
			}
			scan := func(r row) (ledger.Rollup, error) { return scanSum(r, of) }
			err = each(rows, scan, func(sum *ledger.Rollup) error {
				u.sums.AddSum(&spans[i], sum)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func scanSum(r row, of []store.By) (sum ledger.Rollup, err error) {
	var spend, tokens halves
	into := []any{&spend.high, &spend.low, &tokens.high, &tokens.low, &sum.Requests, &sum.Events}
	for _, by := range of {
		into = append(into, shelf.Field(&sum.Group, by))
	}
	if err := r.Scan(into...); err != nil {
		return sum, known(err)
	}
	sum.Spend, sum.Tokens = spend.sum(), tokens.sum()
	return sum, nil
}

// halves are sums of the upper and of the lower 32 bits of numbers.
type halves struct{ high, low int64 }

func (h halves) sum() int64 {
	high := h.high + h.low>>32
	switch {
	case high > math.MaxInt32:
		return math.MaxInt64
	case high < math.MinInt32:
		return math.MinInt64
	default:
		return high<<32 | h.low&math.MaxUint32
	}
}

// cut reads the events of a quarter: their ids lie between those that its roll-ups
// name.
func (u *usage) cut(quarter int64) error {
	var first, last int64
	if err := u.tx.QueryRowContext(u.ctx, sqlQuarterIDs, u.query.Workspace, quarter).Scan(&first, &last); err != nil {
		return known(err)
	}
	if last < first {
		return nil
	}
	rows, err := u.tx.QueryContext(u.ctx, sqlCutEvents, u.query.Workspace, idAt(first*1000), idAt((last+1)*1000), quarter, quarter+shelf.QuarterMicros)
	if err != nil {
		return known(err)
	}
	return each(rows, scanEvent, func(e *ledger.Event) error {
		u.sums.Add(e)
		return nil
	})
}
