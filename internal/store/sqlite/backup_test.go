// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

// inspect takes the books of a file that nobody has open.
func inspect(t *testing.T, path string) (books *storetest.Books, err error) {
	t.Helper()
	err = sqlite.Inspect(t.Context(), path, clock.NewManual(storetest.Noon), func(b *sqlite.Book) (err error) {
		books, err = storetest.Take(t.Context(), b)
		return err
	})
	return books, err
}

func TestABackupHasWhatWasAnsweredTheJournalToo(t *testing.T) {
	// Nothing is folded here: no background work was started.
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Clock: clock.NewManual(storetest.Noon)})
	for range 5 {
		r := admit(t, b)
		if _, err := b.Apply(t.Context(), []*ledger.Op{settle(r, 7)}); err != nil {
			t.Fatal(err)
		}
	}
	admit(t, b)
	if b.Unfolded() == 0 {
		t.Fatal("the journal is empty")
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	size, err := b.Backup(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != size {
		t.Errorf("%v, %v, told %d bytes", info, err, size)
	}
	have, err := inspect(t, path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := storetest.Take(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(have, want) || len(have.Reservations) != 1 || len(have.Calls) != 5 {
		t.Errorf("the copy has\n%+v, the store\n%+v", have, want)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("beside the copy: %v, %v", left, err)
	}
	again, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v, want ErrExist", err)
	}
	if now, err := os.ReadFile(path); err != nil || !reflect.DeepEqual(now, again) {
		t.Errorf("the file was changed, %v", err)
	}
}

func TestABackupUnderLoadIsOfOneInstant(t *testing.T) {
	// RES-7: each copy balances, whatever ran meanwhile.
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")}.Hurry())
	b.Start()
	stop := make(chan struct{})
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				results, err := b.Apply(context.Background(), []*ledger.Op{cycle(newID(b.Now()), "acme", fmt.Sprint("key", i), b.Now())})
				if err == nil {
					_, err = b.Apply(context.Background(), []*ledger.Op{settle(results[0].Reservation, 5)})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	calls := 0
	for n := range 5 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(n))
		if _, err := b.Backup(t.Context(), path); err != nil {
			t.Error(err)
			break
		}
		books, err := inspect(t, path)
		if err == nil {
			err = books.Balance()
		}
		if err != nil || len(books.Calls) < calls {
			t.Errorf("copy %d: %v", n, err)
			break
		}
		calls = len(books.Calls)
	}
	close(stop)
	work.Wait()
	if calls == 0 {
		t.Error("no copy has a call")
	}
}

func TestABackupThatFailsLeavesNothing(t *testing.T) {
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
	admit(t, b)
	folder := t.TempDir()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Backup(gone, filepath.Join(folder, "a")); err == nil {
		t.Error("a caller who has gone got a copy")
	}
	if _, err := b.Backup(t.Context(), filepath.Join(folder, "no", "folder")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Backup(t.Context(), filepath.Join(folder, "b")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("of a closed store: %v", err)
	}
}

func TestWhatIsNoWholeStoreIsNotInspected(t *testing.T) {
	whole, _ := leave(t)
	used := filepath.Join(t.TempDir(), "used.db")
	b := open(t, sqlite.Options{Path: used})
	admit(t, b)
	for name, text := range map[string]string{"empty": "", "text": "not a database, but long enough to be looked at by whoever opens it"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := inspect(t, path); err == nil {
			t.Errorf("%s: balanced", name)
		}
	}
	if _, err := inspect(t, filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := inspect(t, used); !errors.Is(err, store.ErrLocked) {
		t.Errorf("in use: %v, want ErrLocked", err)
	}
	before, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if books, err := inspect(t, whole); err != nil || len(books.Reservations) != 1 {
		t.Errorf("a closed store: %v", err)
	}
	if after, err := os.ReadFile(whole); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("it was changed by being looked at: %v", err)
	}
	tamper(t, whole, `UPDATE counters SET held = held + 1 WHERE lim = 'key budget'`)
	if _, err := inspect(t, whole); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("damaged: %v, want ErrDamaged", err)
	}
}
