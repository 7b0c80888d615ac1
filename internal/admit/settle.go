// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"
	"math"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
)

const (
	maxHold = money.MaxAmount
	// outputBytesPerToken turns received output into tokens when no usage was
	// reported (RES-4).
	outputBytesPerToken = 3
	// AbsurdFactor: usage above ten times the context is not believed (USE-1).
	AbsurdFactor = 10
	// assumedContext stands in for a model that declares none.
	assumedContext = 10_000_000
)

// Ending is how an attempt at a provider ended, as the gateway saw it.
type Ending struct {
	// Sent: something went to the provider. Without it, everything goes back.
	Sent bool
	// Failed: the provider answered with an error, or did not answer.
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
	SentAt      int64    `json:"sent_at,omitempty"`
	FirstByteAt int64    `json:"first_byte_at,omitempty"`
	EndedAt     int64    `json:"ended_at,omitempty"`
}

// Usage is the normalised usage as it is recorded with an event.
type Usage struct {
	Input       int64  `json:"input"`
	CachedInput int64  `json:"cached_input,omitempty"`
	CacheWrite  int64  `json:"cache_write,omitempty"`
	AudioInput  int64  `json:"audio_input,omitempty"`
	Output      int64  `json:"output"`
	Reasoning   int64  `json:"reasoning,omitempty"`
	AudioOutput int64  `json:"audio_output,omitempty"`
	ServiceTier string `json:"service_tier,omitempty"`
	Estimated   bool   `json:"estimated,omitempty"`
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
		Outcome: e.Outcome, Status: e.Status, Answered: e.Observed.Model, OutputBytes: e.Observed.OutputBytes,
		SentAt: e.SentAt, FirstByteAt: e.FirstByteAt, EndedAt: e.EndedAt,
	}
	for _, m := range e.Observed.Marks {
		c.End.Marks = append(c.End.Marks, string(m))
	}
	settlement := &ledger.Settlement{Outcome: e.Outcome}
	usage, owed := usageOwed(p, e, &c.End)
	switch {
	case !e.Sent:
		c.Op.Verb = ledger.Undo
	case !owed:
		c.Op.Verb = ledger.Void
	default:
		attempt := c.attempt(p, usage)
		settlement.Attempts = []ledger.Attempt{attempt}
		c.Cost, c.Tokens = money.Nanos(attempt.Spend), attempt.Tokens
	}
	c.End.ChargeNanos = int64(c.Cost)
	settlement.Note, _ = json.Marshal(c.End) // flat values cannot fail
	c.Op.Settlement = settlement
	return c
}

// usageOwed is RES-4: the first rule that fits.
func usageOwed(p *Planned, e Ending, end *End) (call.Usage, bool) {
	if e.Observed.Reported {
		if believable(p, e.Observed.Usage) {
			return e.Observed.Usage, true
		}
		end.Marks = append(end.Marks, "absurd")
	}
	if e.Failed && !e.Observed.OutputSeen {
		return call.Usage{}, false
	}
	if e.Failed && e.FreeWhenBroken {
		end.Marks = append(end.Marks, "free_on_failure")
		return call.Usage{}, false
	}
	end.Marks = append(end.Marks, "estimated")
	output := (e.Observed.OutputBytes + outputBytesPerToken - 1) / outputBytesPerToken
	return call.Usage{Input: p.InputTokens, Output: min(output, p.OutputTokens), Requests: 1}, true
}

func believable(p *Planned, u call.Usage) bool {
	context := p.Model.ContextTokens
	if context <= 0 {
		context = assumedContext
	}
	return u.Tokens() >= 0 && u.Tokens() <= AbsurdFactor*context
}

func (c *Charged) attempt(p *Planned, u call.Usage) ledger.Attempt {
	a := ledger.Attempt{Model: p.Model.Name, Provider: p.Provider.Name, Tokens: u.Tokens(), Input: u.InputTotal()}
	if p.Price != nil {
		a.Price = p.Price.ID
		cost, err := p.Price.Charge(u)
		if err != nil {
			cost = c.fallback(p, u)
		}
		a.Spend = int64(cost)
	} else {
		c.End.Marks = append(c.End.Marks, "unpriced")
	}
	estimated := false
	for _, m := range c.End.Marks {
		estimated = estimated || m == "estimated"
	}
	c.End.Usage = &Usage{
		Input: u.Input + u.ToolInput + u.ImageInput, CachedInput: u.CachedInput + u.CachedAudioInput,
		CacheWrite: u.CacheWrite5m + u.CacheWrite1h, AudioInput: u.AudioInput, Output: u.Output + u.ImageOutput,
		Reasoning: u.Reasoning, AudioOutput: u.AudioOutput, ServiceTier: u.ServiceTier, Estimated: estimated,
	}
	a.Detail, _ = json.Marshal(c.End.Usage) // flat values cannot fail
	return a
}

// fallback prices a usage of which some part has no price: all of it at the
// dearest tier, by the code that sized the hold; past the bounds of money it
// saturates. It is marked, never lost.
func (c *Charged) fallback(p *Planned, u call.Usage) money.Nanos {
	c.End.Marks = append(c.End.Marks, "price_incomplete")
	want := p.Want
	want.InputTokens, want.OutputTokens = u.InputTotal(), u.OutputTotal()
	cost, err := p.Price.Worst(want)
	if err != nil {
		c.End.Marks = append(c.End.Marks, "saturated")
		return money.Nanos(math.MaxInt64)
	}
	return cost
}
