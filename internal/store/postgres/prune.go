// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// Names of meta: until where calls were dropped, before which quarters, and
// roll-ups, all are days.
const (
	metaDropped   = "calls_dropped_before"
	metaWhole     = "quarters_whole_before"
	metaDaysWhole = "rollups_whole_before"
)

// pruning is how far the steps for one cut have come. It is only where to look
// next, so that no step walks what earlier ones have left: what was done is in the
// database.
type pruning struct {
	cut       store.Cut
	phase     int
	begun     bool
	workspace string
	key       string
	id        ledger.ID
	since     int64
	inside    bool // of the workspace, or of the key, there is more
}

// phases are taken one after the other.
var phases = [...]func(*pruner) (more bool, err error){
	(*pruner).calls, (*pruner).rollups, (*pruner).events, (*pruner).quarters, (*pruner).notices, (*pruner).kept,
}

// Prune is store.Retainable's. A step sees one snapshot: where a batch has changed
// what it takes it fails, and is made again. Of several processes one prunes; for
// the others nothing is left to do.
func (b *Book) Prune(ctx context.Context, cut store.Cut, limit int) (step store.Pruned, done bool, err error) {
	b.pruneMu.Lock()
	defer b.pruneMu.Unlock()
	at := b.pruning
	if at.cut != cut {
		at = pruning{cut: cut}
	}
	err = b.snapshotToWrite(ctx, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(pruneLock)).Scan(&mine); err != nil || !mine {
			done = true
			return err
		}
		if _, err := tx.Exec(ctx, sqlByIndex, milliseconds(b.options.LockTimeout), milliseconds(reportTimeout)); err != nil {
			return err
		}
		p := &pruner{ctx: ctx, tx: tx, limit: max(2, limit), step: &step, at: &at}
		for at.phase < len(phases) {
			more, err := phases[at.phase](p)
			if err != nil || more {
				return err
			}
			at = pruning{cut: cut, phase: at.phase + 1}
			if step != (store.Pruned{}) {
				return nil
			}
		}
		done = true
		return nil
	})
	if err != nil {
		return store.Pruned{}, false, fmt.Errorf("drop what is older than it must be kept: %w", err)
	}
	if done {
		at = pruning{}
	}
	b.pruning = at
	return step, done, nil
}

// snapshotToWrite runs fn in a transaction that sees one snapshot.
func (b *Book) snapshotToWrite(ctx context.Context, fn func(pgx.Tx) error) error {
	tx, err := b.reports.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if err := fn(tx); err != nil {
		return known(err)
	}
	// A step whose commit is in doubt may be made again: it finds what is left.
	return known(tx.Commit(ctx))
}

// pruner makes one step; each of its phases tells whether there is more to do.
type pruner struct {
	ctx   context.Context // of the one Prune that made it
	tx    pgx.Tx
	limit int
	step  *store.Pruned
	at    *pruning
}

// newest is above the ids of all that happened before an instant.
func newest(before int64) pgtype.UUID { return idAt(shelf.Saturate(before, idSlackMicros)) }

// shop moves on to the next workspace of a table, unless there is more of this
// one; ok is false behind the last.
func (p *pruner) shop(next string) (ok bool, err error) {
	if p.at.inside {
		return true, nil
	}
	var workspace string
	if err := p.tx.QueryRow(p.ctx, next, escape(p.at.workspace)).Scan(&workspace); err != nil {
		return false, err
	}
	p.at.workspace, p.at.id = text([]byte(workspace)), ledger.ID{}
	return workspace != "", nil
}

func (p *pruner) calls() (more bool, err error) {
	cut := p.at.cut.Calls
	for range p.limit {
		if more, err := p.shop(sqlNextCaller); err != nil || !more {
			return false, err
		}
		workspace := escape(p.at.workspace)
		list, err := queryAll(p.ctx, p.tx, scanAge, sqlCallAges, workspace, uuidOf(p.at.id), newest(cut), p.limit)
		if err != nil {
			return false, err
		}
		var old []pgtype.UUID
		for _, a := range list {
			p.at.id = a.id
			if a.at < cut {
				old = append(old, uuidOf(a.id))
			}
		}
		p.at.inside = len(list) == p.limit
		if len(old) > 0 {
			tag, err := p.tx.Exec(p.ctx, sqlDropCalls, workspace, old, cut, old[0], old[len(old)-1])
			if err != nil {
				return false, err
			}
			p.step.Calls = tag.RowsAffected()
			return true, p.raise(metaDropped, cut)
		}
	}
	return true, nil
}

