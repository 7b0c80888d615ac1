// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

// partNames are the parts of a row, broader ones first, with the part that
// stands in for each: the chain of PRC-1 told a second time.
var partNames = []string{
	"input", "output", "cached_input", "cache_write_5m", "cache_write_1h",
	"audio_input", "cached_audio_input", "audio_output", "image_input", "image_output",
}

var broader = map[string]string{
	"cached_input": "input", "cache_write_5m": "input", "cache_write_1h": "cache_write_5m", "audio_input": "input",
	"cached_audio_input": "cached_input", "audio_output": "output", "image_input": "input", "image_output": "output",
}

var unitKeys = []string{
	"per_request", "per_second_input", "per_second_output", "per_image", "per_tool_call.web_search", "per_tool_call.file_search",
}

// drawUnits draws units that f has prices of, each up to most.
func drawUnits(t *rapid.T, f fields, most call.Units) (u call.Units) {
	for key, place := range map[string][2]*int64{
		"per_second_input":  {&u.AudioInputMicros, &most.AudioInputMicros},
		"per_second_output": {&u.AudioOutputMicros, &most.AudioOutputMicros},
		"per_image":         {&u.Images, &most.Images},
	} {
		if f[key] != "" {
			*place[0] = rapid.Int64Range(0, *place[1]).Draw(t, key)
		}
	}
	for _, c := range most.Tools.List() {
		if f["per_tool_call."+c.Name] != "" {
			u.Tools.Set(c.Name, rapid.Int64Range(0, c.Calls).Draw(t, c.Name))
		}
	}
	return u
}

func amount(t *rapid.T, label string) string {
	n := rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(0, int64(100*money.Dollar))).Draw(t, label)
	return money.Nanos(n).String()
}

// prices draws a spec with both text prices and some of the others.
func prices(t *rapid.T) fields {
	f := fields{"input": amount(t, "input"), "output": amount(t, "output")}
	for _, name := range partNames {
		if rapid.Bool().Draw(t, "set "+name) {
			f[name] = amount(t, name)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "tiers") {
		above := rapid.Int64Range(1, 3000).Draw(t, "above")
		for _, name := range partNames {
			if rapid.Bool().Draw(t, "tier sets "+name) {
				f[fmt.Sprintf("above.%d.%s", above, name)] = amount(t, name)
			}
		}
	}
	for _, name := range []string{"flex", "priority"} {
		if rapid.Bool().Draw(t, "factor") {
			f["factor."+name] = fmt.Sprintf("%d/%d", rapid.IntRange(1, 30).Draw(t, "num"), rapid.IntRange(1, 30).Draw(t, "den"))
		} else {
			drawService(t, f, "service_tier."+name+".")
		}
	}
	for _, key := range unitKeys {
		if rapid.Bool().Draw(t, key) {
			f[key] = amount(t, key)
		}
	}
	return f
}

// drawService draws the prices of a service tier, which may be none.
func drawService(t *rapid.T, f fields, prefix string) {
	prefixes := []string{prefix}
	for range rapid.IntRange(0, 2).Draw(t, "service contexts") {
		prefixes = append(prefixes, fmt.Sprintf("%sabove.%d.", prefix, rapid.Int64Range(1, 3000).Draw(t, "above")))
	}
	for _, p := range prefixes {
		for _, name := range partNames {
			if rapid.Bool().Draw(t, "service sets "+name) {
				f[p+name] = amount(t, name)
			}
		}
	}
}

func drawRow(t *rapid.T) (*price.Row, fields) {
	f := prices(t)
	r, err := price.ParseSpec("m", price.Spec{Fields: f})
	if err != nil {
		t.Fatal(err)
	}
	return r, f
}

// split draws how n units fall on the places that are allowed.
func split(t *rapid.T, n int64, places ...*int64) {
	for _, place := range places {
		*place = rapid.Int64Range(0, n).Draw(t, "share")
		n -= *place
	}
}

var serviceTiers = rapid.SampledFrom([]string{"", "default", "flex", "priority", "scale"})

// MON-2, EST-3: a hold is never smaller than the charge that settles it.
func TestAChargeIsNeverAboveTheWorstCaseOfWhatWasWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, f := drawRow(t)
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		w := price.Want{
			InputTokens: rapid.Int64Range(0, 4000).Draw(t, "in"), OutputTokens: rapid.Int64Range(0, 4000).Draw(t, "out"),
			Completions: rapid.Int64Range(0, 4).Draw(t, "n"), ServiceTier: serviceTiers.Draw(t, "tier"),
			CachesInput: flag("caches"), CachesOneHour: flag("hour"), NoAudioInput: flag("no audio in"),
			NoImageInput: flag("no image in"), NoAudioOutput: flag("no audio out"), NoImageOutput: flag("no image out"),
			ByUnit: flag("by unit"), MaxToolCalls: rapid.Int64Range(0, 15).Draw(t, "tool calls"),
			Units: call.Units{AudioInputMicros: 9_000_000, AudioOutputMicros: 9_000_000, Images: 9},
		}
		for _, c := range []call.ToolCall{{Name: call.WebSearch}, {Name: call.FileSearch, Calls: 5}} {
			if f["per_tool_call."+c.Name] != "" && flag(c.Name) {
				w.Units.Tools.Set(c.Name, c.Calls)
			}
		}
		u := call.Usage{Requests: 1, ServiceTier: rapid.SampledFrom([]string{"", w.ServiceTier}).Draw(t, "served")}
		most := w.Units
		for i, left := 0, w.MaxToolCalls; i < len(most.Tools.List()); i++ {
			c := &most.Tools[i]
			switch {
			case c.Calls == 0 && w.MaxToolCalls == 0:
				c.Calls = call.DefaultToolCalls
			case c.Calls == 0 || w.MaxToolCalls > 0 && c.Calls > left:
				c.Calls = left
			}
			if w.MaxToolCalls > 0 {
				left -= c.Calls
			}
		}
		u.Units = drawUnits(t, f, most)
		in, out := []*int64{&u.CachedInput, &u.ToolInput}, []*int64{&u.Output}
		for _, place := range []struct {
			can   bool
			list  *[]*int64
			count *int64
		}{
			{w.CachesInput || w.CachesOneHour, &in, &u.CacheWrite5m},
			{w.CachesOneHour, &in, &u.CacheWrite1h},
			{!w.NoAudioInput, &in, &u.AudioInput},
			{!w.NoAudioInput, &in, &u.CachedAudioInput},
			{!w.NoImageInput, &in, &u.ImageInput},
			{!w.NoAudioOutput, &out, &u.AudioOutput},
			{!w.NoImageOutput, &out, &u.ImageOutput},
		} {
			if place.can {
				*place.list = append(*place.list, place.count)
			}
		}
		split(t, w.InputTokens, append(in, &u.Input)...)
		split(t, w.OutputTokens*max(w.Completions, 1), out...)
		charge, err := r.Charge(u)
		worst, werr := r.Worst(w)
		if err != nil || werr != nil || charge < 0 || charge > worst {
			t.Fatalf("%+v charged %s (%v), held %s (%v)", u, charge, err, worst, werr)
		}
	})
}

