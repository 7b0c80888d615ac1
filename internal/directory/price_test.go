// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

func input(t *testing.T, s *admit.Snapshot, model string) string {
	t.Helper()
	target, _ := s.Resolve(model)
	if target == nil || target.Price == nil || target.Price.Input == nil {
		return ""
	}
	return target.Price.Input.String()
}

func importOf(t *testing.T, provider, model, perMillionInput string) []byte {
	t.Helper()
	row := &price.Row{Model: model, Source: price.SourceImported, Input: perMillion(perMillionInput), Output: perMillion("1")}
	i, err := price.NewImport(provider, []*price.Row{row.Seal()})
	if err != nil {
		t.Fatal(err)
	}
	body, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// PRC-1: the price of the admission's instant decides, on a replica that reads
// nothing new; what was built before keeps its row.
func TestADatedPriceComesIntoForceAtItsInstant(t *testing.T) {
	s := newShop(t)
	s.provider("", "p")
	change := start + int64(time.Hour/time.Microsecond)
	s.model("", "m", "p", func(m *route.Model) {
		now := &price.Row{Model: "m", Source: price.SourceOverride, Input: perMillion("1"), Output: perMillion("1")}
		then := &price.Row{Model: "m", Source: price.SourceOverride, Input: perMillion("2"), Output: perMillion("1"), ValidFromMicros: change}
		m.Prices = price.Schedule{now.Seal(), then.Seal()}
	})
	secret := s.key("ws_a", "k", nil)
	_, before := s.must(secret)
	s.clock.Set(change - 1)
	if _, same := s.must(secret); same != before || input(t, same, "m") != "1" {
		t.Errorf("before the instant it costs %q", input(t, same, "m"))
	}
	s.clock.Set(change)
	_, after := s.must(secret)
	if input(t, after, "m") != "2" || input(t, before, "m") != "1" || after.Generation != before.Generation {
		t.Errorf("from the instant on it costs %q, and before %q", input(t, after, "m"), input(t, before, "m"))
	}
	if _, same := s.must(secret); same != after {
		t.Error("nothing has changed, and a new snapshot was made")
	}
}

// PRC-2: override > imported > built-in, on every replica that follows.
func TestImportedPricesAreInForceWhereTheyAreShared(t *testing.T) {
	s := newShop(t)
	p := route.NewProvider("", "")
	p.BaseURL = "https://api.openai.com/v1"
	body, err := route.EncodeProvider(p)
	s.put("", route.KindProvider, "pr_any", "any-name", body, err)
	s.model("", "m", "any-name", func(m *route.Model) { m.Upstream = "gpt-4o-mini" })
	s.model("", "own", "any-name", func(m *route.Model) {
		row := &price.Row{Model: "own", Source: price.SourceOverride, Input: perMillion("9"), Output: perMillion("9")}
		m.Upstream, m.Prices = "gpt-4o-mini", price.Schedule{row.Seal()}
	})
	apart := tenant.NewWorkspace("ws_b", "apart")
	apart.Inherit = false
	s.workspace(apart)
	s.put("ws_b", route.KindProvider, "pr_own", "any-name", body, nil)
	s.model("ws_b", "m", "any-name", func(m *route.Model) { m.Upstream = "gpt-4o-mini" })
	other := s.replica()
	if snapshot := s.refresh(); input(t, snapshot, "m") != "0.15" {
		t.Fatalf("the catalogue's price is %q", input(t, snapshot, "m"))
	}
	if _, err := other.Snapshot(t.Context(), "ws_a"); err != nil {
		t.Fatal(err)
	}
	s.put("", price.KindImport, "imported:openai", "openai", importOf(t, "openai", "gpt-4o-mini", "0.2"), nil)
	snapshot := s.refresh()
	if input(t, snapshot, "m") != "0.2" || input(t, snapshot, "own") != "9" {
		t.Errorf("imported %q, overridden %q", input(t, snapshot, "m"), input(t, snapshot, "own"))
	}
	if err := other.Follow(t.Context(), []string{""}, snapshot.Generation); err != nil {
		t.Fatal(err)
	}
	if snapshot, err := other.Snapshot(t.Context(), "ws_a"); err != nil || input(t, snapshot, "m") != "0.2" {
		t.Errorf("another replica has %q, %v", input(t, snapshot, "m"), err)
	}
	// SPEC 14: a workspace that says inherit: false has none of what is shared.
	if snapshot, err := s.directory.Snapshot(t.Context(), "ws_b"); err != nil || input(t, snapshot, "m") != "0.15" {
		t.Errorf("a workspace apart has %q, %v", input(t, snapshot, "m"), err)
	}
}
