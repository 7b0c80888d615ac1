// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

// feed is what a stream of these lines shows; the client has not asked for usage.
func feed(t *testing.T, lines []string) (got call.Observed, seen string) {
	t.Helper()
	s := openai.Chat{}.NewStream(wire.StreamOptions{HideUsage: true})
	var out []byte
	for _, line := range lines {
		var err error
		if out, err = s.Feed(out, []byte(line+"\n\n")); err != nil {
			t.Fatal(err)
		}
	}
	return s.Observed(), string(s.Close(out))
}

// USE-1: each server's own way to report a stream's usage is charged as it bills it.
func TestEveryDialectsStreamIsReadAsItIsBilled(t *testing.T) {
	const (
		text = `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`
		stop = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`
		done = `data: [DONE]`
	)
	for _, c := range []struct {
		dialect string
		lines   []string
		want    call.Usage
		cost    string
	}{
		{"azure: a first chunk without choices", []string{
			`data: {"choices":[],"model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}],"usage":null}`, text,
			stop + `,"usage":null}`, `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`, done,
		}, call.Usage{Input: 9, Output: 2}, ""},
		{"deepseek: comments, and hits beside misses", []string{
			`: keep-alive`, text, `: keep-alive`,
			stop + `,"usage":{"prompt_tokens":100,"completion_tokens":2,"total_tokens":102,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}}`, done,
		}, call.Usage{Input: 36, CachedInput: 64, Output: 2}, ""},
		{"groq: usage in a member of its own, and again where it was asked for", []string{
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"x_groq":{"id":"req_1"}}`, text,
			stop + `,"x_groq":{"id":"req_1","usage":{"queue_time":0.1,"prompt_tokens":45,"completion_tokens":2,"total_tokens":47}}}`,
			`data: {"choices":[],"usage":{"prompt_tokens":45,"completion_tokens":2,"total_tokens":47}}`, done,
		}, call.Usage{Input: 45, Output: 2}, ""},
		{"mistral: usage on the last chunk", []string{text, stop + `,"usage":{"prompt_tokens":13,"completion_tokens":8,"total_tokens":21}}`, done}, call.Usage{Input: 13, Output: 8}, ""},
		{"xai: reasoning beside the completion, ticks, sources", []string{
			text, stop + `}`,
			`data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"prompt_tokens_details":{"cached_tokens":11},` +
				`"completion_tokens_details":{"reasoning_tokens":290},"num_sources_used":3,"cost_in_usd_ticks":1466250}}`, done,
		}, call.Usage{Input: 1, CachedInput: 11, Output: 291, Reasoning: 290, Units: searches(3)}, "1466250e-10"},
		{"openrouter: comments, cost, searches", []string{
			`: OPENROUTER PROCESSING`, text, `: OPENROUTER PROCESSING`, stop + `}`,
			`data: {"choices":[{"index":0,"delta":{"content":""}}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10,"cost":0.000837,` +
				`"cost_details":{"upstream_inference_cost":null},"server_tool_use_details":{"web_search_requests":1}}}`, done,
		}, call.Usage{Input: 8, Output: 2, Units: searches(1)}, "0.000837"},
		{"together: usage on the last chunk, nulls before it", []string{
			`data: {"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null}`, stop + `,"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"cached_tokens":4}}`, done,
		}, call.Usage{Input: 3, CachedInput: 4, Output: 2}, ""},
		{"fireworks: usage beside its metrics", []string{
			text, stop + `,"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":4}},"perf_metrics":{"prompt-tokens":"7"}}`, done,
		}, call.Usage{Input: 3, CachedInput: 4, Output: 2}, ""},
		{"vllm: cumulative usage on every chunk", []string{
			`data: {"choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":{"prompt_tokens":36,"total_tokens":36,"completion_tokens":0}}`,
			`data: {"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":36,"total_tokens":44,"completion_tokens":8}}`,
			stop + `,"usage":{"prompt_tokens":36,"total_tokens":68,"completion_tokens":32}}`,
			`data: {"choices":[],"usage":{"prompt_tokens":36,"total_tokens":68,"completion_tokens":32,"prompt_tokens_details":null}}`, done,
		}, call.Usage{Input: 36, Output: 32}, ""},
		{"ollama: no details, and no object beside them", []string{
			text, stop + `}`, `data: {"choices":[],"system_fingerprint":"fp_ollama","usage":{"prompt_tokens":26,"completion_tokens":2,"total_tokens":28}}`, done,
		}, call.Usage{Input: 26, Output: 2}, ""},
		// What no server should do, and some have done.
		{"usage that shrinks: the last says what is billed", []string{
			`data: {"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":36,"completion_tokens":40}}`,
			stop + `,"usage":{"prompt_tokens":36,"completion_tokens":32}}`, done,
		}, call.Usage{Input: 36, Output: 32}, ""},
		{"the last chunk twice", []string{
			text, stop + `}`, `data: {"choices":[],"usage":{"prompt_tokens":36,"completion_tokens":32}}`, `data: {"choices":[],"usage":{"prompt_tokens":36,"completion_tokens":32}}`, done, done,
		}, call.Usage{Input: 36, Output: 32}, ""},
		{"usage spread over events", []string{
			`data: {"choices":[],"usage":{"prompt_tokens":36,"prompt_tokens_details":{"cached_tokens":30}}}`, text,
			stop + `,"usage":{"completion_tokens":32}}`, `data: {"choices":[],"usage":{"total_tokens":68}}`, done,
		}, call.Usage{Input: 6, CachedInput: 30, Output: 32}, ""},
		{"an empty report after a full one changes nothing", []string{
			stop + `,"usage":{"prompt_tokens":36,"completion_tokens":32}}`, `data: {"choices":[],"usage":null}`, `data: {"choices":[],"usage":{}}`, done,
		}, call.Usage{Input: 36, Output: 32}, ""},
	} {
		t.Run(c.dialect, func(t *testing.T) {
			got, seen := feed(t, c.lines)
			c.want.Requests = 1
			wiretest.Everywhere(t, openai.Chat{}, wire.StreamOptions{}, strings.Join(c.lines, "\n\n")+"\n\n")
			if !got.Reported || got.Usage != c.want || got.Cost != c.cost || len(got.Marks) > 0 || !got.Finished || got.ErrorSeen {
				t.Errorf("got  %+v\nwant %+v, cost %q", got, c.want, c.cost)
			}
			// Groq sends its own member to whoever streams, asked or not.
			if strings.Contains(seen, `"prompt_tokens"`) != strings.Contains(seen, `"x_groq"`) || !strings.HasSuffix(seen, done+"\n\n") {
				t.Errorf("the client, which has not asked for usage, reads\n%s", seen)
			}
			// Comments are the provider's own sign of life, and go on.
			if i := slices.IndexFunc(c.lines, func(line string) bool { return line[0] == ':' }); i >= 0 && !strings.Contains(seen, c.lines[i]) {
				t.Errorf("a comment is gone from\n%s", seen)
			}
		})
	}
}
