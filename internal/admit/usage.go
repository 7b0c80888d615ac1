// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
)

// maxUnits bounds each count of units that is believed, in pieces or seconds
// (SPEC section 1).
const maxUnits = 1_000_000_000

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
	// What is no token (PRC-1): microseconds of audio, images, calls of tools.
	AudioInputMicros  int64            `json:"audio_input_micros,omitempty"`
	AudioOutputMicros int64            `json:"audio_output_micros,omitempty"`
	Images            int64            `json:"images,omitempty"`
	ToolCalls         map[string]int64 `json:"tool_calls,omitempty"`
}

func recorded(u *call.Usage, estimated bool) *Usage {
	r := &Usage{
		Input: u.Input + u.ToolInput + u.ImageInput, CachedInput: u.CachedInput + u.CachedAudioInput,
		CacheWrite: u.CacheWrite5m + u.CacheWrite1h, AudioInput: u.AudioInput, Output: u.Output + u.ImageOutput,
		Reasoning: u.Reasoning, AudioOutput: u.AudioOutput, ServiceTier: label(u.ServiceTier), Estimated: estimated,
		AudioInputMicros: u.Units.AudioInputMicros, AudioOutputMicros: u.Units.AudioOutputMicros, Images: u.Units.Images,
	}
	for _, c := range u.Units.Tools.List() {
		if r.ToolCalls == nil {
			r.ToolCalls = make(map[string]int64)
		}
		r.ToolCalls[label(c.Name)] += c.Calls
	}
	return r
}

// believableUnits tells whether a report's units can be meant (USE-1).
func believableUnits(u *call.Units) bool {
	const second = 1_000_000
	fits := func(n, most int64) bool { return n >= 0 && n <= most }
	for _, c := range u.Tools.List() {
		if !fits(c.Calls, maxUnits) {
			return false
		}
	}
	return fits(u.AudioInputMicros, maxUnits*second) && fits(u.AudioOutputMicros, maxUnits*second) && fits(u.Images, maxUnits)
}

// estimatedUnits are what a request whose answer reported nothing is taken to have
// used beside tokens: what it asked for, where the price is for that. Nobody saw
// a tool run.
func (p *Planned) estimatedUnits() call.Units {
	u := p.Want.Units
	u.Tools = call.ToolCalls{}
	if p.Price == nil {
		return call.Units{}
	}
	return p.Price.Priced(u)
}

// NamedCost is the cost that an answer itself names beside our own (USE-4).
type NamedCost struct {
	Nanos    int64 `json:"nanos"`
	OwnNanos int64 `json:"own_nanos"`
	// Charged: it is what was charged, for its provider is trusted.
	Charged bool `json:"charged,omitempty"`
}

// Drift is how far the provider's own cost is above ours, below it when negative.
func (n *NamedCost) Drift() money.Nanos { return money.Nanos(n.Nanos - n.OwnNanos) }

// named is what is charged of a request whose own cost is this and whose answer
// names another, as JSON writes numbers; "" for none. A finite cost of 0 or more
// counts where its provider is trusted, anything else never (USE-4).
func (c *Charged) named(p *Planned, own money.Nanos, text string) money.Nanos {
	if text == "" {
		return own
	}
	number, err := money.ParseNumber(text)
	var theirs money.Nanos
	if err == nil {
		theirs, err = number.Up()
	}
	switch {
	case err != nil && p.Provider.TrustProviderCost:
		c.mark(MarkCostIgnored)
		return own
	case err != nil:
		return own
	}
	c.End.Named = &NamedCost{Nanos: int64(theirs), OwnNanos: int64(own), Charged: p.Provider.TrustProviderCost}
	if !p.Provider.TrustProviderCost {
		return own
	}
	c.mark(MarkProviderCost)
	return theirs
}
