// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
)

// compileLimits tells what is wrong with a workspace's budgets and rules taken
// together: admissions compile all of them, so a set that does not compile would
// stop every request of the workspace.
func compileLimits(workspace string, objects []store.Object) error {
	var budgets []*budget.Budget
	var rules []*rule.Rule
	for i := range objects {
		switch o := &objects[i]; o.Kind {
		case KindBudget:
			b, err := decodeBudget(o)
			if err != nil {
				return err
			}
			budgets = append(budgets, b)
		case KindRateLimit:
			r, err := decodeRule(o)
			if err != nil {
				return err
			}
			rules = append(rules, r)
		}
	}
	_, err := limit.NewSet(workspace, nil, budgets, rules)
	return err
}

// compiles holds a new or changed budget or rule to the others of its workspace.
func (s *Service) compiles(ctx context.Context, c *scope, next *store.Object) error {
	all := []store.Object{*next}
	for _, kind := range []string{KindBudget, KindRateLimit} {
		err := s.each(ctx, c.object.ID, kind, func(o store.Object) error {
			if o.ID != next.ID {
				all = append(all, o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := compileLimits(c.object.ID, all); err != nil {
		return fault.New(fault.InvalidRequest, "%v", err)
	}
	return nil
}

// checkSet is compiles for what a file leaves of a workspace.
func (a *applier) checkSet(ctx context.Context, name string, h *home, changed map[objectRef]*store.Object, gone map[objectRef]bool) error {
	if h.workspace == nil {
		return nil
	}
	var all []store.Object
	for _, kind := range []string{KindBudget, KindRateLimit} {
		list, err := a.final(ctx, h, kind, changed, gone)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	if err := compileLimits(h.id, all); err != nil {
		a.fail(&Declared{Kind: KindWorkspace, Name: name}, "%v", err)
	}
	return nil
}
