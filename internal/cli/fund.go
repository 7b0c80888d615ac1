// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/weirhq/weir/internal/admin"
)

type fundCmd struct {
	Show    fundShowCmd    `cmd:"" help:"Show balance, credit line and what is available."`
	Entries fundEntriesCmd `cmd:"" help:"List top-ups, credits and adjustments, the newest first."`
	TopUp   fundTopUpCmd   `cmd:"" help:"Book a payment."`
	Credit  fundCreditCmd  `cmd:"" help:"Book a credit."`
	Adjust  fundAdjustCmd  `cmd:"" help:"Book a correction, up or down, with its reason."`
}

type fundShowCmd struct{ reach }

func (c *fundShowCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.FundsShow(s.ctx, admin.BalanceRequest{})
		return show(a, answer, err, writeBalance)
	})
}

type fundEntriesCmd struct {
	page
	reach
}

func (c *fundEntriesCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.FundsEntries(s.ctx, admin.FundEntriesRequest{Cursor: c.Cursor, Limit: c.Limit})
		return show(a, answer, err, writeEntries)
	})
}

// entryFlags are those of every entry.
type entryFlags struct {
	Reason         string `placeholder:"TEXT" help:"Why; kept with the entry."`
	IdempotencyKey string `placeholder:"TEXT" help:"Sent again with the same text, nothing more is booked."`
	reach
}

func (c *entryFlags) book(s *session, kind, amount string) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.FundsBook(s.ctx, admin.FundRequest{
			IdempotencyKey: c.IdempotencyKey, Body: admin.FundFields{Kind: kind, Amount: amount, Reason: c.Reason},
		})
		return show(a, answer, err, writeBalance)
	})
}

type fundTopUpCmd struct {
	Amount string `arg:"" help:"US dollars, above 0."`
	entryFlags
}

func (c *fundTopUpCmd) Run(s *session) error { return c.book(s, "top_up", c.Amount) }

type fundCreditCmd struct {
	Amount string `arg:"" help:"US dollars, above 0."`
	entryFlags
}

func (c *fundCreditCmd) Run(s *session) error { return c.book(s, "credit", c.Amount) }

type fundAdjustCmd struct {
	Amount string `required:"" placeholder:"USD" help:"US dollars, signed: --amount=-2.50 takes them away."`
	entryFlags
}

func (c *fundAdjustCmd) Run(s *session) error {
	if c.Reason == "" {
		return misused("an adjustment says why: --reason TEXT")
	}
	return c.book(s, "adjustment", c.Amount)
}

func writeBalance(w io.Writer, b *admin.BalanceAnswer) error {
	t := &table{columns: []column{{"", left}, {"", point}, {"", left}}}
	if e := b.Entry; e != nil {
		note := "booked " + instant(e.At)
		if b.Replayed {
			note = "booked before, " + instant(e.At)
		}
		t.add(entryKind(e.Kind), usd(e.Amount), note)
	}
	t.add("balance", usd(b.Balance), "")
	if b.CreditLine != "" && b.CreditLine != "0" {
		t.add("credit line", usd(b.CreditLine), "")
	}
	if b.Held != "" && b.Held != "0" {
		t.add("held", usd(b.Held), "by running requests")
	}
	note := ""
	if b.Funds == "open" {
		note = "not checked: the workspace's funds are open"
	}
	t.add("available", usd(b.Available), note)
	return t.write(w)
}

func entryKind(kind string) string {
	if kind == "top_up" {
		return "top-up"
	}
	return kind
}

func writeEntries(w io.Writer, answer *admin.FundEntriesAnswer) error {
	t := &table{empty: "no entries", columns: []column{{"at", left}, {"entry", left}, {"amount", point}, {"by", left}, {"reason", left}, {"id", left}}}
	for _, e := range answer.Entries {
		t.add(instant(e.At), entryKind(e.Kind), usd(e.Amount), e.Actor, e.Reason, e.ID)
	}
	return t.writeThen(w, answer.NextCursor)
}
