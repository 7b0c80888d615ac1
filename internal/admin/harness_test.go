// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/teller"
	"github.com/weirhq/weir/internal/tenant"
)

var system = admin.Actor{Name: "test", Role: admin.System}

// catalogue is read once: it takes a while where races are looked for.
var catalogue = sync.OnceValues(price.Load)

// book is a store in all its roles.
type book interface {
	store.Book
	store.Objects
	store.Secrets
	store.Log
	store.Verifiable
	Close() error
}

// world is a service over a real book, teller and directory.
type world struct {
	*admin.Service
	t         *testing.T
	book      book
	clock     *clock.Manual
	directory *directory.Directory
	teller    *teller.Teller
	options   admin.Options
}

var start = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC).UnixMicro()

// database is this test process's PostgreSQL; it starts with the first test that
// needs it.
var database = pgtest.Server{Prepare: func(url string) error {
	b, err := postgres.Open(context.Background(), postgres.Options{URL: url, Clock: clock.NewManual(start)})
	if err != nil {
		return err
	}
	return b.Close()
}}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := database.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// overEvery runs a test over every store that there is: over both of one process,
// or, where WEIR_TEST_STORE=postgres asks for that, over PostgreSQL.
func overEvery(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	if os.Getenv("WEIR_TEST_STORE") == "postgres" {
		t.Run("postgres", func(t *testing.T) {
			c := clock.NewManual(start)
			b, err := postgres.Open(t.Context(), postgres.Options{URL: database.Reused(t), Clock: c})
			if err != nil {
				t.Fatal(err)
			}
			test(t, newWorld(t, c, b))
		})
		return
	}
	t.Run("memory", func(t *testing.T) {
		c := clock.NewManual(start)
		test(t, newWorld(t, c, memory.New(memory.Options{Clock: c, Secret: [32]byte{7}})))
	})
	t.Run("sqlite", func(t *testing.T) {
		c := clock.NewManual(start)
		b, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Clock: c})
		if err != nil {
			t.Fatal(err)
		}
		test(t, newWorld(t, c, b))
	})
}

func newWorld(t *testing.T, c *clock.Manual, b book) *world {
	t.Helper()
	prices, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	d, err := directory.New(t.Context(), b, c, prices)
	if err != nil {
		t.Fatal(err)
	}
	desk := teller.New(b, teller.Options{OutcomeUnknown: func(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) }})
	desk.Start()
	t.Cleanup(func() {
		if err := errors.Join(desk.Stop(context.Background()), b.Close()); err != nil {
			t.Error(err)
		}
	})
	copyable, _ := b.(store.Copyable)
	w := &world{t: t, book: b, clock: c, directory: d, teller: desk, options: admin.Options{
		Objects: b, Secrets: b, Log: b, Verifiable: b, Copyable: copyable, Decider: desk, Snapshots: d, Prices: prices, Clock: c,
		Durable: true, Store: "test", Version: "v0",
	}}
	w.Service = admin.New(w.options)
	if err := w.EnsureDefault(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) key(name string, change func(*admin.KeyFields)) admin.KeyAnswer {
	w.t.Helper()
	body := admin.KeyFields{Name: admin.Some(name)}
	if change != nil {
		change(&body)
	}
	k, err := w.KeyCreate(w.t.Context(), system, admin.KeyCreateRequest{Body: body})
	if err != nil {
		w.t.Fatalf("make key %s: %v", name, err)
	}
	return k
}

// refused checks that an operation was refused with a code, and hands on the
// fault.
func refused(t *testing.T, err error, code fault.Code) fault.Fault {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) {
		t.Fatalf("want %s, got %v", code, err)
	}
	if f.Code != code {
		t.Fatalf("want %s, got %s: %s", code, f.Code, f.Message)
	}
	return *f
}

