// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/tenant"
)

const second = int64(1_000_000)

// start is 2026-03-02 12:00 UTC.
const start = int64(1_772_452_800) * second

var storeSecret = [32]byte{1, 2, 3}

// counted is a real store that counts what is read of it, and can be stopped
// between a read and its answer.
type counted struct {
	*memory.Book
	secrets, objects, since, credentials atomic.Int64
	// after, when set, runs when a read has its answer, before it is given.
	mu    sync.Mutex
	after func(what string)
}

func (c *counted) hook(f func(what string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = f
}

func (c *counted) read(what string, n *atomic.Int64) {
	n.Add(1)
	c.mu.Lock()
	after := c.after
	c.mu.Unlock()
	if after != nil {
		after(what)
	}
}

func (c *counted) KeyBySecret(ctx context.Context, hash [32]byte) (store.KeySecret, error) {
	s, err := c.Book.KeyBySecret(ctx, hash)
	c.read("secret", &c.secrets)
	return s, err
}

func (c *counted) Object(ctx context.Context, workspace, kind, id string) (store.Object, error) {
	o, err := c.Book.Object(ctx, workspace, kind, id)
	c.read("object", &c.objects)
	return o, err
}

func (c *counted) Since(ctx context.Context, workspace string, generation int64) ([]store.Object, int64, error) {
	c.read("before since", new(atomic.Int64))
	list, now, err := c.Book.Since(ctx, workspace, generation)
	c.read("since", &c.since)
	return list, now, err
}

func (c *counted) Credential(ctx context.Context, workspace, provider string) (string, error) {
	s, err := c.Book.Credential(ctx, workspace, provider)
	c.read("credential", &c.credentials)
	return s, err
}

// shop is a store with workspaces, and a directory over it.
type shop struct {
	t         testing.TB
	clock     *clock.Manual
	store     *counted
	directory *directory.Directory
	catalogue *price.Catalogue
	mu        sync.Mutex
	versions  map[string]int64
	secrets   int
}

func newShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{t: t, clock: clock.NewManual(start), versions: map[string]int64{}}
	s.store = &counted{Book: memory.New(memory.Options{Clock: s.clock, Secret: storeSecret})}
	var err error
	if s.catalogue, err = price.Load(); err != nil {
		t.Fatal(err)
	}
	s.directory = s.replica()
	s.workspace(tenant.NewWorkspace("ws_a", "acme"))
	return s
}

// replica is another process's directory over the same store.
func (s *shop) replica() *directory.Directory {
	s.t.Helper()
	d, err := directory.New(s.t.Context(), s.store, s.clock, s.catalogue)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *shop) change(e store.Edit) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := e.Object.Workspace + "/" + e.Object.Kind + "/" + e.Object.ID
	e.Expect = s.versions[name]
	if err := s.store.Change(context.Background(), s.clock.Now(), []store.Edit{e}); err != nil {
		s.t.Fatal(err)
	}
	s.versions[name]++
}

func (s *shop) put(workspace, kind, id, name string, body []byte, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.change(store.Edit{Object: store.Object{Workspace: workspace, Kind: kind, ID: id, Name: name, Body: body}})
}

func (s *shop) retire(workspace, kind, id, name string) {
	s.t.Helper()
	s.change(store.Edit{Object: store.Object{Workspace: workspace, Kind: kind, ID: id, Name: name, Body: []byte("{}")}, Retire: true})
}

func (s *shop) workspace(w *tenant.Workspace) {
	s.t.Helper()
	body, err := tenant.EncodeWorkspace(w)
	s.put(w.ID, directory.KindWorkspace, w.ID, w.Name, body, err)
}

// provider declares one whose credential names its owner.
func (s *shop) provider(workspace, name string) {
	s.t.Helper()
	p := route.NewProvider("", "")
	p.BaseURL = "https://" + name + ".example.com/v1"
	body, err := route.EncodeProvider(p)
	if err != nil {
		s.t.Fatal(err)
	}
	credential := "credential of " + name + " in " + workspace
	s.change(store.Edit{
		Object:     store.Object{Workspace: workspace, Kind: directory.KindProvider, ID: "pr_" + name, Name: name, Body: body},
		Credential: &credential,
	})
}

func (s *shop) model(workspace, name, provider string, change func(*route.Model)) {
	s.t.Helper()
	m := &route.Model{Name: name, Provider: provider, Upstream: name}
	if change != nil {
		change(m)
	}
	body, err := route.EncodeModel(m)
	s.put(workspace, directory.KindModel, "m_"+name, name, body, err)
}

// secret makes one of ours; it belongs to nothing yet.
func (s *shop) secret() (text string, hash [32]byte) {
	s.secrets++
	var random [tenant.SecretRandomBytes]byte
	random[0], random[1] = byte(s.secrets), byte(s.secrets>>8)
	text, _, hash = tenant.NewSecret(random, storeSecret[:])
	return text, hash
}

// key makes a key, and a secret for it.
func (s *shop) key(workspace, id string, change func(*tenant.Key)) string {
	s.t.Helper()
	text, hash := s.secret()
	s.editKey(workspace, id, change, store.Edit{AddSecret: &store.KeySecret{Hash: hash, Workspace: workspace, KeyID: id}})
	return text
}

func (s *shop) editKey(workspace, id string, change func(*tenant.Key), e store.Edit) {
	s.t.Helper()
	k := &tenant.Key{Name: id}
	if change != nil {
		change(k)
	}
	body, err := tenant.EncodeKey(k)
	if err != nil {
		s.t.Fatal(err)
	}
	e.Object = store.Object{Workspace: workspace, Kind: store.KindKey, ID: id, Name: id, Body: body}
	s.change(e)
}

func (s *shop) identify(secret string) (*tenant.Key, *admit.Snapshot, error) {
	return s.directory.Identify(context.Background(), secret)
}

// must identifies a secret that belongs to somebody.
func (s *shop) must(secret string) (*tenant.Key, *admit.Snapshot) {
	s.t.Helper()
	k, snapshot, err := s.identify(secret)
	if err != nil {
		s.t.Fatal(err)
	}
	return k, snapshot
}

func (s *shop) refresh() *admit.Snapshot {
	s.t.Helper()
	snapshot, err := s.directory.Refresh(s.t.Context(), "ws_a")
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

func at[T any](v T) *T { return &v }

func perMillion(usd string) *money.PerMillion {
	p, err := money.ParsePerMillion(usd)
	if err != nil {
		panic(err)
	}
	return &p
}
