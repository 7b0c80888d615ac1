// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql/driver"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// load gathers what ops need, counters as working copies.
func (b *Book) load(ops []*ledger.Op, at int64) (*ledger.Page, error) {
	p := &ledger.Page{
		Generations: make(map[string]int64, 1), Counters: make(map[ledger.Counter]*ledger.State, 8),
		Open: make(map[ledger.ID]*ledger.Reservation, len(ops)), Ended: make(map[ledger.ID]ledger.Ending),
	}
	var failed error
	for _, op := range ops {
		p.Generations[op.Workspace] = b.generation(op.Workspace)
		op.Needs(func(c ledger.Counter, check *ledger.Check) {
			if failed == nil {
				failed = b.loadCounter(p, op, c, check, at)
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
func (b *Book) loadCounter(p *ledger.Page, op *ledger.Op, c ledger.Counter, check *ledger.Check, at int64) error {
	s := p.Counters[c]
	if s == nil {
		row := b.counters.get(c)
		if row == nil {
			var err error
			if row, err = b.writer.counter(c); err != nil {
				return err
			}
			b.counters.put(c, row)
		}
		if row == absent {
			return nil
		}
		s = row.Clone()
		p.Counters[c] = s
	}
	key, ok := shelf.Rebuilds(op, check, s)
	if !ok {
		return nil
	}
	quarters, err := b.writer.keyQuarters(c.Workspace, key, ledger.RebuildFrom(at))
	if err != nil {
		return err
	}
	check.Rebuild(s, quarters)
	b.counters.put(c, s.Clone()) // derived from what is committed
	return nil
}

// loadReservation finds an open one in memory and the ending of any other in
// the events.
func (b *Book) loadReservation(p *ledger.Page, workspace string, id ledger.ID) error {
	if r := b.open[id]; r != nil && r.Workspace == workspace {
		p.Open[id] = r
		return nil
	}
	ending, ok, err := b.writer.ending(workspace, id)
	if ok {
		p.Ended[id] = ending
	}
	return err
}

// generation of a workspace is its own or, if that is newer, the shared one.
func (b *Book) generation(workspace string) int64 {
	return max(b.generations[workspace], b.generations[""])
}

// keep puts what a batch did into memory, after its commit.
func (b *Book) keep(p *ledger.Page, changes *ledger.Changes, rows *shelf.Rows) {
	b.open.Keep(rows)
	for _, c := range changes.Counters {
		b.counters.put(c, p.Counters[c])
	}
}

// store writes a batch in one transaction; refusal records ride along.
func (b *Book) store(p *ledger.Page, changes *ledger.Changes, rows *shelf.Rows) error {
	riders := b.refusals.Take(refusalsPerWrite)
	err := b.transact(func() error {
		w := b.writer
		if err := w.addRefusals(riders); err != nil {
			return err
		}
		if err := w.putReservations(rows); err != nil {
			return err
		}
		for _, c := range changes.Counters {
			if err := w.putCounter(c, p.Counters[c]); err != nil {
				return err
			}
		}
		return w.addRecords(changes)
	})
	if err != nil {
		b.refusals.Put(riders)
		return fmt.Errorf("store a batch: %w", err)
	}
	return nil
}

func (w *writer) putReservations(rows *shelf.Rows) error {
	for _, r := range rows.Insert {
		w.last++
		w.numbers[r.ID] = w.last
		if err := w.exec(sqlAddReservation, w.last, r.Workspace, r.ID[:], r.ExpiresAt, r.Encode()); err != nil {
			return err
		}
	}
	for _, r := range rows.Update {
		if err := w.exec(sqlSetReservation, w.numbers[r.ID], r.ExpiresAt, r.Encode()); err != nil {
			return err
		}
	}
	for _, r := range rows.Delete {
		if err := w.exec(sqlDeleteReservation, w.numbers[r.ID]); err != nil {
			return err
		}
		w.closed = append(w.closed, r.ID)
	}
	return nil
}

func (w *writer) putCounter(c ledger.Counter, s *ledger.State) error {
	return w.exec(sqlPutCounter, c.Workspace, c.Limit, int64(c.Epoch), c.Subject, c.Window,
		int64(s.Kind), s.Settled, s.Held, int64(s.Warned), s.At, s.Encode())
}

func (w *writer) addRecords(changes *ledger.Changes) error {
	for i := range changes.Events {
		e := &changes.Events[i]
		err := w.exec(sqlAddEvent, e.Workspace, e.ID[:], int64(e.Attempt), int64(e.Kind), e.At, e.AdmittedAt,
			e.Subjects.Key, e.Model, e.Spend, e.Tokens, e.Encode())
		if err != nil {
			return err
		}
	}
	for i := range changes.Calls {
		if err := w.addCall(sqlAddCall, &changes.Calls[i], 1); err != nil {
			return err
		}
	}
	for _, q := range shelf.Quarters(changes.Quarters) {
		err := w.exec(sqlAddQuarter, q.Workspace, q.Key, q.Quarter, q.Spend, q.Tokens, q.Requests)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addRefusals(list []store.Call) error {
	for i := range list {
		if err := w.addCall(sqlAddRefusal, &list[i].Call, list[i].Count); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addCall(query string, c *ledger.Call, count int64) error {
	return w.exec(query, c.Workspace, c.ID[:], c.Key, c.Outcome, c.Code, c.At, c.EndedAt, c.Model, c.ClientID,
		count, c.Encode())
}

// counter reads one row; absent stands for none.
func (w *writer) counter(c ledger.Counter) (*ledger.State, error) {
	s := absent
	err := w.query(sqlCounter, func(v []driver.Value) error {
		s = &ledger.State{
			Kind: ledger.Kind(integer(v[0])), Settled: integer(v[1]), Held: integer(v[2]),
			Warned: uint16(integer(v[3])), At: integer(v[4]),
		}
		return s.DecodeInto(bytes(v[5]))
	}, c.Workspace, c.Limit, int64(c.Epoch), c.Subject, c.Window)
	return s, err
}

func (w *writer) ending(workspace string, id ledger.ID) (ledger.Ending, bool, error) {
	var ending ledger.Ending
	err := w.query(sqlEnding, func(v []driver.Value) error {
		if kind := ledger.EventKind(integer(v[0])); kind == ledger.EventCorrection {
			ending.Corrections = int32(integer(v[1]))
		} else {
			ending.Kind = kind
		}
		return nil
	}, workspace, id[:])
	if err == nil && ending.Kind == ledger.EventSwept {
		ending.Swept, err = w.swept(workspace, id)
	}
	return ending, ending.Kind != 0, err
}

// swept is a reservation as a sweep ended it, from its call; nil without one.
func (w *writer) swept(workspace string, id ledger.ID) (r *ledger.Reservation, err error) {
	err = w.query(sqlCall, func(v []driver.Value) error {
		c := ledger.Call{ID: id, Workspace: workspace, Key: text(v[2]), At: integer(v[5]), EndedAt: integer(v[6]), Model: text(v[7]), ClientID: text(v[8])}
		if err := c.DecodeInto(bytes(v[10])); err != nil {
			return err
		}
		r = c.Reservation()
		return nil
	}, workspace, id[:])
	return r, err
}

func (w *writer) keyQuarters(workspace, key string, from int64) ([]ledger.QuarterSum, error) {
	var list []ledger.QuarterSum
	err := w.query(sqlKeyQuarters, func(v []driver.Value) error {
		list = append(list, ledger.QuarterSum{
			Workspace: workspace, Key: key, Quarter: integer(v[0]),
			Spend: integer(v[1]), Tokens: integer(v[2]), Requests: integer(v[3]),
		})
		return nil
	}, workspace, key, from)
	return list, err
}

// integer, text and bytes read columns whose types the schema's STRICT tables
// guarantee.
func integer(v driver.Value) int64 { i, _ := v.(int64); return i }

func text(v driver.Value) string { s, _ := v.(string); return s }

func bytes(v driver.Value) []byte { b, _ := v.([]byte); return b }
