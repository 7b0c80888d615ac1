// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// limits reads what a workspace declares of plans, keys, budgets and rate rules.
func (p *parser) limits(r *document.Reader, w *Workspace) {
	p.plans(r, w)
	p.keys(r, w)
	r.Objects("budgets", maxBudgets, func(_ int, r *document.Reader) {
		v := Budget{Line: r.Line(), Value: &budget.Budget{}}
		p.identity(r, budget.KindBudget, space{scope: w.Name}, &v.Value.Name, &v.Was)
		v.Value.Fields(r)
		p.remember(r, "")
		w.Budgets = append(w.Budgets, v)
	})
	p.rules(r, w)
}

func (p *parser) plans(r *document.Reader, w *Workspace) {
	r.Objects("plans", maxPlans, func(_ int, r *document.Reader) {
		v := Plan{Line: r.Line(), Value: &tenant.Plan{}}
		p.identity(r, tenant.KindPlan, space{scope: w.Name}, &v.Value.Name, &v.Was)
		v.Value.Fields(r)
		v.Budgets = p.owned(r, w.Name, budget.ScopePlan, v.Value.Name)
		w.Plans = append(w.Plans, v)
	})
}

// owned reads the budgets that stand with a key or plan. They bound that one, so
// their scope and subject are given; a scope may still be written.
func (p *parser) owned(r *document.Reader, workspace string, scope budget.Scope, name string) []Budget {
	var all []Budget
	owner := r.Path()
	r.Objects("budgets", budget.MaxOwned, func(_ int, r *document.Reader) {
		// The name of the owner is checked where it stands: here any would do.
		v := Budget{Line: r.Line(), Value: &budget.Budget{Scope: scope, Subject: "owner"}}
		p.identity(r, budget.KindBudget, space{scope: workspace, owner: owner}, &v.Value.Name, &v.Was)
		r.Refuse("is the "+string(scope)+" that it stands with: leave it out", "subject", "subject_id")
		if n := r.Node("scope"); n != nil && n.Text == string(budget.ScopeOrg) {
			v.Value.Subject = "" // the scope alone is wrong
		}
		v.Value.Fields(r)
		if v.Value.Scope != scope {
			r.Fail("scope", "must be %s, or be left out: what bounds others stands under budgets of the workspace", scope)
		}
		v.Value.Scope, v.Value.Subject = scope, name
		p.remember(r, "")
		all = append(all, v)
	})
	return all
}

func (p *parser) rules(r *document.Reader, w *Workspace) {
	r.Objects("rate_limits", maxRules, func(i int, r *document.Reader) {
		v := Rule{Line: r.Line(), Value: rule.New("", "")}
		p.identity(r, rule.KindRule, space{scope: w.Name}, &v.Value.Name, &v.Was)
		v.Value.Fields(r)
		if i == rule.MaxRules {
			r.Fail("", "too many rules: a workspace has at most %d, remove this one and those below", rule.MaxRules)
		}
		w.Rules = append(w.Rules, v)
	})
}
