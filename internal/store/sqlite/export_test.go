// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
)

// FailCommits puts f in the place of every commit until the book connects anew.
func (b *Book) FailCommits(f func(commit func() error) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.writer.fault = f
}

// Pragma reads one of the writing connection's.
func (b *Book) Pragma(name string) (value string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	err = b.writer.query("PRAGMA "+name, func(v []driver.Value) error {
		value = fmt.Sprint(v[0])
		return nil
	})
	return value, err
}

// Hurry makes every batch of the options' book be folded at once, beside the next
// ones, a batch or two at a time.
func (o Options) Hurry() Options {
	o.pace = pace{step: 8, above: 1, most: 64}
	return o
}

// Fold folds the oldest rows of the journal: one step.
func (b *Book) Fold(ctx context.Context) error { return b.foldOldest(ctx) }

// Unfolded is how many rows the journal has.
func (b *Book) Unfolded() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tail.batches)
}

// Freeze runs f while nothing is written.
func (b *Book) Freeze(f func()) {
	b.mu.Lock()
	w := b.writer
	b.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// JournalRows are the bodies of the journal's rows.
func (b *Book) JournalRows() (rows [][]byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err = b.writer.query(sqlJournal, func(v []driver.Value) error {
		rows = append(rows, slices.Clone(raw(v[1])))
		return nil
	}, int64(0), int64(journalChunk))
	return rows, err
}

// ReadJournalRow reads a row whose calls' reservations are all open, and says how
// many rows of tables it makes.
func ReadJournalRow(row []byte) (int, error) {
	b, err := unpack(1, row, func(*batch, ledger.ID) (put, bool) {
		return put{Reservation: &ledger.Reservation{}}, true
	})
	if err != nil {
		return 0, err
	}
	return b.rows(), nil
}
