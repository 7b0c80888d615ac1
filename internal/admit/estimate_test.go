// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

func TestTheOutputBoundIsTheLeastThatApplies(t *testing.T) { // EST-2, KEY-6, BR-033, BR-034
	const none = call.NoBound
	for _, c := range []struct {
		name               string
		sent, key          int64
		max, standard, ctx int64 // of the model
		reserving          bool
		held, written      int64
	}{
		{"nothing reserves: nothing is written", none, 0, 1000, 0, 100_000, false, 1000, 0},
		{"the model's default where it has one", none, 0, 1000, 300, 100_000, false, 300, 0},
		{"the client's value", 500, 0, 1000, 300, 100_000, false, 500, 0},
		{"the model's own maximum clamps", 5000, 0, 1000, 0, 100_000, false, 1000, 1000},
		{"a key's maximum is filled in", none, 200, 1000, 0, 100_000, false, 200, 200},
		{"within the model's default", none, 900, 1000, 300, 100_000, false, 300, 300},
		{"within the model's maximum", none, 9000, 1000, 0, 100_000, false, 1000, 1000},
		{"a key's maximum of zero is none", none, 0, 1000, 0, 100_000, false, 1000, 0},
		{"a value below both stays, written for a second field", 50, 200, 1000, 0, 100_000, false, 50, 50},
		{"a limit that reserves is written", none, 0, 1000, 0, 100_000, true, 1000, 1000},
		{"with a client's value", 70, 0, 1000, 0, 100_000, true, 70, 70},
		{"what the context leaves bounds the hold alone", none, 0, 8000, 0, 5103, true, 5000, 8000},
		{"and the client's value", 6000, 0, 8000, 0, 5103, true, 5000, 6000},
		{"at least 1,024 of it", none, 0, 8000, 0, 200, true, 1024, 8000},
		{"which is no bound to write", none, 0, 0, 0, 5103, true, 5000, 0},
		{"no maximum, no context: the fallback", none, 0, 0, 0, 0, false, admit.FallbackOutputTokens, 0},
		{"it is written where it is reserved", none, 0, 0, 0, 0, true, admit.FallbackOutputTokens, admit.FallbackOutputTokens},
		{"a client's value needs no fallback", 50_000, 0, 0, 0, 0, false, 50_000, 0},
		{"a key's maximum goes before the fallback", none, 200, 0, 0, 0, false, 200, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, request := newWorld(t), chat("big")
			m := w.targets[0].Model
			m.MaxOutputTokens, m.DefaultOutputTokens, m.ContextTokens = c.max, c.standard, c.ctx
			request.OutputBound = c.sent
			if c.key > 0 {
				w.key.MaxOutputTokens = &c.key
			}
			if c.reserving {
				w.ws.Funds = tenant.PrepaidHold
			}
			p := w.build(request).Targets[0]
			if p.OutputTokens != c.held || p.WriteBound != c.written {
				t.Errorf("held %d, written %d; want %d, %d", p.OutputTokens, p.WriteBound, c.held, c.written)
			}
		})
	}
}

func TestTheBoundIsWrittenInTheClientsFieldElseTheModels(t *testing.T) { // EST-2
	for _, c := range []struct{ client, model, want string }{
		{"", "", ""},
		{"", route.MaxCompletionTokensField, route.MaxCompletionTokensField},
		{route.MaxTokensField, route.MaxCompletionTokensField, route.MaxTokensField},
	} {
		w, request := newWorld(t), chat("big")
		w.targets[0].Model.OutputField, request.OutputField = c.model, c.client
		if got := w.build(request).Targets[0].OutputField; got != c.want {
			t.Errorf("client %q, model %q: got %q", c.client, c.model, got)
		}
	}
}

