// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/tenant"
)

func usage(input, output int64) call.Usage {
	return call.Usage{Input: input, Output: output, Requests: 1}
}

func reported(u call.Usage) call.Observed {
	return call.Observed{Reported: true, Usage: u, OutputSeen: true}
}

// received is output without a report of usage.
func received(bytes int64) call.Observed {
	return call.Observed{OutputBytes: bytes, OutputSeen: bytes > 0}
}

// TestWhatAnEndedRequestOwes is RES-4's rule, row by row. The input estimate is
// 103 tokens, the output bound 1,000; input costs 1, output 10 dollars a million.
func TestWhatAnEndedRequestOwes(t *testing.T) { // RES-3, RES-4, ORD-5, USE-1, BR-112, BR-113, BR-118, BR-119, BR-121
	failed := func(o call.Observed) admit.Ending { return admit.Ending{Sent: true, Failed: true, Observed: o} }
	free := func(e admit.Ending) admit.Ending { e.FreeWhenBroken = true; return e }
	marked := func(o call.Observed, m ...call.Mark) call.Observed { o.Marks = m; return o }
	erring := func(o call.Observed) call.Observed { o.ErrorSeen = true; return o }
	for _, c := range []struct {
		name   string
		ending admit.Ending
		verb   ledger.Verb
		input  int64
		output int64
		marks  []string
	}{
		{"usage reported", admit.Ending{Sent: true, Observed: reported(usage(90, 20))}, ledger.Settle, 90, 20, nil},
		{"usage of nothing", admit.Ending{Sent: true, Observed: reported(usage(0, 0))}, ledger.Settle, 0, 0, nil},
		{"usage reported with a failure", failed(reported(usage(90, 0))), ledger.Settle, 90, 0, nil},
		{"usage reported by a broken stream that is free", free(failed(reported(usage(90, 20)))), ledger.Settle, 90, 20, nil},
		{"usage beyond the hold is charged", admit.Ending{Sent: true, Observed: reported(usage(5000, 9000))}, ledger.Settle, 5000, 9000, nil},
		{"usage of parts that disagree", admit.Ending{Sent: true, Observed: marked(reported(usage(90, 20)), call.MarkInconsistent)}, ledger.Settle, 90, 20, []string{"inconsistent"}},
		{"ten times the context is believed", admit.Ending{Sent: true, Observed: reported(usage(999_999, 1))}, ledger.Settle, 999_999, 1, nil},
		{"more is not", admit.Ending{Sent: true, Observed: reported(usage(1_000_000, 1))}, ledger.Settle, 103, 0, []string{"absurd", "estimated"}},
		{"a part below zero is not", admit.Ending{Sent: true, Observed: reported(usage(-1, 500))}, ledger.Settle, 103, 0, []string{"absurd", "estimated"}},
		{"nor one that overflows", admit.Ending{Sent: true, Observed: reported(usage(math.MaxInt64, math.MaxInt64))}, ledger.Settle, 103, 0, []string{"absurd", "estimated"}},
		{"nor is it a reason to charge a failure", failed(call.Observed{Reported: true, Usage: usage(-1, 0)}), ledger.Void, 0, 0, []string{"absurd"}},
		{"set aside by the reader", admit.Ending{Sent: true, Observed: marked(received(30), call.MarkAbsurd, call.MarkEstimated)}, ledger.Settle, 103, 10, []string{"absurd", "estimated"}},
		{"the provider failed before any output", failed(call.Observed{}), ledger.Void, 0, 0, nil},
		{"it reported its failure inside the answer", admit.Ending{Sent: true, Observed: erring(call.Observed{})}, ledger.Void, 0, 0, nil},
		{"the same after output", admit.Ending{Sent: true, Observed: erring(received(30))}, ledger.Settle, 103, 10, []string{"estimated"}},
		{"the provider broke the stream", failed(received(600)), ledger.Settle, 103, 200, []string{"estimated"}},
		{"which its row makes free", free(failed(received(600))), ledger.Void, 0, 0, []string{"free_on_failure"}},
		{"output without text was output", failed(call.Observed{OutputSeen: true}), ledger.Settle, 103, 0, []string{"estimated"}},
		{"the client went away before output", admit.Ending{Sent: true, Outcome: "client_gone"}, ledger.Settle, 103, 0, []string{"estimated"}},
		{"it went away in mid-stream", admit.Ending{Sent: true, Outcome: "client_gone", Observed: received(601)}, ledger.Settle, 103, 201, []string{"estimated"}},
		{"which no provider's row makes free", free(admit.Ending{Sent: true, Observed: received(600)}), ledger.Settle, 103, 200, []string{"estimated"}},
		{"an answer without usage", admit.Ending{Sent: true, Observed: received(900)}, ledger.Settle, 103, 300, []string{"estimated"}},
		{"at most the output bound", admit.Ending{Sent: true, Observed: received(1 << 40)}, ledger.Settle, 103, 1000, []string{"estimated"}},
		{"nothing was sent", admit.Ending{}, ledger.Undo, 0, 0, nil},
		{"nothing was sent by our own failure", admit.Ending{Failed: true, Outcome: "gateway_error"}, ledger.Undo, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.ws.Funds = tenant.PrepaidHold
			w.fund(topUp, 100*money.Dollar)
			w.key.Limits = tenant.RuntimeLimits{RPM: at(int64(5)), TPM: at(int64(1_000_000)), Concurrency: at(int64(1))}
			p, r := w.admit(chat("big"))
			got := admit.Settle(r.Reservation, &p.Targets[0], c.ending)
			tokens, cost := c.input+c.output, money.Nanos(c.input*1000+c.output*10_000)
			if got.Op.Verb != c.verb || got.Cost != cost || got.Tokens != tokens || !slices.Equal(got.End.Marks, c.marks) {
				t.Fatalf("verb %d, %s for %d tokens, marks %v; want %d, %s, %d, %v", got.Op.Verb, got.Cost, got.Tokens, got.End.Marks, c.verb, cost, tokens, c.marks)
			}
			if result := w.submit(got.Op); result.Verdict != ledger.Done {
				t.Fatalf("verdict %d", result.Verdict)
			}
			w.showEnd(c.verb, tokens, cost)
			w.showRecord(&got, c.ending.Outcome)
		})
	}
}

