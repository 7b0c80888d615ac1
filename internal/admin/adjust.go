// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/store"
)

// maxAdjusted bounds the tokens that a request is said to have used.
const maxAdjusted = 1_000_000_000_000

// correction is one adjustment: the differences that it books, as the Number-th
// correction of its request. An Idempotency-Key remembers it, so that the same
// request again books it once.
type correction struct {
	Number int32 `json:"number"`
	Spend  int64 `json:"spend"`
	Tokens int64 `json:"tokens"`
	// Uncached is for limits that count no cache reads (SPEC USE-3).
	Uncached int64 `json:"uncached"`
	reason   string
}

// RequestAdjust says what an ended request cost instead of what it was charged
// (SPEC RES-9). The difference is booked in the windows of the request's
// admission, on every counter that its charge went to; buckets, whose minute has
// passed, are left alone.
//
// As with funds the audit is stored first: what the ledger holds was announced.
func (s *Service) RequestAdjust(ctx context.Context, a Actor, r RequestAdjustRequest) (RequestAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return RequestAnswer{}, err
	}
	replayed := false
	id, err := repeat(func() (ledger.ID, error) {
		c, err := s.enter(ctx, a, OpRequestAdjust)
		if err != nil {
			return ledger.ID{}, err
		}
		want, err := readAdjustment(n)
		if err != nil {
			return ledger.ID{}, invalid(err)
		}
		call, events, err := s.findCall(ctx, c, r.ID)
		if err != nil {
			return ledger.ID{}, err
		}
		d, known, err := s.announceCorrection(ctx, c, r.IdempotencyKey, n, &call, want.over(events))
		if err != nil || d.Spend == 0 && d.Tokens == 0 {
			return call.ID, err
		}
		replayed = known
		return call.ID, s.correct(ctx, c, &call, d)
	})
	if err != nil {
		return RequestAnswer{}, err
	}
	out, err := s.RequestShow(ctx, a, RequestShowRequest{ID: id.String()})
	out.Replayed = replayed
	return out, err
}

// adjustment is what a request is said to have used; nil: as it was charged.
type adjustment struct {
	spend  *money.Nanos
	tokens *int64
	reason string
}

func readAdjustment(n *document.Node) (a adjustment, err error) {
	_, err = document.Read(n, func(r *document.Reader) {
		r.Need("reason")
		r.String("reason", &a.reason)
		if a.reason = strings.TrimSpace(a.reason); a.reason == "" || len(a.reason) > maxReason {
			r.Fail("reason", "says why: it must have 1 to %d bytes", maxReason)
		}
		r.Decimal("spend", func(text string) error {
			amount, err := money.ParseUSD(text)
			a.spend = &amount
			return err
		}, func() {})
		r.OptInt("tokens", &a.tokens, 0, maxAdjusted)
		if a.spend == nil && a.tokens == nil {
			r.Fail("", "needs spend, tokens or both: what the request cost in all")
		}
	})
	return a, err
}

// over is the difference to what events have charged.
func (a *adjustment) over(events []ledger.Event) correction {
	var d correction
	spent, used, cached := int64(0), int64(0), int64(0)
	for i := range events {
		cached, _ = money.SaturatingAdd(cached, cacheReads(events[i].Detail))
		spent, _ = money.SaturatingAdd(spent, events[i].Spend)
		used, _ = money.SaturatingAdd(used, events[i].Tokens)
		if events[i].Kind == ledger.EventCorrection {
			d.Number++
		}
	}
	if a.spend != nil {
		d.Spend, _ = money.SaturatingAdd(int64(*a.spend), -spent)
	}
	if a.tokens != nil {
		d.Tokens, _ = money.SaturatingAdd(*a.tokens, -used)
		// Who counts no cache reads was charged the rest alone, and gets no more back.
		d.Uncached = max(d.Tokens, min(0, cached-used))
	}
	d.reason = a.reason
	return d
}

