// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/tenant"
)

// BenchmarkAdmissionAmongMany shows that an admission costs what applies to its
// request: among 100,000 users that have been seen and have budgets of their own,
// and 200 rules, as much as with one of each.
func BenchmarkAdmissionAmongMany(b *testing.B) {
	for _, users := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("users=%d", users), func(b *testing.B) { amongMany(b, users) })
	}
}

func amongMany(b *testing.B, users int) {
	ws, key := tenant.NewWorkspace("ws_a", "acme"), &tenant.Key{ID: "key_1", Name: "ci", Team: "t0", AttributeUsers: tenant.AttributeHeader}
	budgets := []*budget.Budget{{
		ID: "bud_each", Name: "each", Scope: budget.ScopeUser, Metric: budget.Spend, Limit: 1e15, Period: budget.Month, Enforcement: budget.Hard,
	}}
	for i := range users {
		budgets = append(budgets, &budget.Budget{
			ID: fmt.Sprintf("bud_%d", i), Name: "own", Scope: budget.ScopeUser, Subject: fmt.Sprintf("u%d", i), Metric: budget.Tokens,
			Limit: 1e15, Period: budget.Day, Enforcement: budget.Hard,
		})
	}
	var rules []*rule.Rule
	for i := range min(users, rule.MaxRules) {
		rules = append(rules, &rule.Rule{
			ID: fmt.Sprintf("rat_%d", i), Name: "r", SubjectKind: rule.SubjectTeam, SubjectID: fmt.Sprintf("t%d", i), Metric: rule.Tokens,
			WindowSeconds: 60, Limit: 1e12, Enabled: true,
		})
	}
	set, err := limit.NewSet(ws.ID, nil, budgets, rules)
	if err != nil {
		b.Fatal(err)
	}
	w := &world{ws: ws}
	snapshot := admit.NewSnapshot(0, ws, time.UTC, set, []*admit.Target{w.target("big", row("big", "1", "10"))})
	book, made := memory.New(memory.Options{Clock: clock.NewManual(start)}), 0
	request := chat("big")
	cycle := func(user string) {
		made++
		var random [10]byte
		binary.BigEndian.PutUint64(random[2:], uint64(made))
		p := admit.Build(admit.Request{
			ID: ledger.NewID(start, random), Key: key, Call: request, Snapshot: snapshot, Who: admit.Attribution{User: user},
			Process: "p1", HoldMicros: 1800 * second,
		})
		p.Op.Name(start)
		results, err := book.Apply(context.Background(), []*ledger.Op{p.Op})
		if err != nil || results[0].Verdict != ledger.Admitted {
			b.Fatalf("%v %+v", err, results)
		}
		ended := admit.Settle(results[0].Reservation, &p.Targets[0], admit.Ending{Outcome: "not_sent"})
		if _, err := book.Apply(context.Background(), []*ledger.Op{ended.Op}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range users {
		cycle(fmt.Sprintf("u%d", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		cycle("u0")
	}
}
