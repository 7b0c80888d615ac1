// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

const second = 1_000_000 // microseconds

func tools(t testing.TB, counts map[string]int64) (c call.ToolCalls) {
	t.Helper()
	for name, n := range counts {
		if !c.Set(name, n) {
			t.Fatalf("no place for %s", name)
		}
	}
	return c
}

// PRC-1: seconds, images, requests and calls of tools, each priced as what it is.
func TestUnitsArePricedAsWhatTheyAre(t *testing.T) {
	for _, c := range []struct {
		id     string
		prices fields
		usage  call.Usage
		want   money.Nanos
	}{
		{
			"BR-081 a second heard has a price although output costs nothing",
			fields{"per_second_input": "0.0001", "output": "0"},
			call.Usage{Units: call.Units{AudioInputMicros: 60 * second}},
			6_000_000,
		},
		{
			"BR-081 parts of a second count exactly and are rounded up once",
			fields{"per_second_input": "0.0001"},
			call.Usage{Units: call.Units{AudioInputMicros: 8_470_001}},
			847_001,
		},
		{
			"BR-081 a second spoken is none that is heard",
			fields{"per_second_input": "0.0001", "per_second_output": "0.5"},
			call.Usage{Units: call.Units{AudioOutputMicros: 3 * second}},
			1_500_000_000,
		},
		{
			"BR-082 a price of the request is not multiplied by its seconds",
			fields{"per_request": "2.50", "per_second_output": "0"},
			call.Usage{Requests: 1, Units: call.Units{AudioOutputMicros: 15 * second}},
			2_500_000_000,
		},
		{
			"BR-076 reasoning inside text output is charged once",
			fields{"output": "2.4"},
			call.Usage{Output: 29, Reasoning: 19},
			69_600,
		},
		{
			"images by the piece, beside tokens",
			fields{"input": "5", "per_image": "0.04"},
			call.Usage{Input: 100, Units: call.Units{Images: 3}},
			120_500_000,
		},
		{
			"calls of tools by their names",
			fields{"input": "1", "per_tool_call.web_search": "0.01", "per_tool_call.file_search": "0.0025"},
			call.Usage{Input: 10, Units: call.Units{Tools: tools(t, map[string]int64{call.WebSearch: 3, call.FileSearch: 2})}},
			35_010_000,
		},
		{
			"BR-092 a batch line at half the price",
			fields{"input": "1.75", "output": "14", "factor.batch": "0.5"},
			call.Usage{Input: 33, Output: 57, ServiceTier: "batch"},
			427_875,
		},
		{
			"a service tier scales seconds and images, not requests and tools",
			fields{"input": "1", "per_second_input": "1", "per_image": "1", "per_request": "1", "per_tool_call.web_search": "1", "factor.batch": "1/2"},
			call.Usage{
				Input: 1_000_000, ServiceTier: "batch", Requests: 1,
				Units: call.Units{AudioInputMicros: second, Images: 1, Tools: tools(t, map[string]int64{call.WebSearch: 1})},
			},
			3_500_000_000,
		},
	} {
		t.Run(c.id, func(t *testing.T) {
			got, err := row(t, c.prices).Charge(c.usage)
			if err != nil || got != c.want {
				t.Errorf("charged %d nano-dollars, %v; want %d", int64(got), err, int64(c.want))
			}
		})
	}
}

// PRC-1, PRC-3: per second, image and tool call: none, then unpriced; never zero,
// never another unit's price, never a token's.
func TestAUnitWithoutAPriceIsUnpriced(t *testing.T) {
	all := fields{
		"input": "1", "output": "1", "audio_input": "1", "audio_output": "1", "image_output": "1", "per_request": "1",
		"per_second_input": "1", "per_second_output": "1", "per_image": "1", "per_tool_call.web_search": "1",
	}
	for key, units := range map[string]call.Units{
		"per_second_input":         {AudioInputMicros: 1},
		"per_second_output":        {AudioOutputMicros: 1},
		"per_image":                {Images: 1},
		"per_tool_call.web_search": {Tools: tools(t, map[string]int64{call.WebSearch: 1})},
	} {
		without := maps.Clone(all)
		delete(without, key)
		u := call.Usage{Units: units}
		if n, err := row(t, without).Charge(u); !errors.Is(err, price.ErrUnpriced) {
			t.Errorf("without %s: charged %s, %v", key, n, err)
		}
		if n, err := row(t, all).Charge(u); err != nil || n < 1 {
			t.Errorf("with %s: charged %s, %v", key, n, err)
		}
		if key == "per_tool_call.web_search" {
			w := price.Want{InputTokens: 1, Units: units}
			if n, err := row(t, without).Worst(w); !errors.Is(err, price.ErrUnpriced) {
				t.Errorf("without %s: held %s, %v", key, n, err)
			}
		}
	}
	free, _ := price.ParseSpec("m", price.Spec{Word: "free"})
	u := call.Usage{Units: call.Units{AudioInputMicros: 1, AudioOutputMicros: 1, Images: 1, Tools: tools(t, map[string]int64{"x": 1})}}
	if n, err := free.Charge(u); n != 0 || err != nil {
		t.Errorf("free cost %s, %v", n, err)
	}
}

