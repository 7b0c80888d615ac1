// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

const (
	// beatEvery is how often a process says that it lives (ENGINE 9).
	beatEvery = 10 * time.Second
	// beatGap is the longest time between two beats of one that had no trouble.
	beatGap = int64(25 * time.Second / time.Microsecond)
)

// The database's clock judges who lives; a test's is passed in its place.
const (
	beatNow = `coalesce($1::bigint, ` + micros + `)`

	// A file that is applied is in force from then on: its instant is the last.
	sqlBeat = `INSERT INTO replicas (id, name, version, started_at, seen_at, beat_at, stopped, schema, file, applied_at, offset_micros)
VALUES ($2, $3, $4, ` + beatNow + `, $5, ` + beatNow + `, $6, $7, $8,
 coalesce($9::bigint, (SELECT greatest(` + beatNow + `, max(o.applied_at) + 1) FROM replicas o)), $10)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, beat_at = excluded.beat_at, stopped = excluded.stopped,
 file = excluded.file, applied_at = excluded.applied_at, offset_micros = excluded.offset_micros
RETURNING beat_at, applied_at`
	sqlReplicas = `SELECT r.id, r.name, r.version, r.started_at, r.beat_at, r.stopped,
 coalesce(o.n, 0), r.file, r.applied_at, r.offset_micros, ` + beatNow + ` FROM replicas r
LEFT JOIN (SELECT process, count(*) AS n FROM reservations GROUP BY process) AS o ON o.process = r.id ORDER BY r.started_at, r.id`
	sqlLeft = `SELECT workspace, id, expires_at, body FROM reservations
WHERE process = $1 AND (workspace, id) > ($2, $3) ORDER BY workspace, id LIMIT $4`
	// The last instant of all has to stay, and the file that is in force. Of several
	// rows with that instant one may go, not all of them at once.
	inForce   = `OR r.applied_at > 0 AND r.applied_at >= (SELECT max(o.applied_at) FROM replicas o)) IS NOT FALSE`
	isLast    = `(r.seen_at > (SELECT max(o.seen_at) FROM replicas o WHERE o.id <> r.id) ` + inForce
	lastOrTie = `(r.seen_at >= (SELECT max(o.seen_at) FROM replicas o WHERE o.id <> r.id) ` + inForce

	sqlForget = `DELETE FROM replicas r WHERE r.id = $1 AND NOT (` + isLast + `)`
	sqlEnded  = `UPDATE replicas SET stopped = true, beat_at = 0 WHERE id = $1`
	sqlTidy   = `DELETE FROM replicas r WHERE r.beat_at < ` + beatNow + ` - CASE WHEN r.stopped THEN 3600000000 ELSE 86400000000 END
 AND NOT EXISTS (SELECT FROM reservations o WHERE o.process = r.id) AND NOT (` + lastOrTie + `)`
)

// beats remembers since when this process has said without a gap that it lives,
// and what else it says of itself.
type beats struct {
	mu          sync.Mutex // guards what follows
	since, last int64
	file        string
	appliedAt   int64 // 0: the others have not been told
}

func (b *beats) beat(at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == 0 || at < b.last || at-b.last > beatGap {
		b.since = at
	}
	b.last = at
}

func (b *beats) steady() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since
}

// apply is a file to tell of with the next beat.
func (b *beats) apply(file string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.file, b.appliedAt = file, 0
}

// applied is the file and when that was told of; NULL: it was not.
func (b *beats) applied() (file string, at pgtype.Int8) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.file, pgtype.Int8{Int64: b.appliedAt, Valid: b.file == "" || b.appliedAt > 0}
}

func (b *beats) told(file string, at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == file {
		b.appliedAt = at
	}
}

// testNow is a test's clock, else NULL: then the database's own is meant.
func (b *Book) testNow() pgtype.Int8 {
	if b.options.Clock == nil {
		return pgtype.Int8{}
	}
	return pgtype.Int8{Int64: b.options.Clock.Now(), Valid: true}
}

