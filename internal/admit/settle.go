// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"errors"
	"math"
	"slices"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

const (
	// outputBytesPerToken turns received output into tokens when no usage was
	// reported (RES-4).
	outputBytesPerToken = 3
	// AbsurdFactor is how many times the context a believed usage may have (USE-1).
	AbsurdFactor = 10
)

// The marks that a settlement sets, besides those of package call.
const (
	// MarkFree: the provider broke a stream and its row makes that free.
	MarkFree call.Mark = "free_on_failure"
	// MarkUnpriced: the model has no price, so nothing was charged (PRC-3).
	MarkUnpriced call.Mark = "unpriced"
	// MarkPriceIncomplete: a part that was used has no price; all of it was
	// priced as a worst case is.
	MarkPriceIncomplete call.Mark = "price_incomplete"
	// MarkTierNotPriced: the price names neither factor nor prices for the service
	// tier that was served, which costs what the standard one costs (USE-2).
	MarkTierNotPriced call.Mark = "tier_not_priced"
	// MarkProviderCost: the cost that the answer names was charged (USE-4).
	MarkProviderCost call.Mark = "provider_cost"
	// MarkCostIgnored: the answer names a cost that is none, which was ignored.
	MarkCostIgnored call.Mark = "cost_ignored"
	// MarkSaturated: the cost passed the bounds of money (SPEC section 1).
	MarkSaturated call.Mark = "saturated"
)

// Ending is how an attempt at a provider ended, as the gateway saw it.
type Ending struct {
	// Sent: something went to the provider. Without it, everything goes back.
	Sent bool
	// Failed: the provider answered with an error, or did not answer whole. A
	// client that has gone is no failure of the provider's.
	Failed   bool
	Observed call.Observed
	// Outcome is a word for the call log: ok, provider_error, cut, client_gone …
	Outcome string
	Status  int
	// FreeWhenBroken: the provider's charge_partial_on_upstream_failure is off
	// and it was the provider who broke the stream (RES-4).
	FreeWhenBroken bool
	// Times in Unix microseconds; 0 where it did not happen.
	SentAt, FirstByteAt, EndedAt int64
}

// End is what the call log keeps of a request's end.
type End struct {
	Outcome     string   `json:"outcome"`
	Status      int      `json:"status,omitempty"`
	Answered    string   `json:"answered_model,omitempty"`
	Marks       []string `json:"marks,omitempty"`
	ChargeNanos int64    `json:"charge_nanos"`
	Usage       *Usage   `json:"usage,omitempty"`
	OutputBytes int64    `json:"output_bytes,omitempty"`
	// Named is the cost that the answer itself names; nil: it names none.
	Named       *NamedCost `json:"named_cost,omitempty"`
	SentAt      int64      `json:"sent_at,omitempty"`
	FirstByteAt int64      `json:"first_byte_at,omitempty"`
	EndedAt     int64      `json:"ended_at,omitempty"`
}

// Charged is the outcome of Settle: the operation and what it costs.
type Charged struct {
	Op     *ledger.Op
	Cost   money.Nanos
	Tokens int64
	End    End
}

// Settle turns an ending into the operation that ends the reservation: settle,
// void (admitted, owes nothing) or undo (no provider ever saw it). RES-4.
func Settle(r *ledger.Reservation, p *Planned, e Ending) Charged {
	c := Charged{Op: &ledger.Op{Verb: ledger.Settle, Workspace: r.Workspace, Reservation: r}}
	c.End = End{
		Outcome: e.Outcome, Status: e.Status, Answered: label(e.Observed.Model), OutputBytes: e.Observed.OutputBytes,
		SentAt: e.SentAt, FirstByteAt: e.FirstByteAt, EndedAt: e.EndedAt,
	}
	for _, m := range e.Observed.Marks {
		c.mark(m)
	}
	settlement := &ledger.Settlement{Outcome: e.Outcome}
	usage, due := owed(p, &e)
	var detail []byte
	if e.Observed.Reported && !believable(p, e.Observed.Usage) {
		c.mark(call.MarkAbsurd)
	}
	switch {
	case !e.Sent:
		c.Op.Verb = ledger.Undo
	case due == dueNothing:
		c.Op.Verb = ledger.Void
	case due == dueFree:
		c.Op.Verb = ledger.Void
		c.mark(MarkFree)
	default:
		attempt := c.attempt(p, usage, due == dueEstimate, e.Observed.Cost)
		settlement.Attempts = []ledger.Attempt{attempt}
		c.Cost, c.Tokens, detail = money.Nanos(attempt.Spend), attempt.Tokens, attempt.Detail
	}
	c.End.ChargeNanos = int64(c.Cost)
	settlement.Note = c.End.Encode(detail)
	c.Op.Settlement = settlement
	return c
}

