// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

// Clients ask for models by so many names: the real ones, an alias of the dear
// one, and one that does not exist.
const (
	realModels   = 3
	dearModel    = 1
	freeModel    = 2
	aliasOfDear  = 3
	models       = 5
	modelTokens  = 1500 // the most that one answers
	modelContext = 60_000
)

// rates are the models' prices in nano-dollars a token: input, cached input and
// output.
func rates(model int) (input, cached, output int64) {
	switch model {
	case 0:
		return 1_000, 1_000, 4_000 // no price for cached input: that of input
	case dearModel:
		return 15_000, 1_500, 75_000
	default:
		return 0, 0, 0
	}
}

func modelName(n int) string {
	if n == aliasOfDear {
		return "dear"
	}
	return fmt.Sprintf("m%d", n)
}

// modelOf is the model that a name leads to; -1: none.
func modelOf(name int) int {
	switch {
	case name == aliasOfDear:
		return dearModel
	case name < realModels:
		return name
	default:
		return -1
	}
}

// providerName: the dear model has one of its own.
func providerName(model int) string {
	if model == dearModel {
		return "q"
	}
	return "p"
}

func keyID(n int) string { return fmt.Sprintf("k%d", n) }

func targets() []*admit.Target {
	list := make([]*admit.Target, 0, realModels)
	for n := range realModels {
		perMillion := func(nanos int64) *money.PerMillion {
			rate := money.PerMillion(nanos * 1_000_000)
			return &rate
		}
		input, cached, output := rates(n)
		row := &price.Row{Model: modelName(n), Input: perMillion(input), Output: perMillion(output)}
		m := &route.Model{
			ID: modelName(n), Name: modelName(n), Provider: providerName(n), Upstream: modelName(n),
			ContextTokens: modelContext, MaxOutputTokens: modelTokens,
		}
		switch n {
		case freeModel:
			row = &price.Row{Model: modelName(n), Free: true}
		case dearModel:
			row.CachedInput, m.Aliases = perMillion(cached), []string{modelName(aliasOfDear)}
		default:
		}
		list = append(list, &admit.Target{Model: m, Provider: route.NewProvider(providerName(n), providerName(n)), Price: row.Seal()})
	}
	return list
}

// configuration is one workspace's at one generation: what was declared, and the
// snapshot that the product made of it. It is never changed, only replaced by a
// changed copy.
type configuration struct {
	snapshot *admit.Snapshot
	keys     [keys]*tenant.Key
	plans    []*tenant.Plan
	budgets  []declaredBudget
	rules    []declaredRule
}

func (c *configuration) workspace() *tenant.Workspace { return c.snapshot.Workspace }

// begin draws the configuration that a workspace starts with.
func begin(shape uint64, number int) *configuration {
	random := rand.New(rand.NewPCG(shape, uint64(number)))
	w := tenant.NewWorkspace(fmt.Sprintf("w%d", number), fmt.Sprintf("w%d", number))
	w.Funds = []string{tenant.Open, tenant.Prepaid, tenant.PrepaidHold}[random.IntN(3)]
	w.CreditLine = money.Nanos(random.Int64N(5)) * money.Dollar
	w.ShrinkFloor = 16
	c := &configuration{plans: drawPlans(random), budgets: drawBudgets(random), rules: drawRules(random)}
	for i := range c.keys {
		key := &tenant.Key{ID: keyID(i), Name: keyID(i), User: [...]string{"", userName(1), userName(2)}[random.IntN(3)]}
		if i > 0 && random.IntN(2) == 0 {
			key.AttributeUsers = tenant.AttributeHeader
		}
		key.Plan = [...]string{"", "gold", "gold", "silver"}[random.IntN(4)]
		key.Team, key.Project = teams()[random.IntN(3)], projects()[random.IntN(3)]
		c.keys[i] = key
	}
	// Half of all have little but budgets, or those would seldom have the word.
	lean := random.IntN(2) == 0
	for i := range c.rules {
		c.rules[i].Enabled = c.rules[i].Enabled && !lean
	}
	c.declare(w, 1)
	for _, change := range initialChanges() {
		for key := range keys {
			amount := random.Int64N(1000)
			if lean && change <= ChangeCap {
				amount = 0 // unlimited
			}
			c = c.changed(&Event{Change: change, Amount: amount, Request: Request{Key: key}}, 1)
		}
	}
	return c
}

// declare has the product compile what is declared.
func (c *configuration) declare(w *tenant.Workspace, generation int64) {
	zone, err := window.Zone(w.Zone)
	if err != nil {
		zone = time.UTC
	}
	budgets, rules := make([]*budget.Budget, len(c.budgets)), make([]*rule.Rule, len(c.rules))
	for i := range c.budgets {
		budgets[i] = &c.budgets[i].Budget
	}
	for i := range c.rules {
		rules[i] = &c.rules[i].Rule
	}
	set, err := limit.NewSet(w.ID, c.plans, budgets, rules)
	if err != nil {
		set = nil // every request then lacks the limits that it should have
	}
	c.snapshot = admit.NewSnapshot(generation, w, zone, set, targets())
}
