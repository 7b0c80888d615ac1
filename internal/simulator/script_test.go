// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

func TestModelNamesAreReadStrictly(t *testing.T) {
	at := func(m simulator.Manner, p simulator.Point) simulator.Behaviour {
		return simulator.Behaviour{Break: simulator.Break{Manner: m, At: p}}
	}
	for model, want := range map[string]simulator.Behaviour{
		"sim":                                            {},
		"acme/gpt-4o:free@v1+x_y.z":                      {},
		"sim?in=10&out=5":                                {Input: simulator.Exactly(10), Output: simulator.Exactly(5)},
		"sim?in=0&bytes=0":                               {Input: simulator.Exactly(0), TextBytes: simulator.Exactly(0)},
		"sim?latency=1.5s&gap=5ms":                       {Latency: 1500 * time.Millisecond, Gap: 5 * time.Millisecond},
		"sim?status=429&retry=7&echo":                    {Status: 429, RetryAfterSeconds: 7, Echo: true},
		"sim?cut=headers":                                at(simulator.BreakCut, simulator.BeforeHeaders()),
		"sim?close=after:2":                              at(simulator.BreakClose, simulator.AfterEvents(2)),
		"sim?hang=usage":                                 at(simulator.BreakHang, simulator.BeforeUsage()),
		"sim?error=done":                                 at(simulator.BreakError, simulator.BeforeDone()),
		"sim?end=after:0":                                at(simulator.BreakEnd, simulator.AfterEvents(0)),
		"sim?usage=negative&tier=flex&as=o-1":            {Usage: simulator.UsageNegative, ServiceTier: "flex", AnswerModel: "o-1"},
		"sim?refuse=max_tokens&cached=1":                 {Refuse: simulator.FieldMaxTokens, Cached: 1},
		"sim?chunk=3&split=2&join=4":                     {ChunkTokens: 3, Split: 2, Join: 4},
		"sim?crlf&ping&gzip&invalid&reasoning=4":         {CRLF: true, Ping: true, Gzip: true, Invalid: true, Reasoning: 4},
		"sim?cached=1&write5m=2&write1h=3&toolin=4":      {Cached: 1, CacheWrite5m: 2, CacheWrite1h: 3, ToolInput: 4},
		"sim?audioin=1&audioout=2&imageout=3&searches=4": {AudioInput: 1, AudioOutput: 2, ImageOutput: 3, Searches: 4},
		"sim?dialect=xai&usage=shrink":                   {Dialect: simulator.XAI, Usage: simulator.UsageShrink},
		"sim?ignore&unbounded&free":                      {Ignore: true, Unbounded: true, Free: true},
	} {
		_, got, err := simulator.ParseModel(model)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", model, got, err)
		}
	}
	for _, model := range []string{
		"", "?", "?in=1", "sim?", "sim?&", "sim?in=1&", "sim?in", "sim?in=", "sim?in=01", "sim?in=+1", "sim?in=-1", "sim?in=1.0", "sim?in=1e3",
		"sim?in=1000001", "sim?in=99999999999999999999", "sim?in=1&in=1", "sim?in=1?out=2", "sim?In=1", "sim?in =1", "sim? in=1", "sim?out=x",
		"sim?chunk=0", "sim?dialect=", "sim?dialect=klingon", "sim?searches=1001", "sim?write1h=1000001", "sim?split=0", "sim?join=1001", "sim?latency=5", "sim?latency=-5s", "sim?latency=+5s", "sim?latency=11m", "sim?latency=",
		"sim?status=200", "sim?status=600", "sim?status=0", "sim?retry=5", "sim?usage=", "sim?usage=maybe", "sim?refuse=model", "sim?tier=a b",
		"sim?as=", "sim?cut", "sim?cut=", "sim?cut=after", "sim?cut=after:", "sim?cut=after:-1", "sim?cut=headers:1", "sim?cut=middle",
		"sim?cut=after:1&hang=done", "sim?error=headers", "sim?free=1", "sim?free&free", "sim?nonsense", "sim?nonsense=1", "a b", "sïm", "sim#x",
		strings.Repeat("x", 201), "sim?tier=" + strings.Repeat("x", 201), "sim?" + strings.Repeat("x", 1_001),
	} {
		if _, b, err := simulator.ParseModel(model); err == nil {
			t.Errorf("%q was accepted as %+v", model, b)
		}
	}
}

func FuzzModelName(f *testing.F) {
	for _, seed := range []string{
		"sim", "sim?in=10&out=5&latency=300ms&chunk=3&gap=5us&status=500", "sim?cut=after:2&usage=none", "sim?error=done&crlf&ping",
		"sim?reasoning=4&bytes=7&cached=3&tier=flex&as=x&refuse=max_tokens&retry=3&status=400&split=2&join=3&echo&ignore&free&gzip",
		"sim?write5m=1&write1h=2&toolin=3&audioin=4&audioout=5&imageout=6&searches=7&dialect=groq&usage=spread",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, model string) {
		name, b, err := simulator.ParseModel(model)
		if err != nil {
			return
		}
		again, same, err := simulator.ParseModel(b.Model(name))
		if err != nil || again != name || !reflect.DeepEqual(b, same) {
			t.Errorf("%q gives %q, which gives %+v, not %+v: %v", model, b.Model(name), same, b, err)
		}
	})
}
