// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

// tools are calls of the provider's own tools.
func tools(name string, calls int64) (u call.Units) {
	u.Tools.Set(name, calls)
	return u
}

// messages are answers of the Messages door.
var messages = []wiretest.Expectation{
	{File: agentgateway + "anthropic__basic.json", Want: call.Usage{Input: 15, CachedInput: 12, CacheWrite5m: 13, Output: 21, ServiceTier: "standard"}, Bytes: 73},
	{File: agentgateway + "anthropic__stream_message_delta_usage.json", Want: call.Usage{Input: 3883, CachedInput: 30464, Output: 49}},
	{File: agentgateway + "anthropic__stream_thinking.json", Want: call.Usage{Input: 47, Output: 264, ServiceTier: "standard"}, Bytes: -1},
	{File: agentgateway + "anthropic__stream_tool.json", Want: call.Usage{Input: 15, Output: 12}, Bytes: -1},
	{File: agentgateway + "anthropic__thinking.json", Want: call.Usage{Input: 47, CachedInput: 2, CacheWrite5m: 1, Output: 251, ServiceTier: "standard"}, Bytes: -1},
	{File: agentgateway + "anthropic__tool.json", Want: call.Usage{Input: 558, CachedInput: 2, CacheWrite5m: 1, Output: 48, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_cache_real_api.yaml", Want: call.Usage{Input: 3, CachedInput: 1111, Output: 406, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_cache_real_api.yaml", Interaction: 1, Want: call.Usage{Input: 3, CachedInput: 1111, CacheWrite5m: 418, Output: 33, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_model_thinking_part_redacted_stream.yaml", Want: call.Usage{Input: 92, Output: 189, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_count_tokens_error.yaml", Failed: true},
	{
		File: pydantic + "test_anthropic__test_anthropic_advisor_tool_stream.yaml", Bytes: -1, Marks: []call.Mark{call.MarkOtherModel},
		Want: call.Usage{Input: 2411 + 2543, Output: 145 + 18, Reasoning: 47, ServiceTier: "standard"},
	},
	{File: vercel + "anthropic__src____fixtures____anthropic-code-execution-20260120-prompt-cache.1.chunks.txt", Want: call.Usage{Input: 6, CachedInput: 6289, CacheWrite5m: 3337, Output: 198, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-compaction.1.chunks.txt", Want: call.Usage{Input: 60385 + 612, Output: 522 + 2819, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-refusal.json", Want: call.Usage{Input: 18, Output: 5, ServiceTier: "standard"}},
	{File: vercel + "anthropic__src____fixtures____anthropic-web-fetch-tool.error.json", Want: call.Usage{Input: 1902, Output: 214, ServiceTier: "standard", Units: tools(call.WebFetch, 1)}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-json-tool.2.chunks.txt", Want: call.Usage{Input: 849, Output: 47, ServiceTier: "standard"}, Bytes: -1},
	{File: "pydantic-ai/tests__models__anthropic__cassettes__test_output__test_mixed_tools_no_output.yaml", Want: call.Usage{Input: 612, Output: 101, ServiceTier: "standard"}, Bytes: -1},
	{File: "pydantic-ai/tests__models__anthropic__cassettes__test_output__test_mixed_tools_no_output.yaml", Interaction: 1, Want: call.Usage{Input: 798, Output: 50, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_cache_bedrock_real_api.yaml", Want: call.Usage{Input: 3, CachedInput: 9511, Output: 1944}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_cache_bedrock_real_api.yaml", Interaction: 1, Want: call.Usage{Input: 3, CachedInput: 9511, CacheWrite5m: 1956, Output: 44}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_cache_count_tokens.yaml", Interaction: 1, Want: call.Usage{Input: 3, CachedInput: 1111, Output: 414, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_count_tokens_with_adaptive_thinking_and_output_tools.yaml", Interaction: 1, Want: call.Usage{Input: 671, Output: 55, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_model_thinking_part_stream.yaml", Want: call.Usage{Input: 43, Output: 282, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_model_usage_limit_not_exceeded.yaml", Interaction: 1, Want: call.Usage{Input: 19, Output: 77, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic_mid_conversation_system__test_inline_system_prompt_cache_prefix_is_reused.yaml", Want: call.Usage{Input: 2, CacheWrite5m: 1590, Output: 4, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_anthropic_mid_conversation_system__test_inline_system_prompt_cache_prefix_is_reused.yaml", Interaction: 1, Want: call.Usage{Input: 2, CachedInput: 1590, Output: 4, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-advisor-stop-reasons.json", Want: call.Usage{Input: 10, Output: 20}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-claude-opus-5-reasoning-high.1.json", Want: call.Usage{Input: 51, Output: 1699, Reasoning: 139, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-clear-thinking.1.chunks.txt", Want: call.Usage{Input: 69, Output: 53, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-json-other-tool.1.chunks.txt", Want: call.Usage{Input: 843, Output: 28, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-json-output-format.1.chunks.txt", Want: call.Usage{Input: 313, Output: 305, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-json-tool.1.chunks.txt", Want: call.Usage{Input: 849, Output: 47, ServiceTier: "standard"}, Bytes: -1},
	{File: vercel + "anthropic__src____fixtures____anthropic-refusal-no-details.json", Want: call.Usage{Input: 18, Output: 5, ServiceTier: "standard"}, Bytes: -1},
}

// messageCounts are counts of tokens.
var messageCounts = []wiretest.Expectation{
	{File: agentgateway + "anthropic__count_tokens.json", Counted: true, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_cache_count_tokens.yaml", Counted: true, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_count_tokens_keeps_memory_tool.yaml", Counted: true, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_count_tokens_with_adaptive_thinking_and_output_tools.yaml", Counted: true, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_count_tokens_with_native_tools.yaml", Counted: true, Bytes: -1},
	{File: pydantic + "test_anthropic__test_anthropic_model_usage_limit_not_exceeded.yaml", Counted: true, Bytes: -1},
}
