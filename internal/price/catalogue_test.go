// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/price"
)

func load(t testing.TB) *price.Catalogue {
	t.Helper()
	c, err := price.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// PRC-2. The numbers of models are those that the source's own code counts.
func TestTheBuiltInCatalogueIsReadWhole(t *testing.T) {
	c := load(t)
	if c.Source() != "@pydantic/genai-prices 0.1.8" || c.Date() != "2026-09-23" {
		t.Errorf("made from %q of %q", c.Source(), c.Date())
	}
	priced := 0
	for _, entry := range c.List(price.Filter{}) {
		r, ok := entry.Row()
		if !ok {
			continue
		}
		priced++
		if r.Source != price.SourceBuiltIn || r.Date != c.Date() || r.Model != entry.Model || r.IsEmpty() {
			t.Errorf("%s: row %+v", entry, r)
		}
	}
	for provider, want := range map[string]int{"": 1694, "openai": 93, "anthropic": 23, "google": 56, "openrouter": 701, "none": 0} {
		if got := len(c.List(price.Filter{Provider: provider})); got != want {
			t.Errorf("%d models of %q, want %d", got, provider, want)
		}
	}
	if want := 1694 - 177; priced != want {
		t.Errorf("%d models have a price, want %d", priced, want)
	}
	if n := len(c.List(price.Filter{Provider: "openai", Contains: "GPT-4O-MINI"})); n < 2 {
		t.Errorf("%d models are called gpt-4o-mini", n)
	}
}

// The wanted figures were printed by the source package's own JavaScript, not
// read from our text.
func TestWellKnownModelsHaveTheSourcesFigures(t *testing.T) {
	c := load(t)
	for _, w := range wellKnown {
		r, ok := c.Find(w.provider, w.model)
		if !ok {
			t.Errorf("%s %s is not in the catalogue", w.provider, w.model)
			continue
		}
		want := row(t, w.want)
		want.Model, want.Source, want.ValidFromMicros = r.Model, r.Source, r.ValidFromMicros
		if want.Seal().ID != r.ID {
			got, _ := r.AppendJSON(nil)
			t.Errorf("%s %s is %s, want %v", w.provider, w.model, got, w.want)
		}
	}
}

func TestNamesAreFoundByTheSourcesRules(t *testing.T) {
	c := load(t)
	for _, n := range []struct{ provider, model, want string }{
		{"openai", "gpt-4o", "openai gpt-4o"},
		{"openai", " GPT-4o ", "openai gpt-4o"},
		{"OpenAI", "gpt-4o-mini-2024-07-18", "openai gpt-4o-mini"},
		{"", "gpt-4o-mini", "openai gpt-4o-mini"},
		{"", "claude-sonnet-4-20250514", "anthropic claude-sonnet-4-0"},
		{"gemini", "gemini-2.5-pro-preview-05-06", "google gemini-2.5-pro"},
		{"google", "gemini-2.5-pro-preview-tts", "google gemini-2.5-pro-tts"},
		{"azure", "deepseek-chat", "deepseek deepseek-chat"},
		{"azure", "gpt-4o-20240806", "openai gpt-4o"},
		{"bedrock", "amazon.nova-lite-v1:0", "aws amazon.nova-lite-v1:0"},
		{"openai", "llama3.3", "-"},
		{"ollama", "gpt-4o", "-"},
		{"openai", "", "-"},
		{"", "", "-"},
		{"github-copilot", "gpt-4o", "github-copilot gpt-4o"},
	} {
		got := "-"
		if entry, ok := c.Lookup(n.provider, n.model); ok {
			got = entry.String()
		}
		if got != n.want {
			t.Errorf("%q of %q is %s, want %s", n.model, n.provider, got, n.want)
		}
	}
	// The source knows the model and no price for it: that is not zero.
	if r, ok := c.Find("github-copilot", "gpt-4o"); ok {
		t.Errorf("a model without a price has %+v", r)
	}
	for url, want := range map[string]string{
		"https://api.openai.com/v1": "openai", "https://x.openai.azure.com/openai": "azure", "https://openrouter.ai/api/v1": "openrouter",
		"https://generativelanguage.googleapis.com/v1beta": "google", "http://127.0.0.1:11434/v1": "", "https://evil.test/https://api.openai.com": "",
	} {
		if got, ok := c.ProviderAt(url); got != want || ok != (want != "") {
			t.Errorf("the provider at %s is %q", url, got)
		}
	}
}

func instant(t *testing.T, s string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

func TestPricesChangeOnTheirDayAndHour(t *testing.T) {
	c := load(t)
	for _, n := range []struct{ provider, model, at, input string }{
		{"openai", "o3", "2025-06-09T23:59:59Z", "10"},
		{"openai", "o3", "2025-06-10T00:00:00Z", "2"},
		{"openai", "o3", "", "2"},
		{"google", "gemini-3.6-flash", "2026-12-31T23:59:59Z", "0.75"},
		{"google", "gemini-3.6-flash", "2027-01-01T00:00:00Z", "1.5"},
		{"google", "gemini-3.6-flash", "", "0.75"},
		{"deepseek", "deepseek-chat", "2026-01-01T00:29:59Z", "0.135"},
		{"deepseek", "deepseek-chat", "2026-01-01T00:30:00Z", "0.27"},
		{"deepseek", "deepseek-chat", "2026-01-01T16:29:59Z", "0.27"},
		{"deepseek", "deepseek-chat", "2026-01-01T16:30:00Z", "0.135"},
		{"deepseek", "deepseek-chat", "1969-12-31T12:00:00Z", "0.27"},
		{"deepseek", "deepseek-chat", "", "0.27"},
	} {
		entry, ok := c.Lookup(n.provider, n.model)
		if !ok {
			t.Fatalf("%s is not in the catalogue", n.model)
		}
		r, ok := entry.Row()
		if n.at != "" {
			r, ok = entry.RowAt(instant(t, n.at))
		}
		if !ok || r.Input.String() != n.input {
			t.Errorf("%s at %q costs %s, want %s", n.model, n.at, r.Input, n.input)
		}
	}
}

func TestWithoutAnHourTheDearestOfTheDayHolds(t *testing.T) {
	c := load(t)
	midnight := instant(t, c.Date()+"T00:00:00Z")
	for _, entry := range c.List(price.Filter{}) {
		dearest, ok := entry.Row()
		if !ok {
			continue
		}
		most, _ := dearest.Charge(call.Usage{Input: 1e6})
		for hour := range int64(24) {
			r, _ := entry.RowAt(midnight + hour*int64(time.Hour/time.Microsecond))
			if n, _ := r.Charge(call.Usage{Input: 1e6}); n > most {
				t.Errorf("%s costs %s at %d o'clock and %s without an hour", entry, n, hour, most)
			}
		}
	}
}

const catalogueHead = "source\ts 1\ndate\t2026-01-02\nprovider\tp\tnames==q\tmodels=^m\taddress=https://p\n"

func TestABrokenCatalogueNamesItsLine(t *testing.T) {
	if _, err := price.ParseCatalogue("# c\n\n" + catalogueHead + "m\t=m\t9\tinput=1 !video\tfrom=2026-01-03 input=2\tinput=3 hours=22:00:00-02:00:00\n"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"an unknown price":         {catalogueHead + "m\t=m\t0\tinptu=1\n", 4},
		"a price twice as long":    {catalogueHead + "m\t=m\t0\tinput=0.0000000001\n", 4},
		"a dear price":             {catalogueHead + "m\t=m\t0\tinput=10001\n", 4},
		"no prices":                {catalogueHead + "m\t=m\t0\n", 4},
		"a context of words":       {catalogueHead + "m\t=m\tbig\tinput=1\n", 4},
		"a context below zero":     {catalogueHead + "m\t=m\t-1\tinput=1\n", 4},
		"a rule of another kind":   {catalogueHead + "m\t?m\t0\tinput=1\n", 4},
		"a rule without a value":   {catalogueHead + "m\t=\t0\tinput=1\n", 4},
		"a pattern that is broken": {catalogueHead + "m\t/(\t0\tinput=1\n", 4},
		"a group that stays open":  {catalogueHead + "m\tall( =m\t0\tinput=1\n", 4},
		"a group that was closed":  {catalogueHead + "m\t=m )\t0\tinput=1\n", 4},
		"an empty group":           {catalogueHead + "m\tany( )\t0\tinput=1\n", 4},
		"groups without end":       {catalogueHead + "m\t" + strings.Repeat("any( ", 99) + "\t0\tinput=1\n", 4},
		"a day that is none":       {catalogueHead + "m\t=m\t0\tfrom=2026-02-30 input=1\n", 4},
		"an hour that is none":     {catalogueHead + "m\t=m\t0\thours=24:00:00-01:00:00 input=1\n", 4},
		"half of the hours":        {catalogueHead + "m\t=m\t0\thours=10:00:00 input=1\n", 4},
		"a provider twice":         {catalogueHead + "provider\tp\n", 4},
		"a provider's new field":   {catalogueHead + "provider\tr\tx=1\n", 4},
		"a model without provider": {"date\t2026-01-02\nm\t=m\t0\tinput=1\n", 2},
		"a model before the date":  {"provider\tp\nm\t=m\t0\tinput=1\n", 2},
		"a date that is none":      {"date\tsoon\n", 1},
	} {
		_, err := price.ParseCatalogue(c.text)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line %d:", c.line)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for name, text := range map[string]string{"nothing": "", "no source": "date\t2026-01-02\n", "resells nobody": catalogueHead + "provider\tr\tresells=x\n"} {
		if _, err := price.ParseCatalogue(text); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

func TestAGroupOfRulesHoldsAsItSays(t *testing.T) {
	c, err := price.ParseCatalogue(catalogueHead +
		"both\tall( ^a $z )\t0\tinput=1\n" + "not\tall( ^b none( ~x /\\d ) )\t0\tinput=1\n" + "either\tall( any( =c1 =c2 ) ~c )\t0\tinput=1\n" +
		"exact\t=az9 ^q\t0\tinput=1\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a-z": "p both", "a": "-", "b": "p not", "bx": "-", "b1": "-", "c2": "p either", "c3": "-", "az9": "p exact", "Q1": "p exact", "exact": "p exact",
	} {
		got := "-"
		if entry, ok := c.Lookup("q", name); ok {
			got = entry.String()
		}
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
