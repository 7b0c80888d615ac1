// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// mutation is one limit at its smallest value, and what the second of two equal
// requests gets for it.
type mutation struct {
	name string
	// settings stand in the workspace, key in its key.
	settings, key string
	status        int
	code          string
	says          string // part of the refusal
	// first: the first request is refused too, since nothing fits.
	first bool
	// body are extra members, headers sent with the first and the second request.
	body          string
	headers, then []string
}

// mutations sets each limit field of each object in turn to its smallest value,
// budgets and rules for every scope × window × metric × enforcement × narrowing.
func mutations() []mutation {
	all := []mutation{
		{name: "caps.day", key: `caps: {day: "0.000000001"}`, status: 402, code: "day_limit_reached", says: "day cap"},
		{name: "caps.seven_day", key: `caps: {seven_day: "0.000000001"}`, status: 402, code: "seven_day_limit_reached", says: "7-day cap"},
		{name: "caps.thirty_day", key: `caps: {thirty_day: "0.000000001"}`, status: 402, code: "thirty_day_limit_reached", says: "30-day cap"},
		{name: "key rpm", key: "limits: {rpm: 1}", status: 429, code: "api_key_rpm_exceeded", says: "rpm limit of key"},
		{name: "key tpm", key: "limits: {tpm: 1}", status: 429, code: "api_key_tpm_exceeded", says: "tpm limit of key", first: true},
		{name: "key disabled", key: "disabled: true", status: 403, code: "apikey_inactive", says: "disabled", first: true},
		{name: "key expired", key: "expires_at: 2020-01-01T00:00:00Z", status: 403, code: "apikey_inactive", says: "expired", first: true},
		{name: "key allowed_models", key: "allowed_models: []", status: 400, code: "model_not_allowed", says: "may not call", first: true},
		{name: "key max_output_tokens", key: "max_output_tokens: 1", body: `"max_tokens":2`, status: 400, code: "max_output_tokens_exceeded", says: "max_tokens is 2", first: true},
		{name: "key require_user", key: "attribute_users: header, require_user: true", status: 400, code: "invalid_request", says: "X-Weir-User", first: true},
		{name: "plan allowed_models", settings: "plans: [{name: p, allowed_models: []}]", key: "plan: p", status: 400, code: "model_not_allowed", says: "may not call", first: true},
		{name: "plan max_output_tokens", settings: "plans: [{name: p, max_output_tokens: 1}]", key: "plan: p", body: `"max_tokens":2`, status: 400, code: "max_output_tokens_exceeded", says: "max_tokens is 2", first: true},
		{name: "workspace rpm", settings: "limits: {rpm: 1}", status: 429, code: "workspace_rpm_exceeded", says: "rpm limit of workspace"},
		{name: "workspace tpm", settings: "limits: {tpm: 1}", status: 429, code: "workspace_tpm_exceeded", says: "tpm limit of workspace", first: true},
		{name: "type default rpm", settings: "type_defaults: {enterprise: {rpm: 1}}", status: 429, code: "workspace_rpm_exceeded", says: "rpm limit of workspace"},
		{name: "type default tpm", settings: "type_defaults: {enterprise: {tpm: 1}}", status: 429, code: "workspace_tpm_exceeded", says: "tpm limit of workspace", first: true},
		{name: "template rpm", settings: "key_template: {limits: {rpm: 1}}", status: 429, code: "api_key_rpm_exceeded", says: "rpm limit of key"},
		{name: "template cap", settings: `key_template: {caps: {day: "0.000000001"}}`, status: 402, code: "day_limit_reached", says: "day cap"},
		{name: "template allowed_models", settings: "key_template: {allowed_models: []}", status: 400, code: "model_not_allowed", says: "may not call", first: true},
		{name: "template max_output_tokens", settings: "key_template: {max_output_tokens: 1}", body: `"max_tokens":2`, status: 400, code: "max_output_tokens_exceeded", says: "max_tokens is 2", first: true},
		{name: "template plan", settings: "plans: [{name: p, budgets: [{name: b, metric: tokens, limit: 1, period: day}]}]\n    key_template: {plan: p}", status: 429, code: "budget_exceeded", says: "plan"},
		{name: "prepaid", settings: "type: personal\n    funds: prepaid", status: 402, code: "insufficient_balance", says: "funds", first: true},
		{name: "prepaid_hold", settings: "type: personal\n    funds: prepaid_hold", status: 402, code: "insufficient_balance", says: "funds", first: true},
		{
			name: "max_users", settings: "max_users: 1", key: "attribute_users: header", status: 400, code: "user_limit_reached", says: "max_users",
			headers: []string{"X-Weir-User", "a"}, then: []string{"X-Weir-User", "b"},
		},
	}
	all = append(all, budgetMutations()...)
	return append(all, ruleMutations()...)
}

