// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
)

// TestTextsOfAnyBytesAreKept: clients choose users, models and labels, and
// PostgreSQL takes neither the byte 0 nor what is not UTF-8.
func TestTextsOfAnyBytesAreKept(t *testing.T) {
	book := open(t, postgres.Options{URL: server.Database(t)})
	texts := []string{"a\x00b", "\xff\xfe", "\uf8ff6100", "a\uf8ff", "plain", ""}
	for _, s := range texts {
		op := cycle(newID(book.Now()), "acme", "k"+s, book.Now())
		op.Subjects.User, op.ClientID, op.Candidates[0].Model = s, "c"+s, "m"+s
		for range 2 {
			results, err := book.Apply(t.Context(), []*ledger.Op{op})
			if err != nil || results[0].Verdict != ledger.Admitted {
				t.Fatalf("%q: %+v, %v", s, results, err)
			}
			if _, err := book.Apply(t.Context(), []*ledger.Op{settle(results[0].Reservation, 5)}); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			next := *op
			next.ID = newID(book.Now())
			op = &next
		}
		calls, err := book.CallsByClientID(t.Context(), "acme", "c"+s, 5)
		if err != nil || len(calls) != 2 || calls[0].Key != "k"+s || calls[0].Model != "m"+s || calls[0].Subjects.User != s {
			t.Errorf("%q: calls %+v, %v", s, calls, err)
		}
	}
	books := balanced(t, book)
	for _, s := range texts {
		found := false
		for c := range books.Counters {
			found = found || c.Subject == "k"+s
		}
		if !found {
			t.Errorf("no counter has the subject %q", "k"+s)
		}
	}
}

// TestALockThatOthersHoldIsAnErrorAtOnce: nobody waits for a row that a forgotten
// session holds (RES-8).
func TestALockThatOthersHoldIsAnErrorAtOnce(t *testing.T) {
	url := server.Database(t)
	book := open(t, postgres.Options{URL: url, LockTimeout: 100 * time.Millisecond})
	admitAt(t, book)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	run(t, conn, `BEGIN; SELECT * FROM counters WHERE lim = 'budget' FOR UPDATE`)
	for range 2 {
		start := time.Now()
		_, err := book.Apply(t.Context(), []*ledger.Op{cycle(newID(book.Now()), "acme", "", book.Now())})
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) || time.Since(start) > time.Second {
			t.Errorf("after %s: %v, want ErrUnavailable", time.Since(start), err)
		}
	}
	run(t, conn, `ROLLBACK`)
	admitAt(t, book)
	if books := balanced(t, book); len(books.Reservations) != 2 {
		t.Errorf("%d open, want 2", len(books.Reservations))
	}
}

// TestRowsThatWentAwayComeBack: a zero row may go at any time, whatever a book
// remembers (ENGINE 5, 8).
func TestRowsThatWentAwayComeBack(t *testing.T) {
	url := server.Database(t)
	book, other := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for range 3 {
		for _, b := range []*postgres.Book{book, other} {
			admitAt(t, b)
			run(t, conn, `DELETE FROM counters WHERE kind = 0 OR held = 0 AND settled = 0 AND lim = 'funds'`)
		}
	}
	balanced(t, book)
}

// TestAWrongGuessIsDecidedAnew: two books take turns at the same rows; each finds
// out that the other was there (ENGINE 3).
func TestAWrongGuessIsDecidedAnew(t *testing.T) {
	url := server.Database(t)
	books := []*postgres.Book{open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})}
	seen := make(map[int64]bool)
	for i := range 40 {
		b := books[i/5%2]
		op := cycle(newID(b.Now()), "acme", "", b.Now())
		budget := &op.Checks[3]
		budget.Amount = 30 * 2_000_000
		results, err := b.Apply(t.Context(), []*ledger.Op{op})
		if err != nil {
			t.Fatal(err)
		}
		want := ledger.Admitted
		if i >= 30 {
			want = ledger.Refused
		}
		if results[0].Verdict != want {
			t.Fatalf("request %d: verdict %d, want %d", i, results[0].Verdict, want)
		}
		if want == ledger.Admitted {
			held := results[0].Readings[3].Held
			if seen[held] {
				t.Errorf("two requests saw %d held", held)
			}
			seen[held] = true
		}
	}
	if books[0].Guessed() == 0 || books[1].Guessed() == 0 {
		t.Errorf("guessed %d and %d batches", books[0].Guessed(), books[1].Guessed())
	}
	balanced(t, books[0])
}

// TestSumsSaturate: no sum overflows, however absurd a usage is (SPEC section 1).
func TestSumsSaturate(t *testing.T) {
	book := open(t, postgres.Options{URL: server.Database(t)})
	ops := []*ledger.Op{cycle(newID(book.Now()), "acme", "k", book.Now()), cycle(newID(book.Now()), "acme", "k", book.Now())}
	results, err := book.Apply(t.Context(), ops)
	if err != nil {
		t.Fatalf("admit: %v", err)
	}
	for i := range results {
		if _, err := book.Apply(t.Context(), []*ledger.Op{settle(results[i].Reservation, math.MaxInt64)}); err != nil {
			t.Fatalf("settle: %v", err)
		}
	}
	err = book.View(t.Context(), func(r store.Reader) error {
		return r.Quarters(func(q ledger.QuarterSum) error {
			if q.Spend != math.MaxInt64 {
				t.Errorf("spend %d", q.Spend)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestACallReplacesTheRefusalOfItsFirstSending: the first answer was lost, and when
// it was sent again there was room (ENGINE 6).
func TestACallReplacesTheRefusalOfItsFirstSending(t *testing.T) {
	book := open(t, postgres.Options{URL: server.Database(t)})
	for round := range 2 { // in two round trips, then in one
		op := cycle(newID(book.Now()), "acme", "", book.Now())
		small := *op
		small.Checks = slices.Clone(op.Checks)
		small.Checks[3].Amount = 1
		again := *op
		again.Again = true
		for i, o := range []*ledger.Op{&small, &again} {
			results, err := book.Apply(t.Context(), []*ledger.Op{o})
			if want := []ledger.Verdict{ledger.Refused, ledger.Admitted}[i]; err != nil || results[0].Verdict != want {
				t.Fatalf("round %d, sending %d: %+v, %v", round, i, results, err)
			}
			if err := book.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				if _, err := book.Apply(t.Context(), []*ledger.Op{settle(results[0].Reservation, 7)}); err != nil {
					t.Fatalf("settle: %v", err)
				}
			}
		}
		call, events, err := book.Call(t.Context(), "acme", op.ID)
		if err != nil || call.Outcome != "settled" || call.Spend != 7 || len(events) != 1 {
			t.Errorf("call %+v, %d events, %v", call, len(events), err)
		}
	}
}
