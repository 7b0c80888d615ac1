// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

func newSubject() limit.Subject {
	return limit.Subject{
		Workspace: tenant.NewWorkspace("ws_a", "acme"), Key: &tenant.Key{ID: "key_1", Name: "ci"}, Zone: time.UTC,
	}
}

func codes(checks []ledger.Check) []fault.Code {
	var list []fault.Code
	for i := range checks {
		if checks[i].Mode != ledger.Track {
			list = append(list, checks[i].Code)
		}
	}
	return list
}

// all makes every limit of this package apply.
func all(s limit.Subject) {
	s.Workspace.Funds = tenant.Prepaid
	s.Workspace.Limits = tenant.RuntimeLimits{RPM: new(int64(6)), TPM: new(int64(7)), Concurrency: new(int64(8))}
	s.Key.ExpiresAt = 1000
	s.Key.Caps = tenant.Caps{Day: new(money.Dollar), SevenDay: new(2 * money.Dollar), ThirtyDay: new(3 * money.Dollar)}
	s.Key.Limits = tenant.RuntimeLimits{RPM: new(int64(3)), TPM: new(int64(4)), Concurrency: new(int64(5))}
}

// declared is a set of one budget and one rule, both of the whole workspace.
func declared(t *testing.T) *limit.Set {
	t.Helper()
	set, err := limit.NewSet("ws_a", nil, []*budget.Budget{
		{ID: "bud_1", Name: "org day", Scope: budget.ScopeOrg, Metric: budget.Spend, Limit: 5, Period: budget.Day, Enforcement: budget.Hard},
	}, []*rule.Rule{{ID: "rat_1", Name: "all", SubjectKind: rule.SubjectOrg, Metric: rule.Requests, WindowSeconds: 60, Limit: 9, Enabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestTheOrderOfTheChecksIsThePublishedOne(t *testing.T) { // ORD-1
	var published []fault.Code
	for _, info := range fault.All() {
		if slices.Contains(limit.Order(), info.Code) {
			published = append(published, info.Code)
		}
	}
	if !slices.Equal(limit.Order(), published) {
		t.Errorf("order %v, the registry's is %v", limit.Order(), published)
	}
	s := newSubject()
	all(s)
	s.Set = declared(t)
	c := limit.Compile(s)
	if got := append(codes(c.Before), codes(c.After)...); !slices.Equal(got, limit.Order()) {
		t.Errorf("compiled %v, want %v", got, limit.Order())
	}
	if got, want := codes(c.Before), []fault.Code{fault.APIKeyInactive, fault.InsufficientBalance}; !slices.Equal(got, want) {
		t.Errorf("before the model's policy stand %v, want %v", got, want)
	}
}

func TestWithoutAnyLimitTheBookIsKeptAndNothingRefuses(t *testing.T) { // BAL-1, CAP-1, BUD-8, BR-012
	c := limit.Compile(newSubject())
	list := append(slices.Clone(c.Before), c.After...)
	if len(list) != 2 || list[0].Kind != ledger.KindFunds || list[1].Kind != ledger.KindDays {
		t.Fatalf("got %+v, want the funds and the days counter", list)
	}
	for i := range list {
		if list[i].Mode != ledger.Track || list[i].Charges != ledger.Spend {
			t.Errorf("%s: mode %d, charges %s", list[i].Name, list[i].Mode, list[i].Charges)
		}
	}
	if c.SpendLimited || c.Reserving {
		t.Error("nothing limits spend here")
	}
}

func TestFundsFollowTheTypeAndTheModeOfFunding(t *testing.T) { // BAL-1, BAL-6, PRC-3, EST-2
	for _, c := range []struct {
		name, kind, funds string
		mode              ledger.Mode
		credit            int64
		limited, reserves bool
	}{
		{"open refuses nothing", tenant.Enterprise, tenant.Open, ledger.Track, 5, false, false},
		{"prepaid observes", tenant.Enterprise, tenant.Prepaid, ledger.Observe, 5, true, false},
		{"personal has no credit line", tenant.Personal, tenant.Prepaid, ledger.Observe, 0, true, false},
		{"prepaid_hold reserves", tenant.Enterprise, tenant.PrepaidHold, ledger.Reserve, 5, true, true},
		{"what is not known is prepaid", tenant.Personal, "", ledger.Observe, 0, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject()
			s.Workspace.Type, s.Workspace.Funds, s.Workspace.CreditLine = c.kind, c.funds, 5
			got := limit.Compile(s)
			f := got.Before[0]
			if f.Mode != c.mode || f.Credit != c.credit || f.Counter != limit.FundsCounter("ws_a") {
				t.Errorf("mode %d, credit %d, counter %+v", f.Mode, f.Credit, f.Counter)
			}
			if got.SpendLimited != c.limited || got.Reserving != c.reserves {
				t.Errorf("spend limited %v, reserving %v", got.SpendLimited, got.Reserving)
			}
		})
	}
}

func TestAKeysStatusIsACheckOfTheDecision(t *testing.T) { // KEY-2, ADM-4
	for _, c := range []struct {
		name     string
		disabled bool
		expires  int64
		checks   int
		amount   int64
	}{
		{"an active key needs none", false, 0, 0, 0},
		{"disabled refuses always", true, 0, 1, 0},
		{"disabled counts before the end", true, 99, 1, 0},
		{"an end is judged at the decision", false, 99, 1, 99},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject()
			s.Key.Disabled, s.Key.ExpiresAt = c.disabled, c.expires
			before := limit.Compile(s).Before
			if len(before) != c.checks+1 {
				t.Fatalf("%d checks", len(before))
			}
			if c.checks == 1 && (before[0].Kind != ledger.KindPolicy || before[0].Amount != c.amount || before[0].Code != fault.APIKeyInactive) {
				t.Errorf("got %+v", before[0])
			}
		})
	}
}

func TestCapsShareOneCounterAndZeroIsUnlimited(t *testing.T) { // CAP-1, CAP-2, BUD-8
	day := func(n money.Nanos) *money.Nanos { return &n }
	for _, c := range []struct {
		name  string
		caps  tenant.Caps
		spans []int32
	}{
		{"unset", tenant.Caps{}, nil},
		{"zero", tenant.Caps{Day: day(0), SevenDay: day(0), ThirtyDay: day(0)}, nil},
		{"one", tenant.Caps{SevenDay: day(5)}, []int32{7}},
		{"zero among set ones", tenant.Caps{Day: day(1), SevenDay: day(0), ThirtyDay: day(9)}, []int32{1, 30}},
		{"all", tenant.Caps{Day: day(1), SevenDay: day(2), ThirtyDay: day(3)}, []int32{1, 7, 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject()
			s.Key.Caps, s.Workspace.ZoneEpoch = c.caps, 4
			got := limit.Compile(s)
			var spans []int32
			for i := range got.After {
				check := &got.After[i]
				if check.Counter != limit.DaysCounter("ws_a", "key_1") || check.ZoneEpoch != 4 || check.Zone != time.UTC || check.Charges != ledger.Spend {
					t.Errorf("check %+v", check)
				}
				if check.Mode == ledger.Observe {
					spans = append(spans, check.Span)
				}
			}
			if len(got.After) == 0 {
				t.Fatal("the days are not kept")
			}
			if !slices.Equal(spans, c.spans) || got.SpendLimited != (c.spans != nil) || got.Reserving {
				t.Errorf("spans %v, spend limited %v, reserving %v", spans, got.SpendLimited, got.Reserving)
			}
		})
	}
}

func TestRuntimeLimitsComeFromTheirLayers(t *testing.T) { // RUN-4, RUN-5
	at := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name          string
		key, own, def *int64
		keyAmount     int64 // 0: no check
		topAmount     int64
		topOrigin     string
	}{
		{"nothing set", nil, nil, nil, 0, 0, ""},
		{"a key's zero is no key limit", at(0), nil, nil, 0, 0, ""},
		{"a key's zero does not lift the workspace's", at(0), at(9), nil, 0, 9, tenant.FromWorkspace},
		{"both layers apply", at(5), at(9), nil, 5, 9, tenant.FromWorkspace},
		{"the workspace's own value goes before the default", nil, at(9), at(3), 0, 9, tenant.FromWorkspace},
		{"unset takes the type's default", nil, nil, at(3), 0, 3, tenant.FromTypeDefault},
		{"an explicit zero is unlimited, whatever the default", nil, at(0), at(3), 0, 0, ""},
		{"a default of zero is unlimited", nil, nil, at(0), 0, 0, ""},
		{"a key above a lowered ceiling keeps its own", at(50), at(9), nil, 50, 9, tenant.FromWorkspace},
	} {
		for _, m := range tenant.Metrics() {
			t.Run(c.name+" "+string(m), func(t *testing.T) {
				s := newSubject()
				s.Key.Limits, s.Workspace.Limits = only(m, c.key), only(m, c.own)
				s.Workspace.TypeDefaults = map[string]tenant.RuntimeLimits{
					tenant.Enterprise: only(m, c.def), tenant.Personal: only(m, at(77)),
				}
				list := limit.Compile(s).After[1:]
				var key, top ledger.Check
				for i := range list {
					if list[i].Scope == "key" {
						key = list[i]
					} else {
						top = list[i]
					}
				}
				if key.Amount != c.keyAmount || top.Amount != c.topAmount || top.Origin != c.topOrigin {
					t.Errorf("key %d, workspace %d from %q", key.Amount, top.Amount, top.Origin)
				}
				if key.Amount > 0 && (key.Counter.Subject != "key_1" || key.Origin != "key" || key.Mode != ledger.Take) {
					t.Errorf("key's check %+v", key)
				}
				if top.Amount > 0 && (top.Counter.Subject != "" || top.Mode != ledger.Take) {
					t.Errorf("workspace's check %+v", top)
				}
			})
		}
	}
}