func budgetMutations() (all []mutation) {
	for _, scope := range []string{"org", "team", "project", "user", "key", "plan", "own key"} {
		for _, window := range []string{"period: day", "period: week", "period: month", "period: month, time_zone: Pacific/Apia", "window: 10s", "window: 366d"} {
			for _, metric := range []string{"spend", "tokens"} {
				for _, enforcement := range []string{"hard", "guard"} {
					for _, narrowed := range []string{"", ", model: m", ", model: alias", ", provider: sim"} {
						all = append(all, budgetMutation(scope, window, metric, enforcement, narrowed))
					}
				}
			}
		}
	}
	return all
}

func budgetMutation(scope, window, metric, enforcement, narrowed string) mutation {
	limit := map[string]string{"spend": `"0.000000001"`, "tokens": "1"}[metric]
	b := fmt.Sprintf("name: least, metric: %s, limit: %s, %s, enforcement: %s%s", metric, limit, window, enforcement, narrowed)
	m := mutation{
		name: fmt.Sprintf("budget %s %s %s %s%s", scope, window, metric, enforcement, narrowed), status: 429, code: "budget_exceeded",
		first: enforcement == "hard", key: "team: t, project: j, user: u, plan: p",
		says: `budget \"least\" of ` + scope, settings: "plans: [{name: p}]\n    budgets: [{scope: " + scope + ", " + b + "}]",
	}
	switch scope {
	case "plan":
		m.settings = "plans: [{name: p, budgets: [{" + b + "}]}]"
	case "own key":
		m.settings, m.says = "plans: [{name: p}]", `budget \"least\" of key`
		m.key += ", budgets: [{" + b + "}]"
	}
	return m
}

func ruleMutations() (all []mutation) {
	for _, kind := range []string{"org", "team", "project", "user", "api_key", "tag"} {
		for _, window := range []int{1, 60, 86400} {
			for _, metric := range []string{"requests", "tokens"} {
				for _, model := range []string{"", ", model: m", ", model: alias"} {
					subject := map[string]string{"tag": ", subject_id: batch"}[kind]
					all = append(all, mutation{
						name:     fmt.Sprintf("rule %s %ds %s%s", kind, window, metric, model),
						settings: fmt.Sprintf("rate_limits: [{name: least, subject_kind: %s%s, metric: %s, window_seconds: %d, limit: 1%s}]", kind, subject, metric, window, model),
						key:      "team: t, project: j, user: u", status: 429, code: "rate_limited", first: metric == "tokens",
						says: `rate rule \"least\" of ` + strings.Replace(kind, "api_key", "key", 1), headers: []string{"X-Weir-Tags", "x,batch"},
					})
				}
			}
		}
	}
	return all
}

