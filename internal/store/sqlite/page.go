// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// load gathers what ops need, counters as working copies.
func (b *Book) load(ops []*ledger.Op, at int64) (_ *ledger.Page, err error) {
	defer func() { err = errors.Join(err, b.lookups.end()) }()
	p := &ledger.Page{
		Generations: make(map[string]int64, 1), Counters: make(map[ledger.Counter]*ledger.State, 8),
		Open: make(map[ledger.ID]*ledger.Reservation, len(ops)), Ended: make(map[ledger.ID]ledger.Ending),
	}
	var failed error
	near := ledger.Nearby(p)
	for i, op := range ops {
		if i == 0 || op.Workspace != ops[i-1].Workspace {
			p.Generations[op.Workspace] = b.generation(op.Workspace)
		}
		op.Needs(func(c ledger.Counter, check *ledger.Check) {
			if failed == nil {
				failed = b.loadCounter(near, op, c, check, at)
			}
		}, func(id ledger.ID) {
			if failed == nil {
				failed = b.loadReservation(p, op.Workspace, id)
			}
		})
	}
	return p, failed
}

// loadCounter leaves out a counter without a row; the cache knows that too.
func (b *Book) loadCounter(near *ledger.Near, op *ledger.Op, c ledger.Counter, check *ledger.Check, at int64) error {
	s := near.Find(c)
	if s == nil {
		row := b.counters.get(c)
		if row == nil {
			var err error
			if row, err = b.lookups.counter(c); err != nil {
				return err
			}
			b.counters.put(c, row, 0)
		}
		if row == absent {
			return nil
		}
		s = row.Clone()
		near.Put(c, s)
	}
	key, ok := shelf.Rebuilds(op, check, s)
	if !ok {
		return nil
	}
	from := ledger.RebuildFrom(at)
	quarters, err := b.lookups.keyQuarters(c.Workspace, key, from)
	if err != nil {
		return err
	}
	check.Rebuild(s, b.tail.quarters(b.lookups.unfolded, c.Workspace, key, from, quarters))
	b.counters.put(c, s.Clone(), 0) // derived from what is committed
	return nil
}

// loadReservation finds an open one in memory and the ending of any other in
// the events.
func (b *Book) loadReservation(p *ledger.Page, workspace string, id ledger.ID) error {
	if r := b.open[id]; r != nil && r.Workspace == workspace {
		p.Open[id] = r
		return nil
	}
	ending, err := b.lookups.ending(workspace, id)
	if err != nil {
		return err
	}
	b.tail.ending(b.lookups.unfolded, workspace, id, &ending)
	if ending.Kind != 0 {
		p.Ended[id] = ending
	}
	return nil
}

// generation of a workspace is its own or, if that is newer, the shared one.
func (b *Book) generation(workspace string) int64 {
	return max(b.generations[workspace], b.generations[""])
}

// enter puts together what a batch did.
func (b *Book) enter(p *ledger.Page, changes *ledger.Changes, rows *shelf.Rows) *batch {
	out := &batch{
		seq:      b.tail.last + 1,
		counters: make([]counterBody, len(changes.Counters)), events: make([]eventBody, len(changes.Events)),
		calls: make([]callBody, 0, len(changes.Calls)), quarters: shelf.Quarters(changes.Quarters), notices: changes.Outbox,
	}
	for i, c := range changes.Counters {
		out.counters[i] = counterBody{counter: c, state: p.Counters[c]}
	}
	for i := range changes.Events {
		out.events[i].Event = &changes.Events[i]
	}
	for _, r := range changes.Closed {
		if p.Open[r.ID] == nil {
			out.ended = append(out.ended, r.ID)
		}
		if n := len(out.calls); !r.Tombstone {
			out.calls = append(out.calls, callBody{Call: &changes.Calls[n], put: b.putOf(out, r)})
		}
	}
	for _, list := range [2][]*ledger.Reservation{rows.Insert, rows.Update} {
		for _, r := range list {
			out.puts = append(out.puts, b.packer.put(r))
		}
	}
	return out
}

// putOf is a reservation as it was packed when the batch found it; one that the
// batch itself opened or changed is put first.
func (b *Book) putOf(into *batch, r *ledger.Reservation) put {
	if b.open[r.ID] == r {
		return put{r, b.bodies[r.ID]}
	}
	p := b.packer.put(r)
	into.puts = append(into.puts, p)
	return p
}

// keep puts what a batch did into memory, after its commit.
func (b *Book) keep(batch *batch) {
	b.keepOpen(batch)
	for i := range batch.counters {
		b.counters.put(batch.counters[i].counter, batch.counters[i].state, batch.seq)
	}
	b.tail.add(batch)
	b.backlog.Store(int64(b.tail.rows))
	if b.tail.rows >= b.options.pace.above {
		ring(b.full)
	}
}

func (b *Book) keepOpen(batch *batch) {
	for _, r := range batch.puts {
		b.open[r.ID], b.bodies[r.ID] = r.Reservation, r.body
	}
	for _, id := range batch.ended {
		delete(b.open, id)
		delete(b.bodies, id)
	}
}

// store writes a batch into the journal: one record, one flush.
func (b *Book) store(batch *batch) error {
	row := b.packer.pack(batch)
	if b.journal == nil {
		if err := b.beginJournal(batch.seq); err != nil {
			return fmt.Errorf("store a batch: %w", err)
		}
	}
	if err := b.journal.add(batch.seq, row); err != nil {
		return fmt.Errorf("store a batch: %w", err)
	}
	return nil
}

// beginJournal makes the files, then tells the tables of them: a start that is
// not told of any has no batch to look for. This commit is also on the disk
// before any batch that was decided on what the tables said.
func (b *Book) beginJournal(first int64) error {
	id := newJournalID()
	j, err := makeJournal(b.path, id, first, b.options.pace.segment)
	if err != nil {
		return errors.Join(store.ErrUnavailable, err, removeJournal(b.path))
	}
	err = b.writer.transact(func() error { return b.writer.exec(sqlOpenJournal, id[:]) })
	if err != nil {
		// Were it written nevertheless, the files must be there.
		err = errors.Join(store.ErrUnavailable, err, j.close())
		if !b.writer.spent.Load() {
			err = errors.Join(err, removeJournal(b.path))
		}
		return err
	}
	b.journal = j
	ring(b.full)
	return nil
}

func (w *writer) addRefusals(list []store.Call) error {
	for i := range list {
		c := &list[i]
		err := w.exec(sqlAddRefusal, c.Workspace, c.ID[:], c.Key, c.Outcome, c.Code, c.EndedAt, c.ClientID, c.Count, c.Encode())
		if err != nil {
			return err
		}
	}
	return nil
}

// integer, text and raw read columns whose types the schema's STRICT tables
// guarantee.
func integer(v driver.Value) int64 { i, _ := v.(int64); return i }

func text(v driver.Value) string { s, _ := v.(string); return s }

func raw(v driver.Value) []byte { b, _ := v.([]byte); return b }

// endJournal leaves one file at rest, if everything is in the tables; else the
// next start folds what is not.
func (b *Book) endJournal() error {
	j := b.journal
	if j == nil {
		return nil
	}
	b.journal = nil
	if err := j.close(); err != nil {
		return fmt.Errorf("close the journal: %w", err)
	}
	if j.broken || b.tail.folded < b.tail.last || b.writer == nil || b.writer.spent.Load() {
		return nil
	}
	err := b.writer.transact(func() error { return b.writer.exec(sqlCloseJournal) })
	if errors.Is(err, store.ErrUnavailable) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end the journal: %w", err)
	}
	return removeJournal(b.path)
}
