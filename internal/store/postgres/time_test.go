// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/storetest"
)

func second(n int64) int64 { return n * time.Second.Microseconds() }

// admitAt is the instant of one more admission on the same rows.
func admitAt(t *testing.T, b *postgres.Book) int64 {
	t.Helper()
	op := cycle(newID(b.Now()), "acme", "", b.Now())
	results, err := b.Apply(t.Context(), []*ledger.Op{op})
	if err == nil && results[0].Verdict == ledger.Carry {
		results, err = b.Apply(t.Context(), []*ledger.Op{op.Carried(&results[0])})
	}
	if err != nil || results[0].Verdict != ledger.Admitted {
		t.Fatalf("admit: %+v, %v", results, err)
	}
	return results[0].At
}

// TestTimeNeverRunsBackwardsForARow: of two processes whose instants differ, the
// later one's rows keep the earlier one's from going back (ENGINE 7).
func TestTimeNeverRunsBackwardsForARow(t *testing.T) {
	url := server.Database(t)
	ahead, behind := clock.NewManual(storetest.Noon), clock.NewManual(storetest.Noon)
	one, other := open(t, postgres.Options{URL: url, Clock: ahead}), open(t, postgres.Options{URL: url, Clock: behind})
	for _, c := range []struct{ ahead, behind, want int64 }{
		{0, 0, 0},
		{second(5), 0, second(5)},
		{second(9), second(6), second(9)},
		{second(20), second(9), second(9)}, // more than ten seconds: it is believed
		{second(20), second(15), second(20)},
	} {
		ahead.Set(storetest.Noon + c.ahead)
		behind.Set(storetest.Noon + c.behind)
		if at := admitAt(t, one); at != storetest.Noon+c.ahead {
			t.Errorf("ahead by %d: instant %d", c.ahead, at-storetest.Noon)
		}
		if at := admitAt(t, other); at != storetest.Noon+c.want {
			t.Errorf("ahead by %d, behind by %d: instant %d, want %d", c.ahead, c.behind, at-storetest.Noon, c.want)
		}
	}
	balanced(t, one)
}

// slowed is a database whose clock a test sets: what statements call
// clock_timestamp is found in a schema of the test's.
func slowed(t *testing.T) (url string, set func(d time.Duration)) {
	t.Helper()
	url = server.Empty(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	run(t, conn, `CREATE SCHEMA fake; CREATE TABLE fake.ahead (by interval); INSERT INTO fake.ahead VALUES ('0');
CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
 'SELECT pg_catalog.clock_timestamp() + by FROM fake.ahead'`)
	return url + "&search_path=fake,pg_catalog", func(d time.Duration) {
		if _, err := conn.Exec(t.Context(), `UPDATE fake.ahead SET by = $1`, d); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheDatabasesClockMayStep: back by a little, time stands still; back by more
// or forth by far, it is believed and told, by either way of deciding (ENGINE 7).
func TestTheDatabasesClockMayStep(t *testing.T) {
	url, set := slowed(t)
	var steps []store.ClockStep
	book := open(t, postgres.Options{URL: url, OnClockStep: func(s store.ClockStep) { steps = append(steps, s) }})
	near := func(what string, at, want int64, told int) {
		t.Helper()
		if d := at - want; d < -second(4) || d > second(4) {
			t.Errorf("%s: instant %d, want about %d", what, at, want)
		}
		if len(steps) != told {
			t.Errorf("%s: steps %+v, want %d", what, steps, told)
		}
	}
	first := admitAt(t, book)
	near("at first", first, time.Now().UnixMicro(), 0)
	set(-6 * time.Second)
	for range 3 {
		if at := admitAt(t, book); at < first {
			t.Errorf("back by 6 s: %d is before %d", at, first)
		}
	}
	near("back by 6 s", admitAt(t, book), first, 0)
	set(-30 * time.Second)
	near("back by 30 s", admitAt(t, book), first-second(30), 1)
	set(2 * time.Hour)
	near("forth by 2 h", admitAt(t, book), first+second(7200), 2)
	set(0)
	near("back by 2 h", admitAt(t, book), first, 3)
	near("and on", admitAt(t, book), first, 3)
	if book.Guessed() == 0 {
		t.Error("no batch was guessed")
	}
	balanced(t, book)
}