func (w *world) audits() []admin.AuditEntry {
	w.t.Helper()
	list, err := w.AuditList(w.t.Context(), system, admin.AuditListRequest{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	shared, err := w.AuditList(w.t.Context(), system, admin.AuditListRequest{Limit: 1000, Shared: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return append(list.Entries, shared.Entries...)
}

// The file of most tests: one provider, one model, and what the caller adds.

func declaredProvider(t *testing.T, line int, change func(*route.Provider)) admin.Declared {
	t.Helper()
	p := route.NewProvider("", "up")
	p.BaseURL = "http://127.0.0.1:9/v1"
	if change != nil {
		change(p)
	}
	body, err := route.EncodeProvider(p)
	if err != nil {
		t.Fatal(err)
	}
	return admin.Declared{Kind: admin.KindProvider, Name: "up", Body: body, Credential: "sk-very-secret", Line: line}
}

func declaredModel(t *testing.T, name string, line int) admin.Declared {
	t.Helper()
	row, err := price.ParseSpec(name, price.Spec{Fields: map[string]string{"input": "1", "output": "10"}})
	if err != nil {
		t.Fatal(err)
	}
	body, err := route.EncodeModel(&route.Model{
		Name: name, Provider: "up", Upstream: name, ContextTokens: 10_000, MaxOutputTokens: 1_000, Prices: price.Schedule{row},
	})
	if err != nil {
		t.Fatal(err)
	}
	return admin.Declared{Kind: admin.KindModel, Name: name, Body: body, Line: line}
}

func declaredKey(t *testing.T, name, secret string, line int, change func(*tenant.Key)) admin.Declared {
	t.Helper()
	k := &tenant.Key{Name: name}
	if change != nil {
		change(k)
	}
	body, err := tenant.EncodeKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return admin.Declared{
		Workspace: "default", Kind: admin.KindKey, Name: name, Body: body, Line: line,
		Secret: &admin.DeclaredSecret{Hash: tenant.HashSecret(secret), Prefix: tenant.SecretPrefix(secret)},
	}
}

func declaredWorkspace(t *testing.T, name string, line int, change func(*tenant.Workspace)) admin.Declared {
	t.Helper()
	w := tenant.NewWorkspace("", name)
	if change != nil {
		change(w)
	}
	body, err := tenant.EncodeWorkspace(w)
	if err != nil {
		t.Fatal(err)
	}
	return admin.Declared{Workspace: name, Kind: admin.KindWorkspace, Name: name, Body: body, Line: line}
}

func (w *world) apply(declared ...admin.Declared) admin.ApplyAnswer {
	w.t.Helper()
	out, err := w.Apply(w.t.Context(), "file", declared, "weir.yaml")
	if err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	return out
}

// aliased is a declared model with an alias.
func aliased(t *testing.T, d admin.Declared, alias string) admin.Declared {
	t.Helper()
	m, err := route.DecodeModel(d.Body)
	if err != nil {
		t.Fatal(err)
	}
	m.Name, m.Aliases = d.Name, []string{alias}
	if d.Body, err = route.EncodeModel(m); err != nil {
		t.Fatal(err)
	}
	return d
}

func declaredRule(t *testing.T, name string, line int, change func(*rule.Rule)) admin.Declared {
	t.Helper()
	r := rule.New("", name)
	r.SubjectKind, r.Metric, r.WindowSeconds, r.Limit = rule.SubjectOrg, rule.Requests, 60, 5
	if change != nil {
		change(r)
	}
	body, err := rule.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return admin.Declared{Workspace: "default", Kind: admin.KindRateLimit, Name: name, Body: body, Line: line}
}

func declaredBudget(t *testing.T, name string, line int, change func(*budget.Budget)) admin.Declared {
	t.Helper()
	b := &budget.Budget{Name: name, Scope: budget.ScopeOrg, Metric: budget.Tokens, Limit: 500, Period: budget.Day}
	if change != nil {
		change(b)
	}
	b.Default()
	body, err := budget.Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	return admin.Declared{Workspace: "default", Kind: admin.KindBudget, Name: name, Body: body, Line: line}
}

func declaredPlan(t *testing.T, name string, line int) admin.Declared {
	t.Helper()
	body, err := tenant.EncodePlan(&tenant.Plan{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return admin.Declared{Workspace: "default", Kind: admin.KindPlan, Name: name, Body: body, Line: line}
}

// nested is a budget that is declared with a key or plan.
func nested(d admin.Declared, kind, name string) admin.Declared {
	d.OwnerKind, d.OwnerName = kind, name
	return d
}
