// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// plan finds a declared plan; nil: there is none of the name.
func (c *configuration) plan(name string) *tenant.Plan {
	for _, p := range c.plans {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func userName(n int) string { return fmt.Sprintf("u%d", n) }

// users is how many different ones requests name; 0 is nobody.
const users = 6

func teams() [3]string    { return [...]string{"", "red", "blue"} }
func projects() [3]string { return [...]string{"", "x", "y"} }
func zones() [5]string {
	return [...]string{"UTC", "America/Havana", "Asia/Kathmandu", "Pacific/Chatham", "Australia/Lord_Howe"}
}

// tags are what requests may carry, one a bit.
func tags(bits int) (list []string) {
	for n, tag := range [...]string{"ci", "env=prod"} {
		if bits>>n&1 == 1 {
			list = append(list, tag)
		}
	}
	return list
}

// declaredBudget is a budget as an operator wrote it. serial counts how often it
// came to count something else: the script's own word for what its epoch must be
// (BUD-4).
type declaredBudget struct {
	budget.Budget
	serial uint32
}

// declaredRule is a rate rule, in the same way (RAT-4).
type declaredRule struct {
	rule.Rule
	serial uint32
}

// kinds of a budget's window.
func windowKinds() [5]string {
	return [...]string{"short", "long", budget.Day, budget.Week, budget.Month}
}

func enforcements() [3]string { return [...]string{budget.Hard, budget.Guard, budget.Soft} }

const (
	// combinations of scope, window, metric, enforcement and narrowing.
	combinations = 6 * 5 * 2 * 3 * 3
	// stride walks through all of them from any one.
	stride      = 97
	budgetCount = 7
	ruleCount   = 4
)

// drawPlans makes two plans. Keys may be given a third that does not exist.
func drawPlans(random *rand.Rand) []*tenant.Plan {
	most := 900 + random.Int64N(1100)
	allowed := []string{modelName(0), modelName(freeModel), modelName(aliasOfDear)} // the dear one by its alias alone (KEY-5)
	return []*tenant.Plan{
		{ID: "pla_gold", Name: "gold"},
		{ID: "pla_silver", Name: "silver", MaxOutputTokens: &most, AllowedModels: &allowed},
	}
}

func drawBudgets(random *rand.Rand) []declaredBudget {
	list := make([]declaredBudget, 0, budgetCount)
	from := random.IntN(combinations)
	for i := range budgetCount {
		list = append(list, drawBudget(random, i, (from+i*stride)%combinations))
	}
	return list
}

// drawBudget draws what a combination leaves open.
func drawBudget(random *rand.Rand, number, combination int) declaredBudget {
	digit := func(base int) int {
		n := combination % base
		combination /= base
		return n
	}
	b := declaredBudget{serial: 1, Budget: budget.Budget{
		ID: fmt.Sprintf("b%d", number), Name: fmt.Sprintf("budget %c", 'a'+rune(random.IntN(26))), Epoch: 1,
		Scope: budget.Scopes()[digit(6)],
	}}
	b.setWindow(digit(5), random.IntN(1000))
	b.Metric = [...]string{budget.Spend, budget.Tokens}[digit(2)]
	b.Enforcement = enforcements()[digit(3)]
	b.narrow(digit(3), random.IntN(1000))
	b.Subject = drawSubject(random, string(b.Scope))
	b.setLimit(random.Int64N(1000))
	b.setWarnings(random.IntN(1000))
	perKey := b.Scope == budget.ScopeKey || b.Scope == budget.ScopePlan
	b.SkipMissingUsage = perKey && random.IntN(3) == 0
	b.Uncached = b.Metric == budget.Tokens && random.IntN(3) == 0
	if n := random.IntN(3); n > 0 {
		shrinks := n == 1
		b.Shrink = &shrinks
	}
	return b
}

// drawSubject is one subject of a scope or a rule's kind, or each separately.
func drawSubject(random *rand.Rand, scope string) string {
	each, n := random.IntN(2) == 0, 1+random.IntN(2)
	switch {
	case scope == string(budget.ScopeOrg):
		return ""
	case scope == string(budget.ScopePlan):
		return [...]string{"pla_gold", "pla_silver"}[n-1]
	case scope == string(rule.SubjectTag):
		return tags(n)[0]
	case each:
		return ""
	case scope == string(budget.ScopeTeam):
		return teams()[n]
	case scope == string(budget.ScopeProject):
		return projects()[n]
	case scope == string(budget.ScopeUser):
		return userName(n)
	default: // key, api_key
		return keyID(n - 1)
	}
}

func (b *declaredBudget) setWindow(kind, draw int) {
	b.Period, b.Zone, b.WindowMicros = "", "", 0
	switch kind {
	case 0:
		b.WindowMicros = [...]int64{10 * second, 30 * second, minute, 2 * minute}[draw%4]
	case 1:
		b.WindowMicros = [...]int64{5 * minute, hour, 7 * hour, 24 * hour}[draw%4]
	default:
		names := zones()
		b.Period, b.Zone = windowKinds()[kind], names[draw%len(names)]
	}
}

// windowKind names the window for the tally.
func (b *declaredBudget) windowKind() string {
	switch {
	case b.Period != "":
		return b.Period
	case b.WindowMicros <= 2*minute:
		return windowKinds()[0]
	default:
		return windowKinds()[1]
	}
}

func (b *declaredBudget) narrow(how, draw int) {
	b.Model, b.Provider = "", ""
	switch how {
	case 1:
		b.Model = modelName(draw % (models - 1)) // the alias too
	case 2:
		b.Provider = providerName(draw % realModels)
	default:
	}
}

// setLimit draws an amount: few requests, or many.
func (b *declaredBudget) setLimit(draw int64) {
	most := [...]int64{1, 2, 8, 40}[draw%4]
	if b.Metric == budget.Tokens {
		b.Limit = most * (1000 + 7*draw)
		return
	}
	b.Limit = most * (1 + draw) * int64(money.Dollar) / 10_000
}

func (b *declaredBudget) setWarnings(draw int) {
	b.WarnPercent = [...][]int64{nil, {50}, {80, 100}, {1, 25, 50, 75, 99, 100}}[draw%4]
}

// combination names what a budget is made of, for the tally.
func (b *declaredBudget) combination() string {
	narrowed := "all"
	switch {
	case b.Model != "":
		narrowed = "model"
	case b.Provider != "":
		narrowed = "provider"
	}
	return fmt.Sprintf("%s %s %s %s %s", b.Scope, b.windowKind(), b.Metric, b.Enforcement, narrowed)
}

func drawRules(random *rand.Rand) []declaredRule {
	list := make([]declaredRule, 0, ruleCount)
	for i := range ruleCount {
		r := declaredRule{serial: 1, Rule: rule.Rule{
			ID: fmt.Sprintf("r%d", i), Name: fmt.Sprintf("rule %c", 'a'+rune(random.IntN(26))), Epoch: 1, Enabled: random.IntN(5) > 0,
			SubjectKind: rule.Subjects()[random.IntN(6)], Metric: [...]string{rule.Requests, rule.Tokens}[random.IntN(2)],
		}}
		r.SubjectID = drawSubject(random, string(r.SubjectKind))
		if random.IntN(3) == 0 {
			r.Model = modelName(random.IntN(models - 1))
		}
		r.setWindow(random.IntN(1000))
		if r.Metric == rule.Tokens {
			r.EstimateInput, r.Uncached = random.IntN(3) == 0, random.IntN(3) == 0
		}
		r.setLimit(random.Int64N(1000))
		list = append(list, r)
	}
	return list
}

func (r *declaredRule) setWindow(draw int) {
	r.WindowSeconds = [...]int64{1, 10, 60, 420, 3600, 86_400}[draw%6]
}

func (r *declaredRule) setLimit(draw int64) {
	if r.Metric == rule.Requests {
		r.Limit = [...]int64{1, 5, 60, 120, 150, 1000}[draw%6]
		return
	}
	r.Limit = [...]int64{3, 20, 200}[draw%3] * (1000 + draw)
}
