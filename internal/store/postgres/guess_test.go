// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/postgres"
)

// crowd is how many reservations a batch of these tests makes.
const crowd = 50

// turn is a batch that settles what the last one of the same book has reserved,
// and reserves anew, in one workspace or several.
func turn(t *testing.T, b *postgres.Book, open []*ledger.Reservation, workspaces ...string) (next []*ledger.Reservation) {
	t.Helper()
	var ops []*ledger.Op
	for _, r := range open {
		ops = append(ops, settle(r, 1_000_000))
	}
	for i := range crowd {
		workspace := "acme"
		if n := len(workspaces); n > 0 {
			workspace = workspaces[i%n]
		}
		ops = append(ops, cycle(newID(b.Now()), workspace, "", b.Now()))
	}
	results, err := b.Apply(t.Context(), ops)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	for i, r := range results {
		want := ledger.Admitted
		if i < len(open) {
			want = ledger.Done
		}
		if r.Verdict != want {
			t.Fatalf("operation %d: verdict %d, want %d", i, r.Verdict, want)
		}
		if want == ledger.Admitted {
			next = append(next, r.Reservation)
		}
	}
	return next
}

// TestALargeBatchTakesOneRoundTrip: whoever is alone with his counters guesses
// right, however many operations there are (ENGINE 3).
func TestALargeBatchTakesOneRoundTrip(t *testing.T) {
	for _, pooling := range []bool{false, true} {
		book := open(t, postgres.Options{URL: server.Database(t), Pooling: pooling})
		var waiting []*ledger.Reservation
		for range 5 {
			waiting = turn(t, book, waiting)
		}
		if n := book.Guessed(); n != 4 {
			t.Errorf("pooling %t: %d of 5 batches took one round trip, want all but the first", pooling, n)
		}
		balanced(t, book)
	}
}

// TestALargeWrongGuessIsDecidedAnew: two books with large batches take turns at the
// same counters, and one of them settles what the other has open. Each request is
// booked once (ENGINE 3, 6).
func TestALargeWrongGuessIsDecidedAnew(t *testing.T) {
	url := server.Database(t)
	books := []*postgres.Book{open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})}
	waiting := make([][]*ledger.Reservation, 2)
	for i := range 24 {
		who := i / 4 % 2
		waiting[who] = turn(t, books[who], waiting[who])
		if i%8 == 5 { // they change places: what is settled next is not remembered
			waiting[0], waiting[1] = waiting[1], waiting[0]
		}
	}
	for i, b := range books {
		if b.Guessed() == 0 {
			t.Errorf("book %d has guessed nothing", i)
		}
	}
	if n := len(balanced(t, books[0]).Events); n != 22*crowd {
		t.Errorf("%d events, want one for each of %d settlements", n, 22*crowd)
	}
}

// TestABatchOfManyWorkspacesTakesOneRoundTrip, and is decided anew where another
// book has changed the counters of one of them (ENGINE 3).
func TestABatchOfManyWorkspacesTakesOneRoundTrip(t *testing.T) {
	url := server.Database(t)
	book, other := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint("tenant", i))
	}
	var waiting []*ledger.Reservation
	for range 5 {
		waiting = turn(t, book, waiting, many...)
	}
	if n := book.Guessed(); n != 4 {
		t.Errorf("%d of 5 batches took one round trip, want all but the first", n)
	}
	turn(t, other, turn(t, other, nil, "tenant7"), "tenant7")
	waiting = turn(t, book, waiting, many...)
	if n := book.Guessed(); n != 4 {
		t.Errorf("%d batches took one round trip, want 4: the last one's counters had changed", n)
	}
	turn(t, book, waiting, many...)
	if n := len(balanced(t, book).Events); n != 7*crowd {
		t.Errorf("%d events, want %d", n, 7*crowd)
	}
}

// TestAGuessIsComparedWithWhatItWaitedFor: somebody has the counters when the guess
// comes to them, another book's batch may stand in the queue before it. What that has
// changed is seen; where nothing has changed the guess is right.
func TestAGuessIsComparedWithWhatItWaitedFor(t *testing.T) {
	for _, overtaken := range []bool{false, true} {
		for _, key := range []string{"", "k"} { // few counters, and all those of three keys
			t.Run(fmt.Sprint("overtaken=", overtaken, "/key=", key), func(t *testing.T) {
				url := server.Database(t)
				options := postgres.Options{URL: url, LockTimeout: patience, BatchTimeout: patience}
				book, other := open(t, options), open(t, options)
				ops := func() (list []*ledger.Op) {
					for i := range 3 {
						name := key
						if key != "" {
							name += fmt.Sprint(i)
						}
						list = append(list, cycle(newID(book.Now()), "acme", name, book.Now()))
					}
					return list
				}
				admitted, err := book.Apply(t.Context(), append(ops(), ops()...))
				if err != nil {
					t.Fatal(err)
				}
				before, done := book.Guessed(), make(chan error, 2)
				tx, watch := connect(t, url), connect(t, url)
				run(t, tx, `BEGIN`)
				run(t, tx, `SELECT * FROM counters FOR UPDATE`)
				apply := func(b *postgres.Book, r *ledger.Reservation, blocked int) {
					go func() {
						_, err := b.Apply(t.Context(), append(ops(), settle(r, 1_000_000)))
						done <- err
					}()
					awaitBlocked(t, watch, blocked)
				}
				want, batches := int64(1), 1
				if overtaken {
					apply(other, admitted[1].Reservation, batches)
					want, batches = 0, 2
				}
				apply(book, admitted[0].Reservation, batches)
				run(t, tx, `ROLLBACK`)
				for range batches {
					if err := <-done; err != nil {
						t.Fatalf("apply: %v", err)
					}
				}
				if n := book.Guessed() - before; n != want {
					t.Errorf("%d batches took one round trip, want %d", n, want)
				}
				if n := len(balanced(t, book).Events); n != batches {
					t.Errorf("%d events, want %d", n, batches)
				}
			})
		}
	}
}

// awaitBlocked returns when so many wait for others' locks.
func awaitBlocked(t *testing.T, conn *pgx.Conn, want int) {
	t.Helper()
	for waiting := 0; waiting < want; {
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity, pg_sleep(0.01)
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
}
