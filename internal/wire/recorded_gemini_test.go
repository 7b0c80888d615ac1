// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

// generations are answers of the Gemini doors.
var generations = []wiretest.Expectation{
	{File: agentgateway + "vertex-gemini__blocked.json", Want: call.Usage{Input: 12}},
	{File: pydantic + "test_google__test_google_model_file_search_tool.yaml", Interaction: 3, Want: call.Usage{Input: 15, ToolInput: 288, Output: 40 + 257, Reasoning: 257}, Bytes: -1},
	{File: pydantic + "test_google__test_google_model_stream.yaml", Want: call.Usage{Input: 13, Output: 8}, Bytes: 32},
	{File: pydantic + "test_google__test_google_stream_usage_is_live_mid_stream.yaml", Want: call.Usage{Input: 18, Output: 80 + 35, Reasoning: 35, ServiceTier: "standard"}, Bytes: -1},
	{File: pydantic + "test_google__test_google_vertex_service_tier_flex.yaml", Want: call.Usage{Input: 5, Output: 1 + 51, Reasoning: 51, ServiceTier: "flex"}, Bytes: 2},
	{File: vercel + "google__src____fixtures____google-reasoning.json", Want: call.Usage{Input: 9, Output: 29 + 282, Reasoning: 282}, Bytes: -1},
	{File: vercel + "google__src____fixtures____google-text.chunks.txt", Want: call.Usage{Input: 9, Output: 23 + 185, Reasoning: 185}, Bytes: -1},
	{File: vercel + "google__src____fixtures____google-text.json", Want: call.Usage{Input: 9, Output: 28 + 244, Reasoning: 244}, Bytes: -1},
	{File: pydantic + "test_google__test_google_vertex_service_tier_flex_stream.yaml", Want: call.Usage{Input: 5, Output: 101, Reasoning: 100, ServiceTier: "flex"}, Bytes: -1},
	{File: pydantic + "test_google__test_google_vertexai_count_tokens_forwards_native_tools.yaml", Interaction: 1, Want: call.Usage{Input: 13, Output: 39, Reasoning: 32}, Bytes: -1},
}

// geminiCounts are counts of tokens.
var geminiCounts = []wiretest.Expectation{
	{File: "pydantic-ai/tests__cassettes__test_embeddings__TestGoogle.test_count_tokens.yaml", Counted: true, Bytes: -1},
	{File: "pydantic-ai/tests__cassettes__test_embeddings__TestGoogle.test_count_tokens_error.yaml", Counted: true, Failed: true, Bytes: -1},
	{File: pydantic + "test_google__test_google_model_usage_limit_exceeded.yaml", Counted: true, Bytes: -1},
	{File: pydantic + "test_google__test_google_vertexai_count_tokens_forwards_native_tools.yaml", Counted: true, Bytes: -1},
	{File: pydantic + "test_google__test_google_vertexai_model_usage_limit_exceeded.yaml", Counted: true, Bytes: -1},
}
