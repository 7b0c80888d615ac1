// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/money"
)

// family is one kind of limit.
type family struct {
	name string
	// workspace and key are its settings; %s is the amount.
	workspace, key string
	metric         string // spend, tokens, requests or slots; "": a policy, which counts nothing
	// exact: the amount is what the request costs; else it is ample.
	exact  bool
	status int // of its refusal; 0: it refuses nothing
	code   string
	// waits: the refusal says after how many seconds to come again (ERR-2); else
	// it says not to (ERR-3).
	waits bool
	// spares tells which modes pass although it is used up.
	spares func(m mode) bool
	has    func(m mode) bool
	// model and bound are what is asked for to be refused; "" and 0: the same again.
	model string
	bound int
}

func sparesNone(mode) bool { return false }

// sparesFree: what costs nothing is not refused for what is spent (PRC-4).
func sparesFree(m mode) bool { return m.counts() }

// limitFamilies are the layers of the matrix.
func limitFamilies() []family {
	list := []family{{name: "no limit"}}
	list = append(list, moneyFamilies()...)
	list = append(list, budgetFamilies()...)
	list = append(list, rateFamilies()...)
	list = append(list, policyFamilies()...)
	for i := range list {
		if list[i].spares == nil {
			list[i].spares = sparesNone
		}
		if list[i].has == nil {
			list[i].has = anyMode
		}
	}
	return list
}

func moneyFamilies() []family {
	return []family{
		{name: "prepaid funds", workspace: `, funds: prepaid, credit_line: %s`, metric: "spend", exact: true, status: 402, code: "insufficient_balance"},
		{name: "held funds", workspace: `, funds: prepaid_hold, credit_line: %s`, metric: "spend", status: 402, code: "insufficient_balance"},
		{name: "day cap", key: `, caps: {day: %s}`, metric: "spend", exact: true, status: 402, code: "day_limit_reached", spares: sparesFree},
		{name: "seven-day cap", key: `, caps: {seven_day: %s}`, metric: "spend", exact: true, status: 402, code: "seven_day_limit_reached", spares: sparesFree},
		{name: "thirty-day cap", key: `, caps: {thirty_day: %s}`, metric: "spend", exact: true, status: 402, code: "thirty_day_limit_reached", spares: sparesFree},
	}
}

func budgetFamilies() (list []family) {
	for _, scope := range []string{"org", "team", "project", "user", "key", "plan"} {
		for _, enforcement := range []string{"hard", "guard", "soft"} {
			for _, metric := range []string{"spend", "tokens"} {
				f := family{
					name: scope + " budget of " + metric + ", " + enforcement, metric: metric, exact: enforcement == "guard",
					status: 429, code: "budget_exceeded", spares: sparesFree,
				}
				budget := `{name: b, metric: ` + metric + `, limit: %s, period: day, enforcement: ` + enforcement
				switch scope {
				case "key":
					f.key = ", budgets: [" + budget + "}]"
				case "plan":
					f.workspace, f.key = ", plans: [{name: p, budgets: ["+budget+"}]}]", ", plan: p"
				default:
					f.workspace = ", budgets: [" + budget + ", scope: " + scope + "}]"
				}
				if enforcement == "soft" {
					f.status, f.code = 0, ""
				}
				list = append(list, f)
			}
		}
	}
	for narrowed, by := range map[string]string{"model": "%m", "provider": "%m"} {
		list = append(list, family{
			name: "budget of a " + narrowed, metric: "spend", status: 429, code: "budget_exceeded", spares: sparesFree,
			workspace: `, budgets: [{name: b, scope: org, metric: spend, limit: %s, period: day, enforcement: hard, ` + narrowed + ": " + by + "}]",
		})
	}
	return list
}

func rateFamilies() (list []family) {
	for _, layer := range []string{"api_key", "workspace"} {
		for metric, limit := range map[string]string{"requests": "rpm", "tokens": "tpm", "slots": "concurrency"} {
			f := family{
				name: layer + " " + limit, metric: metric, exact: metric != "tokens", status: 429, code: layer + "_" + limit + "_exceeded", waits: true,
			}
			if metric == "tokens" {
				f.spares = sparesFree
			}
			settings := ", limits: {" + limit + ": %s}"
			if layer == "api_key" {
				f.key = settings
			} else {
				f.workspace = settings
			}
			list = append(list, f)
		}
	}
	for _, subject := range []string{"org", "team", "project", "user", "api_key", "model"} {
		for _, metric := range []string{"requests", "tokens"} {
			f := family{name: subject + " rule of " + metric, metric: metric, exact: metric == "requests", status: 429, code: "rate_limited", waits: true}
			if metric == "tokens" {
				f.spares = sparesFree
			}
			kind := strings.Replace(subject, "model", "org, model: %m", 1)
			f.workspace = ", rate_limits: [{name: b, subject_kind: " + kind + ", metric: " + metric + ", window_seconds: 60, limit: %s}]"
			list = append(list, f)
		}
	}
	return list
}

func policyFamilies() []family {
	return []family{
		{name: "allowed models", key: ", allowed_models: [%m]", status: 400, code: "model_not_allowed", model: "other"},
		{
			name: "the key's output bound", key: ", max_output_tokens: 100", status: 400, code: "max_output_tokens_exceeded", bound: 101,
			has: func(m mode) bool { return outputMember(m.route.Door) != "" },
		},
		{name: "prices", key: `, caps: {day: "100"}`, metric: "", status: 400, code: "model_unpriced", model: "bare", spares: sparesFree},
	}
}

const (
	ampleSpend  = money.Nanos(2_000_000)
	ampleTokens = 5_000
)

// amount is what the limit is set to for a request that costs so much.
func (f *family) amount(cost money.Nanos, tokens int64) string {
	switch {
	case f.metric == "spend" && f.exact:
		return strconv.Quote(max(1, cost).String())
	case f.metric == "spend":
		return strconv.Quote(ampleSpend.String())
	case f.metric == "tokens" && f.exact:
		return fmt.Sprint(max(1, tokens))
	case f.metric == "tokens":
		return fmt.Sprint(ampleTokens)
	default:
		return "1"
	}
}

// item declares a cell's workspace with its one key.
func (f *family) item(name, secret, model string, cost money.Nanos, tokens int64) string {
	fill := strings.NewReplacer("%s", f.amount(cost, tokens), "%m", model)
	return "  - {name: " + name + fill.Replace(f.workspace) + ", keys: [{name: k, secret: " + secret +
		", team: t, project: j, user: u" + fill.Replace(f.key) + "}]}\n"
}