// cacheReads are the tokens of an event's usage that were read from a cache.
func cacheReads(detail []byte) int64 {
	var usage admit.Usage
	_ = json.Unmarshal(detail, &usage) // events without one have none
	return usage.CachedInput
}

// findCall finds an ended request of the workspace.
func (s *Service) findCall(ctx context.Context, c *scope, ref string) (store.Call, []ledger.Event, error) {
	id, err := ledger.ParseID(ref)
	if err != nil {
		return store.Call{}, nil, refuse("id", "%v", err)
	}
	call, events, err := s.Log.Call(ctx, c.object.ID, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = fault.New(fault.NotFound, "workspace %s has no request %s", c.workspace.Name, id)
	case err != nil:
	case call.Outcome == store.OutcomeRunning:
		err = fault.New(fault.Conflict, "request %s is still running: adjust it when it has ended", id)
	case call.Outcome == "refused":
		err = fault.New(fault.Conflict, "request %s was refused: it used nothing that could be adjusted", id)
	}
	return call, events, err
}

// announceCorrection stores the audit of a correction and its Idempotency-Key.
// It returns the earlier correction of a request that came before.
func (s *Service) announceCorrection(ctx context.Context, c *scope, key string, n *document.Node, call *store.Call, d correction) (out correction, known bool, err error) {
	if d.Spend == 0 && d.Tokens == 0 && key == "" {
		return d, false, nil
	}
	if key == "" {
		id, err := s.newRequestID(c.at)
		if err != nil {
			return d, false, err
		}
		key = id.String()
	}
	once, before, err := s.once(ctx, c, key, call.ID.String(), n)
	if err != nil {
		return d, false, err
	}
	if before != "" {
		out.reason = d.reason
		if err := json.Unmarshal([]byte(before), &out); err != nil {
			return d, true, fmt.Errorf("read an adjustment: %w", err)
		}
		return out, true, nil
	}
	remembered, err := json.Marshal(d)
	if err != nil {
		return d, false, fmt.Errorf("write an adjustment: %w", err)
	}
	edit, err := once.edit(string(remembered))
	if err != nil {
		return d, false, err
	}
	after, err := json.Marshal(map[string]string{
		"spend": usd(d.Spend), "tokens": fmt.Sprint(d.Tokens), "reason": d.reason,
	})
	if err != nil {
		return d, false, fmt.Errorf("write an audit entry: %w", err)
	}
	edit.Audit = store.Audit{
		At: c.at, Workspace: c.object.ID, Actor: c.actor.Name, Action: string(c.op), Kind: "request", ID: call.ID.String(), After: after,
	}
	return d, false, s.change(ctx, c.at, []store.Edit{edit})
}

// correct books a correction, once. Another one that took its number meanwhile
// is told: what this one meant to correct is not what there is.
func (s *Service) correct(ctx context.Context, c *scope, call *store.Call, d correction) error {
	result, err := s.Decider.Submit(ctx, &ledger.Op{
		Verb: ledger.Adjust, Workspace: c.object.ID, Reservation: call.Reservation(),
		Entry: &ledger.Entry{
			Kind: ledger.EventCorrection, Number: d.Number, Reason: d.reason, Actor: c.actor.Name,
			Amounts: ledger.Amounts{Spend: d.Spend, Tokens: d.Tokens, Uncached: d.Uncached},
		},
	})
	if err != nil {
		return err
	}
	switch result.Verdict {
	case ledger.Done:
		return nil
	case ledger.Already:
		_, events, err := s.Log.Call(ctx, c.object.ID, call.ID)
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			if e.Kind == ledger.EventCorrection && e.Attempt == d.Number && e.Spend == d.Spend && e.Tokens == d.Tokens && e.Reason == d.reason {
				return nil
			}
		}
		return fault.New(fault.Conflict, "another correction of request %s came between: look at it, then adjust again with another Idempotency-Key", call.ID)
	default:
		return fmt.Errorf("adjust %s: verdict %d", call.ID, result.Verdict)
	}
}
