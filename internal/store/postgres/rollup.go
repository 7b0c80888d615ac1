// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// metaRolledDays names in meta before which roll-ups stand for days.
const metaRolledDays = "rollups_stand_for_days_before"

const (
	rollupColumns = `workspace, quarter, grp, key, model, provider, member, team, project, spend, tokens, requests, events, first_millis, last_millis`

	// sqlRolling has everything of before its third column's transaction in sight:
	// none of those runs any more, whoever began it.
	sqlRolling = `SELECT through, base, pg_snapshot_xmin(pg_current_snapshot())::text::bigint + base FROM rolling`
	// sqlTakeRolling is sqlRolling of the one process that rolls up.
	sqlTakeRolling = sqlRolling + ` FOR UPDATE SKIP LOCKED`
	sqlRolledTo    = `UPDATE rolling SET through = $1`
	// sqlRollUntil is the transaction that a step of $3 events ends before.
	sqlRollUntil = `SELECT greatest(tx, (SELECT min(tx) + 1 FROM events WHERE tx >= $1)) FROM events WHERE tx >= $1 AND tx < $2
ORDER BY tx OFFSET $3 LIMIT 1`
	sqlRollEvents = `SELECT ` + eventColumns + ` FROM events WHERE tx >= $1 AND tx < $2`

	sqlAddRollups = `INSERT INTO rollups AS r (` + rollupColumns + `)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
 $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
ON CONFLICT (workspace, quarter, grp) DO UPDATE SET
 spend = least(greatest(r.spend::numeric + excluded.spend, -9223372036854775807), 9223372036854775807)::bigint,
 tokens = least(greatest(r.tokens::numeric + excluded.tokens, -9223372036854775807), 9223372036854775807)::bigint,
 requests = r.requests + excluded.requests, events = r.events + excluded.events,
 first_millis = least(r.first_millis, excluded.first_millis), last_millis = greatest(r.last_millis, excluded.last_millis)`
	sqlRollups  = `SELECT ` + rollupColumns + ` FROM rollups ORDER BY workspace, quarter, grp`
	sqlUnrolled = `SELECT ` + eventColumns + ` FROM events WHERE tx >= $1`

	// sqlByIndex: the plans of a step do not depend on what is known of the tables.
	sqlByIndex = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
 set_config('jit', 'off', true), set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
 set_config('idle_in_transaction_session_timeout', $2, true)`

	sqlCluster     = `SELECT system_identifier::text FROM pg_control_system()`
	sqlNewestEvent = `SELECT coalesce(max(tx), 0) FROM events`
	sqlCountFrom   = `ALTER TABLE events ALTER COLUMN tx SET DEFAULT pg_current_xact_id()::text::bigint + %d`
	sqlRebase      = `UPDATE rolling SET base = $1, cluster = $2`
)

// Roll is store.Rollable's. Of several processes one rolls up: it has the row of
// table rolling locked, for its transaction alone. A step takes events whose
// transactions nothing can come before any more, so that moving the mark behind
// them passes none over.
func (b *Book) Roll(ctx context.Context, limit int) (events int64, done bool, err error) {
	err = b.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlByIndex, milliseconds(b.options.LockTimeout), milliseconds(reportTimeout)); err != nil {
			return err
		}
		var through, base, safe int64
		if err := tx.QueryRow(ctx, sqlTakeRolling).Scan(&through, &base, &safe); errors.Is(err, pgx.ErrNoRows) {
			done = true
			return nil
		} else if err != nil {
			return err
		}
		if safe < through {
			return errors.New("the server counts fewer transactions than before: it is another one; start again")
		}
		past, err := rollUntil(ctx, tx, through, safe, max(1, limit))
		if err != nil {
			return err
		}
		done = past == safe
		events, err = rollEvents(ctx, tx, through, past)
		if err != nil || events == 0 {
			return err
		}
		_, err = tx.Exec(ctx, sqlRolledTo, past)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("roll usage up: %w", err)
	}
	return events, done, nil
}

// rollUntil is the transaction that a step ends before: it takes all events of one
// or none.
func rollUntil(ctx context.Context, tx pgx.Tx, through, safe int64, limit int) (past int64, err error) {
	err = tx.QueryRow(ctx, sqlRollUntil, through, safe, limit).Scan(&past)
	if errors.Is(err, pgx.ErrNoRows) {
		return safe, nil
	}
	return past, err
}

func rollEvents(ctx context.Context, tx pgx.Tx, through, past int64) (n int64, err error) {
	whole, err := metaInstant(ctx, tx, metaRolledDays)
	if err != nil {
		return 0, err
	}
	rows, err := tx.Query(ctx, sqlRollEvents, through, past)
	if err != nil {
		return 0, err
	}
	rolled := shelf.NewRollups(whole)
	err = each(rows, scanEvent, func(e *ledger.Event) error {
		n++
		rolled.Event(e)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, addRollups(ctx, tx, rolled.Rows())
}

func addRollups(ctx context.Context, tx pgx.Tx, rows []shelf.Rolled) error {
	if len(rows) == 0 {
		return nil
	}
	var words [7][]string
	var digests [][]byte
	var figures [7][]int64
	for i := range rows {
		r := &rows[i]
		for j, s := range [...]string{r.Workspace, r.Key, r.Model, r.Provider, r.User, r.Team, r.Project} {
			words[j] = append(words[j], escape(s))
		}
		digests = append(digests, r.Digest[:])
		for j, n := range [...]int64{r.Quarter, r.Spend, r.Tokens, r.Requests, r.Events, r.FirstMillis, r.LastMillis} {
			figures[j] = append(figures[j], n)
		}
	}
	_, err := tx.Exec(ctx, sqlAddRollups, words[0], figures[0], digests, words[1], words[2], words[3], words[4], words[5], words[6],
		figures[1], figures[2], figures[3], figures[4], figures[5], figures[6])
	return err
}

func scanRollup(r scanner) (out shelf.Rolled, err error) {
	var digest []byte
	err = r.Scan(&out.Workspace, &out.Quarter, &digest, &out.Key, &out.Model, &out.Provider, &out.User, &out.Team, &out.Project,
		&out.Spend, &out.Tokens, &out.Requests, &out.Events, &out.FirstMillis, &out.LastMillis)
	if err != nil {
		return out, known(err)
	}
	copy(out.Digest[:], digest)
	plain(&out.Workspace, &out.Key, &out.Model, &out.Provider, &out.User, &out.Team, &out.Project)
	return out, nil
}

// recount goes on counting transactions behind every event that is there, where a
// database has come to another server, which counts its own: a copy of its rows,
// or an upgrade. Nothing writes events before the book is open.
func (b *Book) recount(ctx context.Context) error {
	var cluster string
	// Who may not ask is told by the count alone.
	if err := b.reports.QueryRow(ctx, sqlCluster).Scan(&cluster); err != nil {
		cluster = ""
	}
	return b.transact(ctx, func(tx pgx.Tx) error {
		var through, base, safe, newest int64
		var before string
		if err := tx.QueryRow(ctx, `SELECT cluster FROM rolling FOR UPDATE`).Scan(&before); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, sqlRolling).Scan(&through, &base, &safe); err != nil || before == cluster && safe >= through {
			return err
		}
		if before != "" || safe < through {
			if _, err := tx.Exec(ctx, `LOCK TABLE events IN ACCESS EXCLUSIVE MODE`); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, sqlNewestEvent).Scan(&newest); err != nil {
				return err
			}
			if least := max(newest+1, through); safe < least {
				base += least - safe
				if _, err := tx.Exec(ctx, fmt.Sprintf(sqlCountFrom, base)); err != nil {
					return err
				}
			}
		}
		_, err := tx.Exec(ctx, sqlRebase, base, cluster)
		return err
	})
}

// Rollups walks by workspace and quarter.
func (r *reader) Rollups(fn func(*ledger.Rollup) error) error {
	return walk(r, scanRollup, sqlRollups, func(v *shelf.Rolled) error { return fn(&v.Rollup) })
}

// Unrolled walks what came after the last roll-up.
func (r *reader) Unrolled(fn func(*ledger.Event) error) error {
	through, err := rolledThrough(r.ctx, r.tx)
	if err != nil {
		return err
	}
	rows, err := r.tx.Query(r.ctx, sqlUnrolled, through)
	if err != nil {
		return known(err)
	}
	return each(rows, scanEvent, fn)
}

// Whole is before which roll-ups stand for days.
func (r *reader) Whole() (before int64, err error) { return metaInstant(r.ctx, r.tx, metaRolledDays) }

func rolledThrough(ctx context.Context, tx pgx.Tx) (through int64, err error) {
	err = tx.QueryRow(ctx, `SELECT through FROM rolling`).Scan(&through)
	return through, known(err)
}

var _ store.Rollable = (*Book)(nil)