// events closes whole requests that are in roll-ups.
func (p *pruner) events() (more bool, err error) {
	before := p.at.cut.Events - p.at.cut.Events%shelf.DayMicros
	for range p.limit {
		if more, err := p.shop(sqlNextShop); err != nil || !more {
			return false, err
		}
		gone, err := p.closable(before)
		if err != nil {
			return false, err
		}
		if len(gone) == 0 {
			continue
		}
		if err := p.close(gone); err != nil {
			return false, err
		}
		return true, p.raise(metaDropped, before) // what corrections gave back to windows is gone with them
	}
	return true, nil
}

// closable are the events of the workspace's next requests that may go.
func (p *pruner) closable(before int64) ([]ledger.Event, error) {
	workspace := escape(p.at.workspace)
	list, err := queryAll(p.ctx, p.tx, scanEvent, sqlOldEvents, workspace, uuidOf(p.at.id), newest(before), p.limit)
	if err != nil || len(list) == 0 {
		p.at.inside = false
		return nil, err
	}
	last := list[len(list)-1].ID
	if p.at.inside = len(list) == p.limit; p.at.inside {
		// The last one may have more of them.
		for list[len(list)-1].ID == last {
			if list = list[:len(list)-1]; len(list) == 0 {
				break
			}
		}
		whole, err := queryAll(p.ctx, p.tx, scanEvent, sqlCallEvents, workspace, uuidOf(last))
		if err != nil {
			return nil, err
		}
		list = append(list, whole...)
	}
	p.at.id = last
	var late []ledger.ID
	through, err := rolledThrough(p.ctx, p.tx)
	if err == nil {
		late, err = queryAll(p.ctx, p.tx, scanID, sqlLateEvents, through, workspace, uuidOf(list[0].ID), uuidOf(last))
	}
	return shelf.ClosableOf(list, before, late), err
}

func (p *pruner) close(gone []ledger.Event) error {
	closings := shelf.Closings(gone)
	for i := range closings {
		c := &closings[i]
		k := &c.Counter
		_, err := p.tx.Exec(p.ctx, sqlAddClosing, escape(k.Workspace), escape(k.Limit), int64(k.Epoch), escape(k.Subject), k.Window,
			c.Day, c.Credit, int16(c.Kind), c.Amount)
		if err != nil {
			return err
		}
	}
	var ids []pgtype.UUID
	for i := range gone {
		if i == 0 || gone[i].ID != gone[i-1].ID {
			ids = append(ids, uuidOf(gone[i].ID))
		}
	}
	tag, err := p.tx.Exec(p.ctx, sqlDropEvents, escape(gone[0].Workspace), ids, ids[0], ids[len(ids)-1])
	if err == nil && tag.RowsAffected() != int64(len(gone)) {
		err = fmt.Errorf("%d events were to go, %d are gone", len(gone), tag.RowsAffected())
	}
	p.step.Events, p.step.Closings = int64(len(gone)), int64(len(closings))
	return err
}

// begin reads from where a phase has anything to do.
func (p *pruner) begin(name string) (first bool, err error) {
	if p.at.begun {
		return false, nil
	}
	p.at.begun = true
	p.at.since, err = metaInstant(p.ctx, p.tx, name)
	return true, err
}

// rollups makes days of a workspace's roll-ups, those of before the day that
// events may go until. From its first step on they stand for days.
func (p *pruner) rollups() (more bool, err error) {
	before := p.at.cut.Events - p.at.cut.Events%shelf.DayMicros
	if first, err := p.begin(metaDaysWhole); err != nil || p.at.since >= before {
		return false, err
	} else if first {
		if err := p.raise(metaRolledDays, before); err != nil {
			return false, err
		}
	}
	for range p.limit {
		if more, err := p.shop(sqlNextRolled); err != nil {
			return false, err
		} else if !more {
			return false, p.raise(metaDaysWhole, before)
		}
		list, err := queryAll(p.ctx, p.tx, scanRollup, sqlOldRollups, escape(p.at.workspace), p.at.since, before, shelf.DayMicros, p.limit)
		if err != nil {
			return false, err
		}
		if p.at.inside = len(list) == p.limit; len(list) > 0 {
			return true, p.closeRollups(list, before)
		}
	}
	return true, nil
}

