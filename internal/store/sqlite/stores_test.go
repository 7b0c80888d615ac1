// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
	"github.com/weirhq/weir/internal/window"
)

// testdata/stores keeps one store for each schema that was released, named after
// its last migration, with rows of every table, kind and event. They are never
// written anew: -update makes the one of a schema that was not released yet.
var update = flag.Bool("update", false, "write the store of the present schema")

const (
	storesFolder = "testdata/stores"
	// present is the newest migration; a new one that is released with it takes a
	// new store.
	present = "00004"
	day     = 24 * time.Hour
)

// sample makes the store of the present schema.
type sample struct {
	t      *testing.T
	book   *sqlite.Book
	clock  *clock.Manual
	serial uint64
}

func (s *sample) id() ledger.ID {
	var random [10]byte
	s.serial++
	binary.BigEndian.PutUint64(random[:8], s.serial)
	return ledger.NewID(s.clock.Now(), random)
}

func (s *sample) apply(want ledger.Verdict, op *ledger.Op) *ledger.Reservation {
	s.t.Helper()
	op.Name(s.book.Now())
	results, err := s.book.Apply(s.t.Context(), []*ledger.Op{op})
	if err != nil || results[0].Verdict != want {
		s.t.Fatalf("verb %d: %+v, %v, want verdict %d", op.Verb, results, err, want)
	}
	return results[0].Reservation
}

// admission is a request on counters of every kind.
func (s *sample) admission() *ledger.Op {
	op := cycle(s.id(), "acme", "key_1", s.book.Now())
	counter := func(limit, subject string) ledger.Counter {
		return ledger.Counter{Workspace: "acme", Limit: limit, Epoch: 1, Subject: subject}
	}
	op.Checks = append(op.Checks,
		ledger.Check{
			Counter: counter("rule", ""), Kind: ledger.KindSliding, Mode: ledger.Take, Wants: ledger.Tokens, Charges: ledger.Tokens,
			Amount: 1 << 40, Window: window.Spec{Length: int64(time.Hour / time.Microsecond)}, Code: fault.RateLimited,
		},
		ledger.Check{
			Counter: counter("users", ""), Marker: ledger.Counter{Workspace: "acme", Limit: "user", Subject: "ada"},
			Kind: ledger.KindRoster, Mode: ledger.Take, Wants: ledger.Requests, Amount: 50, Code: fault.UserLimitReached,
		},
		ledger.Check{
			Counter: counter("month", ""), Kind: ledger.KindFixed, Mode: ledger.Track, Wants: ledger.Spend, Charges: ledger.Spend,
			Amount: 1_000_000, Window: window.Spec{Period: window.PeriodMonth}, WarnPercent: []uint8{50}, Name: "month", Scope: "org", Code: fault.BudgetExceeded,
		})
	op.ClientID = "client-1"
	return op
}

func (s *sample) open() *ledger.Reservation { return s.apply(ledger.Admitted, s.admission()) }

func (s *sample) end(verb ledger.Verb, r *ledger.Reservation) {
	s.apply(ledger.Done, &ledger.Op{
		Verb: verb, Workspace: r.Workspace, Reservation: r, HoldMicros: int64(time.Hour / time.Microsecond), Settlement: &ledger.Settlement{},
	})
}

// requests ends one request in every way.
func (s *sample) requests() {
	twice := settle(s.open(), 1_000_000)
	twice.Settlement.Attempts = append(twice.Settlement.Attempts, twice.Settlement.Attempts[0])
	s.apply(ledger.Done, twice)
	swept := s.open()
	s.end(ledger.Sweep, swept)
	s.apply(ledger.Done, settle(swept, 300_000)) // a correction
	s.end(ledger.Void, s.open())
	s.end(ledger.Undo, s.open())
	refused := s.admission()
	refused.Checks[3].Amount = 0
	s.apply(ledger.Refused, refused)
}