func drawUsage(t *rapid.T) call.Usage {
	n := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 2000), rapid.Int64Range(0, 1_000_000_000))
	return call.Usage{
		Input: n.Draw(t, "input"), CachedInput: n.Draw(t, "cached"), CacheWrite5m: n.Draw(t, "5m"), CacheWrite1h: n.Draw(t, "1h"),
		ToolInput: n.Draw(t, "tool"), AudioInput: n.Draw(t, "audio"), CachedAudioInput: n.Draw(t, "cached audio"),
		ImageInput: n.Draw(t, "image"), Output: n.Draw(t, "output"), AudioOutput: n.Draw(t, "audio out"),
		ImageOutput: n.Draw(t, "image out"), ServiceTier: serviceTiers.Draw(t, "tier"), Requests: 1,
	}
}

// exact prices a usage with rationals, from the spec's text alone.
func exact(f fields, u call.Usage) *big.Int {
	rat := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
	prefix := contextOf(f, "", u.InputTotal())
	var outside, inside func(string) *big.Rat
	outside = func(name string) *big.Rat {
		if s, ok := f[name]; ok {
			return rat(s)
		}
		return outside(broader[name])
	}
	inside = func(name string) *big.Rat { // nil: the tier does not touch it
		if s, ok := f[prefix+name]; ok && prefix != "" {
			return rat(s)
		}
		if b := broader[name]; b != "" && inside(b) != nil {
			if own, ok := f[name]; ok && rat(own).Cmp(inside(b)) > 0 {
				return rat(own)
			}
			return inside(b)
		}
		return nil
	}
	sum := new(big.Rat)
	for name, n := range map[string]int64{
		"input": u.Input + u.ToolInput, "cached_input": u.CachedInput, "cache_write_5m": u.CacheWrite5m, "cache_write_1h": u.CacheWrite1h,
		"audio_input": u.AudioInput, "cached_audio_input": u.CachedAudioInput, "image_input": u.ImageInput,
		"output": u.Output, "audio_output": u.AudioOutput, "image_output": u.ImageOutput,
	} {
		standard := func(name string) *big.Rat {
			if rate := inside(name); rate != nil {
				return rate
			}
			return outside(name)
		}
		rate := standard(name)
		if priced(f, "service_tier."+u.ServiceTier+".") {
			rate = served(f, u, name, prefix, standard)
		}
		sum.Add(sum, new(big.Rat).Mul(rate, big.NewRat(n, 1_000_000)))
	}
	unit := func(key string, n, per int64) {
		if s, ok := f[key]; ok {
			sum.Add(sum, new(big.Rat).Mul(rat(s), big.NewRat(n, per)))
		}
	}
	unit("per_second_input", u.Units.AudioInputMicros, 1_000_000)
	unit("per_second_output", u.Units.AudioOutputMicros, 1_000_000)
	unit("per_image", u.Units.Images, 1)
	if s, ok := f["factor."+u.ServiceTier]; ok {
		sum.Mul(sum, rat(s))
	}
	unit("per_request", 1, 1)
	for _, c := range u.Units.Tools.List() {
		unit("per_tool_call."+c.Name, c.Calls, 1)
	}
	sum.Mul(sum, big.NewRat(int64(money.Dollar), 1))
	ceil := new(big.Int).Add(sum.Num(), new(big.Int).Sub(sum.Denom(), big.NewInt(1)))
	return ceil.Quo(ceil, sum.Denom())
}

