// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"strconv"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
)

// ReadOp asks for the state of every limit that applies to a key's requests
// (EFF-1), those of the user and tags that one would name included. Limits on a
// model or provider follow the others.
func ReadOp(s *Snapshot, k *tenant.Key, who Attribution) *ledger.Op {
	compiled := s.checks(k, who)
	checks := append([]ledger.Check{}, compiled.all...)
	for i := range compiled.Narrowed {
		checks = append(checks, compiled.Narrowed[i].Check)
	}
	return &ledger.Op{Verb: ledger.Read, Workspace: s.Workspace.ID, Checks: checks}
}

// KeyView is a key with every limit that applies to it, as `GET /v1/key`, the
// API and the command line show it.
type KeyView struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Workspace string `json:"workspace"`
	Status    string `json:"status"` // active, disabled or expired
	ExpiresAt string `json:"expires_at,omitempty"`
	Team      string `json:"team,omitempty"`
	Project   string `json:"project,omitempty"`
	User      string `json:"user,omitempty"`
	Plan      string `json:"plan,omitempty"`
	// HoldOutputTokens: budgets and token rules hold so many output tokens of a
	// request at most; a longer answer is charged all the same (BUD-10).
	HoldOutputTokens int64       `json:"hold_output_tokens,omitempty"`
	Limits           []LimitView `json:"limits"`
}

// LimitView is one limit's state. Money is a decimal string of US dollars, all
// else a number in decimal digits; empty where it has no meaning.
type LimitView struct {
	ID        string `json:"limit_id"`
	Name      string `json:"name"`
	Scope     string `json:"scope"`
	Metric    string `json:"metric"`
	Window    string `json:"window,omitempty"`
	Admission string `json:"admission"`
	Origin    string `json:"origin"`
	// Model or Provider is what the limit is narrowed to.
	Model     string `json:"model,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Amount    string `json:"amount,omitempty"`
	Used      string `json:"used"`
	Held      string `json:"held"`
	Remaining string `json:"remaining,omitempty"`
	ResetsAt  string `json:"resets_at,omitempty"`
}

// Describe renders what a ReadOp of the same key and attribution has read.
func Describe(s *Snapshot, k *tenant.Key, who Attribution, readings []ledger.Reading) KeyView {
	v := KeyView{
		ID: k.ID, Name: k.Name, Workspace: s.Workspace.Name, Status: "active", ExpiresAt: instant(k.ExpiresAt, s.Zone),
		Team: k.Team, Project: k.Project, User: who.user(k), Plan: k.Plan, HoldOutputTokens: s.Workspace.HoldOutputTokens,
		Limits: []LimitView{},
	}
	compiled := s.checks(k, who)
	if k.Disabled {
		v.Status = "disabled"
	}
	for i := range readings {
		switch r := &readings[i]; {
		case r.Check.Kind != ledger.KindPolicy:
			view := ViewLimit(r)
			if n := i - len(compiled.all); n >= 0 && n < len(compiled.Narrowed) {
				view.Model, view.Provider = compiled.Narrowed[n].Model, compiled.Narrowed[n].Provider
			}
			v.Limits = append(v.Limits, view)
		case !r.Pass && !k.Disabled:
			v.Status = "expired"
		}
	}
	return v
}

// ViewLimit renders one reading.
func ViewLimit(r *ledger.Reading) LimitView {
	c := r.Check
	d := details(c, r)
	v := LimitView{
		ID: d.LimitID, Name: c.Name, Scope: c.Scope, Metric: d.Metric, Window: d.Window, Admission: admission(c.Mode),
		Origin: c.Origin, Amount: d.Amount, Used: d.Used, Held: d.Held, ResetsAt: d.ResetsAt,
	}
	switch {
	case c.Kind == ledger.KindFunds:
		// Used is what exceeds the money paid in; an open workspace has no end.
		v.Used, v.Amount, v.ResetsAt = money.Nanos(max(0, r.Used)).String(), "", ""
		if c.Mode != ledger.Track {
			v.Remaining = available(r).String()
		}
	case c.Mode == ledger.Track && c.Amount == 0:
		v.Amount, v.ResetsAt = "", ""
	case c.Wants == ledger.Spend:
		v.Remaining = money.Nanos(r.Remaining()).String()
	default:
		v.Remaining = figureOf(r.Remaining())
	}
	return v
}

func admission(m ledger.Mode) string {
	switch m {
	case ledger.Track:
		return "track"
	case ledger.Observe:
		return "observe"
	case ledger.Reserve:
		return "reserve"
	case ledger.Take:
		return "take"
	default:
		return ""
	}
}

func figureOf(v int64) string { return strconv.FormatInt(v, 10) }