// entries books what is no request.
func (s *sample) entries() {
	for _, kind := range []ledger.EventKind{ledger.EventTopUp, ledger.EventCredit, ledger.EventAdjustment} {
		s.apply(ledger.Done, &ledger.Op{
			Verb: ledger.Fund, ID: s.id(), Workspace: "acme", Checks: s.admission().Checks[:1],
			Entry: &ledger.Entry{Kind: kind, Amounts: ledger.Amounts{Spend: 5_000_000}, Reason: "invoice", Actor: "ada"},
		})
	}
	for _, kind := range []ledger.EventKind{ledger.EventRaise, ledger.EventReset, ledger.EventSeed} {
		op := &ledger.Op{
			Verb: ledger.Amend, ID: s.id(), Workspace: "acme", Checks: s.admission().Checks[2:3],
			Entry: &ledger.Entry{Kind: kind, Amounts: ledger.Amounts{Spend: 700_000}, Reason: "asked for", Actor: "ada"},
		}
		if kind == ledger.EventReset { // days, buckets, a window
			checks := s.admission().Checks
			op.Checks = []ledger.Check{checks[1], checks[2], checks[3], checks[4], checks[7]}
		}
		s.apply(ledger.Done, op)
	}
}

// configuration has objects, live and retired, with secrets and an audit.
func (s *sample) configuration() {
	credential, grace := "a credential", storetest.Noon
	edits := []store.Edit{
		{Object: store.Object{Workspace: "acme", Kind: "key", ID: "key_1", Name: "ci", Epoch: 1, Body: []byte(`{}`), Source: "api"}, AddSecret: &store.KeySecret{Hash: [32]byte{1}}},
		{Object: store.Object{Kind: "provider", ID: "prov_1", Name: "openai", Body: []byte(`{}`), Source: "file", Origin: "weir.yaml:3"}, Credential: &credential},
		{Object: store.Object{Workspace: "acme", Kind: "budget", ID: "bud_1", Name: "month", Body: []byte(`{}`), Source: "file", Origin: "weir.yaml:9"}},
	}
	for i := range edits {
		edits[i].Audit = store.Audit{Workspace: edits[i].Object.Workspace, Actor: "file", Action: "create", After: []byte(`{}`)}
	}
	rotated, retired := edits[0], edits[2]
	rotated.Expect, rotated.AddSecret, rotated.ExpireSecrets = 1, &store.KeySecret{Hash: [32]byte{2}}, &grace
	retired.Expect, retired.Retire = 1, true
	if err := errors.Join(
		s.book.Change(s.t.Context(), storetest.Noon, edits),
		s.book.Change(s.t.Context(), storetest.Noon+1, []store.Edit{rotated, retired}),
		s.book.SetAdminTokenHash(s.t.Context(), [32]byte{3}),
		s.book.Keep(s.t.Context(), []route.Kept{{Workspace: "acme", Provider: "prov_1", Kind: "response", Hash: route.HashKept("resp_1"), ExpiresAt: storetest.Noon}}),
	); err != nil {
		s.t.Fatal(err)
	}
}

