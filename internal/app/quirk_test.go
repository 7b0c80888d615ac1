// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// quirkPrice has a price of its own for every part that a provider bills apart.
const quirkPrice = `{input: "1", cached_input: "0.1", cache_write_5m: "1.25", cache_write_1h: "2", output: "10", audio_input: "3", audio_output: "80", image_output: "120",
      per_tool_call: {web_search: "0.01"}, above: {"900": {input: "2", output: "15"}}, factor: {flex: "1/2"}, service_tier: {priority: {input: "1.75", output: "18"}}}`

// A quirk is a way in which providers report what they bill, as the simulator is
// told it.
type quirk struct {
	name, script string
	rates        map[string]string // where they are not those of quirkPrice
}

// quirks are those of every protocol, the wrong ones of UsageMode among them that
// still say what is billed.
func quirks() []quirk {
	long := map[string]string{"input": "2", "output": "15"}
	list := []quirk{
		{"plain", "in=20&out=30", nil},
		{"reasoning", "in=20&out=300&reasoning=270", nil},
		{"cached", "in=600&cached=500&out=30", nil},
		{"written", "in=600&cached=100&write5m=200&write1h=250&out=30", nil},
		{"heard", "in=600&audioin=500&out=30", nil},
		{"spoken", "in=20&out=300&audioout=250", nil},
		{"painted", "in=20&out=300&imageout=250&reasoning=40", nil},
		{"searched", "in=20&out=30&searches=3", nil},
		{"tooled", "in=600&toolin=400&out=30", nil},
		{"threshold", "in=900&out=30", nil},
		{"long", "in=901&out=30", long},
		{"flex", "in=20&out=30&tier=flex", map[string]string{"input": "0.5", "output": "5"}},
		{"priority", "in=20&out=30&tier=priority", map[string]string{"input": "1.75", "output": "18"}},
		{"snapshot", "in=20&out=30&as=other-2026-01-02", nil},
		{"split", "in=20&out=30&split=7", nil},
		{"joined", "in=20&out=30&join=50", nil},
		{"framed", "in=20&out=30&crlf&ping", nil},
		{"zipped", "in=20&out=30&gzip", nil},
	}
	for _, mode := range []simulator.UsageMode{
		simulator.UsageAlways, simulator.UsageEach, simulator.UsageFinish, simulator.UsageShrink, simulator.UsageTwice, simulator.UsageSpread,
	} {
		list = append(list, quirk{"usage-" + string(mode), "in=600&cached=500&out=300&reasoning=100&usage=" + string(mode), nil})
	}
	for _, d := range simulator.Dialects() {
		list = append(list, quirk{"dialect-" + string(d), "in=600&cached=500&out=300&reasoning=100&searches=2&dialect=" + string(d), nil})
	}
	return list
}

// owed is what the provider's bill since before comes to, from its own figures and
// these rates alone.
func (q quirk) owed(t *testing.T, before, after simulator.Totals) money.Nanos {
	t.Helper()
	rate := func(name, usual string) *big.Rat {
		if own, ok := q.rates[name]; ok {
			usual = own
		}
		r, ok := new(big.Rat).SetString(usual)
		if !ok {
			t.Fatalf("rate %s of %s", usual, name)
		}
		return r
	}
	parts := []struct {
		n    int64
		rate *big.Rat
	}{
		{after.Cached - before.Cached, rate("cached", "0.1")},
		{after.CacheWrite5m - before.CacheWrite5m, rate("write5m", "1.25")},
		{after.CacheWrite1h - before.CacheWrite1h, rate("write1h", "2")},
		{after.AudioInput - before.AudioInput, rate("audio", "3")},
	}
	fresh, text := after.Input-before.Input, after.Output-before.Output
	sum := new(big.Rat)
	for _, p := range parts {
		sum.Add(sum, new(big.Rat).Mul(p.rate, big.NewRat(p.n, 1)))
		fresh -= p.n
	}
	for n, r := range map[*big.Rat]int64{rate("spoken", "80"): after.AudioOutput - before.AudioOutput, rate("painted", "120"): after.ImageOutput - before.ImageOutput} {
		sum.Add(sum, new(big.Rat).Mul(n, big.NewRat(r, 1)))
		text -= r
	}
	sum.Add(sum, new(big.Rat).Mul(rate("input", "1"), big.NewRat(fresh, 1)))
	sum.Add(sum, new(big.Rat).Mul(rate("output", "10"), big.NewRat(text, 1)))
	sum.Add(sum, big.NewRat(10_000*(after.Searches-before.Searches), 1)) // a cent each
	sum.Mul(sum, big.NewRat(1_000, 1))                                   // millionths of a dollar to billionths
	up := new(big.Int).Add(sum.Num(), new(big.Int).Sub(sum.Denom(), big.NewInt(1)))
	return money.Nanos(up.Quo(up, sum.Denom()).Int64())
}

