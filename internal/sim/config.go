// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

// models is how many model names clients ask for. The last one does not exist.
const (
	models    = 4
	freeModel = 2
)

// rates are the models' prices, input and output, in nano-dollars a token.
func rates(model int) (input, output int64) {
	switch model {
	case 0:
		return 1_000, 4_000
	case 1:
		return 15_000, 75_000
	default:
		return 0, 0
	}
}

func modelName(n int) string { return fmt.Sprintf("m%d", n) }

func targets() []*admit.Target {
	provider := route.NewProvider("p", "p")
	list := make([]*admit.Target, 0, models-1)
	for n := range models - 1 {
		input, output := rates(n)
		in, out := money.PerMillion(input*1_000_000), money.PerMillion(output*1_000_000)
		row := &price.Row{Model: modelName(n), Input: &in, Output: &out}
		if n == freeModel {
			row = &price.Row{Model: modelName(n), Free: true}
		}
		list = append(list, &admit.Target{
			Model: &route.Model{
				ID: modelName(n), Name: modelName(n), Provider: "p", Upstream: modelName(n), ContextTokens: 60_000, MaxOutputTokens: 1500,
			},
			Provider: provider, Price: row.Seal(),
		})
	}
	return list
}

// configuration is one workspace's at one generation. It is never changed, only
// replaced by a changed copy.
type configuration struct {
	snapshot *admit.Snapshot
	keys     [keys]*tenant.Key
	budgets  []budget
}

// budget is a limit with fixed windows, or a rate rule. It becomes a check here
// whatever the families that are compiled elsewhere do; the ledger's side of it is
// the real one.
type budget struct {
	id     string
	metric ledger.Metric
	mode   ledger.Mode
	amount int64
	window window.Spec
	perKey bool
	model  string // narrowed to it: a candidate's own check
	// rule: its window slides. An input rule asks for the input estimate alone.
	rule bool
}

func (c *configuration) workspace() *tenant.Workspace { return c.snapshot.Workspace }

// begin draws the configuration that a workspace starts with.
func begin(shape uint64, number int) *configuration {
	random := rand.New(rand.NewPCG(shape, uint64(number)))
	w := tenant.NewWorkspace(fmt.Sprintf("w%d", number), fmt.Sprintf("w%d", number))
	w.Funds = []string{tenant.Open, tenant.Prepaid, tenant.PrepaidHold}[random.IntN(3)]
	w.CreditLine = money.Nanos(random.Int64N(5)) * money.Dollar
	c := &configuration{budgets: drawBudgets(random)}
	for i := range c.keys {
		c.keys[i] = &tenant.Key{ID: fmt.Sprintf("k%d", i), Name: fmt.Sprintf("k%d", i)}
	}
	c.snapshot = admit.NewSnapshot(1, w, time.UTC, nil, targets())
	for change := range changeKinds {
		if change == ChangeZone || change == ChangeStatus || change == ChangeFunds || change == ChangeBudget {
			continue
		}
		for key := range keys {
			c = c.changed(&Event{Change: change, Amount: random.Int64N(1000), Request: Request{Key: key}}, 1)
		}
	}
	return c
}

func drawBudgets(random *rand.Rand) []budget {
	day := window.Spec{Period: window.PeriodDay, Zone: time.UTC}
	if zone, err := window.Zone("America/Havana"); err == nil {
		day.Zone = zone
	}
	cents := func(most int64) int64 { return (1 + random.Int64N(most)) * int64(money.Dollar) / 100 }
	return []budget{
		{id: "hour", metric: ledger.Spend, mode: ledger.Reserve, amount: cents(100), window: window.Spec{Length: hour}, perKey: true},
		{id: "tokens", metric: ledger.Tokens, mode: ledger.Reserve, amount: 2000 + random.Int64N(40_000), window: window.Spec{Length: 5 * minute}},
		{id: "day", metric: ledger.Spend, mode: ledger.Observe, amount: cents(500), window: day},
		{id: "soft", metric: ledger.Spend, mode: ledger.Track, amount: cents(10), window: window.Spec{Length: minute}, perKey: true},
		{id: "dear", metric: ledger.Spend, mode: ledger.Reserve, amount: cents(50), window: window.Spec{Length: 10 * minute}, model: modelName(1)},
		{
			id: "requests", metric: ledger.Requests, mode: ledger.Take, amount: []int64{5, 60, 120, 150}[random.IntN(4)],
			window: window.Spec{Length: minute}, perKey: true, rule: true,
		},
		{id: "rate", metric: ledger.Tokens, mode: ledger.Take, amount: 4000 + random.Int64N(90_000), window: window.Spec{Length: 7 * minute}, rule: true},
		{id: "input", metric: ledger.Input, mode: ledger.Take, amount: 3000 + random.Int64N(20_000), window: window.Spec{Length: 10 * second}, rule: true},
		{
			id: "sent", metric: ledger.Requests, mode: ledger.Take, amount: 1 + random.Int64N(20), window: window.Spec{Length: hour},
			model: modelName(1), rule: true,
		},
	}
}

