// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// FailCommits puts f in the place of every commit until the book connects anew.
func (b *Book) FailCommits(f func(commit func() error) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.writer.fault = f
	if b.journal != nil {
		b.journal.fault = f
	}
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
	o.pace = pace{step: 8, above: 1, most: 64, segment: 16 << 10}
	return o
}

// Brief makes the options' book fold only when it is asked to, a batch or two at a
// time, and its segments short.
func (o Options) Brief() Options {
	o.pace = pace{step: 8, above: 1 << 20, most: 1 << 20, segment: 16 << 10}
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
	defer b.mu.Unlock()
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	f()
}

// JournalRows are the batches of a journal whose rows are not folded.
func (b *Book) JournalRows() (rows [][]byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, err := readJournal(b.path, &holding{id: b.journal.id})
	for _, r := range list {
		rows = append(rows, r.Body)
	}
	return rows, err
}

// Turns is how many the journal's segments have taken.
func (b *Book) Turns() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.journal.now.turn
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

// EventsRead is how many events a report looks at.
func (b *Book) EventsRead(ctx context.Context, q store.UsageQuery) (n int, err error) {
	err = b.snapshot(ctx, func(tx *sql.Tx) error {
		u := &usage{ctx: ctx, tx: tx, query: &q}
		_, err := u.read()
		n = u.sums.Events()
		return err
	})
	return n, err
}

// UsagePlan is how SQLite sums a report's roll-ups.
func (b *Book) UsagePlan(ctx context.Context, q store.UsageQuery) (string, error) {
	statement, _ := sumRollups(q.By)
	steps, err := queryAll(ctx, b.read, func(r row) (s string, err error) {
		var n int
		return s, r.Scan(&n, &n, &n, &s)
	}, "EXPLAIN QUERY PLAN "+statement, q.Workspace, q.From, q.To)
	return strings.Join(steps, "; "), err
}
