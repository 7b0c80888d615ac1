// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/simulator"
)

const (
	heldKey    = "the-secret-of-the-holding-key"
	heldConfig = `reservation_hold: 1m
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", context_tokens: 128000, max_output_tokens: 100, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + heldKey + `, limits: {concurrency: 1}}
`
)

// begin starts a request that the provider holds.
func (w *world) begin() <-chan answer {
	w.t.Helper()
	w.provider.Hold()
	done := make(chan answer, 1)
	go func() { done <- w.stream(heldKey, "m", "") }()
	w.await("the request", func(n simulator.Totals) bool { return n.Held == 1 })
	return done
}

// TestARunningRequestIsRenewedHoweverLongItTakes: RES-5. Ten holds pass by; each
// third of one is renewed, and no sweep comes in between.
func TestARunningRequestIsRenewedHoweverLongItTakes(t *testing.T) {
	w := newWorldWith(t, start, heldConfig, func(o *app.Options) { o.Eagerly() })
	done := w.begin()
	hold := time.Minute.Microseconds()
	for range 30 {
		w.clock.Advance(20 * time.Second)
		w.eventually("the renewal", func() bool {
			ends, err := w.server.OpenUntil(context.Background())
			return err == nil && len(ends) == 1 && ends[0] == w.clock.Now()+hold
		})
	}
	w.must(w.chat(heldKey, "m"), 429, "api_key_concurrency_exceeded")
	w.provider.Release()
	a := w.must(<-done, 200, "")
	shown, err := w.admin.RequestShow(context.Background(), admin.RequestShowRequest{ID: a.header.Get("X-Weir-Request-Id")})
	if err != nil || shown.Outcome != "settled" || len(shown.Events) != 1 {
		t.Errorf("it ended as %+v (%v)", shown, err)
	}
	w.must(w.chat(heldKey, "m"), 200, "")
	w.settled("1", "10")
	if ends, err := w.server.OpenUntil(context.Background()); err != nil || len(ends) != 0 {
		t.Errorf("open reservations: %v (%v)", ends, err)
	}
}

// TestAnAbandonedReservationIsSweptAtItsWorstCase, the slot comes back, and real
// usage that comes late corrects the sweep: RES-2, RES-5, RUN-3.
func TestAnAbandonedReservationIsSweptAtItsWorstCase(t *testing.T) {
	ctx := context.Background()
	w := newWorldWith(t, start, heldConfig, func(o *app.Options) { o.Idly() })
	done := w.begin()
	w.clock.Advance(time.Minute - time.Microsecond)
	w.server.Sweep(ctx)
	w.must(w.chat(heldKey, "m"), 429, "api_key_concurrency_exceeded")
	w.clock.Advance(2 * time.Microsecond)
	w.server.Sweep(ctx)
	w.eventually("the sweep", func() bool { return w.spend("") > 0 })
	// 11 tokens of input, 100 of output.
	if got := w.spend(""); int64(got) != (11+1000)*1000 {
		t.Fatalf("swept at %s USD, want 1011 µ$", got)
	}
	w.balanced()
	list, err := w.admin.RequestList(ctx, admin.RequestListRequest{Outcome: "swept"})
	if err != nil || len(list.Requests) != 1 {
		t.Fatalf("swept requests: %+v (%v)", list, err)
	}
	shown, err := w.admin.RequestShow(ctx, admin.RequestShowRequest{ID: list.Requests[0].ID})
	if err != nil || len(shown.Events) != 1 || shown.Events[0].Kind != "swept" {
		t.Fatalf("events %+v (%v)", shown.Events, err)
	}
	w.provider.Release()
	w.must(<-done, 200, "")
	w.must(w.chat(heldKey, "m"), 200, "")
	w.settled("1", "10")
	shown, err = w.admin.RequestShow(ctx, admin.RequestShowRequest{ID: list.Requests[0].ID})
	if err != nil || len(shown.Events) != 2 || !strings.HasPrefix(shown.Events[1].Kind, "correct") {
		t.Fatalf("events %+v (%v)", shown.Events, err)
	}
}

// TestAProgramThatSleptRenewsBeforeItSweeps: its clock jumps by many holds while
// a request runs.
func TestAProgramThatSleptRenewsBeforeItSweeps(t *testing.T) {
	w := newWorldWith(t, start, heldConfig, func(o *app.Options) { o.Eagerly() })
	done := w.begin()
	for range 5 {
		w.clock.Advance(10 * time.Minute)
		w.eventually("the renewal", func() bool {
			ends, err := w.server.OpenUntil(context.Background())
			return err == nil && len(ends) == 1 && ends[0] > w.clock.Now()
		})
	}
	w.provider.Release()
	w.must(<-done, 200, "")
	w.settled("1", "10")
}
