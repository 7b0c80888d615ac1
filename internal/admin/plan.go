// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// PlanList is one page of the workspace's plans by name.
func (s *Service) PlanList(ctx context.Context, a Actor, r PlanListRequest) (PlanListAnswer, error) {
	out := PlanListAnswer{Plans: []PlanAnswer{}}
	c, err := s.enter(ctx, a, OpPlanList)
	if err != nil {
		return out, err
	}
	list, next, err := s.page(ctx, c, KindPlan, r.Cursor, r.Limit)
	if err != nil {
		return out, err
	}
	out.NextCursor = next
	for i := range list {
		view, err := viewPlan(&list[i])
		if err != nil {
			return out, answer(err)
		}
		out.Plans = append(out.Plans, view)
	}
	return out, nil
}

// PlanShow is one plan, a deleted one too.
func (s *Service) PlanShow(ctx context.Context, a Actor, r PlanRequest) (PlanAnswer, error) {
	c, err := s.enter(ctx, a, OpPlanShow)
	if err != nil {
		return PlanAnswer{}, err
	}
	object, err := s.find(ctx, c, KindPlan, r.ID)
	if err != nil {
		return PlanAnswer{}, answer(err)
	}
	view, err := viewPlan(&object)
	return view, answer(err)
}

// PlanCreate makes a plan.
func (s *Service) PlanCreate(ctx context.Context, a Actor, r PlanCreateRequest) (PlanAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return PlanAnswer{}, err
	}
	made, err := s.create(ctx, a, creation{
		op: OpPlanCreate, kind: KindPlan, key: r.IdempotencyKey, node: n,
		build: func(_ *scope, o *store.Object) error { return buildPlan(o, n) },
	})
	return planAnswer(made, err)
}

// PlanUpdate changes what the body gives of a plan. One that keys name cannot
// be given another name: they would be left without a plan.
func (s *Service) PlanUpdate(ctx context.Context, a Actor, r PlanUpdateRequest) (PlanAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return PlanAnswer{}, err
	}
	made, err := s.update(ctx, a, OpPlanUpdate, KindPlan, r.ID, func(c *scope, o *store.Object) error {
		name := o.Name
		if err := buildPlan(o, n); err != nil || o.Name == name {
			return err
		}
		return s.planUnused(ctx, c, name)
	})
	return planAnswer(made, err)
}

// PlanDelete retires a plan that no key has, with its budgets.
func (s *Service) PlanDelete(ctx context.Context, a Actor, r PlanRequest) (PlanAnswer, error) {
	made, err := s.remove(ctx, a, OpPlanDelete, KindPlan, r.ID, func(c *scope, o *store.Object) ([]store.Edit, error) {
		if err := s.planUnused(ctx, c, o.Name); err != nil {
			return nil, err
		}
		return s.retireLimits(ctx, c, o)
	})
	return planAnswer(made, err)
}

// planUnused refuses while a key, or the template of new ones, names the plan.
func (s *Service) planUnused(ctx context.Context, c *scope, name string) error {
	if t := c.workspace.KeyTemplate; t != nil && t.Plan == name {
		return fault.New(fault.Conflict, "the key template of workspace %s has the plan %s: change that first", c.workspace.Name, document.Quote(name))
	}
	return s.each(ctx, c.object.ID, KindKey, func(o store.Object) error {
		k, err := decodeKey(&o)
		if err == nil && k.Plan == name {
			err = fault.New(fault.Conflict, "key %s has the plan %s: change that first", document.Quote(o.Name), document.Quote(name))
		}
		return err
	})
}

func buildPlan(o *store.Object, n *document.Node) error {
	p, err := decodePlan(o)
	if err != nil {
		return err
	}
	_, err = document.Read(n, func(r *document.Reader) {
		r.String("name", &p.Name)
		p.Fields(r)
	})
	if err == nil && p.Name == "" {
		return refuse("name", "is required")
	}
	if err != nil {
		return invalid(err)
	}
	o.Name = p.Name
	o.Body, err = tenant.EncodePlan(p)
	return err
}

// decodePlan reads a plan; one without a version is empty.
func decodePlan(o *store.Object) (*tenant.Plan, error) {
	if o.Version == 0 {
		return &tenant.Plan{ID: o.ID}, nil
	}
	p, err := tenant.DecodePlan(o.Body)
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", o.ID, err)
	}
	p.ID, p.Name = o.ID, o.Name
	return p, nil
}

func planAnswer(m made, err error) (PlanAnswer, error) {
	if err != nil {
		return PlanAnswer{}, err
	}
	view, err := viewPlan(&m.object)
	view.Replayed = m.replayed
	return view, answer(err)
}

func viewPlan(o *store.Object) (PlanAnswer, error) {
	p, err := decodePlan(o)
	if err != nil {
		return PlanAnswer{}, err
	}
	out := PlanAnswer{
		ID: o.ID, Name: o.Name, Status: "active", AllowedModels: p.AllowedModels, MaxOutputTokens: p.MaxOutputTokens,
		Source: o.Source, Origin: o.Origin, Version: o.Version, CreatedAt: instant(o.CreatedAt), UpdatedAt: instant(o.UpdatedAt),
	}
	if o.RetiredAt > 0 {
		out.Status = "retired"
	}
	return out, nil
}

// retireLimits retires the budgets and rules that bound a key or plan alone,
// with it. What the file declares of one is the file's to remove first.
func (s *Service) retireLimits(ctx context.Context, c *scope, owner *store.Object) ([]store.Edit, error) {
	var edits []store.Edit
	for _, limits := range []struct {
		kind string
		op   Op
	}{{KindBudget, OpBudgetDelete}, {KindRateLimit, OpRateLimitDelete}} {
		err := s.each(ctx, c.object.ID, limits.kind, func(o store.Object) error {
			bounds, err := boundBy(&o)
			if err != nil || bounds != owner.ID {
				return err
			}
			if o.Source == SourceFile {
				return fault.New(fault.Conflict, "%s %s is declared at %s and bounds %s %s: remove it there first",
					words[o.Kind], document.Quote(o.Name), o.Origin, words[owner.Kind], document.Quote(owner.Name))
			}
			audit := c.audit(&o, o.Body, nil)
			audit.Action = string(limits.op)
			edits = append(edits, store.Edit{Object: o, Expect: o.Version, Retire: true, Audit: audit})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return edits, nil
}

// boundBy is the id of the key or plan that a budget or rule bounds alone; ""
// for none.
func boundBy(o *store.Object) (string, error) {
	if o.Kind == KindBudget {
		b, err := decodeBudget(o)
		if err == nil && (b.Scope == budget.ScopeKey || b.Scope == budget.ScopePlan) {
			return b.Subject, nil
		}
		return "", err
	}
	r, err := decodeRule(o)
	if err == nil && r.SubjectKind == rule.SubjectKey {
		return r.SubjectID, nil
	}
	return "", err
}
