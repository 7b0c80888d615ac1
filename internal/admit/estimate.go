// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"errors"
	"math"
	"math/bits"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
)

const (
	// FallbackOutputTokens bounds the output of a model that declares neither an
	// output maximum nor a context. Where a limit reserves it is written into
	// the request too, or the hold would be a guess (EST-2).
	FallbackOutputTokens = 16_384
	// FallbackContextTokens stands for the context of a model that declares
	// none, where input that the gateway cannot see is held at it (EST-4).
	FallbackContextTokens = 1_000_000
	// minContextLeft is what the context is taken to leave at least: the input
	// estimate is high, and a hold must not shrink to nothing by it (EST-2).
	minContextLeft = 1024
	// maxHold is held for what cannot be counted: it fits no limit, so a limit
	// that reserves refuses it (SPEC section 1).
	maxHold = math.MaxInt64
)

// Planned is one candidate with its estimate.
type Planned struct {
	*Target
	// InputTokens is the visible input by EST-1. OutputTokens is the bound that
	// is held, for all completions together.
	InputTokens, OutputTokens int64
	// WriteBound is the bound of one completion to write into the request; 0:
	// leave it as it is.
	WriteBound  int64
	OutputField string
	// Want is what the worst case is priced from; its InputTokens include what
	// the gateway cannot see (EST-4).
	Want price.Want
	// Worst is what a sweep charges. Wants is what is held: less, where the
	// workspace bounds what is held for output (BUD-10).
	Worst, Wants ledger.Amounts
	// unpriced: the model has no price for all that the request could use.
	unpriced bool
}

// MaxUsageTokens is the most that a report about this candidate is believed to
// say: ten times its context (USE-1), for each completion asked for, and never
// above the bound of a request (SPEC section 1).
func (p *Planned) MaxUsageTokens() int64 {
	context := p.Model.ContextTokens
	if context <= 0 {
		context = FallbackContextTokens
	}
	return min(route.MaxTokens, product(AbsurdFactor*context, max(1, p.Want.Completions)))
}

// estimate works out the worst case of one candidate (EST-1 to EST-4).
func (r *Request) estimate(t *Target, reserving bool) Planned {
	m, c := t.Model, r.Call
	if c.Door.Counts() {
		return countOnly(t)
	}
	p := Planned{Target: t, OutputField: c.OutputField}
	if p.OutputField == "" {
		p.OutputField = m.OutputField
	}
	p.InputTokens = c.Prompt.InputTokens(m.BytesPerToken, m.ImageTokens)
	held := r.bound(&p, reserving)
	input := p.InputTokens
	if c.Prompt.Unseen {
		context := m.ContextTokens
		if context <= 0 {
			context = FallbackContextTokens
		}
		input = max(input, context)
	}
	p.OutputTokens = product(held, max(1, c.Completions))
	p.Want = r.want(t, input, held)
	p.Worst, p.unpriced = p.worst(p.Want)
	p.Wants = p.Worst
	if most := r.Snapshot.Workspace.HoldOutputTokens; most > 0 && most < held {
		p.Wants, _ = p.worst(r.want(t, input, most))
	}
	return p
}

// want is what a request may use at most, in the tier that it asks for, or else in
// the one that its provider's account serves by itself (EST-3).
func (r *Request) want(t *Target, input, output int64) price.Want {
	w := price.WantOf(r.Call, input, output)
	if w.ServiceTier == "" || w.ServiceTier == "auto" {
		w.ServiceTier = t.Provider.DefaultTier
	}
	return w
}

// countOnly is a candidate for a request that only counts tokens: its price is
// zero, whatever the model's is (SPEC section 9).
func countOnly(t *Target) Planned {
	free := *t
	free.Price = (&price.Row{Model: t.Model.Name, Source: price.SourceOverride, Free: true}).Seal()
	free.priced, _ = free.Price.AppendJSON(nil) // a row of nothing but a word can be written
	once := ledger.Amounts{Requests: 1, Slots: 1}
	return Planned{Target: &free, Worst: once, Wants: once}
}

// worst is the worst case of a want, in every metric.
func (p *Planned) worst(w price.Want) (a ledger.Amounts, unpriced bool) {
	a = ledger.Amounts{Tokens: p.tokens(w), Input: p.InputTokens, Requests: 1, Slots: 1}
	a.Uncached = a.Tokens
	a.Spend, unpriced = worstSpend(p.Price, w)
	return a, unpriced
}

// tokens are the most tokens that a want can come to.
func (p *Planned) tokens(w price.Want) int64 {
	return sum(w.InputTokens, product(w.OutputTokens, max(1, w.Completions)))
}

// bound works out the output bound of one completion: what to write into the
// request, and the tokens to hold for it.
func (r *Request) bound(p *Planned, reserving bool) (held int64) {
	if !r.Call.Door.Writes() {
		return 0
	}
	m := p.Model
	write := r.outputBound(m.MaxOutputTokens, m.DefaultOutputTokens)
	held = write
	switch {
	case write > 0:
	case m.ContextTokens > 0:
		held = m.ContextTokens // the provider's own end of it
	default:
		write, held = FallbackOutputTokens, FallbackOutputTokens
	}
	// A body may carry a second bound beside the one that counted: written, the
	// bound holds for both. A larger one is clamped by the model's (KEY-6).
	if reserving || r.Snapshot.outputCeiling(r.Key) > 0 || write > 0 && r.Call.OutputBound > write {
		p.WriteBound = write
	}
	if m.ContextTokens > 0 {
		held = min(held, max(minContextLeft, m.ContextTokens-p.InputTokens))
	}
	return held
}

// outputBound is the least of the client's value, the key's maximum and the
// model's; without a client's value the model's default, within the same two.
// 0 means that nothing bounds it.
func (r *Request) outputBound(modelMax, modelDefault int64) int64 {
	bound := r.Call.OutputBound
	if bound <= 0 {
		bound = modelDefault
	}
	for _, most := range [...]int64{modelMax, r.Snapshot.outputCeiling(r.Key), r.OutputCap} {
		if most > 0 && (bound <= 0 || bound > most) {
			bound = most
		}
	}
	return max(0, bound)
}

// worstSpend prices a worst case. Without a price, or with one that lacks what
// the request could use, nothing can be held: a price that is not set is no
// price of zero, and PRC-3 decides about it.
func worstSpend(row *price.Row, w price.Want) (spend int64, unpriced bool) {
	if row == nil {
		return 0, true
	}
	worst, err := row.Worst(w)
	switch {
	case err == nil:
		return int64(worst), false
	case errors.Is(err, price.ErrUnpriced):
		return 0, true
	default:
		return maxHold, false
	}
}

func (p *Planned) candidate() ledger.Candidate {
	c := ledger.Candidate{Model: p.Model.Name, Provider: p.Provider.Name, Wants: p.Wants, Worst: p.Worst}
	if p.Price != nil {
		c.Price, c.Free = p.Price.ID, p.Price.IsFree()
	}
	return c
}

// product is a * b for counts, which are at least 0; it saturates.
func product(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// sum is a + b; it saturates.
func sum(a, b int64) int64 {
	n, _ := money.SaturatingAdd(a, b)
	return n
}
