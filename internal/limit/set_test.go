// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// someone is a key of plan p, team t, project j and user u.
func someone(set *limit.Set) limit.Subject {
	s := newSubject()
	s.Key.Plan, s.Key.Team, s.Key.Project, s.User, s.Set = "p", "t", "j", "u", set
	return s
}

func budgetOf(scope budget.Scope, subject, name string) *budget.Budget {
	return &budget.Budget{
		ID: "bud_" + name, Name: name, Scope: scope, Subject: subject, Metric: budget.Spend, Limit: 7, Period: budget.Day,
		Enforcement: budget.Hard,
	}
}

func newSet(t *testing.T, budgets []*budget.Budget, rules []*rule.Rule) *limit.Set {
	t.Helper()
	set, err := limit.NewSet("ws_a", []*tenant.Plan{{ID: "pla_1", Name: "p"}}, budgets, rules)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func names(list []ledger.Check, kind ledger.Kind) []string {
	var out []string
	for i := range list {
		if list[i].Kind == kind {
			out = append(out, list[i].Name+"="+list[i].Counter.Subject)
		}
	}
	return out
}

func TestBudgetsApplyByScopeInThePublishedOrder(t *testing.T) { // ORD-1, ORD-2, BUD-1, BR-001, BR-006
	hour := budgetOf(budget.ScopeTeam, "", "an hour")
	hour.Period, hour.WindowMicros = "", 3_600_000_000
	set := newSet(t, []*budget.Budget{
		budgetOf(budget.ScopeOrg, "", "org"),
		budgetOf(budget.ScopeTeam, "t", "team b"), budgetOf(budget.ScopeTeam, "", "team a"), hour, budgetOf(budget.ScopeTeam, "other", "x1"),
		budgetOf(budget.ScopeProject, "", "project"), budgetOf(budget.ScopeProject, "other", "x2"),
		budgetOf(budget.ScopeUser, "", "user"), budgetOf(budget.ScopeUser, "other", "x3"),
		budgetOf(budget.ScopePlan, "pla_1", "plan"), budgetOf(budget.ScopePlan, "pla_2", "x4"),
		budgetOf(budget.ScopeKey, "", "key"), budgetOf(budget.ScopeKey, "key_2", "x5"),
	}, nil)
	got := names(limit.Compile(someone(set)).After, ledger.KindFixed)
	want := []string{"key=key_1", "plan=key_1", "user=u", "project=j", "an hour=t", "team a=t", "team b=t", "org="}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	lonely := newSubject()
	lonely.Set = set
	if got, want := names(limit.Compile(lonely).After, ledger.KindFixed), []string{"key=key_1", "org="}; !slices.Equal(got, want) {
		t.Errorf("a key without subjects has %v, want %v", got, want)
	}
}

func TestRulesApplyBySubjectAndTag(t *testing.T) { // RAT-5, RAT-7, ORD-2
	made := func(kind rule.Subject, subject, name string) *rule.Rule {
		return &rule.Rule{ID: "rat_" + name, Name: name, SubjectKind: kind, SubjectID: subject, Metric: rule.Requests, WindowSeconds: 60, Limit: 3, Enabled: true}
	}
	off := made(rule.SubjectOrg, "", "off")
	off.Enabled = false
	set := newSet(t, nil, []*rule.Rule{
		made(rule.SubjectTag, "batch", "tag"), made(rule.SubjectTag, "other", "x1"), made(rule.SubjectOrg, "", "org"), off,
		made(rule.SubjectTeam, "", "team"), made(rule.SubjectProject, "j", "project"), made(rule.SubjectUser, "", "user"),
		made(rule.SubjectKey, "key_1", "key"), made(rule.SubjectKey, "key_2", "x2"),
	})
	s := someone(set)
	s.Tags = []string{"batch", "unknown"}
	got := names(limit.Compile(s).After, ledger.KindSliding)
	want := []string{"key=key_1", "user=u", "project=j", "team=t", "org=", "tag=batch"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if !set.CountsTags() || newSet(t, nil, nil).CountsTags() {
		t.Error("whether a rule is on a tag is not known")
	}
}

func TestNarrowedLimitsAreThoseOfCandidates(t *testing.T) { // RAT-2, BUD-1, BR-004, BR-008
	onModel, onProvider := budgetOf(budget.ScopeUser, "", "on a model"), budgetOf(budget.ScopeOrg, "", "on a provider")
	onModel.Model, onProvider.Provider = "big", "p"
	c := limit.Compile(someone(newSet(t, []*budget.Budget{onProvider, onModel}, []*rule.Rule{
		{ID: "rat_1", Name: "rule", SubjectKind: rule.SubjectOrg, Model: "big", Metric: rule.Tokens, WindowSeconds: 1, Limit: 3, Enabled: true},
	})))
	if list := append(names(c.After, ledger.KindFixed), names(c.After, ledger.KindSliding)...); len(list) > 0 {
		t.Errorf("checked for every model: %v", list)
	}
	var got []string
	for i := range c.Narrowed {
		n := &c.Narrowed[i]
		got = append(got, fmt.Sprintf("%s:%s:%s:%s", n.Check.Name, n.Model, n.Provider, n.Check.Code))
	}
	want := []string{"on a model:big::budget_exceeded", "on a provider::p:budget_exceeded", "rule:big::rate_limited"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if c.SpendLimited || c.Reserving {
		t.Error("a limit of one model bounds every model")
	}
}

func TestWhatABudgetMeansForTheRestOfAnAdmission(t *testing.T) { // BUD-1, PRC-3, EST-2, BR-033
	for _, c := range []struct {
		metric, enforcement string
		mode                ledger.Mode
		limited, reserving  bool
	}{
		{budget.Spend, budget.Hard, ledger.Reserve, true, true},
		{budget.Spend, budget.Guard, ledger.Observe, true, false},
		{budget.Spend, budget.Soft, ledger.Track, false, false},
		{budget.Tokens, budget.Hard, ledger.Reserve, false, true},
		{budget.Tokens, budget.Guard, ledger.Observe, false, false},
		{budget.Tokens, budget.Soft, ledger.Track, false, false},
		{budget.Spend, "", ledger.Observe, true, false},
	} {
		t.Run(c.metric+" "+c.enforcement, func(t *testing.T) {
			b := budgetOf(budget.ScopeOrg, "", "b")
			b.Metric, b.Enforcement = c.metric, c.enforcement
			got := limit.Compile(someone(newSet(t, []*budget.Budget{b}, nil)))
			check := got.After[len(got.After)-1]
			if check.Mode != c.mode || got.SpendLimited != c.limited || got.Reserving != c.reserving {
				t.Errorf("mode %d, spend limited %v, reserving %v", check.Mode, got.SpendLimited, got.Reserving)
			}
		})
	}
}

func TestWhatARuleTakesAndIsCharged(t *testing.T) { // RAT-1, USE-3, EST-2
	for _, c := range []struct {
		name           string
		rule           rule.Rule
		wants, charges ledger.Metric
		reserving      bool
	}{
		{"requests", rule.Rule{Metric: rule.Requests}, ledger.Requests, ledger.MetricNone, false},
		{"tokens", rule.Rule{Metric: rule.Tokens}, ledger.Tokens, ledger.Tokens, true},
		{"the input's estimate", rule.Rule{Metric: rule.Tokens, EstimateInput: true}, ledger.Input, ledger.Tokens, false},
		{"without cache reads", rule.Rule{Metric: rule.Tokens, Uncached: true}, ledger.Tokens, ledger.Uncached, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.rule
			r.ID, r.SubjectKind, r.WindowSeconds, r.Limit, r.Enabled = "rat_1", rule.SubjectOrg, 60, 5, true
			got := limit.Compile(someone(newSet(t, nil, []*rule.Rule{&r})))
			check := got.After[len(got.After)-1]
			if check.Wants != c.wants || check.Charges != c.charges || got.Reserving != c.reserving || check.Window.Length != 60_000_000 {
				t.Errorf("wants %s, charges %s, reserving %v, window %d", check.Wants, check.Charges, got.Reserving, check.Window.Length)
			}
		})
	}
}

func TestAKeyWhosePlanIsUnknownIsRefused(t *testing.T) { // a check that cannot tell refuses
	s := someone(nil)
	before := limit.Compile(s).Before
	if before[0].Kind != ledger.KindPolicy || before[0].Amount != 0 || before[0].Code != fault.APIKeyInactive {
		t.Errorf("got %+v", before[0])
	}
	s.Set = newSet(t, nil, nil)
	if limit.Compile(s).Before[0].Kind == ledger.KindPolicy {
		t.Error("a key of a known plan is refused")
	}
}

func TestAUserThatARequestNamesIsOneOfSoMany(t *testing.T) { // KEY-7
	s := someone(newSet(t, nil, nil))
	if before := limit.Compile(s).Before; before[0].Kind == ledger.KindRoster {
		t.Error("a key's own user is bounded")
	}
	s.Named = true
	check := limit.Compile(s).Before[0]
	if check.Kind != ledger.KindRoster || check.Amount != tenant.DefaultMaxUsers || check.Marker.Subject != "u" || check.Code != fault.UserLimitReached {
		t.Errorf("got %+v", check)
	}
}

func TestABudgetThatCannotBeEnforcedFailsTheSet(t *testing.T) { // BR-016
	b := budgetOf(budget.ScopeOrg, "", "b")
	b.Zone = "Nowhere/Atall"
	if _, err := limit.NewSet("ws_a", nil, []*budget.Budget{b}, nil); err == nil {
		t.Error("a budget in a zone that is not there is taken")
	}
}

func TestMoreLimitsThanAnAdmissionTakesAreRefusedWhereTheyAreDeclared(t *testing.T) { // BR-016
	for _, c := range []struct {
		name  string
		n     int
		each  bool
		wrong bool
	}{
		{"240 of one subject", 240, false, false},
		{"241 of one subject", 241, false, true},
		{"240 of each", 240, true, false},
		{"241 of each", 241, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var budgets []*budget.Budget
			for i := range c.n {
				subject := "t"
				if c.each {
					subject = ""
				}
				budgets = append(budgets, budgetOf(budget.ScopeTeam, subject, fmt.Sprint(i)))
			}
			set, err := limit.NewSet("ws_a", nil, budgets, nil)
			if (err != nil) != c.wrong {
				t.Fatalf("error %v", err)
			}
			if err == nil && len(limit.Compile(someone(set)).After) > ledger.MaxChecks-2 {
				t.Error("too many for an admission")
			}
		})
	}
	var rules []*rule.Rule
	for i := range rule.MaxRules { // of as many tags
		rules = append(rules, &rule.Rule{ID: fmt.Sprint(i), Name: "r", SubjectKind: rule.SubjectTag, SubjectID: fmt.Sprint(i), Metric: rule.Requests, WindowSeconds: 1, Limit: 1, Enabled: true})
	}
	if _, err := limit.NewSet("ws_a", nil, nil, rules); err != nil {
		t.Errorf("a request has few of many tags: %v", err)
	}
}

// BenchmarkCompileAmongManyUsersAndRules shows that an admission costs what
// applies to it: with 100,000 users' own budgets and 200 rules as much as with
// those of one.
func BenchmarkCompileAmongManyUsersAndRules(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		var budgets []*budget.Budget
		for i := range n {
			budgets = append(budgets, budgetOf(budget.ScopeUser, fmt.Sprintf("u%d", i), fmt.Sprintf("b%d", i)))
		}
		var rules []*rule.Rule
		for i := range min(n, rule.MaxRules) {
			rules = append(rules, &rule.Rule{
				ID: fmt.Sprintf("rat_%d", i), Name: fmt.Sprintf("r%d", i), SubjectKind: rule.SubjectTeam, SubjectID: fmt.Sprintf("t%d", i),
				Metric: rule.Requests, WindowSeconds: 60, Limit: 5, Enabled: true,
			})
		}
		set, err := limit.NewSet("ws_a", nil, budgets, rules)
		if err != nil {
			b.Fatal(err)
		}
		s := newSubject()
		s.Set, s.User, s.Named, s.Key.Team = set, "u0", true, "t0"
		b.Run(fmt.Sprintf("users=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(limit.Compile(s).After) == 0 {
					b.Fatal("nothing applies")
				}
			}
		})
	}
}