func TestOutputIsHeldForEachCompletionAndInputOnce(t *testing.T) { // EST-2, EST-3
	w, request := newWorld(t), chat("big")
	request.Completions, request.OutputBound = 5, 100
	p := w.build(request)
	want := ledger.Amounts{Spend: 103*1000 + 500*10_000, Tokens: 603, Input: 103, Requests: 1, Slots: 1, Uncached: 603}
	if got := p.Op.Candidates[0].Wants; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if p.Targets[0].OutputTokens != 500 || p.Targets[0].Want.Completions != 5 {
		t.Errorf("planned %+v", p.Targets[0])
	}
}

func TestAPromptWithoutABoundIsHeldWhole(t *testing.T) { // BR-027
	w := newWorld(t)
	w.targets[0] = w.target("big", row("big", "15", "75"))
	w.targets[0].Model.MaxOutputTokens, w.targets[0].Model.ContextTokens = 4096, 200_000
	request := chat("big")
	request.Prompt = call.Prompt{TextBytes: 300_000}
	w.ws.Funds = tenant.PrepaidHold
	w.fund(topUp, money.Dollar)
	f := w.refuse(request, fault.InsufficientBalance)
	// 100,003 of input and 4,096 of output.
	if want := money.Nanos(100_003*15_000 + 4096*75_000); f.Details.Wanted != want.String() {
		t.Errorf("wanted %s, want %s", f.Details.Wanted, want)
	}
}

func TestAnInflatedBoundIsNoDemand(t *testing.T) { // BR-034
	w, request := newWorld(t), chat("big")
	m := w.targets[0].Model
	m.ContextTokens, m.MaxOutputTokens = 65_536, 8192
	request.OutputBound, request.Prompt = 65_536, call.Prompt{TextBytes: 26_991}
	w.key.Limits.TPM = at(int64(60_000))
	p, _ := w.admit(request)
	if got := p.Targets[0].Worst.Tokens; got != 17_192 {
		t.Errorf("held %d tokens, want 17,192", got)
	}
}

