// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
)

// says is one way in which a request can name its user.
type says struct {
	name, body string
	headers    []string
}

func byHeader(user string) says { return says{"header " + user, "", []string{"X-Weir-User", user}} }
func byBody(user string) says   { return says{"user " + user, `"user":"` + user + `"`, nil} }
func byMeta(user string) says {
	return says{"metadata " + user, `"metadata":{"user_id":"` + user + `"}`, nil}
}

// speak sends a request that names its user so.
func (w *world) speak(secret string, s says) answer {
	w.t.Helper()
	return w.do(context.Background(), http.MethodPost, "/v1/chat/completions", secret, chatBody("m", s.body), s.headers...)
}

// TestAUserIsOneHoweverItIsNamed: KEY-7, BR-003. Header, body and both come to one
// counter; the budget that each user has refuses the next, whatever way it takes.
func TestAUserIsOneHoweverItIsNamed(t *testing.T) {
	ways := []says{
		byHeader("ada"), byBody("ada"), byMeta("ada"),
		{"header and body", `"user":"ada"`, []string{"X-Weir-User", "ada"}},
		{"everywhere", `"user":"ada","metadata":{"user_id":"ada"}`, []string{"X-Weir-User", "ada"}},
		{"header beside session ids", `"metadata":{"user_id":"{\"session_id\":\"1\"}"}`, []string{"X-Weir-User", "ada"}},
	}
	for _, first := range ways {
		t.Run(first.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pennyKey(`budgets: [{name: b, scope: user, metric: spend, limit: "0.01", period: day, enforcement: guard}]`+"\n", ", user: own, attribute_users: body"))
			w.must(w.speak(limitKey, first), 200, "")
			for _, next := range ways {
				w.must(w.speak(limitKey, next), 429, "budget_exceeded")
			}
			w.must(w.speak(limitKey, byHeader("bob")), 200, "")
			w.must(w.chat(limitKey, "m"), 200, "") // the key's own
			w.used(limitKey, "b", "0.01", "X-Weir-User", "ada")
			w.used(limitKey, "b", "0.01")
			w.balanced()
		})
	}
}

// TestAUserNobodyHasSeenIsLimitedFromItsFirstRequest: BR-002, KEY-7. Budgets and
// rules that each user has, and one user's own.
func TestAUserNobodyHasSeenIsLimitedFromItsFirstRequest(t *testing.T) {
	for _, c := range []struct {
		name, settings, code string
		admitted             int
	}{
		{"guard", `budgets: [{name: b, scope: user, metric: spend, limit: "0.015", period: day, enforcement: guard}]`, "budget_exceeded", 2},
		{"hard", `budgets: [{name: b, scope: user, metric: spend, limit: "0.015", period: day, enforcement: hard}]`, "budget_exceeded", 1},
		{"tokens", `budgets: [{name: b, scope: user, metric: tokens, limit: 122, window: 7d, enforcement: hard}]`, "budget_exceeded", 2},
		{"its own", `budgets: [{name: b, scope: user, subject: u1, metric: tokens, limit: 122, window: 7d, enforcement: hard}]`, "budget_exceeded", 2},
		{"on a model", `budgets: [{name: b, scope: user, metric: spend, limit: "0.02", period: day, model: m}]`, "budget_exceeded", 2}, // BR-004
		{"a rule", `rate_limits: [{name: r, subject_kind: user, metric: requests, window_seconds: 60, limit: 3}]`, "rate_limited", 3},
		{"a token rule", `rate_limits: [{name: r, subject_kind: user, metric: tokens, window_seconds: 60, limit: 130}]`, "rate_limited", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pennyKey(c.settings+"\n", ", attribute_users: header"))
			if n := w.admitted(limitKey, "m", c.code, "X-Weir-User", "u1"); n != c.admitted {
				t.Errorf("%d passed, want %d", n, c.admitted)
			}
			w.must(w.chat(limitKey, "m", "X-Weir-User", "u2"), 200, "")
			w.balanced()
		})
	}
}

