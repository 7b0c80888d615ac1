// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

// recordsAt is where a segment's records begin.
const recordsAt = 8 << 10

// killed is a store of three batches, one of them folded, as a kill leaves it.
func killed(t *testing.T) (place string) {
	t.Helper()
	from, place := t.TempDir(), t.TempDir()
	b := open(t, sqlite.Options{Path: filepath.Join(from, fileName), Clock: clock.NewManual(storetest.Noon)}.Hurry())
	admit(t, b)
	if err := b.Fold(t.Context()); err != nil {
		t.Fatal(err)
	}
	admit(t, b)
	admit(t, b)
	images(t, b, from, place, storeFiles)
	return place
}

func images(t *testing.T, b *sqlite.Book, from, into string, names []string) {
	t.Helper()
	var err error
	b.Freeze(func() { err = copyFiles(from, into, names) })
	if err != nil {
		t.Fatal(err)
	}
}

// rewrite changes a file's bytes.
func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(file), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// records are where those of a segment begin, and the end of the last.
func records(file []byte) (at []int) {
	for i := recordsAt; ; {
		n := bytes.Index(file[i:], []byte("wSpR"))
		if n < 0 {
			return append(at, len(bytes.TrimRight(file, "\x00")))
		}
		at = append(at, i+n)
		i += n + 4
	}
}

func refused(t *testing.T, place string) error {
	t.Helper()
	b, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(place, fileName), Clock: clock.NewManual(storetest.Noon)})
	if err == nil {
		_ = b.Close()
	}
	return err
}

// RES-1: what says that it was acknowledged and cannot be read refuses the start,
// and so does what is not this store's.
func TestADamagedJournalRefusesTheStart(t *testing.T) {
	first := func(place string) string { return filepath.Join(place, journalFiles[0]) }
	for name, damage := range map[string]func(place string){
		"a bit of the first record": func(place string) {
			rewrite(t, first(place), func(f []byte) []byte { f[records(f)[0]+40] ^= 1; return f })
		},
		"the second record": func(place string) {
			rewrite(t, first(place), func(f []byte) []byte {
				at := records(f)
				return slices.Delete(f, at[1], at[2])
			})
		},
		"the second record, by zeros": func(place string) {
			rewrite(t, first(place), func(f []byte) []byte {
				at := records(f)
				clear(f[at[1]:at[2]])
				return f
			})
		},
		"every record": func(place string) {
			rewrite(t, first(place), func(f []byte) []byte { return f[:recordsAt] })
		},
		"both headers": func(place string) {
			rewrite(t, first(place), func(f []byte) []byte { clear(f[:recordsAt]); return f })
		},
		"the whole content":  func(place string) { rewrite(t, first(place), func([]byte) []byte { return nil }) },
		"the first file":     func(place string) { remove(t, first(place)) },
		"the second file":    func(place string) { remove(t, filepath.Join(place, journalFiles[1])) },
		"all of its tables":  func(place string) { remove(t, filepath.Join(place, fileName), filepath.Join(place, fileName+"-wal")) },
		"it is another's":    func(place string) { copies(t, killed(t), place, journalFiles) },
		"its tables are old": func(place string) { backedUp(t, place) },
	} {
		place := killed(t)
		damage(place)
		if err := refused(t, place); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "journal") {
			t.Errorf("%s: %v, want ErrDamaged that names the journal", name, err)
		}
	}
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func copies(t *testing.T, from, into string, names []string) {
	t.Helper()
	if err := copyFiles(from, into, names); err != nil {
		t.Fatal(err)
	}
}

// backedUp puts a copy in the place of the tables, and goes on with the journal.
func backedUp(t *testing.T, place string) {
	t.Helper()
	remove(t, filepath.Join(place, fileName), filepath.Join(place, fileName+"-wal"))
	from := t.TempDir()
	b := open(t, sqlite.Options{Path: filepath.Join(from, fileName), Clock: clock.NewManual(storetest.Noon)})
	admit(t, b)
	if _, err := b.Backup(t.Context(), filepath.Join(place, fileName)); err != nil {
		t.Fatal(err)
	}
	admit(t, b)
	images(t, b, from, place, journalFiles)
}

// A header has two places: a crash while one is written spoils nothing.
func TestOneHeaderOfTheJournalIsEnough(t *testing.T) {
	for _, file := range journalFiles {
		for _, at := range []int{0, recordsAt / 2} {
			place := killed(t)
			rewrite(t, filepath.Join(place, file), func(f []byte) []byte { clear(f[at : at+20]); return f })
			if got := opened(t, place); len(got.Reservations) != 3 {
				t.Errorf("%s without the header at %d: %d open", file, at, len(got.Reservations))
			}
		}
	}
}

// RES-1: a record that was cut short was never answered; all before it was.
func TestATornBatchIsNoBatch(t *testing.T) {
	whole := killed(t)
	var at []int
	rewrite(t, filepath.Join(whole, journalFiles[0]), func(f []byte) []byte { at = records(f); return f })
	begin, end := at[len(at)-2], at[len(at)-1]
	for cut := begin; cut < end; cut += 1 + (end-begin)/20 {
		for _, rest := range [][]byte{nil, make([]byte, 300), bytes.Repeat([]byte("wSpR"), 80)} {
			place := t.TempDir()
			copies(t, whole, place, storeFiles)
			rewrite(t, filepath.Join(place, journalFiles[0]), func(f []byte) []byte { return append(slices.Clone(f[:cut]), rest...) })
			if got := opened(t, place); len(got.Reservations) != 2 {
				t.Fatalf("cut at %d of %d: %d open, want the two of before", cut-begin, end-begin, len(got.Reservations))
			}
		}
	}
}

