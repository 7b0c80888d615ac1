// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// countable tells what of a budget cannot begin with what its window has seen:
// the sums of events do not tell cache reads apart.
func countable(b *budget.Budget) error {
	var problems document.Problems
	if b.CountFrom != "" && b.Uncached {
		problems.Add("count_from", "%s cannot leave cache reads out, as count_cached: false does: leave one of them out", b.CountFrom)
	}
	return problems.Err()
}

// seed books what the window of a budget had seen when the budget began to
// count, at its object's last change (SPEC BUD-8). Requests that were running
// then are not in it. It books once, however often it is asked: the entry's id is
// the budget's own.
func (s *Service) seed(ctx context.Context, workspace, actor string, o *store.Object, since int64) error {
	b, err := decodeBudget(o)
	if err != nil || b.CountFrom == "" {
		return err
	}
	spec, err := b.Spec()
	if err != nil {
		return err
	}
	start, _ := spec.Bounds(since)
	sums, err := s.seen(ctx, workspace, b, start, since)
	if err != nil {
		return fmt.Errorf("sum up the window of budget %s: %w", o.ID, err)
	}
	for subject, amount := range sums {
		check, err := limit.BudgetCheck(workspace, b, subject)
		if err != nil {
			return err
		}
		check.Counter.Window = start
		result, err := s.Decider.Submit(ctx, &ledger.Op{
			Verb: ledger.Amend, ID: seedID(&check.Counter, since), Workspace: workspace, Checks: []ledger.Check{check},
			Entry: &ledger.Entry{
				Kind: ledger.EventSeed, Amounts: amounts(&check, amount), Reason: "count_from: " + b.CountFrom, Actor: actor,
			},
		})
		if err == nil && result.Verdict != ledger.Done && result.Verdict != ledger.Already {
			err = fmt.Errorf("verdict %d", result.Verdict)
		}
		if err != nil {
			return fmt.Errorf("seed budget %s: %w", o.ID, err)
		}
	}
	return nil
}

// seedID is the same for the same counter: a seed that is asked for again books
// nothing.
func seedID(c *ledger.Counter, since int64) ledger.ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "seed %q %q %d %q %d", c.Workspace, c.Limit, c.Epoch, c.Subject, c.Window))
	return ledger.NewID(since, [10]byte(sum[:10]))
}

// seen sums up what a budget would have counted in [from, to), by the subject of
// its counters.
func (s *Service) seen(ctx context.Context, workspace string, b *budget.Budget, from, to int64) (map[string]int64, error) {
	var by []store.By
	switch b.Scope {
	case budget.ScopeKey, budget.ScopePlan:
		by = append(by, store.ByKey)
	case budget.ScopeUser:
		by = append(by, store.ByUser)
	case budget.ScopeTeam:
		by = append(by, store.ByTeam)
	case budget.ScopeProject:
		by = append(by, store.ByProject)
	case budget.ScopeOrg:
	}
	if b.Model != "" {
		by = append(by, store.ByModel)
	}
	if b.Provider != "" {
		by = append(by, store.ByProvider)
	}
	rows, err := s.Log.Usage(ctx, store.UsageQuery{Workspace: workspace, From: from, To: to, By: by})
	if err != nil {
		return nil, err
	}
	sums := map[string]int64{}
	for i := range rows {
		subject := ""
		if b.Scope != budget.ScopeOrg {
			if subject = rows[i].Group[by[0]]; subject == "" {
				continue
			}
		}
		counts, err := s.countsFor(ctx, workspace, b, subject)
		if err != nil {
			return nil, err
		}
		if !counts || rows[i].Group[store.ByModel] != b.Model || rows[i].Group[store.ByProvider] != b.Provider {
			continue
		}
		amount := rows[i].Spend
		if b.Metric == budget.Tokens {
			amount = rows[i].Tokens
		}
		if amount > 0 {
			sums[subject], _ = money.SaturatingAdd(sums[subject], amount)
		}
	}
	return sums, nil
}

// countsFor tells whether a budget bounds a subject: a plan's each key that has
// the plan now.
func (s *Service) countsFor(ctx context.Context, workspace string, b *budget.Budget, subject string) (bool, error) {
	if b.Scope != budget.ScopePlan {
		return b.Subject == "" || b.Subject == subject, nil
	}
	plan, err := s.Objects.Object(ctx, workspace, KindPlan, b.Subject)
	if err != nil {
		return false, err
	}
	object, err := s.Objects.Object(ctx, workspace, KindKey, subject)
	if err != nil {
		return false, err
	}
	k, err := decodeKey(&object)
	return err == nil && k.Plan == plan.Name, err
}

// seedDeclared seeds the budgets of the file that began to count in a window
// which is still open: also after a process that died between making one and
// seeding it.
func (s *Service) seedDeclared(ctx context.Context, actor string, workspaces []string) error {
	at := s.Clock.Now()
	for _, workspace := range workspaces {
		err := s.each(ctx, workspace, KindBudget, func(o store.Object) error {
			b, err := decodeBudget(&o)
			if err != nil || b.CountFrom == "" || o.Source != SourceFile {
				return err
			}
			var spec window.Spec
			if spec, err = b.Spec(); err != nil {
				return err
			}
			if start, _ := spec.Bounds(at); o.Epoch > 0 || o.CreatedAt < start {
				return nil
			}
			return s.seed(ctx, workspace, actor, &o, o.CreatedAt)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
