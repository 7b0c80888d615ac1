// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admin"
)

type budgetCmd struct {
	List   budgetListCmd   `cmd:"" help:"List every budget with its use."`
	Create budgetCreateCmd `cmd:"" help:"Make a budget."`
	Update budgetUpdateCmd `cmd:"" help:"Change a budget: only what is given changes."`
	Delete budgetDeleteCmd `cmd:"" help:"Delete a budget. What it counted stays."`
	Raise  budgetRaiseCmd  `cmd:"" help:"Raise a budget for its current window."`
	Reset  budgetResetCmd  `cmd:"" help:"Set to zero what a budget's window has used."`
}

// amountFlags are an amount of one of the metrics.
type amountFlags struct {
	USD    *string `name:"usd" xor:"amount" placeholder:"USD" help:"Amount in US dollars: it counts spend."`
	Tokens *int64  `xor:"amount" placeholder:"N" help:"Amount in tokens."`
}

// budgetFlags are what can be said of a budget.
type budgetFlags struct {
	Scope   *string `placeholder:"SCOPE" help:"Whose use it bounds: org, team, project, user, key or plan."`
	Subject *string `xor:"subject" placeholder:"NAME" help:"Which one: a team's, project's, user's, key's or plan's name. Without: each separately."`
	amountFlags
	Period         *string `placeholder:"PERIOD" help:"day, week or month."`
	TimeZone       *string `placeholder:"ZONE" help:"Zone of the period; UTC without."`
	Window         *string `placeholder:"LENGTH" help:"In place of a period: 1h, 24h, 30d."`
	Model          *string `placeholder:"MODEL" help:"Count this model only; an empty text: all."`
	Provider       *string `placeholder:"NAME" help:"Count this provider only; an empty text: all."`
	Warn           []int   `placeholder:"PERCENT" help:"Warn when so much is used; repeatable."`
	Enforcement    *string `placeholder:"WORD" help:"hard holds the worst case of each request, guard refuses once it is used up, soft only warns."`
	OnShort        *string `placeholder:"WORD" help:"Of a hard one: refuse or shrink a request that asks for more output than is left."`
	OnMissingUsage *string `placeholder:"WORD" help:"Of a key or plan: charge or skip a request without reported usage."`
	CountCached    *bool   `negatable:"" help:"Count cache reads as tokens, the default; --no-count-cached leaves them out."`
	System         *bool   `negatable:"" help:"Only a system administrator may change it."`
}

func (f *budgetFlags) fields() admin.BudgetFields {
	b := admin.BudgetFields{
		Scope: given(f.Scope), Subject: given(f.Subject), LimitUSD: given(f.USD), Limit: given(f.Tokens),
		Period: given(f.Period), TimeZone: given(f.TimeZone), Window: given(f.Window), Model: given(f.Model), Provider: given(f.Provider),
		Enforcement: given(f.Enforcement), OnShort: given(f.OnShort), OnMissing: given(f.OnMissingUsage),
		CountCached: given(f.CountCached), System: given(f.System),
	}
	switch {
	case f.USD != nil:
		b.Metric = admin.Some("spend")
	case f.Tokens != nil:
		b.Metric = admin.Some("tokens")
	}
	if len(f.Warn) > 0 {
		b.WarnPercent = admin.Some(f.Warn)
	}
	return b
}

type budgetListCmd struct {
	page
	reach
}

func (c *budgetListCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.BudgetList(s.ctx, admin.BudgetListRequest{Cursor: c.Cursor, Limit: c.Limit})
		return show(a, answer, err, writeBudgets)
	})
}

type budgetCreateCmd struct {
	Name string `arg:"" help:"Name, one of its kind in the workspace."`
	budgetFlags
	CountFrom      *string `placeholder:"WORD" help:"window_start begins with what the window has seen."`
	IdempotencyKey string  `placeholder:"TEXT" help:"Sent again with the same text, nothing more is made."`
	reach
}

func (c *budgetCreateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name, body.CountFrom = admin.Some(c.Name), given(c.CountFrom)
		answer, err := a.BudgetCreate(s.ctx, admin.BudgetCreateRequest{IdempotencyKey: c.IdempotencyKey, Body: body})
		return show(a, answer, err, writeBudget)
	})
}

// budgetName is the argument of commands about one budget.
type budgetName struct {
	Budget string `arg:"" help:"Its id, or a name that no other budget has."`
	reach
}

type budgetUpdateCmd struct {
	budgetName
	Name *string `placeholder:"NAME" help:"New name."`
	budgetFlags
	Each   bool `xor:"subject" help:"Each subject separately."`
	NoWarn bool `help:"No warning thresholds any more."`
}

