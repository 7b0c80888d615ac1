// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/simulator"
)

// fourCents is a model of which each request holds and costs exactly $0.04, and
// holds and uses 61 tokens: 11 of the prompt, 50 of output.
const fourCents = `
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.04"}}
`

// together sends requests all at once, while the provider holds every one that
// reaches it, and returns the answers once the refused ones are decided.
func (w *world) together(n, admitted int, send func(i int) answer) []answer {
	w.t.Helper()
	w.provider.Hold()
	done := make(chan []answer, 1)
	decided := make(chan struct{}, n)
	go func() {
		done <- volley(n, n, func(i int) answer {
			a := send(i)
			decided <- struct{}{}
			return a
		})
	}()
	for range n - admitted {
		<-decided
	}
	w.await("every admitted request", func(t simulator.Totals) bool { return t.Held == int64(admitted) })
	w.provider.Release()
	return <-done
}

// TestAHardBudgetAdmitsExactlyWhatFits: of 64 requests at once that each hold
// $0.04, two fit $0.10. BUD-2, BR-021, BR-025.
func TestAHardBudgetAdmitsExactlyWhatFits(t *testing.T) {
	for _, c := range []struct{ name, budget, key string }{
		{"of the workspace", `{name: b, scope: org, metric: spend, limit: "0.10", period: day}`, ""},
		{"of a team", `{name: b, scope: team, subject: t, metric: spend, limit: "0.10", period: week}`, ""},
		{"of each project", `{name: b, scope: project, metric: spend, limit: "0.10", period: month, time_zone: Asia/Kathmandu}`, ""},
		{"of a user", `{name: b, scope: user, metric: spend, limit: "0.10", window: 1h}`, ""},
		{"of a key", `{name: b, scope: key, subject: k, metric: spend, limit: "0.10", window: 30d, enforcement: hard}`, ""},
		{"of tokens", `{name: b, scope: org, metric: tokens, limit: 182, period: day}`, ""},
		{"of tokens of each key", `{name: b, scope: key, metric: tokens, limit: 122, period: day, enforcement: hard}`, ""},
		{"on the model", `{name: b, scope: org, metric: spend, limit: "0.10", period: day, model: m}`, ""},
		{"on the provider", `{name: b, scope: org, metric: tokens, limit: 122, period: day, provider: sim}`, ""},
		{"with the key", "", `budgets: [{name: b, metric: spend, limit: "0.10", window: 24h, enforcement: hard}]`},
		{"of its plan", "", `plan: p`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fourCents + "plans:\n  - {name: p, budgets: [{name: b, metric: spend, limit: \"0.10\", period: day, enforcement: hard}]}\n"
			if c.budget != "" {
				text += "budgets:\n  - " + c.budget + "\n"
			}
			key := "name: k, secret: " + raceKey + ", team: t, project: j, user: u"
			if c.key != "" {
				key += ", " + c.key
			}
			w := newWorld(t, text+"keys:\n  - {"+key+"}\n")
			answers := w.together(64, 2, func(int) answer { return w.chat(raceKey, "m") })
			if got := count(answers, 200); got != 2 {
				t.Fatalf("admitted %d, want exactly 2", got)
			}
			for _, a := range answers {
				if a.status != 200 {
					w.must(a, 429, "budget_exceeded")
					if a.header.Get("Retry-After") != "5" || !strings.Contains(a.body, `"reason":"held"`) {
						t.Fatalf("only holds are in the way: %v", a)
					}
				}
			}
			if n := w.provider.Bill().Requests; n != 2 {
				t.Fatalf("%d requests reached the provider", n)
			}
			w.balanced()
			w.idle()
		})
	}
}

// idle checks that nothing is held and no slot is taken.
func (w *world) idle() {
	w.t.Helper()
	w.quiet()
	for _, key := range []string{raceKey} {
		a := w.must(w.do(context.Background(), http.MethodGet, "/v1/key", key, ""), 200, "")
		for _, l := range parseLimits(w.t, a.body) {
			if l.Held != "0" {
				w.t.Fatalf("%s of %s holds %s at rest", l.Name, l.Scope, l.Held)
			}
		}
	}
}

