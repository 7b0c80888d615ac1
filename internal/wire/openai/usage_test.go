// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire/openai"
)

func whole(usage string) call.Observed {
	return openai.Chat{}.Whole([]byte(`{"model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":`+usage+`}`), 0)
}

// searches are web searches that the provider ran.
func searches(n int64) (u call.Units) {
	u.Tools.Set(call.WebSearch, n)
	return u
}

// USE-1: disjoint parts, each token once. The arithmetic stands in the public
// cases that are named.
func TestUsageIsDividedIntoDisjointParts(t *testing.T) {
	for _, c := range []struct {
		name, usage  string
		want         call.Usage
		inconsistent bool
	}{
		{
			"BR-056 cached tokens are not fresh as well",
			`{"prompt_tokens":262960,"prompt_tokens_details":{"cached_tokens":257955},"completion_tokens":1744}`,
			call.Usage{Input: 5005, CachedInput: 257955, Output: 1744},
			false,
		},
		{
			"BR-057 prompt_tokens includes the cached ones",
			`{"prompt_tokens":2006,"prompt_tokens_details":{"cached_tokens":1920},"completion_tokens":300,"total_tokens":2306}`,
			call.Usage{Input: 86, CachedInput: 1920, Output: 300},
			false,
		},
		{
			"BR-058 cached tokens keep their own rate",
			`{"prompt_tokens":1239328,"prompt_tokens_details":{"cached_tokens":1188096},"completion_tokens":12909}`,
			call.Usage{Input: 51232, CachedInput: 1188096, Output: 12909},
			false,
		},
		{
			"BR-062 nine fresh tokens stay nine",
			`{"prompt_tokens":17111,"prompt_tokens_details":{"cached_tokens":17102,"cache_write_tokens":0},"completion_tokens":0}`,
			call.Usage{Input: 9, CachedInput: 17102},
			false,
		},
		{
			"BR-063 text_tokens include the cached ones",
			`{"prompt_tokens":616,"prompt_tokens_details":{"text_tokens":616,"cached_tokens":615},"completion_tokens":0}`,
			call.Usage{Input: 1, CachedInput: 615},
			false,
		},
		{
			"BR-069 the token count is prompt_tokens",
			`{"prompt_tokens":17903,"prompt_tokens_details":{"cached_tokens":17817},"completion_tokens":0,"total_tokens":17903}`,
			call.Usage{Input: 86, CachedInput: 17817},
			false,
		},
		{
			"BR-072 reasoning is part of the completion",
			`{"prompt_tokens":14746,"completion_tokens":1944,"completion_tokens_details":{"reasoning_tokens":1360}}`,
			call.Usage{Input: 14746, Output: 1944, Reasoning: 1360},
			false,
		},
		{
			"cache writes are part of the prompt",
			`{"prompt_tokens":1000,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":300,"cache_write_tokens":200}}`,
			call.Usage{Input: 500, CachedInput: 300, CacheWrite5m: 200, Output: 10},
			false,
		},
		{
			"DeepSeek's name for cached tokens",
			`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`,
			call.Usage{Input: 36, CachedInput: 64, Output: 5},
			false,
		},
		{
			"both names for cached tokens are one figure",
			`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_tokens_details":{"cached_tokens":64}}`,
			call.Usage{Input: 36, CachedInput: 64, Output: 5},
			false,
		},
		{
			"both names, two figures",
			`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_tokens_details":{"cached_tokens":0}}`,
			call.Usage{Input: 36, CachedInput: 64, Output: 5},
			true,
		},
		{
			"audio in and out",
			`{"prompt_tokens":320,"completion_tokens":180,"prompt_tokens_details":{"cached_tokens":12,"audio_tokens":240},"completion_tokens_details":{"reasoning_tokens":15,"audio_tokens":90}}`,
			call.Usage{Input: 68, CachedInput: 12, AudioInput: 240, Output: 90, AudioOutput: 90, Reasoning: 15},
			false,
		},
		{
			"what is cached and audio beyond the total is both",
			`{"prompt_tokens":300,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":256,"audio_tokens":290}}`,
			call.Usage{CachedInput: 10, AudioInput: 44, CachedAudioInput: 246, Output: 1},
			false,
		},
		{
			"cached audio as reported",
			`{"prompt_tokens":300,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":100,"audio_tokens":120,"cached_tokens_details":{"audio_tokens":60,"text_tokens":40}}}`,
			call.Usage{Input: 140, CachedInput: 40, AudioInput: 60, CachedAudioInput: 60, Output: 1},
			false,
		},
		{
			"a cached image is an image",
			`{"prompt_tokens":270,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":250,"image_tokens":256}}`,
			call.Usage{CachedInput: 14, ImageInput: 256, Output: 1},
			false,
		},
		{
			"more cached than prompt stands",
			`{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":50}}`,
			call.Usage{CachedInput: 50, Output: 1},
			true,
		},
		{
			"more reasoning than completion stands",
			`{"prompt_tokens":43,"completion_tokens":10,"completion_tokens_details":{"reasoning_tokens":11}}`,
			call.Usage{Input: 43, Output: 11, Reasoning: 11},
			true,
		},
		{
			"more audio than completion stands",
			`{"prompt_tokens":1,"completion_tokens":10,"completion_tokens_details":{"audio_tokens":12}}`,
			call.Usage{Input: 1, AudioOutput: 12},
			true,
		},
		{
			"what the total has beyond its parts is output",
			`{"prompt_tokens":10,"completion_tokens":9,"total_tokens":319,"completion_tokens_details":{"reasoning_tokens":299}}`,
			call.Usage{Input: 10, Output: 309, Reasoning: 299},
			true,
		},
		{
			"reasoning beside the completion, as xAI counts it",
			`{"prompt_tokens":10,"completion_tokens":9,"total_tokens":319,"completion_tokens_details":{"reasoning_tokens":300},"num_sources_used":0,"cost_in_usd_ticks":1}`,
			call.Usage{Input: 10, Output: 309, Reasoning: 300},
			false,
		},
		{
			"xAI's sources are searches",
			`{"prompt_tokens":10,"completion_tokens":9,"num_sources_used":4}`,
			call.Usage{Input: 10, Output: 9, Units: searches(4)},
			false,
		},
		{
			"OpenRouter's searches, and not the calls of the client's tools",
			`{"prompt_tokens":10,"completion_tokens":9,"server_tool_use_details":{"web_search_requests":2,"tool_calls_requested":7}}`,
			call.Usage{Input: 10, Output: 9, Units: searches(2)},
			false,
		},
		{
			"OpenRouter's older name of them",
			`{"prompt_tokens":10,"completion_tokens":9,"server_tool_use":{"web_search_requests":1}}`,
			call.Usage{Input: 10, Output: 9, Units: searches(1)},
			false,
		},
		{
			"a total below its parts changes nothing",
			`{"prompt_tokens":10,"completion_tokens":9,"total_tokens":3}`,
			call.Usage{Input: 10, Output: 9},
			true,
		},
		{
			"nulls are absent",
			`{"prompt_tokens":10,"completion_tokens":9,"total_tokens":null,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}`,
			call.Usage{Input: 10, Output: 9},
			false,
		},
		{"a whole number with a point", `{"prompt_tokens":10.0,"completion_tokens":9.000}`, call.Usage{Input: 10, Output: 9}, false},
		{"other members are not ours", `{"prompt_tokens":10,"completion_tokens":9,"cost":-1.5,"queue_time":"x"}`, call.Usage{Input: 10, Output: 9}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			want.Requests = 1
			got := whole(c.usage)
			if !got.Reported || got.Usage != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if marked := len(got.Marks) == 1 && got.Marks[0] == call.MarkInconsistent; marked != c.inconsistent {
				t.Errorf("marks %v", got.Marks)
			}
		})
	}
}

