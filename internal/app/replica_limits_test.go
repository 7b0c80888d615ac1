// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// replicaLimit is a limit that admits so many requests of replicaModel, of which
// each is estimated at 11 and uses 61 tokens, and costs 511 µ$.
type replicaLimit struct {
	name, settings, key string
	admits              int
	status              int
	code                string
}

func (l *replicaLimit) secret(i int) string {
	return fmt.Sprintf("the-secret-%d-of-%s", i%2, strings.NewReplacer(" ", "-", "'", "").Replace(l.name))
}

// limitedWorkspaces is a file with a workspace for each limit, of two keys. The
// default one has that of funds.
func limitedWorkspaces(list []replicaLimit) string {
	top, rest := "", "workspaces:\n"
	for i := range list {
		l := &list[i]
		var keys []string
		for k := range 2 {
			keys = append(keys, fmt.Sprintf("{name: k%d, secret: %s, team: t, user: u, project: j%s}", k, l.secret(k), l.key))
		}
		all := "keys: [" + strings.Join(keys, ", ") + "]"
		if strings.HasPrefix(l.settings, "funds:") {
			top = l.settings + "\n" + all + "\n"
			continue
		}
		if l.settings != "" {
			all += ", " + l.settings
		}
		rest += fmt.Sprintf("  - {name: w%d, %s}\n", i, all)
	}
	return replicaModel + top + rest
}

// TestAVolleyOverReplicasIsAdmittedExactlyAsOnOne: BR-023, BR-024, BR-152, BR-153,
// BR-154, ORD-2, BUD-2. Every family of limits that decides at admission: 48
// requests at once over four replicas, while none has an answer.
func TestAVolleyOverReplicasIsAdmittedExactlyAsOnOne(t *testing.T) {
	budget := func(b string) string { return "budgets: [{name: b, " + b + ", enforcement: hard}]" }
	limits := []replicaLimit{
		{"a workspace's rpm", "limits: {rpm: 10}", "", 10, 429, "workspace_rpm_exceeded"},
		{"a workspace's tpm", "limits: {tpm: 110}", "", 10, 429, "workspace_tpm_exceeded"},
		{"a workspace's slots", "limits: {concurrency: 4}", "", 4, 429, "workspace_concurrency_exceeded"},
		{"two keys' rpm", "", ", limits: {rpm: 5}", 10, 429, "api_key_rpm_exceeded"},
		{"two keys' tpm", "", ", limits: {tpm: 55}", 10, 429, "api_key_tpm_exceeded"},
		{"two keys' slots", "", ", limits: {concurrency: 2}", 4, 429, "api_key_concurrency_exceeded"},
		{"a rule on requests", "rate_limits: [{name: r, subject_kind: team, metric: requests, window_seconds: 60, limit: 7}]", "", 7, 429, "rate_limited"},
		{"a rule on tokens", "rate_limits: [{name: r, subject_kind: user, metric: tokens, window_seconds: 60, limit: 427}]", "", 7, 429, "rate_limited"},
		{"a rule on a model", "rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 7, model: m}]", "", 7, 429, "rate_limited"},
		{"a budget of spend", budget(`scope: org, metric: spend, limit: "0.004599", period: day`), "", 9, 429, "budget_exceeded"},
		{"a budget of tokens", budget(`scope: project, metric: tokens, limit: 549, window: 1h`), "", 9, 429, "budget_exceeded"},
		{"a budget on a model", budget(`scope: org, metric: spend, limit: "0.004599", period: day, model: m`), "", 9, 429, "budget_exceeded"},
		{"funds that are held", "funds: prepaid_hold", "", 9, 402, "insufficient_balance"},
	}
	w := newSharedWorld(t, limitedWorkspaces(limits))
	w.fund("0.004599")
	replicas := []*world{w, w.replica(), w.replica(), w.replica()}
	for _, l := range limits {
		before := w.provider.Bill().Requests
		answers := w.crowd(48, l.admits, func(i int) answer { return replicas[i%4].chat(l.secret(i/4), "m") })
		if got := count(answers, 200); got != l.admits {
			t.Errorf("%s: %d were admitted, want %d", l.name, got, l.admits)
		}
		for _, a := range answers {
			if a.status != 200 {
				w.must(a, l.status, l.code)
			}
		}
		if n := w.provider.Bill().Requests - before; n != int64(l.admits) {
			t.Errorf("%s: %d requests reached the provider", l.name, n)
		}
	}
	w.atRest()
	w.balanced()
}

