// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

// tamper changes a closed file with plain SQL.
func tamper(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// leave makes a file with one open reservation.
func leave(t *testing.T) (path string, r *ledger.Reservation) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "weir.db")
	b := open(t, sqlite.Options{Path: path, Clock: clock.NewManual(storetest.Noon)})
	r = admit(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return path, r
}

func admit(t *testing.T, b *sqlite.Book) *ledger.Reservation {
	t.Helper()
	results, err := b.Apply(t.Context(), []*ledger.Op{cycle(newID(b.Now()), "acme", "key_1", b.Now())})
	if err != nil || results[0].Verdict != ledger.Admitted {
		t.Fatalf("admit: %+v, %v", results, err)
	}
	return results[0].Reservation
}

// ENGINE 10: held amounts that differ from what is open refuse the start, and
// the error names the counter.
func TestADamagedHeldSumRefusesTheStart(t *testing.T) {
	for _, c := range []struct{ statement, named string }{
		{`UPDATE counters SET held = held + 1 WHERE lim = 'key budget'`, "key budget"},
		{`UPDATE counters SET held = 5 WHERE lim = 'rpm'`, "rpm"},
		{`DELETE FROM counters WHERE lim = 'slots'`, "slots"},
		{`DELETE FROM reservations`, "key budget"},
	} {
		path, _ := leave(t)
		tamper(t, path, c.statement)
		_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Clock: clock.NewManual(storetest.Noon)})
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), c.named) {
			t.Errorf("%s: %v, want ErrDamaged that names %q", c.statement, err, c.named)
		}
	}
}

// STO-3: a schema that a newer program made refuses the start.
func TestANewerSchemaRefusesTheStart(t *testing.T) {
	path, _ := leave(t)
	tamper(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
	if _, err := sqlite.Open(t.Context(), sqlite.Options{Path: path}); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("open: %v, want ErrNewerSchema", err)
	}
}

func TestAFileThatIsNoDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := sqlite.Open(t.Context(), sqlite.Options{Path: path}); err == nil || errors.Is(err, store.ErrLocked) {
			t.Errorf("open: %v, want an error that is no lock", err)
		}
	}
}

// The file holds secrets: its owner alone reads it.
func TestTheFileIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	b := open(t, sqlite.Options{Path: filepath.Join(dir, "weir 1?%.db")})
	admit(t, b)
	list, err := os.ReadDir(dir)
	if err != nil || len(list) < 3 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	for _, entry := range list {
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", entry.Name(), info.Mode(), err)
		}
	}
}

// RES-1, RES-5: what a start swept is told, with the money.
func TestARecoveryTellsWhatItSwept(t *testing.T) {
	path, r := leave(t)
	var spooled bool
	b := open(t, sqlite.Options{
		Path: path, Clock: clock.NewManual(storetest.Noon + 1),
	})
	want := store.Recovery{Swept: 1, SpendNanos: r.Worst.Spend, LastAt: storetest.Noon}
	if got := b.Recovery(); got != want {
		t.Errorf("recovery %+v, want %+v", got, want)
	}
	// ENGINE 9: with its usage in the spool nothing is left to sweep.
	path, r = leave(t)
	b = open(t, sqlite.Options{
		Path: path, Clock: clock.NewManual(storetest.Noon + 1),
		BeforeSweep: func(b *sqlite.Book) error {
			spooled = true
			_, err := b.Apply(t.Context(), []*ledger.Op{settle(r, 7)})
			return err
		},
	})
	if got := b.Recovery(); !spooled || got.Swept != 0 || got.SpendNanos != 0 {
		t.Errorf("recovery %+v after the spool", got)
	}
}