// Beat tells the others that this process lives, and keeps the store's last
// instant. Start does it by itself.
func (b *Book) Beat(ctx context.Context) error { return b.beat(ctx, false) }

func (b *Book) beat(ctx context.Context, stopped bool) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.BatchTimeout)
	defer cancel()
	var at, appliedAt int64
	o := &b.options
	file, applied := b.beats.applied()
	sent := b.instant.local.Now()
	err := b.reports.QueryRow(ctx, sqlBeat, b.testNow(), escape(o.Process), escape(o.Name), escape(o.Version),
		b.instant.latest(), stopped, b.newest(), escape(file), applied, b.instant.distance()).Scan(&at, &appliedAt)
	if err != nil {
		return fmt.Errorf("tell that this process lives: %w", known(err))
	}
	b.instant.measure(sent, at)
	b.beats.told(file, appliedAt)
	b.beats.beat(at)
	if stopped {
		return nil
	}
	return b.keepsUp(ctx)
}

// keepsUp stops a process that a migration has left behind, until it is undone.
// It is asked after a beat: whoever migrates writes first, and looks for beats then.
func (b *Book) keepsUp(ctx context.Context) error {
	value, err := b.meta(ctx, metaCompatible)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	needed := numberOf(value)
	b.behind.Store(needed > b.newest())
	if needed > b.newest() {
		return fmt.Errorf("programs have to know schema %d by now, this one knows %d: %w", needed, b.newest(), store.ErrNewerSchema)
	}
	return nil
}

// Applied is store.Shared's. Where it fails the next beat tells it.
func (b *Book) Applied(ctx context.Context, file string) error {
	b.beats.apply(file)
	return b.beat(ctx, false)
}

// end tells the others that this process has stopped in order; one that never
// started has nothing to tell.
func (b *Book) end(ctx context.Context) error {
	b.running.Lock()
	told := b.started
	b.running.Unlock()
	if !told {
		return nil
	}
	return b.beat(ctx, true)
}

// Replicas is store.Shared's.
func (b *Book) Replicas(ctx context.Context) (store.Replicas, error) {
	out := store.Replicas{Steady: b.beats.steady(), OffsetMicros: b.instant.distance()}
	list, err := queryAll(ctx, b.reports, func(r scanner) (one store.Replica, err error) {
		err = r.Scan(&one.ID, &one.Name, &one.Version, &one.StartedAt, &one.SeenAt, &one.Stopped, &one.Open, &one.File, &one.AppliedAt, &one.OffsetMicros, &out.Now)
		plain(&one.ID, &one.Name, &one.Version, &one.File)
		return one, err
	}, sqlReplicas, b.testNow())
	if err != nil {
		return store.Replicas{}, fmt.Errorf("list the processes: %w", err)
	}
	out.List = list
	return out, nil
}

// Left is store.Shared's.
func (b *Book) Left(ctx context.Context, process string, after *ledger.Reservation, limit int) ([]*ledger.Reservation, error) {
	workspace, id := "", ledger.ID{}
	if after != nil {
		workspace, id = after.Workspace, after.ID
	}
	list, err := queryAll(ctx, b.reports, scanReservation, sqlLeft, escape(process), escape(workspace), uuidOf(id), max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("list what process %s left open: %w", process, err)
	}
	return list, nil
}

// Forget is store.Shared's.
func (b *Book) Forget(ctx context.Context, process string, audit store.Audit) error {
	err := b.transact(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlForget, escape(process))
		if err == nil && tag.RowsAffected() == 0 {
			tag, err = tx.Exec(ctx, sqlEnded, escape(process))
		}
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return err
		}
		return addAudit(ctx, tx, &audit)
	})
	if err != nil {
		return fmt.Errorf("forget process %s: %w", process, err)
	}
	return nil
}

// tidy removes processes that ended long ago.
func (b *Book) tidy(ctx context.Context) error {
	if _, err := b.reports.Exec(ctx, sqlTidy, b.testNow()); err != nil {
		return fmt.Errorf("forget processes that ended long ago: %w", known(err))
	}
	return nil
}
