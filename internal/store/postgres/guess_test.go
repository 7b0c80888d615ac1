// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/postgres"
)

// crowd is how many reservations a batch of these tests makes.
const crowd = 50

// turn is a batch that settles what the last one of the same book has reserved,
// and reserves anew.
func turn(t *testing.T, b *postgres.Book, open []*ledger.Reservation) (next []*ledger.Reservation) {
	t.Helper()
	var ops []*ledger.Op
	for _, r := range open {
		ops = append(ops, settle(r, 1_000_000))
	}
	for range crowd {
		ops = append(ops, cycle(newID(b.Now()), "acme", "", b.Now()))
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