func TestTheWorstCaseIsTheDearestThatTheRequestCouldLandIn(t *testing.T) { // EST-3, USE-2
	long := (&price.Row{
		Model: "big", Input: rate("2"), Output: rate("12"), ImageInput: rate("9"),
		Tiers:   []price.Tier{{AboveTokens: 1000, Input: rate("4"), Output: rate("18")}},
		Factors: map[string]price.Fraction{"priority": {Num: 2, Den: 1}, "flex": {Num: 1, Den: 2}},
	}).Seal()
	for _, c := range []struct {
		name   string
		change func(c *call.Call)
		want   int64 // nano-dollars
	}{
		{"plain", func(*call.Call) {}, 103*2000 + 10*12_000},
		{"long", func(c *call.Call) { c.Prompt.TextBytes = 2982 }, 1001*4000 + 10*18_000},
		{"exactly at the threshold", func(c *call.Call) { c.Prompt.TextBytes = 2979 }, 1000*2000 + 10*12_000},
		{"priority", func(c *call.Call) { c.ServiceTier = "priority" }, 2 * (103*2000 + 10*12_000)},
		{"flex may be served as standard", func(c *call.Call) { c.ServiceTier = "flex" }, 103*2000 + 10*12_000},
		{"a tier that nobody knows", func(c *call.Call) { c.ServiceTier = "x" }, 103*2000 + 10*12_000},
		{"with an image", func(c *call.Call) { c.Prompt.Images = 1; c.Prompt.TextBytes = 0 }, 1607*9000 + 10*18_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, request := newWorld(t), chat("big")
			w.targets[0].Price, request.OutputBound = long, 10
			c.change(request)
			if got := w.build(request).Targets[0].Worst.Spend; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestUnseenInputIsHeldAtWhatTheContextLeaves(t *testing.T) { // EST-4
	for _, c := range []struct{ context, want int64 }{{100_000, 100_000}, {0, admit.FallbackContextTokens}, {50, 103}} {
		w, request := newWorld(t), chat("big")
		w.targets[0].Model.ContextTokens = c.context
		request.Prompt.Unseen, request.OutputBound = true, 10
		p := w.build(request).Targets[0]
		if p.InputTokens != 103 || p.Worst.Input != 103 || p.Worst.Tokens != c.want+10 || p.Worst.Spend != c.want*1000+10*10_000 {
			t.Errorf("context %d: %+v", c.context, p.Worst)
		}
	}
}

func TestACostThatCannotBeCountedIsHeldByNobody(t *testing.T) { // SPEC 1: an addition that would overflow refuses
	w, request := newWorld(t), chat("big")
	w.targets[0].Price = row("big", "1000000000", "1000000000")
	w.targets[0].Model.MaxOutputTokens, w.targets[0].Model.ContextTokens = 1_000_000_000, 1_000_000_000
	request.Completions = 128
	w.ws.Funds = tenant.PrepaidHold
	for range 3 {
		w.fund(topUp, money.MaxAmount)
	}
	w.refused(request, fault.InsufficientBalance)
}

func TestAnEstimateStaysInBounds(t *testing.T) { // EST-1, EST-2
	count := rapid.OneOf(rapid.Int64Range(0, 2_000_000_000), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(rt *rapid.T) {
		w, request := newWorld(t), chat("big")
		m := w.targets[0].Model
		m.MaxOutputTokens, m.ContextTokens = count.Draw(rt, "max"), rapid.Int64Range(0, 1_000_000_000).Draw(rt, "context")
		m.DefaultOutputTokens = count.Draw(rt, "default")
		request.OutputBound = rapid.OneOf(rapid.Just(call.NoBound), count).Draw(rt, "sent")
		request.Completions = count.Draw(rt, "n")
		request.Prompt = call.Prompt{TextBytes: count.Draw(rt, "bytes"), Images: count.Draw(rt, "images"), Unseen: rapid.Bool().Draw(rt, "unseen")}
		if k := count.Draw(rt, "key"); k > 0 && request.OutputBound <= k {
			w.key.MaxOutputTokens = &k
		}
		w.ws.Funds = rapid.SampledFrom([]string{tenant.Open, tenant.PrepaidHold}).Draw(rt, "funds")
		plan := w.build(request)
		p := plan.Targets[0]
		a := p.Worst
		if min(a.Spend, a.Tokens, a.Input) < 0 || a.Input < 3 || a.Tokens <= a.Input && a.Tokens != math.MaxInt64 || a.Requests != 1 || a.Slots != 1 {
			rt.Fatalf("worst %+v", a)
		}
		if k := w.key.MaxOutputTokens; k != nil && (p.WriteBound < 1 || p.WriteBound > *k) {
			rt.Fatalf("written %d under a key's maximum of %d", p.WriteBound, *k)
		}
		if p.WriteBound > 0 && m.MaxOutputTokens > 0 && p.WriteBound > m.MaxOutputTokens {
			rt.Fatalf("written %d above the model's maximum", p.WriteBound)
		}
		if got := w.submit(plan.Op); got.Verdict != ledger.Admitted && got.Verdict != ledger.Refused {
			rt.Fatalf("verdict %d", got.Verdict)
		}
	})
}

func TestTheNoteKeepsTheEstimate(t *testing.T) { // ENGINE 14
	w, request := newWorld(t), chat("fast")
	request.OutputBound, request.User, request.Stream = 20, "ada", true
	var n admit.Note
	if err := json.Unmarshal(w.build(request).Op.Note, &n); err != nil {
		t.Fatal(err)
	}
	want := admit.Note{
		Door: "openai.chat", Model: "fast", Stream: true, User: "ada", TextBytes: 288, Messages: 1,
		InputTokens: 103, OutputBound: 20, Completions: 1, WorstNanos: 103*1000 + 20*10_000,
	}
	row, err := price.DecodeRow(n.Price)
	if err != nil || row.ID == "" {
		t.Errorf("the price that it is charged by is kept as %s (%v)", n.Price, err)
	}
	n.Price = nil
	if !reflect.DeepEqual(n, want) {
		t.Errorf("got %+v, want %+v", n, want)
	}
}