// BR-061: a usage that cannot be true is set aside and marked, never charged.
func TestAnAbsurdUsageIsNotReported(t *testing.T) {
	absurd := []string{
		`[]`, `"many"`, `7`, `true`, `{}`, `{"prompt_tokens":1}`, `{"completion_tokens":1}`, `{"total_tokens":2}`,
		`{"prompt_tokens":null,"completion_tokens":1}`, `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`,
		`{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":[]}`,
		`{"prompt_tokens":1,"completion_tokens":1,"completion_tokens_details":"none"}`,
	}
	for _, value := range []string{`-1`, `1.5`, `"1"`, `1e3`, `1000000001`, `99999999999999999999`, `true`, `[1]`, `{}`} {
		for _, form := range []string{
			`{"prompt_tokens":%s,"completion_tokens":1}`,
			`{"prompt_tokens":1,"completion_tokens":%s}`,
			`{"prompt_tokens":1,"completion_tokens":1,"total_tokens":%s}`,
			`{"prompt_tokens":1,"completion_tokens":1,"prompt_cache_hit_tokens":%s}`,
			`{"prompt_tokens":1,"completion_tokens":1,"num_sources_used":%s}`,
			`{"prompt_tokens":1,"completion_tokens":1,"server_tool_use_details":{"web_search_requests":%s}}`,
			`{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":%s}}`,
			`{"prompt_tokens":1,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":%s}}`,
		} {
			absurd = append(absurd, fmt.Sprintf(form, value))
		}
	}
	for _, usage := range absurd {
		got := whole(usage)
		if got.Reported || got.Usage != (call.Usage{}) || !reflect.DeepEqual(got.Marks, []call.Mark{call.MarkAbsurd}) {
			t.Errorf("%s: got %+v", usage, got)
		}
	}
}