// A commit that fails has an unknown outcome: the file tells before the next
// batch, whichever it was.
func TestAfterAFailedCommitTheFileTells(t *testing.T) {
	lost := errors.New("the answer is lost")
	for name, happened := range map[string]bool{"it happened": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			first := admit(t, b)
			b.FailCommits(func(commit func() error) error {
				if happened {
					return errors.Join(commit(), lost)
				}
				return lost
			})
			op := cycle(newID(b.Now()), "acme", "key_1", b.Now())
			batch := []*ledger.Op{op, settle(first, 5)}
			if _, err := b.Apply(t.Context(), batch); !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, lost) {
				t.Fatalf("apply: %v, want ErrUnknownOutcome", err)
			}
			again := *op
			again.Again = true
			results, err := b.Apply(t.Context(), []*ledger.Op{&again, settle(first, 5)})
			if err != nil || results[0].Verdict != ledger.Admitted || (results[1].Verdict == ledger.Already) != happened {
				t.Fatalf("sent again: %+v, %v", results, err)
			}
			books := take(t, b)
			if len(books.Reservations) != 1 || len(books.Events) != 1 {
				t.Errorf("%d open, %d events, want one each", len(books.Reservations), len(books.Events))
			}
		})
	}
}

func take(t *testing.T, b *sqlite.Book) *storetest.Books {
	t.Helper()
	books, err := storetest.Take(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := books.Balance(); err != nil {
		t.Fatal(err)
	}
	return books
}

// lockTables is a writer from outside.
func lockTables(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := db.ExecContext(t.Context(), `ROLLBACK`); err != nil {
			t.Fatal(err)
		}
	}
}

// A close that finds the file locked leaves what it cannot fold to the next start.
func TestACloseOfALockedFileLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	b := open(t, sqlite.Options{Path: path, Clock: clock.NewManual(storetest.Noon)})
	r := admit(t, b)
	release := lockTables(t, path)
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	release()
	b = open(t, sqlite.Options{Path: path, Clock: clock.NewManual(storetest.Noon)})
	if call, _, err := b.Call(t.Context(), "acme", r.ID); err != nil || call.Outcome != "swept" {
		t.Errorf("call %+v, %v", call, err)
	}
}

// ENGINE 3: a refusal record waits for no later batch.
func TestRefusalRecordsAreWrittenInTheBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	b := open(t, sqlite.Options{Path: path})
	b.Start()
	b.Start()
	op := cycle(newID(b.Now()), "acme", "key_1", b.Now())
	op.Checks[0].Credit = 0
	results, err := b.Apply(t.Context(), []*ledger.Op{op})
	if err != nil || results[0].Verdict != ledger.Refused {
		t.Fatalf("%+v, %v", results, err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n, ticks := 0, 0; n == 0; <-tick.C {
		if ticks++; ticks > 2000 {
			t.Fatal("the record was not written")
		}
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM calls WHERE outcome = 'refused'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	b.Stop()
	b.Stop()
}

// What waits is written at the end.
func TestCloseWritesRefusalRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	b := open(t, sqlite.Options{Path: path})
	op := cycle(newID(b.Now()), "acme", "key_1", b.Now())
	op.Checks[0].Credit = 0
	if _, err := b.Apply(t.Context(), []*ledger.Op{op}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, sqlite.Options{Path: path})
	if call, _, err := b.Call(t.Context(), "acme", op.ID); err != nil || call.Outcome != "refused" {
		t.Errorf("call %+v, %v", call, err)
	}
}

// Section 1: a settlement that would overflow a sum saturates it; it is never
// lost, in the quarters neither.
func TestAnOverflowingSettlementSaturates(t *testing.T) {
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Clock: clock.NewManual(storetest.Noon)})
	for _, r := range []*ledger.Reservation{admit(t, b), admit(t, b), admit(t, b)} {
		if results, err := b.Apply(t.Context(), []*ledger.Op{settle(r, 1<<62)}); err != nil || results[0].Verdict != ledger.Done {
			t.Fatalf("settle: %+v, %v", results, err)
		}
	}
	books, err := storetest.Take(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if q := books.Quarters[0]; q.Spend != 1<<63-1 || q.Requests != 3 {
		t.Errorf("quarter %+v, want a saturated sum", q)
	}
	saturated := 0
	for _, s := range books.Counters {
		if s.Saturated && s.Settled == 1<<63-1 {
			saturated++
		}
	}
	if saturated == 0 {
		t.Error("no counter is marked as saturated")
	}
}

// A commit that is not flushed is lost with the machine: no kill shows that, so
// the settings are held here.
func TestTheWriterFlushesEveryCommit(t *testing.T) {
	b := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
	for name, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "0", "trusted_schema": "0",
	} {
		if got, err := b.Pragma(name); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
}
