// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"slices"

	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// tokenPrices are dollars per million of input and output.
var tokenPrices = map[string][2]string{"m": {"1", "10"}, "dear": {"3.3", "15.7"}}

// priced is what tokens cost, rounded up once (MON-2).
func (a *audit) priced(model string, input, output int64) money.Nanos {
	a.w.t.Helper()
	var sum money.Sum
	for i, n := range []int64{input, output} {
		rate, err := money.ParsePerMillion(tokenPrices[model][i])
		if err == nil {
			err = sum.Add(rate, n)
		}
		if err != nil {
			a.w.t.Fatal(err)
		}
	}
	cost, err := sum.Nanos()
	if err != nil {
		a.w.t.Fatal(err)
	}
	return cost
}

// charged compares one charge with the provider's bill for the same request.
func (a *audit) charged(c *call) {
	tag := c.ClientID
	a.once(c)
	if want := a.priced(c.Model, c.Estimate.InputTokens, c.Estimate.OutputTokens); c.worst != want {
		a.fault("%s (%s) has the worst case %s, %s is right", tag, c.ID, c.worst, want)
	}
	b := behave(a.w.seed, tag)
	var entry *simulator.Entry
	if entries := a.entries[tag]; len(entries) > 0 {
		entry = &entries[0]
	}
	switch c.Outcome {
	case "undone":
		if c.spend != 0 || c.Tokens != 0 {
			a.fault("%s (%s) was undone and costs %s", tag, c.ID, c.Spend)
		}
	case "swept":
		if c.spend != c.worst || c.Tokens != c.Estimate.InputTokens+c.Estimate.OutputTokens {
			a.fault("%s (%s) was swept for %s and %d tokens, its worst case is %s and %d", tag, c.ID, c.Spend, c.Tokens,
				c.worst, c.Estimate.InputTokens+c.Estimate.OutputTokens)
		}
		if !slices.ContainsFunc(a.w.deaths, func(at int64) bool { return c.at <= at+a.w.slack && at <= c.ended }) {
			a.fault("%s (%s) was swept, and no process died with it: %s to %s", tag, c.ID, c.At, c.EndedAt)
		}
	case "voided":
		a.voided(c, &b, entry)
	case "settled":
		a.settled(c, &b, entry)
	default:
		a.fault("%s (%s) is %s at rest", tag, c.ID, c.Outcome)
	}
}

// once: a request ends exactly once (RES-2).
func (a *audit) once(c *call) {
	ends := 0
	for _, e := range c.Events {
		if slices.Contains([]string{"settled", "swept", "voided", "undone"}, e.Kind) {
			ends++
		}
	}
	if ends != 1 {
		a.fault("%s (%s) has ended %d times: %+v", c.ClientID, c.ID, ends, c.Events)
	}
}

// voided: nothing is owed only where the provider failed before any output
// arrived (RES-4).
func (a *audit) voided(c *call, b *simulator.Behaviour, entry *simulator.Entry) {
	switch {
	case c.spend != 0 || c.Tokens != 0:
		a.fault("%s (%s) was voided and costs %s", c.ClientID, c.ID, c.Spend)
	case entry == nil, entry.Input+entry.Output == 0:
	case entry.Output <= a.crowd.sent[c.ClientID].choices*b.Reasoning: // and nobody saw any of it
		a.found["reasoned and broke"]++
	case b.Break.Manner == simulator.BreakCut: // a reset discards what was under way
		a.found["cut before it arrived"]++
	case entry.Outcome == simulator.Broken && entry.Output == 0:
	case c.End != nil && c.End.Outcome == "upstream_timeout":
		a.found["too late"]++
	default:
		a.fault("%s (%s) costs nothing, the provider bills %d and %d tokens: %s, %+v, ended %+v", c.ClientID, c.ID, entry.Input, entry.Output,
			entry.Outcome, b, c.End)
	}
}

// settled: what was reported is charged to the token, what was not by RES-4's
// formula, from the output that certainly arrived to the output that was
// produced.
func (a *audit) settled(c *call, b *simulator.Behaviour, entry *simulator.Entry) {
	if len(c.Events) != 1 || c.Events[0].Usage == nil {
		a.fault("%s (%s) was settled without usage", c.ClientID, c.ID)
		return
	}
	u := c.Events[0].Usage
	input := u.Input + u.CachedInput
	if want := a.priced(c.Model, input, u.Output); want != c.spend || c.Tokens != input+u.Output {
		a.fault("%s (%s): %d and %d tokens cost %s, %s was charged", c.ClientID, c.ID, input, u.Output, want, c.Spend)
	}
	switch {
	case entry == nil:
		a.fault("%s (%s) was charged %s and never reached the provider: %+v", c.ClientID, c.ID, c.Spend, c.End)
	case u.Estimated:
		a.estimated(c, b, entry)
	case b.Usage == simulator.UsageZero: // cached input may stand beside it
	case b.Usage == simulator.UsagePartial:
		if u.Output != entry.Output {
			a.fault("%s (%s): %d tokens of output were reported, %d charged", c.ClientID, c.ID, entry.Output, u.Output)
		}
	case b.Usage == simulator.UsageInconsistent && entry.Outcome == simulator.Served:
		if input != entry.Input || u.Output != entry.Output+7 { // settled upward (USE-1)
			a.fault("%s (%s): %d and %d tokens were billed, the total is 7 more, %d and %d were charged", c.ClientID, c.ID, entry.Input, entry.Output, input, u.Output)
		}
	case entry.Outcome == simulator.Served && (input != entry.Input || u.Output != entry.Output):
		a.fault("%s (%s): the bill is %d and %d tokens, %d and %d were charged; %+v", c.ClientID, c.ID, entry.Input, entry.Output, input, u.Output, b)
	default:
		a.found["equal to the bill"]++
	}
}

func (a *audit) estimated(c *call, b *simulator.Behaviour, entry *simulator.Entry) {
	u, s := c.Events[0].Usage, a.crowd.sent[c.ClientID]
	produced := entry.Output
	if !entry.Stream || entry.Outcome == simulator.Gone {
		produced = c.Estimate.OutputTokens // all of a body that cannot be read may be output
	}
	least := min((s.textBytes+2)/3, c.Estimate.OutputTokens)
	most := min((4*produced+2)/3, c.Estimate.OutputTokens)
	switch {
	case u.Input != c.Estimate.InputTokens || u.Output < least || u.Output > most:
		a.fault("%s (%s): %d and %d tokens were estimated, %d and %d to %d are right; %+v, %s, ended %+v", c.ClientID, c.ID, u.Input, u.Output,
			c.Estimate.InputTokens, least, most, b, entry.Outcome, c.End)
	case truthful(b) && entry.Outcome == simulator.Served && c.End.Outcome == "ok":
		a.fault("%s (%s) was estimated, its usage was reported: %+v", c.ClientID, c.ID, b)
	default:
		a.found["estimated"]++
	}
}