// showEnd tells whether every counter stands where the ending puts it (RES-10).
func (w *world) showEnd(verb ledger.Verb, tokens int64, cost money.Nanos) {
	w.t.Helper()
	requests := int64(1)
	if verb == ledger.Undo {
		requests = 0
	}
	want := map[string]int64{
		"balance": int64(cost - 100*money.Dollar), "day spend": int64(cost), "rpm": requests, "tpm": tokens, "concurrency": 0,
	}
	for _, r := range w.read() {
		if r.Used != want[r.Check.Name] || r.Held != 0 {
			w.t.Errorf("%s: used %d, held %d, want %d", r.Check.Name, r.Used, r.Held, want[r.Check.Name])
		}
	}
}

func (w *world) showRecord(c *admit.Charged, outcome string) {
	w.t.Helper()
	var end admit.End
	if err := json.Unmarshal(c.Op.Settlement.Note, &end); err != nil {
		w.t.Fatal(err)
	}
	if end.ChargeNanos != int64(c.Cost) || end.Outcome != outcome || c.Op.Settlement.Outcome != outcome {
		w.t.Errorf("recorded %+v", end)
	}
	if (end.Usage != nil) != (c.Op.Verb == ledger.Settle) {
		w.t.Errorf("recorded usage %+v", end.Usage)
	}
	if u := end.Usage; u != nil && u.Estimated != slices.Contains(end.Marks, "estimated") {
		w.t.Errorf("usage %+v, marks %v", u, end.Marks)
	}
}

func TestACutStreamCostsWhatWasDelivered(t *testing.T) { // BR-113, BR-121
	w, request := newWorld(t), chat("big")
	request.Prompt, request.OutputBound = call.Prompt{TextBytes: 2991}, 4000
	w.targets[0].Model.MaxOutputTokens = 4000
	p, r := w.admit(request)
	got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: received(600)})
	if want := money.Nanos(1_000*1000 + 200*10_000); got.Cost != want {
		t.Errorf("charged %s, want %s", got.Cost, want)
	}
}

func TestManyCompletionsMayUseManyTimesTheContext(t *testing.T) { // USE-1
	w, request := newWorld(t), chat("big")
	w.targets[0].Model.ContextTokens, w.targets[0].Model.MaxOutputTokens = 2000, 1000
	request.Completions = 100
	p, r := w.admit(request)
	got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: reported(usage(103, 100_000))})
	if got.Tokens != 100_103 || got.End.Marks != nil {
		t.Errorf("%d tokens, marks %v", got.Tokens, got.End.Marks)
	}
	for _, c := range []struct{ context, completions, want int64 }{
		{100_000, 1, 1_000_000}, {100_000, 0, 1_000_000}, {100, 3, 3000}, {0, 1, 10_000_000}, {1_000_000_000, 128, 1_000_000_000},
	} {
		w.targets[0].Model.ContextTokens, request.Completions = c.context, c.completions
		if got := w.build(request).Targets[0].MaxUsageTokens(); got != c.want {
			t.Errorf("context %d, %d completions: %d, want %d", c.context, c.completions, got, c.want)
		}
	}
}

