// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/simulator"
)

// forgetConfig: a request is estimated at 11 input tokens and 50 output tokens.
const forgetConfig = `
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=20", context_tokens: 128000, max_output_tokens: 50, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + replicaKey + `, limits: {concurrency: 3}}
budgets:
  - {name: b, scope: org, metric: spend, limit: "1", period: day, enforcement: hard}
`

// Of forgetConfig, in nano-dollars: what a request costs, and its worst case.
const forgetCost, forgetWorst = 211_000, 511_000

func (w *world) beat() {
	w.t.Helper()
	if err := w.server.Beat(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) lookAround() {
	w.t.Helper()
	if err := w.server.Look(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// listed is how the list of replicas shows each, by its id.
func (w *world) listed() map[string]admin.ReplicaAnswer {
	w.t.Helper()
	list, err := w.admin.ReplicaList(context.Background(), admin.ReplicaListRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]admin.ReplicaAnswer{}
	for _, r := range list.Replicas {
		out[r.ID] = r
	}
	return out
}

func (w *world) forget(id string) (admin.ReplicaForgetAnswer, error) {
	return w.admin.ReplicaForget(context.Background(), admin.ReplicaForgetRequest{ID: id})
}

// spentAndHeld are those of the budget b, in dollars, and the slots of the key.
func (w *world) spentAndHeld() (spent, held, slots string) {
	w.t.Helper()
	for _, l := range w.limits(replicaKey) {
		switch {
		case l.Metric == "concurrency" && l.Scope == "key":
			slots = l.Held
		case l.Name == "b":
			spent, held = l.Used, l.Held
		}
	}
	return spent, held, slots
}

// TestForgettingADeadReplicaChargesWhatItLeftAtOnce: ENGINE 9, RES-2, RES-5, ADM-3.
// It was not dead after all: what it knows corrects the charge, once.
func TestForgettingADeadReplicaChargesWhatItLeftAtOnce(t *testing.T) {
	w := newSharedWorld(t, forgetConfig)
	other := w.replica()
	dead := other.server.Process()
	w.provider.Hold()
	answers := make(chan []answer, 1)
	go func() { answers <- volley(3, 3, func(int) answer { return other.chat(replicaKey, "m") }) }()
	w.await("the running requests", func(t simulator.Totals) bool { return t.Held == 3 })
	if _, err := w.forget(dead); !isFault(err, fault.Conflict) {
		t.Errorf("forgetting one that lives: %v", err)
	}
	w.must(w.chat(replicaKey, "m"), 429, "api_key_concurrency_exceeded")

	other.server.Silence()
	w.clock.Advance(46 * time.Second)
	w.beat()
	if got := w.listed()[dead]; got.State != "dead" || got.Open != 3 {
		t.Errorf("the dead one is listed as %+v", got)
	}
	did, err := w.forget(dead)
	if err != nil || did.Swept != 3 {
		t.Fatalf("forgetting swept %d requests, %v", did.Swept, err)
	}
	if spent, held, slots := w.spentAndHeld(); spent != "0.001533" || held != "0" || slots != "0" {
		t.Errorf("spent are %s USD, held are %s USD and %s slots", spent, held, slots)
	}
	if again, err := w.forget(dead); again.Swept != 0 || err != nil && !isFault(err, fault.NotFound) {
		t.Errorf("forgetting it again swept %d, %v", again.Swept, err)
	}
	w.audited(dead, `"swept":3`)

	w.provider.Release()
	if got := count(<-answers, 200); got != 3 {
		t.Errorf("%d of 3 were answered", got)
	}
	w.eventually("the corrections", func() bool { return w.spend("") == 3*forgetCost })
	w.settled("1", "10")
	if spent, held, slots := w.spentAndHeld(); spent != "0.000633" || held != "0" || slots != "0" {
		t.Errorf("spent are %s USD, held are %s USD and %s slots", spent, held, slots)
	}
}

func (w *world) audited(id, after string) {
	w.t.Helper()
	list, err := w.admin.AuditList(context.Background(), admin.AuditListRequest{Shared: true})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Entries {
		if e.ID == id && e.Action == "replicas.forget" && strings.Contains(string(e.After), after) && e.Actor != "" && e.Name != "" && len(e.Before) > 2 {
			return
		}
	}
	w.t.Errorf("no entry says that %s was forgotten: %+v", id, list.Entries)
}

func isFault(err error, code fault.Code) bool {
	var f *fault.Fault
	return errors.As(err, &f) && f.Code == code
}

// TestAForgottenReplicasSpoolIsBookedOnce: ENGINE 9, RES-2, RES-8. It stopped while
// the database took no settlement, was forgotten, and comes back with its spool.
func TestAForgottenReplicasSpoolIsBookedOnce(t *testing.T) {
	w := newSharedWorld(t, forgetConfig)
	other := w.another()
	other.change = func(o *app.Options) { o.SettleWithin(time.Millisecond) }
	other.start()
	gone := other.server.Process()
	w.provider.Hold()
	answers := make(chan []answer, 1)
	go func() { answers <- volley(3, 3, func(int) answer { return other.chat(replicaKey, "m") }) }()
	w.await("the running requests", func(t simulator.Totals) bool { return t.Held == 3 })
	end := w.outage()
	w.provider.Release()
	if got := count(<-answers, 200); got != 3 {
		t.Fatalf("%d of 3 were answered", got)
	}
	other.spooled(3)
	other.stop()
	end()
	w.eventually("the store to be back", func() bool { return w.look("/readyz").status == 200 })
	w.eventually("the process to be forgotten", func() bool {
		did, err := w.forget(gone)
		return err == nil && did.Swept == 3
	})
	if got := w.spend(""); got != 3*forgetWorst {
		t.Errorf("charged %d, want the worst case, %d", got, 3*forgetWorst)
	}
	for range 2 {
		other.start()
		w.eventually("the corrections", func() bool { return w.spend("") == 3*forgetCost })
		other.spooled(0)
		other.stop()
	}
	w.settled("1", "10")
}

// TestWhoForgetsAReplica: ADM-2, ADM-3. Unknown ones, other roles, other stores.
func TestWhoForgetsAReplica(t *testing.T) {
	w := newSharedWorld(t, forgetConfig)
	if _, err := w.forget("p_none"); !isFault(err, fault.NotFound) || !strings.Contains(err.Error(), "p_none") {
		t.Errorf("forgetting an unknown one: %v", err)
	}
	if _, err := w.forget(w.server.Process()); !isFault(err, fault.Conflict) {
		t.Errorf("forgetting oneself: %v", err)
	}
	alone := newWorldOn(t, embedded, start, forgetConfig, nil)
	if _, err := alone.forget("p_none"); !isFault(err, fault.InvalidRequest) || !strings.Contains(err.Error(), "no replicas") {
		t.Errorf("on an embedded store: %v", err)
	}
	if _, err := alone.admin.ReplicaList(context.Background(), admin.ReplicaListRequest{}); !isFault(err, fault.InvalidRequest) {
		t.Errorf("the list of an embedded store: %v", err)
	}
}

// TestTheListOfReplicasTellsWhatEachIs: STO-2, ENGINE 9.
func TestTheListOfReplicasTellsWhatEachIs(t *testing.T) {
	w := newSharedWorld(t, forgetConfig)
	other := w.replicaWith(forgetConfig + "plans:\n  - {name: another}\n")
	third := w.replica()
	for _, r := range []*world{w, other} {
		r.beat()
	}
	stopped := third.server.Process()
	third.stop()
	list := w.listed()
	if len(list) != 3 {
		t.Fatalf("%d are listed: %+v", len(list), list)
	}
	for id, state := range map[string]string{w.server.Process(): "running", other.server.Process(): "running", stopped: "stopped"} {
		r := list[id]
		if r.State != state || r.Version != app.Version() || r.Name == "" || r.StartedAt == "" || r.SeenAt == "" || len(r.File) != 12 || r.ClockOffsetMillis != 0 {
			t.Errorf("listed is %+v, want it %s", r, state)
		}
		if inForce := id != other.server.Process(); r.FileInForce != inForce {
			t.Errorf("%s has the file in force: %t", id, r.FileInForce)
		}
	}
	for _, step := range []struct {
		after time.Duration
		state string
	}{{26 * time.Second, "silent"}, {20 * time.Second, "dead"}} {
		w.clock.Advance(step.after)
		w.beat()
		if got := w.listed()[other.server.Process()]; got.State != step.state {
			t.Errorf("after %s it is %s, want %s", step.after, got.State, step.state)
		}
	}
	other.beat()
	if got := w.listed()[other.server.Process()]; got.State != "running" {
		t.Errorf("one that is back is %s", got.State)
	}
}

// TestAReplicaWithAnotherFileSaysSo: STO-2. The file that was applied last is in
// force on all; one that runs with another says so in /readyz and a metric, and is
// ready all the same.
func TestAReplicaWithAnotherFileSaysSo(t *testing.T) {
	const changed = forgetConfig + "plans:\n  - {name: another}\n"
	w := newSharedWorld(t, "# a comment is no difference\n"+forgetConfig)
	w.change = nil
	other := w.replicaWith(forgetConfig)
	says := func(r *world, differs bool) {
		t.Helper()
		r.lookAround()
		a := r.look("/readyz")
		if told := strings.Contains(a.body, "warning: this process runs with another configuration file"); a.status != 200 || told != differs {
			t.Errorf("/readyz says %q, want it to tell of another file: %t", a.body, differs)
		}
		if metric := strings.Contains(r.look("/metrics").body, "\nweir_file_differs 1"); metric != differs {
			t.Errorf("the metric tells of another file: %t, want %t", metric, differs)
		}
	}
	says(w, false)
	says(other, false)
	other.reload(changed, func() bool { w.lookAround(); return strings.Contains(w.look("/readyz").body, "another configuration") })
	says(w, true)
	says(other, false)
	w.reload(changed, func() bool { w.lookAround(); return !strings.Contains(w.look("/readyz").body, "another configuration") })
	says(w, false)
	says(other, false)
	w.must(w.chat(replicaKey, "m"), 200, "")
}

// TestAReplicaWhoseClockIsOffSaysSo: ENGINE 7. Over five seconds, ahead or behind;
// the store's time decides, so that a day's budget ends for it when it does for all.
func TestAReplicaWhoseClockIsOffSaysSo(t *testing.T) {
	for _, c := range []struct {
		name string
		off  time.Duration
		says string
	}{
		{"right", 0, "ready\n"},
		{"four seconds ahead", 4 * time.Second, "ready\n"},
		{"seven seconds ahead", 7 * time.Second, "ready\nwarning: the clock of this process is 7s ahead of the store's; the store's time decides\n"},
		{"a day behind", -24 * time.Hour, "ready\nwarning: the clock of this process is 24h0m0s behind the store's; the store's time decides\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newSharedWorld(t, forgetConfig)
			other := w.another()
			other.clock = clock.NewManual(w.clock.Now() + c.off.Microseconds())
			other.change = func(o *app.Options) { o.WithDatabaseClock(w.clock) }
			other.start()
			other.beat() // tells what the start has measured
			other.lookAround()
			if a := other.look("/readyz"); a.status != 200 || a.body != c.says {
				t.Errorf("/readyz answers %d %q, want %q", a.status, a.body, c.says)
			}
			got := w.listed()[other.server.Process()]
			if got.ClockOffsetMillis != -c.off.Milliseconds() || got.ClockOff != strings.Contains(c.says, "warning") {
				t.Errorf("listed is %+v", got)
			}
			shown := other.shown(other.must(other.chat(replicaKey, "m"), 200, ""))
			if at := time.UnixMicro(w.clock.Now()).UTC().Format(time.RFC3339Nano); shown.At != at {
				t.Errorf("admitted at %s, the store's clock shows %s", shown.At, at)
			}
			w.settled("1", "10")
		})
	}
}
