// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

// serve admits and settles one request for each key, and leaves one more open.
func serve(t *testing.T, b *sqlite.Book, keys int) {
	t.Helper()
	for n := range keys {
		r := admit(t, b)
		if results, err := b.Apply(t.Context(), []*ledger.Op{settle(r, int64(n))}); err != nil || results[0].Verdict != ledger.Done {
			t.Fatalf("settle: %+v, %v", results, err)
		}
		admit(t, b)
	}
}

// left is what a kill at this instant would leave, opened as far as its sweep.
func left(t *testing.T, place string, b *sqlite.Book) *storetest.Books {
	t.Helper()
	into := t.TempDir()
	var err error
	b.Freeze(func() { err = copyStore(place, into) })
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, into)
}

func opened(t *testing.T, place string) (books *storetest.Books) {
	t.Helper()
	enough := errors.New("enough")
	_, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: filepath.Join(place, fileName), Clock: clock.NewManual(storetest.Noon),
		BeforeSweep: func(b *sqlite.Book) (err error) {
			if n := b.Unfolded(); n != 0 {
				t.Errorf("%d rows of the journal are left after the start", n)
			}
			books, err = storetest.Take(t.Context(), b)
			return errors.Join(enough, err)
		},
	})
	if !errors.Is(err, enough) || books == nil {
		t.Fatalf("open: %v", err)
	}
	return books
}

// RES-1: the books are the same before, between and after the folds, and after a
// kill at each of these steps.
func TestFoldsChangeNothing(t *testing.T) {
	place := t.TempDir()
	options := sqlite.Options{Path: filepath.Join(place, fileName), Clock: clock.NewManual(storetest.Noon)}.Hurry()
	b := open(t, options)
	serve(t, b, 10)
	want := left(t, place, b)
	if err := want.Balance(); err != nil || len(want.Events) != 10 || len(want.Reservations) != 10 {
		t.Fatalf("%d events, %d open, %v", len(want.Events), len(want.Reservations), err)
	}
	steps := 0
	for before := b.Unfolded(); before > 0; before = b.Unfolded() {
		if err := b.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := b.Unfolded(); now >= before {
			t.Fatalf("%d rows before a fold, %d after it", before, now)
		}
		if mode, err := b.Pragma("synchronous"); err != nil || mode != "2" {
			t.Fatalf("after a fold synchronous is %q, %v", mode, err)
		}
		if got := left(t, place, b); !reflect.DeepEqual(got, want) {
			t.Fatalf("after %d folds the books are\n%+v, want\n%+v", steps+1, got, want)
		}
		steps++
	}
	if got := take(t, b); !reflect.DeepEqual(got, want) || steps < 5 {
		t.Errorf("after %d folds the running book has\n%+v, want\n%+v", steps, got, want)
	}
}

// A fold happens whole or not at all, whatever becomes of its commit; the batch
// after it works on.
func TestACrashInsideAFoldLosesNothing(t *testing.T) {
	lost := errors.New("the answer is lost")
	for name, happens := range map[string]bool{"it happened": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			place := t.TempDir()
			b := open(t, sqlite.Options{Path: filepath.Join(place, fileName), Clock: clock.NewManual(storetest.Noon)}.Hurry())
			serve(t, b, 3)
			want := left(t, place, b)
			into := [2]string{t.TempDir(), t.TempDir()}
			b.FailCommits(func(commit func() error) error {
				err := copyStore(place, into[0])
				if happens {
					err = errors.Join(err, commit())
				}
				return errors.Join(err, copyStore(place, into[1]), lost)
			})
			if err := b.Fold(t.Context()); !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, lost) {
				t.Fatalf("fold: %v, want ErrUnknownOutcome", err)
			}
			for i, place := range into {
				if got := opened(t, place); !reflect.DeepEqual(got, want) {
					t.Errorf("copy %d has\n%+v, want\n%+v", i, got, want)
				}
			}
			if got := take(t, b); !reflect.DeepEqual(got, want) {
				t.Errorf("the running book has\n%+v, want\n%+v", got, want)
			}
			serve(t, b, 1)
			if books := take(t, b); len(books.Events) != len(want.Events)+1 {
				t.Errorf("%d events after one more", len(books.Events))
			}
		})
	}
}