func (p *pruner) closeRollups(gone []shelf.Rolled, before int64) error {
	days := shelf.NewRollups(before)
	var quarters []int64
	var digests [][]byte
	for i := range gone {
		days.Add(&gone[i].Rollup)
		quarters, digests = append(quarters, gone[i].Quarter), append(digests, gone[i].Digest[:])
	}
	p.step.Rollups = int64(len(gone))
	if _, err := p.tx.Exec(p.ctx, sqlDropRollups, escape(gone[0].Workspace), quarters, digests); err != nil {
		return err
	}
	return addRollups(p.ctx, p.tx, days.Rows())
}

// quarters makes days of one key's quarters.
func (p *pruner) quarters() (more bool, err error) {
	before := p.at.cut.Quarters - p.at.cut.Quarters%shelf.DayMicros
	if _, err := p.begin(metaWhole); err != nil || p.at.since >= before {
		return false, err
	}
	for range p.limit {
		if !p.at.inside {
			err := p.tx.QueryRow(p.ctx, sqlNextKey, escape(p.at.workspace), escape(p.at.key)).Scan(&p.at.workspace, &p.at.key)
			if errors.Is(err, pgx.ErrNoRows) {
				return false, p.raise(metaWhole, before)
			}
			if err != nil {
				return false, err
			}
			plain(&p.at.workspace, &p.at.key)
		}
		old, err := queryAll(p.ctx, p.tx, scanQuarter, sqlOldQuarters, escape(p.at.workspace), escape(p.at.key), p.at.since, before, shelf.DayMicros, p.limit)
		if err != nil {
			return false, err
		}
		if p.at.inside = len(old) == p.limit; len(old) > 0 {
			return true, p.closeQuarters(old)
		}
	}
	return true, nil
}

func (p *pruner) closeQuarters(old []ledger.QuarterSum) error {
	days, gone := shelf.WholeDays(old)
	for _, q := range days {
		if _, err := p.tx.Exec(p.ctx, sqlAddQuarter, escape(q.Workspace), escape(q.Key), q.Quarter, q.Spend, q.Tokens, q.Requests); err != nil {
			return err
		}
	}
	for _, q := range gone {
		if _, err := p.tx.Exec(p.ctx, sqlDropQuarter, escape(q.Workspace), escape(q.Key), q.Quarter); err != nil {
			return err
		}
	}
	p.step.Quarters = int64(len(gone))
	return nil
}

func (p *pruner) notices() (more bool, err error) {
	tag, err := p.tx.Exec(p.ctx, sqlDropNotices, p.at.cut.Notices, p.limit)
	p.step.Notices = tag.RowsAffected()
	return p.step.Notices > 0, err
}

// raise sets an instant of meta, unless it is later already.
func (p *pruner) raise(name string, at int64) error {
	now, err := metaInstant(p.ctx, p.tx, name)
	if err != nil || now >= at {
		return err
	}
	_, err = p.tx.Exec(p.ctx, sqlPutMeta, name, binary.BigEndian.AppendUint64(nil, uint64(at)))
	return err
}

// metaInstant reads an instant of meta; 0: it is not there.
func metaInstant(ctx context.Context, tx pgx.Tx, name string) (int64, error) {
	var value []byte
	err := tx.QueryRow(ctx, sqlMeta, name).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil || len(value) != 8 {
		return 0, known(err)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// age is an id and an instant.
type age struct {
	id ledger.ID
	at int64
}

func scanAge(r scanner) (a age, err error) {
	var id [16]byte
	err = r.Scan(&id, &a.at)
	a.id = id
	return a, known(err)
}

func scanID(r scanner) (ledger.ID, error) {
	var id [16]byte
	err := r.Scan(&id)
	return id, known(err)
}

// Dropped is until where calls were dropped.
func (r *reader) Dropped() (before int64, err error) { return metaInstant(r.ctx, r.tx, metaDropped) }
