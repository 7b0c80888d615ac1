// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"database/sql/driver"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// journalChunk is how many rows of table journal a recovery reads at once.
const journalChunk = 64

// recoverJournal folds what the journal holds, before anything reads the tables,
// and ends it: the next batch begins a new one. It folds few rows at a time.
func (b *Book) recoverJournal() error {
	have, err := b.writer.holding()
	if err != nil {
		return err
	}
	b.tail = tail{last: have.through, folded: have.through}
	if err := b.recoverTable(); err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	if !have.open {
		err = leftJournal(b.path, &have)
	} else if err = b.recoverFiles(&have); err == nil {
		err = b.writer.transact(func() error { return b.writer.exec(sqlCloseJournal) })
	}
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	b.backlog.Store(0)
	return removeJournal(b.path)
}

// recoverTable folds table journal, where batches were before they had files of
// their own.
func (b *Book) recoverTable() error {
	for more := true; more; {
		rows := 0
		err := b.writer.query(sqlJournal, func(v []driver.Value) error {
			rows++
			return b.recoverRow(integer(v[0]), raw(v[1]))
		}, b.tail.last, int64(journalChunk))
		if err == nil {
			err = b.recoverFold(0)
		}
		if err != nil {
			return err
		}
		more = rows == journalChunk
	}
	return nil
}

func (b *Book) recoverFiles(have *holding) error {
	rows, err := readJournal(b.path, have)
	if err != nil {
		return err
	}
	for i := range rows {
		if err = b.recoverRow(int64(rows[i].Key), rows[i].Body); err == nil {
			err = b.recoverFold(b.options.pace.above)
		}
		if err != nil {
			return err
		}
	}
	return b.recoverFold(0)
}

// recoverFold folds until no more than so many rows of tables are left.
func (b *Book) recoverFold(rows int) error {
	for len(b.tail.batches) > 0 && b.tail.rows > rows {
		f := newFold(b.tail.oldest(b.options.pace.step))
		err := b.writer.transact(func() error {
			if err := b.writer.fold(f); err != nil {
				return err
			}
			return b.writer.exec(sqlDropJournal, f.through)
		})
		if err != nil {
			return fmt.Errorf("fold: %w", err)
		}
		b.folded(f)
	}
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

// holding is what the tables know of the journal.
func (w *writer) holding() (h holding, err error) {
	err = w.query(sqlHolding, func(v []driver.Value) error {
		h.through, h.open = integer(v[0]), integer(v[2]) != 0
		copy(h.id[:], raw(v[1]))
		return nil
	})
	return h, err
}