// changed applies an operator's change.
func (c *configuration) changed(e *Event, generation int64) *configuration {
	next := *c
	w, key := *c.workspace(), *c.keys[e.Key]
	limit := func(values ...int64) *int64 { return &values[e.Amount%int64(len(values))] }
	switch e.Change {
	case ChangeKeyRPM:
		key.Limits.RPM = limit(0, 2, 10, 60, 600)
	case ChangeKeyTPM:
		key.Limits.TPM = limit(0, 2500, 30_000, 1_000_000)
	case ChangeKeyConcurrency:
		key.Limits.Concurrency = limit(0, 1, 3, 10, 100)
	case ChangeWorkspaceRPM:
		w.Limits.RPM = limit(0, 5, 30, 300, 1000)
	case ChangeWorkspaceConcurrency:
		w.Limits.Concurrency = limit(0, 2, 8, 30, 100)
	case ChangeCap:
		spend := money.Nanos(*limit(0, 5, 50, 500, 5000)) * money.Dollar / 100
		week := 3 * spend
		key.Caps = tenant.Caps{Day: &spend, SevenDay: &week}
	case ChangeZone:
		names := [...]string{"UTC", "America/Havana", "Asia/Kathmandu", "Pacific/Chatham", "Australia/Lord_Howe"}
		w.Zone = names[e.Amount%int64(len(names))]
		w.Adopt(c.workspace())
	case ChangeFunds:
		w.Funds = [...]string{tenant.Open, tenant.Prepaid, tenant.PrepaidHold}[e.Amount%3]
	case ChangeBudget:
		next.budgets = append([]budget{}, c.budgets...)
		b := &next.budgets[e.Amount%int64(len(next.budgets))]
		b.amount = b.amount/2 + b.amount*(e.Amount%7)/4 + 1
	case ChangeStatus:
		key.Disabled = e.Amount%5 == 0
	case changeKinds:
	}
	next.keys[e.Key] = &key
	zone, err := window.Zone(w.Zone)
	if err != nil {
		zone = time.UTC
	}
	next.snapshot = admit.NewSnapshot(generation, &w, zone, nil, targets())
	return &next
}

// budgetChecks are the checks of a key's budgets: all models', and those of one.
func (c *configuration) budgetChecks(key *tenant.Key, model string) []ledger.Check {
	var list []ledger.Check
	for i := range c.budgets {
		b := &c.budgets[i]
		if b.model != model {
			continue
		}
		check := ledger.Check{
			Counter: ledger.Counter{Workspace: c.workspace().ID, Limit: "budget." + b.id, Epoch: 1},
			Kind:    ledger.KindFixed, Mode: b.mode, Wants: b.metric, Charges: b.metric, Amount: b.amount, Window: b.window,
			Code: fault.BudgetExceeded, Name: b.id, Scope: "workspace", Origin: "script",
		}
		if b.rule {
			check.Kind, check.Code = ledger.KindSliding, fault.RateLimited
			check.Charges = ledger.Tokens
			if b.metric == ledger.Requests {
				check.Charges = ledger.MetricNone
			}
		}
		if b.perKey {
			check.Counter.Subject, check.Scope = key.ID, "key"
		}
		list = append(list, check)
	}
	return list
}
