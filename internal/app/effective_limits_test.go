// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/simulator"
)

// effectiveConfig has limits of every family and scope, narrowed ones, those of a
// plan, a template, a type and the process.
const effectiveConfig = `funds: prepaid
type: personal
type_defaults: {personal: {rpm: 1000}}
limits: {tpm: 200000, concurrency: 90}
local_rate_limit: {max_tokens: 1000, tokens_per_fill: 100, fill_interval: 10s}
key_template: {limits: {rpm: 500}}
plans: [{name: p, budgets: [{name: planned, metric: tokens, limit: 100000, window: 12h}]}]
budgets:
  - {name: each key, scope: key, metric: spend, limit: "4", window: 24h, enforcement: soft}
  - {name: user day, scope: user, metric: spend, limit: "5", period: day, time_zone: Europe/Berlin}
  - {name: project week, scope: project, subject: j, metric: tokens, limit: 60000, period: week, enforcement: guard}
  - {name: team month, scope: team, metric: spend, limit: "7", period: month, warn_percent: [50]}
  - {name: on the model, scope: org, metric: spend, limit: "8", period: day, model: alias}
  - {name: at the provider, scope: team, subject: t, metric: tokens, limit: 90000, period: day, provider: sim}
  - {name: another team, scope: team, subject: other, metric: spend, limit: "1", period: day}
rate_limits:
  - {name: requests, subject_kind: org, metric: requests, window_seconds: 60, limit: 700}
  - {name: user tokens, subject_kind: user, metric: tokens, window_seconds: 3600, limit: 80000}
  - {name: model requests, subject_kind: api_key, metric: requests, window_seconds: 60, limit: 900, model: m}
  - {name: batch, subject_kind: tag, subject_id: batch, metric: requests, window_seconds: 60, limit: 50}
  - {name: off, subject_kind: org, metric: requests, window_seconds: 60, limit: 1, enabled: false}
`

func newEffectiveWorld(t *testing.T) *world { return newEffectiveWorldOf(t, "", "") }

// newEffectiveWorldOf has another amount in one place.
func newEffectiveWorldOf(t *testing.T, from, to string) *world {
	t.Helper()
	text := strings.Replace(pennyKey(effectiveConfig, `, team: t, project: j, user: u, plan: p, attribute_users: header, caps: {day: "1", thirty_day: "9"}, limits: {tpm: 100000, concurrency: 30}, budgets: [{name: own, metric: spend, limit: "3", window: 30d}]`), "name: m,", "name: m, aliases: [alias],", 1)
	if from != "" && strings.Count(text, from) != 1 {
		t.Fatalf("%q does not stand in the file once", from)
	}
	return newWorldAt(t, at(t, "12:00:00"), strings.Replace(text, from, to, 1))
}

// effective is every limit that applies to that key, in the published order, as
// describe has it, after one request and while another runs.
var effective = []string{
	`balance: workspace, spend, , observe, workspace, , , 0, 0, 9.99, `,
	`day cap: key, spend, day, observe, key, , 1, 0.01, 0, 0.99, 2026-07-21T00:00:00Z`,
	`30-day cap: key, spend, thirty_day, observe, key, , 9, 0.01, 0, 8.99, `,
	`each key: key, spend, 1d, track, budget, , 4, 0.01, 0, 3.99, 2026-07-21T00:00:00Z`,
	`own: key, spend, 30d, observe, key, , 3, 0.01, 0, 2.99, 2026-08-05T00:00:00Z`,
	`planned: plan, tokens, 12h, observe, plan, , 100000, 61, 0, 99939, 2026-07-21T00:00:00Z`,
	`user day: user, spend, day, reserve, budget, , 5, 0.01, 0.01, 4.98, 2026-07-21T00:00:00+02:00`,
	`project week: project, tokens, week, observe, budget, , 60000, 61, 0, 59939, 2026-07-27T00:00:00Z`,
	`team month: team, spend, month, reserve, budget, , 7, 0.01, 0.01, 6.98, 2026-08-01T00:00:00Z`,
	`rpm: key, requests, minute, take, from template, 2026-07-20, , 500, 2, 0, 498, `,
	`tpm: key, tokens, minute, take, key, , 100000, 72, 0, 99928, `,
	`concurrency: key, concurrency, in_flight, take, key, , 30, 0, 1, 29, `,
	`rpm: workspace, requests, minute, take, type default, , 1000, 2, 0, 998, `,
	`tpm: workspace, tokens, minute, take, workspace, , 200000, 72, 0, 199928, `,
	`concurrency: workspace, concurrency, in_flight, take, workspace, , 90, 0, 1, 89, `,
	`user tokens: user, tokens, 1h, take, rate rule, , 80000, 122, 0, 79878, 2026-07-20T13:01:00Z`, // up to a part late
	`requests: org, requests, 1m, take, rate rule, , 700, 2, 0, 698, 2026-07-20T12:01:01Z`,
	`batch: tag, requests, 1m, take, rate rule, , 50, 1, 0, 49, 2026-07-20T12:01:00Z`,
	`at the provider: team, tokens, day, reserve, budget, sim, 90000, 61, 61, 89878, 2026-07-21T00:00:00Z`,
	`on the model: org, spend, day, reserve, budget, m, 8, 0.01, 0.01, 7.98, 2026-07-21T00:00:00Z`,
	`model requests: api_key, requests, 1m, take, rate rule, m, 900, 2, 0, 898, 2026-07-20T12:01:01Z`,
	`local rate limit: process, requests, 100 per 10000 ms, take, this process's memory, over all keys, , 1000, 2, 0, 998, `,
}

