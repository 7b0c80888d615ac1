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

var own = []wiretest.Expectation{
	{File: "answer.json", Want: call.Usage{Input: 18, CachedInput: 32, Output: 9, ServiceTier: "priority"}, Bytes: 15},
	{File: "stream.txt", Want: call.Usage{Input: 6, Output: 3}, Bytes: 7},
}

func TestOwnAnswersReadAsWorkedOut(t *testing.T) { // USE-1
	wiretest.Own(t, openai.Chat{}, own)
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
