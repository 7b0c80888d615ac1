// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/store"
)

func backup(file string) admin.BackupRequest {
	return admin.BackupRequest{Body: admin.BackupFields{File: file}}
}

func TestABackupGoesWhereThereIsNothing(t *testing.T) {
	// ADM-2: it holds every secret that there is, so it takes the highest role.
	overEvery(t, func(t *testing.T, w *world) {
		file := filepath.Join(t.TempDir(), "copy.db")
		for _, role := range []admin.Role{admin.Viewer, admin.Editor, admin.Admin} {
			_, err := w.Backup(t.Context(), admin.Actor{Name: "ada", Role: role}, backup(file))
			refused(t, err, fault.Forbidden)
		}
		for _, name := range []string{"", "copy.db", "../copy.db"} {
			_, err := w.Backup(t.Context(), system, backup(name))
			if f := refused(t, err, fault.InvalidRequest); f.Param != "file" {
				t.Errorf("%q: the field is %q", name, f.Param)
			}
		}
		out, err := w.Backup(t.Context(), system, backup(file))
		if _, ok := w.book.(store.Copyable); !ok {
			refused(t, err, fault.InvalidRequest)
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a store that keeps nothing made a file: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Size() != out.Bytes || out.File != file || out.At == "" {
			t.Errorf("told %+v, the file is %v, %v", out, info, err)
		}
		_, err = w.Backup(t.Context(), system, backup(file))
		refused(t, err, fault.Conflict)
	})
}

func TestTheLongestWindowIsThatOfAnyBudgetInForce(t *testing.T) {
	// RES-6: of keys and plans too, and no longer than the budget is there.
	const day = int64(24 * time.Hour / time.Microsecond)
	overEvery(t, func(t *testing.T, w *world) {
		want := func(days int64) {
			t.Helper()
			if got, err := w.LongestWindow(t.Context()); err != nil || got != days*day {
				t.Errorf("the longest window is %d days, %v, want %d", got/day, err, days)
			}
		}
		want(0)
		w.budget(`{"name": "month", "scope": "org", "metric": "spend", "limit": 1000000, "period": "month", "enforcement": "hard"}`)
		want(0)
		w.member()
		w.budget(`{"name": "a", "scope": "key", "subject": "ci", "metric": "spend", "limit": 1000000, "window": "30d", "enforcement": "hard"}`)
		want(30)
		long := w.budget(`{"name": "b", "scope": "plan", "subject": "intern", "metric": "tokens", "limit": 1000, "window": "366d", "enforcement": "hard"}`)
		want(366)
		if _, err := w.BudgetDelete(t.Context(), system, admin.BudgetRequest{ID: long.ID}); err != nil {
			t.Fatal(err)
		}
		want(30)
	})
}
