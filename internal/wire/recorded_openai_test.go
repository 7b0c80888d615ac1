// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

// responses are answers of the Responses door.
var responses = []wiretest.Expectation{
	{File: agentgateway + "responses__basic.json", Want: call.Usage{Input: 10, Output: 10, ServiceTier: "default"}, Bytes: -1},
	{File: agentgateway + "responses__stream-image.json", Want: call.Usage{Input: 1755, Output: 1314, Reasoning: 1152, ServiceTier: "default", Units: tools("image_generation", 1)}, Bytes: -1},
	{File: agentgateway + "responses__stream-refusal.json", Want: call.Usage{Input: 5, Output: 3}, Bytes: -1},
	{File: agentgateway + "responses__tool.json", Want: call.Usage{Input: 20, CachedInput: 4, CacheWrite5m: 6, Output: 5, ServiceTier: "default"}, Bytes: -1},
	{File: agentgateway + "responses__truncated_tool_call.json", Bytes: -1},
	{File: pydantic + "test_openai_prompt_cache__test_openrouter_responses_prompt_cache_e2e.yaml", Want: call.Usage{Input: 8, CacheWrite5m: 4012, Output: 5, ServiceTier: "default"}, Bytes: -1},
	{File: pydantic + "test_openai_prompt_cache__test_openrouter_responses_prompt_cache_e2e.yaml", Interaction: 1, Want: call.Usage{Input: 8, CachedInput: 4012, Output: 5, ServiceTier: "default"}, Bytes: -1},
	{File: pydantic + "test_openai_responses__test_background_mode_streaming_vcr.yaml", Want: call.Usage{Input: 15, Output: 9, ServiceTier: "default"}, Bytes: -1},
	{File: pydantic + "test_openai_responses__test_openai_responses_streaming_usage.yaml", Want: call.Usage{Input: 53, Output: 469, Reasoning: 448, ServiceTier: "flex"}, Bytes: -1},
	{File: pydantic + "test_openai_responses__test_responses_usage_limit_not_exceeded.yaml", Interaction: 1, Want: call.Usage{Input: 18, Output: 28}, Bytes: -1},
	{File: vercel + "azure__src____fixtures____azure-reasoning-encrypted-content.1.json", Want: call.Usage{Input: 564, Output: 101, Reasoning: 64, ServiceTier: "default"}, Bytes: -1},
	{File: vercel + "azure__src____fixtures____azure-text.1.chunks.txt", Want: call.Usage{Input: 11, Output: 11, ServiceTier: "default"}, Bytes: -1},
	// Four answers, one after the other: the last one counts.
	{File: vercel + "openai__src__responses____fixtures____openai-reasoning-encrypted-content.1.chunks.txt", Want: call.Usage{Input: 299, Output: 12, ServiceTier: "default"}, Bytes: -1},
	{File: vercel + "openai__src__responses____fixtures____openai-reasoning-encrypted-content.1.json", Want: call.Usage{Input: 865, Output: 163, Reasoning: 128, ServiceTier: "default"}, Bytes: -1},
	{File: vercel + "openai__src__responses____fixtures____reasoning-model-temperature-error.json", Failed: true, Bytes: -1},
	{File: vercel + "xai__src__responses____fixtures____xai-text-with-reasoning-streaming-store-false.1.chunks.txt", Want: call.Usage{Input: 24, CachedInput: 192, Output: 831, Reasoning: 253}, Bytes: -1},
}

// completions are those of text completions.
var completions = []wiretest.Expectation{
	{File: envoy + "completion-bad-request.yaml", Failed: true, Bytes: -1},
	{File: envoy + "completion-streaming.yaml", Bytes: -1},
	{File: envoy + "completion-suffix.yaml", Want: call.Usage{Input: 25, Output: 30}, Bytes: -1},
	{File: envoy + "completion-token.yaml", Want: call.Usage{Input: 31, Output: 25}, Bytes: -1},
	{File: vercel + "openai__src__completion____fixtures____openai-completion-text.chunks.txt", Want: call.Usage{Input: 14, Output: 16}, Bytes: -1},
	{File: vercel + "openai__src__completion____fixtures____openai-completion-text.json", Want: call.Usage{Input: 14, Output: 16}, Bytes: -1},
}

// embeddings are vectors.
var embeddings = []wiretest.Expectation{
	{File: agentgateway + "openai__embeddings.json", Want: call.Usage{Input: 8}, Bytes: -1},
	{File: agentgateway + "openai__gemini-embeddings.json", Bytes: -1},
	{File: envoy + "embeddings-bad-request.yaml", Failed: true, Bytes: -1},
	{File: envoy + "embeddings-max-tokens.yaml", Want: call.Usage{Input: 1139}, Bytes: -1},
	{File: envoy + "embeddings-tokens.yaml", Want: call.Usage{Input: 7}, Bytes: -1},
	{File: envoy + "embeddings-unknown-model.yaml", Failed: true, Bytes: -1},
}

// images are pictures.
var images = []wiretest.Expectation{
	{File: envoy + "image-generation-basic.yaml", Want: call.Usage{Units: call.Units{Images: 1}}, Bytes: -1},
	{File: vercel + "openai__src__image____fixtures____gpt-image-response-format-error.json", Failed: true, Bytes: -1},
}

// transcriptions are transcripts.
var transcriptions = []wiretest.Expectation{
	{File: envoy + "audio-transcription-basic.yaml", Want: call.Usage{Units: call.Units{AudioInputMicros: 7_000_000}}, Bytes: -1},
}
