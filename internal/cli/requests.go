// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/weirhq/weir/internal/admin"
)

type requestsCmd struct {
	Key      string `placeholder:"KEY" help:"Only this key's, by name or id."`
	Outcome  string `placeholder:"WORD" help:"Only those that ended so: settled, swept, voided, undone or refused."`
	ClientID string `name:"client-id" placeholder:"ID" help:"Only those that carried this X-Request-Id of the client's."`
	page
	reach
}

func (c *requestsCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.RequestList(s.ctx, admin.RequestListRequest{
			Key: c.Key, Outcome: c.Outcome, ClientID: c.ClientID, Cursor: c.Cursor, Limit: c.Limit,
		})
		return show(a, answer, err, writeRequests)
	})
}

func writeRequests(w io.Writer, answer *admin.RequestListAnswer) error {
	t := &table{empty: "no requests", columns: []column{
		{"id", left},
		{"at", left},
		{"key", left},
		{"model", left},
		{"outcome", left},
		{"code", left},
		{"spend", point},
		{"tokens", right},
		{"times", right},
	}}
	for i := range answer.Requests {
		r := &answer.Requests[i]
		times := ""
		if r.Count > 1 {
			times = count(r.Count)
		}
		spend, tokens := usd(r.Spend), count(r.Tokens)
		if r.Outcome == "refused" {
			spend, tokens = "", ""
		}
		t.add(r.ID, instant(r.At), first(r.KeyName, r.Key), r.Model, r.Outcome, r.Code, spend, tokens, times)
	}
	return t.writeThen(w, answer.NextCursor)
}

// first is the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
