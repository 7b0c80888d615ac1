// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire/anthropic"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

const (
	agentgateway = "agentgateway/crates__llm__src__tests__response__anthropic__"
	pydantic     = "pydantic-ai/tests__models__cassettes__test_anthropic__"
	vercel       = "vercel-ai/packages__anthropic__src____fixtures____anthropic-"
	tier         = "standard"
)

// tools are calls of the provider's own tools.
func tools(name string, calls int64) (u call.Units) {
	u.Tools.Set(name, calls)
	return u
}

func TestOwnAnswersReadAsWorkedOut(t *testing.T) { // USE-1
	wiretest.Own(t, anthropic.Messages{}, []wiretest.Expectation{
		{File: "answer.json", Want: call.Usage{
			Input: 7, CachedInput: 100, CacheWrite5m: 20, CacheWrite1h: 30, Output: 11, Reasoning: 2, ServiceTier: "priority",
			Units: tools(call.WebSearch, 2),
		}, Bytes: 2 + 7 + 4 + 12},
		{File: "stream.txt", Want: call.Usage{Input: 25, CachedInput: 4, Output: 15, ServiceTier: tier}, Bytes: 7},
		{File: "cut.txt", Want: call.Usage{Input: 25, Output: 3}, Bytes: 7, Marks: []call.Mark{call.MarkEstimated}},
		{File: "error.txt", Want: call.Usage{Input: 25, Output: 1}, Failed: true, Marks: []call.Mark{call.MarkEstimated}},
	})
}

func TestRecordedAnswersReadAsWorkedOut(t *testing.T) { // USE-1
	wiretest.Recorded(t, anthropic.Messages{}, []wiretest.Expectation{
		{File: agentgateway + "basic.json", Want: call.Usage{Input: 15, CachedInput: 12, CacheWrite5m: 13, Output: 21, ServiceTier: tier}, Bytes: 73},
		{File: agentgateway + "stream_message_delta_usage.json", Want: call.Usage{Input: 3883, CachedInput: 30464, Output: 49}},
		{File: agentgateway + "stream_thinking.json", Want: call.Usage{Input: 47, Output: 264, ServiceTier: tier}, Bytes: -1},
		{File: agentgateway + "stream_tool.json", Want: call.Usage{Input: 15, Output: 12}, Bytes: -1},
		{File: agentgateway + "thinking.json", Want: call.Usage{Input: 47, CachedInput: 2, CacheWrite5m: 1, Output: 251, ServiceTier: tier}, Bytes: -1},
		{File: agentgateway + "tool.json", Want: call.Usage{Input: 558, CachedInput: 2, CacheWrite5m: 1, Output: 48, ServiceTier: tier}, Bytes: -1},
		{File: pydantic + "test_anthropic_cache_real_api.yaml", Want: call.Usage{Input: 3, CachedInput: 1111, Output: 406, ServiceTier: tier}, Bytes: -1},
		{File: pydantic + "test_anthropic_cache_real_api.yaml", Interaction: 1, Want: call.Usage{Input: 3, CachedInput: 1111, CacheWrite5m: 418, Output: 33, ServiceTier: tier}, Bytes: -1},
		{File: pydantic + "test_anthropic_model_thinking_part_redacted_stream.yaml", Want: call.Usage{Input: 92, Output: 189, ServiceTier: tier}, Bytes: -1},
		{File: pydantic + "test_anthropic_count_tokens_error.yaml", Failed: true},
		{
			File: pydantic + "test_anthropic_advisor_tool_stream.yaml", Bytes: -1, Marks: []call.Mark{call.MarkOtherModel},
			Want: call.Usage{Input: 2411 + 2543, Output: 145 + 18, Reasoning: 47, ServiceTier: tier},
		},
		{File: vercel + "code-execution-20260120-prompt-cache.1.chunks.txt", Want: call.Usage{Input: 6, CachedInput: 6289, CacheWrite5m: 3337, Output: 198, ServiceTier: tier}, Bytes: -1},
		{File: vercel + "compaction.1.chunks.txt", Want: call.Usage{Input: 60385 + 612, Output: 522 + 2819, ServiceTier: tier}, Bytes: -1},
		{File: vercel + "refusal.json", Want: call.Usage{Input: 18, Output: 5, ServiceTier: tier}},
		{File: vercel + "web-fetch-tool.error.json", Want: call.Usage{Input: 1902, Output: 214, ServiceTier: tier, Units: tools(call.WebFetch, 1)}, Bytes: -1},
		{File: vercel + "json-tool.2.chunks.txt", Want: call.Usage{Input: 849, Output: 47, ServiceTier: tier}, Bytes: -1},
	})
}