// TestOnlyAKeyThatMayNamesAUser: BR-186, KEY-7. From any other, the fields change
// nobody's use, whatever stands in them.
func TestOnlyAKeyThatMayNamesAUser(t *testing.T) {
	const settings = `budgets: [{name: b, scope: user, metric: spend, limit: "1", period: day}]` + "\n"
	for _, c := range []struct {
		key  string
		says []says
		who  string
	}{
		{", user: own", []says{byHeader("ada"), byBody("ada"), byMeta("ada"), byHeader("not a user"), byBody("not a user")}, "own"},
		{", user: own, attribute_users: header", []says{byBody("ada"), byMeta("ada"), byBody("not a user")}, "own"},
		{", user: own, attribute_users: body", []says{{"session ids", `"metadata":{"user_id":"{\"a\":1}"}`, nil}}, "own"},
	} {
		w := newWorld(t, pennyKey(settings, c.key))
		for _, s := range c.says {
			w.must(w.speak(limitKey, s), 200, "")
		}
		rows := w.usageByUser()
		if len(rows) != 1 || rows[c.who] != int64(len(c.says)) {
			t.Errorf("%s: charged %v", c.key, rows)
		}
		w.balanced()
	}
}

// usageByUser are the requests that reports count for each user.
func (w *world) usageByUser() map[string]int64 {
	w.t.Helper()
	usage, err := w.admin.Usage(context.Background(), admin.UsageRequest{By: "user", From: "2000-01-01", To: "2100-01-01"})
	if err != nil {
		w.t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, r := range usage.Rows {
		rows[r.User] += r.Requests
	}
	return rows
}

// TestANamedUserTakesTheKeysPlaceAndBothAreRecorded: KEY-7, BR-186. Its limits
// and reports are those of the user named; those of the key, its plan, project,
// team and workspace stay; the record has both.
func TestANamedUserTakesTheKeysPlaceAndBothAreRecorded(t *testing.T) {
	w := newWorld(t, pennyKey(`plans: [{name: p, budgets: [{name: plan, metric: spend, limit: "1", period: day}]}]
budgets:
  - {name: user, scope: user, metric: spend, limit: "1", period: day}
  - {name: project, scope: project, metric: spend, limit: "1", period: day}
  - {name: team, scope: team, metric: spend, limit: "1", period: day}
  - {name: org, scope: org, metric: spend, limit: "1", period: day}
  - {name: key, scope: key, metric: spend, limit: "1", period: day}
`, ", user: own, team: t, project: j, plan: p, attribute_users: header"))
	w.must(w.chat(limitKey, "m"), 200, "")
	named := w.must(w.chat(limitKey, "m", "X-Weir-User", "ada"), 200, "")
	w.must(w.chat(limitKey, "m", "X-Weir-User", "ada"), 200, "")
	for name, used := range map[string]string{"user": "0.01", "project": "0.03", "team": "0.03", "org": "0.03", "key": "0.03", "plan": "0.03"} {
		w.used(limitKey, name, used)
	}
	w.used(limitKey, "user", "0.02", "X-Weir-User", "ada")
	if rows := w.usageByUser(); len(rows) != 2 || rows["own"] != 1 || rows["ada"] != 2 {
		t.Errorf("reports count %v", rows)
	}
	if shown := w.shown(named); shown.User != "ada" || shown.KeyUser != "own" {
		t.Errorf("the record says user %q, and %q for the key's own", shown.User, shown.KeyUser)
	}
	w.balanced()
}

// TestARefusedRequestMakesNoUser: KEY-7, ORD-2. Whatever refuses it: it has no
// counter, and takes none of max_users.
func TestARefusedRequestMakesNoUser(t *testing.T) {
	for _, c := range []struct {
		name, settings, key, model string
		status                     int
		code                       string
	}{
		{"a model that does not exist", "", "", "none", 404, "model_not_found"},
		{"a model that is not allowed", "", ", allowed_models: [x]", "m", 400, "model_not_allowed"},
		{"a budget of its own", `budgets: [{name: b, scope: user, metric: tokens, limit: 60, period: day}]`, "", "m", 429, "budget_exceeded"},
		{"a budget of another", `budgets: [{name: b, scope: org, metric: tokens, limit: 60, period: day}]`, "", "m", 429, "budget_exceeded"},
		{"a rule", `rate_limits: [{name: b, subject_kind: user, metric: tokens, window_seconds: 60, limit: 60}]`, "", "m", 429, "rate_limited"},
		{"tokens a minute", "", ", limits: {tpm: 10}", "m", 429, "api_key_tpm_exceeded"},
		{"funds", "funds: prepaid", "", "m", 402, "insufficient_balance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const open = `  - {name: open, secret: ` + secondKey + `, attribute_users: header}` + "\n"
			w := newWorld(t, pennyKey("max_users: 1\n"+c.settings+"\n", ", attribute_users: header"+c.key)+open)
			for _, user := range []string{"a", "b", "c", "a"} {
				w.must(w.chat(limitKey, c.model, "X-Weir-User", user), c.status, c.code)
			}
			w.balanced()
			w.reload(pennyKey("max_users: 1\n", ", attribute_users: header")+open, func() bool {
				return w.chat(limitKey, "m", "X-Weir-User", "first").status == 200
			})
			for _, user := range []string{"a", "b", "c"} {
				w.must(w.chat(secondKey, "m", "X-Weir-User", user), 400, "user_limit_reached")
			}
			w.must(w.chat(secondKey, "m", "X-Weir-User", "first"), 200, "")
			w.balanced()
		})
	}
}

