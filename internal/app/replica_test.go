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

// TestAChangeOnOneReplicaHoldsForTheNextAdmissionOnEvery: ADM-4, BR-155. Limits,
// keys, plans and funds; nobody waits.
func TestAChangeOnOneReplicaHoldsForTheNextAdmissionOnEvery(t *testing.T) {
	w := newSharedWorld(t, replicaModel)
	other := w.replica()
	ctx := context.Background()
	made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k")}})
	if err != nil {
		t.Fatal(err)
	}
	other.must(other.chat(made.Secret, "m"), 200, "")
	set := func(f admin.KeyFields) {
		t.Helper()
		if _, err := w.admin.KeyUpdate(ctx, admin.KeyUpdateRequest{Key: "k", Body: f}); err != nil {
			t.Fatal(err)
		}
	}
	set(admin.KeyFields{Limits: admin.Some(admin.RunFields{TPM: admin.Some[int64](10)})})
	other.must(other.chat(made.Secret, "m"), 429, "api_key_tpm_exceeded")
	set(admin.KeyFields{Limits: admin.Some(admin.RunFields{TPM: admin.Some[int64](1000)})})
	other.must(other.chat(made.Secret, "m"), 200, "")
	set(admin.KeyFields{Caps: admin.Some(admin.CapFields{Day: admin.Some("0.000001")})})
	other.must(other.chat(made.Secret, "m"), 402, "day_limit_reached")
	set(admin.KeyFields{Caps: admin.Some(admin.CapFields{Day: admin.Some("0")})})
	other.must(other.chat(made.Secret, "m"), 200, "")
	if _, err := w.admin.KeyDisable(ctx, admin.KeyRequest{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	other.must(other.chat(made.Secret, "m"), 403, "apikey_inactive")
	w.settled("1", "10")
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
	w := newSharedWorld(t, replicaModel+"keys:\n  - {name: k, secret: "+replicaKey+"}\n")
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