// describe is a limit as name: scope, metric, window, admission, whence, narrowed
// to, amount, used, held, remaining, reset. The refill of a bucket, and a trailing
// day's, are left out.
func describe(l *admit.LimitView) string {
	resets := l.ResetsAt
	if l.Window == "minute" || l.Window == "thirty_day" {
		resets = ""
	}
	return strings.Join([]string{
		l.Name + ": " + l.Scope, l.Metric, l.Window, l.Admission, l.Origin, l.Model + l.Provider, l.Amount, l.Used, l.Held, l.Remaining, resets,
	}, ", ")
}

// TestAKeyIsShownEveryLimitThatApplies: EFF-1, KEY-8, RAT-6, BR-051. With whence it
// comes, use, holds, what is left and when it resets; those of others, and what is
// switched off, are not among them. The administration shows the same.
func TestAKeyIsShownEveryLimitThatApplies(t *testing.T) {
	w := newEffectiveWorld(t)
	w.fund("10")
	w.must(w.chat(limitKey, "m", "X-Weir-Tags", "batch"), 200, "")
	w.provider.Hold()
	done := make(chan answer, 1)
	go func() { done <- w.chat(limitKey, "alias") }()
	w.await("the second", func(n simulator.Totals) bool { return n.Held == 1 })
	var shown []string
	for _, l := range w.limits(limitKey, "X-Weir-Tags", "batch") {
		shown = append(shown, describe(&l))
		if l.ID == "" {
			t.Errorf("%s has no id", l.Name)
		}
	}
	if got, want := strings.Join(shown, "\n"), strings.Join(effective, "\n"); got != want {
		t.Errorf("the key is shown\n%s\nwant\n%s", got, want)
	}
	view, err := w.admin.KeyLimits(context.Background(), admin.KeyRequest{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	var administered []string
	for i := range view.Limits {
		administered = append(administered, describe(&view.Limits[i]))
	}
	// The process's own bucket, and what a request's tags add, are not the key's.
	own := slices.DeleteFunc(slices.Clone(effective), func(l string) bool {
		return strings.HasPrefix(l, "local rate limit") || strings.HasPrefix(l, "batch")
	})
	if got, want := strings.Join(administered, "\n"), strings.Join(own, "\n"); got != want {
		t.Errorf("the administration shows\n%s\nwant\n%s", got, want)
	}
	w.provider.Release()
	w.must(<-done, 200, "")
	w.balanced()
}

// TestEveryBudgetThatAppliesIsInTheList: BUD-1, BR-012, BR-051. With the same
// figures, the beginning and the end of its window, and its zone.
func TestEveryBudgetThatAppliesIsInTheList(t *testing.T) {
	w := newEffectiveWorld(t)
	w.fund("10")
	w.must(w.chat(limitKey, "m"), 200, "")
	list, err := w.admin.BudgetList(context.Background(), admin.BudgetListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]admin.BudgetAnswer{}
	for _, b := range list.Budgets {
		listed[b.Name] = b
	}
	for _, l := range w.limits(limitKey) {
		if l.Origin != "budget" && l.Origin != "plan" && l.Name != "own" {
			continue
		}
		b, ok := listed[l.Name]
		if !ok || b.Scope != l.Scope || b.Model+b.Provider != l.Model+l.Provider || !strings.HasPrefix(l.ID, b.ID) {
			t.Errorf("%s is listed as %+v", l.Name, b)
			continue
		}
		if b.Per == "" && (b.ResetsAt != l.ResetsAt || b.Metric == "spend" && b.UsedUSD != l.Used || b.Metric == "tokens" && fmt.Sprint(*b.Used) != l.Used) {
			t.Errorf("%s is listed as %+v, and shown as %+v", l.Name, b, l)
		}
		if b.Zone == "" || b.Per == "" && b.WindowStart == "" {
			t.Errorf("%s has the zone %q and begins %q", l.Name, b.Zone, b.WindowStart)
		}
	}
	if b := listed["on the model"]; b.WindowStart != "2026-07-20T00:00:00Z" || b.ResetsAt != "2026-07-21T00:00:00Z" {
		t.Errorf("listed as %+v", b)
	}
}

// TestNobodysBudgetNeverRefuses: BR-012. A fresh gateway, a key without limits, and
// a request of 76.16 dollars: the next one passes, and no budget is listed.
func TestNobodysBudgetNeverRefuses(t *testing.T) {
	w := newWorld(t, strings.Replace(pennyKey("", ""), `per_request: "0.01"`, `per_request: "76.16"`, 1))
	for range 3 {
		w.must(w.chat(limitKey, "m"), 200, "")
	}
	list, err := w.admin.BudgetList(context.Background(), admin.BudgetListRequest{})
	if err != nil || len(list.Budgets) != 0 {
		t.Errorf("budgets %+v (%v)", list.Budgets, err)
	}
	for _, l := range w.limits(limitKey) {
		if l.Admission != "track" {
			t.Errorf("a limit that nobody set: %+v", l)
		}
	}
	if got := w.spend("k").String(); got != "228.48" {
		t.Errorf("spent %s", got)
	}
}

// TestARefusalSaysWhatTheKeyIsShown: ERR-1, EFF-1, ADM-7. The details of the
// refusal, the key's own view and the record agree on the limit and its figures.
func TestARefusalSaysWhatTheKeyIsShown(t *testing.T) {
	for _, c := range []struct{ name, from, to string }{
		{"day cap", `day: "1"`, `day: "0.01"`},
		{"30-day cap", `day: "1", thirty_day: "9"`, `thirty_day: "0.01"`},
		{"own", `limit: "3"`, `limit: "0.01"`},
		{"planned", "limit: 100000, window: 12h", "limit: 61, window: 12h"},
		{"user day", `limit: "5"`, `limit: "0.015"`},
		{"project week", "limit: 60000", "limit: 50"},
		{"team month", `limit: "7"`, `limit: "0.01"`},
		{"on the model", `limit: "8"`, `limit: "0.01"`},
		{"at the provider", "limit: 90000", "limit: 100"},
		{"requests", "limit: 700", "limit: 1"},
		{"user tokens", "limit: 80000", "limit: 100"},
		{"model requests", "limit: 900, model", "limit: 1, model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newEffectiveWorldOf(t, c.from, c.to)
			w.fund("10")
			w.must(w.chat(limitKey, "m"), 200, "")
			a := w.chat(limitKey, "m")
			var body struct {
				Error struct{ Details admin.CheckView } // the same words
			}
			if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status == 200 {
				t.Fatalf("got %v (%v)", a, err)
			}
			l, d := w.limit(limitKey, c.name), body.Error.Details
			if d.ID != l.ID || d.Scope != l.Scope || d.Metric != l.Metric || d.Window != l.Window || d.Amount != l.Amount || d.Used != l.Used || d.Held != l.Held || d.ResetsAt != l.ResetsAt {
				t.Errorf("refused with %+v, shown %+v", d, l)
			}
			found := false
			for _, check := range w.shown(a).Checks {
				if check.Verdict == "refused" {
					found = check.ID == l.ID && check.Name == c.name && check.Used == l.Used && check.Amount == l.Amount
				}
			}
			if !found {
				t.Errorf("the record names another limit: %+v", w.shown(a).Checks)
			}
		})
	}
}
