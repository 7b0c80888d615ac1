// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
)

// grown is this program's schema with one more migration, and its number.
func grown(t *testing.T, compatibleSince int64, statements string) (fs.FS, int64) {
	t.Helper()
	out := fstest.MapFS{}
	names, err := fs.Glob(postgres.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(postgres.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = &fstest.MapFile{Data: text}
	}
	next := int64(len(names) + 1)
	if compatibleSince == 0 {
		compatibleSince = next
	}
	out[fmt.Sprintf("%05d_added.sql", next)] = &fstest.MapFile{Data: fmt.Appendf(nil, "-- Compatible since: %d\n\n-- +goose Up\n%s", compatibleSince, statements)}
	return out, next
}

// TestASchemaIsReadAndNotTouched: STO-3.
func TestASchemaIsReadAndNotTouched(t *testing.T) {
	url := server.Empty(t)
	known := int64(len(every(t)))
	for range 2 {
		s, err := postgres.ReadSchema(t.Context(), postgres.Options{URL: url})
		if err != nil || s.Have != 0 || s.Want != known || int64(len(s.Pending)) != known {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	var heard []string
	before, err := postgres.Migrate(t.Context(), postgres.Options{URL: url}, 10, func(m store.Migration) { heard = append(heard, m.Name) })
	if err != nil || before.Have != 0 || int64(len(heard)) != known {
		t.Fatalf("migrate: %+v, %v, %q", before, err, heard)
	}
	if s, err := postgres.ReadSchema(t.Context(), postgres.Options{URL: url}); err != nil || s.Have != known || len(s.Pending) != 0 || s.Compatible != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if n := count(t, url, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass`); n != 1+1+1+10 {
		t.Errorf("events has %d partitions, want the default one, yesterday, today and ten days", n)
	}
}

func every(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(postgres.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func count(t *testing.T, url, query string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAMigrationByHandIsAskedForAndLeavesTheRestToALesserRole: where migrations are
// run apart, a start refuses an older schema and says what to run, and then needs
// no right but to read and write rows (STO-3).
func TestAMigrationByHandIsAskedForAndLeavesTheRestToALesserRole(t *testing.T) {
	t.Cleanup(func() { server.Admin(t, "DROP ROLE IF EXISTS serves") }) // after its database
	url := server.Empty(t)
	byHand := postgres.Options{URL: url, MigrateByHand: true}
	if b, err := postgres.Open(t.Context(), byHand); !errors.Is(err, store.ErrOlderSchema) || !strings.Contains(err.Error(), "weir migrate") {
		t.Fatalf("open: %v, %v", b, err)
	}
	if _, err := postgres.Migrate(t.Context(), byHand, 0, nil); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	run(t, conn, `CREATE ROLE serves LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO serves; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO serves;
		DROP TABLE events_default, calls_default CASCADE;
		CREATE TABLE events_default PARTITION OF events DEFAULT; CREATE TABLE calls_default PARTITION OF calls DEFAULT`)
	run(t, conn, `DO $$ DECLARE name text; BEGIN FOR name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE c.relname ~ '_[0-9]{8}$' LOOP EXECUTE 'DROP TABLE ' || name; END LOOP; END $$`)
	_ = conn.Close(t.Context())
	byHand.URL = url + "&user=serves"
	b, err := postgres.Open(t.Context(), byHand)
	if err != nil {
		t.Fatalf("open as the lesser role: %v", err)
	}
	defer func() { _ = b.Close() }()
	cycleOnce(t, b)
	if err := b.TurnDays(t.Context(), b.Now()); err != nil {
		t.Errorf("days: %v", err)
	}
	if n := count(t, url, `SELECT count(*) FROM calls_default`); n != 1 {
		t.Errorf("%d calls are in the default partition, want 1", n)
	}
}

// cycleOnce admits and settles one request.
func cycleOnce(t *testing.T, b *postgres.Book) {
	t.Helper()
	results, err := b.Apply(t.Context(), []*ledger.Op{cycle(newID(b.Now()), "acme", "k", b.Now())})
	if err == nil {
		_, err = b.Apply(t.Context(), []*ledger.Op{settle(results[0].Reservation, 5)})
	}
	if err != nil {
		t.Fatalf("a request: %v", err)
	}
}

// TestMigrationsAtOnceRunOnce: of many that migrate, some through an Open, one does
// each step.
func TestMigrationsAtOnceRunOnce(t *testing.T) {
	url := server.Empty(t)
	var ran sync.Map
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if i%2 == 0 {
				if b, err := postgres.Open(t.Context(), postgres.Options{URL: url}); err != nil || b.Close() != nil {
					t.Errorf("open: %v", err)
				}
				return
			}
			_, err := postgres.Migrate(t.Context(), postgres.Options{URL: url}, 0, func(m store.Migration) {
				if _, twice := ran.LoadOrStore(m.Version, true); twice {
					t.Errorf("migration %d ran twice", m.Version)
				}
			})
			if err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	all.Wait()
	if n := count(t, url, `SELECT count(*) FROM goose_db_version WHERE version_id > 0`); n != int64(len(every(t))) {
		t.Errorf("%d migrations are recorded, want %d", n, len(every(t)))
	}
}

// TestAMigrationLeavesNoRunningProgramBehind: one that older programs cannot work
// with waits for their end, and then none of them starts; one that started in
// between stops admitting with its next sign of life (STO-3).
func TestAMigrationLeavesNoRunningProgramBehind(t *testing.T) {
	url := server.Database(t)
	newer, version := grown(t, 0, `DROP TABLE closings;`)
	old := open(t, postgres.Options{URL: url, Process: "p_old", Name: "host"})
	old.Start()
	if err := old.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := postgres.Options{URL: url, Migrations: newer}
	for _, migrate := range []func() error{
		func() error { _, err := postgres.Migrate(t.Context(), next, 0, nil); return err },
		func() error { _, err := postgres.Open(t.Context(), next); return err },
	} {
		if err := migrate(); err == nil || !strings.Contains(err.Error(), "p_old (host") {
			t.Fatalf("with an older program that runs: %v", err)
		}
	}
	if s, err := postgres.ReadSchema(t.Context(), next); err != nil || len(s.Older) != 1 || len(s.Pending) != 1 || s.Compatible != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := old.Beat(t.Context()); err != nil {
		t.Errorf("the older program after that: %v", err)
	}
	cycleOnce(t, old)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	// It has passed its start's check, and has given no sign of life yet.
	between := open(t, postgres.Options{URL: url, Process: "p_between"})
	if _, err := postgres.Migrate(t.Context(), next, 0, nil); err != nil {
		t.Fatalf("with none that runs: %v", err)
	}
	if err := between.Beat(t.Context()); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("a sign of life afterwards: %v", err)
	}
	if _, err := between.Apply(t.Context(), []*ledger.Op{cycle(newID(between.Now()), "acme", "k", between.Now())}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("an admission afterwards: %v", err)
	}
	if err := between.Change(t.Context(), between.Now(), []store.Edit{{Object: store.Object{Kind: "model", ID: "m", Name: "m"}}}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a change afterwards: %v", err)
	}
	if b, err := postgres.Open(t.Context(), postgres.Options{URL: url}); !errors.Is(err, store.ErrNewerSchema) || !strings.Contains(err.Error(), fmt.Sprintf("know schema %d", version)) {
		t.Errorf("open with the older program: %v, %v", b, err)
	}
}

// TestAMigrationThatFailsChangesNothingAndIsRunAgain: STO-3.
func TestAMigrationThatFailsChangesNothingAndIsRunAgain(t *testing.T) {
	url := server.Database(t)
	broken, version := grown(t, 1, "CREATE TABLE extra (n bigint);\nSELECT 1/0;")
	if _, err := postgres.Migrate(t.Context(), postgres.Options{URL: url, Migrations: broken}, 0, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("migration %d, added", version)) {
		t.Fatalf("migrate: %v", err)
	}
	b := open(t, postgres.Options{URL: url})
	cycleOnce(t, b)
	sound, _ := grown(t, 1, "CREATE TABLE extra (n bigint);")
	if _, err := postgres.Migrate(t.Context(), postgres.Options{URL: url, Migrations: sound}, 0, nil); err != nil {
		t.Errorf("migrate: %v", err)
	}
	cycleOnce(t, b)
}

// TestAMigrationThatHasToWaitLetsOthersBy: whoever reads a table for long keeps a
// migration of it waiting, and that keeps requests waiting for moments alone.
func TestAMigrationThatHasToWaitLetsOthersBy(t *testing.T) {
	url := server.Database(t)
	b := open(t, postgres.Options{URL: url, BatchTimeout: patience, LockTimeout: patience})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	run(t, conn, "BEGIN; SELECT count(*) FROM counters")
	wider, version := grown(t, 1, "ALTER TABLE counters ADD COLUMN added text;")
	migrated := make(chan error, 1)
	before := strings.Count(server.Log(t), "canceling statement due to lock timeout")
	go func() {
		_, err := postgres.Migrate(t.Context(), postgres.Options{URL: url, Migrations: wider}, 0, nil)
		migrated <- err
	}()
	for strings.Count(server.Log(t), "canceling statement due to lock timeout") < before+1 {
		cycleOnce(t, b)
	}
	run(t, conn, "COMMIT")
	if err := <-migrated; err != nil {
		t.Errorf("migrate: %v", err)
	}
	cycleOnce(t, b)
	if s, err := postgres.ReadSchema(t.Context(), postgres.Options{URL: url, Migrations: wider}); err != nil || s.Have != version {
		t.Errorf("%+v, %v", s, err)
	}
}
