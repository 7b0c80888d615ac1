// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
)

// amendedAtOnce bounds the counters of one entry.
const amendedAtOnce = 64

// raisedBy is what the window of a reading was raised by (SPEC BUD-9).
func raisedBy(r *ledger.Reading) int64 { return max(0, r.Amount-r.Check.Amount) }

// amendment is an entry that changes open windows (SPEC BUD-9).
type amendment struct {
	key, target string // Idempotency-Key, and what it is about
	node        *document.Node
	object      *store.Object
	kind        ledger.EventKind
	amount      int64 // of a raise
	checks      []ledger.Check
	note        amendNote
}

// amendNote is what the audit says of it. Amount is in the limit's own unit:
// dollars for spend.
type amendNote struct {
	Entry   string `json:"entry"`
	Subject string `json:"subject,omitempty"`
	Amount  string `json:"amount,omitempty"`
	Reason  string `json:"reason"`
}

// amend books an entry once, announced as funds are.
func (s *Service) amend(ctx context.Context, c *scope, m amendment) (replayed bool, err error) {
	id, err := s.announce(ctx, c, announcement{
		key: m.key, target: m.target, node: m.node,
		audit: func(id ledger.ID) (store.Audit, error) {
			m.note.Entry = id.String()
			after, err := json.Marshal(m.note)
			return c.audit(m.object, nil, after), err
		},
	})
	if err != nil {
		return false, err
	}
	for part := byte(0); len(m.checks) > 0; part++ {
		size := min(len(m.checks), amendedAtOnce)
		booked := id
		booked[len(booked)-1] ^= part
		op := &ledger.Op{
			Verb: ledger.Amend, ID: booked, Workspace: c.object.ID, Checks: m.checks[:size:size],
			Entry: &ledger.Entry{Kind: m.kind, Amounts: amounts(&m.checks[0], m.amount), Reason: m.note.Reason, Actor: c.actor.Name},
		}
		op.Name(c.at)
		result, err := s.Decider.Submit(ctx, op)
		if err != nil {
			return false, err
		}
		if result.Verdict != ledger.Done && result.Verdict != ledger.Already {
			return false, fmt.Errorf("book %s: verdict %d", booked, result.Verdict)
		}
		replayed, m.checks = result.Verdict == ledger.Already, m.checks[size:]
	}
	return replayed, nil
}

// amounts is an amount in the metric that a check charges.
func amounts(c *ledger.Check, amount int64) ledger.Amounts {
	switch c.Charges {
	case ledger.Spend:
		return ledger.Amounts{Spend: amount}
	case ledger.Tokens:
		return ledger.Amounts{Tokens: amount}
	case ledger.Uncached:
		return ledger.Amounts{Uncached: amount}
	default:
		return ledger.Amounts{}
	}
}

// wish is what the body of a raise or reset says.
type wish struct {
	amount          int64
	subject, reason string
}

// readWish reads a raise of a budget of that metric, or with "" a reset.
func readWish(n *document.Node, metric string) (w wish, err error) {
	_, err = document.Read(n, func(r *document.Reader) {
		r.Need("reason")
		r.String("reason", &w.reason)
		if w.reason = strings.TrimSpace(w.reason); w.reason == "" || len(w.reason) > maxReason {
			r.Fail("reason", "says why: it must have 1 to %d bytes", maxReason)
		}
		r.String("subject", &w.subject)
		switch metric {
		case budget.Tokens:
			r.Need("amount")
			r.Int("amount", &w.amount, 1, budget.MaxTokens)
		case budget.Spend:
			r.Node("amount")
			r.Node("amount_usd")
		}
	})
	if err != nil || metric != budget.Spend {
		return w, err
	}
	amount, err := spend("amount", n.Member("amount"), n.Member("amount_usd"))
	w.amount = int64(amount)
	return w, err
}

// BudgetRaise adds to a budget for its current window only.
func (s *Service) BudgetRaise(ctx context.Context, a Actor, r BudgetRaiseRequest) (BudgetAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return BudgetAnswer{}, err
	}
	return s.amendBudget(ctx, a, OpBudgetRaise, r.ID, amendment{key: r.IdempotencyKey, node: n, kind: ledger.EventRaise})
}

// BudgetReset sets what a budget's current window has used to zero. Reports keep
// what was spent.
func (s *Service) BudgetReset(ctx context.Context, a Actor, r BudgetResetRequest) (BudgetAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return BudgetAnswer{}, err
	}
	return s.amendBudget(ctx, a, OpBudgetReset, r.ID, amendment{key: r.IdempotencyKey, node: n, kind: ledger.EventReset})
}

// amendBudget raises or resets a budget, of the file too: an entry is no
// configuration.
func (s *Service) amendBudget(ctx context.Context, a Actor, op Op, ref string, m amendment) (BudgetAnswer, error) {
	return repeat(func() (BudgetAnswer, error) {
		c, err := s.enter(ctx, a, op)
		if err != nil {
			return BudgetAnswer{}, err
		}
		object, err := s.live(ctx, c, KindBudget, ref)
		if err != nil {
			return BudgetAnswer{}, err
		}
		b, err := decodeBudget(&object)
		if err != nil {
			return BudgetAnswer{}, err
		}
		if err := c.systemOnly(b.System); err != nil {
			return BudgetAnswer{}, err
		}
		metric := ""
		if m.kind == ledger.EventRaise {
			metric = b.Metric
		}
		w, err := readWish(m.node, metric)
		if err != nil {
			return BudgetAnswer{}, err
		}
		view := s.viewBudget(&object, b, s.labels(ctx, c))
		subject, err := s.amended(ctx, c, view.Per != "", b.Scope == budget.ScopeKey || b.Scope == budget.ScopePlan, b.Subject, w.subject)
		if err != nil {
			return BudgetAnswer{}, err
		}
		check, err := limit.BudgetCheck(c.object.ID, b, subject)
		if err != nil {
			return BudgetAnswer{}, err
		}
		m.object, m.target, m.amount, m.checks = &object, object.ID, w.amount, []ledger.Check{check}
		m.note = amendNote{Subject: w.subject, Reason: w.reason}
		if w.amount > 0 {
			m.note.Amount = figure(check.Wants, w.amount)
		}
		if view.Replayed, err = s.amend(ctx, c, m); err != nil {
			return BudgetAnswer{}, err
		}
		if view.Per != "" {
			view.UseOf = subject
		}
		readings, err := s.readChecks(ctx, c, []ledger.Check{check})
		if err != nil {
			return BudgetAnswer{}, err
		}
		return view, view.use(&readings[0])
	})
}

