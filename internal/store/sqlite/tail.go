// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/shelf"
)

// tail is what the journal holds and the tables do not say yet: the batches that
// are not folded, the oldest first.
type tail struct {
	batches []*batch
	rows    int
	// last is the newest row of the journal, folded the newest that the tables
	// have in them.
	last, folded int64
}

func (t *tail) add(b *batch) {
	t.batches = append(t.batches, b)
	t.rows += b.rows()
	t.last = b.seq
}

// oldest are the batches of one fold: about so many rows, one batch at least.
func (t *tail) oldest(rows int) []*batch {
	for i, b := range t.batches {
		if rows -= b.rows(); rows < 0 && i > 0 {
			return t.batches[:i]
		}
	}
	return t.batches
}

// drop forgets what is folded.
func (t *tail) drop(through int64) {
	n := 0
	for n < len(t.batches) && t.batches[n].seq <= through {
		t.rows -= t.batches[n].rows()
		t.batches[n] = nil
		n++
	}
	t.batches = t.batches[n:]
	t.folded = max(t.folded, through)
}

// from are the batches whose rows begin with one.
func (t *tail) from(row int64) []*batch {
	for i, b := range t.batches {
		if b.seq >= row {
			return t.batches[i:]
		}
	}
	return nil
}

// ending adds to what the tables say of how a request ended what rows from one on
// say.
func (t *tail) ending(from int64, workspace string, id ledger.ID, ending *ledger.Ending) {
	for _, b := range t.from(from) {
		for i := range b.events {
			e := &b.events[i]
			switch {
			case e.ID != id || e.Workspace != workspace:
			case e.Kind == ledger.EventCorrection:
				ending.Corrections++
			default:
				ending.Kind = e.Kind
			}
		}
		for i := range b.calls {
			c := &b.calls[i]
			if c.ID == id && c.Workspace == workspace && ending.Kind == ledger.EventSwept {
				ending.Swept = c.Reservation()
			}
		}
	}
}

// quarters adds to what the tables say of a key's sums what rows from one on say.
func (t *tail) quarters(row int64, workspace, key string, from int64, list []ledger.QuarterSum) []ledger.QuarterSum {
	for _, b := range t.from(row) {
		for _, q := range b.quarters {
			if q.Workspace == workspace && q.Key == key && q.Quarter >= from {
				list = append(list, q)
			}
		}
	}
	return shelf.Quarters(list)
}
