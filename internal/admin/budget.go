// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/store"
)

// BudgetList is one page of the workspace's budgets with their live use: all
// there are, those of keys and plans too (SPEC BUD-1, BR-012).
func (s *Service) BudgetList(ctx context.Context, a Actor, r BudgetListRequest) (BudgetListAnswer, error) {
	out := BudgetListAnswer{Budgets: []BudgetAnswer{}}
	c, err := s.enter(ctx, a, OpBudgetList)
	if err != nil {
		return out, err
	}
	list, next, err := s.page(ctx, c, KindBudget, r.Cursor, r.Limit)
	if err != nil {
		return out, err
	}
	out.NextCursor = next
	out.Budgets, err = s.viewBudgets(ctx, c, list)
	return out, answer(err)
}

// BudgetCreate makes a budget.
func (s *Service) BudgetCreate(ctx context.Context, a Actor, r BudgetCreateRequest) (BudgetAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return BudgetAnswer{}, err
	}
	made, err := s.create(ctx, a, creation{
		op: OpBudgetCreate, kind: KindBudget, key: r.IdempotencyKey, node: n,
		build: func(c *scope, o *store.Object) error { return s.buildBudget(ctx, c, o, n) },
	})
	if err != nil {
		return BudgetAnswer{}, err
	}
	// A replay seeds too, once: the process may have died in between.
	if o := &made.object; o.Epoch == 0 && o.RetiredAt == 0 {
		if err := s.seed(ctx, o.Workspace, a.Name, o, o.CreatedAt); err != nil {
			return BudgetAnswer{}, answer(err)
		}
	}
	return s.budgetAnswer(ctx, made)
}

// BudgetUpdate changes what the body gives of a budget. The counter stays,
// unless it would count something else (SPEC BUD-4): then another one begins.
func (s *Service) BudgetUpdate(ctx context.Context, a Actor, r BudgetUpdateRequest) (BudgetAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return BudgetAnswer{}, err
	}
	anew := false
	made, err := s.update(ctx, a, OpBudgetUpdate, KindBudget, r.ID, func(c *scope, o *store.Object) error {
		epoch := o.Epoch
		err := s.buildBudget(ctx, c, o, n)
		anew = o.Epoch != epoch
		return err
	})
	if err == nil && anew {
		err = s.seed(ctx, made.object.Workspace, a.Name, &made.object, made.object.UpdatedAt)
	}
	if err != nil {
		return BudgetAnswer{}, answer(err)
	}
	return s.budgetAnswer(ctx, made)
}

// BudgetDelete retires a budget: it bounds nothing from now on, and what it
// counted stays.
func (s *Service) BudgetDelete(ctx context.Context, a Actor, r BudgetRequest) (BudgetAnswer, error) {
	made, err := s.remove(ctx, a, OpBudgetDelete, KindBudget, r.ID, func(c *scope, o *store.Object) ([]store.Edit, error) {
		b, err := decodeBudget(o)
		if err != nil {
			return nil, err
		}
		return nil, c.systemOnly(b.System)
	})
	if err != nil {
		return BudgetAnswer{}, err
	}
	return s.budgetAnswer(ctx, made)
}

// systemOnly refuses to touch what a system administrator set (SPEC BUD-7).
func (c *scope) systemOnly(system bool) error {
	if system && c.actor.Role != System {
		return permitOnly(c.actor, System)
	}
	return nil
}

func decodeBudget(o *store.Object) (*budget.Budget, error) {
	b, err := budget.Decode(o.Body)
	if err != nil {
		return nil, fmt.Errorf("read budget %s: %w", o.ID, err)
	}
	b.ID, b.Epoch, b.Name = o.ID, o.Epoch, budget.SplitObjectName(b.Owner, o.Name)
	return b, nil
}

// buildBudget reads a new budget, or a change over an earlier version.
func (s *Service) buildBudget(ctx context.Context, c *scope, o *store.Object, n *document.Node) error {
	previous := &budget.Budget{}
	if o.Version > 0 {
		var err error
		if previous, err = decodeBudget(o); err != nil {
			return err
		}
	}
	b := *previous
	if err := readBudget(&b, n); err != nil {
		return answer(err)
	}
	if err := c.systemOnly(previous.System || b.System); err != nil {
		return err
	}
	if err := s.resolveBudget(ctx, c, &b, previous); err != nil {
		return err
	}
	if err := s.keepable([]string{"limit"}); err != nil {
		return invalid(err)
	}
	if err := countable(&b); err != nil {
		return invalid(err)
	}
	body, err := budget.Encode(&b)
	if err != nil {
		return err
	}
	if o.Version > 0 && b.Counts(previous) {
		o.Epoch++
	}
	o.Name, o.Body = budget.ObjectName(b.Owner, b.Name), body
	return s.compiles(ctx, c, o)
}

// readBudget reads what a request says of a budget over the values that it has.
func readBudget(b *budget.Budget, n *document.Node) error {
	scoped := n.Member("scope")
	moved := scoped != nil && b.Scope != "" && scoped.Text != string(b.Scope)
	said := n.Member("subject") != nil || n.Member("subject_id") != nil
	if moved {
		if b.Subject != "" && !said && scoped.Text != string(budget.ScopeOrg) {
			return refuse("subject", "is required where the scope changes: name one, or write null for each separately")
		}
		b.Subject = ""
	}
	n, err := inDollars(n, b.Metric)
	if err != nil {
		return err
	}
	if _, err = document.Read(n, func(r *document.Reader) {
		r.String("name", &b.Name)
		r.Bool("system", &b.System)
		b.Fields(r)
	}); err != nil {
		return err
	}
	if b.Name == "" {
		return refuse("name", "is required")
	}
	return nil
}

// resolveBudget finds what a budget names: its key or plan, and its model or
// provider. A name that leads nowhere would leave it without any effect, so it
// is refused (BR-016). What a change leaves as it was is not asked again.
func (s *Service) resolveBudget(ctx context.Context, c *scope, b, previous *budget.Budget) error {
	var err error
	if b.Subject != "" && (b.Subject != previous.Subject || b.Scope != previous.Scope) {
		switch b.Scope {
		case budget.ScopeKey:
			b.Subject, err = s.subjectID(ctx, c, KindKey, b.Subject, "subject")
		case budget.ScopePlan:
			b.Subject, err = s.subjectID(ctx, c, KindPlan, b.Subject, "subject")
		default:
		}
		if err != nil {
			return err
		}
	}
	if b.Model != "" && b.Model != previous.Model {
		if b.Model, err = s.modelNamed(ctx, c, b.Model); err != nil {
			return err
		}
	}
	if b.Provider != "" && b.Provider != previous.Provider {
		return s.providerNamed(ctx, c, b.Provider)
	}
	return nil
}