// amended is the subject whose counter is meant: the limit's own, or the one that
// the request names of a limit that each has for itself. ofKeys: subjects are
// keys.
func (s *Service) amended(ctx context.Context, c *scope, each, ofKeys bool, own, named string) (string, error) {
	switch {
	case !each && named != "":
		return "", refuse("subject", "is for a limit that each subject has for itself: leave it out")
	case !each:
		return own, nil
	case named == "":
		return "", refuse("subject", "is required: each subject has this limit for itself")
	case ofKeys:
		return s.subjectID(ctx, c, KindKey, named, "subject")
	default:
		return named, nil
	}
}

// RateLimitReset empties a rate rule's window.
func (s *Service) RateLimitReset(ctx context.Context, a Actor, r RateLimitResetRequest) (RateLimitAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return RateLimitAnswer{}, err
	}
	return repeat(func() (RateLimitAnswer, error) {
		c, err := s.enter(ctx, a, OpRateLimitReset)
		if err != nil {
			return RateLimitAnswer{}, err
		}
		object, err := s.live(ctx, c, KindRateLimit, r.ID)
		if err != nil {
			return RateLimitAnswer{}, err
		}
		rate, err := decodeRule(&object)
		if err != nil {
			return RateLimitAnswer{}, err
		}
		w, err := readWish(n, "")
		if err != nil {
			return RateLimitAnswer{}, err
		}
		if !rate.Enabled {
			return RateLimitAnswer{}, fault.New(fault.Conflict, "rate limit %s is disabled: it counts nothing, and starts empty when it is enabled", object.ID)
		}
		each := rate.SubjectKind != rule.SubjectOrg && rate.SubjectID == ""
		subject, err := s.amended(ctx, c, each, rate.SubjectKind == rule.SubjectKey, rate.SubjectID, w.subject)
		if err != nil {
			return RateLimitAnswer{}, err
		}
		replayed, err := s.amend(ctx, c, amendment{
			key: r.IdempotencyKey, target: object.ID, node: n, object: &object, kind: ledger.EventReset,
			checks: []ledger.Check{limit.RuleCheck(c.object.ID, rate, subject)},
			note:   amendNote{Subject: w.subject, Reason: w.reason},
		})
		if err != nil {
			return RateLimitAnswer{}, err
		}
		return s.ruleAnswer(ctx, made{c: c, object: object, replayed: replayed})
	})
}

// KeyReset sets to zero what the open windows of a key's caps, of its own
// budgets and of its plan's have used.
func (s *Service) KeyReset(ctx context.Context, a Actor, r KeyResetRequest) (KeyLimitsAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return KeyLimitsAnswer{}, err
	}
	return repeat(func() (KeyLimitsAnswer, error) {
		c, err := s.enter(ctx, a, OpKeyReset)
		if err != nil {
			return KeyLimitsAnswer{}, err
		}
		object, err := s.live(ctx, c, KindKey, r.Key)
		if err != nil {
			return KeyLimitsAnswer{}, err
		}
		k, err := decodeKey(&object)
		if err != nil {
			return KeyLimitsAnswer{}, err
		}
		w, err := readWish(n, "")
		if err != nil {
			return KeyLimitsAnswer{}, err
		}
		if w.subject != "" {
			return KeyLimitsAnswer{}, refuse("subject", "unknown field")
		}
		snapshot, err := s.Snapshots.Refresh(ctx, c.object.ID)
		if err != nil {
			return KeyLimitsAnswer{}, err
		}
		checks, err := s.resettable(ctx, c, k.ID, admit.ReadOp(snapshot, k, admit.Attribution{}).Checks)
		if err != nil {
			return KeyLimitsAnswer{}, err
		}
		_, err = s.amend(ctx, c, amendment{
			key: r.IdempotencyKey, target: object.ID, node: n, object: &object, kind: ledger.EventReset, checks: checks,
			note: amendNote{Reason: w.reason},
		})
		if err != nil {
			return KeyLimitsAnswer{}, err
		}
		return s.keyLimits(ctx, snapshot, k)
	})
}

// resettable are the caps and budgets among a key's checks whose counters are its
// own, less the budgets that only a system administrator changes (SPEC BUD-7).
func (s *Service) resettable(ctx context.Context, c *scope, key string, checks []ledger.Check) ([]ledger.Check, error) {
	var list []ledger.Check
	for i := range checks {
		check := &checks[i]
		if check.Counter.Subject != key || check.Kind != ledger.KindFixed && check.Kind != ledger.KindDays {
			continue
		}
		if check.Kind == ledger.KindFixed && c.actor.Role != System {
			o, err := s.Objects.Object(ctx, c.object.ID, KindBudget, check.Counter.Limit)
			if err != nil {
				return nil, err
			}
			b, err := decodeBudget(&o)
			if err != nil {
				return nil, err
			}
			if b.System {
				continue
			}
		}
		list = append(list, *check)
	}
	return list, nil
}