func (c *Charged) mark(m call.Mark) {
	if !slices.Contains(c.End.Marks, string(m)) {
		c.End.Marks = append(c.End.Marks, string(m))
	}
}

// due is what an ended request owes.
type due int

const (
	dueReported due = iota
	dueNothing
	dueFree // nothing, because its provider's row says so
	dueEstimate
)

// owed is RES-4: the first rule that fits. A report that is not believed is
// none (USE-1).
func owed(p *Planned, e *Ending) (call.Usage, due) {
	o := &e.Observed
	failed := e.Failed || o.ErrorSeen
	switch {
	case o.Reported && believable(p, o.Usage) && !p.worthless(&o.Usage):
		return o.Usage, dueReported
	case failed && !o.OutputSeen && o.OutputBytes <= 0:
		return call.Usage{}, dueNothing
	case failed && e.FreeWhenBroken:
		return call.Usage{}, dueFree
	default:
		return call.Usage{
			Input:    p.Want.InputTokens,
			Output:   min(call.TextTokens(o.OutputBytes, outputBytesPerToken), p.OutputTokens),
			Requests: 1, Units: p.estimatedUnits(),
		}, dueEstimate
	}
}

// worthless: what was reported is units alone, images or seconds, of which the
// price knows none. It would be free; what its tokens may come to is charged
// (PRC-1: a part that is not set is never free).
func (p *Planned) worthless(u *call.Usage) bool {
	return p.Price != nil && u.Tokens() == 0 && u.Units != (call.Units{}) && p.Price.Priced(u.Units) == (call.Units{})
}

func believable(p *Planned, u call.Usage) bool {
	parts := [...]int64{
		u.Input, u.CachedInput, u.CacheWrite5m, u.CacheWrite1h, u.ToolInput, u.AudioInput, u.CachedAudioInput,
		u.ImageInput, u.Output, u.AudioOutput, u.ImageOutput, u.Requests,
	}
	return slices.Min(parts[:]) >= 0 && u.Tokens() <= p.MaxUsageTokens() && believableUnits(&u.Units)
}

func (c *Charged) attempt(p *Planned, u call.Usage, estimated bool, named string) ledger.Attempt {
	a := ledger.Attempt{
		Model: p.Model.Name, Provider: p.Provider.Name, Tokens: u.Tokens(), Input: u.InputTotal(),
		Uncached: u.TokensUncached(), Estimated: estimated,
	}
	if estimated {
		c.mark(call.MarkEstimated)
	}
	if p.Price != nil {
		a.Price = p.Price.ID
	}
	a.Spend = int64(c.named(p, c.cost(p, u, estimated), named))
	c.End.Usage = recorded(&u, estimated)
	a.Detail = c.End.Usage.Encode()
	return a
}

// cost prices what is charged, by the row of the admission. What cannot be
// priced exactly is charged upwards and marked, never lost.
func (c *Charged) cost(p *Planned, u call.Usage, estimated bool) money.Nanos {
	if p.Price == nil {
		c.mark(MarkUnpriced)
		return 0
	}
	cost, err := p.Price.Charge(u)
	if err == nil && estimated {
		// Nobody said which tier was served: the dearer of the standard one and
		// the one asked for, as in the worst case (EST-3).
		asked := u
		asked.ServiceTier = p.Want.ServiceTier
		var dearer money.Nanos
		dearer, err = p.Price.Charge(asked)
		cost = max(cost, dearer)
	}
	if !standardTier(u.ServiceTier) && !p.Price.PricesTier(u.ServiceTier) {
		c.mark(MarkTierNotPriced)
	}
	switch {
	case err == nil:
		return cost
	case errors.Is(err, price.ErrUnpriced) && p.unpriced:
		c.mark(MarkUnpriced)
		return 0
	case errors.Is(err, price.ErrUnpriced):
		c.mark(MarkPriceIncomplete)
		cost, err = p.Price.Worst(whole(p, u))
		if errors.Is(err, price.ErrUnpriced) {
			return money.Nanos(p.Worst.Spend)
		}
		if err == nil {
			return cost
		}
	}
	c.mark(MarkSaturated)
	return math.MaxInt64
}

// whole is the worst case of a usage: its totals, in the dearest parts, and of
// its units those that have a price.
func whole(p *Planned, u call.Usage) price.Want {
	w := p.Want
	w.InputTokens, w.OutputTokens, w.Completions = u.InputTotal(), u.OutputTotal(), 1
	w.Units, w.MaxToolCalls = p.Price.Priced(u.Units), 0
	return w
}

// standardTier tells whether a service tier is the one that has no factor;
// Groq's name of it is on_demand.
func standardTier(name string) bool {
	switch name {
	case "", "default", "standard", "auto", "on_demand":
		return true
	default:
		return false
	}
}
