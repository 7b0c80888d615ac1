// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/tenant"
)

func names(s *admit.Snapshot) []string { return s.Models(&tenant.Key{}) }

func TestWhatIsSharedIsThereAndTheWorkspacesOwnGoesBefore(t *testing.T) { // SPEC 14
	s := newShop(t)
	s.provider("", "p")
	s.provider("", "q")
	s.model("", "m", "p", func(m *route.Model) { m.Aliases, m.MaxOutputTokens = []string{"a"}, 1 })
	s.model("", "n", "q", nil)
	s.model("", "o", "p", nil)
	s.provider("ws_a", "p")
	s.model("ws_a", "n", "p", func(m *route.Model) { m.MaxOutputTokens = 2 })
	snapshot := s.refresh()
	if got := names(snapshot); !slices.Equal(got, []string{"a", "m", "n", "o"}) {
		t.Errorf("models %v", got)
	}
	for _, c := range []struct {
		name, credential string
		shared           bool
	}{
		{"m", "credential of p in ws_a", true}, // a shared model runs on the workspace's own account
		{"n", "credential of p in ws_a", false},
		{"o", "credential of p in ws_a", true},
	} {
		target, _ := snapshot.Resolve(c.name)
		if target.Credential != c.credential || target.Shared != c.shared || target.Model.ID != "m_"+c.name || target.Provider.Name != "p" {
			t.Errorf("%s: %+v", c.name, target)
		}
	}
	other := tenant.NewWorkspace("ws_b", "other")
	s.workspace(other)
	snapshot, err := s.directory.Refresh(t.Context(), "ws_b")
	if err != nil {
		t.Fatal(err)
	}
	if target, _ := snapshot.Resolve("n"); target.Credential != "credential of q in " || target.Model.MaxOutputTokens != 0 {
		t.Errorf("another workspace got %+v", target)
	}
	other.Inherit = false
	s.workspace(other)
	s.model("ws_b", "x", "p", nil) // whose provider is not inherited
	if snapshot, err = s.directory.Refresh(t.Context(), "ws_b"); err != nil || len(names(snapshot)) != 0 {
		t.Errorf("without inheriting: %v, %v", names(snapshot), err)
	}
}

func TestAModelThatCannotBeUsedIsLeftOutAlone(t *testing.T) {
	s := newShop(t)
	s.provider("", "p")
	s.model("", "good", "p", nil)
	s.model("", "lost", "nowhere", nil)
	s.model("", "shadowed", "p", func(m *route.Model) { m.Aliases = []string{"alias"} })
	s.model("ws_a", "shadowed", "nowhere", nil)
	s.put("ws_a", directory.KindModel, "m_broken", "good-too", []byte(`{"upstream":"x","unheard_of":1}`), nil)
	s.model("", "good-too", "p", nil)
	s.put("", directory.KindProvider, "pr_odd", "odd", []byte(`{"protocol":"telepathy"}`), nil)
	s.model("", "odd-one", "odd", nil)
	snapshot := s.refresh()
	// Neither takes the shared model of its name its place: that has another
	// provider and another price.
	if got := names(snapshot); !slices.Equal(got, []string{"good"}) {
		t.Errorf("models %v", got)
	}
	problems := strings.Join(s.directory.Problems("ws_a"), "\n")
	for _, want := range []string{"model lost: there is no provider nowhere", "model shadowed:", "model good-too:", "model odd-one: provider odd:"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is not among\n%s", want, problems)
		}
	}
	if n := len(s.directory.Problems("ws_a")); n != 4 || s.directory.Problems("ws_never") != nil {
		t.Errorf("%d problems", n)
	}
	s.key("ws_a", "k1", nil)
	s.refresh() // of keys alone
	if n := len(s.directory.Problems("ws_a")); n != 4 {
		t.Errorf("%d problems after a change of a key", n)
	}
	s.provider("", "nowhere")
	if got := names(s.refresh()); !slices.Equal(got, []string{"good", "lost", "shadowed"}) {
		t.Errorf("models %v", got)
	}
}

