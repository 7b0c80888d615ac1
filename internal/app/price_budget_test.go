// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/simulator"
)

// TestAModelWithoutAPriceRunsWhereNoSpendIsLimited: PRC-3, for every family,
// scope and enforcement.
func TestAModelWithoutAPriceRunsWhereNoSpendIsLimited(t *testing.T) {
	const refused = "model_unpriced"
	type unpriced struct{ name, settings, key, code string }
	cases := []unpriced{
		{"nothing", "", "", ""},
		{"a cap", "", `, caps: {day: "1"}`, refused},
		{"prepaid", "funds: prepaid\n", "", refused},
		{"runtime limits and rules", "limits: {rpm: 100, tpm: 10000}\nrate_limits: [{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 1000}]\n", "", ""},
		{"a budget on another model", `budgets: [{name: b, scope: org, metric: spend, limit: "1", period: day, enforcement: hard, model: priced}]` + "\n", "", ""},
		{"a budget on the model", `budgets: [{name: b, scope: org, metric: spend, limit: "1", period: day, enforcement: hard, model: m}]` + "\n", "", refused},
		{"a budget on the provider", `budgets: [{name: b, scope: org, metric: spend, limit: "1", period: day, enforcement: guard, provider: sim}]` + "\n", "", refused},
		{"A's block", "", `, budgets: [{name: b, metric: spend, limit: "1", window: 1h, on_exceeded: block}]`, refused},
		{"A's record", "", `, budgets: [{name: b, metric: spend, limit: "1", window: 1h, on_exceeded: record}]`, ""},
		{"another team's", `budgets: [{name: b, scope: team, subject: other, metric: spend, limit: "1", period: day}]` + "\n", "", ""},
	}
	for _, scope := range []string{"org", "team", "project", "user", "key"} {
		for _, c := range []struct{ metric, enforcement, code string }{
			{`spend, limit: "1"`, "hard", refused},
			{`spend, limit: "1"`, "guard", refused},
			{`spend, limit: "1"`, "soft", ""},
			{"tokens, limit: 10000", "hard", ""},
			{"tokens, limit: 10000", "guard", ""},
			{"tokens, limit: 10000", "soft", ""},
		} {
			cases = append(cases, unpriced{scope + " " + c.metric + " " + c.enforcement, "budgets: [{name: b, scope: " + scope + ", metric: " + c.metric + ", period: day, enforcement: " + c.enforcement + "}]\n", "", c.code})
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.settings+`
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 50}
  - {name: priced, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 50, price: {input: "1", output: "1"}}
keys:
  - {name: k, secret: `+limitKey+", team: t, project: j, user: u"+c.key+`}
`)
			if strings.HasPrefix(c.name, "prepaid") {
				w.fund("1")
			}
			status := map[bool]int{true: 200, false: 400}[c.code == ""]
			a := w.must(w.chat(limitKey, "m"), status, c.code)
			if status == 200 {
				if shown := w.shown(a); shown.End == nil || len(shown.End.Marks) != 1 || shown.End.Marks[0] != "unpriced" || shown.Spend != "0" {
					t.Errorf("the record says %+v", shown.End)
				}
			}
			w.must(w.chat(limitKey, "priced"), 200, "")
			w.rest(limitKey)
			w.balanced()
		})
	}
}

// TestAFreeModelPassesSpentMoneyAndNoSpentTokens: PRC-4, BR-011. Caps and budgets
// of spend that are spent refuse the dear model and not the free one, nor the
// list of models; budgets and rules of tokens refuse both; funds refuse both.
func TestAFreeModelPassesSpentMoneyAndNoSpentTokens(t *testing.T) {
	hard := func(scope, enforcement string) string {
		return "budgets: [{name: b, scope: " + scope + `, metric: spend, limit: "0.01", period: day, enforcement: ` + enforcement + "}]\n"
	}
	for _, c := range []struct {
		name, settings, key, code string
		free                      int
	}{
		{"org hard", hard("org", "hard"), "", "budget_exceeded", 200},
		{"team guard", hard("team", "guard"), "", "budget_exceeded", 200},
		{"user hard", hard("user", "hard"), "", "budget_exceeded", 200},
		{"key guard", hard("key", "guard"), "", "budget_exceeded", 200},
		{"on the provider", `budgets: [{name: b, scope: org, metric: spend, limit: "0.01", period: day, provider: sim}]` + "\n", "", "budget_exceeded", 200},
		{"caps", "", `, caps: {day: "0.01", thirty_day: "0.01"}`, "day_limit_reached", 200},
		{"tokens hard", "budgets: [{name: b, scope: org, metric: tokens, limit: 61, period: day, enforcement: hard}]\n", "", "budget_exceeded", 429},
		{"tokens guard", "budgets: [{name: b, scope: key, metric: tokens, limit: 61, period: day, enforcement: guard}]\n", "", "budget_exceeded", 429},
		{"a token rule", "rate_limits: [{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 61}]\n", "", "rate_limited", 429},
		{"prepaid", "funds: prepaid\n", "", "insufficient_balance", 402},
		{"prepaid_hold", "funds: prepaid_hold\n", "", "insufficient_balance", 402},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, penny+`  - {name: free, provider: sim, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: free}
`+c.settings+"keys:\n  - {name: k, secret: "+limitKey+", team: t, user: u"+c.key+"}\n")
			if strings.HasPrefix(c.name, "prepaid") {
				w.fund("0.01")
			}
			w.must(w.chat(limitKey, "m"), 200, "")
			if a := w.chat(limitKey, "m"); a.code() != c.code {
				t.Fatalf("the dear one got %v, want %s", a, c.code)
			}
			for range 2 {
				if a := w.chat(limitKey, "free"); a.status != c.free || a.status != 200 && a.code() != c.code {
					t.Fatalf("the free one got %v, want %d", a, c.free)
				}
			}
			for _, path := range []string{"/v1/models", "/v1/key"} {
				w.must(w.do(context.Background(), http.MethodGet, path, limitKey, ""), 200, "")
			}
			w.rest(limitKey)
			w.balanced()
		})
	}
}

