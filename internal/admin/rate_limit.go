// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
)

// tagNote stands on every answer about a tag rule (SPEC RAT-5).
const tagNote = "Tag rules are attribution, not enforcement: the client decides whether to send a tag. " +
	"For a limit that must hold use a rule on a user, api_key, project, team or org."

// RateLimitList is one page of the workspace's rate rules with their live use.
func (s *Service) RateLimitList(ctx context.Context, a Actor, r RateLimitListRequest) (RateLimitListAnswer, error) {
	out := RateLimitListAnswer{RateLimits: []RateLimitAnswer{}}
	c, err := s.enter(ctx, a, OpRateLimitList)
	if err != nil {
		return out, err
	}
	list, next, err := s.page(ctx, c, KindRateLimit, r.Cursor, r.Limit)
	if err != nil {
		return out, err
	}
	out.NextCursor = next
	out.RateLimits, err = s.viewRules(ctx, c, list)
	return out, answer(err)
}

// RateLimitCreate makes a rate rule.
func (s *Service) RateLimitCreate(ctx context.Context, a Actor, r RateLimitCreateRequest) (RateLimitAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return RateLimitAnswer{}, err
	}
	made, err := s.create(ctx, a, creation{
		op: OpRateLimitCreate, kind: KindRateLimit, key: r.IdempotencyKey, node: n,
		build: func(c *scope, o *store.Object) error {
			if err := s.buildRule(ctx, c, o, n); err != nil {
				return err
			}
			return s.roomForRule(ctx, c)
		},
	})
	if err != nil {
		return RateLimitAnswer{}, err
	}
	return s.ruleAnswer(ctx, made)
}

// roomForRule refuses one rule too many (SPEC RAT-7).
func (s *Service) roomForRule(ctx context.Context, c *scope) error {
	n := 0
	err := s.each(ctx, c.object.ID, KindRateLimit, func(store.Object) error { n++; return nil })
	if err == nil && n >= rule.MaxRules {
		err = fault.New(fault.TooManyRules, "workspace %s has %d rate limits, and may have no more: delete one first", c.workspace.Name, n)
	}
	return err
}

// RateLimitUpdate changes what the body gives of a rate rule. Another window or
// model resets its counters, and so does being enabled again (SPEC RAT-4).
func (s *Service) RateLimitUpdate(ctx context.Context, a Actor, r RateLimitUpdateRequest) (RateLimitAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return RateLimitAnswer{}, err
	}
	made, err := s.update(ctx, a, OpRateLimitUpdate, KindRateLimit, r.ID, func(c *scope, o *store.Object) error {
		return s.buildRule(ctx, c, o, n)
	})
	if err != nil {
		return RateLimitAnswer{}, err
	}
	return s.ruleAnswer(ctx, made)
}

// RateLimitDelete retires a rate rule.
func (s *Service) RateLimitDelete(ctx context.Context, a Actor, r RateLimitRequest) (RateLimitAnswer, error) {
	made, err := s.remove(ctx, a, OpRateLimitDelete, KindRateLimit, r.ID, alone)
	if err != nil {
		return RateLimitAnswer{}, err
	}
	return s.ruleAnswer(ctx, made)
}

func decodeRule(o *store.Object) (*rule.Rule, error) {
	r, err := rule.Decode(o.Body)
	if err != nil {
		return nil, fmt.Errorf("read rate limit %s: %w", o.ID, err)
	}
	r.ID, r.Name, r.Epoch = o.ID, o.Name, o.Epoch
	return r, nil
}

// buildRule reads a new rule, or a change over an earlier version.
func (s *Service) buildRule(ctx context.Context, c *scope, o *store.Object, n *document.Node) error {
	previous := rule.New("", "")
	if o.Version > 0 {
		var err error
		if previous, err = decodeRule(o); err != nil {
			return err
		}
	}
	next := *previous
	if err := readRule(&next, n); err != nil {
		return answer(err)
	}
	if err := s.resolveRule(ctx, c, &next, previous); err != nil {
		return err
	}
	body, err := rule.Encode(&next)
	if err != nil {
		return err
	}
	if o.Version > 0 && next.Counts(previous) {
		o.Epoch++
	}
	o.Name, o.Body = next.Name, body
	return s.compiles(ctx, c, o)
}

