// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
)

// TestALimitByReferenceIsTheInlineOne: BR-001, BUD-1. $30 a day, by whatever way it
// comes to the key, and $10 a request: three pass, the fourth does not.
func TestALimitByReferenceIsTheInlineOne(t *testing.T) {
	for _, enforcement := range []string{"hard", "guard"} {
		b := `metric: spend, limit: "30", period: day, enforcement: ` + enforcement + "}"
		for _, c := range []struct{ name, settings, key string }{
			{"inline", "", ", budgets: [{name: b, " + b + "]"},
			{"of the key", "budgets: [{name: b, scope: key, subject: k, " + b + "]\n", ""},
			{"of each key", "budgets: [{name: b, scope: key, " + b + "]\n", ""},
			{"with its plan", "plans: [{name: p, budgets: [{name: b, " + b + "]}]\n", ", plan: p"},
			{"of its plan", "plans: [{name: p}]\nbudgets: [{name: b, scope: plan, subject: p, " + b + "]\n", ", plan: p"},
			{"of its template's plan", "key_template: {plan: p}\nplans: [{name: p, budgets: [{name: b, " + b + "]}]\n", ""},
			{"of its team", "budgets: [{name: b, scope: team, subject: t, " + b + "]\n", ", team: t"},
			{"of its template's team", "key_template: {team: t}\nbudgets: [{name: b, scope: team, " + b + "]\n", ""},
			{"of the workspace", "budgets: [{name: b, scope: org, " + b + "]\n", ""}, // BR-006
		} {
			t.Run(c.name+" "+enforcement, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, strings.Replace(pennyKey(c.settings, c.key), `per_request: "0.01"`, `per_request: "10"`, 1))
				if n := w.admitted(limitKey, "m", "budget_exceeded"); n != 3 {
					t.Errorf("%d passed, want 3", n)
				}
				w.used(limitKey, "b", "30")
				w.balanced()
			})
		}
	}
}

// TestPlansCountTheirKeysApart: BR-001, SPEC section 1. A shared definition, a
// counter for each key; a key that changes its plan starts with the new one's.
func TestPlansCountTheirKeysApart(t *testing.T) {
	config := func(plan string) string {
		return penny + `plans:
  - {name: p, budgets: [{name: b, metric: spend, limit: "0.02", period: day, enforcement: hard}]}
  - {name: q, budgets: [{name: b, metric: spend, limit: "0.03", period: day, enforcement: hard}]}
keys:
  - {name: k, secret: ` + limitKey + ", plan: " + plan + `}
  - {name: second, secret: ` + secondKey + `, plan: p}
`
	}
	w := newWorld(t, config("p"))
	for _, key := range []string{limitKey, secondKey} {
		if n := w.admitted(key, "m", "budget_exceeded"); n != 2 {
			t.Errorf("%d passed, want 2", n)
		}
	}
	w.reload(config("q"), func() bool { return w.limit(limitKey, "b").Amount == "0.03" })
	if n := w.admitted(limitKey, "m", "budget_exceeded"); n != 3 {
		t.Errorf("%d passed on the other plan, want 3", n)
	}
	w.must(w.chat(secondKey, "m"), 429, "budget_exceeded")
	w.reload(config("p"), func() bool { return w.limit(limitKey, "b").Amount == "0.02" })
	w.must(w.chat(limitKey, "m"), 429, "budget_exceeded") // and back: nothing was forgotten
	w.balanced()
}

// TestAMoneyBudgetDoesNotRefillByItself: BR-015, BUD-3. $1 an hour, 20 requests of
// five cents within a minute: nothing is left half an hour later, all of it from
// the edge on.
func TestAMoneyBudgetDoesNotRefillByItself(t *testing.T) {
	for _, window := range []string{"window: 1h", "window: 60m", "window: 3600s"} {
		w := newWorldAt(t, at(t, "12:10:00"), strings.Replace(pennyKey(`budgets: [{name: b, scope: org, metric: spend, limit: "1", `+window+"}]\n", ""), `per_request: "0.01"`, `per_request: "0.05"`, 1))
		for range 20 {
			w.must(w.chat(limitKey, "m"), 200, "")
			w.clock.Advance(2 * time.Second)
		}
		for _, now := range []string{"12:11:00", "12:40:00", "12:59:59"} {
			w.clock.Set(at(t, now))
			w.must(w.chat(limitKey, "m"), 429, "budget_exceeded")
			if l := w.limit(limitKey, "b"); l.Remaining != "0" || l.ResetsAt != "2026-07-20T13:00:00Z" {
				t.Errorf("at %s %+v", now, l)
			}
		}
		w.clock.Set(at(t, "13:00:00"))
		if l := w.limit(limitKey, "b"); l.Remaining != "1" {
			t.Errorf("at the edge %+v", l)
		}
		w.must(w.chat(limitKey, "m"), 200, "")
		w.balanced()
	}
}

