// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
)

const (
	day = 24 * time.Hour
	// daysBack and daysAhead are the days around now whose partitions are made.
	daysBack, daysAhead = 1, 3
	// beatEvery is how often a process says that it lives.
	beatEvery = 10 * time.Second
	// dayEvery is how often days are made ahead.
	dayEvery = time.Hour
)

// beating says that this process lives, and makes days ahead.
func (b *Book) beating(ctx context.Context) {
	beats, days := time.NewTicker(beatEvery), time.NewTicker(dayEvery)
	defer beats.Stop()
	defer days.Stop()
	b.tell(ctx, b.beat(ctx))
	for {
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
			b.tell(ctx, b.beat(ctx))
		case <-days.C:
			b.tell(ctx, b.makeDays(ctx, b.Now()))
		}
	}
}

// beat tells the others of this process and keeps the store's last instant.
func (b *Book) beat(ctx context.Context) error {
	at := b.instant.latest()
	if at == 0 {
		return nil
	}
	if _, err := b.reports.Exec(ctx, sqlBeat, b.options.Process, at); err != nil {
		return fmt.Errorf("tell that this process lives: %w", known(err))
	}
	return nil
}

// makeDays makes the partitions of the days around an instant that are not
// there. A day of which the default partition already holds rows stays there.
func (b *Book) makeDays(ctx context.Context, at int64) error {
	var errs []error
	first := time.UnixMicro(at).UTC().Truncate(day).AddDate(0, 0, -daysBack)
	for i := range daysBack + daysAhead + 1 {
		start := first.AddDate(0, 0, i)
		for _, table := range [...]string{"events", "calls"} {
			if err := b.makeDay(ctx, table, start); err != nil {
				errs = append(errs, fmt.Errorf("make the partition of %s for %s: %w", table, start.Format(time.DateOnly), err))
			}
		}
	}
	return errors.Join(errs...)
}

func (b *Book) makeDay(ctx context.Context, table string, start time.Time) error {
	name := table + start.Format("_20060102")
	var there bool
	if err := b.reports.QueryRow(ctx, sqlTableThere, name).Scan(&there); err != nil || there {
		return known(err)
	}
	from, to := ledger.NewID(start.UnixMicro(), [10]byte{}), ledger.NewID(start.Add(day).UnixMicro(), [10]byte{})
	tx, err := b.reports.Begin(ctx)
	if err != nil {
		return known(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(schemaLock)); err != nil {
		return known(err)
	}
	if err := tx.QueryRow(ctx, sqlTableThere, name).Scan(&there); err != nil || there {
		return known(err)
	}
	// Attached, not made in its place: that takes no lock that admission waits for.
	table = pgx.Identifier{table}.Sanitize()
	for _, statement := range []string{
		`SET LOCAL lock_timeout = '1s'`,
		`CREATE TABLE ` + name + ` (LIKE ` + table + ` INCLUDING ALL)`,
		`ALTER TABLE ` + table + ` ATTACH PARTITION ` + name + ` FOR VALUES FROM ('` + uuid(from) + `') TO ('` + uuid(to) + `')`,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			if pg := refusal(err); pg != nil && pg.Code == codeBadCheck {
				return nil
			}
			return known(err)
		}
	}
	return known(tx.Commit(ctx))
}

func uuid(id ledger.ID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