// readRule reads what a request says of a rule over the values that it has.
func readRule(r *rule.Rule, n *document.Node) error {
	kind := n.Member("subject_kind")
	if kind != nil && r.SubjectKind != "" && kind.Text != string(r.SubjectKind) {
		if r.SubjectID != "" && n.Member("subject_id") == nil && kind.Text != string(rule.SubjectOrg) {
			return refuse("subject_id", "is required where the kind of subject changes: name one, or write null for each separately")
		}
		r.SubjectID = ""
	}
	_, err := document.Read(n, func(d *document.Reader) {
		d.String("name", &r.Name)
		r.Fields(d)
	})
	if err == nil && r.Name == "" {
		err = refuse("name", "is required")
	}
	return err
}

// resolveRule finds the key and the model that a rule names, as resolveBudget
// does.
func (s *Service) resolveRule(ctx context.Context, c *scope, r, previous *rule.Rule) error {
	var err error
	moved := r.SubjectID != previous.SubjectID || r.SubjectKind != previous.SubjectKind
	if r.SubjectKind == rule.SubjectKey && r.SubjectID != "" && moved {
		if r.SubjectID, err = s.subjectID(ctx, c, KindKey, r.SubjectID, "subject_id"); err != nil {
			return err
		}
	}
	if r.Model != "" && r.Model != previous.Model {
		r.Model, err = s.modelNamed(ctx, c, r.Model)
	}
	return err
}

func (s *Service) ruleAnswer(ctx context.Context, m made) (RateLimitAnswer, error) {
	if m.object.RetiredAt > 0 {
		r, err := decodeRule(&m.object)
		if err != nil {
			return RateLimitAnswer{}, answer(err)
		}
		return viewRule(&m.object, r, s.labels(ctx, m.c)), nil
	}
	list, err := s.viewRules(ctx, m.c, []store.Object{m.object})
	if err != nil {
		return RateLimitAnswer{}, answer(err)
	}
	list[0].Replayed = m.replayed
	return list[0], nil
}

// viewRules shows rules with their live use. One that is disabled counts
// nothing.
func (s *Service) viewRules(ctx context.Context, c *scope, objects []store.Object) ([]RateLimitAnswer, error) {
	list := make([]RateLimitAnswer, 0, len(objects))
	var checks []ledger.Check
	var of []int
	labels := s.labels(ctx, c)
	for i := range objects {
		r, err := decodeRule(&objects[i])
		if err != nil {
			return nil, err
		}
		list = append(list, viewRule(&objects[i], r, labels))
		if list[i].Per == "" && r.Enabled {
			checks, of = append(checks, limit.RuleCheck(c.object.ID, r, r.SubjectID)), append(of, i)
		}
	}
	readings, err := s.readChecks(ctx, c, checks)
	if err != nil {
		return nil, err
	}
	for i := range readings {
		remaining := readings[i].Remaining()
		out := &list[of[i]]
		out.Used, out.Remaining, out.ResetsAt = &readings[i].Used, &remaining, instant(readings[i].ResetsAt)
	}
	return list, nil
}

func viewRule(o *store.Object, r *rule.Rule, label func(kind, id string) string) RateLimitAnswer {
	out := RateLimitAnswer{
		ID: o.ID, Name: r.Name, SubjectKind: string(r.SubjectKind), SubjectID: r.SubjectID, Model: r.Model, Metric: r.Metric,
		WindowSeconds: r.WindowSeconds, Limit: r.Limit, Enabled: r.Enabled, CountCached: !r.Uncached,
		Source: o.Source, Origin: o.Origin, Version: o.Version, CreatedAt: instant(o.CreatedAt), UpdatedAt: instant(o.UpdatedAt),
	}
	if r.EstimateInput {
		out.Estimate = "input"
	}
	switch r.SubjectKind {
	case rule.SubjectTag:
		out.Note = tagNote
	case rule.SubjectKey:
		out.SubjectName = label(KindKey, r.SubjectID)
	default:
	}
	if r.SubjectKind != rule.SubjectOrg && r.SubjectID == "" {
		out.Per = perSubject
	}
	return out
}