// TestFiftyUsersEachHaveTheirBudget: of 200 requests at once, four of each of
// fifty users who were never seen before, two of each fit. BUD-2, KEY-7, BR-002.
func TestFiftyUsersEachHaveTheirBudget(t *testing.T) {
	const users, each = 50, 4
	w := newWorld(t, fourCents+`
budgets:
  - {name: each, scope: user, metric: spend, limit: "0.10", period: month}
keys:
  - {name: k, secret: `+raceKey+`, attribute_users: header}
`)
	answers := w.together(users*each, users*2, func(i int) answer {
		return w.chat(raceKey, "m", "X-Weir-User", fmt.Sprintf("user-%d", i%users))
	})
	for user := range users {
		admitted := 0
		for i := user; i < len(answers); i += users {
			if answers[i].status == 200 {
				admitted++
			} else {
				w.must(answers[i], 429, "budget_exceeded")
			}
		}
		if admitted != 2 {
			t.Errorf("user %d: %d admitted, want exactly 2", user, admitted)
		}
	}
	w.balanced()
}

// TestNestedBudgetsAdmitExactlyWhatFitsAllOfThem: keys of several teams, projects
// and users under budgets of five scopes, in random mixtures. No budget is ever
// passed, and nobody is refused while all of his had room. BUD-2, ORD-2.
func TestNestedBudgetsAdmitExactlyWhatFitsAllOfThem(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { nestedBudgets(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

// nestedKey is a key with the budgets that bound it, by their names.
type nestedKey struct {
	secret  string
	budgets []string
}

func nestedBudgets(t *testing.T, random *rand.Rand) {
	const requests = 48
	room := map[string]int{} // requests that each budget's subject has room for
	text := fourCents + "budgets:\n"
	for _, scope := range []string{"org", "team", "project", "user", "key"} {
		if random.IntN(4) == 0 {
			continue
		}
		fits := 1 + random.IntN(9)
		metric, limit := "spend", fmt.Sprintf("\"0.%02d\"", fits*4+3)
		if random.IntN(2) == 0 {
			metric, limit = "tokens", fmt.Sprint(fits*61+random.IntN(61))
		}
		text += fmt.Sprintf("  - {name: %s, scope: %s, metric: %s, limit: %s, period: day, enforcement: hard}\n", scope, scope, metric, limit)
		room[scope] = fits
	}
	if len(room) == 0 {
		room["org"] = 5
		text += "  - {name: org, scope: org, metric: tokens, limit: 305, period: day}\n"
	}
	var keys []nestedKey
	text += "keys:\n"
	for i := range 4 {
		team, project, user := random.IntN(2), random.IntN(2), random.IntN(3)
		k := nestedKey{secret: fmt.Sprintf("the-secret-of-nested-key-%d", i)}
		for scope, subject := range map[string]int{"org": 0, "team": team, "project": project, "user": user, "key": i} {
			if _, ok := room[scope]; ok {
				k.budgets = append(k.budgets, fmt.Sprintf("%s/%d", scope, subject))
			}
		}
		keys = append(keys, k)
		text += fmt.Sprintf("  - {name: k%d, secret: %s, team: t%d, project: j%d, user: u%d}\n", i, k.secret, team, project, user)
	}
	w := newWorld(t, text)
	answers := volley(requests, requests, func(i int) answer { return w.chat(keys[i%len(keys)].secret, "m") })
	used, refused := map[string]int{}, map[int]bool{}
	for i, a := range answers {
		if a.status != 200 {
			w.must(a, 429, "budget_exceeded")
			refused[i%len(keys)] = true
			continue
		}
		for _, b := range keys[i%len(keys)].budgets {
			used[b]++
		}
	}
	for b, n := range used {
		scope, _, _ := strings.Cut(b, "/")
		if n > room[scope] {
			t.Errorf("budget %s admitted %d, it has room for %d", b, n, room[scope])
		}
	}
	for i := range refused {
		full := false
		for _, b := range keys[i].budgets {
			scope, _, _ := strings.Cut(b, "/")
			full = full || used[b] == room[scope]
		}
		if !full {
			t.Errorf("key %d was refused while all its budgets %v had room: %v", i, keys[i].budgets, used)
		}
	}
	w.balanced()
}
