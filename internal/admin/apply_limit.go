// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
)

// prepare reads what the plan relies on beside the file: the guards of the
// workspaces, first, and the models and providers that the API made.
func (a *applier) prepare(ctx context.Context) error {
	for _, h := range a.homes {
		if h.workspace != nil {
			guard, err := a.s.guardEdit(ctx, h.id, guardID)
			if err != nil {
				return err
			}
			a.guards[h.id] = guard
		}
		err := a.s.each(ctx, h.id, KindProvider, func(o store.Object) error {
			if o.Source != SourceFile {
				h.provide(o.Name)
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = a.s.each(ctx, h.id, KindModel, func(o store.Object) error {
			if o.Source == SourceFile {
				return nil
			}
			m, err := route.DecodeModel(o.Body)
			if err == nil {
				h.lead(o.Name, m)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// guarded adds the guard of each workspace that the edits change.
func (a *applier) guarded(edits []store.Edit) []store.Edit {
	done := map[string]bool{"": true}
	for _, e := range edits {
		if guard, ok := a.guards[e.Object.Workspace]; ok && !done[e.Object.Workspace] {
			done[e.Object.Workspace] = true
			edits = append(edits, guard)
		}
	}
	return edits
}

// owned is a budget of a key or plan under its name among all of the workspace;
// nil, with a problem, when there is no such owner.
func (a *applier) owned(d *Declared) *Declared {
	h := a.homes[d.Workspace]
	if h == nil {
		return d // told by declare
	}
	id := h.ids[[2]string{d.OwnerKind, d.OwnerName}]
	if id == "" {
		a.fail(d, "belongs to a %s that is not declared", d.OwnerKind)
		return nil
	}
	a.owners[id] = d.OwnerKind + " " + d.OwnerName
	next := *d
	next.owner, next.plain, next.Name = id, d.Name, budget.ObjectName(id, d.Name)
	if d.Was != "" {
		next.Was = budget.ObjectName(id, d.Was)
	}
	return &next
}

// shown is an object's name for people: a budget's with its owner.
func (a *applier) shown(o *store.Object) string {
	if o.Kind != KindBudget {
		return o.Name
	}
	b, err := decodeBudget(o)
	if err != nil || b.Owner == "" {
		return o.Name
	}
	owner := a.owners[b.Owner]
	if owner == "" {
		owner = b.Owner
	}
	return b.Name + " of " + owner
}

// budget is a declared budget with what it names found: its owner or subject,
// its model and provider. Its epoch grows when it counts something else than
// before (SPEC BUD-4).
func (a *applier) budget(ctx context.Context, h *home, d *Declared, now, o *store.Object) error {
	b, err := budget.Decode(d.Body)
	if err != nil {
		return err
	}
	switch {
	case d.owner != "":
		b.Owner, b.Subject = d.owner, d.owner
	case b.Subject == "":
	case b.Scope == budget.ScopeKey:
		b.Subject, err = a.subject(ctx, h, d, KindKey, b.Subject)
	case b.Scope == budget.ScopePlan:
		b.Subject, err = a.subject(ctx, h, d, KindPlan, b.Subject)
	}
	if err != nil {
		return err
	}
	b.Model = a.narrowed(h, d, b.Model, b.Provider)
	a.add(d, a.s.keepable([]string{"limit"}))
	a.add(d, countable(b))
	if o.Epoch = now.Epoch; now.Version > 0 {
		previous, err := decodeBudget(now)
		if err != nil {
			return err
		}
		if b.Counts(previous) {
			o.Epoch++
		}
	}
	o.Body, err = budget.Encode(b)
	return err
}

// rule is budget for a rate rule (SPEC RAT-4).
func (a *applier) rule(ctx context.Context, h *home, d *Declared, now, o *store.Object) error {
	r, err := rule.Decode(d.Body)
	if err != nil {
		return err
	}
	if r.SubjectKind == rule.SubjectKey && r.SubjectID != "" {
		if r.SubjectID, err = a.subject(ctx, h, d, KindKey, r.SubjectID); err != nil {
			return err
		}
	}
	r.Model = a.narrowed(h, d, r.Model, "")
	h.rules++
	h.lastRule = d
	if o.Epoch = now.Epoch; now.Version > 0 {
		previous, err := decodeRule(now)
		if err != nil {
			return err
		}
		if r.Counts(previous) {
			o.Epoch++
		}
	}
	o.Body, err = rule.Encode(r)
	return err
}

func (h *home) inherits() bool { return h.workspace == nil || h.workspace.Inherit }

// subject is the id of the key or plan of that name that will be there; the name
// itself, with a problem, when there will be none.
func (a *applier) subject(ctx context.Context, h *home, d *Declared, kind, name string) (string, error) {
	if id := h.ids[[2]string{kind, name}]; id != "" {
		return id, nil
	}
	o, err := a.named(ctx, h.id, kind, name)
	switch {
	case err != nil:
		return name, err
	case o == nil:
		a.fail(d, "is for the %s %s, which there is not", kind, document.Quote(name))
	case o.RetiredAt > 0 || o.Source == SourceFile:
		a.fail(d, "is for the %s %s, which is retired", kind, document.Quote(name))
	default:
		return o.ID, nil
	}
	return name, nil
}

// planOf refuses a plan that will not be there.
func (a *applier) planOf(ctx context.Context, h *home, d *Declared, name string) error {
	there, err := a.hasPlan(ctx, h, name)
	if err == nil && !there {
		a.fail(d, "has the plan %s, which there is not", document.Quote(name))
	}
	return err
}

func (a *applier) hasPlan(ctx context.Context, h *home, name string) (bool, error) {
	if name == "" || h.ids[[2]string{KindPlan, name}] != "" {
		return true, nil
	}
	o, err := a.named(ctx, h.id, KindPlan, name)
	return o != nil && o.RetiredAt == 0 && o.Source != SourceFile, err
}

// narrowed is the model that a limit on a model counts: of whatever name it was
// asked for (BR-177). A model or provider that will not be there is a problem:
// the limit would never count anything (BR-016).
func (a *applier) narrowed(h *home, d *Declared, model, provider string) string {
	if provider != "" && !h.provided[provider] && (!h.inherits() || !a.homes[""].provided[provider]) {
		a.fail(d, "is narrowed to the provider %s, which is not declared: it would never count anything", document.Quote(provider))
	}
	if model == "" {
		return ""
	}
	if m := a.leads(h, model); m != "" {
		return m
	}
	a.fail(d, "is narrowed to the model %s, which is not declared: it would never count anything", document.Quote(model))
	return model
}

// leads is the model that a name leads to in a workspace: one of its own names,
// else a shared one that none of those hides (SPEC KEY-5, section 14).
func (a *applier) leads(h *home, name string) string {
	if m := h.models[name]; m != "" {
		return m
	}
	if m := a.homes[""].models[name]; m != "" && h.inherits() && h.models[m] == "" {
		return m
	}
	return ""
}

// retireWith retires what the API made to bound a key or plan alone, with it.
// What the file declared of one is retired as gone, or a problem.
func (a *applier) retireWith(ctx context.Context, owner *store.Object) error {
	if owner.Kind != KindKey && owner.Kind != KindPlan {
		return nil
	}
	bounding, ok := a.bounding[owner.Workspace]
	if !ok {
		bounding = map[string][]store.Object{}
		for _, kind := range []string{KindBudget, KindRateLimit} {
			err := a.s.each(ctx, owner.Workspace, kind, func(o store.Object) error {
				bounds, err := boundBy(&o)
				if err == nil && bounds != "" && o.Source != SourceFile {
					bounding[bounds] = append(bounding[bounds], o)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		a.bounding[owner.Workspace] = bounding
	}
	for _, o := range bounding[owner.ID] {
		if err := a.retireAlone(o); err != nil {
			return err
		}
	}
	return nil
}

// checkLimits holds what the API made to what the file leaves of its plans,
// models and providers, and the rules to their number.
func (a *applier) checkLimits(ctx context.Context) error {
	gone := map[objectRef]bool{}
	replanned := map[string]bool{} // workspaces in which a plan goes or is renamed
	for i := range a.retires {
		o := &a.retires[i].Object
		gone[objectRef{o.Workspace, o.Kind, o.ID}] = true
		replanned[o.Workspace] = replanned[o.Workspace] || o.Kind == KindPlan
	}
	for i := range a.edits {
		e := &a.edits[i]
		renamed := e.now != "" && e.now != e.Object.Name
		replanned[e.Object.Workspace] = replanned[e.Object.Workspace] || e.Object.Kind == KindPlan && renamed
	}
	for name, h := range a.homes {
		if h.workspace == nil {
			continue
		}
		if t := h.workspace.KeyTemplate; t != nil {
			if err := a.planOf(ctx, h, &Declared{Kind: KindWorkspace, Name: name}, t.Plan); err != nil {
				return err
			}
		}
		if err := a.checkMade(ctx, h, gone, replanned[h.id]); err != nil {
			return err
		}
	}
	return nil
}

// checkMade checks what the API made in one workspace.
func (a *applier) checkMade(ctx context.Context, h *home, gone map[objectRef]bool, replanned bool) error {
	made := func(kind string, check func(o *store.Object, d *Declared) error) error {
		return a.s.each(ctx, h.id, kind, func(o store.Object) error {
			if o.Source == SourceFile || gone[objectRef{o.Workspace, o.Kind, o.ID}] {
				return nil
			}
			return check(&o, &Declared{Kind: kind, Name: o.Name})
		})
	}
	if replanned {
		err := made(KindKey, func(o *store.Object, d *Declared) error {
			k, err := decodeKey(o)
			if err != nil {
				return err
			}
			return a.planOf(ctx, h, d, k.Plan)
		})
		if err != nil {
			return err
		}
	}
	err := made(KindBudget, func(o *store.Object, d *Declared) error {
		b, err := decodeBudget(o)
		if err == nil {
			a.narrowed(h, d, b.Model, b.Provider)
		}
		return err
	})
	if err != nil {
		return err
	}
	rules := h.rules
	err = made(KindRateLimit, func(o *store.Object, d *Declared) error {
		rules++
		r, err := decodeRule(o)
		if err == nil {
			a.narrowed(h, d, r.Model, "")
		}
		return err
	})
	if err == nil && rules > rule.MaxRules && h.lastRule != nil {
		a.fail(h.lastRule, "is one too many: the workspace would have %d rate limits, and may have %d", rules, rule.MaxRules)
	}
	return err
}
