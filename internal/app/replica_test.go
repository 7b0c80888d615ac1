// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/simulator"
)

const replicaKey = "the-secret-of-the-key-of-replicas"

const replicaModel = `
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 50, price: {input: "1", output: "10"}}
`

// TestAKeyMadeOnOneReplicaWorksOnAllAtOnce: ADM-4, KEY-2.
func TestAKeyMadeOnOneReplicaWorksOnAllAtOnce(t *testing.T) {
	w := newSharedWorld(t, replicaModel)
	replicas := []*world{w, w.replica(), w.replica()}
	for i := range 6 {
		made, err := replicas[i%3].admin.KeyCreate(context.Background(), admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some(fmt.Sprintf("k%d", i))}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range replicas {
			r.must(r.chat(made.Secret, "m"), 200, "")
		}
	}
	w.settled("1", "10")
}

// changed is what may be changed on one program: afterwards the next request on
// any other is refused with the code.
type changed struct {
	name, code string
	status     int
	set, unset func(context.Context, *world) error
}

// TestAChangeOnOneReplicaHoldsForTheNextAdmissionOnEvery: ADM-4, BAL-4, BR-155.
// Every kind of limit, policies, keys, plans and funds; nobody waits.
func TestAChangeOnOneReplicaHoldsForTheNextAdmissionOnEvery(t *testing.T) {
	ctx := context.Background()
	w := newSharedWorld(t, replicaModel)
	others := []*world{w.replica(), w.replica(), w.replica()}
	if _, err := w.admin.PlanCreate(ctx, admin.PlanCreateRequest{Body: admin.PlanFields{Name: admin.Some("p")}}); err != nil {
		t.Fatal(err)
	}
	made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k"), Plan: admin.Some("p"), User: admin.Some("u")}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(what string, status int, code string) {
		t.Helper()
		for i, other := range others {
			if a := other.chat(made.Secret, "m"); a.status != status || a.code() != code {
				t.Fatalf("%s: replica %d answered %v, want %d %s", what, i, a, status, code)
			}
		}
	}
	send("at first", 200, "")
	for _, c := range changes() {
		if err := c.set(ctx, w); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		send(c.name, c.status, c.code)
		if err := c.unset(ctx, w); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		send("without "+c.name, 200, "")
	}
	w.settled("1", "10")
}

func changes() []changed {
	return append(append(keyChanges(), limitChanges()...), []changed{
		{
			"a plan's models", "model_not_allowed", 400,
			planUpdate(admin.PlanFields{AllowedModels: admin.Some([]string{"x"})}), planUpdate(admin.PlanFields{AllowedModels: admin.Null[[]string]()}),
		},
		{
			"funds", "insufficient_balance", 402,
			workspaceUpdate(admin.WorkspaceFields{Funds: admin.Some("prepaid")}),
			func(ctx context.Context, w *world) error {
				_, err := w.admin.FundsBook(ctx, admin.FundRequest{Body: admin.FundFields{Kind: "top_up", Amount: "10"}})
				return err
			},
		},
		{
			"the workspace's limits", "workspace_tpm_exceeded", 429,
			workspaceUpdate(admin.WorkspaceFields{Limits: admin.Some(admin.RunFields{TPM: admin.Some[int64](1)})}),
			workspaceUpdate(admin.WorkspaceFields{Limits: admin.Null[admin.RunFields]()}),
		},
	}...)
}

func keyChanges() []changed {
	key := func(name, code string, status int, set, unset admin.KeyFields) changed {
		return changed{name, code, status, keyUpdate(set), keyUpdate(unset)}
	}
	tiny := admin.Some("0.000001")
	return []changed{
		key("tokens a minute", "api_key_tpm_exceeded", 429, limited(admin.RunFields{TPM: admin.Some[int64](1)}), limited(admin.RunFields{TPM: admin.Some[int64](1_000_000)})),
		key("day cap", "day_limit_reached", 402, capped(admin.CapFields{Day: tiny}), capped(admin.CapFields{Day: admin.Some("0")})),
		key("7-day cap", "seven_day_limit_reached", 402, capped(admin.CapFields{SevenDay: tiny}), capped(admin.CapFields{SevenDay: admin.Some("0")})),
		key("30-day cap", "thirty_day_limit_reached", 402, capped(admin.CapFields{ThirtyDay: tiny}), capped(admin.CapFields{ThirtyDay: admin.Some("0")})),
		key("models", "model_not_allowed", 400, admin.KeyFields{AllowedModels: admin.Some([]string{})}, admin.KeyFields{AllowedModels: admin.Null[[]string]()}),
		key("its state", "apikey_inactive", 403, admin.KeyFields{Disabled: admin.Some(true)}, admin.KeyFields{Disabled: admin.Some(false)}),
	}
}