// TestOddAmountsAndWindowsAreNotTaken: BR-054, BR-050, MON-4, BUD-1. 400 each, and
// nothing is stored.
func TestOddAmountsAndWindowsAreNotTaken(t *testing.T) {
	w := newWorld(t, pennyKey("", ""))
	whole := func(fields string) string {
		return `{"name":"b","scope":"org","metric":"spend","enforcement":"hard",` + fields + "}"
	}
	for _, body := range []string{
		whole(`"limit":-7,"period":"day"`), whole(`"limit":0,"period":"day"`), whole(`"limit":1.5,"period":"day"`), whole(`"limit":1e309,"period":"day"`),
		whole(`"limit":"10","period":"day"`), whole(`"limit":null,"period":"day"`), whole(`"limit_usd":"-7","period":"day"`), whole(`"limit_usd":"NaN","period":"day"`),
		whole(`"limit_usd":"+Inf","period":"day"`), whole(`"limit_usd":"1e309","period":"day"`), whole(`"limit_usd":"10.1234567891","period":"day"`), whole(`"limit_usd":"0","period":"day"`),
		whole(`"limit_usd":"1000000000.01","period":"day"`), whole(`"limit":9223372036854775807,"period":"day"`), whole(`"period":"day"`),
		whole(`"limit":1,"period":"daily"`), whole(`"limit":1,"period":"Day"`), whole(`"limit":1,"period":"year"`), whole(`"limit":1,"period":"day","time_zone":"Nowhere/Town"`),
		whole(`"limit":1,"window":"1 d"`), whole(`"limit":1,"window":"24"`), whole(`"limit":1,"window":"9s"`), whole(`"limit":1,"window":"367d"`), whole(`"limit":1,"window":"1mo"`),
		whole(`"limit":1,"window":"-1h"`), whole(`"limit":1,"window":"1.5h"`), whole(`"limit":1,"window":"1D"`), whole(`"limit":1`), whole(`"limit":1,"period":"day","window":"1d"`),
		whole(`"limit":1,"period":"day","warn_percent":[0]`), whole(`"limit":1,"period":"day","warn_percent":[101]`),
	} {
		if !json.Valid([]byte(body)) {
			t.Fatalf("%s is no JSON", body)
		}
		var fields admin.BudgetFields
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			continue // the client itself does not take it
		}
		if made, err := w.admin.BudgetCreate(context.Background(), admin.BudgetCreateRequest{Body: fields}); err == nil {
			t.Errorf("%s made %+v", body, made)
		}
	}
	list, err := w.admin.BudgetList(context.Background(), admin.BudgetListRequest{})
	if err != nil || len(list.Budgets) != 0 {
		t.Errorf("budgets %+v (%v)", list.Budgets, err)
	}
	w.must(w.chat(limitKey, "m"), 200, "")
}

// TestAnAliasOfAnotherModelAllowsNothing: BR-170, KEY-5. The key may call big; fast
// is a name of small.
func TestAnAliasOfAnotherModelAllowsNothing(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: big, provider: sim, upstream: sim, price: free}
  - {name: small, aliases: [fast], provider: sim, upstream: sim, price: free}
plans: [{name: p, allowed_models: [big]}]
keys:
  - {name: k, secret: `+limitKey+`, allowed_models: [big]}
  - {name: second, secret: `+secondKey+`, plan: p}
`)
	for _, key := range []string{limitKey, secondKey} {
		for _, model := range []string{"fast", "small", "FAST", "big2", "none"} {
			w.must(w.chat(key, model), 400, "model_not_allowed")
		}
		w.must(w.chat(key, "big"), 200, "")
		if a := w.must(w.do(context.Background(), http.MethodGet, "/v1/models", key, ""), 200, ""); strings.Contains(a.body, "fast") || !strings.Contains(a.body, "big") {
			t.Errorf("the key is shown %s", a.body)
		}
	}
	if n := w.provider.Bill().Requests; n != 2 {
		t.Errorf("%d requests reached the provider", n)
	}
}

// TestTheOverrunOfABudgetIsChargedAndNotCarriedOver: RES-2, BUD-3, BR-048, BR-053.
// A provider that pays no heed to the bound: the charge is whole, the next is
// refused, and the next window begins at nothing.
func TestTheOverrunOfABudgetIsChargedAndNotCarriedOver(t *testing.T) {
	for _, enforcement := range []string{"hard", "guard"} {
		w := newWorld(t, `
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=500&unbounded", context_tokens: 128000, max_output_tokens: 50, price: {input: "1", output: "10"}}
budgets: [{name: b, scope: org, metric: spend, limit: "0.001", period: day, enforcement: `+enforcement+`}]
keys:
  - {name: k, secret: `+limitKey+`}
`)
		w.must(w.chat(limitKey, "m"), 200, "")
		w.used(limitKey, "b", "0.005011")
		w.must(w.chat(limitKey, "m"), 429, "budget_exceeded")
		w.clock.Set(instant(t, "2026-07-21T00:00:00Z"))
		w.used(limitKey, "b", "0")
		w.must(w.chat(limitKey, "m"), 200, "")
		w.settled("1", "10")
	}
}
