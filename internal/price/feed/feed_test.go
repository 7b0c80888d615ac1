// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/price/feed"
)

func read(t testing.TB, file string, o feed.Options) *feed.List {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	o.Date = "2026-11-30"
	list, err := feed.Read(text, o)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// shown are the prices of each row, as JSON without what all rows have.
func shown(t testing.TB, list *feed.List) map[string]string {
	t.Helper()
	all := map[string]string{}
	for provider, rows := range list.Rows {
		for _, row := range rows {
			text, err := row.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			if row.Source != price.SourceImported || row.List != list.Format || row.Date != "2026-11-30" {
				t.Errorf("a row of %s says that it is of %s, %s, %s", list.Format, row.Source, row.List, row.Date)
			}
			var members map[string]any
			if err := json.Unmarshal(text, &members); err != nil {
				t.Fatal(err)
			}
			name := provider + " " + row.Model
			if from := members["valid_from_micros"]; from != nil {
				name += " from " + strconv.FormatInt(row.ValidFromMicros, 10)
			}
			for _, common := range []string{"id", "model", "source", "date", "list", "unit", "valid_from_micros"} {
				delete(members, common)
			}
			text, err = json.Marshal(members)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = strings.ReplaceAll(string(text), `"`, "")
		}
	}
	return all
}

func told(notes []feed.Note) []string {
	var list []string
	for _, n := range notes {
		list = append(list, strings.TrimSpace(strings.Join([]string{n.Provider, n.Model, n.Field}, " "))+": "+n.Text)
	}
	slices.Sort(list)
	return list
}

const unknown = ": every price is 0, which lists write for unknown, too: if it is free, declare price: free"

// PRC-2: each list, to the nano-dollar, told by its shape.
func TestAListBecomesExactRows(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"litellm.json": {
			"openai gpt-4o-mini":       "{cached_input:0.075,factor:{priority:5/3},input:0.15,output:0.6,per_tool_call:{web_search:0.03},service_tier:{batch:{input:0.075,output:0.3},flex:{cached_input:0.075,input:0.075}}}",
			"anthropic claude-x":       "{above:{200000:{cache_write_1h:12,input:6,output:22.5}},cache_write_1h:6,cache_write_5m:3.75,cached_input:0.3,input:3,output:15,per_tool_call:{web_search:0.01}}",
			"google gemini-x":          "{audio_input:1,cached_audio_input:0.1,input:1.25,output:10,service_tier:{flex:{input:0.625,output:5.5}}}",
			"google gemini-tiers":      "{above:{200000:{input:2.5,output:15}},cached_input:0.125,factor:{flex:1/2,priority:9/5},input:1.25,output:10,service_tier:{batch:{cached_input:0.125,input:0.625,output:5}}}",
			"openai a-tier-of-nothing": "{input:0,output:1,service_tier:{priority:{input:1}}}",
			"openai whisper-1":         "{per_second_input:0.0001}",
			"openai gpt-4o-transcribe": "{audio_input:6,input:2.5,output:10}",
			"openai tts-x":             "{per_second_output:0.00025}",
			"openai painter":           "{per_image:0.04}",
			"dashscope ranges":         "{above:{256000:{input:0.25,output:2}},input:0.05,output:0.4}",
			"openai embedder":          "{input:0.02,output:0}",
			"google vertex-only":       "{input:9,output:9}",
			"cohere twice":             "{input:2,output:2}",
		},
		"models.dev.json": {
			"openai gpt-x":       "{above:{272000:{cached_input:0.25,input:2.5,output:15}},cached_input:0.125,input:1.25,output:10}",
			"openai gpt-audio":   "{audio_input:32,audio_output:64,input:2.5,output:10}",
			"anthropic claude-x": "{above:{200000:{cache_write_5m:7.5,cached_input:0.6,input:6,output:22.5}},cache_write_5m:3.75,cached_input:0.3,input:3,output:15}",
		},
		"genai-prices.json": {
			"openai gpt-x":                       "{above:{200000:{cached_input:0.2,input:4,output:18}},cached_input:0.2,input:2,output:12,per_tool_call:{file_search:0.0025,web_search:0.01}}",
			"openai gpt-x-2025-01-01":            "{above:{200000:{cached_input:0.2,input:4,output:18}},cached_input:0.2,input:2,output:12,per_tool_call:{file_search:0.0025,web_search:0.01}}",
			"openai dated":                       "{input:10,output:40}",
			"openai dated from 1781049600000000": "{input:2,output:8}",
			"openai listener":                    "{per_second_input:0.0001}",
			"openai odd-listener":                "{input:1}",
			"openai writes":                      "{cache_write_1h:6,cache_write_5m:3.75,input:3,output:15}",
			"perplexity sonar":                   "{input:1,output:1,per_request:0.012}",
		},
	} {
		list := read(t, file, feed.Options{})
		if format := strings.TrimSuffix(file, ".json"); list.Format != format || list.Count() != len(want) {
			t.Errorf("%s is read as %s, %d rows", file, list.Format, list.Count())
		}
		if diff := cmp.Diff(want, shown(t, list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// PRC-2, BR-130: what is unusual is told by its model and skipped, never zero.
func TestWhatIsUnusualIsToldAndNotTaken(t *testing.T) {
	for file, want := range map[string][2][]string{
		"litellm.json": {
			{
				"databricks a-floats-tail input_cost_per_token: 0.30001999999999996 dollars has more than 9 decimal places",
				"google gpt-4o-mini" + unknown,
				"google thinker output_cost_per_reasoning_token: prices reasoning at 3.5 dollars a million tokens and not as output, of which it is a part",
				"homeless: names no provider",
				"openai a-list input_cost_per_token: is a list and no number",
				"openai a-slip input: is above 10,000 dollars and needs confirm: true (prices are US dollars per million tokens, or for one where the name says per_)",
				`openai in-words input_cost_per_token: is the text "1.5e-07" and no number`,
				"openai negative input_cost_per_token: -1 dollars must not be negative",
				"openai nothing-known" + unknown,
			},
			{
				"cohere twice: is listed twice at different prices: the dearer is taken",
				"google gemini-x service_tier.flex.audio_input: is not listed: it costs what the standard tier does",
				"google gemini-x service_tier.flex.cached_audio_input: is not listed: it costs what the standard tier does",
				"openai a-tier-of-nothing service_tier.priority.output: is not listed: it costs what the standard tier does",
				"openai gpt-4o-mini search_context_cost_per_query: differs by the size of the search: the dearest is taken",
				"openai gpt-4o-mini service_tier.batch.cached_input: is not listed: it costs what the standard tier does",
				"openai gpt-4o-mini service_tier.flex.output: is not listed: it costs what the standard tier does",
				"openai gpt-4o-transcribe input_cost_per_second: is left out: the model is priced by the token, too",
			},
		},
		"models.dev.json": {
			{
				"github-copilot gpt-x" + unknown,
				"openai a-floats-tail cost.input: 0.18000000000000002 dollars has more than 9 decimal places",
				"openai a-slip input: is above 10,000 dollars and needs confirm: true (prices are US dollars per million tokens, or for one where the name says per_)",
				`openai in-words cost.input: is the text "1" and no number`,
				"openai negative cost.output: -2 dollars must not be negative",
				"openai odd-tier cost.tiers: has a tier that is none of the context's length",
				"openai thinker cost.reasoning: prices reasoning at 3 dollars a million tokens and not as output, of which it is a part",
			},
			nil,
		},
		"genai-prices.json": {
			{"openai by-the-hour prices: depend on the hour of the day, which an imported row can't"},
			{"openai odd-listener input_audio_hours: is left out: a second of it is no whole number of nano-dollars"},
		},
	} {
		list := read(t, file, feed.Options{})
		if diff := cmp.Diff(want[0], told(list.Skipped)); diff != "" {
			t.Errorf("%s skipped (-want +got):\n%s", file, diff)
		}
		if diff := cmp.Diff(want[1], told(list.Notes)); diff != "" {
			t.Errorf("%s notes (-want +got):\n%s", file, diff)
		}
		if list.Unpriced != 1 {
			t.Errorf("%s: %d models without a price", file, list.Unpriced)
		}
	}
	confirmed := shown(t, read(t, "models.dev.json", feed.Options{Confirm: true}))
	if got := confirmed["openai a-slip"]; got != "{confirm:true,input:150000,output:1}" {
		t.Errorf("confirmed, the dear row is %s", got)
	}
}

// PRC-2: what another provider resells under the same name prices nothing of the
// first one's, and every home is one that the catalogue knows.
func TestAProviderOfAListHasItsHomeInTheCatalogue(t *testing.T) {
	catalogue, err := price.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"openai": "openai", "gemini": "google", "vertex_ai-openai_models": "google", "vertex_ai": "google", "amazon-bedrock": "aws",
		"bedrock_converse": "aws", "xai": "x-ai", "togetherai": "together", "fireworks_ai": "fireworks", "github_copilot": "github-copilot",
		"moonshot": "moonshotai", "voyage": "voyageai", "bigmodel": "zhipuai", "azure_ai": "azure", "cohere_chat": "cohere", "codestral": "mistral",
		"zai-coding-plan": "zai", "nobody-knows": "nobody-knows", "databricks-openai": "databricks-openai",
	} {
		list, err := feed.Read([]byte(`{"m":{"litellm_provider":"`+name+`","input_cost_per_token":1e-06}}`), feed.Options{})
		if err != nil || len(list.Rows[want]) != 1 {
			t.Errorf("%s: %+v, %v", name, list, err)
			continue
		}
		if len(catalogue.List(price.Filter{Provider: want})) == 0 && want != name {
			t.Errorf("%s has the home %s, which the catalogue doesn't know", name, want)
		}
	}
}

func TestAListIsToldByItsShape(t *testing.T) {
	for name, c := range map[string]struct{ text, format, want string }{
		"nothing":                 {`{}`, "", "none of the lists"},
		"a list of nothing":       {`[]`, "", "none of the lists"},
		"something else":          {`{"a":{"b":1}}`, "", "none of the lists"},
		"no JSON":                 {`{`, "", "not valid JSON"},
		"an unknown format":       {`{}`, "csv", "none of litellm"},
		"another list than named": {`{"m":{"litellm_provider":"x"}}`, feed.ModelsDev, "a list of litellm and not of models.dev"},
		"no price":                {`{"m":{"litellm_provider":"x"}}`, "", "no price"},
		"a name twice":            {`{"m":{"litellm_provider":"x"},"m":{"litellm_provider":"x"}}`, "", "twice"},
	} {
		list, err := feed.Read([]byte(c.text), feed.Options{Format: c.format})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	for format, text := range map[string]string{
		feed.GenaiPrices: `{"units":{},"providers":[{"id":"p","models":[{"id":"m","match":{"equals":"m"},"prices":{"input_mtok":1}}]}]}`,
		feed.ModelsDev:   `{"providers":{"p":{"models":{"m":{"cost":{"input":1}}}}}}`,
	} {
		if list, err := feed.Read([]byte(text), feed.Options{}); err != nil || list.Format != format || list.Count() != 1 {
			t.Errorf("%s: %+v, %v", format, list, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, file := range []string{"litellm.json", "models.dev.json", "genai-prices.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := feed.Read(text, feed.Options{Date: "2026-11-30"})
		if err != nil {
			return
		}
		for provider, rows := range list.Rows {
			i, err := price.NewImport(provider, rows)
			if err != nil {
				t.Fatal(err)
			}
			body, err := i.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := price.DecodeImport(body); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
		}
	})
}