func limited(r admin.RunFields) admin.KeyFields { return admin.KeyFields{Limits: admin.Some(r)} }

func capped(c admin.CapFields) admin.KeyFields { return admin.KeyFields{Caps: admin.Some(c)} }

// limitChanges are budgets of every scope and rules of every kind: a budget counts
// from its window's start, and a rule has room for nothing.
func limitChanges() (all []changed) {
	for _, scope := range []string{"org", "user", "key", "plan"} {
		for _, metric := range []string{"spend", "tokens"} {
			f := admin.BudgetFields{
				Name: admin.Some("b"), Scope: admin.Some(scope), Metric: admin.Some(metric), Period: admin.Some("day"),
				Enforcement: admin.Some("hard"), Limit: admin.Some[int64](1),
			}
			if scope == "plan" {
				f.Subject = admin.Some("p")
			}
			all = append(all, changed{
				metric + " budget of " + scope, "budget_exceeded", 429,
				func(ctx context.Context, w *world) error {
					_, err := w.admin.BudgetCreate(ctx, admin.BudgetCreateRequest{Body: f})
					return err
				},
				func(ctx context.Context, w *world) error {
					_, err := w.admin.BudgetDelete(ctx, admin.BudgetRequest{ID: w.budgetID("b")})
					return err
				},
			})
		}
	}
	for _, kind := range []string{"org", "user", "api_key"} {
		f := admin.RateLimitFields{
			Name: admin.Some("r"), SubjectKind: admin.Some(kind), Metric: admin.Some("tokens"), WindowSeconds: admin.Some[int64](60), Limit: admin.Some[int64](1),
		}
		id := ""
		all = append(all, changed{
			"rule of " + kind, "rate_limited", 429,
			func(ctx context.Context, w *world) error {
				made, err := w.admin.RateLimitCreate(ctx, admin.RateLimitCreateRequest{Body: f})
				id = made.ID
				return err
			},
			func(ctx context.Context, w *world) error {
				_, err := w.admin.RateLimitDelete(ctx, admin.RateLimitRequest{ID: id})
				return err
			},
		})
	}
	return all
}

func keyUpdate(f admin.KeyFields) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.admin.KeyUpdate(ctx, admin.KeyUpdateRequest{Key: "k", Body: f})
		return err
	}
}

func planUpdate(f admin.PlanFields) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.admin.PlanUpdate(ctx, admin.PlanUpdateRequest{ID: "p", Body: f})
		return err
	}
}

func workspaceUpdate(f admin.WorkspaceFields) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.admin.WorkspaceUpdate(ctx, admin.WorkspaceUpdateRequest{Body: f})
		return err
	}
}

// TestWhatNoAdmissionTouchesReachesEveryReplicaWithinFiveSeconds: ADM-4. A notice
// brings it. Where none arrives, behind a pooler in transaction mode, it is asked
// for: one look finds it, and there is one within five seconds.
func TestWhatNoAdmissionTouchesReachesEveryReplicaWithinFiveSeconds(t *testing.T) {
	if app.FollowWithin > 5*time.Second {
		t.Errorf("changes may stay unseen for %s", app.FollowWithin)
	}
	ctx := context.Background()
	for name, parameter := range map[string]string{"notices": "", "asking": "&pooling=transaction"} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, database.Reused(t)+parameter, start, replicaModel, idle)
			other := w.replica()
			made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k")}})
			if err != nil {
				t.Fatal(err)
			}
			listed := func() bool {
				return strings.Contains(other.ask(ctx, "GET", "/v1/models", made.Secret, "").body, `"m"`)
			}
			if !listed() {
				t.Fatal("the model is not listed")
			}
			_, err = w.admin.KeyUpdate(ctx, admin.KeyUpdateRequest{Key: made.ID, Body: admin.KeyFields{AllowedModels: admin.Some([]string{"x"})}})
			if err != nil {
				t.Fatal(err)
			}
			if name == "notices" {
				w.eventually("the notice", func() bool { return !listed() })
				return
			}
			if !listed() {
				t.Fatal("a notice has passed the pooler")
			}
			if other.server.Follow(ctx); listed() {
				t.Error("a look did not find the change")
			}
		})
	}
}

