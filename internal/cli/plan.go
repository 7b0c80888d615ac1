// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/weirhq/weir/internal/admin"
)

type planCmd struct {
	List   planListCmd   `cmd:"" help:"List the plans by name."`
	Show   planShowCmd   `cmd:"" help:"Show one plan."`
	Create planCreateCmd `cmd:"" help:"Make a plan. Its budgets are made as budgets, with the scope plan."`
	Update planUpdateCmd `cmd:"" help:"Change a plan: only what is given changes."`
	Delete planDeleteCmd `cmd:"" help:"Delete a plan that no key has, with its budgets."`
}

// planFlags are what can be said of a plan.
type planFlags struct {
	Allow           []string `placeholder:"MODEL" help:"Model, alias or route that its keys may call, or prefix/*; repeatable. Without: all."`
	AllowNone       bool     `xor:"allow" help:"Its keys may call no model."`
	AllowAll        bool     `xor:"allow" help:"Its keys may call every model that they themselves allow."`
	MaxOutputTokens *int64   `placeholder:"N" help:"Most output tokens of a request; 0: no bound."`
}

func (f *planFlags) fields() admin.PlanFields {
	return admin.PlanFields{AllowedModels: allow(f.Allow, f.AllowNone, f.AllowAll), MaxOutputTokens: given(f.MaxOutputTokens)}
}

// allow is a list of allowed models as the flags give it.
func allow(list []string, none, all bool) admin.Option[[]string] {
	switch {
	case none:
		return admin.Some([]string{})
	case all:
		return admin.Null[[]string]()
	case len(list) > 0:
		return admin.Some(list)
	default:
		return admin.Option[[]string]{}
	}
}

type planListCmd struct {
	page
	reach
}

func (c *planListCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.PlanList(s.ctx, admin.PlanListRequest{Cursor: c.Cursor, Limit: c.Limit})
		return show(a, answer, err, writePlans)
	})
}

// planName is the argument of commands about one plan.
type planName struct {
	Plan string `arg:"" help:"Its name or id."`
	reach
}

type planShowCmd struct{ planName }

func (c *planShowCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.PlanShow(s.ctx, admin.PlanRequest{ID: c.Plan})
		return show(a, answer, err, writePlan)
	})
}

type planCreateCmd struct {
	Name string `arg:"" help:"Name, one of its kind in the workspace."`
	planFlags
	IdempotencyKey string `placeholder:"TEXT" help:"Sent again with the same text, nothing more is made."`
	reach
}

func (c *planCreateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name = admin.Some(c.Name)
		answer, err := a.PlanCreate(s.ctx, admin.PlanCreateRequest{IdempotencyKey: c.IdempotencyKey, Body: body})
		return show(a, answer, err, writePlan)
	})
}

type planUpdateCmd struct {
	planName
	Name *string `placeholder:"NAME" help:"New name, of a plan that no key has."`
	planFlags
}

func (c *planUpdateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name = given(c.Name)
		answer, err := a.PlanUpdate(s.ctx, admin.PlanUpdateRequest{ID: c.Plan, Body: body})
		return show(a, answer, err, writePlan)
	})
}

type planDeleteCmd struct{ planName }

func (c *planDeleteCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.PlanDelete(s.ctx, admin.PlanRequest{ID: c.Plan})
		return show(a, answer, err, writePlan)
	})
}

func writePlan(w io.Writer, p *admin.PlanAnswer) error {
	return writePlans(w, &admin.PlanListAnswer{Plans: []admin.PlanAnswer{*p}})
}

func writePlans(w io.Writer, answer *admin.PlanListAnswer) error {
	t := &table{empty: "no plans", columns: []column{
		{"name", left}, {"status", left}, {"models", left}, {"max output", right}, {"id", left}, {"from", left},
	}}
	for i := range answer.Plans {
		p := &answer.Plans[i]
		t.add(p.Name, p.Status, allowed(p.AllowedModels), counted(p.MaxOutputTokens), p.ID, first(p.Origin, p.Source))
	}
	return t.writeThen(w, answer.NextCursor)
}