// TestABudgetHoldsTheWholeWorstCase: EST-1 to EST-3, BR-021, BR-027, BR-031,
// BR-034, RUN-2. Hard budgets and prices at which the estimate alone decides; a
// request above the whole of it is told that waiting does not help.
func TestABudgetHoldsTheWholeWorstCase(t *testing.T) {
	long := func(bytes int) string {
		return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", bytes) + `"}]}`
	}
	for _, c := range []struct {
		name, model, budget, body string
		status                    int
	}{
		// 100,000 + 7 tokens of input at 15, 4,096 of output at 75: 1.807305.
		{"a long prompt without a bound", `max_output_tokens: 4096, price: {input: "15", output: "75"}`, `metric: spend, limit: "1.807304"`, long(300_000), 429},
		{"and with just enough", `max_output_tokens: 4096, price: {input: "15", output: "75"}`, `metric: spend, limit: "1.807305"`, long(300_000), 200},
		{"a null price takes the broader one", `max_output_tokens: 10000, price: {input: "3", output: "15", cached_input: null, audio_input: null}`, `metric: spend, limit: "0.15"`, long(12), 429},
		{"and with just enough, too", `max_output_tokens: 10000, price: {input: "3", output: "15", cached_input: null}`, `metric: spend, limit: "0.150033"`, long(12), 200},
		// 27,000 bytes are 9,000 + 7; the model answers 8,192 at most.
		{"an inflated bound", `context_tokens: 65536, max_output_tokens: 8192, price: free`, "metric: tokens, limit: 17199", strings.Replace(long(27_000), `{"model"`, `{"max_tokens":65536,"model"`, 1), 200},
		{"and one token less", `context_tokens: 65536, max_output_tokens: 8192, price: free`, "metric: tokens, limit: 17198", strings.Replace(long(27_000), `{"model"`, `{"max_tokens":65536,"model"`, 1), 429},
		{"three completions", `max_output_tokens: 100, price: free`, "metric: tokens, limit: 311", strings.Replace(long(12), `{"model"`, `{"n":3,"model"`, 1), 200},
		{"and one token less again", `max_output_tokens: 100, price: free`, "metric: tokens, limit: 310", strings.Replace(long(12), `{"model"`, `{"n":3,"model"`, 1), 429},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "models:\n  - {name: m, provider: sim, upstream: \"sim?in=5&out=5\", "+c.model+"}\nbudgets: [{name: b, scope: org, "+c.budget+", period: day}]\nkeys:\n  - {name: k, secret: "+limitKey+"}\n")
			a := w.do(context.Background(), http.MethodPost, "/v1/chat/completions", limitKey, c.body)
			if a.status != c.status {
				t.Fatalf("got %v, want %d", a, c.status)
			}
			if a.status == 429 && (a.header.Get("x-should-retry") != "false" || a.header.Get("Retry-After") != "" || !strings.Contains(a.body, `"reason":"larger_than_limit"`)) {
				t.Errorf("told %v: %s", a.header, a.body)
			}
			if n := w.provider.Bill().Requests; n == 1 != (c.status == 200) {
				t.Errorf("%d requests reached the provider", n)
			}
			w.rest(limitKey)
		})
	}
}

// TestABoundIsWrittenOnlyWhereAHoldNeedsIt: EST-2, BR-033. Nobody demands an
// output bound of a client, and without a limit that holds the body stays as it
// came.
func TestABoundIsWrittenOnlyWhereAHoldNeedsIt(t *testing.T) {
	for _, c := range []struct {
		name, settings, key string
		bound               int64
	}{
		{"nothing", "", "", -1},
		{"rpm and tpm of input", "", ", limits: {rpm: 10, concurrency: 2}", -1},
		{"a rule of requests", "rate_limits: [{name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 10}]\n", "", -1},
		{"a cap, a guard and a soft budget", `budgets: [{name: a, scope: org, metric: spend, limit: "9", period: day, enforcement: guard}, {name: b, scope: org, metric: tokens, limit: 99999, period: day, enforcement: soft}]` + "\n", `, caps: {day: "9"}`, -1},
		{"a hard budget", `budgets: [{name: a, scope: org, metric: spend, limit: "9", period: day, enforcement: hard}]` + "\n", "", 4096},
		{"a rule of tokens", "rate_limits: [{name: r, subject_kind: org, metric: tokens, window_seconds: 60, limit: 99999}]\n", "", 4096},
		{"prepaid_hold", "funds: prepaid_hold\n", "", 4096},
		{"the key's maximum", "", ", max_output_tokens: 77", 77},
		{"a hard budget on another model", `budgets: [{name: a, scope: org, metric: spend, limit: "9", period: day, enforcement: hard, model: other}]` + "\n", "", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.settings+`
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "1"}}
  - {name: other, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "1"}}
keys:
  - {name: k, secret: `+limitKey+c.key+`}
`)
			seen := w.record()
			w.fund("5")
			w.must(w.chat(limitKey, "m"), 200, "")
			if bound, body := seen.last(); bound != c.bound {
				t.Errorf("the provider is asked for %d, want %d: %s", bound, c.bound, body)
			}
			w.balanced()
		})
	}
}

// TestAModelsBudgetIsOneUnderEveryName: BR-177, BR-004, BUD-1. Declared on the
// model or an alias, used by any name; other models do not move it.
func TestAModelsBudgetIsOneUnderEveryName(t *testing.T) {
	for _, declared := range []string{"claude-x", "bedrock/us.anthropic.claude-x-v1:0"} {
		for _, enforcement := range []string{"hard", "guard"} {
			w := newWorld(t, `
models:
  - {name: claude-x, aliases: ["bedrock/us.anthropic.claude-x-v1:0", big], provider: sim, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.01"}}
  - {name: other, provider: sim, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.01"}}
budgets: [{name: b, scope: user, subject: u, metric: spend, limit: "0.03", period: day, model: "`+declared+`", enforcement: `+enforcement+`}]
keys:
  - {name: k, secret: `+limitKey+`, user: u}
  - {name: second, secret: `+secondKey+`, user: v}
`)
			names := []string{"claude-x", "bedrock/us.anthropic.claude-x-v1:0", "big"}
			for i, name := range names {
				w.must(w.chat(limitKey, name), 200, "")
				w.must(w.chat(limitKey, "other"), 200, "")
				w.used(limitKey, "b", []string{"0.01", "0.02", "0.03"}[i])
			}
			for _, name := range names {
				w.must(w.chat(limitKey, name), 429, "budget_exceeded")
				w.must(w.chat(secondKey, name), 200, "")
			}
			w.must(w.chat(limitKey, "other"), 200, "")
			if l := w.limit(limitKey, "b"); l.Model != "claude-x" {
				t.Errorf("it is shown as narrowed to %q", l.Model)
			}
			w.balanced()
		}
	}
}

// TestAProvidersBudgetCountsAllThatGoesThere: BR-008 for this door, BUD-1. Models
// of the provider move it, whole and streamed; another provider's do not.
func TestAProvidersBudgetCountsAllThatGoesThere(t *testing.T) {
	w := newWorld(t, `
providers:
  - {name: p, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`}
  - {name: q, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`}
models:
  - {name: a, provider: p, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.02"}}
  - {name: b, provider: p, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.02"}}
  - {name: c, provider: q, upstream: "sim?in=11&out=50", max_output_tokens: 50, price: {input: "0", output: "0", per_request: "0.02"}}
budgets: [{name: b, scope: org, metric: spend, limit: "0.05", period: day, provider: p, enforcement: guard}]
keys:
  - {name: k, secret: `+limitKey+`}
  - {name: second, secret: `+secondKey+`}
`)
	w.must(w.chat(limitKey, "a"), 200, "")
	w.must(w.stream(secondKey, "b", ""), 200, "")
	w.must(w.chat(limitKey, "c"), 200, "")
	w.must(w.chat(limitKey, "b"), 200, "")
	w.used(limitKey, "b", "0.06")
	for _, model := range []string{"a", "b"} {
		w.must(w.chat(secondKey, model), 429, "budget_exceeded")
		w.must(w.stream(limitKey, model, ""), 429, "budget_exceeded")
	}
	w.must(w.chat(limitKey, "c"), 200, "")
	w.await("nobody", func(n simulator.Totals) bool { return n.InFlight == 0 })
	w.balanced()
}
