// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/storetest"
)

// TestDaysComeAndGo: each day's records lie in a partition of its own, which goes
// when it is old and empty (RES-6, ENGINE 11).
func TestDaysComeAndGo(t *testing.T) {
	url, now := server.Empty(t), clock.NewManual(storetest.Noon)
	book := open(t, postgres.Options{URL: url, Clock: now})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows := func(table string) (n int) {
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		return n
	}
	days := func() []string {
		list, _ := conn.Query(t.Context(), `SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'events'::regclass ORDER BY 1`)
		names, err := pgx.CollectRows(list, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	spend := func() {
		results, err := book.Apply(t.Context(), []*ledger.Op{cycle(newID(now.Now()), "acme", "k", now.Now())})
		if err == nil {
			_, err = book.Apply(t.Context(), []*ledger.Op{settle(results[0].Reservation, 1)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	spend()
	now.Advance(6 * 24 * time.Hour) // nobody has made this one
	spend()
	for table, want := range map[string]int{"events_20260310": 1, "calls_20260310": 1, "events_default": 1, "calls_default": 1} {
		if n := rows(table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	now.Advance(94 * 24 * time.Hour)
	if err := book.TurnDays(t.Context(), now.Now()); err != nil {
		t.Fatal(err)
	}
	if list := days(); !slices.Contains(list, "events_20260310") || slices.Contains(list, "events_20260311") || !slices.Contains(list, "events_20260618") {
		t.Errorf("days: %v", list)
	}
	if _, err := storetest.Roll(t.Context(), book, 100); err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		old := now.Now() - (90 * 24 * time.Hour).Microseconds()
		if _, done, err = book.Prune(t.Context(), store.Cut{Calls: old, Events: old}, 100); err != nil {
			t.Fatal(err)
		}
	}
	if err := book.TurnDays(t.Context(), now.Now()); err != nil {
		t.Fatal(err)
	}
	if list := days(); slices.Contains(list, "events_20260310") || len(list) != 6 {
		t.Errorf("days: %v", list)
	}
	spend()
	balanced(t, book)
}