func only(m tenant.Metric, n *int64) (l tenant.RuntimeLimits) {
	switch m {
	case tenant.RPM:
		l.RPM = n
	case tenant.TPM:
		l.TPM = n
	case tenant.Concurrency:
		l.Concurrency = n
	}
	return l
}

func TestTPMTakesTheInputAndIsChargedAllTokens(t *testing.T) { // RUN-1
	s := newSubject()
	all(s)
	for _, check := range limit.Compile(s).After {
		want := map[string][2]ledger.Metric{
			"rpm": {ledger.Requests, ledger.MetricNone}, "tpm": {ledger.Input, ledger.Tokens}, "concurrency": {ledger.Slots, ledger.MetricNone},
		}[check.Name]
		if check.Mode == ledger.Take && (check.Wants != want[0] || check.Charges != want[1]) {
			t.Errorf("%s of %s wants %s, charges %s", check.Name, check.Scope, check.Wants, check.Charges)
		}
	}
}

func TestEachLimitSaysWhenceItComes(t *testing.T) { // EFF-1, KEY-4
	s := newSubject()
	all(s)
	s.Key.FromTemplate = map[string]string{"caps.seven_day": "2026-03-01", "limits.tpm": "2026-03-02"}
	want := map[string]string{
		"day cap": "key", "7-day cap": "from template, 2026-03-01", "30-day cap": "key",
		"key rpm": "key", "key tpm": "from template, 2026-03-02", "key concurrency": "key",
		"workspace rpm": tenant.FromWorkspace, "workspace tpm": tenant.FromWorkspace, "workspace concurrency": tenant.FromWorkspace,
	}
	for _, check := range limit.Compile(s).After {
		name := check.Name
		if check.Mode == ledger.Take {
			name = check.Scope + " " + check.Name
		}
		if check.Origin != want[name] {
			t.Errorf("%s comes from %q, want %q", name, check.Origin, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not compiled: %v", want)
	}
}

// Each limit of a workspace and of a key has a counter of its own, or shares one
// with its own kind; keys never share.
func TestCountersAreNeverSharedByKeysOrFamilies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "a:b", "key", "days", ""})
		s, other := newSubject(), newSubject()
		all(s)
		all(other)
		s.Key.ID, other.Key.ID = "k"+word.Draw(t, "key"), "k"+word.Draw(t, "other key")
		kinds := map[ledger.Counter]ledger.Kind{}
		for _, check := range append(limit.Compile(s).Before, limit.Compile(s).After...) {
			if k, ok := kinds[check.Counter]; ok && check.Kind != ledger.KindPolicy && k != check.Kind {
				t.Fatalf("%+v is of kinds %d and %d", check.Counter, k, check.Kind)
			}
			kinds[check.Counter] = check.Kind
		}
		if s.Key.ID == other.Key.ID {
			return
		}
		for _, check := range limit.Compile(other).After {
			if _, ok := kinds[check.Counter]; ok && check.Scope == "key" {
				t.Fatalf("keys %q and %q share %+v", s.Key.ID, other.Key.ID, check.Counter)
			}
		}
	})
}

