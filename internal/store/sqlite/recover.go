// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"database/sql/driver"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// journalChunk is how many rows a recovery reads at once.
const journalChunk = 64

// recoverJournal folds what the file's journal holds, before anything reads the
// tables. It reads and folds few rows at a time: memory stays bounded.
func (b *Book) recoverJournal() error {
	newest := b.tail.last
	b.tail = tail{}
	for more := true; more; {
		rows := 0
		err := b.writer.query(sqlJournal, func(v []driver.Value) error {
			rows++
			return b.recoverRow(integer(v[0]), raw(v[1]))
		}, b.tail.last, int64(journalChunk))
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		for len(b.tail.batches) > 0 {
			f := newFold(b.tail.oldest(b.options.pace.step))
			if err := b.writer.transact(func() error { return b.writer.fold(f) }); err != nil {
				return fmt.Errorf("fold the journal: %w", err)
			}
			b.folded(f)
		}
		more = rows == journalChunk
	}
	// Who waits for a row of before the recovery has it.
	b.tail.last = max(b.tail.last, newest)
	b.tail.folded = b.tail.last
	b.backlog.Store(0)
	return nil
}

func (b *Book) recoverRow(seq int64, row []byte) error {
	if last := b.tail.last; last > 0 && seq != last+1 {
		return fmt.Errorf("row %d comes after row %d: %w", seq, last, store.ErrDamaged)
	}
	batch, err := unpack(seq, bytes.Clone(row), func(batch *batch, id ledger.ID) (put, bool) {
		for i := len(batch.puts) - 1; i >= 0; i-- {
			if batch.puts[i].ID == id {
				return batch.puts[i], true
			}
		}
		r := b.open[id]
		return put{r, b.bodies[id]}, r != nil
	})
	if err != nil {
		return err
	}
	b.keepOpen(batch)
	b.tail.add(batch)
	return nil
}
