// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/gemini"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

const (
	pydantic = "pydantic-ai/tests__models__cassettes__test_google__test_google_"
	vercel   = "vercel-ai/packages__google__src____fixtures____google-"
)

func searched(calls int64) (u call.Units) {
	u.Tools.Set(call.WebSearch, calls)
	return u
}

func TestOwnAnswersReadAsWorkedOut(t *testing.T) { // USE-1
	array := wire.StreamOptions{Call: &call.Call{Stream: true, ArrayStream: true}}
	wiretest.Own(t, gemini.Generate{Stream: true}, []wiretest.Expectation{
		{File: "answer.json", Want: call.Usage{
			Input: 100 - 40 - 20, CachedInput: 30, CachedAudioInput: 10, AudioInput: 20, ToolInput: 8, Output: 12 + 30, Reasoning: 30,
			Units: searched(1),
		}, Bytes: 7 + 4 + 12},
		{File: "stream.txt", Want: call.Usage{Input: 9, Output: 23, Reasoning: 20}, Bytes: 7},
		{File: "array.json", Want: call.Usage{Input: 9, Output: 3}, Bytes: 9, Options: array},
		{File: "cut.txt", Want: call.Usage{Input: 9, Output: 3}, Bytes: 7, Marks: []call.Mark{call.MarkEstimated}},
	})
}

func TestRecordedAnswersReadAsWorkedOut(t *testing.T) { // USE-1
	wiretest.Recorded(t, gemini.Generate{}, []wiretest.Expectation{
		{File: "agentgateway/crates__llm__src__tests__response__vertex-gemini__blocked.json", Want: call.Usage{Input: 12}},
		{File: pydantic + "model_file_search_tool.yaml", Interaction: 3, Want: call.Usage{Input: 15, ToolInput: 288, Output: 40 + 257, Reasoning: 257}, Bytes: -1},
		{File: pydantic + "model_stream.yaml", Want: call.Usage{Input: 13, Output: 8}, Bytes: 32},
		{File: pydantic + "stream_usage_is_live_mid_stream.yaml", Want: call.Usage{Input: 18, Output: 80 + 35, Reasoning: 35, ServiceTier: "standard"}, Bytes: -1},
		{File: pydantic + "vertex_service_tier_flex.yaml", Want: call.Usage{Input: 5, Output: 1 + 51, Reasoning: 51, ServiceTier: "flex"}, Bytes: 2},
		{File: vercel + "reasoning.json", Want: call.Usage{Input: 9, Output: 29 + 282, Reasoning: 282}, Bytes: -1},
		{File: vercel + "text.chunks.txt", Want: call.Usage{Input: 9, Output: 23 + 185, Reasoning: 185}, Bytes: -1},
		{File: vercel + "text.json", Want: call.Usage{Input: 9, Output: 28 + 244, Reasoning: 244}, Bytes: -1},
	})
}
