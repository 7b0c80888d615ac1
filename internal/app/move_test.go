// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/sqlite"
)

// movedText has something of every kind.
const movedText = "funds: prepaid\n" + replicaModel + "keys:\n  - {name: k, secret: " + replicaKey + ", user: ada, limits: {rpm: 100}, caps: {day: \"5\", thirty_day: \"9\"}}\n" +
	"budgets:\n  - {name: b, scope: org, metric: spend, limit: \"1\", period: day}\n  - {name: u, scope: user, metric: tokens, limit: 5000, period: month, warn_percent: [1]}\n" +
	"rate_limits:\n  - {name: r, subject_kind: org, metric: tokens, window_seconds: 3600, limit: 4000}\n"

// used is an embedded store on which keys were made, deleted and used.
type used struct {
	*world
	made, gone admin.KeyAnswer
}

func newUsed(t *testing.T) *used {
	t.Helper()
	ctx := context.Background()
	w := &used{world: newWorldOn(t, embedded, start, movedText, nil)}
	w.fund("10")
	for name, into := range map[string]*admin.KeyAnswer{"made": &w.made, "gone": &w.gone} {
		made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some(name)}})
		if err != nil {
			t.Fatal(err)
		}
		*into = made
	}
	for range 7 {
		w.must(w.chat(replicaKey, "m"), 200, "")
		w.must(w.stream(w.made.Secret, "m", ""), 200, "")
		w.must(w.chat(replicaKey, "none"), 404, "model_not_found")
	}
	w.must(w.respond(replicaKey, "m", ""), 200, "")
	if _, err := w.admin.KeyDelete(ctx, admin.KeyRequest{Key: w.gone.ID}); err != nil {
		t.Fatal(err)
	}
	return w
}

// target makes a world's configuration name a database; from are the options of
// the store that it had.
func (w *world) target(url, text string) (from app.Options) {
	w.t.Helper()
	from = w.options()
	w.config = filepath.Join(w.t.TempDir(), "weir.yaml")
	w.store = url
	w.write(text)
	return from
}

// TestAStoreIsMovedWhole: STO-1. Keys, secrets, funds, budgets and rates go on in
// the database where they were in the file, to the unit, and the books balance.
func TestAStoreIsMovedWhole(t *testing.T) {
	ctx := context.Background()
	url := database.Database(t) // it goes after the world on it
	w := newUsed(t)
	before := w.must(w.do(ctx, "GET", "/v1/key", replicaKey, ""), 200, "").body
	balance := w.balance()
	w.stop()
	from := w.target(url, movedText)
	steps := make(map[string]bool)
	moved, err := app.Move(ctx, from, w.config, func(m app.Moving) { steps[m.Step] = true })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range moved.Rows {
		if r.Rows == 0 && r.Name != "reservations" && r.Name != "closings" {
			t.Errorf("no %s were moved", r.Name)
		}
	}
	if moved.Verified.Events == 0 || !steps["copying"] || !steps["verifying"] {
		t.Errorf("verified %+v, steps %v", moved.Verified, steps)
	}
	w.start()
	if after := w.must(w.do(ctx, "GET", "/v1/key", replicaKey, ""), 200, "").body; after != before {
		t.Errorf("the key's limits were\n%s\nand are\n%s", before, after)
	}
	if now := w.balance(); now != balance {
		t.Errorf("the balance was %s and is %s", balance, now)
	}
	w.must(w.chat(w.gone.Secret, "m"), 401, "invalid_api_key")
	w.must(w.chat(w.made.Secret, "m"), 200, "")
	w.must(w.chat(replicaKey, "m"), 200, "")
	w.settled("1", "10")
	if log, err := w.admin.AuditList(ctx, admin.AuditListRequest{}); err != nil || len(log.Entries) < 3 {
		t.Errorf("the audit: %+v (%v)", log, err)
	}
}

