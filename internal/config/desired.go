// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// Declared is one object as the file wants it, for comparing with a store. The
// identity of a declared thing is (workspace, kind, name), for a budget of a key
// or plan with its owner.
type Declared struct {
	// Workspace is the owner's name; empty is shared by all. A workspace owns
	// itself.
	Workspace, Kind, Name string
	Was                   string // the name before, empty: none
	// OwnerKind and OwnerName are the key or plan that a budget was declared
	// with; empty: the workspace. Name stays the budget's own.
	OwnerKind, OwnerName string
	// Body is the kind's JSON form, the same for equal ones. The subject of a
	// budget or rule stands in it as the file writes it: a key or plan by name.
	Body []byte
	// Explicit are the paths of a key that the file gives (SPEC KEY-4).
	Explicit map[string]bool
	// Credential is a provider's; "" for one with auth: none, nil for the other
	// kinds.
	Credential *string
	SecretHash *[32]byte // a key's
	Origin     string    // FILE:LINE
}

// scope is what is declared for one owner of models.
type scope struct {
	name      string
	providers []Provider
	models    []Model
}

func (f *File) scopes() []scope {
	all := []scope{{"", f.Providers, f.Models}}
	for _, w := range f.Workspaces {
		all = append(all, scope{w.Name, w.Providers, w.Models})
	}
	return all
}

// list gathers declared objects up to the first that cannot be written.
type list struct {
	file string
	all  []Declared
	err  error
}

func (l *list) add(d Declared, line int, body []byte, err error) {
	switch {
	case l.err != nil:
	case err != nil:
		l.err = fmt.Errorf("%s:%d: %w", l.file, line, err)
	default:
		d.Body, d.Origin = body, fmt.Sprintf("%s:%d", l.file, line)
		l.all = append(l.all, d)
	}
}

// Desired lists every declared object: workspaces, providers and models, plans,
// keys, budgets, rate rules, so that each stands after what it needs.
func (f *File) Desired() ([]Declared, error) {
	l := &list{file: f.Name}
	for _, w := range f.Workspaces {
		if !w.Declared {
			continue
		}
		body, err := tenant.EncodeWorkspace(w.Settings)
		l.add(Declared{Workspace: w.Name, Kind: tenant.KindWorkspace, Name: w.Name, Was: w.Was}, w.Line, body, err)
	}
	for _, s := range f.scopes() {
		s.desired(l)
	}
	for _, w := range f.Workspaces {
		for _, v := range w.Plans {
			body, err := tenant.EncodePlan(v.Value)
			l.add(Declared{Workspace: w.Name, Kind: tenant.KindPlan, Name: v.Value.Name, Was: v.Was}, v.Line, body, err)
		}
	}
	for _, w := range f.Workspaces {
		for _, k := range w.Keys {
			body, err := tenant.EncodeKey(k.Value)
			l.add(Declared{
				Workspace: w.Name, Kind: tenant.KindKey, Name: k.Value.Name, Was: k.Was,
				Explicit: k.Explicit, SecretHash: &k.SecretHash,
			}, k.Line, body, err)
		}
	}
	for _, w := range f.Workspaces {
		w.desiredBudgets(l)
	}
	for _, w := range f.Workspaces {
		for _, v := range w.Rules {
			body, err := rule.Encode(v.Value)
			l.add(Declared{Workspace: w.Name, Kind: rule.KindRule, Name: v.Value.Name, Was: v.Was}, v.Line, body, err)
		}
	}
	return l.all, l.err
}

func (s *scope) desired(l *list) {
	for _, v := range s.providers {
		body, err := route.EncodeProvider(v.Value)
		l.add(Declared{Workspace: s.name, Kind: route.KindProvider, Name: v.Value.Name, Was: v.Was, Credential: &v.Credential}, v.Line, body, err)
	}
	for _, m := range s.models {
		body, err := route.EncodeModel(m.Value)
		l.add(Declared{Workspace: s.name, Kind: route.KindModel, Name: m.Value.Name, Was: m.Was}, m.Line, body, err)
	}
}

// desiredBudgets lists the budgets of a workspace's keys and plans, then its own.
func (w *Workspace) desiredBudgets(l *list) {
	add := func(budgets []Budget, ownerKind, ownerName string) {
		for _, v := range budgets {
			body, err := budget.Encode(v.Value)
			l.add(Declared{
				Workspace: w.Name, Kind: budget.KindBudget, Name: v.Value.Name, Was: v.Was, OwnerKind: ownerKind, OwnerName: ownerName,
			}, v.Line, body, err)
		}
	}
	for _, k := range w.Keys {
		add(k.Budgets, tenant.KindKey, k.Value.Name)
	}
	for _, v := range w.Plans {
		add(v.Budgets, tenant.KindPlan, v.Value.Name)
	}
	add(w.Budgets, "", "")
}
