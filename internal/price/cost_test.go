// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"errors"
	"math"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

type fields map[string]string

func row(t testing.TB, f fields) *price.Row {
	t.Helper()
	r, err := price.ParseSpec("m", price.Spec{Fields: f})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// longContext is the price of BR-084 and BR-085.
var longContext = fields{"input": "2", "output": "12", "above.200000.input": "4", "above.200000.output": "18"}

// TestPublicFaultsArePricedToTheNanoDollar re-tells reports against other
// gateways; want is in nano-dollars, the reports' micro-dollars times 1,000.
func TestPublicFaultsArePricedToTheNanoDollar(t *testing.T) {
	for _, c := range []struct {
		id     string
		prices fields
		usage  call.Usage
		want   money.Nanos
	}{
		{
			"BR-056 cached tokens are billed once",
			fields{"input": "1.25", "cached_input": "0.625", "output": "10"},
			call.Usage{Input: 5_005, CachedInput: 257_955, Output: 1_744},
			184_918_125,
		},
		{
			"BR-057 cached tokens are inside the prompt's count",
			fields{"input": "2.5", "cached_input": "1.25", "output": "10"},
			call.Usage{Input: 86, CachedInput: 1_920, Output: 300},
			5_615_000,
		},
		{
			"BR-058 cached tokens are not fresh",
			fields{"input": "1.25", "cached_input": "0.125", "output": "10"},
			call.Usage{Input: 1_239_328 - 1_188_096, CachedInput: 1_188_096, Output: 12_909},
			341_642_000,
		},
		{
			"BR-062 a nearly whole cache read",
			fields{"input": "1", "cached_input": "0.1"},
			call.Usage{Input: 9, CachedInput: 17_102},
			1_719_200,
		},
		{
			"BR-063 text tokens include the cached ones",
			fields{"input": "3", "cached_input": "0.75"},
			call.Usage{Input: 1, CachedInput: 615},
			464_250,
		},
		{
			"BR-065 a missing cached price is the input's, not zero",
			fields{"input": "3"},
			call.Usage{Input: 200, CachedInput: 800},
			3_000_000,
		},
		{
			"BR-066 cache writes have their own price",
			fields{"input": "3", "cache_write_5m": "3.75"},
			call.Usage{CacheWrite5m: 10_000},
			37_500_000,
		},
		{
			"BR-067 one-hour writes have their own price",
			fields{"input": "5", "cache_write_5m": "6.25", "cache_write_1h": "10"},
			call.Usage{CacheWrite1h: 344_139},
			3_441_390_000,
		},
		{
			"BR-069 a cached prompt counts once",
			fields{"input": "1"},
			call.Usage{Input: 17_903 - 17_817, CachedInput: 17_817},
			17_903_000,
		},
		{
			"BR-070 an implicit cache is a cache",
			fields{"input": "0.3", "cached_input": "0.075"},
			call.Usage{Input: 2_000, CachedInput: 8_000},
			1_200_000,
		},
		{
			"BR-072 reasoning is inside output",
			fields{"input": "30", "output": "180"},
			call.Usage{Input: 14_746, Output: 1_944, Reasoning: 1_360},
			792_300_000,
		},
		{
			"BR-073 thoughts beside candidates are output",
			fields{"input": "0.3", "output": "2.5"},
			call.Usage{Input: 8, Output: 9 + 107, Reasoning: 107},
			292_400,
		},
		{
			"BR-077 audio output has its own price",
			fields{"output": "10", "audio_output": "80"},
			call.Usage{Output: 110, AudioOutput: 482},
			39_660_000,
		},
		{
			"BR-079 image output has its own price beside reasoning",
			fields{"input": "2", "output": "12", "image_output": "120"},
			call.Usage{Input: 10, Output: 225, ImageOutput: 1_120, Reasoning: 225},
			137_120_000,
		},
		{
			"BR-084 a long prompt re-prices the whole request", longContext,
			call.Usage{Input: 250_000},
			1_000_000_000,
		},
		{
			"BR-085 a short prompt stays in the low tier", longContext,
			call.Usage{Input: 100_000, Output: 1_000},
			212_000_000,
		},
		{
			"BR-088 flex served is flex charged",
			fields{"input": "0.05", "output": "0.40", "factor.flex": "0.5"},
			call.Usage{Input: 10_000, Output: 5_000, ServiceTier: "flex"},
			1_250_000,
		},
		{
			"BR-090 the configured row's priority price holds",
			fields{"input": "0.15", "output": "0.60", "factor.priority": "5/3"},
			call.Usage{Input: 9, Output: 2, ServiceTier: "priority"},
			4_250,
		},
		{
			"BR-130 a price is for a million tokens",
			fields{"input": "8", "output": "8"},
			call.Usage{Input: 1_000, Output: 1_000},
			16_000_000,
		},
		{
			"BR-133 ten cents are ten cents",
			fields{"input": "0.1"},
			call.Usage{Input: 1_000_000},
			100_000_000,
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

func TestBR031NullPricesTakeThePriceBooks(t *testing.T) {
	book := row(t, fields{"input": "3", "output": "15"})
	listed, err := price.DecodeRow([]byte(`{"model":"m","input":null,"output":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listed.Worst(price.Want{OutputTokens: 10_000}); !errors.Is(err, price.ErrUnpriced) {
		t.Errorf("null alone is priced: %v", err)
	}
	worst, err := listed.Over(book).Worst(price.Want{OutputTokens: 10_000})
	if want := 150 * money.Dollar / 1000; err != nil || worst != want {
		t.Errorf("worst case %s, %v; want %s", worst, err, want)
	}
}

func TestBR069AndBR072TokensAreCountedOnce(t *testing.T) {
	cached := call.Usage{Input: 86, CachedInput: 17_817}
	reasoned := call.Usage{Input: 14_746, Output: 1_944, Reasoning: 1_360}
	if cached.Tokens() != 17_903 || reasoned.Tokens() != 16_690 {
		t.Errorf("counted %d and %d tokens", cached.Tokens(), reasoned.Tokens())
	}
}

func TestBR130APreviewShowsWhatASlipCosts(t *testing.T) {
	meant, err := price.Preview(row(t, fields{"input": "8", "output": "8"}), 1000, 1000)
	if err != nil || meant.String() != "0.016" {
		t.Errorf("1k/1k at 8 dollars a million cost %s, %v", meant, err)
	}
}

func TestBR133ThreeCallsOfTenCentsAreThirty(t *testing.T) {
	r, total := row(t, fields{"input": "0.1"}), money.Nanos(0)
	for range 3 {
		n, err := r.Charge(call.Usage{Input: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total.String() != "0.3" {
		t.Errorf("counter stands at %s", total)
	}
}

// PRC-1: the chain, part by part, from nothing but text prices to all.
func TestAPartThatIsNotSetCostsWhatItsBroaderPartCosts(t *testing.T) {
	one := func(name string) call.Usage {
		return map[string]call.Usage{
			"input": {Input: 1e6}, "tool_input": {ToolInput: 1e6}, "cached_input": {CachedInput: 1e6},
			"cache_write_5m": {CacheWrite5m: 1e6}, "cache_write_1h": {CacheWrite1h: 1e6}, "output": {Output: 1e6},
			"audio_input": {AudioInput: 1e6}, "cached_audio_input": {CachedAudioInput: 1e6}, "audio_output": {AudioOutput: 1e6},
			"image_input": {ImageInput: 1e6}, "image_output": {ImageOutput: 1e6},
		}[name]
	}
	for _, c := range []struct {
		prices fields
		want   map[string]string
	}{
		{fields{"input": "2", "output": "8"}, map[string]string{
			"input": "2", "tool_input": "2", "cached_input": "2", "cache_write_5m": "2", "cache_write_1h": "2", "audio_input": "2",
			"cached_audio_input": "2", "image_input": "2", "output": "8", "audio_output": "8", "image_output": "8",
		}},
		{fields{"input": "2", "output": "8", "cached_input": "1", "cache_write_5m": "3", "audio_output": "9"}, map[string]string{
			"cached_input": "1", "cached_audio_input": "1", "cache_write_5m": "3", "cache_write_1h": "3", "audio_input": "2",
			"audio_output": "9", "image_output": "8",
		}},
		{fields{"input": "2", "output": "8", "cached_input": "0", "audio_input": "5"}, map[string]string{
			"cached_input": "0", "cached_audio_input": "0", "audio_input": "5",
		}},
	} {
		r := row(t, c.prices)
		for name, want := range c.want {
			if got, err := r.Charge(one(name)); err != nil || got.String() != want {
				t.Errorf("%v: a million of %s cost %s, %v; want %s", c.prices, name, got, err, want)
			}
		}
	}
}

// PRC-3: what was used and has no price, own or broader, is never free.
func TestAPartWithoutAnyPriceIsUnpriced(t *testing.T) {
	for _, c := range []struct {
		name   string
		prices fields
		usage  call.Usage
	}{
		{"an empty row", fields{}, call.Usage{Requests: 1}},
		{"output of an input row", fields{"input": "1"}, call.Usage{Output: 1}},
		{"image output of an input row", fields{"input": "1"}, call.Usage{ImageOutput: 1}},
		{"text of an audio row", fields{"audio_input": "1"}, call.Usage{Input: 1}},
		{"cached text of a row of output", fields{"output": "1"}, call.Usage{CachedInput: 1}},
		{"tokens of a row per request", fields{"per_request": "1"}, call.Usage{Input: 1, Requests: 1}},
		{"input below the only tier", fields{"above.10.input": "1"}, call.Usage{Input: 10}},
	} {
		if n, err := row(t, c.prices).Charge(c.usage); !errors.Is(err, price.ErrUnpriced) {
			t.Errorf("%s: charged %s, %v", c.name, n, err)
		}
	}
	w := price.Want{InputTokens: 1, OutputTokens: 1}
	for _, prices := range []fields{{}, {"input": "1"}, {"output": "1"}, {"input": "1", "image_output": "1"}, {"per_request": "1"}} {
		if n, err := row(t, prices).Worst(w); !errors.Is(err, price.ErrUnpriced) {
			t.Errorf("%v: worst case %s, %v", prices, n, err)
		}
	}
}

func TestATierBeginsAboveItsThreshold(t *testing.T) {
	r := row(t, fields{
		"input": "2", "output": "12", "cached_input": "0.2", "audio_input": "9",
		"above.200000.input": "4", "above.200000.output": "18", "above.500000.input": "8",
	})
	for _, c := range []struct {
		name  string
		usage call.Usage
		want  string
	}{
		{"exactly at the threshold stays low", call.Usage{Input: 200_000}, "0.4"},
		{"one more token is high", call.Usage{Input: 200_001}, "0.800004"},
		{"all kinds of input count", call.Usage{Input: 100_000, ToolInput: 50_000, ImageInput: 50_000, CacheWrite1h: 1}, "0.800004"},
		{"output does not count", call.Usage{Input: 200_000, Output: 300_000}, "4"},
		{"output is re-priced too", call.Usage{Input: 200_001, Output: 1_000_000}, "18.800004"},
		{"a part that the tier leaves out is the dearer of the two: cached", call.Usage{CachedInput: 300_000}, "1.2"},
		{"a part that the tier leaves out is the dearer of the two: audio", call.Usage{AudioInput: 300_000}, "2.7"},
		{"a side that the tier leaves out stays", call.Usage{Input: 600_000, Output: 1_000_000}, "16.8"},
	} {
		if got, err := r.Charge(c.usage); err != nil || got.String() != c.want {
			t.Errorf("%s: charged %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestACheaperTierIsCheaperInPartsThatNobodySet(t *testing.T) {
	r := row(t, fields{"input": "4", "output": "4", "above.100.input": "1"})
	if n, err := r.Charge(call.Usage{CachedInput: 1_000_000}); err != nil || n.String() != "1" {
		t.Errorf("charged %s, %v", n, err)
	}
}

// USE-2, EST-3.
func TestServiceTiersScaleTokensAndAreHeldAtTheDearer(t *testing.T) {
	r := row(t, fields{"input": "1", "output": "1", "per_request": "0.5", "factor.flex": "1/2", "factor.priority": "1.75"})
	for tier, want := range map[string]string{"": "1.5", "default": "1.5", "scale": "1.5", "flex": "1", "priority": "2.25"} {
		got, err := r.Charge(call.Usage{Input: 1_000_000, ServiceTier: tier, Requests: 1})
		if err != nil || got.String() != want {
			t.Errorf("%q served: charged %s, %v; want %s", tier, got, err, want)
		}
	}
	for tier, want := range map[string]string{"": "1.5", "flex": "1.5", "priority": "2.25"} {
		got, err := r.Worst(price.Want{InputTokens: 1_000_000, ServiceTier: tier})
		if err != nil || got.String() != want {
			t.Errorf("%q asked for: held %s, %v; want %s", tier, got, err, want)
		}
	}
	if !r.PricesTier("flex") || r.PricesTier("scale") {
		t.Error("the row does not say which service tiers it prices")
	}
}

func TestRequestsArePricedOnceEach(t *testing.T) { // BR-082's kind
	r := row(t, fields{"per_request": "2.5", "input": "0", "output": "0"})
	for _, c := range []struct {
		usage call.Usage
		want  string
	}{
		{call.Usage{}, "0"},
		{call.Usage{Requests: 1}, "2.5"},
		{call.Usage{Requests: 3, Input: 7}, "7.5"},
		{call.Usage{Output: 15}, "2.5"},
	} {
		if got, err := r.Charge(c.usage); err != nil || got.String() != c.want {
			t.Errorf("%+v: charged %s, %v; want %s", c.usage, got, err, c.want)
		}
	}
}

// EST-3: what a request could land in, by what its body asks for.
func TestTheWorstCaseIsTheDearestPlaceOfTheTokens(t *testing.T) {
	r := row(t, fields{
		"input": "2", "cached_input": "0.2", "cache_write_5m": "2.5", "cache_write_1h": "4", "output": "10",
		"audio_input": "30", "image_input": "3", "audio_output": "60", "image_output": "40",
	})
	text := price.Want{
		InputTokens: 1_000_000, OutputTokens: 1_000_000,
		NoAudioInput: true, NoImageInput: true, NoAudioOutput: true, NoImageOutput: true,
	}
	for _, c := range []struct {
		name   string
		change func(*price.Want)
		want   string
	}{
		{"text", func(*price.Want) {}, "12"},
		{"a cache write only when asked for", func(w *price.Want) { w.CachesInput = true }, "12.5"},
		{"an hour only when asked for", func(w *price.Want) { w.CachesOneHour = true }, "14"},
		{"images", func(w *price.Want) { w.NoImageInput = false }, "13"},
		{"audio", func(w *price.Want) { w.NoAudioInput = false }, "40"},
		{"images in the answer", func(w *price.Want) { w.NoImageOutput = false }, "42"},
		{"audio in the answer", func(w *price.Want) { w.NoAudioOutput = false }, "62"},
		{"nothing excluded", func(w *price.Want) { *w = price.Want{InputTokens: 1_000_000, OutputTokens: 1_000_000} }, "90"},
		{"completions multiply output alone", func(w *price.Want) { w.Completions = 3 }, "32"},
	} {
		w := text
		c.change(&w)
		if got, err := r.Worst(w); err != nil || got.String() != c.want {
			t.Errorf("%s: held %s, %v; want %s", c.name, got, err, c.want)
		}
	}
	w := price.WantOf(&call.Call{Completions: 2, ServiceTier: "flex", Prompt: call.Prompt{Images: 1}}, 5, 7)
	if w != (price.Want{InputTokens: 5, OutputTokens: 7, Completions: 2, ServiceTier: "flex"}) {
		t.Errorf("a call with an image wants %+v", w)
	}
	if w := price.WantOf(&call.Call{Completions: 1}, 5, 7); !w.NoImageInput {
		t.Errorf("a call without an image wants %+v", w)
	}
}

func TestLongContextIsHeldByTheInputEstimate(t *testing.T) {
	falling := row(t, fields{"input": "4", "output": "4", "above.100.input": "1", "above.100.output": "1"})
	for _, c := range []struct {
		r     *price.Row
		input int64
		want  money.Nanos
	}{
		{row(t, longContext), 200_000, 200_000*2_000 + 1_000*12_000},
		{row(t, longContext), 200_001, 200_001*4_000 + 1_000*18_000},
		{falling, 101, 101*4_000 + 1_000*4_000},
	} {
		got, err := c.r.Worst(price.Want{InputTokens: c.input, OutputTokens: 1_000})
		if err != nil || got != c.want {
			t.Errorf("%d tokens: held %d, %v; want %d", c.input, int64(got), err, int64(c.want))
		}
	}
}

// PRC-4.
func TestARowIsFreeOnlyWhenEveryPartIsZero(t *testing.T) {
	for _, c := range []struct {
		name string
		spec price.Spec
		want bool
	}{
		{"the word", price.Spec{Word: "free"}, true},
		{"zeros", price.Spec{Fields: fields{"input": "0", "output": "0.0"}}, true},
		{"nothing set", price.Spec{}, false},
		{"input alone is zero", price.Spec{Fields: fields{"input": "0"}}, false},
		{"a part costs", price.Spec{Fields: fields{"input": "0", "output": "0", "audio_input": "0.000000001"}}, false},
		{"a request costs", price.Spec{Fields: fields{"input": "0", "output": "0", "per_request": "1"}}, false},
		{"a long request costs", price.Spec{Fields: fields{"input": "0", "output": "0", "above.9.output": "1"}}, false},
		{"priced", price.Spec{Fields: fields{"input": "1", "output": "1"}}, false},
	} {
		r, err := price.ParseSpec("m", c.spec)
		if err != nil || r.IsFree() != c.want {
			t.Errorf("%s: free is %t, %v", c.name, !c.want, err)
		}
	}
	free, _ := price.ParseSpec("m", price.Spec{Word: "free"})
	n, err := free.Charge(call.Usage{Input: 1, CacheWrite1h: 2, AudioOutput: 3, Requests: 1, ServiceTier: "priority"})
	if worst, werr := free.Worst(price.Want{InputTokens: 9, OutputTokens: 9}); n != 0 || err != nil || worst != 0 || werr != nil {
		t.Errorf("free cost %s, %v; worst %s, %v", n, err, worst, werr)
	}
}

func TestImpossibleUsageIsAnErrorAndNoCharge(t *testing.T) { // BR-061's kind
	r := row(t, fields{"input": "10000", "output": "10000", "per_request": "10000"})
	for _, c := range []struct {
		usage call.Usage
		kind  error
	}{
		{call.Usage{Input: -1}, price.ErrUsage},
		{call.Usage{Input: 5, ToolInput: -1}, price.ErrUsage},
		{call.Usage{Output: 5, ImageOutput: math.MinInt64}, price.ErrUsage},
		{call.Usage{Requests: -1}, price.ErrUsage},
		{call.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, money.ErrOverflow},
		{call.Usage{Requests: math.MaxInt64}, money.ErrOverflow},
	} {
		if n, err := r.Charge(c.usage); n != 0 || !errors.Is(err, c.kind) {
			t.Errorf("%+v: charged %s, %v", c.usage, n, err)
		}
	}
	if n, err := r.Worst(price.Want{OutputTokens: math.MaxInt64 / 2, Completions: 3}); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("held %s, %v", n, err)
	}
}
