// SPDX-License-Identifier: Apache-2.0

package call_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/call"
)

func TestAnEstimateFollowsTheFormulaOfEST1(t *testing.T) {
	for _, c := range []struct {
		name               string
		prompt             call.Prompt
		perToken, perImage int64
		want               int64
	}{
		{"an empty request costs three", call.Prompt{}, 0, 0, 3},
		{"a started token counts whole", call.Prompt{TextBytes: 1}, 0, 0, 1 + 3},
		{"three bytes are one token", call.Prompt{TextBytes: 300}, 0, 0, 100 + 3},
		{"messages, tools and images add", call.Prompt{TextBytes: 10, Messages: 2, Tools: 3, Images: 1}, 0, 0, 4 + 3 + 8 + 24 + 1600},
		{"a row's own figures replace the defaults", call.Prompt{TextBytes: 10, Images: 2}, 4, 85, 3 + 3 + 170},
		{"figures out of range mean the defaults", call.Prompt{TextBytes: 9, Images: 1}, 5, -1, 3 + 3 + 1600},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.prompt.InputTokens(c.perToken, c.perImage); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestAnEstimateNeverOverflowsNorShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Int64Range(0, math.MaxInt64)
		p := call.Prompt{
			TextBytes: count.Draw(t, "bytes"), Messages: count.Draw(t, "messages"),
			Tools: count.Draw(t, "tools"), Images: count.Draw(t, "images"),
		}
		small := p.InputTokens(4, 1)
		if small < 3 {
			t.Fatalf("estimate %d below the request's own tokens", small)
		}
		if large := p.InputTokens(1, 1600); large < small {
			t.Fatalf("fewer bytes a token gave fewer tokens: %d < %d", large, small)
		}
	})
}

func TestTotalsCountEachTokenOnce(t *testing.T) { // USE-3
	u := call.Usage{
		Input: 1, CachedInput: 2, CacheWrite5m: 4, CacheWrite1h: 8, ToolInput: 16, AudioInput: 32,
		CachedAudioInput: 64, ImageInput: 128, Output: 256, AudioOutput: 512, ImageOutput: 1024, Reasoning: 200,
	}
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"input", u.InputTotal(), 255},
		{"output", u.OutputTotal(), 1792},
		{"all", u.Tokens(), 2047},
		{"all but cache reads", u.TokensUncached(), 2047 - 66},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestTotalsSaturate(t *testing.T) {
	u := call.Usage{Input: math.MaxInt64, CachedInput: 1, Output: math.MaxInt64, AudioOutput: 5}
	if u.Tokens() != math.MaxInt64 {
		t.Errorf("got %d", u.Tokens())
	}
}

func TestARemainderIsNeverBelowZero(t *testing.T) { // USE-1
	for _, c := range []struct {
		total int64
		parts []int64
		rest  int64
		ok    bool
	}{
		{10, nil, 10, true},
		{10, []int64{3, 4}, 3, true},
		{10, []int64{10}, 0, true},
		{10, []int64{11}, 0, false},
		{10, []int64{math.MaxInt64, math.MaxInt64}, 0, false},
	} {
		if rest, ok := call.Remainder(c.total, c.parts...); rest != c.rest || ok != c.ok {
			t.Errorf("%d less %v: got %d, %v", c.total, c.parts, rest, ok)
		}
	}
}

func TestAMarkStandsOnce(t *testing.T) {
	var o call.Observed
	o.Mark(call.MarkAbsurd)
	o.Mark(call.MarkEstimated)
	o.Mark(call.MarkAbsurd)
	if len(o.Marks) != 2 {
		t.Errorf("got %v", o.Marks)
	}
}
