// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// Set is what a workspace declares besides its keys' own limits: plans, budgets
// and rate rules, found by whom they bound. So an admission costs what applies to
// it, whatever else the workspace has. It is immutable.
type Set struct {
	plans   map[string]*tenant.Plan
	budgets map[whom][]entry
	rules   map[whom][]entry
	shrinks map[string]bool // by the id of a budget that says so itself
	tags    bool            // a rule is on a tag
}

// whom is a scope (a rule's subject kind) and one of its subjects; "" is each.
type whom struct{ scope, subject string }

// entry is one limit, compiled but for its subject.
type entry struct {
	check           ledger.Check
	model, provider string
	length          int64 // of its window, nominal: for the order among equals
}

// NewSet compiles budgets and enabled rules of one workspace. The error names a
// limit that can't be enforced: with it nothing of the workspace may run.
func NewSet(workspace string, plans []*tenant.Plan, budgets []*budget.Budget, rules []*rule.Rule) (*Set, error) {
	s := &Set{
		plans: make(map[string]*tenant.Plan, len(plans)), budgets: map[whom][]entry{}, rules: map[whom][]entry{},
		shrinks: map[string]bool{},
	}
	for _, p := range plans {
		s.plans[p.Name] = p
	}
	for _, b := range budgets {
		e, err := budgetEntry(workspace, b)
		if err != nil {
			return nil, fmt.Errorf("budget %q: %w", b.Name, err)
		}
		w := whom{string(b.Scope), b.Subject}
		s.budgets[w] = append(s.budgets[w], e)
		if b.Shrink != nil {
			s.shrinks[b.ID] = *b.Shrink
		}
	}
	for _, r := range rules {
		if !r.Enabled {
			continue
		}
		w := whom{string(r.SubjectKind), r.SubjectID}
		s.rules[w] = append(s.rules[w], ruleEntry(workspace, r))
		s.tags = s.tags || r.SubjectKind == rule.SubjectTag
	}
	for _, byWhom := range []map[whom][]entry{s.budgets, s.rules} {
		for _, list := range byWhom {
			slices.SortFunc(list, entry.compare)
		}
	}
	if n := most(s.budgets, 1) + most(s.rules, MaxTags); n > maxApply {
		return nil, fmt.Errorf("%d budgets and rate rules could apply to one request, more than %d: an admission would not take them all", n, maxApply)
	}
	return s, nil
}

const (
	// MaxTags bounds the tags of a request (RAT-7).
	MaxTags = 10
	// maxApply bounds the budgets and rules of one request: with caps, runtime
	// limits, funds and policies they are at most ledger.MaxChecks.
	maxApply = ledger.MaxChecks - 16
)

// most is how many limits can apply to one request: in each scope those for each
// subject and those of the subject that has most; of tags so many.
func most(from map[whom][]entry, tags int) int {
	own, each := map[string]int{}, 0
	for w, list := range from {
		if w.subject == "" {
			each += len(list)
		} else {
			own[w.scope] = max(own[w.scope], len(list))
		}
	}
	for scope, n := range own {
		if scope == string(rule.SubjectTag) {
			n = min(n*tags, total(from, scope))
		}
		each += n
	}
	return each
}

func total(from map[whom][]entry, scope string) (n int) {
	for w, list := range from {
		if w.scope == scope {
			n += len(list)
		}
	}
	return n
}

// compare is the order among limits of one scope: the shortest window first,
// then by name (ORD-2).
func (e entry) compare(f entry) int {
	return cmp.Or(cmp.Compare(e.length, f.length), cmp.Compare(e.check.Name, f.check.Name), cmp.Compare(e.check.Counter.Limit, f.check.Counter.Limit))
}

// Plan finds a plan by its name; nil: there is none.
func (s *Set) Plan(name string) *tenant.Plan {
	if s == nil || name == "" {
		return nil
	}
	return s.plans[name]
}

// Shrinks tells whether the hard budget of that id lowers a request's output
// bound to what fits, instead of refusing it (BUD-10).
func (s *Set) Shrinks(limitID string, w *tenant.Workspace) bool {
	if s != nil {
		if says, ok := s.shrinks[limitID]; ok {
			return says
		}
	}
	return w.OnShort == tenant.Shrink
}

// MayShrink tells whether any budget does.
func (s *Set) MayShrink(w *tenant.Workspace) bool {
	return s != nil && (len(s.budgets) > 0 && w.OnShort == tenant.Shrink || len(s.shrinks) > 0)
}

// CountsTags tells whether a rule is on a tag.
func (s *Set) CountsTags() bool { return s != nil && s.tags }

// find lists the limits of one subject: its own and those for each separately.
// each and own are sorted, and so is what comes out.
func find(from map[whom][]entry, scope, subject string) []entry {
	each, own := from[whom{scope, ""}], []entry(nil)
	if subject != "" {
		own = from[whom{scope, subject}]
	}
	if len(own) == 0 {
		return each
	}
	all := append(slices.Clone(each), own...)
	slices.SortStableFunc(all, entry.compare)
	return all
}

// of is the entry's check for one subject.
func (e *entry) of(subject string) ledger.Check {
	c := e.check
	c.Counter.Subject = subject
	return c
}