// RES-1: a crash of the machine may lose the last fold with what the journal
// still has, and a fold that was told of is there when its rows are written over.
func TestSegmentsTakeTurnsOnlyBehindFolds(t *testing.T) {
	place := t.TempDir()
	b := open(t, sqlite.Options{Path: filepath.Join(place, fileName), Clock: clock.NewManual(storetest.Noon)}.Brief())
	tables := t.TempDir() // as the last fold left them
	admit(t, b)
	images(t, b, place, tables, tableFiles)
	turns := b.Turns()
	for n := range 24 {
		serve(t, b, 2)
		crashed := t.TempDir()
		copies(t, tables, crashed, tableFiles)
		images(t, b, place, crashed, journalFiles)
		want := left(t, place, b)
		if got := opened(t, crashed); !reflect.DeepEqual(got, want) {
			t.Fatalf("after %d, without what the tables got since, the books are\n%+v, want\n%+v", n, got, want)
		}
		if n%3 > 0 {
			before := t.TempDir()
			copies(t, tables, before, tableFiles)
			if err := b.Fold(t.Context()); err != nil {
				t.Fatal(err)
			}
			images(t, b, place, before, journalFiles)
			if got := opened(t, before); !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d, without its fold, the books are\n%+v, want\n%+v", n, got, want)
			}
			for n%4 == 0 && b.Unfolded() > 0 {
				if err := b.Fold(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			images(t, b, place, tables, tableFiles)
		}
	}
	if turns = b.Turns() - turns; turns < 3 {
		t.Errorf("the segments took %d turns", turns)
	}
}

// A clean stop leaves one file, and what is only read needs no journal.
func TestOneFileIsLeftAtRest(t *testing.T) {
	place := t.TempDir()
	options := sqlite.Options{Path: filepath.Join(place, fileName), Clock: clock.NewManual(storetest.Noon)}
	names := func() (list []string) {
		entries, err := os.ReadDir(place)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	b := open(t, options)
	serve(t, b, 3)
	want := take(t, b)
	journal := t.TempDir()
	images(t, b, place, journal, journalFiles)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, []string{fileName, fileName + ".lock"}) {
		t.Errorf("after a stop there are %v", got)
	}
	// A crash before the files were removed; one while others were made.
	copies(t, journal, place, journalFiles)
	rewrite(t, filepath.Join(place, fileName+".lock"), func([]byte) []byte { return nil })
	if err := os.WriteFile(filepath.Join(place, journalFiles[0]+".part"), []byte("we"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := opened(t, place); !reflect.DeepEqual(got, want) {
		t.Errorf("the books are\n%+v, want\n%+v", got, want)
	}
	if got := names(); !slices.Equal(got, []string{fileName, fileName + ".lock"}) {
		t.Errorf("after a start there are %v", got)
	}
}

// A journal that was begun and has no batch is nobody's.
func TestAJournalWithoutABatchIsNobodys(t *testing.T) {
	place := t.TempDir()
	path := filepath.Join(place, fileName)
	b := open(t, sqlite.Options{Path: path, Clock: clock.NewManual(storetest.Noon)})
	r := admit(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	copies(t, killed(t), place, journalFiles)
	for _, file := range journalFiles {
		rewrite(t, filepath.Join(place, file), func(f []byte) []byte { return f[:recordsAt] })
	}
	if got := opened(t, place); len(got.Reservations) != 1 || got.Reservations[0].ID != r.ID {
		t.Errorf("open %+v", got.Reservations)
	}
}

// RES-8: while the tables cannot be written, batches are refused as soon as a fold
// has failed, and nothing that was answered before is lost.
func TestAForeignWriterStopsBatchesAtTheNextFold(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileName)
	b := open(t, sqlite.Options{Path: path, Clock: clock.NewManual(storetest.Noon)})
	r := admit(t, b)
	release := lockTables(t, path)
	if results, err := b.Apply(t.Context(), []*ledger.Op{settle(r, 1)}); err != nil || results[0].Verdict != ledger.Done {
		t.Errorf("before the fold: %+v, %v", results, err)
	}
	if err := b.Fold(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("fold: %v, want ErrUnavailable", err)
	}
	op := cycle(newID(b.Now()), "acme", "key_1", b.Now())
	for range 2 {
		if _, err := b.Apply(t.Context(), []*ledger.Op{op}); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("apply: %v, want ErrUnavailable", err)
		}
	}
	release()
	if results, err := b.Apply(t.Context(), []*ledger.Op{op}); err != nil || results[0].Verdict != ledger.Admitted {
		t.Errorf("after it: %+v, %v", results, err)
	}
	if books := take(t, b); len(books.Events) != 1 || len(books.Reservations) != 1 {
		t.Errorf("%d events, %d open, want one each", len(books.Events), len(books.Reservations))
	}
}
