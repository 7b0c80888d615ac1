// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/gemini"
	"github.com/weirhq/weir/internal/wire/wiretest"
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