func (c *budgetUpdateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name = given(c.Name)
		if c.Each {
			body.Subject = admin.Null[string]()
		}
		if c.NoWarn {
			body.WarnPercent = admin.Null[[]int]()
		}
		answer, err := a.BudgetUpdate(s.ctx, admin.BudgetUpdateRequest{ID: c.Budget, Body: body})
		return show(a, answer, err, writeBudget)
	})
}

type budgetDeleteCmd struct{ budgetName }

func (c *budgetDeleteCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.BudgetDelete(s.ctx, admin.BudgetRequest{ID: c.Budget})
		return show(a, answer, err, writeBudget)
	})
}

// reasonFlags are those of entries that change what was used.
type reasonFlags struct {
	Reason         string `required:"" placeholder:"TEXT" help:"Why; kept with the entry."`
	IdempotencyKey string `placeholder:"TEXT" help:"Sent again with the same text, nothing more is booked."`
}

type budgetRaiseCmd struct {
	budgetName
	amountFlags
	Subject *string `placeholder:"NAME" help:"Whose, of a budget that each subject has for itself."`
	reasonFlags
}

func (c *budgetRaiseCmd) Run(s *session) error {
	if c.USD == nil && c.Tokens == nil {
		return misused("say by how much: --usd or --tokens")
	}
	return c.with(s, func(a *asked) error {
		answer, err := a.BudgetRaise(s.ctx, admin.BudgetRaiseRequest{ID: c.Budget, IdempotencyKey: c.IdempotencyKey, Body: admin.RaiseFields{
			AmountUSD: given(c.USD), Amount: given(c.Tokens), Subject: given(c.Subject), Reason: c.Reason,
		}})
		return show(a, answer, err, writeBudget)
	})
}

type budgetResetCmd struct {
	budgetName
	Subject *string `placeholder:"NAME" help:"Whose, of a budget that each subject has for itself."`
	reasonFlags
}

func (c *budgetResetCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.BudgetReset(s.ctx, admin.BudgetResetRequest{ID: c.Budget, IdempotencyKey: c.IdempotencyKey, Body: admin.ResetFields{
			Subject: given(c.Subject), Reason: c.Reason,
		}})
		return show(a, answer, err, writeBudget)
	})
}

func writeBudget(w io.Writer, b *admin.BudgetAnswer) error {
	return writeBudgets(w, &admin.BudgetListAnswer{Budgets: []admin.BudgetAnswer{*b}})
}

func writeBudgets(w io.Writer, answer *admin.BudgetListAnswer) error {
	t := &table{empty: "no budgets", columns: []column{
		{"name", left},
		{"of", left},
		{"on", left},
		{"metric", left},
		{"window", left},
		{"limit", point},
		{"raised", point},
		{"used", point},
		{"held", point},
		{"left", point},
		{"resets", left},
		{"does", left},
		{"id", left},
		{"from", left},
	}}
	for i := range answer.Budgets {
		b := &answer.Budgets[i]
		amount := func(tokens *int64, dollars string) string {
			switch {
			case b.Metric == "spend":
				return usd(dollars)
			case tokens == nil:
				return ""
			default:
				return count(*tokens)
			}
		}
		held := amount(b.Held, b.HeldUSD)
		if b.Held != nil && *b.Held == 0 {
			held = ""
		}
		t.add(b.Name, limitOf(b.Scope, first(b.SubjectName, b.Subject), b.Per, b.UseOf), first(b.Model, b.Provider), b.Metric,
			budgetWindow(b), amount(&b.Limit, b.LimitUSD), amount(b.Raised, b.RaisedUSD), amount(b.Used, b.UsedUSD), held,
			amount(b.Remaining, b.RemainUSD), instant(b.ResetsAt), budgetDoes(b), b.ID, first(b.Origin, b.Source))
	}
	return t.writeThen(w, answer.NextCursor)
}

// limitOf says whom a limit bounds.
func limitOf(scope, subject, per, use string) string {
	text := strings.TrimSpace(scope + " " + subject)
	switch {
	case use != "":
		return text + ", each; here " + use
	case per != "":
		return text + ", each"
	default:
		return text
	}
}

func budgetWindow(b *admin.BudgetAnswer) string {
	if b.Period == "" {
		return b.Window
	}
	if b.Zone == "UTC" {
		return b.Period
	}
	return b.Period + ", " + b.Zone
}

func budgetDoes(b *admin.BudgetAnswer) string {
	words := []string{b.Enforcement}
	for _, percent := range b.WarnPercent {
		words = append(words, "warns at "+strconv.FormatInt(percent, 10)+"%")
	}
	if b.System {
		words = append(words, "system")
	}
	return strings.Join(words, ", ")
}