// TestAMovedStoreIsOpenedInOnePlaceAlone: STO-1. The file refuses servers and
// commands and says where its content is, the database refuses a second move; what
// was moved by mistake is taken back.
func TestAMovedStoreIsOpenedInOnePlaceAlone(t *testing.T) {
	ctx := context.Background()
	url := database.Database(t) // it goes after the world on it
	w := newUsed(t)
	old := w.config
	from := w.target(url, movedText)
	if _, err := app.Move(ctx, from, w.config, nil); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "stop it first") {
		t.Fatalf("while its server runs: %v", err)
	}
	w.stop()
	if _, err := app.Move(ctx, from, w.config, nil); err != nil {
		t.Fatal(err)
	}
	if server, err := app.Start(ctx, from); !errors.Is(err, store.ErrMoved) || !strings.Contains(err.Error(), "postgres://127.0.0.1") {
		t.Errorf("a server on the file: %v, %v", server, err)
	}
	if _, _, err := app.Connect(ctx, from); !errors.Is(err, store.ErrMoved) {
		t.Errorf("a command on the file: %v", err)
	}
	if _, err := app.VerifyFile(ctx, filepath.Join(filepath.Dir(old), "weir.db")); err != nil {
		t.Errorf("verify the file: %v", err)
	}
	if _, err := app.Move(ctx, from, w.config, nil); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "was moved to postgres://127.0.0.1") {
		t.Errorf("a second move: %v", err)
	}
	if _, err := app.Unmove(ctx, from); err != nil {
		t.Fatal(err)
	}
	server, err := app.Start(ctx, from)
	if err != nil {
		t.Fatalf("a server on the file, taken back: %v", err)
	}
	if err := server.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// TestWhatWaitsInTheSpoolIsMovedToo: RES-8. A server ended while the store took
// nothing; what it answered is booked before the store is moved.
func TestWhatWaitsInTheSpoolIsMovedToo(t *testing.T) {
	const running = 6
	ctx := context.Background()
	url := database.Database(t) // it goes after the world on it
	w := newWorldOn(t, embedded, start, outageConfig, func(o *app.Options) { o.SettleWithin(50 * time.Millisecond) })
	answers := w.held(running)
	end := w.outage()
	w.provider.Release()
	if all := <-answers; count(all, 200) != running {
		t.Fatalf("%d of %d running requests were answered", count(all, 200), running)
	}
	w.spooled(running)
	w.stop()
	end()
	from := w.target(url, outageConfig)
	moved, err := app.Move(ctx, from, w.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if moved.Verified.Events != running {
		t.Errorf("%d events, want %d", moved.Verified.Events, running)
	}
	w.start()
	w.settled("1", "10")
}

// TestAMoveThatIsCutShortIsRepeated: nothing half moved is ever served.
func TestAMoveThatIsCutShortIsRepeated(t *testing.T) {
	url := database.Database(t) // it goes after the world on it
	w := newUsed(t)
	w.stop()
	from := w.target(url+"&pooling=transaction", movedText)
	for _, at := range []app.Moving{{Step: "copying", Name: "events"}, {Step: "copying", Name: "outbox"}, {Step: "verifying"}, {Step: "finishing"}} {
		ctx, cut := context.WithCancel(context.Background())
		_, err := app.Move(ctx, from, w.config, func(m app.Moving) {
			if m.Step == at.Step && m.Name == at.Name {
				cut()
			}
		})
		cut()
		if err == nil {
			t.Fatalf("cut at %v: no error", at)
		}
		if server, err := app.Start(context.Background(), w.options()); !errors.Is(err, store.ErrUnfinished) || !strings.Contains(err.Error(), "run weir move again") {
			t.Fatalf("cut at %v, a server on what is not finished: %v, %v", at, server, err)
		}
	}
	if server, err := app.Start(context.Background(), from); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("a server on the file: %v, %v", server, err)
	}
	if _, _, err := app.Connect(context.Background(), w.options()); !errors.Is(err, store.ErrUnfinished) {
		t.Errorf("a command on it: %v", err)
	}
	if _, err := app.Move(context.Background(), from, w.config, nil); err != nil {
		t.Fatalf("again: %v", err)
	}
	w.start()
	w.settled("1", "10")
}