// EST-4: provider-side tools are held at max_tool_calls, ten when nothing bounds
// them, times their price.
func TestToolsAreHeldAtTheirBounds(t *testing.T) {
	r := row(t, fields{"input": "0", "output": "0", "per_tool_call.web_search": "0.01", "per_tool_call.file_search": "0.0025"})
	for _, c := range []struct {
		name  string
		tools map[string]int64
		most  int64
		want  string
	}{
		{"no tool", nil, 0, "0"},
		{"no bound", map[string]int64{"web_search": 0}, 0, "0.1"},
		{"its own bound", map[string]int64{"web_search": 3}, 0, "0.03"},
		{"two tools", map[string]int64{"web_search": 0, "file_search": 4}, 0, "0.11"},
		{"a bound over all tools is filled with the dearest", map[string]int64{"web_search": 0, "file_search": 0}, 20, "0.2"},
		{"a bound over all below a tool's own", map[string]int64{"web_search": 5}, 2, "0.02"},
		{"a bound over all beyond the tools' own", map[string]int64{"web_search": 5, "file_search": 2}, 6, "0.0525"},
	} {
		got, err := r.Worst(price.Want{Units: call.Units{Tools: tools(t, c.tools)}, MaxToolCalls: c.most})
		if err != nil || got.String() != c.want {
			t.Errorf("%s: held %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

// EST-3: what a door of audio or images may use, by how the row bills it.
func TestMediaAreHeldByTheirOwnPriceElseByTheirTokens(t *testing.T) {
	byUnit := price.Want{InputTokens: 100, OutputTokens: 1000, Units: call.Units{AudioInputMicros: 60 * second, Images: 2}, ByUnit: true}
	for _, c := range []struct {
		name   string
		prices fields
		want   string // "" for unpriced
	}{
		{"seconds and images alone: no tokens are held", fields{"per_second_input": "0.0001", "per_image": "0.04"}, "0.086"},
		{"tokens alone: no units are held", fields{"input": "1", "output": "10"}, "0.0101"},
		{"images by the piece, audio by the token", fields{"input": "1", "audio_input": "100", "per_image": "0.04"}, "0.09"},
		{"neither seconds nor tokens of audio", fields{"per_image": "0.04"}, ""},
	} {
		got, err := row(t, c.prices).Worst(byUnit)
		if c.want == "" && errors.Is(err, price.ErrUnpriced) {
			continue
		}
		if err != nil || got.String() != c.want {
			t.Errorf("%s: held %s, %v; want %q", c.name, got, err, c.want)
		}
	}
	w := price.WantOf(&call.Call{Door: call.OpenAITranscriptions, Completions: 1, MaxToolCalls: 3, Units: call.Units{Images: 1}}, 1, 2)
	if !w.ByUnit || w.MaxToolCalls != 3 || w.Units.Images != 1 {
		t.Errorf("a transcription wants %+v", w)
	}
	if price.WantOf(&call.Call{Door: call.OpenAIChat}, 1, 2).ByUnit {
		t.Error("a chat is priced by units alone")
	}
}

// PRC-1: the chain, for every set of parts that a row can name: 1,024 rows times
// ten parts, against the rule as it is written.
func TestTheChainHoldsForEverySetOfPrices(t *testing.T) {
	told := map[string][]string{
		"input": nil, "output": nil, "cached_input": {"input"}, "cache_write_5m": {"input"},
		"cache_write_1h": {"cache_write_5m", "input"}, "audio_input": {"input"}, "image_input": {"input"},
		"cached_audio_input": {"cached_input", "input"}, "audio_output": {"output"}, "image_output": {"output"},
	}
	use := map[string]call.Usage{
		"input": {Input: 1e6}, "cached_input": {CachedInput: 1e6}, "cache_write_5m": {CacheWrite5m: 1e6},
		"cache_write_1h": {CacheWrite1h: 1e6}, "output": {Output: 1e6}, "audio_input": {AudioInput: 1e6},
		"cached_audio_input": {CachedAudioInput: 1e6}, "audio_output": {AudioOutput: 1e6}, "image_input": {ImageInput: 1e6},
		"image_output": {ImageOutput: 1e6},
	}
	for set := range 1 << len(partNames) {
		f := fields{"per_request": "0"}
		for i, name := range partNames {
			if set&(1<<i) != 0 {
				f[name] = fmt.Sprint(i + 1)
			}
		}
		r := row(t, f)
		for name, chain := range told {
			want, priced := f[name]
			for _, broader := range chain {
				if !priced {
					want, priced = f[broader]
				}
			}
			got, err := r.Charge(use[name])
			if priced && (err != nil || got.String() != want) || !priced && !errors.Is(err, price.ErrUnpriced) {
				t.Fatalf("%v: a million of %s cost %s, %v; want %q", f, name, got, err, want)
			}
		}
	}
}

// PRC-2: a charge shown part by part adds up to the charge.
func TestAChargeIsShownAsItComesAbout(t *testing.T) {
	r := row(t, fields{
		"input": "0.15", "output": "0.60", "above.10.input": "0.3", "factor.priority": "5/3",
		"per_request": "0.001", "per_second_input": "0.0001", "per_tool_call.web_search": "0.01",
	})
	b, err := r.Explain(call.Usage{
		Input: 11, Output: 2, ServiceTier: "priority", Requests: 1,
		Units: call.Units{AudioInputMicros: 2_500_000, Tools: tools(t, map[string]int64{call.WebSearch: 2})},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []price.Line{
		{"input", "11", "0.3", "a million tokens", "0.0000033", true},
		{"output", "2", "0.6", "a million tokens", "0.0000012", true},
		{"per_second_input", "2.5", "0.0001", "a second of audio heard", "0.00025", true},
		{"per_tool_call.web_search", "2", "0.01", "a call", "0.02", false},
		{"per_request", "1", "0.001", "a request", "0.001", false},
	}
	if fmt.Sprint(b.Lines) != fmt.Sprint(want) {
		t.Errorf("shown as\n%v, want\n%v", b.Lines, want)
	}
	if b.AboveTokens != 10 || b.Factor != (price.Fraction{Num: 5, Den: 3}) || b.Exact != "0.021424166666666…" || b.Cost.String() != "0.021424167" {
		t.Errorf("shown as %+v", b)
	}
	if n, err := r.Explain(call.Usage{ImageOutput: 1, Units: call.Units{Images: 1}}); !errors.Is(err, price.ErrUnpriced) {
		t.Errorf("an unpriced image is shown as %+v, %v", n, err)
	}
}

func TestAUnitsPriceIsReadStrictly(t *testing.T) {
	many := fields{}
	for i := range 17 {
		many[fmt.Sprintf("per_tool_call.t%02d", i)] = "1"
	}
	for name, c := range map[string]struct {
		prices fields
		field  string
	}{
		"negative":        {fields{"per_image": "-1"}, "per_image"},
		"BR-130 dear":     {fields{"per_second_input": "10001"}, "per_second_input"},
		"BR-130 a tool":   {fields{"per_tool_call.x": "10001"}, "per_tool_call.x"},
		"tool's name":     {fields{"per_tool_call.Web Search": "1"}, "per_tool_call.Web Search"},
		"too many tools":  {many, "per_tool_call.t16"},
		"inside a tier":   {fields{"above.9.per_image": "1"}, "above.9.per_image"},
		"no start":        {fields{"valid_from": "soon"}, "valid_from"},
		"free and a unit": {fields{"free": "true", "per_image": "1"}, "free"},
	} {
		r, err := price.ParseSpec("m", price.Spec{Fields: c.prices})
		var at *price.FieldError
		if r != nil || !errors.As(err, &at) || at.Field != c.field {
			t.Errorf("%s: got %+v, error %v", name, r, err)
		}
	}
	r := row(t, fields{"per_image": "1", "per_tool_call.web_search": "0.01", "per_second_output": "2", "valid_from": "2026-12-01"})
	data, err := r.AppendJSON(nil)
	if err != nil || !strings.Contains(string(data), `"per_tool_call":{"web_search":"0.01"}`) {
		t.Errorf("%s, %v", data, err)
	}
	if back, err := price.DecodeRow(data); err != nil || back.ID != r.ID || back.ValidFromMicros != 1_796_083_200_000_000 {
		t.Errorf("came back as %+v, %v", back, err)
	}
}

// PRC-1, PRC-2: dated prices.
func TestTheRowInForceAtAnInstantDecides(t *testing.T) {
	at := func(day string) *price.Row { return row(t, fields{"input": "1", "valid_from": day}) }
	always, june, july := row(t, fields{"input": "2"}), at("2026-06-01"), at("2026-07-01T12:00:00Z")
	s, err := price.NewSchedule([]*price.Row{july, always, june})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   int64
		row  *price.Row
		next int64
	}{
		{0, always, june.ValidFromMicros},
		{june.ValidFromMicros - 1, always, june.ValidFromMicros},
		{june.ValidFromMicros, june, july.ValidFromMicros},
		{july.ValidFromMicros, july, 0},
	} {
		if got, next := s.At(c.at), s.Next(c.at); got != c.row || next != c.next {
			t.Errorf("at %d: %+v until %d", c.at, got, next)
		}
	}
	if price.Schedule(nil).At(5) != nil || (price.Schedule{june}).At(5) != nil {
		t.Error("a row holds before it begins")
	}
	if _, err := price.NewSchedule([]*price.Row{june, at("2026-06-01T00:00:00Z")}); !errors.Is(err, price.ErrSameStart) {
		t.Errorf("two rows begin at once: %v", err)
	}
}