// TestMaxUsersBoundsNamedUsersExactly: KEY-7. Of 40 unseen users at once, ten are
// let in; they stay in over a restart, the others stay out; a key's own user is
// not counted.
func TestMaxUsersBoundsNamedUsersExactly(t *testing.T) {
	w := newWorld(t, pennyKey("max_users: 10\n", ", user: own, attribute_users: header"))
	user := func(i int) string { return "user-" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	answers := volley(40, 40, func(i int) answer { return w.chat(limitKey, "m", "X-Weir-User", user(i)) })
	if got := count(answers, 200); got != 10 {
		t.Fatalf("%d users were let in, want 10", got)
	}
	w.restart()
	for i, a := range answers {
		again := w.chat(limitKey, "m", "X-Weir-User", user(i))
		if again.status != a.status {
			t.Errorf("%s got %v, and %v after a restart", user(i), a, again)
		}
		if a.status != 200 {
			w.must(a, 400, "user_limit_reached")
		}
	}
	w.must(w.chat(limitKey, "m"), 200, "")
	w.balanced()
}

// TestANameThatIsNoneIsRefused: KEY-7, ERR-5. Two that differ, characters and
// lengths that no user has, and none where one is required; nothing is charged.
func TestANameThatIsNoneIsRefused(t *testing.T) {
	w := newWorld(t, pennyKey("", ", attribute_users: body, require_user: true"))
	for _, s := range []says{
		{"none", "", nil},
		{"session ids", `"metadata":{"user_id":"{\"session\":\"x\"}"}`, nil},
		{"an empty one", `"user":""`, nil},
		{"header and body differ", `"user":"ada"`, []string{"X-Weir-User", "bob"}},
		{"body and metadata differ", `"user":"ada","metadata":{"user_id":"bob"}`, nil},
		byHeader("a b"), byHeader("ä"), byHeader("a/b"), byHeader("*"), byBody("a b"), byMeta("ä"),
		byHeader(strings.Repeat("x", 129)), byBody(strings.Repeat("x", 129)),
	} {
		a := w.must(w.speak(limitKey, s), 400, "invalid_request")
		if !strings.Contains(a.body, `"type":"invalid_request_error"`) || a.header.Get("x-should-retry") != "false" {
			t.Errorf("%s: %v", s.name, a)
		}
	}
	for _, s := range []says{byHeader("a"), byBody(strings.Repeat("x", 128)), byMeta("Ada.L_1@example.org:a+b-c")} {
		w.must(w.speak(limitKey, s), 200, "")
	}
	w.must(w.do(context.Background(), http.MethodGet, "/v1/models", limitKey, ""), 200, "")
	if n := w.provider.Bill().Requests; n != 3 {
		t.Errorf("%d requests reached the provider, want 3", n)
	}
	w.balanced()
}

// TestTheKeysOwnUserSatisfiesARequiredOne: KEY-7.
func TestTheKeysOwnUserSatisfiesARequiredOne(t *testing.T) {
	w := newWorld(t, pennyKey("", ", user: own, attribute_users: header, require_user: true"))
	w.must(w.chat(limitKey, "m"), 200, "")
	if rows := w.usageByUser(); rows["own"] != 1 {
		t.Errorf("reports count %v", rows)
	}
}
