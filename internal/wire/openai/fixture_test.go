// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

const (
	agentgateway = "agentgateway/crates__llm__src__tests__response__completions__"
	envoy        = "envoy-ai-gateway/tests__internal__testopenai__cassettes__"
	pydantic     = "pydantic-ai/tests__models__cassettes__"
	thinking     = "pydantic-ai/tests__cassettes__test_thinking_wire_contract__test_reasoning_wire_contract"
	tier         = "default"
)

var own = []wiretest.Expectation{
	{File: "answer.json", Want: call.Usage{Input: 18, CachedInput: 32, Output: 9, ServiceTier: "priority"}, Bytes: 15},
	{File: "stream.txt", Want: call.Usage{Input: 6, Output: 3}, Bytes: 7},
}

var recorded = []wiretest.Expectation{
	{File: agentgateway + "basic.json", Want: call.Usage{Input: 17, Output: 23, ServiceTier: tier}, Bytes: 106},
	{File: agentgateway + "cache_write.json", Want: call.Usage{Input: 500, CachedInput: 300, CacheWrite5m: 200, Output: 10, ServiceTier: tier}, Bytes: 15},
	{File: agentgateway + "gemini_zero_completion_tokens.json", Want: call.Usage{Input: 7, Output: 1}, Marks: []call.Mark{call.MarkInconsistent}},
	{File: agentgateway + "gemini_with_completion_tokens.json", Want: call.Usage{Input: 7, Output: 395}, Marks: []call.Mark{call.MarkInconsistent}, Bytes: 55},
	{File: agentgateway + "openrouter_reasoning.json", Want: call.Usage{Input: 23, Output: 796}, Bytes: 12 + 40},
	{File: agentgateway + "audio.json", Want: call.Usage{Input: 68, CachedInput: 12, AudioInput: 240, Output: 90, AudioOutput: 90, Reasoning: 15, ServiceTier: tier}, Bytes: 44 + 44},
	{File: agentgateway + "tool_call.json", Want: call.Usage{Input: 25, Output: 18, ServiceTier: tier}, Bytes: 11 + 48 + 10 + 22},
	{File: agentgateway + "truncated_tool_call.json", Want: call.Usage{Input: 20, Output: 15}, Bytes: 11 + 17},
	{File: agentgateway + "stream.json", Want: call.Usage{Input: 18, Output: 286, Reasoning: 192, ServiceTier: tier}, Bytes: 356},
	{File: envoy + "azure-chat-basic.yaml", Want: call.Usage{Input: 8, Output: 271, Reasoning: 192}, Bytes: 304},
	{File: envoy + "chat-basic.yaml", Want: call.Usage{Input: 8, Output: 377, Reasoning: 320, ServiceTier: tier}, Bytes: 208},
	{File: envoy + "chat-audio-to-text.yaml", Want: call.Usage{Input: 27, AudioInput: 1, Output: 17, ServiceTier: tier}, Bytes: 73},
	{File: envoy + "chat-bad-request.yaml", Failed: true},
	{File: envoy + "chat-unknown-model.yaml", Failed: true},
	{File: envoy + "chat-image-to-text.yaml", Want: call.Usage{Input: 22, Output: 719, Reasoning: 704, ServiceTier: tier}, Bytes: 30},
	{File: envoy + "chat-json-mode.yaml", Want: call.Usage{Input: 21, Output: 280, Reasoning: 256, ServiceTier: tier}, Bytes: 53},
	{File: envoy + "chat-multimodal.yaml", Want: call.Usage{Input: 2245, Output: 100, Reasoning: 100, ServiceTier: tier}},
	{File: envoy + "chat-multiturn.yaml", Want: call.Usage{Input: 50, Output: 526, Reasoning: 512, ServiceTier: tier}, Bytes: 20},
	{File: envoy + "chat-parallel-tools.yaml", Want: call.Usage{Input: 162, Output: 219, Reasoning: 192, ServiceTier: tier}, Bytes: 51},
	{File: envoy + "chat-reasoning.yaml", Want: call.Usage{Input: 27, Output: 267, Reasoning: 192, ServiceTier: tier}, Bytes: 140},
	{File: envoy + "chat-web-search.yaml", Want: call.Usage{Input: 26, Output: 22}, Bytes: 80},
	{File: envoy + "chat-streaming-detailed-usage.yaml", Want: call.Usage{Input: 12, Output: 100, Reasoning: 100, ServiceTier: tier}},
	{File: envoy + "chat-streaming-web-search.yaml", Bytes: -1},
	{File: pydantic + "test_deepseek__test_deepseek_model_thinking_stream.yaml", Want: call.Usage{Input: 6, Output: 212, Reasoning: 198}, Bytes: -1},
	{File: pydantic + "test_cerebras__test_cerebras_model_simple.yaml", Want: call.Usage{Input: 43, Output: 9}, Bytes: 10},
	{File: pydantic + "test_cerebras__test_cerebras_thinking_part_survives_multiturn.yaml", Want: call.Usage{Input: 79, Output: 37, Reasoning: 25}, Bytes: -1},
	{File: pydantic + "test_cerebras__test_cerebras_thinking_part_survives_multiturn.yaml", Interaction: 1, Want: call.Usage{Input: 98, Output: 47, Reasoning: 27}, Bytes: -1},
	{File: pydantic + "test_cerebras__test_cerebras_zai_reasoning_replayed_as_think_tags.yaml", Want: call.Usage{Input: 17, Output: 415, Reasoning: 406}, Bytes: -1},
	{File: pydantic + "test_openai__test_openai_model_cerebras_provider.yaml", Want: call.Usage{Input: 42, Output: 8}, Bytes: -1},
	{File: pydantic + "test_openai__test_openai_model_cerebras_provider_harmony.yaml", Want: call.Usage{Input: 74, Output: 36}, Bytes: -1},
	{File: thinking + "[cerebras-gpt-oss-always-on].yaml", Want: call.Usage{Input: 80, Output: 45, Reasoning: 34}, Bytes: -1},
	{File: thinking + "[cerebras-zai-clear-thinking].yaml", Want: call.Usage{Input: 18, Output: 2}, Bytes: -1},
	{File: pydantic + "test_openai_prompt_cache__test_openai_chat_prompt_cache_e2e.yaml", Want: call.Usage{Input: 8, CacheWrite5m: 4012, Output: 4, ServiceTier: tier}, Bytes: -1},
	{File: pydantic + "test_openai_prompt_cache__test_openai_chat_prompt_cache_e2e.yaml", Interaction: 1, Want: call.Usage{Input: 8, CachedInput: 4012, Output: 4, ServiceTier: tier}, Bytes: -1},
	{File: pydantic + "test_openrouter__test_openrouter_stream_error.yaml", Want: call.Usage{Input: 43, Output: 11, Reasoning: 11}, Failed: true, Marks: []call.Mark{call.MarkInconsistent}, Bytes: -1},
	{File: pydantic + "test_openrouter__test_openrouter_stream_with_native_options.yaml", Want: call.Usage{Input: 8, CachedInput: 679, Output: 187, Reasoning: 118}, Bytes: -1},
	{File: pydantic + "test_openrouter__test_openrouter_usage.yaml", Want: call.Usage{Input: 17, Output: 1515, Reasoning: 704}, Bytes: -1},
	{File: pydantic + "test_groq__test_tool_use_failed_error_streaming.yaml", Failed: true, Bytes: -1},
	{File: pydantic + "test_groq__test_tool_use_failed_error_streaming.yaml", Interaction: 1, Want: call.Usage{Input: 304, Output: 49, Reasoning: 23}, Bytes: -1},
}

func TestOwnAnswersReadAsWorkedOut(t *testing.T) {
	wiretest.Own(t, openai.Chat{}, own)
}

// TestRecordedAnswersReadAsWorkedOut: USE-1.
func TestRecordedAnswersReadAsWorkedOut(t *testing.T) {
	wiretest.Recorded(t, openai.Chat{}, recorded)
}

// TestHiddenUsageIsReadAllTheSame: DIS-6.
func TestHiddenUsageIsReadAllTheSame(t *testing.T) {
	text := wiretest.Answer(t, "testdata/stream.txt", 0)
	shown, all := run(t, wire.StreamOptions{}, text)
	hidden, observed := run(t, wire.StreamOptions{HideUsage: true}, strings.SplitAfter(text, "e")...)
	if strings.Contains(hidden, `"usage":{"prompt`) || !strings.Contains(shown, `"usage":{"prompt`) || observed.Usage != all.Usage {
		t.Errorf("hidden: %+v of %q", observed, hidden)
	}
}