// TestWhateverAProvidersWayTheLedgerIsItsBill: USE-1, USE-2, PRC-1, BR-056, BR-066,
// BR-067, BR-070, BR-073, BR-077, BR-079, BR-084, BR-088, BR-090, BR-097, BR-099,
// BR-100, BR-101, BR-102, BR-104, BR-105. Every quirk at every protocol's doors, whole
// and streamed: what is charged is what the provider bills, to the nano-dollar, and
// nothing is estimated.
func TestWhateverAProvidersWayTheLedgerIsItsBill(t *testing.T) {
	for _, c := range []struct {
		name, protocol, base string
		doors                []string
		body                 func(model string) []string
	}{
		{"chat", "openai", "%PROVIDER%", []string{"/v1/chat/completions"}, func(model string) []string {
			return []string{chatBody(model, `"n":1`), chatBody(model, `"stream":true`), chatBody(model, `"stream":true,"stream_options":{"include_usage":true}`)}
		}},
		{"responses", "openai", "%PROVIDER%", []string{"/v1/responses"}, func(model string) []string {
			return []string{`{"model":"` + model + `","input":"hello"}`, `{"model":"` + model + `","input":"hello","stream":true}`}
		}},
		{"messages", "anthropic", "%PROVIDER%", []string{"/v1/messages"}, func(model string) []string {
			body := `{"model":"` + model + `","max_tokens":1000,"messages":[{"role":"user","content":"hello"}]`
			return []string{body + `}`, body + `,"stream":true}`}
		}},
		{"gemini", "gemini", "%PROVIDER%beta", []string{
			"/v1beta/models/{model}:generateContent", "/v1beta/models/{model}:streamGenerateContent", "/v1beta/models/{model}:streamGenerateContent?alt=sse",
		}, func(string) []string {
			return []string{`{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var models strings.Builder
			for _, q := range quirks() {
				fmt.Fprintf(&models, "  - {name: %s, provider: p, upstream: %q, context_tokens: 128000, price: %s}\n", q.name, "sim?"+q.script, quirkPrice)
			}
			w := newWorld(t, "providers:\n  - {name: p, protocol: "+c.protocol+`, base_url: "`+c.base+`", api_key: `+providerCredential+"}\nmodels:\n"+models.String()+
				"keys:\n  - {name: k, secret: "+routesKey+"}\n")
			for _, q := range quirks() {
				for _, door := range c.doors {
					for _, body := range c.body(q.name) {
						before, spent := w.provider.Bill().Totals, w.spend("")
						a := w.must(w.do(context.Background(), http.MethodPost, strings.ReplaceAll(door, "{model}", q.name), routesKey, body), 200, "")
						got, want := w.spend("")-spent, q.owed(t, before, w.provider.Bill().Totals)
						if got != want || want == 0 {
							t.Errorf("%s at %s: charged %s USD, billed %s USD\n%s\n%s", q.name, door, got, want, body, a.body)
						}
						if end := w.shown(a).End; end == nil || end.Usage.Estimated || len(end.Marks) > 0 {
							t.Errorf("%s at %s: recorded as %+v", q.name, door, end)
						}
					}
				}
			}
			w.balanced()
		})
	}
}
