// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// openAI declares a provider that the catalogue knows by its address, and models
// of it by their upstream names.
func openAI(t *testing.T, upstream ...string) []admin.Declared {
	t.Helper()
	p := route.NewProvider("", "")
	p.BaseURL = "https://api.openai.com/v1"
	body, err := route.EncodeProvider(p)
	if err != nil {
		t.Fatal(err)
	}
	list := []admin.Declared{{Kind: admin.KindProvider, Name: "up", Body: body, Credential: "sk-very-secret", Line: 1}}
	for i, name := range upstream {
		body, err := route.EncodeModel(&route.Model{Name: name, Provider: "up", Upstream: name})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, admin.Declared{Kind: admin.KindModel, Name: name, Body: body, Line: i + 2})
	}
	return list
}

// lite is LiteLLM's list of models by their price of input, dollars a token.
func lite(inputs map[string]string) json.RawMessage {
	var models []string
	for name, input := range inputs {
		models = append(models, fmt.Sprintf(`%q:{"litellm_provider":"openai","mode":"chat","input_cost_per_token":%s,"output_cost_per_token":1e-05}`, name, input))
	}
	return json.RawMessage("{" + strings.Join(models, ",") + "}")
}

func names(changes []admin.PriceChange) string {
	var list []string
	for _, c := range changes {
		list = append(list, c.Provider+"/"+c.Model)
	}
	return strings.Join(list, " ")
}