// TestEachLimitAloneChangesTheSecondRequest: BR-017, BUD-1, RAT-2, RAT-7, CAP-1,
// RUN-1, KEY-6. Each refusal names its limit; without the limit both requests
// pass.
func TestEachLimitAloneChangesTheSecondRequest(t *testing.T) {
	all := append([]mutation{{name: "no limit", key: "team: t, project: j, user: u", status: 200}}, mutations()...)
	text := strings.Builder{}
	text.WriteString(strings.Replace(penny, "name: m,", "name: m, aliases: [alias],", 1) + "workspaces:\n")
	secrets := make([]string, len(all))
	for i, m := range all {
		secrets[i] = fmt.Sprintf("the-secret-of-mutation-%d", i)
		key := fmt.Sprintf("name: k, secret: %s", secrets[i])
		if m.key != "" {
			key += ", " + m.key
		}
		fmt.Fprintf(&text, "  - name: w%d\n    keys: [{%s}]\n", i, key)
		if m.settings != "" {
			text.WriteString("    " + m.settings + "\n")
		}
	}
	w := newWorldAt(t, start-int64(time.Minute/time.Microsecond), text.String())
	w.warm(secrets)
	w.clock.Set(start)
	send := func(i int, headers []string) answer {
		return w.do(t.Context(), http.MethodPost, "/v1/chat/completions", secrets[i], chatBody("m", all[i].body), headers...)
	}
	for i, m := range all {
		before := w.provider.Bill().Requests
		first := send(i, m.headers)
		if m.first != (first.status != 200) {
			t.Fatalf("%s: the first request got %v", m.name, first)
		}
		then := m.headers
		if m.then != nil {
			then = m.then
		}
		second := send(i, then)
		if second.status != m.status || second.code() != m.code || !strings.Contains(second.body, m.says) {
			t.Fatalf("%s: the second request got %v, want %d %s that says %q", m.name, second, m.status, m.code, m.says)
		}
		reached := w.provider.Bill().Requests - before
		if want := map[bool]int64{true: 0, false: 1}[m.first]; m.status != 200 && reached != want {
			t.Fatalf("%s: %d requests reached the provider, want %d", m.name, reached, want)
		}
	}
	w.balanced()
}

// TestASlotAloneChangesTheSecondRequest: concurrency 1 of every layer. BR-017,
// RUN-3.
func TestASlotAloneChangesTheSecondRequest(t *testing.T) {
	for _, c := range []heldLimit{
		{"key", "", ", limits: {concurrency: 1}", "api_key_concurrency_exceeded"},
		{"workspace", "limits: {concurrency: 1}\n", "", "workspace_concurrency_exceeded"},
		{"type default", "type_defaults: {enterprise: {concurrency: 1}}\n", "", "workspace_concurrency_exceeded"},
		{"template", "key_template: {limits: {concurrency: 1}}\n", "", "api_key_concurrency_exceeded"},
	} {
		t.Run(c.name, c.alone)
	}
}

// TestTheProcessesBucketAloneChangesTheSecondRequest: BR-017, RAT-6.
func TestTheProcessesBucketAloneChangesTheSecondRequest(t *testing.T) {
	for _, c := range []heldLimit{
		{"requests", "local_rate_limit: {type: requests, max_tokens: 1, tokens_per_fill: 1, fill_interval: 1m}\n", "", "rate_limited"},
		{"tokens", "local_rate_limit: {type: tokens, max_tokens: 20, tokens_per_fill: 1, fill_interval: 1s}\n", "", "rate_limited"},
	} {
		t.Run(c.name, c.alone)
	}
}

// heldLimit is a limit that one running request takes whole.
type heldLimit struct{ name, top, key, code string }

func (c heldLimit) alone(t *testing.T) {
	w := newWorld(t, c.top+penny+"keys:\n  - {name: k, secret: "+raceKey+c.key+"}\n")
	w.provider.Hold()
	done := make(chan answer, 1)
	go func() { done <- w.chat(raceKey, "m") }()
	w.await("the first request", func(n simulator.Totals) bool { return n.Held == 1 })
	w.must(w.chat(raceKey, "m"), 429, c.code)
	w.provider.Release()
	w.must(<-done, 200, "")
	w.balanced()
}

// warm has every program look up keys whose secrets were made elsewhere: at most a
// hundred a second (KEY-2), of the test's clock.
func (w *world) warm(secrets []string) {
	w.t.Helper()
	for i, secret := range secrets {
		if i%90 == 89 {
			w.clock.Advance(time.Second)
		}
		for _, program := range append([]*world{w}, w.peers...) {
			if a := program.ask(w.t.Context(), http.MethodGet, "/v1/key", secret, ""); a.status != 200 && a.status != 403 {
				w.t.Fatalf("%s: %v", secret, a)
			}
		}
	}
}
