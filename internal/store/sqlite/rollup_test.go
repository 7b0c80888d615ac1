// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

// fill writes events past the book, as an earlier program would have left them:
// not rolled up.
func fill(t testing.TB, path string, n int) (events []ledger.Event) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare(`INSERT INTO events (workspace, id, attempt, kind, admitted_at, body) VALUES (?, ?, ?, ?, ?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = insert.Close() }()
	random := storetest.Random(1)
	for i := range n {
		e := storetest.Event(i, n, random)
		if _, err := insert.Exec(e.Workspace, e.ID[:], e.Attempt, int(e.Kind), e.AdmittedAt, e.Encode()); err != nil {
			t.Fatal(err)
		}
		e.Detail = nil
		events = append(events, e)
	}
	if _, err := tx.Exec(`DELETE FROM meta WHERE name = 'rolled_up'`); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.Commit(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return events
}

// TestReportsOfManyEvents: 50,000 in `make test`, a million in `make soak`, which
// prints what it takes (RES-6, ENGINE 11). A report reads roll-ups, and of the
// events those of the quarters that its ends lie in; it is the sum of all events.
func TestReportsOfManyEvents(t *testing.T) {
	n, now := storetest.Volume(t), clock.NewManual(storetest.Noon)
	options := sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Clock: now}
	b, err := sqlite.Open(t.Context(), options)
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	events := fill(t, options.Path, n)
	began := time.Now()
	book := open(t, options)
	book.Start()
	t.Logf("opened with %d events that an earlier program has left: %v", n, time.Since(began).Round(time.Millisecond))
	storetest.SameUsage(t, book, events)
	for name, q := range storetest.VolumeQueries(t) {
		if rows, err := book.EventsRead(t.Context(), q); rows != 0 || err != nil {
			t.Errorf("by %s reads %d events, %v", name, rows, err)
		}
		q.From, q.To = q.From+1, q.To-int64(15*day/time.Microsecond)-1
		if rows, err := book.EventsRead(t.Context(), q); rows == 0 || rows > 4*n/storetest.VolumeDays/96+100 || err != nil {
			t.Errorf("by %s with cut ends reads %d events, %v", name, rows, err)
		}
		plan, err := book.UsagePlan(t.Context(), q)
		if err != nil || !strings.Contains(plan, "SEARCH rollups USING PRIMARY KEY (workspace=? AND quarter>? AND quarter<?)") {
			t.Errorf("by %s: %s, %v", name, plan, err)
		}
	}
	agree(t, book)
	if storetest.Soaks() {
		soak(t, book, now)
	}
}

// agree compares roll-ups with events that the test has written past the book.
func agree(t testing.TB, book *sqlite.Book) {
	t.Helper()
	books, err := storetest.Take(t.Context(), book)
	if err == nil {
		err = books.RolledUp()
	}
	if err != nil {
		t.Error(err)
	}
}

// soak prints what admissions take alone and beside the retention.
func soak(t *testing.T, book *sqlite.Book, now *clock.Manual) {
	t.Logf("admissions alone, which folds roll up: %s", storetest.Beside(t, book, func() { <-time.After(10 * time.Second) }))
	now.Advance(85 * day)
	cut := storetest.CutAt(now.Now())
	prune := func() { storetest.PruneAll(t.Context(), t, book, cut, 1000, 64) }
	t.Logf("admissions beside making days of roll-ups: %s", storetest.Beside(t, book, prune))
	storetest.PruneUntil(t.Context(), t, book, cut, func(p store.Pruned) bool { return p.Events > 0 })
	t.Logf("admissions beside dropping events: %s", storetest.Beside(t, book, prune))
	agree(t, book)
}
