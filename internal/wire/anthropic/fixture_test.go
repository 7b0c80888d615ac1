// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire/anthropic"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

const tier = "standard"

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
