// SPDX-License-Identifier: Apache-2.0

package price

import (
	"fmt"
	"math"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
)

// Want is what a request may use at most, for its worst case (EST-2, EST-3).
// The zero values of the fields that say "no" or "asks" are the careful ones
// for media and the plain ones for caches: a request is text-only only when
// its reader says so, and it writes to a cache only when its body asks.
type Want struct {
	// InputTokens is the estimate of all input (EST-1).
	InputTokens int64
	// OutputTokens is the output bound of one completion.
	OutputTokens int64
	// Completions multiplies the output, not the input; 0 counts as 1.
	Completions int64
	// ServiceTier is the tier asked for, or the provider's default_tier.
	ServiceTier string
	// CachesInput says that the body asks for writing to the prompt cache,
	// CachesOneHour that it asks for one hour.
	CachesInput   bool
	CachesOneHour bool
	// The media that the request certainly doesn't have: without them its
	// tokens are held at the dearest price they could land in.
	NoAudioInput  bool
	NoImageInput  bool
	NoAudioOutput bool
	NoImageOutput bool
	// Units is the most that is used beside tokens, and MaxToolCalls bounds the
	// calls of all its tools together, 0 for no such bound (EST-4).
	Units        call.Units
	MaxToolCalls int64
	// ByUnit: it came by a door whose models may be priced by units alone (audio,
	// images). Tokens that such a model has no price for are not held.
	ByUnit bool
}

// WantOf is the worst case of a call with this estimate of its input and this
// output bound of one completion. The canonical call counts its images; what
// it doesn't know yet, audio and the media of the answer, stays possible.
func WantOf(c *call.Call, inputTokens, outputTokens int64) Want {
	return Want{
		InputTokens: inputTokens, OutputTokens: outputTokens, Completions: c.Completions,
		ServiceTier: c.ServiceTier, NoImageInput: c.Prompt.Images == 0,
		CachesInput: c.Prompt.CachesInput, CachesOneHour: c.Prompt.CachesOneHour,
		Units: c.Units, MaxToolCalls: c.MaxToolCalls, ByUnit: byUnit(c.Door),
	}
}

func byUnit(d call.Door) bool {
	return d == call.OpenAITranscriptions || d == call.OpenAISpeech || d == call.OpenAIImages
}

// Charge is what u costs: exact, rounded up once (MON-2). The length of the
// input chooses the prices of the whole request, and the service tier that was
// served its prices or factor (USE-2). A part that was used and has no price is
// ErrUnpriced; a cost that doesn't fit is money.ErrOverflow.
func (r *Row) Charge(u call.Usage) (money.Nanos, error) {
	return r.cost(r.ratesFor(u.InputTotal(), u.ServiceTier), &u, r.factor(u.ServiceTier), nil)
}

// Worst is the most that a request within w can be charged, whatever part its
// tokens land in (EST-3): the dearest tier up to its length, the dearer of the
// service tier asked for and the standard one, which providers fall back to.
// Text without a price is ErrUnpriced when the request may use any.
func (r *Row) Worst(w Want) (money.Nanos, error) {
	factor := r.factor(w.ServiceTier)
	if factor.less(one) {
		factor = one
	}
	worst := money.Nanos(0)
	for t := base; t < len(r.Tiers); t++ {
		if t != base && r.Tiers[t].AboveTokens >= w.InputTokens {
			continue
		}
		if err := w.raise(&worst, r, r.rates(t), factor); err != nil {
			return 0, err
		}
		if s, ok := r.serviceRates(beginsAt(r.Tiers, t), w.ServiceTier); ok {
			if err := w.raise(&worst, r, s, one); err != nil {
				return 0, err
			}
		}
	}
	for i, t := range r.ServiceTiers[w.ServiceTier] {
		if t.AboveTokens >= w.InputTokens {
			continue
		}
		s, _ := r.serviceRates(beginsAt(r.ServiceTiers[w.ServiceTier], i), w.ServiceTier)
		if err := w.raise(&worst, r, s, one); err != nil {
			return 0, err
		}
	}
	return worst, nil
}

