// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/ledger"
)

const (
	day = 24 * time.Hour
	// daysBack and daysAhead are the days around now whose partitions are made.
	daysBack, daysAhead = 1, 3
	// daysKept is how old a day is at least when its empty partition goes.
	daysKept = 62
	// dayEvery is how often days are made ahead.
	dayEvery = time.Hour
	// dayLocks is how long a day's turn waits for locks that batches wait behind, in
	// milliseconds; it is tried dayTries times, dayRest apart, and then an hour later.
	dayLocks = "10"
	dayTries = 10
	dayRest  = 200 * time.Millisecond
	// mostKept is how many entries a day may leave behind for the default partition.
	mostKept = 1000
)

// beating says that this process lives, and makes days ahead.
func (b *Book) beating(ctx context.Context) {
	beats, days := time.NewTicker(beatEvery), time.NewTicker(dayEvery)
	defer beats.Stop()
	defer days.Stop()
	b.tell(ctx, b.Beat(ctx))
	for {
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
			b.tell(ctx, b.Beat(ctx))
		case <-days.C:
			b.tell(ctx, errors.Join(b.turnDays(ctx, b.Now()), b.tidy(ctx)))
		}
	}
}

// turnDays makes the days to come and drops those long past.
func (b *Book) turnDays(ctx context.Context, at int64) error {
	return errors.Join(b.makeDays(ctx, at, daysAhead), b.dropDays(ctx, at))
}

// day does what one day needs. Where weir migrate is run by another role, which
// owns the tables, days are left to it: what has none of its own lies in the
// default partition.
//
// Whoever waits for a lock has everybody wait who comes later: it waits for a
// moment only, again and again, as long as reports have the table in use.
func (b *Book) day(ctx context.Context, fn func(pgx.Tx) error) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	var err error
	for range dayTries {
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-rest.C:
		}
		err = b.transact(ctx, fn)
		var pg *pgconn.PgError
		if b.options.MigrateByHand && errors.As(err, &pg) && pg.Code == codeNoRight {
			return nil
		}
		if !inUse(err) {
			return err
		}
		rest.Reset(dayRest)
	}
	return err
}

// inUse tells whether a lock was not to be had in time.
func inUse(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeNoLock
}

// makeDays makes the partitions of the days around an instant, and of so many
// ahead, that are not there. A day of which the default partition already holds
// rows stays there.
func (b *Book) makeDays(ctx context.Context, at int64, ahead int) error {
	starts := make(map[string]time.Time)
	var names []string
	first := time.UnixMicro(at).UTC().Truncate(day).AddDate(0, 0, -daysBack)
	for i := range daysBack + ahead + 1 {
		start := first.AddDate(0, 0, i)
		for _, table := range [...]string{"events", "calls"} {
			name := table + start.Format("_20060102")
			starts[name], names = start, append(names, name)
		}
	}
	missing, err := queryAll(ctx, b.reports, scanName, sqlTablesMissing, names)
	if err != nil {
		return fmt.Errorf("look for the partitions of days: %w", err)
	}
	var errs []error
	for _, name := range missing {
		if err := b.day(ctx, func(tx pgx.Tx) error { return makeDay(ctx, tx, name, starts[name]) }); err != nil {
			errs = append(errs, fmt.Errorf("make the partition %s: %w", name, err))
			if inUse(err) {
				break // so will the others be; the next turn makes them
			}
		}
	}
	return errors.Join(errs...)
}

// makeDay attaches a new table, which is quick, and takes no lock for long that
// admission waits for.
func makeDay(ctx context.Context, tx pgx.Tx, name string, start time.Time) error {
	table, _, _ := strings.Cut(name, "_")
	if _, err := tx.Exec(ctx, `LOCK TABLE `+table+` IN SHARE UPDATE EXCLUSIVE MODE`); err != nil {
		return err
	}
	if missing, err := queryAll(ctx, tx, scanName, sqlTablesMissing, []string{name}); err != nil || len(missing) == 0 {
		return err // another process has made it
	}
	from, to := ledger.NewID(start.UnixMicro(), [10]byte{}), ledger.NewID(start.Add(day).UnixMicro(), [10]byte{})
	bounds := `FROM ('` + uuid(from) + `') TO ('` + uuid(to) + `')`
	taken := false
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+`_default WHERE id >= $1 AND id < $2)`, uuidOf(from), uuidOf(to)).Scan(&taken); err != nil || taken {
		return err
	}
	if _, err := tx.Exec(ctx, sqlLockTimeout, dayLocks); err != nil {
		return err
	}
	for _, statement := range []string{
		`CREATE TABLE ` + name + ` (LIKE ` + table + ` INCLUDING ALL)`,
		`ALTER TABLE ` + table + ` ATTACH PARTITION ` + name + ` FOR VALUES ` + bounds,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// dropDays drops the partitions of days long past that Prune has emptied.
func (b *Book) dropDays(ctx context.Context, at int64) error {
	last := time.UnixMicro(at).UTC().AddDate(0, 0, -daysKept).Format("_20060102")
	names, err := queryAll(ctx, b.reports, scanName, sqlOldDays, []string{"events" + last, "calls" + last})
	if err != nil {
		return fmt.Errorf("look for the partitions of days long past: %w", err)
	}
	var errs []error
	for _, name := range names {
		if err := b.day(ctx, func(tx pgx.Tx) error { return dropDay(ctx, tx, name) }); err != nil {
			errs = append(errs, fmt.Errorf("drop the partition %s: %w", name, err))
			if inUse(err) {
				break
			}
		}
	}
	return errors.Join(errs...)
}

func dropDay(ctx context.Context, tx pgx.Tx, name string) error {
	parent, _, _ := strings.Cut(name, "_")
	table := pgx.Identifier{name}.Sanitize()
	// Looked at before it is locked: most that are not empty never are.
	if _, left, err := leftOf(ctx, tx, parent, table); err != nil || left {
		return err
	}
	if _, err := tx.Exec(ctx, sqlLockTimeout, dayLocks); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `LOCK TABLE `+parent+`, `+table+` IN ACCESS EXCLUSIVE MODE`); err != nil {
		return err
	}
	keeps, left, err := leftOf(ctx, tx, parent, table)
	if err != nil || left {
		return err
	}
	statements := []string{`DROP TABLE ` + table}
	if keeps {
		// Days must not become more for ever because each has an entry or two.
		statements = []string{
			`ALTER TABLE events DETACH PARTITION ` + table,
			`INSERT INTO events (` + eventColumns + `, tx) SELECT ` + eventColumns + `, tx FROM ` + table,
			`DROP TABLE ` + table,
		}
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// leftOf tells whether a day's partition keeps entries, which stay for ever, and
// whether anything else is left of it, or too many to be moved.
func leftOf(ctx context.Context, tx pgx.Tx, parent, table string) (keeps, left bool, err error) {
	if parent != "events" {
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+`)`).Scan(&left)
		return false, left, err
	}
	if err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+` WHERE kind < $1)`, int16(ledger.EventTopUp)).Scan(&left); err != nil || left {
		return false, left, err
	}
	var entries int
	err = tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM `+table+` LIMIT $1) AS e`, mostKept+1).Scan(&entries)
	return entries > 0, entries > mostKept, err
}

func scanName(r scanner) (string, error) {
	var name string
	err := r.Scan(&name)
	return name, err
}

func uuid(id ledger.ID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