// A batch that fails to be stored leaves no trace in what is folded later.
func TestALostBatchIsNeverFolded(t *testing.T) {
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), fileName), Clock: clock.NewManual(storetest.Noon)})
	serve(t, b, 2)
	b.FailCommits(func(func() error) error { return errors.New("no room") })
	op := cycle(newID(b.Now()), "acme", "key_1", b.Now())
	if _, err := b.Apply(t.Context(), []*ledger.Op{op}); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("apply: %v", err)
	}
	if books := take(t, b); len(books.Reservations) != 2 || len(books.Events) != 2 {
		t.Errorf("%d open and %d events, want two each", len(books.Reservations), len(books.Events))
	}
	if results, err := b.Apply(t.Context(), []*ledger.Op{op}); err != nil || results[0].Verdict != ledger.Admitted {
		t.Errorf("sent again: %+v, %v", results, err)
	}
}

// The journal is bounded without anything that runs in the background.
func TestTheJournalIsBounded(t *testing.T) {
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), fileName)}.Hurry())
	for range 50 {
		serve(t, b, 1)
		if n := b.Unfolded(); n > 40 {
			t.Fatalf("the journal has %d rows", n)
		}
	}
	take(t, b)
}

// STO-3: a row of the table that was the journal once, and that cannot be read or
// is missing, refuses the start: what it says was acknowledged.
func TestADamagedTableOfTheJournalRefusesTheStart(t *testing.T) {
	for _, statement := range []string{
		`UPDATE journal SET body = substr(body, 1, length(body) - 1) WHERE seq = (SELECT max(seq) FROM journal)`,
		`UPDATE journal SET body = x'7f' WHERE seq = (SELECT min(seq) + 1 FROM journal)`,
		`UPDATE journal SET body = x'' WHERE seq = (SELECT min(seq) FROM journal)`,
		`DELETE FROM journal WHERE seq = (SELECT min(seq) + 1 FROM journal)`,
	} {
		place := t.TempDir()
		path := filepath.Join(place, fileName)
		unpack(t, filepath.Join(storesFolder, "00001.db.gz"), path)
		tamper(t, path, statement)
		if err := refused(t, place); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", statement, err)
		}
	}
}

// FuzzJournalRow: no bytes make the reader of rows panic or take for itself more
// than they are.
func FuzzJournalRow(f *testing.F) {
	b, err := sqlite.Open(f.Context(), sqlite.Options{Path: filepath.Join(f.TempDir(), fileName)})
	if err != nil {
		f.Fatal(err)
	}
	results, err := b.Apply(f.Context(), []*ledger.Op{cycle(newID(b.Now()), "acme", "key_1", b.Now())})
	if err == nil {
		_, err = b.Apply(f.Context(), []*ledger.Op{settle(results[0].Reservation, 7)})
	}
	if err != nil {
		f.Fatal(err)
	}
	rows, err := b.JournalRows()
	if err != nil || len(rows) != 2 {
		f.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		f.Add(row)
	}
	if err := b.Close(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		if n, err := sqlite.ReadJournalRow(row); err == nil && n > len(row) {
			t.Errorf("%d rows of tables out of %d bytes", n, len(row))
		}
	})
}

// A long request outlives many folds, and is known by its id all the while.
func TestAnOpenReservationOutlivesFolds(t *testing.T) {
	place := t.TempDir()
	b := open(t, sqlite.Options{Path: filepath.Join(place, fileName), CounterCache: 2}.Hurry())
	r := admit(t, b)
	for n := range 5 {
		serve(t, b, 3)
		renew := &ledger.Op{Verb: ledger.Renew, Workspace: r.Workspace, Reservation: r, HoldMicros: int64(n+1) * 1e9}
		if results, err := b.Apply(t.Context(), []*ledger.Op{renew}); err != nil || results[0].Verdict != ledger.Done {
			t.Fatalf("renew: %+v, %v", results, err)
		}
		for b.Unfolded() > 0 {
			if err := b.Fold(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := b.Apply(t.Context(), []*ledger.Op{cycle(r.ID, "acme", "key_1", b.Now())}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("its id again: %v, want ErrConflict", err)
	}
	if results, err := b.Apply(t.Context(), []*ledger.Op{settle(r, 5), settle(r, 5)}); err != nil ||
		results[0].Verdict != ledger.Done || results[1].Verdict != ledger.Already {
		t.Errorf("settled twice: %+v, %v", results, err)
	}
	call, events, err := b.Call(t.Context(), "acme", r.ID)
	if err != nil || call.Spend != 5 || len(events) != 1 || fmt.Sprint(call.Holds) != fmt.Sprint(r.Holds) {
		t.Errorf("call %+v, %d events, %v", call, len(events), err)
	}
}