// contextOf is the prefix of the prices above the highest threshold that is passed,
// "" below all of them.
func contextOf(f fields, under string, tokens int64) (prefix string) {
	highest := int64(0)
	for key := range f {
		var above int64
		if n, _ := fmt.Sscanf(key, under+"above.%d.", &above); n == 1 && above < tokens && above > highest {
			prefix, highest = fmt.Sprintf("%sabove.%d.", under, above), above
		}
	}
	return prefix
}

func priced(f fields, prefix string) bool {
	for key := range f {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// served is the rate of a part in a service tier with prices of its own.
func served(f fields, u call.Usage, name, context string, standard func(string) *big.Rat) *big.Rat {
	rat := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
	service := "service_tier." + u.ServiceTier + "."
	if long := contextOf(f, service, u.InputTotal()); long != "" && f[long+name] != "" {
		return rat(f[long+name])
	}
	own := f[service+name]
	switch {
	case own != "" && context != "" && standard(name).Cmp(rat(own)) > 0:
		return standard(name)
	case own != "":
		return rat(own)
	case f[name] != "" || context != "" && f[context+name] != "" || broader[name] == "":
		return standard(name)
	}
	return served(f, u, broader[name], context, standard)
}

func TestAChargeIsTheExactSumRoundedUpOnce(t *testing.T) { // MON-2
	rapid.Check(t, func(t *rapid.T) {
		r, f := drawRow(t)
		u := drawUsage(t)
		u.Units = drawUnits(t, f, call.Units{
			AudioInputMicros: 5e9, AudioOutputMicros: 7_000_001, Images: 100,
			Tools: call.ToolCalls{{Name: call.FileSearch, Calls: 50}, {Name: call.WebSearch, Calls: 50}},
		})
		got, err := r.Charge(u)
		if shown, err := r.Explain(u); err != nil || shown.Cost != got {
			t.Fatalf("%v %+v: charged %s, shown as %+v, %v", f, u, got, shown, err)
		}
		if want := exact(f, u); err != nil || want.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("%v %+v: charged %d, %v; want %s", f, u, int64(got), err, want)
		}
	})
}

// A longer request never costs less, as long as no tier makes it cheaper.
func TestAChargeGrowsWithEveryPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := prices(t)
		for key := range f {
			if strings.Contains(key, "above.") {
				delete(f, key)
			}
		}
		last := map[string]int64{}
		for _, above := range []int64{1000, 2000}[:rapid.IntRange(0, 2).Draw(t, "rising tiers")] {
			for _, name := range partNames {
				last[name] += rapid.Int64Range(0, int64(money.Dollar)).Draw(t, "rise")
				f[fmt.Sprintf("above.%d.%s", above, name)] = (100*money.Dollar + money.Nanos(last[name])).String()
			}
		}
		r, err := price.ParseSpec("m", price.Spec{Fields: f})
		if err != nil {
			t.Fatal(err)
		}
		less := drawUsage(t)
		more := less
		place := rapid.SampledFrom([]*int64{
			&more.Input, &more.CachedInput, &more.CacheWrite5m, &more.CacheWrite1h, &more.ToolInput, &more.AudioInput,
			&more.CachedAudioInput, &more.ImageInput, &more.Output, &more.AudioOutput, &more.ImageOutput, &more.Requests,
		}).Draw(t, "place")
		*place += rapid.Int64Range(1, 2000).Draw(t, "more")
		a, errA := r.Charge(less)
		b, errB := r.Charge(more)
		if errA != nil || errB != nil || a > b {
			t.Fatalf("%+v costs %s (%v), %+v costs %s (%v)", less, a, errA, more, b, errB)
		}
	})
}

func TestRowsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, _ := drawRow(t)
		data, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := price.DecodeRow(data)
		if err != nil || back.ID != r.ID {
			t.Fatalf("%s: %v", data, err)
		}
		again, err := back.AppendJSON(nil)
		if err != nil || string(again) != string(data) {
			t.Fatalf("%s became %s, %v", data, again, err)
		}
		u := drawUsage(t)
		a, errA := r.Charge(u)
		b, errB := back.Charge(u)
		if a != b || (errA == nil) != (errB == nil) {
			t.Fatalf("%s charges %s, its copy %s", data, a, b)
		}
	})
}