// TestOnlyAnEmbeddedStoreIsMovedAndOnlyToADatabase: BUD-6.
func TestOnlyAnEmbeddedStoreIsMovedAndOnlyToADatabase(t *testing.T) {
	folder := t.TempDir()
	file := func(name, store string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("store: "+store+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	embedded, memory := file("a.yaml", "sqlite:"+filepath.Join(folder, "a.db")), file("b.yaml", "memory")
	shared := file("c.yaml", "postgres://nobody:hidden@127.0.0.1:1/none?connect_timeout=1")
	for _, c := range [][2]string{{memory, shared}, {shared, shared}, {embedded, embedded}, {embedded, memory}, {embedded, shared}} {
		_, err := app.Move(context.Background(), app.Options{ConfigPath: c[0], Stderr: testLog{t}}, c[1], nil)
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("from %s to %s: %v", c[0], c[1], err)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "a.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a move from a store that is not there made one: %v", err)
	}
}

// TestEveryTableArrives: what any table of either store holds is in the other one
// afterwards. A table that is added has to be moved, or named here.
func TestEveryTableArrives(t *testing.T) {
	ctx := context.Background()
	w := newUsed(t)
	path := w.storePath()
	w.stop()
	source, err := sqlite.Open(ctx, sqlite.Options{Path: path, Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	later := start + int64(48*time.Hour/time.Microsecond)
	for closed := int64(0); closed == 0; {
		step, done, err := source.Prune(ctx, store.Cut{Events: later}, 3)
		if closed = step.Closings; err != nil || done && closed == 0 {
			t.Fatalf("close some events: %+v, %v", step, err)
		}
	}
	var random [10]byte
	_, _ = rand.Read(random[:])
	op := &ledger.Op{
		Verb: ledger.Admit, ID: ledger.NewID(source.Now(), random), Workspace: "default", Process: "p_dead", HoldMicros: 60_000_000, Note: []byte("note"),
		Candidates: []ledger.Candidate{{Model: "m", Provider: "sim", Price: "price_1", Wants: ledger.Amounts{Spend: 5, Tokens: 7}}},
	}
	if results, err := source.Apply(ctx, []*ledger.Op{op}); err != nil || results[0].Verdict != ledger.Admitted {
		t.Fatalf("leave a request open: %+v, %v", results, err)
	}

	url := database.Database(t)
	target, err := postgres.Open(ctx, postgres.Options{URL: url, Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	if err := target.Fill(ctx, source, "it", source.Now(), nil); err != nil {
		t.Fatal(err)
	}
	rows, err := app.Compare(ctx, source, target)
	if err != nil {
		t.Fatal(err)
	}
	compared := make(map[string]int64)
	for _, r := range rows {
		compared[r.Name] = r.Rows
	}
	names := map[string]string{
		"objects": "objects", "generations": "generations", "key_secrets": "key secrets", "credentials": "credentials", "meta": "values",
		"audit": "audit entries", "outbox": "notices", "counters": "counters", "reservations": "reservations", "events": "events",
		"key_quarters": "quarters", "closings": "closings", "rollups": "roll-ups", "calls": "calls", "kept": "ids kept by providers",
	}
	// Of the database itself: which migrations it has had, which processes use it, and
	// from which transaction on events are in no roll-up.
	own := map[string]bool{"goose_db_version": true, "replicas": true, "rolling": true}
	for table, n := range tableRows(t, url) {
		name, ok := names[table]
		switch {
		case own[table]:
		case !ok:
			t.Errorf("table %s is neither moved nor named here", table)
		case table == "meta" && n == compared[name]+2: // the schema's, and that it is being filled
		case n == 0 || n != compared[name]:
			t.Errorf("table %s has %d rows, %d %s were compared", table, n, compared[name], name)
		}
	}
}

// tableRows counts the rows of every table of a database.
func tableRows(t *testing.T, url string) map[string]int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	found, err := conn.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int64)
	for _, table := range tables {
		var n int64
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		out[table] = n
	}
	return out
}