func (w *world) importPrices(r admin.PriceImportRequest) admin.PriceImportAnswer {
	w.t.Helper()
	out, err := w.PriceImport(w.t.Context(), system, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// inForce is the price of a million tokens of a model's input, and its source.
func (w *world) inForce(model string) string {
	w.t.Helper()
	out, err := w.PriceShow(w.t.Context(), system, admin.PriceShowRequest{Model: model})
	if err != nil {
		w.t.Fatal(err)
	}
	if out.Price == nil {
		return "none"
	}
	return strings.TrimSpace(out.Price.Input + " " + out.Price.Source + " " + out.Price.StaleSince)
}

// PRC-2: override > imported > built-in; a row in use is never removed but marked
// stale; a dry run changes nothing; all of it audited, in force everywhere.
func TestAnImportedListIsInForceUntilTheNextOne(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.apply(append(openAI(t, "gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gone-soon"), declaredModel(t, "m1", 9))...)
		if got := w.inForce("gpt-4o-mini"); got != "0.15 built-in" {
			t.Fatalf("at first it is %s", got)
		}
		first := admin.PriceImportRequest{Body: lite(map[string]string{
			"gpt-4o-mini": "2e-07", "gone-soon": "3e-07", "gone-too": "4e-07", "m1": "5e-07", "wrong": "-1e-07",
		})}
		first.DryRun = true
		if dry := w.importPrices(first); len(dry.Added) != 4 || !dry.DryRun || w.inForce("gpt-4o-mini") != "0.15 built-in" {
			t.Errorf("a dry run: %+v", dry)
		}
		first.DryRun = false
		out := w.importPrices(first)
		if out.Format != "litellm" || out.Date != "2026-03-04" || names(out.Added) != "openai/gone-soon openai/gone-too openai/gpt-4o-mini openai/m1" ||
			len(out.Skipped) != 1 || out.Skipped[0].Model != "wrong" || !out.Added[0].InUse || out.Added[1].InUse {
			t.Errorf("imported %+v", out)
		}
		for model, want := range map[string]string{
			"gpt-4o-mini": "0.2 imported", "gpt-4o-mini-2024-07-18": "0.15 built-in", "gone-soon": "0.3 imported", "m1": "1 override",
		} {
			if got := w.inForce(model); got != want {
				t.Errorf("%s is %s, want %s", model, got, want)
			}
		}
		if again := w.importPrices(first); again.Unchanged != 4 || len(again.Added)+len(again.Changed)+len(again.Removed) != 0 {
			t.Errorf("the same again: %+v", again)
		}
		w.clock.Advance(24 * time.Hour)
		next := w.importPrices(admin.PriceImportRequest{Body: lite(map[string]string{"gpt-4o-mini": "2.5e-07", "new": "1e-06"})})
		if names(next.Changed) != "openai/gpt-4o-mini" || names(next.Stale) != "openai/gone-soon openai/m1" || names(next.Removed) != "openai/gone-too" ||
			names(next.Added) != "openai/new" || next.Changed[0].Before[0]["input"] != "0.2" || next.Changed[0].After[0]["input"] != "0.25" {
			t.Errorf("the next list: %+v", next)
		}
		if got := w.inForce("gone-soon"); got != "0.3 imported 2026-03-05" {
			t.Errorf("what is in use and gone is %s", got)
		}
		if got := w.inForce("gpt-4o-mini"); got != "0.25 imported" {
			t.Errorf("what changed is %s", got)
		}
		other, err := directory.New(t.Context(), w.book, w.clock, w.options.Prices)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := other.Snapshot(t.Context(), tenant.DefaultWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		if target, _ := snapshot.Resolve("gpt-4o-mini"); target.Price.Input.String() != "0.25" {
			t.Errorf("another replica has %s", target.Price.Input)
		}
		w.importIsAudited()
	})
}

func (w *world) importIsAudited() {
	w.t.Helper()
	audit, err := w.AuditList(w.t.Context(), admin.Actor{Name: "a", Role: admin.System}, admin.AuditListRequest{Limit: 1000, Shared: true})
	if err != nil {
		w.t.Fatal(err)
	}
	seen := ""
	for _, e := range audit.Entries {
		if e.Action == "prices.import" {
			seen += fmt.Sprintf("%s %s %s > %s\n", e.Actor, e.Name, e.Before, e.After)
		}
	}
	for _, want := range []string{`"gpt-4o-mini"`, `"gone-too"`, "openai"} {
		if !strings.Contains(seen, want) {
			w.t.Errorf("the audit lacks %s:\n%s", want, seen)
		}
	}
}

// PRC-2: lists stand beside each other; the last one that has a model prices it.
func TestARowOfAnotherListStays(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.importPrices(admin.PriceImportRequest{Body: lite(map[string]string{"a": "1e-06", "b": "1e-06"})})
		other := w.importPrices(admin.PriceImportRequest{Body: json.RawMessage(`{"openai":{"models":{"b":{"cost":{"input":2,"output":2}},"c":{"cost":{"input":3,"output":3}}}}}`)})
		if other.Format != "models.dev" || names(other.Changed) != "openai/b" || names(other.Added) != "openai/c" || len(other.Removed) != 0 || other.Unchanged != 1 {
			t.Errorf("beside: %+v", other)
		}
		list, err := w.PriceList(t.Context(), system, admin.PriceListRequest{Provider: "openai", Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		shown := ""
		for _, e := range list.Prices {
			if e.Price != nil && e.Price.Source == price.SourceImported {
				shown += e.Model + " " + e.Price.Input + " " + e.Price.List + " " + e.Price.Date + "\n"
			}
		}
		if shown != "a 1 litellm 2026-03-04\nb 2 models.dev 2026-03-04\nc 3 models.dev 2026-03-04\n" {
			t.Errorf("listed:\n%s", shown)
		}
	})
}

func TestAWrongListIsRefusedAndChangesNothing(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		for name, r := range map[string]admin.PriceImportRequest{
			"no list":        {Body: json.RawMessage(`{"a":1}`)},
			"no JSON":        {Body: json.RawMessage(`{`)},
			"another format": {Format: "models.dev", Body: lite(map[string]string{"a": "1e-06"})},
			"no date":        {Date: "today", Body: lite(map[string]string{"a": "1e-06"})},
		} {
			_, err := w.PriceImport(t.Context(), system, r)
			refused(t, err, fault.InvalidRequest)
			if err == nil {
				t.Errorf("%s was taken", name)
			}
		}
		// A slip is told and not taken, until somebody means it (BR-130).
		dear := admin.PriceImportRequest{Body: lite(map[string]string{"slip": "0.15"})}
		if out := w.importPrices(dear); len(out.Added) != 0 || len(out.Skipped) != 1 {
			t.Errorf("a slip: %+v", out)
		}
		dear.Confirm = true
		if out := w.importPrices(dear); names(out.Added) != "openai/slip" {
			t.Errorf("a meant one: %+v", out)
		}
	})
}

