// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/window"
)

// RuleCheck is a rate rule as it bounds one subject: a key's id, a tag, "" for
// org, else the name of a user, project or team.
func RuleCheck(workspace string, r *rule.Rule, subject string) ledger.Check {
	e := ruleEntry(workspace, r)
	return e.of(subject)
}

// ruleEntry compiles a rule. Tokens take the whole estimate, or with
// `estimate: input` its input, and are charged what was used (RAT-1).
func ruleEntry(workspace string, r *rule.Rule) entry {
	const second = 1_000_000
	c := ledger.Check{
		Counter: ledger.Counter{Workspace: workspace, Limit: r.ID, Epoch: r.Epoch},
		Kind:    ledger.KindSliding, Mode: ledger.Take, Wants: ledger.Requests, Charges: ledger.MetricNone,
		Amount: r.Limit, Window: window.Spec{Length: r.WindowSeconds * second},
		Code: fault.RateLimited, Name: r.Name, Scope: string(r.SubjectKind), Origin: "rate rule",
	}
	if r.Metric == rule.Tokens {
		c.Wants, c.Charges = ledger.Tokens, ledger.Tokens
		if r.EstimateInput {
			c.Wants = ledger.Input
		}
		if r.Uncached {
			c.Charges = ledger.Uncached
		}
	}
	return entry{check: c, model: r.Model, length: r.WindowSeconds * second}
}

// rates is the second part of check 5, and of check 6 what is on a model.
func rates(s Subject) ([]ledger.Check, []Narrowed) {
	if s.Set == nil {
		return nil, nil
	}
	return gather(s.Set.rules, rulePlaces(s))
}

// rulePlaces are the subjects of a request whose rates rules may bound. Each tag
// counts for itself.
func rulePlaces(s Subject) []place {
	all := []place{{string(rule.SubjectKey), s.Key.ID, s.Key.ID}}
	for _, p := range []place{
		{string(rule.SubjectUser), s.User, s.User},
		{string(rule.SubjectProject), s.Key.Project, s.Key.Project},
		{string(rule.SubjectTeam), s.Key.Team, s.Key.Team},
	} {
		if p.declared != "" {
			all = append(all, p)
		}
	}
	all = append(all, place{scope: string(rule.SubjectOrg)})
	for _, tag := range s.Tags {
		all = append(all, place{string(rule.SubjectTag), tag, tag})
	}
	return all
}