func TestAWorkspaceWhoseLimitsCannotBeReadLetsNothingThrough(t *testing.T) {
	s := newShop(t)
	secret := s.key("ws_a", "k1", nil)
	s.workspace(tenant.NewWorkspace("ws_b", "other"))
	good := s.key("ws_b", "k2", nil)
	_, before := s.must(secret)
	_, _ = s.must(good)
	s.put("ws_a", directory.KindWorkspace, "ws_a", "acme", []byte(`{"type":"enterprise","funds":"borrowed"}`), nil)
	if _, err := s.directory.Refresh(t.Context(), "ws_a"); err == nil {
		t.Error("it was read")
	}
	// The old snapshot stays with its generation: the ledger calls it stale.
	if _, snapshot := s.must(secret); snapshot.Generation != before.Generation {
		t.Errorf("generation %d, was %d", snapshot.Generation, before.Generation)
	}
	s.workspace(tenant.NewWorkspace("ws_b", "renamed"))
	if err := s.directory.RefreshAll(t.Context()); err == nil {
		t.Error("nobody heard of it")
	}
	if _, snapshot := s.must(good); snapshot.Workspace.Name != "renamed" {
		t.Error("one workspace kept another from its refresh")
	}
	s.workspace(tenant.NewWorkspace("ws_a", "acme"))
	s.refresh()
	s.must(secret)
}