// A list is larger than other bodies may be.
func TestAListOfManyMegabytesIsTaken(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		models := map[string]string{}
		for i := range 15_000 {
			models[fmt.Sprintf("model-%05d", i)] = "1e-06"
		}
		h := w.handler(as(system))
		body := string(lite(models))
		got, _ := send(h, http.MethodPost, "/api/v1/prices/import", body)
		if len(body) < 1<<20 || got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"listed":15000`) {
			t.Errorf("%d bytes: %d %.200s", len(body), got.Code, got.Body)
		}
	})
}

// PRC-2, MON-2: any usage, units and service tiers included, part by part.
func TestACostIsShownPartByPart(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		row, err := price.ParseSpec("m", price.Spec{Fields: map[string]string{
			"input": "1.75", "output": "14", "factor.batch": "1/2", "service_tier.priority.output": "28", "per_second_input": "0.0001", "per_image": "0.04", "per_tool_call.web_search": "0.01",
		}})
		if err != nil {
			t.Fatal(err)
		}
		body, err := route.EncodeModel(&route.Model{Name: "m", Provider: "up", Upstream: "m", Prices: price.Schedule{row}})
		if err != nil {
			t.Fatal(err)
		}
		w.apply(declaredProvider(t, 1, nil), admin.Declared{Kind: admin.KindModel, Name: "m", Body: body, Line: 2})
		for _, c := range []struct {
			usage       admin.CostFields
			cost, exact string
			lines       int
		}{
			{admin.CostFields{Input: 33, Output: 57, ServiceTier: "batch"}, "0.000427875", "0.000427875", 2}, // BR-092
			{admin.CostFields{Input: 1, ServiceTier: "batch"}, "0.000000875", "0.000000875", 1},
			{admin.CostFields{Input: 1, Output: 1, ServiceTier: "priority"}, "0.00002975", "0.00002975", 2},
			{admin.CostFields{AudioInputSeconds: "60"}, "0.006", "0.006", 1}, // BR-081
			{admin.CostFields{AudioInputSeconds: "8.470001"}, "0.000847001", "0.0008470001", 1},
			{admin.CostFields{Images: 2, ToolCalls: map[string]int64{"web_search": 3}}, "0.11", "0.11", 2},
		} {
			c.usage.Model = "m"
			out, err := w.PriceCost(t.Context(), system, admin.PriceCostRequest{Body: c.usage})
			if err != nil || out.Cost != c.cost || out.Exact != c.exact || len(out.Lines) != c.lines {
				t.Errorf("%+v costs %+v, %v; want %s of %s", c.usage, out, err, c.cost, c.exact)
			}
		}
		for _, c := range []struct {
			usage admin.CostFields
			code  fault.Code
		}{
			{admin.CostFields{ToolCalls: map[string]int64{"file_search": 1}}, fault.ModelUnpriced},
			{admin.CostFields{AudioOutputSeconds: "1"}, fault.ModelUnpriced},
			{admin.CostFields{AudioInputSeconds: "0.0000001"}, fault.InvalidRequest},
			{admin.CostFields{AudioInputSeconds: "-1"}, fault.InvalidRequest},
			{admin.CostFields{AudioInputSeconds: "1000000001"}, fault.InvalidRequest},
			{admin.CostFields{ToolCalls: map[string]int64{"web_search": -1}}, fault.InvalidRequest},
			{admin.CostFields{Images: 2_000_000_000}, fault.InvalidRequest},
		} {
			c.usage.Model = "m"
			_, err := w.PriceCost(t.Context(), system, admin.PriceCostRequest{Body: c.usage})
			refused(t, err, c.code)
		}
		tier, err := w.PriceCost(t.Context(), system, admin.PriceCostRequest{Body: admin.CostFields{Model: "m", Input: 1, ServiceTier: "flex"}})
		if err != nil || !tier.TierUnpriced || tier.Factor != "1/1" {
			t.Errorf("a tier without a factor: %+v, %v", tier, err)
		}
		tier, err = w.PriceCost(t.Context(), system, admin.PriceCostRequest{Body: admin.CostFields{Model: "m", Input: 1, ServiceTier: "priority"}})
		if err != nil || tier.TierUnpriced || tier.Factor != "" || tier.Price.ServiceTier["priority"].Output != "28" {
			t.Errorf("a tier with prices of its own: %+v, %v", tier, err)
		}
	})
}
