// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/simulator"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
)

// newerSchema is this program's schema with one more migration.
func newerSchema(t *testing.T, additive bool, statements string) fs.FS {
	t.Helper()
	names, err := fs.Glob(postgres.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for _, name := range names {
		text, err := fs.ReadFile(postgres.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = &fstest.MapFile{Data: text}
	}
	since, next := 1, len(names)+1
	if !additive {
		since = next
	}
	out[fmt.Sprintf("%05d_added.sql", next)] = &fstest.MapFile{Data: fmt.Appendf(nil, "-- Compatible since: %d\n\n-- +goose Up\n%s", since, statements)}
	return out
}

// additive widens every table that requests touch, in the order of their locks.
const additive = `ALTER TABLE reservations ADD COLUMN added text NOT NULL DEFAULT '';
ALTER TABLE counters ADD COLUMN added text NOT NULL DEFAULT 'x';
ALTER TABLE events ADD COLUMN added bigint NOT NULL DEFAULT 7;
ALTER TABLE calls ADD COLUMN added bigint;
ALTER TABLE key_quarters ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE generations ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN added text;
ALTER TABLE replicas ADD COLUMN added text;
ALTER TABLE outbox ADD COLUMN added text;
ALTER TABLE audit ADD COLUMN added text;
CREATE INDEX counters_added ON counters (workspace, added);
CREATE TABLE added (workspace text PRIMARY KEY);
`

// other starts one more program on the store of w, of another version.
func (w *world) other(schema fs.FS) (*world, error) {
	other := *w
	other.state, other.server, other.peers, other.turn = w.t.TempDir(), nil, nil, &atomic.Int64{}
	other.change = func(o *app.Options) { o.AsOfSchema(schema) }
	server, err := app.Start(context.Background(), other.options())
	if err != nil {
		return nil, err
	}
	other.server = server
	w.t.Cleanup(other.stop)
	return &other, nil
}

// TestTwoVersionsServeTogetherOverAMigration: STO-3, ORD-2. A program goes on while
// a newer one adds to its tables: both count together, exactly, nothing is lost,
// and the older one can be started again.
func TestTwoVersionsServeTogetherOverAMigration(t *testing.T) {
	const limit = 300
	text := replicaModel + "keys: [{name: k, secret: " + replicaKey + "}]\n" +
		fmt.Sprintf("rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 3600, limit: %d}]\n", limit)
	older := newWorldOn(t, database.Database(t), start, text, nil)
	var answers []answer
	var volleys sync.WaitGroup
	volleys.Go(func() { answers = volley(limit*2/3, 8, func(int) answer { return older.chat(replicaKey, "m") }) })
	older.await("requests under way", func(sum simulator.Totals) bool { return sum.Requests >= 20 })
	newer, err := older.other(newerSchema(t, true, additive))
	if err != nil {
		t.Fatalf("start the newer program: %v", err)
	}
	volleys.Wait()
	older.peers = append(older.peers, newer)
	answers = append(answers, volley(limit, 8, func(int) answer { return older.chat(replicaKey, "m") })...)
	older.peers = nil
	older.restart()
	answers = append(answers, older.chat(replicaKey, "m"), newer.chat(replicaKey, "m"))
	if ok, refused, unavailable := count(answers, 200), count(answers, 429), count(answers, 503); ok != limit || ok+refused+unavailable != len(answers) {
		t.Errorf("%d were admitted, %d refused, %d could not be decided of %d; the limit is %d", ok, refused, unavailable, len(answers), limit)
	}
	if n := older.provider.Bill().Requests; n != limit {
		t.Errorf("%d requests reached the provider", n)
	}
	older.settled("1", "10")
	newer.balanced()
}

// TestAMigrationForNewerProgramsAloneWaitsForTheOlderOnesEnd: STO-3.
func TestAMigrationForNewerProgramsAloneWaitsForTheOlderOnesEnd(t *testing.T) {
	ctx := context.Background()
	older := newWorldOn(t, database.Database(t), start, replicaModel+"keys: [{name: k, secret: "+replicaKey+"}]\n", nil)
	schema := newerSchema(t, false, "ALTER TABLE replicas ADD COLUMN added text NOT NULL DEFAULT '';\n")
	if _, err := older.other(schema); err == nil || !strings.Contains(err.Error(), "stop the older ones that run") {
		t.Fatalf("start the newer program: %v", err)
	}
	options := older.options()
	options.AsOfSchema(schema)
	if s, err := app.ReadSchema(ctx, options); err != nil || len(s.Pending) != 1 || len(s.Older) != 1 {
		t.Errorf("the schema: %+v, %v", s, err)
	}
	older.must(older.chat(replicaKey, "m"), 200, "")
	older.stop()
	newer, err := older.other(schema)
	if err != nil {
		t.Fatalf("start the newer program alone: %v", err)
	}
	newer.must(newer.chat(replicaKey, "m"), 200, "")
	if server, err := app.Start(ctx, older.options()); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("start the older program: %v, %v", server, err)
	}
}

// TestAMigrationByHandIsAskedFor: STO-3, ADM-6. A start and a command refuse an
// older schema and say what to run; afterwards both work.
func TestAMigrationByHandIsAskedFor(t *testing.T) {
	ctx := context.Background()
	text := "postgres: {migrate: manual}\n" + replicaModel + "keys: [{name: k, secret: " + replicaKey + "}]\n"
	url := database.Empty(t)
	w := newWorld(t, replicaModel)
	w.target(url, text)
	if server, err := app.Start(ctx, w.options()); !errors.Is(err, store.ErrOlderSchema) || !strings.Contains(err.Error(), "run weir migrate") {
		t.Fatalf("start: %v, %v", server, err)
	}
	if _, _, err := app.Connect(ctx, w.options()); !errors.Is(err, store.ErrOlderSchema) {
		t.Errorf("a command: %v", err)
	}
	none := func(string) (string, bool) { return "", false }
	if code, stdout, stderr := w.weir(none, "migrate --status"); code != 1 || !strings.Contains(stdout, "schema 0") || !strings.Contains(stdout, "book") {
		t.Errorf("the status: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := w.weir(none, "migrate"); code != 0 || !strings.Contains(stdout, "was 0") || !strings.Contains(stderr, "migration 1, book") {
		t.Errorf("migrate: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := w.weir(none, "migrate --status --json"); code != 0 || !strings.Contains(stdout, `"pending":[]`) {
		t.Errorf("the status afterwards: exit code %d\n%s%s", code, stdout, stderr)
	}
	other, err := w.other(nil)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	other.must(other.chat(replicaKey, "m"), 200, "")
	other.stop()
}

// TestAFileIsMigratedWhileNobodyHasIt: STO-3, STO-1.
func TestAFileIsMigratedWhileNobodyHasIt(t *testing.T) {
	w := newWorldOn(t, embedded, start, replicaModel, nil)
	none := func(string) (string, bool) { return "", false }
	if code, stdout, stderr := w.weir(none, "migrate --status"); code != 0 || !strings.Contains(stdout, "this program knows") {
		t.Errorf("the status beside a server: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := w.weir(none, "migrate"); code != 1 || !strings.Contains(stderr, "stop it first") {
		t.Errorf("beside a server: exit code %d\n%s", code, stderr)
	}
	w.stop()
	if code, stdout, stderr := w.weir(none, "migrate"); code != 0 || !strings.Contains(stdout, "nothing to do") {
		t.Errorf("alone: exit code %d\n%s%s", code, stdout, stderr)
	}
	if err := os.Remove(w.storePath()); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := w.weir(none, "migrate --status"); code != 1 || !strings.Contains(stdout, "schema 0") {
		t.Errorf("the status of none: exit code %d\n%s", code, stdout)
	}
	if _, err := os.Stat(w.storePath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the status made a store: %v", err)
	}
	if code, stdout, stderr := w.weir(none, "migrate"); code != 0 || !strings.Contains(stdout, "was 0") {
		t.Errorf("a new one: exit code %d\n%s%s", code, stdout, stderr)
	}
	w.start()
}