func TestTheServedTierIsCharged(t *testing.T) { // USE-2, EST-3, BR-088
	flex := (&price.Row{
		Model: "big", Input: rate("1"), Output: rate("10"),
		Factors: map[string]price.Fraction{"priority": {Num: 2, Den: 1}, "flex": {Num: 1, Den: 2}},
	}).Seal()
	for _, c := range []struct {
		name, asked, served string
		reported            bool
		want                int64
		marks               []string
	}{
		{"served flex", "", "flex", true, 500_000, nil},
		{"asked priority, served standard", "priority", "default", true, 1_000_000, nil},
		{"asked standard, served priority", "", "priority", true, 2_000_000, nil},
		{"served without a word", "priority", "", true, 1_000_000, nil},
		{"served what has no price", "", "scale", true, 1_000_000, []string{"tier_not_priced"}},
		{"unknown after priority was asked", "priority", "", false, 206_000, []string{"estimated"}},
		{"unknown after flex was asked", "flex", "", false, 103_000, []string{"estimated"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, request := newWorld(t), chat("big")
			w.targets[0].Price, request.ServiceTier = flex, c.asked
			p, r := w.admit(request)
			e := admit.Ending{Sent: true}
			if c.reported {
				e.Observed = reported(call.Usage{Input: 1000, ServiceTier: c.served, Requests: 1})
			}
			got := admit.Settle(r.Reservation, &p.Targets[0], e)
			if int64(got.Cost) != c.want || !slices.Equal(got.End.Marks, c.marks) {
				t.Errorf("charged %d, marks %v", got.Cost, got.End.Marks)
			}
		})
	}
}

// TestWhoAsksForNoTierIsHeldAtTheAccountsOwn: EST-3. What is charged is the tier
// that was served.
func TestWhoAsksForNoTierIsHeldAtTheAccountsOwn(t *testing.T) {
	tiers := (&price.Row{
		Model: "big", Input: rate("1"), Output: rate("10"),
		Factors: map[string]price.Fraction{"priority": {Num: 2, Den: 1}, "flex": {Num: 1, Den: 2}},
	}).Seal()
	worst := func(tier, asked string) (spend, charged int64) {
		w, request := newWorld(t), chat("big")
		provider := *w.targets[0].Provider
		provider.DefaultTier = tier
		w.targets[0].Provider, w.targets[0].Price, request.ServiceTier = &provider, tiers, asked
		p, r := w.admit(request)
		served := admit.Ending{Sent: true, Observed: reported(call.Usage{Input: 1000, ServiceTier: "default", Requests: 1})}
		return p.Targets[0].Worst.Spend, int64(admit.Settle(r.Reservation, &p.Targets[0], served).Cost)
	}
	standard, _ := worst("", "")
	for _, c := range []struct {
		tier, asked string
		want        int64
	}{
		{"priority", "", 2 * standard},
		{"priority", "auto", 2 * standard},
		{"priority", "default", standard},
		{"priority", "flex", standard},
		{"flex", "", standard}, // it could be served in the standard one
		{"", "priority", 2 * standard},
		{"unheard-of", "", standard},
	} {
		if held, charged := worst(c.tier, c.asked); held != c.want || charged != 1_000_000 {
			t.Errorf("default_tier %q, asked %q: held %d, charged %d, want %d and 1000000", c.tier, c.asked, held, charged, c.want)
		}
	}
}

func TestAnUnpricedUsageIsChargedInTokensAndMarked(t *testing.T) { // PRC-3, USE-1
	for _, c := range []struct {
		model         string
		input, output int64
		cost          int64
		marks         []string
	}{
		{"unpriced", 100, 10, 0, []string{"unpriced"}},
		{"half", 100, 10, 0, []string{"unpriced"}},
		{"half", 100, 0, 100_000, nil}, // all that was used has a price
		{"free", 100, 10, 0, nil},
	} {
		w := newWorld(t)
		p, r := w.admit(chat(c.model))
		got := w.settle(p, r, c.input, c.output)
		if int64(got.Cost) != c.cost || got.Tokens != c.input+c.output || !slices.Equal(got.End.Marks, c.marks) {
			t.Errorf("%s: charged %d for %d tokens, marks %v", c.model, got.Cost, got.Tokens, got.End.Marks)
		}
	}
}