// make fills a store over 95 days, drops what is old, and leaves requests open,
// in the tables and in the journal.
func (s *sample) make(into string) {
	s.configuration()
	for range 2 {
		s.requests()
		s.clock.Advance(20 * time.Minute)
	}
	s.entries()
	s.clock.Advance(95 * day)
	old := s.book.Now() - int64(90*day/time.Microsecond)
	cut := store.Cut{Calls: old, Events: old, Quarters: old, Notices: 0}
	for done := false; !done; {
		var err error
		if _, done, err = s.book.Prune(s.t.Context(), cut, 100); err != nil {
			s.t.Fatal(err)
		}
	}
	s.requests()
	s.entries()
	s.open()
	if err := s.book.Fold(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if err := s.book.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.requests()
	s.open()
	s.apply(ledger.Done, &ledger.Op{Verb: ledger.Undo, ID: s.id(), Workspace: "acme", HoldMicros: 1}) // a tombstone
	if _, err := s.book.Backup(s.t.Context(), into); err != nil {
		s.t.Fatal(err)
	}
	// What SQLite drew or took from the system's clock.
	tamper(s.t, into, `UPDATE meta SET value = zeroblob(32) WHERE name = 'store_secret'`)
	tamper(s.t, into, `UPDATE goose_db_version SET tstamp = '2026-01-01 00:00:00'`)
	tamper(s.t, into, `VACUUM`)
}

func TestTheSampleOfThePresentSchemaIsMadeAnew(t *testing.T) {
	c := clock.NewManual(storetest.Noon)
	s := &sample{t: t, clock: c, book: open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Clock: c})}
	made := filepath.Join(t.TempDir(), "sample.db")
	s.make(made)
	for _, table := range tablesOf(t, made) {
		if n := count(t, made, table); n == 0 && table != "journal" { // that is of before files
			t.Errorf("no row of table %s is in the sample", table)
		}
	}
	packed := filepath.Join(storesFolder, present+".db.gz")
	if *update {
		pack(t, made, packed)
	}
	kept := filepath.Join(t.TempDir(), "kept.db")
	unpack(t, packed, kept)
	want, err := inspect(t, made)
	if err != nil {
		t.Fatal(err)
	}
	events, kinds := make(map[ledger.EventKind]bool), make(map[ledger.Kind]bool)
	for i := range want.Events {
		events[want.Events[i].Kind] = true
	}
	for _, state := range want.Counters {
		kinds[state.Kind] = true
	}
	if len(events) != int(ledger.EventSeed) || len(kinds) != int(ledger.KindRoster-ledger.KindPolicy) {
		t.Errorf("events of kinds %v, counters of kinds %v: some are missing", events, kinds)
	}
	if newest, err := filepath.Glob("migrations/" + present + "_*.sql"); err != nil || len(newest) != 1 || len(every(t, "migrations/*.sql")) != len(every(t, storesFolder+"/*.db.gz")) {
		t.Errorf("each migration that is released has a store, the newest is %s: %v, %v", present, newest, err)
	}
	if have, err := inspect(t, kept); err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("%s is not what this program makes (%v): a change of a schema that was released is a migration; before that, run the test with -update", packed, err)
	}
}

// TestEveryReleasedSchemaIsMigrated: STO-3, RES-7. Each is opened by this program,
// swept, verified, and admits.
func TestEveryReleasedSchemaIsMigrated(t *testing.T) {
	for _, packed := range every(t, storesFolder+"/*.db.gz") {
		t.Run(filepath.Base(packed), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "weir.db")
			unpack(t, packed, path)
			before, err := inspect(t, path)
			if err == nil {
				err = before.Balance()
			}
			if err != nil {
				t.Fatalf("as it was left: %v", err)
			}
			c := clock.NewManual(storetest.Noon + int64(96*day/time.Microsecond))
			b := open(t, sqlite.Options{Path: path, Clock: c})
			if r := b.Recovery(); r.Swept != 2 || r.Tombstones != 1 {
				t.Errorf("the start swept %+v", r)
			}
			s := &sample{t: t, book: b, clock: c, serial: 1 << 32}
			s.requests()
			running := s.open()
			books, err := storetest.Take(t.Context(), b)
			if err == nil {
				err = books.Balance()
			}
			if err != nil || len(books.Reservations) != 1 || books.Reservations[0].ID != running.ID || len(books.Events) <= len(before.Events) {
				t.Errorf("after some requests: %v, open %+v", err, books.Reservations)
			}
			if !reflect.DeepEqual(books.Closings, before.Closings) || len(books.Closings) == 0 {
				t.Error("closings changed")
			}
			if k, err := b.KeyBySecret(t.Context(), [32]byte{2}); err != nil || k.KeyID != "key_1" {
				t.Errorf("key %+v, %v", k, err)
			}
			if text, err := b.Credential(t.Context(), "", "prov_1"); err != nil || text != "a credential" {
				t.Errorf("credential %q, %v", text, err)
			}
			if list, err := b.AuditList(t.Context(), "acme", 0, 10); err != nil || len(list) < 2 {
				t.Errorf("audit %+v, %v", list, err)
			}
		})
	}
}

func every(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return list
}

func query[T any](t *testing.T, path, statement string) (list []T) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it was only read
	rows, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func tablesOf(t *testing.T, path string) []string {
	t.Helper()
	return query[string](t, path, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
}

func count(t *testing.T, path, table string) int {
	t.Helper()
	return query[int](t, path, `SELECT count(*) FROM `+table)[0]
}

func pack(t *testing.T, path, into string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err = errors.Join(err, w.Close(), os.MkdirAll(filepath.Dir(into), 0o755), os.WriteFile(into, packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, packed, into string) {
	t.Helper()
	f, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err == nil {
		err = os.WriteFile(into, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
