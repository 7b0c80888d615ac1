// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

type objectKey struct{ workspace, kind, id string }

// part is one object, decoded. Shared ones are decoded once for all workspaces.
type part struct {
	workspace, kind, name string
	version               int64

	settings   *tenant.Workspace
	provider   *route.Provider
	credential string // the provider's; kept apart from its object
	model      *route.Model
	plan       *tenant.Plan
	budget     *budget.Budget
	rule       *rule.Rule
	imported   *price.Import
	broken     error // why it could not be decoded
}

// decode reads an object. What does not decode is broken, and keeps its name; an
// error means that the store did not answer.
func (d *Directory) decode(ctx context.Context, o *store.Object) (*part, error) {
	p := &part{workspace: o.Workspace, kind: o.Kind, name: o.Name, version: o.Version}
	switch o.Kind {
	case KindWorkspace:
		if p.settings, p.broken = tenant.DecodeWorkspace(o.Body); p.broken == nil {
			p.settings.ID, p.settings.Name = o.ID, o.Name
			p.settings.ZoneEpoch = max(p.settings.ZoneEpoch, o.Epoch)
		}
	case KindProvider:
		if p.provider, p.broken = route.DecodeProvider(o.Body); p.broken == nil {
			p.provider.ID, p.provider.Name = o.ID, o.Name
		}
		var err error
		if p.credential, err = d.store.Credential(ctx, o.Workspace, o.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("read the credential of provider %s: %w", o.Name, err)
		}
	case tenant.KindPlan:
		if p.plan, p.broken = tenant.DecodePlan(o.Body); p.broken == nil {
			p.plan.ID, p.plan.Name = o.ID, o.Name
		}
	case budget.KindBudget:
		if p.budget, p.broken = budget.Decode(o.Body); p.broken == nil {
			p.budget.ID, p.budget.Epoch = o.ID, o.Epoch
			p.budget.Name = budget.SplitObjectName(p.budget.Owner, o.Name)
		}
	case rule.KindRule:
		if p.rule, p.broken = rule.Decode(o.Body); p.broken == nil {
			p.rule.ID, p.rule.Name, p.rule.Epoch = o.ID, o.Name, o.Epoch
		}
	case price.KindImport:
		p.imported, p.broken = price.DecodeImport(o.Body)
	case KindModel:
		if p.model, p.broken = route.DecodeModel(o.Body); p.broken == nil {
			p.model.ID, p.model.Name = o.ID, o.Name
		}
	}
	return p, nil
}

// build makes the snapshot of an entry's parts.
//
// A workspace whose own object can't be read fails: nobody knows its limits. A
// model that can't be read, or whose provider is not there, is left out alone and
// named among the problems; it keeps its name, so that a shared model of that
// name, with another provider and price, does not step in unasked.
func (d *Directory) build(e *entry, workspace string) error {
	own := e.parts[objectKey{workspace, KindWorkspace, workspace}]
	if own == nil {
		e.snapshot = nil
		return nil
	}
	if own.broken != nil {
		return fmt.Errorf("workspace: %w", own.broken)
	}
	zone, err := window.Zone(own.settings.Zone)
	if err != nil {
		return err
	}
	limits, err := limitsOf(e.parts, own.settings)
	if err != nil {
		return err
	}
	providers, models, imports := map[string]*part{}, map[string]*part{}, map[string]*price.Import{}
	for _, p := range inOrder(e.parts, own.settings) {
		switch p.kind {
		case KindProvider:
			providers[p.name] = p
		case KindModel:
			models[p.name] = p
		case price.KindImport:
			if p.broken == nil {
				imports[p.imported.Provider] = p.imported
			}
		}
	}
	e.problems, e.until = nil, 0
	at := d.clock.Now()
	targets := make([]*admit.Target, 0, len(models))
	for _, m := range sorted(models) {
		t, err := d.target(m, providers)
		if err != nil {
			e.problems = append(e.problems, err.Error())
		}
		if t.Provider != nil {
			var until int64
			t.Price, until = d.priceOf(t, imports, at)
			e.until = price.Sooner(e.until, until)
		}
		targets = append(targets, t)
	}
	e.snapshot = admit.NewSnapshot(e.generation, own.settings, zone, limits, targets)
	return nil
}

// limitsOf compiles the workspace's plans, budgets and rules. One that can't be
// read fails the workspace: nobody knows what it would refuse.
func limitsOf(parts map[objectKey]*part, w *tenant.Workspace) (*limit.Set, error) {
	var plans []*tenant.Plan
	var budgets []*budget.Budget
	var rules []*rule.Rule
	for _, p := range parts {
		switch {
		case p.kind != tenant.KindPlan && p.kind != budget.KindBudget && p.kind != rule.KindRule:
		case p.broken != nil:
			return nil, fmt.Errorf("%s %q: %w", p.kind, p.name, p.broken)
		case p.plan != nil:
			plans = append(plans, p.plan)
		case p.budget != nil:
			budgets = append(budgets, p.budget)
		case p.rule != nil:
			rules = append(rules, p.rule)
		}
	}
	return limit.NewSet(w.ID, plans, budgets, rules)
}

// target binds a model to its provider. With an error it has none.
func (d *Directory) target(m *part, providers map[string]*part) (*admit.Target, error) {
	t := &admit.Target{Model: m.model, Shared: m.workspace == ""}
	if m.broken != nil {
		t.Model = &route.Model{Name: m.name}
		return t, fmt.Errorf("model %s: %w", m.name, m.broken)
	}
	p := providers[m.model.Provider]
	switch {
	case p == nil:
		return t, fmt.Errorf("model %s: there is no provider %s", m.name, m.model.Provider)
	case p.broken != nil:
		return t, fmt.Errorf("model %s: provider %s: %w", m.name, m.model.Provider, p.broken)
	}
	t.Provider, t.Credential = p.provider, p.credential
	return t, nil
}

// inOrder puts shared parts before the workspace's own, which take the place of
// those of the same name (SPEC section 14).
func inOrder(parts map[objectKey]*part, w *tenant.Workspace) []*part {
	list := make([]*part, 0, len(parts))
	for _, p := range parts {
		if p.workspace != "" || w.Inherit {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.name, b.name))
	})
	return list
}

func sorted(parts map[string]*part) []*part {
	list := make([]*part, 0, len(parts))
	for _, p := range parts {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *part) int { return cmp.Compare(a.name, b.name) })
	return list
}

// priceOf is the row of a model in force at an instant, nil for none, and the
// instant from which another may be, 0 for never: the model's own over what is
// imported over the catalogue's (PRC-1, PRC-2, BR-031).
func (d *Directory) priceOf(t *admit.Target, imports map[string]*price.Import, at int64) (row *price.Row, until int64) {
	if t.Model.Free {
		row = &price.Row{Model: t.Model.Name, Source: price.SourceOverride, Free: true}
		return row.Seal(), 0
	}
	name := d.prices.ProviderOf(t.Provider.BaseURL, t.Provider.Name)
	return price.Sources{
		Override: t.Model.Prices, Imported: imports[name], BuiltIn: d.prices, Provider: name, Model: t.Model.Upstream,
	}.At(at)
}
