// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

const maxReason = 500

// FundsBook books a top-up, credit or adjustment (SPEC BAL-3 to BAL-5).
//
// The audit entry is stored first, with the id of the entry to come: what the
// ledger holds was always announced. When the booking itself fails, sending the
// request again with its Idempotency-Key books it once.
func (s *Service) FundsBook(ctx context.Context, a Actor, r FundRequest) (BalanceAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return BalanceAnswer{}, err
	}
	entry, err := readEntry(n)
	if err != nil {
		return BalanceAnswer{}, invalid(err)
	}
	entry.Actor = a.Name
	return repeat(func() (BalanceAnswer, error) {
		c, err := s.enter(ctx, a, OpFundsBook)
		if err != nil {
			return BalanceAnswer{}, err
		}
		id, err := s.announce(ctx, c, announcement{key: r.IdempotencyKey, node: n, audit: c.fundAudit(entry)})
		if err != nil {
			return BalanceAnswer{}, err
		}
		op := &ledger.Op{Verb: ledger.Fund, ID: id, Workspace: c.object.ID, Entry: entry, Checks: []ledger.Check{fundsCheck(c.workspace)}}
		result, err := s.Decider.Submit(ctx, op)
		if err != nil {
			return BalanceAnswer{}, err
		}
		if result.Verdict != ledger.Done && result.Verdict != ledger.Already {
			return BalanceAnswer{}, fmt.Errorf("book %s: verdict %d", id, result.Verdict)
		}
		out, err := s.balance(ctx, c)
		out.Replayed = result.Verdict == ledger.Already
		out.Entry = &FundEntry{
			ID: id.String(), Kind: entry.Kind.String(), Amount: usd(entry.Amounts.Spend), At: instant(result.At),
			Reason: entry.Reason, Actor: entry.Actor,
		}
		if out.Replayed {
			out.Entry.At = instant(id.Millis() * 1000)
		}
		return out, err
	})
}

// readEntry reads an entry: top-ups and credits are above zero, adjustments are
// signed and have a reason (SPEC BAL-5).
func readEntry(n *document.Node) (*ledger.Entry, error) {
	var kind, reason string
	var amount money.Nanos
	_, err := document.Read(n, func(r *document.Reader) {
		r.Need("kind", "amount")
		r.Choice("kind", &kind, "top_up", "credit", "adjustment")
		r.String("reason", &reason)
		if len(reason) > maxReason {
			r.Fail("reason", "has more than %d bytes", maxReason)
		}
		parse := money.ParseUSD
		if kind == "adjustment" {
			parse = money.ParseSignedUSD
			r.Need("reason")
		}
		r.Decimal("amount", func(text string) error {
			var err error
			if amount, err = parse(text); err == nil && amount == 0 {
				err = errors.New("must not be zero")
			}
			return err
		}, func() {})
		if kind == "adjustment" && reason == "" {
			r.Fail("reason", "says why an adjustment is made: it must not be empty")
		}
	})
	if err != nil {
		return nil, err
	}
	booked, _ := ledger.ParseEventKind(kind)
	return &ledger.Entry{Kind: booked, Amounts: ledger.Amounts{Spend: int64(amount)}, Reason: reason}, nil
}

// announcement is what is stored before an entry is booked.
type announcement struct {
	key    string // Idempotency-Key
	target string // what beside the body makes it the same request
	node   *document.Node
	audit  func(ledger.ID) (store.Audit, error)
}

// announce stores the audit of an entry and its Idempotency-Key, and returns
// the id to book it under: the earlier one of a request that came before.
func (s *Service) announce(ctx context.Context, c *scope, n announcement) (ledger.ID, error) {
	id, err := s.newRequestID(c.at)
	if err != nil {
		return id, err
	}
	if n.key == "" {
		n.key = id.String()
	}
	once, known, err := s.once(ctx, c, n.key, n.target, n.node)
	if err != nil {
		return id, err
	}
	if known != "" {
		return ledger.ParseID(known)
	}
	edit, err := once.edit(id.String())
	if err != nil {
		return id, err
	}
	if edit.Audit, err = n.audit(id); err != nil {
		return id, fmt.Errorf("write an audit entry: %w", err)
	}
	return id, s.change(ctx, c.at, []store.Edit{edit})
}