// TestADeadReplicasSlotsComeBackWithinAMinute: ENGINE 9, RES-5, BR-151. Its money stays
// held; when it was not dead after all, what it knows is charged, once.
func TestADeadReplicasSlotsComeBackWithinAMinute(t *testing.T) {
	text := replicaModel + "keys:\n  - {name: k, secret: " + replicaKey + ", limits: {concurrency: 4}}\n" +
		"budgets:\n  - {name: b, scope: org, metric: spend, limit: \"1\", period: day}\n"
	w := newSharedWorld(t, text)
	other := w.replica()
	alive := func(list ...*world) {
		t.Helper()
		for _, r := range list {
			if err := r.server.Beat(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.server.Look(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	alive(w, other)
	w.provider.Hold()
	answers := make(chan []answer, 1)
	go func() { answers <- volley(4, 4, func(int) answer { return other.chat(replicaKey, "m") }) }()
	w.await("the running requests", func(t simulator.Totals) bool { return t.Held == 4 })
	w.must(w.chat(replicaKey, "m"), 429, "api_key_concurrency_exceeded")

	other.server.Silence()
	held := func() (slots, money string) {
		t.Helper()
		for _, l := range w.limits(replicaKey) {
			switch {
			case l.Metric == "concurrency" && l.Scope == "key":
				slots = l.Held
			case l.Name == "b":
				money = l.Held
			}
		}
		return slots, money
	}
	seconds := 0
	for ; seconds < 120; seconds += 10 {
		if slots, _ := held(); slots == "0" {
			break
		}
		w.clock.Advance(10 * time.Second)
		alive(w)
	}
	if seconds < 40 || seconds > 60 {
		t.Fatalf("the slots were free after %d s", seconds)
	}
	if slots, money := held(); slots != "0" || money == "0" {
		t.Fatalf("held are %s slots and %s USD", slots, money)
	}
	alive(w)

	w.provider.Release()
	if got := count(<-answers, 200); got != 4 {
		t.Errorf("%d of 4 were answered", got)
	}
	w.eventually("the settlements", func() bool { _, money := held(); return money == "0" })
	if slots, _ := held(); slots != "0" {
		t.Errorf("%s slots are held at rest", slots)
	}
	w.must(w.chat(replicaKey, "m"), 200, "")
	w.settled("1", "10")
}

// TestOneThatWasCutOffItselfJudgesNobody: ENGINE 9. After an outage every replica
// has been silent; none of them is taken for dead.
func TestOneThatWasCutOffItselfJudgesNobody(t *testing.T) {
	w := newSharedWorld(t, replicaModel+"keys:\n  - {name: k, secret: "+replicaKey+", limits: {concurrency: 1}}\n")
	other := w.replica()
	for _, r := range []*world{w, other} {
		if err := r.server.Beat(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	w.provider.Hold()
	answers := make(chan answer, 1)
	go func() { answers <- other.chat(replicaKey, "m") }()
	w.await("the running request", func(t simulator.Totals) bool { return t.Held == 1 })
	w.clock.Advance(5 * time.Minute) // nobody reached the database
	if err := w.server.Beat(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Look(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.must(w.chat(replicaKey, "m"), 429, "api_key_concurrency_exceeded")
	w.provider.Release()
	w.must(<-answers, 200, "")
	w.settled("1", "10")
}

// TestARollingRestartLosesNothing: STO-4, BR-160. One replica after the other is
// stopped and started again while clients go on at those that run.
func TestARollingRestartLosesNothing(t *testing.T) {
	// A loaded machine is slow to let a lock go: that would be a 503, which nobody here
	// repeats.
	w := newSharedWorld(t, "postgres: {lock_timeout: 10s, batch_timeout: 30s}\n"+replicaModel+"keys:\n  - {name: k, secret: "+replicaKey+"}\n")
	replicas := []*world{w, w.replica(), w.replica()}
	for round := range 2 * len(replicas) {
		leaving := replicas[round%len(replicas)]
		staying := replicas[(round+1)%len(replicas)]
		w.provider.Hold()
		answers := make(chan []answer, 1)
		before := w.provider.Bill().Requests
		go func() {
			answers <- volley(16, 16, func(i int) answer {
				if i%2 == 0 {
					return leaving.chat(replicaKey, "m")
				}
				return staying.stream(replicaKey, "m", "")
			})
		}()
		w.await("the running requests", func(t simulator.Totals) bool { return t.Held == 16 })
		stopped := make(chan struct{})
		go func() { leaving.stop(); close(stopped) }()
		w.provider.Release()
		if got := count(<-answers, 200); got != 16 {
			t.Fatalf("%d of 16 were answered", got)
		}
		<-stopped
		staying.must(staying.chat(replicaKey, "m"), 200, "")
		leaving.start()
		leaving.must(leaving.chat(replicaKey, "m"), 200, "")
		if n := w.provider.Bill().Requests - before; n != 18 {
			t.Fatalf("%d requests reached the provider, want 18", n)
		}
	}
	w.settled("1", "10")
}
