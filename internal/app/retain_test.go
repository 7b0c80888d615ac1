// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/fault"
)

// everyCounter gives the penny key a limit of every kind; %BUDGETS% are its own.
const everyCounter = "funds: prepaid\nbudgets:\n" +
	"  - {name: month, scope: org, metric: spend, limit: \"1000\", period: month, enforcement: soft, warn_percent: [1]}\n" +
	"  - {name: tokens, scope: team, metric: tokens, limit: 1000000, period: week, enforcement: hard}\n" +
	"rate_limits:\n  - {name: rule, subject_kind: org, metric: requests, limit: 1000, window_seconds: 3600}\n"

// rows counts what is in the store.
func (w *world) rows() app.Rows {
	w.t.Helper()
	n, err := w.server.Rows(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// figures are every limit of a key without what time alone changes.
func (w *world) figures(secret string) []string {
	w.t.Helper()
	var list []string
	for _, l := range w.limits(secret) {
		list = append(list, l.Name+" "+l.Used+" "+l.Held+" "+l.Remaining)
	}
	return list
}

// TestAHundredDaysOfRecordsStayBounded: RES-6, RES-7, BR-167 (tables that grow).
// Requests every day, a retention whenever it comes, cut short and through
// restarts: nothing that a key is shown changes with it, the books balance, and
// no more than the retention's records are left.
func TestAHundredDaysOfRecordsStayBounded(t *testing.T) {
	for _, c := range []struct {
		name, budgets string
		kept          int // days of events
	}{
		{"no long window", "", 90},
		{"a window of 366 days", `, budgets: [{name: long, metric: spend, limit: "1000", window: 366d, enforcement: hard}]`, 366},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, start, pennyKey(everyCounter, ", team: t, user: u, limits: {rpm: 100, tpm: 100000, concurrency: 5}, caps: {thirty_day: \"1000\"}"+c.budgets), func(o *app.Options) { o.Idly() })
			w.fund("500")
			var first answer
			for day := range 101 {
				for range 2 {
					a := w.must(w.chat(limitKey, "m"), 200, "")
					if first.header == nil {
						first = a
					}
				}
				w.must(w.chat(limitKey, "nothing"), http.StatusNotFound, "model_not_found")
				before := w.figures(limitKey)
				if err := w.server.RetainSome(context.Background(), day%4); err != nil {
					t.Fatal(err)
				}
				if day%9 == 0 {
					w.restart()
				}
				if day%3 == 0 {
					if err := w.server.Retain(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
				w.balanced()
				if after := w.figures(limitKey); !reflect.DeepEqual(before, after) {
					t.Fatalf("day %d: the key is shown\n%v, before the retention\n%v", day, after, before)
				}
				w.clock.Advance(24*time.Hour + 17*time.Minute)
			}
			if err := w.server.Retain(context.Background()); err != nil {
				t.Fatal(err)
			}
			w.balanced()
			w.rest(limitKey)
			n := w.rows()
			// Each day has two calls, a refusal and two events; the funds' entry stays.
			if n.Calls < 3*88 || n.Calls > 3*91 {
				t.Errorf("%d calls are left of 101 days", n.Calls)
			}
			if most := 2*(min(c.kept, 101)+2) + 1; n.Events > most || n.Events < 2*min(c.kept-2, 101)+1 || (n.Closings > 0) != (c.kept < 101) {
				t.Errorf("%d events and %d closings are left, at most %d events", n.Events, n.Closings, most)
			}
			if n.Quarters > 2*101 {
				t.Errorf("%d quarters", n.Quarters)
			}
			_, err := w.admin.RequestAdjust(context.Background(), admin.RequestAdjustRequest{
				ID: first.header.Get("X-Weir-Request-Id"), Body: admin.AdjustFields{Spend: admin.Some("0"), Tokens: admin.Some[int64](0), Reason: "late"},
			})
			var refused *fault.Fault
			if !errors.As(err, &refused) || refused.Code != fault.NotFound {
				t.Errorf("adjusting what is gone: %v", err)
			}
		})
	}
}

// TestTheRetentionRunsByItselfAndIsMeasured: RES-6.
func TestTheRetentionRunsByItselfAndIsMeasured(t *testing.T) {
	w := newWorld(t, pennyKey("reservation_retention: 2d\n", `, budgets: [{name: b, metric: spend, limit: "1", window: 1h, enforcement: hard}]`))
	w.must(w.chat(limitKey, "m"), 200, "")
	w.used(limitKey, "b", "0.01") // it is settled
	w.clock.Advance(3 * 24 * time.Hour)
	w.restart()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for w.rows().Calls > 0 {
		select {
		case <-deadline:
			t.Fatal("the call of three days ago is still there")
		case <-tick.C:
		}
	}
	if n := w.rows(); n.Events != 1 || n.Closings != 0 {
		t.Errorf("%+v: events stay for 62 days", n)
	}
	w.balanced()
	metrics := w.do(context.Background(), http.MethodGet, "/metrics", "", "")
	if !strings.Contains(metrics.body, "weir_retention_rows_total 1\n") {
		t.Errorf("metrics lack the row that was dropped:\n%s", metrics.body)
	}
}