func TestTPMMayLeaveCacheReadsOut(t *testing.T) { // USE-3, BR-145
	no, yes := new(bool), new(bool)
	*yes = true
	for _, c := range []struct {
		name                string
		key, own, byDefault *bool
		keyWants, topWants  ledger.Metric
	}{
		{"cache reads count", nil, nil, nil, ledger.Tokens, ledger.Tokens},
		{"not for the key", no, nil, nil, ledger.Uncached, ledger.Tokens},
		{"not for the workspace", yes, no, nil, ledger.Tokens, ledger.Uncached},
		{"the layer's own word counts, not the type's", nil, nil, no, ledger.Tokens, ledger.Tokens},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject()
			all(s)
			s.Key.Limits.CountCached, s.Workspace.Limits.CountCached = c.key, c.own
			s.Workspace.TypeDefaults = map[string]tenant.RuntimeLimits{tenant.Enterprise: {TPM: new(int64(9)), CountCached: c.byDefault}}
			for _, check := range limit.Compile(s).After {
				want := map[string]ledger.Metric{"key": c.keyWants, "workspace": c.topWants}[check.Scope]
				if check.Name == "tpm" && check.Charges != want {
					t.Errorf("tpm of %s charges %d, want %d", check.Scope, check.Charges, want)
				}
			}
		})
	}
	s := newSubject()
	s.Workspace.TypeDefaults = map[string]tenant.RuntimeLimits{tenant.Enterprise: {TPM: new(int64(9)), CountCached: no}}
	for _, check := range limit.Compile(s).After {
		if check.Name == "tpm" && check.Charges != ledger.Uncached {
			t.Error("the type's default counts cache reads")
		}
	}
}