// raise makes worst at least what w costs at these prices.
func (w *Want) raise(worst *money.Nanos, r *Row, prices rates, factor Fraction) error {
	u, err := w.dearest(r, prices)
	if err != nil {
		return err
	}
	n, err := r.cost(prices, &u, factor, nil)
	*worst = max(*worst, n)
	return err
}

// Preview is what a plain text request of so many tokens costs: what a price
// means, shown before it is kept.
func Preview(r *Row, inputTokens, outputTokens int64) (money.Nanos, error) {
	return r.Charge(call.Usage{Input: inputTokens, Output: outputTokens, Requests: 1})
}

// tierFor is the context tier of a request with so many tokens of input.
func (r *Row) tierFor(inputTokens int64) int { return tierFor(r.Tiers, inputTokens) }

func tierFor(tiers []Tier, inputTokens int64) int {
	found := base
	for t := range tiers {
		above := tiers[t].AboveTokens
		if above < inputTokens && (found == base || above > tiers[found].AboveTokens) {
			found = t
		}
	}
	return found
}

// dearest is the usage within w that costs most at these prices: all input in
// its dearest possible part, all output in its own, and every unit. Text is
// always possible, so that text without a price is found out here and not at
// the end.
func (w *Want) dearest(r *Row, prices rates) (call.Usage, error) {
	u := call.Usage{Requests: 1, Units: w.Units}
	u.Units.Tools = w.dearestTools(r)
	if err := w.dropUnits(r, prices, &u.Units); err != nil {
		return u, err
	}
	completions := max(w.Completions, 1)
	output := w.OutputTokens
	if output > math.MaxInt64/completions {
		output = math.MaxInt64
	} else {
		output *= completions
	}
	droppable := w.ByUnit && r.pricesMedia()
	hold(dearestOf(prices, droppable, []possible{
		{partInput, true, &u.Input},
		{partCachedInput, true, &u.CachedInput},
		{partCacheWrite5m, w.CachesInput || w.CachesOneHour, &u.CacheWrite5m},
		{partCacheWrite1h, w.CachesOneHour, &u.CacheWrite1h},
		{partAudioInput, !w.NoAudioInput, &u.AudioInput},
		{partCachedAudioInput, !w.NoAudioInput, &u.CachedAudioInput},
		{partImageInput, !w.NoImageInput, &u.ImageInput},
	}), w.InputTokens)
	hold(dearestOf(prices, droppable, []possible{
		{partOutput, true, &u.Output},
		{partAudioOutput, !w.NoAudioOutput, &u.AudioOutput},
		{partImageOutput, !w.NoImageOutput, &u.ImageOutput},
	}), output)
	return u, nil
}

// dropUnits leaves out the seconds and images that the row bills by the token:
// the want has those tokens too. One that it can't bill either way is unpriced.
func (w *Want) dropUnits(r *Row, prices rates, u *call.Units) error {
	set := r.unitPrices()
	for n, count := range mediaPlaces(u) {
		switch {
		case count == nil || *count == 0 || set[n] != nil:
		case prices[unitKinds[n].tokens] == nil:
			return fmt.Errorf("%s of model %q %w", unitKinds[n].key, r.Model, ErrUnpriced)
		default:
			*count = 0
		}
	}
	return nil
}

// hold puts n tokens into a place, if there is one.
func hold(place *int64, n int64) {
	if place != nil {
		*place = n
	}
}

// possible is a part that tokens could land in, and its place in a usage.
type possible struct {
	part  part
	can   bool
	count *int64
}

// dearestOf is the place of the dearest part that is possible; of the first,
// the text, when that has no price. Where tokens without a price are droppable
// it is that of the dearest part that has one, nil when none has.
func dearestOf(prices rates, droppable bool, list []possible) *int64 {
	found := &list[0]
	if prices[found.part] == nil {
		if !droppable {
			return found.count
		}
		found = nil
	}
	for i := range list {
		p := &list[i]
		if p.can && prices[p.part] != nil && (found == nil || *prices[p.part] > *prices[found.part]) {
			found = p
		}
	}
	if found == nil {
		return nil
	}
	return found.count
}

// add is a + b for counts; it saturates, and stays below zero if either is.
func add(a, b int64) int64 {
	if a < 0 || b < 0 {
		return min(a, b)
	}
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
