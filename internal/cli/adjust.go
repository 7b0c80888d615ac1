// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/weirhq/weir/internal/admin"

type adjustCmd struct {
	Request string  `arg:"" help:"Its X-Weir-Request-Id."`
	Spend   *string `placeholder:"USD" help:"What it cost in all, in US dollars; 0 takes the whole charge back."`
	Tokens  *int64  `placeholder:"N" help:"How many tokens it used in all."`
	reasonFlags
	reach
}

func (c *adjustCmd) Help() string {
	return `The difference to what was charged is booked in the windows of the request's
admission: in its budgets, its key's caps, the balance and the reports.`
}

func (c *adjustCmd) Run(s *session) error {
	if c.Spend == nil && c.Tokens == nil {
		return misused("say what the request cost or used in all: --spend, --tokens")
	}
	return c.with(s, func(a *asked) error {
		answer, err := a.RequestAdjust(s.ctx, admin.RequestAdjustRequest{ID: c.Request, IdempotencyKey: c.IdempotencyKey, Body: admin.AdjustFields{
			Spend: given(c.Spend), Tokens: given(c.Tokens), Reason: c.Reason,
		}})
		return show(a, answer, err, writeExplain)
	})
}
