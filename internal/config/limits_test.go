// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

func parsed(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse("weir.yaml", []byte(text), variables())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// BUD-1, SPEC 14: a budget stands in the workspace, or with the key or plan that
// it bounds.
func TestABudgetBoundsWhatItStandsWith(t *testing.T) {
	f := parsed(t, `
keys:
  - name: the key
    secret: aaaaaaaaaaaaaaaa
    plan: intern
    budgets:
      - {name: a, metric: spend, limit: 2, window: 1h, on_exceeded: record}
      - {name: b, scope: key, metric: tokens, limit: 5, period: day, was: c}
plans:
  - name: intern
    allowed_models: []
    budgets: [{name: a, metric: spend, limit: "0.5", period: week, enforcement: hard}]
budgets:
  - {name: a, scope: key, subject: the key, metric: spend, limit: "7", window: 1w}
workspaces:
  - name: other
    plans: [{name: intern, was: trainee}]
    budgets: [{name: a, scope: org, metric: spend, limit: 1, period: day}]
    rate_limits: [{name: a, subject_kind: org, metric: requests, window_seconds: 1, limit: 1, was: b}]
`)
	declared, err := f.Desired()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var order []string
	for _, d := range declared {
		name := strings.Join([]string{d.Workspace, d.Kind, d.OwnerKind, d.OwnerName, d.Name, d.Was}, "|")
		if got[name] = d.Origin + " " + string(d.Body); len(order) == 0 || order[len(order)-1] != d.Kind {
			order = append(order, d.Kind)
		}
	}
	want := map[string]string{
		"other|workspace|||other|":          `weir.yaml:16 {"type":"enterprise","funds":"open","budget_refusal":429,"inherit":true}`,
		"default|plan|||intern|":            `weir.yaml:10 {"allowed_models":[]}`,
		"other|plan|||intern|trainee":       `weir.yaml:17 {}`,
		"default|key|||the key|":            `weir.yaml:3 {"prefix":"aaaa","plan":"intern"}`,
		"default|budget|key|the key|a|":     `weir.yaml:7 {"scope":"key","subject":"the key","metric":"spend","limit":"2","window":"1h","enforcement":"soft"}`,
		"default|budget|key|the key|b|c":    `weir.yaml:8 {"scope":"key","subject":"the key","metric":"tokens","limit":5,"period":"day","enforcement":"guard"}`,
		"default|budget|plan|intern|a|":     `weir.yaml:12 {"scope":"plan","subject":"intern","metric":"spend","limit":"0.5","period":"week","enforcement":"hard"}`,
		"default|budget|||a|":               `weir.yaml:14 {"scope":"key","subject":"the key","metric":"spend","limit":"7","window":"7d","enforcement":"guard"}`,
		"other|budget|||a|":                 `weir.yaml:18 {"scope":"org","metric":"spend","limit":"1","period":"day","enforcement":"hard"}`,
		"other|" + rule.KindRule + "|||a|b": `weir.yaml:19 {"subject_kind":"org","metric":"requests","window_seconds":1,"limit":1,"enabled":true}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
	kinds := []string{tenant.KindWorkspace, tenant.KindPlan, tenant.KindKey, budget.KindBudget, rule.KindRule}
	if diff := cmp.Diff(kinds, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// RAT-7: the 201st rule is refused, in each workspace for itself.
func TestAWorkspaceHasAtMostTwoHundredRules(t *testing.T) {
	rules := func(n int, indent string) string {
		var b strings.Builder
		b.WriteString(indent + "rate_limits:\n")
		for i := range n {
			fmt.Fprintf(&b, "%s  - {name: r%d, subject_kind: org, metric: requests, window_seconds: 1, limit: 1, enabled: false}\n", indent, i)
		}
		return b.String()
	}
	parsed(t, rules(200, "")+"workspaces:\n  - name: other\n"+rules(200, "    "))
	for _, n := range []int{201, 300} {
		_, err := config.Parse("weir.yaml", []byte(rules(n, "")), variables())
		want := "weir.yaml:202: rate_limits[200]: too many rules: a workspace has at most 200, remove this one and those below"
		if err == nil || err.Error() != want {
			t.Errorf("%d rules: error is\n%v, want\n%s", n, err, want)
		}
	}
}

// RAT-6.
func TestTheProcesssOwnBucketIsRead(t *testing.T) {
	for text, want := range map[string]*config.LocalRateLimit{
		"": nil, "local_rate_limit: null": nil,
		"local_rate_limit: {max_tokens: 10, tokens_per_fill: 1, fill_interval: 1s}":                    {Metric: rule.Requests, Capacity: 10, PerFill: 1, IntervalMicros: 1_000_000},
		"local_rate_limit: {type: tokens, max_tokens: 1000, tokens_per_fill: 500, fill_interval: 1ms}": {Metric: rule.Tokens, Capacity: 1000, PerFill: 500, IntervalMicros: 1000},
	} {
		if diff := cmp.Diff(want, parsed(t, text).Process.LocalRateLimit); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// RES-6: ninety days, unless somebody says otherwise.
func TestTheRetentionIsNinetyDaysUnlessSomebodySaysOtherwise(t *testing.T) {
	const day = 86_400_000_000
	for text, want := range map[string]int64{"": 90 * day, "reservation_retention: 1d": day, "reservation_retention: 3650d": 3650 * day, "reservation_retention: 2w": 14 * day} {
		if got := parsed(t, text).Process.RetentionMicros; got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// MON-4: dollars in the file, a whole number without quotes; tokens as such.
func TestAnAmountOfTheFileIsDollarsOrTokens(t *testing.T) {
	for limit, want := range map[string]int64{
		"metric: spend, limit: 500": 500 * int64(money.Dollar), `metric: spend, limit: "1.50"`: 1_500_000_000, "metric: tokens, limit: 500": 500,
	} {
		f := parsed(t, "budgets: [{name: Büro, scope: org, period: day, "+limit+"}]")
		if b := f.Workspaces[0].Budgets[0].Value; b.Limit != want || b.Name != "Büro" {
			t.Errorf("%s: budget is %+v", limit, b)
		}
	}
}

// BUD-6: what a store that keeps nothing can hold as well as any is accepted.
func TestAMemoryStoreHoldsRatesAndPlans(t *testing.T) {
	parsed(t, `
store: memory
plans: [{name: intern, max_output_tokens: 5}]
rate_limits: [{name: a, subject_kind: org, metric: tokens, window_seconds: 60, limit: 1}]
local_rate_limit: {max_tokens: 1, tokens_per_fill: 1, fill_interval: 1s}
`)
	_, err := config.Parse("weir.yaml", []byte("store: memory\nkey_template: {budgets: []}\n"), variables())
	var wrong config.Problems
	if !errors.As(err, &wrong) || wrong[0].Path != "key_template.budgets" {
		t.Errorf("error is %v", err)
	}
}

// STO-2: what describes the default workspace makes it the file's.
func TestWhatIsHeldDescribesTheDefaultWorkspace(t *testing.T) {
	for text, want := range map[string]bool{
		"hold_output_tokens: 1": true, "on_short: shrink": true, "shrink_floor: 1": true, "max_users: 1": true,
		"plans: []": false, "budgets: []": false, "rate_limits: []": false, "reservation_retention: 90d": false,
	} {
		if got := parsed(t, text).Workspaces[0].Declared; got != want {
			t.Errorf("%s declares the default workspace: %t, want %t", text, got, want)
		}
	}
}

// KEY-7: a key of the file may leave to the template how a request names a user.
func TestAKeyThatNeedsAUserMayHaveItFromTheTemplate(t *testing.T) {
	key := "keys: [{name: a, secret: aaaaaaaaaaaaaaaa, require_user: true}]\n"
	parsed(t, "key_template: {attribute_users: header}\n"+key)
	if _, err := config.Parse("weir.yaml", []byte(key), variables()); err == nil || !strings.Contains(err.Error(), "keys[0].require_user") {
		t.Errorf("error is %v", err)
	}
}