func (c *scope) fundAudit(entry *ledger.Entry) func(ledger.ID) (store.Audit, error) {
	return func(id ledger.ID) (store.Audit, error) {
		after, err := json.Marshal(FundEntry{ID: id.String(), Kind: entry.Kind.String(), Amount: usd(entry.Amounts.Spend), At: instant(c.at), Reason: entry.Reason})
		return store.Audit{
			At: c.at, Workspace: c.object.ID, Actor: c.actor.Name, Action: "funds." + entry.Kind.String(),
			Kind: "funds", ID: id.String(), After: after,
		}, err
	}
}

func (s *Service) newRequestID(at int64) (ledger.ID, error) {
	var random [10]byte
	if _, err := io.ReadFull(s.Random, random[:]); err != nil {
		return ledger.ID{}, fmt.Errorf("make an id: %w", err)
	}
	return ledger.NewID(at, random), nil
}

// FundsShow is the workspace's balance.
func (s *Service) FundsShow(ctx context.Context, a Actor, _ BalanceRequest) (BalanceAnswer, error) {
	c, err := s.enter(ctx, a, OpFundsShow)
	if err != nil {
		return BalanceAnswer{}, err
	}
	out, err := s.balance(ctx, c)
	return out, answer(err)
}

// balance reads the funds counter: available is what was paid in less what was
// spent and is held, and the credit line (SPEC BAL-5).
func (s *Service) balance(ctx context.Context, c *scope) (BalanceAnswer, error) {
	check := fundsCheck(c.workspace)
	result, err := s.read(ctx, &ledger.Op{Verb: ledger.Read, Workspace: c.object.ID, Checks: []ledger.Check{check}})
	if err != nil {
		return BalanceAnswer{}, fmt.Errorf("read the balance: %w", err)
	}
	if len(result.Readings) != 1 {
		return BalanceAnswer{}, fmt.Errorf("read the balance: %d readings", len(result.Readings))
	}
	used, held := money.Nanos(result.Readings[0].Used), money.Nanos(result.Readings[0].Held)
	available := money.Nanos(check.Credit) - used - held
	return BalanceAnswer{
		Workspace: c.workspace.Name, Funds: c.workspace.Funds, Balance: (-used).String(),
		CreditLine: usd(check.Credit), Held: held.String(), Available: available.String(),
	}, nil
}

func fundsCheck(w *tenant.Workspace) ledger.Check {
	check := ledger.Check{
		Counter: limit.FundsCounter(w.ID), Kind: ledger.KindFunds, Mode: ledger.Track,
		Wants: ledger.Spend, Charges: ledger.Spend, Name: "balance", Scope: "workspace",
	}
	if w.Type == tenant.Enterprise {
		check.Credit = int64(w.CreditLine)
	}
	return check
}

// FundsEntries is one page of top-ups, credits and adjustments.
func (s *Service) FundsEntries(ctx context.Context, a Actor, r FundEntriesRequest) (FundEntriesAnswer, error) {
	out := FundEntriesAnswer{Entries: []FundEntry{}}
	c, err := s.enter(ctx, a, OpFundsEntries)
	if err != nil {
		return out, err
	}
	size, before, err := requestPage(r.Limit, r.Cursor)
	if err != nil {
		return out, err
	}
	list, err := s.Log.FundEntries(ctx, c.object.ID, before, size+1)
	if err != nil {
		return out, answer(err)
	}
	list, out.NextCursor = trim(list, size, func(e ledger.Event) string { return e.ID.String() })
	for i := range list {
		e := &list[i]
		out.Entries = append(out.Entries, FundEntry{
			ID: e.ID.String(), Kind: e.Kind.String(), Amount: usd(e.Spend), At: instant(e.At), Reason: e.Reason, Actor: e.Actor,
		})
	}
	return out, nil
}

// requestPage reads the page of a list of requests or entries.
func requestPage(limit int, cursor string) (size int, before ledger.ID, err error) {
	if size, err = pageSize(limit); err != nil || cursor == "" {
		return size, before, err
	}
	place, err := placeOf(cursor)
	if err != nil {
		return size, before, err
	}
	if before, err = ledger.ParseID(place); err != nil {
		return size, before, refuse("cursor", "is not one that this list answered with")
	}
	return size, before, nil
}

func usd(nanos int64) string { return money.Nanos(nanos).String() }