func TestTheCallerBoundsWhatIsBelieved(t *testing.T) {
	text := []byte(`{"choices":[{}],"usage":{"prompt_tokens":1281,"completion_tokens":1}}`)
	if got := (openai.Chat{}).Whole(text, 1280); got.Reported {
		t.Errorf("believed %+v", got.Usage)
	}
	if got := (openai.Chat{}).Whole(text, 1281); !got.Reported {
		t.Error("not believed at the bound")
	}
}

// RES-4: output is text, refusals, visible reasoning and tool calls of all choices.
func TestOutputIsCountedOverAllChoices(t *testing.T) {
	for _, c := range []struct {
		name, choices string
		bytes         int64
		seen          bool
	}{
		{"none", `[]`, 0, false},
		{"empty content", `[{"message":{"role":"assistant","content":""}}]`, 0, false},
		{"content of two choices", `[{"message":{"content":"ab\u00e9"}},{"message":{"content":"c"}}]`, 5, true},
		{"a refusal", `[{"message":{"content":null,"refusal":"no"}}]`, 2, true},
		{"reasoning", `[{"message":{"reasoning_content":"abc","content":"d"}}]`, 4, true},
		{"reasoning under two names is one text", `[{"message":{"reasoning_content":"abc","reasoning":"abc","reasoning_details":[{"text":"abc"}]}}]`, 3, true},
		{"tool calls", `[{"message":{"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get","arguments":"{}"}},{"custom":{"name":"sql","input":"x"}}]}}]`, 9, true},
		{"a function call of old", `[{"message":{"function_call":{"name":"get","arguments":"{}"}}}]`, 5, true},
		{"content in parts", `[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"}]},{"type":"text","text":"c"}]}}]`, 3, true},
		{"speech counts by its transcript", `[{"message":{"audio":{"id":"a","data":"AAAA","transcript":"hi"}}}]`, 2, true},
		{"speech without a transcript is output too", `[{"message":{"audio":{"data":"AAAA"}}}]`, 0, true},
		{"an image is output too", `[{"message":{"images":[{"image_url":{"url":"data:"}}]}}]`, 0, true},
		{"wrong shapes are none", `[1,"x",{"message":"hi"},{"message":{"content":5,"tool_calls":{},"audio":[]}}]`, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := openai.Chat{}.Whole([]byte(`{"choices":`+c.choices+`}`), 0)
			if got.OutputBytes != c.bytes || got.OutputSeen != c.seen || got.Reported || len(got.Marks) > 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAnAnswerSaysWhoAnsweredAndInWhatTier(t *testing.T) { // USE-2
	got := openai.Chat{}.Whole([]byte(`{"model":"m-2024","service_tier":"flex","choices":[{}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`), 0)
	if got.Model != "m-2024" || got.Usage.ServiceTier != "flex" || !got.Finished {
		t.Errorf("got %+v", got)
	}
}

func TestAnErrorIsNoAnswer(t *testing.T) {
	for _, text := range []string{
		`{"error":{"message":"` + strings.Repeat("x", 2000) + `"}}`,
		`{"error":"down","choices":[{"message":{"content":"down"}}]}`,
		`{"object":"error","message":"down","code":400}`,
		`{"choices":[{"error":{"code":502},"message":{"content":"broken"},"finish_reason":"error"}]}`,
	} {
		got := openai.Chat{}.Whole([]byte(text), 0)
		if !got.ErrorSeen || got.OutputBytes != 0 || got.OutputSeen || got.Finished {
			t.Errorf("%.80s: got %+v", text, got)
		}
	}
	for _, text := range []string{``, `<html>`, `[]`, `{"choices":[{"message":{"role":"assi`, `{"error":null,"choices":[]}`} {
		if got := (openai.Chat{}).Whole([]byte(text), 0); got.ErrorSeen || got.Finished || got.OutputSeen || got.Reported {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

// What arrived of a whole answer is owed, though nobody can read it to its end
// (RES-4): the output counts up to there, a report in it does not.
func TestABrokenWholeAnswerShowsItsOutputSoFar(t *testing.T) {
	for text, bytes := range map[string]int64{
		`{"choices":[{"message":{"content":"four`:                                                 4,
		`{"choices":[{"message":{"content":"\u00e9\n`:                                             3,
		`{"choices":[{"message":{"content":"four\`:                                                4,
		`{"choices":[{"message":{"content":[{"type":"text","text":"four`:                          4,
		`{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"fn","arg`:      2,
		`{"choices":[{"message":{"content":"four"}}],"usage":{"prompt_tokens":5,"completion_toke`: 4,
		`{"usage":{"prompt_tokens":5,"completion_tokens":7},"choices":[{"message":{"content":"fo`: 2,
		`{"choices":[{"message":{"content":"four"},"finish_reason":"stop"}]]`:                     4,
	} {
		got := openai.Chat{}.Whole([]byte(text), 0)
		if got.OutputBytes != bytes || !got.OutputSeen || got.Reported || got.Finished || got.ErrorSeen {
			t.Errorf("%s: got %+v, want %d bytes of output", text, got, bytes)
		}
	}
	if got := (openai.Chat{}).Whole([]byte(`{"choices":[{"message":{"content":"down"},"error":{"message":"do`), 0); got.OutputSeen || got.OutputBytes != 0 {
		t.Errorf("an error's text is no output, got %+v", got)
	}
}

func checkParts(t *testing.T, o call.Observed) {
	t.Helper()
	u := o.Usage
	for _, part := range []int64{
		u.Input, u.CachedInput, u.CacheWrite5m, u.CacheWrite1h, u.ToolInput, u.AudioInput, u.CachedAudioInput,
		u.ImageInput, u.Output, u.AudioOutput, u.ImageOutput, u.Reasoning, o.OutputBytes,
	} {
		if part < 0 {
			t.Fatalf("a part below zero: %+v", o)
		}
	}
	if u.Reasoning > u.Output {
		t.Fatalf("more reasoning than output: %+v", o)
	}
	if !o.Reported && u != (call.Usage{}) {
		t.Fatalf("figures that were not reported: %+v", o)
	}
}

func FuzzWhole(f *testing.F) {
	for _, text := range []string{
		`{"choices":[{"message":{"content":"hi","tool_calls":[{"function":{"name":"a","arguments":"{}"}}]}}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`,
		`{"usage":{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":9,"audio_tokens":4,"image_tokens":3}}}`,
		`{"usage":{"prompt_tokens":-5,"completion_tokens":1e9}}`, `{"error":{}}`, `[`,
	} {
		f.Add([]byte(text), int64(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, limit int64) {
		o := openai.Chat{}.Whole(text, limit)
		checkParts(t, o)
		if o.OutputBytes > 3*int64(len(text)) {
			t.Fatalf("%d bytes of output in %d", o.OutputBytes, len(text))
		}
	})
}

// TestAProvidersOwnCostIsKeptToTheLastDigit: USE-4, BR-091. In dollars, or in xAI's
// ten-billionths of one.
func TestAProvidersOwnCostIsKeptToTheLastDigit(t *testing.T) {
	for member, want := range map[string]string{
		`"cost":0.00333825`:           "0.00333825",
		`"cost":1.4e-05`:              "1.4e-05",
		`"cost":0`:                    "0",
		`"cost":null`:                 "",
		`"cost":"0.5"`:                `"0.5"`, // for whoever judges it
		`"cost_in_usd_ticks":1466250`: "1466250e-10",
	} {
		o := openai.Chat{}.Whole([]byte(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,`+member+`}}`), 0)
		if o.Cost != want || !o.Reported {
			t.Errorf("%s: %q, reported %v", member, o.Cost, o.Reported)
		}
	}
}
