// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/storetest"
)

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// spent settles one request.
func spent(t testing.TB, b *postgres.Book, key string, spend int64) {
	t.Helper()
	results, err := b.Apply(t.Context(), []*ledger.Op{cycle(newID(b.Now()), "acme", key, b.Now())})
	if err == nil {
		_, err = b.Apply(t.Context(), []*ledger.Op{settle(results[0].Reservation, spend)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func spendOf(t testing.TB, b *postgres.Book) int64 {
	t.Helper()
	rows, err := b.Usage(t.Context(), store.UsageQuery{Workspace: "acme", To: math.MaxInt64})
	if err != nil || len(rows) != 1 {
		t.Fatalf("usage: %+v, %v", rows, err)
	}
	return rows[0].Spend
}

func roll(t testing.TB, b *postgres.Book, limit int) int64 {
	t.Helper()
	n, err := storetest.Roll(t.Context(), b, limit)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const insertEvent = `INSERT INTO events (workspace, id, attempt, kind, at, admitted_at, key, model, spend, tokens, body)
VALUES ($1, $2, 0, 1, $3, $3, $4, $5, $6, $7, $8)`

func insert(t testing.TB, tx pgx.Tx, at, spend int64) {
	t.Helper()
	e := ledger.Event{
		ID: newID(at), Workspace: "acme", Kind: ledger.EventSettled, At: at, AdmittedAt: at,
		Subjects: ledger.Subjects{Key: "late"}, Model: "gpt-5", Provider: "openai", Spend: spend,
	}
	_, err := tx.Exec(t.Context(), insertEvent, e.Workspace, [16]byte(e.ID), at, e.Subjects.Key, e.Model, spend, int64(0), e.Encode())
	if err != nil {
		t.Fatal(err)
	}
}

// TestARollUpPassesNoOpenTransaction: one that another process began first and
// commits last is counted, once; what was committed meanwhile is in every report
// (ENGINE 11). One that rolls back leaves nothing.
func TestARollUpPassesNoOpenTransaction(t *testing.T) {
	url, now := server.Database(t), clock.NewManual(storetest.Noon)
	book := open(t, postgres.Options{URL: url, Clock: now})
	for _, commits := range []bool{true, false} {
		before := int64(0)
		if !commits {
			before = 111
		}
		held, err := connect(t, url).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		insert(t, held, now.Now(), 100)
		spent(t, book, "k", 1)
		roll(t, book, 1)
		spent(t, book, "k", 10)
		if n := roll(t, book, 1000); n != 0 {
			t.Errorf("%d events were rolled up past an open transaction", n)
		}
		if spend := spendOf(t, book); spend != before+11 {
			t.Errorf("%d beside an open transaction, want %d", spend, before+11)
		}
		if commits {
			err = held.Commit(t.Context())
		} else {
			err = held.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		want := before + 11
		if commits {
			want += 100
		}
		for range 2 {
			if spend := spendOf(t, book); spend != want {
				t.Errorf("%d after it, want %d", spend, want)
			}
			roll(t, book, 1)
			agree(t, book)
		}
	}
	if n := roll(t, book, 10); n != 0 {
		t.Errorf("%d more events", n)
	}
}

// TestOneProcessRollsUsageUp: whoever comes while another one does finds nothing to
// do and waits for nobody; many at once count everything once.
func TestOneProcessRollsUsageUp(t *testing.T) {
	url, now := server.Database(t), clock.NewManual(storetest.Noon)
	books := []*postgres.Book{open(t, postgres.Options{URL: url, Clock: now}), open(t, postgres.Options{URL: url, Clock: now, Pooling: true})}
	for range 20 {
		spent(t, books[0], "k", 1)
	}
	other, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `SELECT FROM rolling FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if n, done, err := books[1].Roll(t.Context(), 10); n != 0 || !done || err != nil {
		t.Errorf("beside another one: %d, %v, %v", n, done, err)
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	sum := int64(0)
	for i := range 8 {
		all.Go(func() {
			n, err := storetest.Roll(t.Context(), books[i%2], 3)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			sum += n
			mu.Unlock()
		})
	}
	all.Wait()
	if sum += roll(t, books[1], 3); sum != 20 || spendOf(t, books[0]) != 20 {
		t.Errorf("%d events were rolled up, %d spent, want 20", sum, spendOf(t, books[0]))
	}
	balanced(t, books[0])
}

// TestADatabaseThatComesToAnotherServerCountsOn: a copy of its rows brings numbers
// of transactions along that the new server has not reached, or has long passed.
func TestADatabaseThatComesToAnotherServerCountsOn(t *testing.T) {
	for name, moved := range map[string]string{
		"Ahead":  `UPDATE events SET tx = tx + 1000000000; UPDATE rolling SET through = through + 1000000000, cluster = 'another'`,
		"Behind": `UPDATE events SET tx = 100 + tx % 100; UPDATE rolling SET through = 100 + through % 100, cluster = 'another'`,
	} {
		t.Run(name, func(t *testing.T) {
			url, now := server.Database(t), clock.NewManual(storetest.Noon)
			book := open(t, postgres.Options{URL: url, Clock: now})
			spent(t, book, "k", 1)
			roll(t, book, 10)
			if _, err := connect(t, url).Exec(t.Context(), moved, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			spend := int64(1)
			for range 3 {
				next := open(t, postgres.Options{URL: url, Clock: now})
				spent(t, next, "k", 10)
				if spend += 10; spendOf(t, next) != spend {
					t.Errorf("%d, want %d", spendOf(t, next), spend)
				}
				roll(t, next, 1)
				balanced(t, next)
			}
		})
	}
}

// TestAServerThatCountsFewerTransactionsIsNotBelieved: a running process would
// pass events over.
func TestAServerThatCountsFewerTransactionsIsNotBelieved(t *testing.T) {
	url := server.Database(t)
	book := open(t, postgres.Options{URL: url, Clock: clock.NewManual(storetest.Noon)})
	spent(t, book, "k", 1)
	if _, err := connect(t, url).Exec(t.Context(), `UPDATE rolling SET through = $1`, int64(1)<<50); err != nil {
		t.Fatal(err)
	}
	if n, _, err := book.Roll(t.Context(), 10); err == nil || n != 0 {
		t.Errorf("%d events, %v", n, err)
	}
}

// TestReportsHaveAnEnd: one that hangs would keep every dead version of a counter
// (ENGINE, risks). It has connections of its own.
func TestReportsHaveAnEnd(t *testing.T) {
	url := server.Database(t)
	for _, pooling := range []bool{false, true} {
		book := open(t, postgres.Options{URL: url, Clock: clock.NewManual(storetest.Noon), Pooling: pooling})
		err := book.UsageBetween(t.Context(), store.UsageQuery{Workspace: "acme", To: math.MaxInt64}, func(tx pgx.Tx) error {
			var statement, idle string
			const bounds = `SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')`
			if err := tx.QueryRow(t.Context(), bounds).Scan(&statement, &idle); err != nil || statement != "1min" || idle != "1min" {
				t.Errorf("pooling %v: a statement has %s, an idle transaction %s, %v", pooling, statement, idle, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// days makes the partitions that Event's days lie in.
func days(t testing.TB, book *postgres.Book) {
	t.Helper()
	for day := storetest.VolumeDays + 1; day >= 0; day -= 3 {
		if err := book.TurnDays(t.Context(), storetest.Noon-int64(day)*int64(24*time.Hour/time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}
}

// eventsRead is how many rows of events a report looks at.
func eventsRead(t testing.TB, b *postgres.Book, q store.UsageQuery) int64 {
	t.Helper()
	var before, after int64
	const read = `SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables WHERE relname LIKE 'events%'`
	err := b.UsageBetween(t.Context(), q, func(tx pgx.Tx) error {
		before = after
		return tx.QueryRow(t.Context(), read).Scan(&after)
	})
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}

// TestReportsOfManyEvents: 50,000 in `make test`, a million in `make soak`, which
// prints what it takes (RES-6, ENGINE 11). A report reads roll-ups, and of the
// events those of the quarters that its ends lie in; it is the sum of all events.
func TestReportsOfManyEvents(t *testing.T) {
	n := storetest.Volume(t)
	url, now := server.Database(t), clock.NewManual(storetest.Noon)
	book := open(t, postgres.Options{URL: url, Clock: now})
	days(t, book)
	conn := connect(t, url)
	events := fill(t, conn, n)
	storetest.SameUsage(t, book, events)
	took := rolled(t, book, n)
	t.Logf("rolling up, 1000 events a step: %s", storetest.Percentiles(took))
	storetest.SameUsage(t, book, events)
	for name, q := range storetest.VolumeQueries(t) {
		if rows := eventsRead(t, book, q); rows != 0 {
			t.Errorf("by %s reads %d events", name, rows)
		}
		q.From, q.To = q.From+1, q.To-int64(15*24*time.Hour/time.Microsecond)-1
		if rows, most := eventsRead(t, book, q), int64(4*n/storetest.VolumeDays/96+100); rows == 0 || rows > most {
			t.Errorf("by %s with cut ends reads %d events, at most %d lie there", name, rows, most)
		}
	}
	agree(t, book)
	if storetest.Soaks() {
		soak(t, book, conn, now)
	}
}

// rolled rolls everything up, as the program does.
func rolled(t testing.TB, book *postgres.Book, n int) (took []time.Duration) {
	t.Helper()
	sum := int64(0)
	for done := false; !done; {
		began := time.Now()
		var step int64
		var err error
		if step, done, err = book.Roll(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		sum += step
		took = append(took, time.Since(began))
	}
	if sum != int64(n) {
		t.Errorf("%d events were rolled up, want %d", sum, n)
	}
	return took
}

// soak prints what admissions take alone, beside roll-ups and beside the
// retention, and what becomes of the tables.
func soak(t *testing.T, book *postgres.Book, conn *pgx.Conn, now *clock.Manual) {
	t.Logf("admissions alone: %s", storetest.Beside(t, book, func() { <-time.After(10 * time.Second) }))
	roll(t, book, 2000)
	if _, err := conn.Exec(t.Context(), `TRUNCATE rollups; UPDATE rolling SET through = 0`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	t.Logf("admissions beside rolling up a million events: %s", storetest.Beside(t, book, func() {
		for done := false; !done; {
			began := time.Now()
			var err error
			if _, done, err = book.Roll(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
			<-time.After(max(20*time.Millisecond, time.Since(began))) // as the program does
		}
	}))
	sizes(t, conn)
	now.Advance(85 * 24 * time.Hour)
	cut := storetest.CutAt(now.Now())
	prune := func(most, limit int) func() {
		return func() { storetest.PruneAll(t.Context(), t, book, cut, most, limit) }
	}
	t.Logf("admissions beside making days of roll-ups: %s", storetest.Beside(t, book, prune(500, 64)))
	storetest.PruneUntil(t.Context(), t, book, cut, func(p store.Pruned) bool { return p.Events > 0 })
	t.Logf("admissions beside dropping events: %s", storetest.Beside(t, book, prune(1000, 64)))
	prune(0, 5000)()
	t.Logf("admissions beside dropping days: %s", storetest.Beside(t, book, func() {
		if err := book.TurnDays(t.Context(), now.Now()); err != nil {
			t.Error(err)
		}
	}))
	roll(t, book, 2000)
	sizes(t, conn)
	agree(t, book)
}

// agree compares roll-ups with events that the test has written past the book.
func agree(t testing.TB, book *postgres.Book) {
	t.Helper()
	books, err := storetest.Take(t.Context(), book)
	if err == nil {
		err = books.RolledUp()
	}
	if err != nil {
		t.Error(err)
	}
}

// sizes prints tables' sizes, and whether updates leave more behind than vacuum
// takes away.
func sizes(t *testing.T, conn *pgx.Conn) {
	rows, err := conn.Query(t.Context(), `SELECT format('%s: %s rows, %s dead, %s', regexp_replace(s.relname, '_[0-9]{8}|_default', ' (days)'), sum(n_live_tup), sum(n_dead_tup),
 pg_size_pretty(sum(pg_total_relation_size(s.relid)))) FROM pg_stat_user_tables s GROUP BY regexp_replace(s.relname, '_[0-9]{8}|_default', ' (days)')
HAVING sum(pg_total_relation_size(s.relid)) > 100000 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		t.Log(line)
	}
}

// fill copies events into their table, each some thousand in a transaction.
func fill(t testing.TB, conn *pgx.Conn, n int) (events []ledger.Event) {
	t.Helper()
	random := storetest.Random(1)
	columns := []string{"workspace", "id", "attempt", "kind", "at", "admitted_at", "key", "model", "spend", "tokens", "body"}
	for len(events) < n {
		from := len(events)
		for range min(500, n-from) {
			events = append(events, storetest.Event(len(events), n, random))
		}
		source := pgx.CopyFromSlice(len(events)-from, func(i int) ([]any, error) {
			e := &events[from+i]
			return []any{
				e.Workspace, [16]byte(e.ID), e.Attempt, int16(e.Kind), e.At, e.AdmittedAt, e.Subjects.Key, e.Model, e.Spend, e.Tokens, e.Encode(),
			}, nil
		})
		if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"events"}, columns, source); err != nil {
			t.Fatal(fmt.Errorf("fill: %w", err))
		}
		for i := from; i < len(events); i++ {
			events[i].Detail = nil
		}
	}
	return events
}