// TestRequestsThatAlternateOverReplicasCountAsOnOne: BR-153, BR-154, CAP-1, BAL-2.
// Every family of limits that observes what was settled; 20 requests, 250 ms
// apart, at two replicas in turn.
func TestRequestsThatAlternateOverReplicasCountAsOnOne(t *testing.T) {
	caps := func(c string) string { return ", caps: {" + c + ": \"0.0041\"}" } // of the first key alone
	limits := []replicaLimit{
		// 610 at the start less 10 × 61, and 22 that have come back: the eleventh needs 11.
		{"tpm", "", ", limits: {tpm: 610}", 11, 429, "api_key_tpm_exceeded"},
		{"rpm", "", ", limits: {rpm: 10}", 10, 429, "api_key_rpm_exceeded"},
		{"a day's cap", "", caps("day"), 9, 402, "day_limit_reached"},
		{"a cap of seven days", "", caps("seven_day"), 9, 402, "seven_day_limit_reached"},
		{"a cap of thirty days", "", caps("thirty_day"), 9, 402, "thirty_day_limit_reached"},
		{"a hard budget", `budgets: [{name: b, scope: team, metric: spend, limit: "0.00511", period: month, enforcement: hard}]`, "", 10, 429, "budget_exceeded"},
		{"a guarding budget", `budgets: [{name: b, scope: team, metric: spend, limit: "0.0041", period: month, enforcement: guard}]`, "", 9, 429, "budget_exceeded"},
		{"a budget in a plan", `plans: [{name: p, budgets: [{name: b, metric: tokens, limit: 500, window: 1h, enforcement: guard}]}]`, ", plan: p", 9, 429, "budget_exceeded"},
		{"a rule on tokens", "rate_limits: [{name: r, subject_kind: api_key, metric: tokens, window_seconds: 60, limit: 610}]", "", 10, 429, "rate_limited"},
		{"funds", "funds: prepaid", "", 9, 402, "insufficient_balance"},
	}
	w := newSharedWorld(t, limitedWorkspaces(limits))
	w.fund("0.0041")
	replicas := []*world{w, w.replica()}
	for _, l := range limits {
		admitted := 0
		for i := range 20 {
			if a := replicas[i%2].chat(l.secret(0), "m"); a.status == 200 {
				admitted++
			} else {
				w.must(a, l.status, l.code)
			}
			w.atRest()
			w.clock.Advance(250 * time.Millisecond)
		}
		if admitted != l.admits {
			t.Errorf("%s: %d were admitted, want %d", l.name, admitted, l.admits)
		}
	}
	w.balanced()
}

// TestTokensAMinuteAreNotMultipliedByReplicas: BR-153, with its figures. 1,000
// tokens a minute, 20 calls of 100 within five seconds, all but one of them input.
func TestTokensAMinuteAreNotMultipliedByReplicas(t *testing.T) {
	w := newSharedWorld(t, `
models:
  - {name: m, provider: sim, upstream: "sim?in=99&out=1", context_tokens: 128000, max_output_tokens: 1, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+limitKey+`, limits: {tpm: 1000}}
`)
	replicas := []*world{w, w.replica()}
	body := strings.Replace(chatBody("m", ""), "hello there", strings.Repeat("x", 276), 1) // 276 / 3 + 3 + 4
	admitted := 0
	for i := range 20 {
		if a := replicas[i%2].do(t.Context(), "POST", "/v1/chat/completions", limitKey, body); a.status == 200 {
			admitted++
		} else {
			w.must(a, 429, "api_key_tpm_exceeded")
		}
		w.atRest()
		w.clock.Advance(250 * time.Millisecond)
	}
	if admitted != 10 {
		t.Errorf("%d were admitted, want 10", admitted)
	}
	w.settled("1", "10")
}

// atRest waits until nothing is open on the store.
func (w *world) atRest() {
	w.t.Helper()
	w.eventually("the settlements", func() bool {
		open, err := w.server.OpenUntil(w.t.Context())
		return err == nil && len(open) == 0
	})
}

// TestReplicasThatCrossEachOthersRowsNeverDeadlock: BR-164, ENGINE 5. Four
// replicas; keys share users, teams, projects and a plan in crossed patterns, files
// change, slots of dead processes go and reservations are swept meanwhile.
func TestReplicasThatCrossEachOthersRowsNeverDeadlock(t *testing.T) {
	const keys, requests = 24, 800
	var text strings.Builder
	text.WriteString(replicaModel + `
limits: {concurrency: 10000, tpm: 100000000}
plans: [{name: p0, budgets: [{name: b, metric: spend, limit: "100", period: day, enforcement: hard}]}, {name: p1, budgets: [{name: b, metric: tokens, limit: 100000000, window: 1h}]}]
budgets:
  - {name: org, scope: org, metric: spend, limit: "100", period: day, enforcement: hard}
  - {name: user, scope: user, metric: spend, limit: "100", period: day, enforcement: hard}
  - {name: team, scope: team, metric: tokens, limit: 100000000, period: month, enforcement: hard}
  - {name: project, scope: project, metric: spend, limit: "100", window: 1h, enforcement: hard}
rate_limits: [{name: r, subject_kind: user, metric: tokens, window_seconds: 60, limit: 100000000}]
keys:
`)
	secret := func(i int) string { return fmt.Sprintf("the-secret-of-the-crossing-key-%d", i) }
	for i := range keys {
		fmt.Fprintf(&text, "  - {name: k%d, secret: %s, user: u%d, team: t%d, project: j%d, plan: p%d, attribute_users: header, limits: {concurrency: 1000}}\n",
			i, secret(i), i%5, (keys-i)%7, i%3, i%2)
	}
	w := newSharedWorld(t, text.String())
	replicas := []*world{w, w.replica(), w.replica(), w.replica()}
	logged := len(database.Log(t))
	answers := volley(requests, 64, func(i int) answer {
		r := replicas[i%4]
		if i%200 == 199 { // the work of the background, now
			r.server.Sweep(t.Context())
			if err := r.server.Look(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if i%3 == 0 {
			return r.stream(secret(i*7%keys), "m", "")
		}
		return r.chat(secret(i*7%keys), "m", "X-Weir-User", fmt.Sprintf("u%d", (i+3)%11))
	})
	if got := count(answers, 200); got != requests {
		t.Errorf("%d of %d were admitted", got, requests)
	}
	w.settled("1", "10")
	if log := database.Log(t)[logged:]; strings.Contains(log, "deadlock detected") || strings.Contains(log, "40P01") {
		t.Errorf("the server's log tells of a deadlock:\n%s", log)
	}
}
