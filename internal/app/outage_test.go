// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"database/sql"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // another process that holds the store's file

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/simulator"
	"github.com/weirhq/weir/internal/spool"
)

const outageKey = "the-secret-of-the-key-in-an-outage"

const outageConfig = `reservation_hold: 1m
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=40", context_tokens: 128000, max_output_tokens: 100, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + outageKey + `, limits: {concurrency: 64}, caps: {day: "1000"}}
`

// lockFile makes an embedded store refuse every write, as a stray process does: a
// batch as soon as what was done before could not be folded.
func (w *world) lockFile() (end func()) {
	w.t.Helper()
	other, err := sql.Open("sqlite", "file:"+w.storePath()+"?_pragma=busy_timeout(0)")
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := other.Conn(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the store's lock", func() bool {
		_, err := conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
		return err == nil
	})
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = conn.Close() // with it goes the lock
			_ = other.Close()
		}
	}
	w.t.Cleanup(end)
	w.eventually("a red /readyz", func() bool { return w.look("/readyz").status == http.StatusServiceUnavailable })
	return end
}

func (w *world) look(path string) answer {
	return w.do(context.Background(), http.MethodGet, path, "", "")
}

// held starts n requests, every second one a stream, that the provider holds.
func (w *world) held(n int) <-chan []answer {
	w.t.Helper()
	w.provider.Hold()
	answers := make(chan []answer, 1)
	go func() {
		answers <- volley(n, n, func(i int) answer {
			if i%2 == 0 {
				return w.stream(outageKey, "m", "")
			}
			return w.chat(outageKey, "m")
		})
	}()
	w.await("the running requests", func(t simulator.Totals) bool { return t.Held == int64(n) })
	return answers
}

// spooled waits until the answers of running requests are in the spool.
func (w *world) spooled(n int) {
	w.t.Helper()
	w.eventually("the spool", func() bool { return w.server.InSpool() == n })
}

// TestAnOutageOfTheStoreRefusesAtOnceAndLosesNothing: RES-8, RES-11, BR-157,
// BR-159. What runs is answered without delay and charged once when the store is
// back; what comes is refused and sent nowhere; it recovers by itself.
func TestAnOutageOfTheStoreRefusesAtOnceAndLosesNothing(t *testing.T) {
	const running = 24
	log := &keptLog{}
	w := newWorldWith(t, start, outageConfig, func(o *app.Options) { o.Stderr = log })
	w.must(w.look("/readyz"), 200, "")
	answers := w.held(running)
	end := w.outage()
	w.eventually("/readyz to turn red", func() bool { return w.look("/readyz").status == 503 })
	w.must(w.look("/healthz"), 200, "")
	w.provider.Release()
	if all := <-answers; count(all, 200) != running {
		t.Errorf("%d of %d running requests were answered", count(all, 200), running)
	}
	w.spooled(running)
	for _, a := range volley(16, 16, func(int) answer { return w.chat(outageKey, "m") }) {
		if a.status != 503 || a.code() != "service_unavailable" || a.header.Get("Retry-After") != "2" {
			t.Errorf("a request meanwhile: %v", a)
		}
	}
	metrics := w.look("/metrics").body
	for _, line := range []string{"weir_store_up 0\n", "weir_spool_operations 24\n", "weir_spool_failures_total 0\n", `weir_refused_total{code="service_unavailable",workspace="default"} 16` + "\n"} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics of an outage lack %s", line)
		}
	}
	if n := w.provider.Bill().Requests; n != running {
		t.Errorf("%d requests reached the provider, want %d", n, running)
	}
	const word = `msg="the store refused a batch"`
	if n := log.count(word); n != 1 {
		t.Errorf("the log tells of the outage %d times while no time passes", n)
	}
	w.clock.Advance(10 * time.Second)
	w.eventually("another word", func() bool { w.chat(outageKey, "m"); return log.count(word) == 2 })
	end()
	w.eventually("the store to be back", func() bool { return w.look("/readyz").status == 200 })
	w.spooled(0)
	w.must(w.chat(outageKey, "m"), 200, "")
	w.settled("1", "10")
}

// TestAChangeThatAnOutageKeptOutHoldsWhenItEnds: STO-2, RES-8. Nobody touches the
// file again.
func TestAChangeThatAnOutageKeptOutHoldsWhenItEnds(t *testing.T) {
	log := &keptLog{}
	w := newWorldWith(t, start, outageConfig, func(o *app.Options) { o.Stderr = log })
	w.must(w.chat(outageKey, "m"), 200, "")
	end := w.outage()
	w.write(strings.Replace(outageConfig, `day: "1000"`, `day: "0.000001"`, 1))
	w.eventually("the refused change", func() bool { return log.has("applied_again=true") })
	end()
	w.eventually("the change", func() bool { return w.chat(outageKey, "m").status == 402 })
	w.balanced()
}

// TestAStopInAnOutageLeavesTheRestToTheNextStart: RES-8, STO-4, BR-160. The stop
// succeeds: nothing is lost, and the next start charges what was used, not the
// worst case.
func TestAStopInAnOutageLeavesTheRestToTheNextStart(t *testing.T) {
	const running = 24
	w := newWorldWith(t, start, outageConfig, func(o *app.Options) { o.SettleWithin(50 * time.Millisecond) })
	for range 3 {
		answers := w.held(running)
		end := w.outage()
		w.provider.Release()
		if all := <-answers; count(all, 200) != running {
			t.Fatalf("%d of %d running requests were answered", count(all, 200), running)
		}
		w.spooled(running)
		w.stop()
		end()
		w.start()
		if n := w.server.InSpool(); n != 0 {
			t.Fatalf("%d are left in the spool", n)
		}
		w.settled("1", "10")
		if list, err := w.admin.RequestList(context.Background(), admin.RequestListRequest{Outcome: "swept"}); err != nil || len(list.Requests) != 0 {
			t.Fatalf("swept: %+v (%v)", list, err)
		}
	}
}

// TestASpooledSettlementCorrectsASweep: RES-2, RES-8.
func TestASpooledSettlementCorrectsASweep(t *testing.T) {
	w := newWorldWith(t, start, outageConfig, func(o *app.Options) { o.Idly(); o.SettleWithin(50 * time.Millisecond) })
	answers := w.held(2)
	w.clock.Advance(time.Minute + time.Second)
	w.server.Sweep(context.Background())
	w.eventually("the sweeps", func() bool { return w.spend("") == 2*1_011_000 })
	end := w.outage()
	w.provider.Release()
	<-answers
	w.spooled(2)
	w.stop()
	end()
	w.start()
	w.settled("1", "10")
}

// TestASpoolIsAppliedOnceWhateverIsInIt: RES-8, ENGINE 9. What has ended is left
// alone, an undo of what never was stops it from ever being, a settlement of
// nothing is put aside, and so is what nobody can read.
func TestASpoolIsAppliedOnceWhateverIsInIt(t *testing.T) {
	w := newWorldWith(t, start, outageConfig, func(o *app.Options) { o.SettleWithin(50 * time.Millisecond) })
	path := w.spoolPath()
	answers := w.held(2)
	end := w.outage()
	w.provider.Release()
	<-answers
	w.spooled(2)
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end()
	w.spooled(0)
	w.stop()

	// The same settlements once more, as after a crash that lost the marks.
	if err := os.WriteFile(path, append(kept, "what nobody can read"...), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.settled("1", "10")
	w.stop()

	s, err := spool.Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	never := ledger.NewID(start, [10]byte{9: 7})
	_, err = s.Put([]*ledger.Op{
		{Verb: ledger.Undo, ID: never, Workspace: "default", HoldMicros: 1},
		{
			Verb: ledger.Settle, Workspace: "default", Reservation: &ledger.Reservation{ID: never, Workspace: "default", Model: "nobody-asked"},
			Settlement: &ledger.Settlement{Attempts: []ledger.Attempt{{Spend: 5}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.start()
	if n := w.server.InSpool(); n != 0 {
		t.Errorf("%d are left in the spool", n)
	}
	aside, err := os.ReadFile(path + spool.AsideSuffix)
	if err != nil || !strings.Contains(string(aside), "what nobody can read") || !strings.Contains(string(aside), "nobody-asked") {
		t.Errorf("aside are %q (%v)", aside, err)
	}
	w.settled("1", "10")
}