func TestACostPastTheBoundsOfMoneySaturatesAndIsMarked(t *testing.T) { // SPEC 1
	w := newWorld(t)
	w.targets[0].Price, w.targets[0].Model.ContextTokens = row("big", "1000000000", "1000000000"), 1_000_000
	request := chat("big")
	request.OutputBound = 1
	p, r := w.admit(request)
	got := w.settle(p, r, 5_000_000, 5_000_000)
	if int64(got.Cost) != math.MaxInt64 || !slices.Contains(got.End.Marks, "saturated") {
		t.Errorf("charged %d, marks %v", got.Cost, got.End.Marks)
	}
	w.key.Caps.Day = at(money.MaxAmount)
	w.refused(request, fault.DayLimitReached)
}

func TestWhatAProviderSaysIsCutInTheRecord(t *testing.T) {
	w := newWorld(t)
	p, r := w.admit(chat("big"))
	o := reported(call.Usage{Input: 1, ServiceTier: strings.Repeat("x", 1<<20), Requests: 1})
	o.Model = strings.Repeat("m", 1<<20)
	got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: o})
	if n := len(got.Op.Settlement.Note); n > 2000 {
		t.Errorf("a record of %d bytes", n)
	}
}

// The hold covers every charge whose use stays within the estimate and the
// bound; an estimate is never zero and never more than the hold.
func TestAChargeIsWithinTheHoldWhenUseIsWithinTheEstimate(t *testing.T) { // MON-2, RES-4, EST-3
	rapid.Check(t, func(rt *rapid.T) {
		w, request := newWorld(t), chat("big")
		w.targets[0].Price = anyRow(rt)
		request.ServiceTier = rapid.SampledFrom([]string{"", "flex", "priority"}).Draw(rt, "asked")
		request.Completions = rapid.Int64Range(1, 5).Draw(rt, "n")
		request.OutputBound = rapid.Int64Range(1, 2000).Draw(rt, "bound")
		request.Prompt = call.Prompt{
			TextBytes: rapid.Int64Range(0, 100_000).Draw(rt, "bytes"), Images: rapid.Int64Range(0, 2).Draw(rt, "images"),
			Unseen: rapid.Bool().Draw(rt, "unseen"),
		}
		p, r := w.admit(request)
		planned := &p.Targets[0]
		input := rapid.Int64Range(0, planned.Want.InputTokens).Draw(rt, "input")
		cached := rapid.Int64Range(0, input).Draw(rt, "cached")
		output := rapid.Int64Range(0, planned.OutputTokens).Draw(rt, "output")
		served := rapid.SampledFrom([]string{"", "flex", request.ServiceTier}).Draw(rt, "served")
		use := call.Usage{Input: input - cached, CachedInput: cached, Output: output, ServiceTier: served, Requests: 1}
		hold := r.Reservation.Worst
		for _, o := range []call.Observed{reported(use), received(rapid.Int64Range(0, 50_000).Draw(rt, "received"))} {
			got := admit.Settle(r.Reservation, planned, admit.Ending{Sent: true, Observed: o})
			if int64(got.Cost) > hold.Spend || got.Tokens > hold.Tokens {
				rt.Fatalf("charged %d for %d tokens, held %d for %d", got.Cost, got.Tokens, hold.Spend, hold.Tokens)
			}
			if !o.Reported && (got.Tokens < planned.InputTokens || got.Tokens == hold.Tokens && o.OutputBytes < planned.OutputTokens) {
				rt.Fatalf("estimated %d tokens of %d held", got.Tokens, hold.Tokens)
			}
		}
	})
}

func anyRow(t *rapid.T) *price.Row {
	rates := rapid.Int64Range(0, 100_000_000_000)
	draw := func(name string) *money.PerMillion { return at(money.PerMillion(rates.Draw(t, name))) }
	r := &price.Row{Source: price.SourceOverride, Model: "big", Input: draw("in"), Output: draw("out"), Factors: map[string]price.Fraction{
		"priority": {Num: 7, Den: 4}, "flex": {Num: 1, Den: 3},
	}}
	if rapid.Bool().Draw(t, "prices caching") {
		r.CachedInput = draw("cached")
	}
	if rapid.Bool().Draw(t, "has tiers") {
		r.Tiers = []price.Tier{{AboveTokens: rapid.Int64Range(0, 50_000).Draw(t, "above"), Input: draw("long in"), Output: draw("long out")}}
	}
	if rapid.Bool().Draw(t, "per request") {
		r.PerRequest = at(money.Nanos(rapid.Int64Range(0, 1_000_000).Draw(t, "fee")))
	}
	return r.Seal()
}
