// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

// history is a book with 20 settled requests of 100 days ago, and the cut that
// drops them.
func history(t *testing.T) (*sqlite.Book, store.Cut) {
	t.Helper()
	c := clock.NewManual(storetest.Noon)
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Clock: c})
	for range 20 {
		if _, err := b.Apply(t.Context(), []*ledger.Op{settle(admit(t, b), 3)}); err != nil {
			t.Fatal(err)
		}
		c.Advance(20 * time.Minute)
	}
	c.Advance(100 * day)
	old := b.Now() - int64(90*day/time.Microsecond)
	return b, store.Cut{Calls: old, Events: old, Quarters: old, Notices: old}
}

func TestAStepWhoseCommitFailsIsMadeAgain(t *testing.T) {
	// RES-6: whether the commit reached the disk or not, nothing is closed twice.
	lost := errors.New("lost")
	for name, fault := range map[string]func(func() error) error{
		"before": func(func() error) error { return lost },
		"after":  func(commit func() error) error { return errors.Join(commit(), lost) },
	} {
		t.Run(name, func(t *testing.T) {
			b, cut := history(t)
			before, err := storetest.Take(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			var sum store.Pruned
			for n, done := 0, false; !done; n++ {
				if n%2 == 0 {
					b.FailCommits(fault)
				}
				var step store.Pruned
				step, done, err = b.Prune(t.Context(), cut, 7)
				if n%2 == 0 && err == nil && step != (store.Pruned{}) || err != nil && !errors.Is(err, lost) {
					t.Fatalf("step %d: %+v, %v", n, step, err)
				}
				if err == nil {
					sum.Events += step.Events
				}
				books, err := storetest.Take(t.Context(), b)
				if err == nil {
					err = books.Balance()
				}
				if err != nil || !reflect.DeepEqual(books.Counters, before.Counters) {
					t.Fatalf("step %d: %v, counters\n%+v, were\n%+v", n, err, books.Counters, before.Counters)
				}
			}
			books, err := storetest.Take(t.Context(), b)
			if err != nil || sum.Events > 20 || len(books.Events) != 0 || len(books.Calls) != 0 || len(books.Closings) == 0 {
				t.Errorf("left %+v, %v", books, err)
			}
		})
	}
}

func TestLongReportsKeepNoStepWaiting(t *testing.T) {
	// Every connection of reports is taken for as long as they please.
	b, cut := history(t)
	var look func(left int)
	look = func(left int) {
		err := b.View(t.Context(), func(store.Reader) error {
			if left > 1 {
				look(left - 1)
				return nil
			}
			for done := false; !done; {
				var err error
				if _, done, err = b.Prune(t.Context(), cut, 7); err != nil {
					return err
				}
			}
			admit(t, b)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	look(4)
}
