// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

// USE-4, BR-091: a provider that is trusted is charged what it says, every other
// what we work out; the difference is known either way.
func TestAProvidersOwnCostCountsWhereItIsTrusted(t *testing.T) {
	const own = money.Nanos(5_850)
	for _, c := range []struct {
		name    string
		cost    string
		trusted bool
		want    money.Nanos
		marks   []string
		drift   int64 // of what is recorded; math.MinInt64: nothing is
	}{
		{"BR-091 trusted", "0.000008775", true, 8_775, []string{"provider_cost"}, 2_925},
		{"BR-091 not trusted", "0.000008775", false, own, nil, 2_925},
		{"an exponent", "8.775e-06", true, 8_775, []string{"provider_cost"}, 2_925},
		{"ticks of a ten-billionth", call.Decimal(87_750, 10), true, 8_775, []string{"provider_cost"}, 2_925},
		{"a part of a nano-dollar is rounded up", "0.0000087750001", true, 8_776, []string{"provider_cost"}, 2_926},
		{"less than ours", "0.000001", true, 1_000, []string{"provider_cost"}, -4_850},
		{"nothing", "0", true, 0, []string{"provider_cost"}, -5_850},
		{"it names none", "", true, own, nil, math.MinInt64},
		{"below zero", "-0.5", true, own, []string{"cost_ignored"}, math.MinInt64},
		{"not a number", "NaN", true, own, []string{"cost_ignored"}, math.MinInt64},
		{"endless", "Infinity", true, own, []string{"cost_ignored"}, math.MinInt64},
		{"too much", "1e300", true, own, []string{"cost_ignored"}, math.MinInt64},
		{"no number, not trusted", "free", false, own, nil, math.MinInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.targets[0].Price = row("big", "0.1", "0.95")
			w.targets[0].Provider.TrustProviderCost = c.trusted
			p, r := w.admit(chat("big"))
			o := reported(usage(11, 5))
			o.Cost = c.cost
			got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: o})
			if got.Cost != c.want || fmt.Sprint(got.End.Marks) != fmt.Sprint(c.marks) {
				t.Errorf("charged %d, marks %v; want %d, %v", int64(got.Cost), got.End.Marks, int64(c.want), c.marks)
			}
			switch n := got.End.Named; {
			case n == nil:
				if c.drift != math.MinInt64 {
					t.Error("the difference is not known")
				}
			case int64(n.Drift()) != c.drift || n.Charged != c.trusted || n.OwnNanos != int64(own):
				t.Errorf("recorded %+v, want a difference of %d", n, c.drift)
			}
			w.submit(got.Op)
		})
	}
}

func searching(calls int64) (u call.Units) {
	u.Tools.Set(call.WebSearch, calls)
	return u
}

// EST-4, PRC-3: a request that offers a provider's own tool is held at the tool's
// calls; without a price of it, it is a request without a price.
func TestAProvidersToolsAreHeldAndCharged(t *testing.T) {
	w, request := newWorld(t), chat("big")
	w.key.Caps.Day = at(money.Dollar)
	request.Units = searching(0)
	w.refused(request, fault.ModelUnpriced)
	priced := *w.targets[0].Price
	priced.PerToolCall = map[string]money.Nanos{call.WebSearch: 10_000_000}
	w.targets[0].Price = priced.Seal()
	p, r := w.admit(request)
	const text = 103*1_000 + 1_000*10_000
	if got := r.Reservation.Worst.Spend; got != text+10*10_000_000 {
		t.Errorf("held %d", got)
	}
	used := usage(103, 10)
	used.Units = searching(3)
	got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: reported(used)})
	if want := money.Nanos(103*1_000 + 10*10_000 + 3*10_000_000); got.Cost != want || got.End.Marks != nil {
		t.Errorf("charged %d, marks %v; want %d", got.Cost, got.End.Marks, want)
	}
	var kept admit.Usage
	if err := json.Unmarshal(got.Op.Settlement.Attempts[0].Detail, &kept); err != nil || kept.ToolCalls[call.WebSearch] != 3 {
		t.Errorf("kept %+v, %v", kept, err)
	}
}

// PRC-1: what was used and has no price is marked, and takes nothing away from
// what has one.
func TestAToolThatNobodyPricedIsMarkedAndTheRestIsCharged(t *testing.T) {
	w := newWorld(t)
	priced := *w.targets[0].Price
	priced.PerToolCall = map[string]money.Nanos{call.WebSearch: 10_000_000}
	w.targets[0].Price = priced.Seal()
	p, r := w.admit(chat("big"))
	used := usage(103, 10)
	used.Units = searching(2)
	used.Units.Tools.Set("teleport", 1)
	got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: reported(used)})
	if want := money.Nanos(103*1_000 + 10*10_000 + 2*10_000_000); got.Cost != want || fmt.Sprint(got.End.Marks) != "[price_incomplete]" {
		t.Errorf("charged %d, marks %v; want %d", got.Cost, got.End.Marks, want)
	}
}

// USE-1: units that cannot be meant are no report.
func TestUnitsBeyondBeliefAreAnEstimate(t *testing.T) {
	for name, u := range map[string]call.Units{
		"seconds below zero": {AudioInputMicros: -1}, "images below zero": {Images: -1}, "calls below zero": searching(-1),
		"too many seconds": {AudioOutputMicros: math.MaxInt64}, "too many images": {Images: 1_000_000_001}, "too many calls": searching(math.MaxInt64),
	} {
		w := newWorld(t)
		p, r := w.admit(chat("big"))
		used := usage(1, 1)
		used.Units = u
		got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: reported(used)})
		if fmt.Sprint(got.End.Marks) != "[absurd estimated]" || got.Cost <= 0 {
			t.Errorf("%s: charged %d, marks %v", name, got.Cost, got.End.Marks)
		}
	}
}

// BR-081, RES-3: a transcription by the second, reported and not.
func TestASecondHeardIsChargedWhateverTheAnswerSays(t *testing.T) {
	w := newWorld(t)
	w.key.Caps.Day = at(money.Dollar)
	w.targets[0].Price = (&price.Row{Source: price.SourceOverride, Model: "big", PerSecondInput: at(money.Nanos(100_000))}).Seal()
	request := chat("big")
	request.Door, request.Units.AudioInputMicros = call.OpenAITranscriptions, 60_000_000
	p, r := w.admit(request)
	if r.Reservation.Worst.Spend != 6_000_000 {
		t.Errorf("held %d", r.Reservation.Worst.Spend)
	}
	heard := call.Usage{Requests: 1, Units: request.Units}
	for name, o := range map[string]call.Observed{"reported": reported(heard), "not reported": received(30)} {
		got := admit.Settle(r.Reservation, &p.Targets[0], admit.Ending{Sent: true, Observed: o})
		if got.Cost != 6_000_000 {
			t.Errorf("%s: charged %d, marks %v", name, got.Cost, got.End.Marks)
		}
	}
}
