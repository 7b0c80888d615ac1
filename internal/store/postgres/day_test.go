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

// TestADaysTurnMakesNobodyWait: while a report has the tables in use, the
// partitions of days neither come nor go, and no batch waits for longer than a
// moment; afterwards they do. What stays for ever of a day lies in the default
// partition (RES-6).
func TestADaysTurnMakesNobodyWait(t *testing.T) {
	url, now := server.Database(t), clock.NewManual(storetest.Noon)
	book := open(t, postgres.Options{URL: url, Clock: now, LockTimeout: 100 * time.Millisecond})
	top := &ledger.Op{
		Verb: ledger.Fund, ID: newID(now.Now()), Workspace: "acme", Checks: cycle(newID(now.Now()), "acme", "", now.Now()).Checks[:1],
		Entry: &ledger.Entry{Kind: ledger.EventTopUp, Amounts: ledger.Amounts{Spend: 9}},
	}
	if _, err := book.Apply(t.Context(), []*ledger.Op{top}); err != nil {
		t.Fatal(err)
	}
	spent(t, book, "k", 1)
	roll(t, book, 10)
	now.Advance(100 * 24 * time.Hour)
	for done := false; !done; {
		var err error
		if _, done, err = book.Prune(t.Context(), storetest.CutAt(now.Now()), 100); err != nil {
			t.Fatal(err)
		}
	}
	conn := connect(t, url)
	reading, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reading.Exec(t.Context(), `SELECT count(*) FROM events, calls`); err != nil {
		t.Fatal(err)
	}
	turned := make(chan error)
	go func() { turned <- book.TurnDays(t.Context(), now.Now()) }()
	for waiting := true; waiting; {
		select {
		case err := <-turned:
			if err == nil {
				t.Error("a day came or went beside a report")
			}
			waiting = false
		default:
			spent(t, book, "k", 1) // it would fail behind a lock of 100 ms
		}
	}
	if err := reading.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := book.TurnDays(t.Context(), now.Now()); err != nil {
		t.Fatal(err)
	}
	var old, kept int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_class WHERE relname = 'events_20260310'), (SELECT count(*) FROM events_default WHERE kind = 6)`).Scan(&old, &kept)
	if err != nil || old != 0 || kept != 1 {
		t.Errorf("%d old partitions, %d entries kept, %v", old, kept, err)
	}
	balanced(t, book)
}