func TestPricesComeFromTheModelElseTheCatalogue(t *testing.T) { // PRC-1, PRC-2, BR-031, BR-129
	s := newShop(t)
	p := route.NewProvider("", "")
	p.BaseURL = "https://api.openai.com/v1"
	body, err := route.EncodeProvider(p)
	s.put("", directory.KindProvider, "pr_any", "any-name", body, err)
	s.provider("", "p")
	set := func(r *price.Row) func(*route.Model) {
		return func(m *route.Model) { m.Prices, m.Upstream = price.Schedule{r.Seal()}, "gpt-4o-mini" }
	}
	s.model("", "listed", "any-name", func(m *route.Model) { m.Upstream = "gpt-4o-mini" })
	s.model("", "own", "any-name", set(&price.Row{Model: "own", Source: price.SourceOverride, Input: perMillion("2"), Output: perMillion("6")}))
	s.model("", "partly", "any-name", set(&price.Row{Model: "partly", Source: price.SourceOverride, Input: perMillion("2")}))
	s.model("", "nowhere-listed", "p", func(m *route.Model) { m.Upstream = "nobody-has-this" })
	s.model("", "custom", "p", set(&price.Row{Model: "custom", Source: price.SourceOverride, Input: perMillion("2"), Output: perMillion("6")}))
	s.model("", "free", "any-name", func(m *route.Model) { m.Free, m.Upstream = true, "gpt-4o-mini" })
	snapshot := s.refresh()
	listed, _ := snapshot.Resolve("listed")
	if listed.Price == nil || listed.Price.Source != price.SourceBuiltIn {
		t.Fatalf("the catalogue's price is %+v", listed.Price)
	}
	cost := func(name string) money.Nanos {
		target, _ := snapshot.Resolve(name)
		n, err := target.Price.Charge(call.Usage{Input: 1_000_000, Output: 1_000_000, Requests: 1})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	output, err := listed.Price.Charge(call.Usage{Output: 1_000_000, Requests: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]money.Nanos{
		"own": 8 * money.Dollar, "custom": 8 * money.Dollar, "partly": 2*money.Dollar + output, "free": 0,
	} {
		if got := cost(name); got != want {
			t.Errorf("%s costs %s, want %s", name, got, want)
		}
	}
	if target, _ := snapshot.Resolve("nowhere-listed"); target.Price != nil {
		t.Errorf("a price of nothing: %+v", target.Price)
	}
	if target, _ := snapshot.Resolve("free"); !target.Price.IsFree() {
		t.Error("price: free is not free")
	}
}

func TestARefreshReadsWhatHasChangedAlone(t *testing.T) {
	s := newShop(t)
	for i := range 20 {
		s.provider("", fmt.Sprintf("p%d", i))
	}
	s.model("", "m", "p1", nil)
	secret := s.key("ws_a", "k1", nil)
	_, first := s.must(secret)
	read := s.store.credentials.Load()
	if again := s.refresh(); again != first {
		t.Error("nothing has changed, and a new snapshot was made")
	}
	s.key("ws_a", "k2", nil)
	if next := s.refresh(); next.Generation <= first.Generation || len(names(next)) != 1 {
		t.Errorf("generation %d after %d", next.Generation, first.Generation)
	}
	s.provider("", "p1")
	s.refresh()
	if n := s.store.credentials.Load() - read; n != 1 {
		t.Errorf("one provider has changed, %d credentials were read", n)
	}
	s.workspace(tenant.NewWorkspace("ws_b", "other"))
	if _, err := s.directory.Refresh(t.Context(), "ws_b"); err != nil {
		t.Fatal(err)
	}
	if n := s.store.credentials.Load() - read; n != 1 {
		t.Errorf("what is shared was read again for another workspace: %d credentials", n)
	}
	s.retire("", directory.KindModel, "m_m", "m")
	if got := names(s.refresh()); len(got) != 0 {
		t.Errorf("models %v", got)
	}
}

func TestASettingOfTheWorkspaceComesWithItsZone(t *testing.T) { // CAP-3
	s := newShop(t)
	w := tenant.NewWorkspace("ws_a", "acme")
	w.Zone, w.ZoneEpoch = "Asia/Kathmandu", 3
	s.workspace(w)
	if got := s.refresh(); got.Zone.String() != "Asia/Kathmandu" || got.Workspace.ZoneEpoch != 3 || got.Workspace.ID != "ws_a" {
		t.Errorf("got %+v in %s", got.Workspace, got.Zone)
	}
}

// A key changes on one replica. The other, which has it in memory, builds an
// operation that the ledger calls stale, refreshes, and decides by the new limit.
func TestAChangeOnAnotherReplicaHoldsForTheNextAdmission(t *testing.T) { // ADM-4, ENGINE 13, BR-155, BR-222
	t.Run("memory", func(t *testing.T) {
		twoReplicas(t, memory.New(memory.Options{Clock: clock.NewManual(start)}))
	})
	t.Run("sqlite", func(t *testing.T) {
		file, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Clock: clock.NewManual(start)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		}()
		twoReplicas(t, file)
	})
}

// full is a store with every role that the two replicas need.
type full interface {
	store.Book
	store.Objects
	store.Secrets
}

func twoReplicas(t *testing.T, book full) {
	t.Helper()
	catalogue, err := price.Load()
	if err != nil {
		t.Fatal(err)
	}
	here, err := directory.New(t.Context(), book, clock.NewManual(start), catalogue)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "brought-by-somebody-0001"
	version := map[string]int64{}
	change := func(e store.Edit, body []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		e.Object.Body, e.Expect = body, version[e.Object.ID]
		version[e.Object.ID]++
		if err := book.Change(t.Context(), start, []store.Edit{e}); err != nil {
			t.Fatal(err)
		}
	}
	key := func(disabled bool, e store.Edit) {
		t.Helper()
		e.Object = store.Object{Workspace: "ws_c", Kind: store.KindKey, ID: "k1", Name: "k1"}
		body, err := tenant.EncodeKey(&tenant.Key{Disabled: disabled})
		change(e, body, err)
	}
	body, err := tenant.EncodeWorkspace(tenant.NewWorkspace("ws_c", "c"))
	change(store.Edit{Object: store.Object{Workspace: "ws_c", Kind: directory.KindWorkspace, ID: "ws_c", Name: "c"}}, body, err)
	key(false, store.Edit{AddSecret: &store.KeySecret{Hash: tenant.HashSecret(secret)}})

	made := byte(0)
	try := func() ledger.Result {
		t.Helper()
		made++
		k, snapshot, err := here.Identify(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		plan := admit.Build(admit.Request{
			ID: ledger.NewID(start, [10]byte{made}), Key: k, Snapshot: snapshot,
			Call: &call.Call{Model: "m", OutputBound: call.NoBound, Completions: 1}, HoldMicros: second,
		})
		results, err := book.Apply(t.Context(), []*ledger.Op{plan.Op})
		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}
	if got := try(); got.Verdict != ledger.Refused || got.Refusal.Check.Code != "model_not_found" {
		t.Fatalf("got %+v", got)
	}
	key(true, store.Edit{}) // by another process
	if got := try(); got.Verdict != ledger.Stale {
		t.Fatalf("verdict %d, want stale", got.Verdict)
	}
	if _, err := here.Refresh(t.Context(), "ws_c"); err != nil {
		t.Fatal(err)
	}
	if got := try(); got.Verdict != ledger.Refused || got.Refusal.Check.Code != "apikey_inactive" {
		t.Fatalf("got %+v", got)
	}
	key(false, store.Edit{ExpireSecrets: at(start)})
	if got := try(); got.Verdict != ledger.Stale {
		t.Fatalf("verdict %d, want stale", got.Verdict)
	}
	if _, err := here.Refresh(t.Context(), "ws_c"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := here.Identify(t.Context(), secret); err == nil {
		t.Error("a secret that was rotated away works")
	}
}

func TestMemoryDoesNotGrowWithMadeUpSecrets(t *testing.T) { // KEY-2
	s := newShop(t)
	s.must(s.key("ws_a", "k1", nil))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 100_000 {
		if i%100 == 0 {
			s.clock.Advance(time.Second)
		}
		_, _, _ = s.identify(fmt.Sprintf("sk-made-up-%010d", i))
	}
	if grown := int64(heap()) - int64(before); grown > 4<<20 {
		t.Errorf("grew by %d bytes", grown)
	}
	runtime.KeepAlive(s)
}
