// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/app"
)

// TestVerifyFindsNothingWrongUnderAVolley: RES-7. While two programs admit, refuse,
// settle and are corrected on one database, a verification sees one instant of it:
// no figure differs, whichever of them is asked, or a command beside them.
func TestVerifyFindsNothingWrongUnderAVolley(t *testing.T) {
	for name, setting := range map[string]string{"each batch flushed": "", "early release": "postgres: {early_release: true}\n"} {
		t.Run(name, func(t *testing.T) {
			text := setting + "funds: prepaid\n" + replicaModel + "keys:\n  - {name: k, secret: " + replicaKey +
				", user: ada, limits: {rpm: 400, tpm: 100000, concurrency: 12}, caps: {day: \"5\", thirty_day: \"9\"}}\n" +
				"budgets:\n  - {name: b, scope: org, metric: spend, limit: \"0.25\", period: day}\n  - {name: u, scope: user, metric: tokens, limit: 500000, window: 1h}\n" +
				"rate_limits:\n  - {name: r, subject_kind: org, metric: requests, window_seconds: 60, limit: 350}\n  - {name: s, subject_kind: user, metric: tokens, window_seconds: 3600, limit: 900000}\n"
			url := database.Database(t)
			w := newWorldOn(t, url, start, text, func(o *app.Options) { o.Eagerly() })
			w.fund("10")
			w.spread(1)
			elsewhere := *w
			elsewhere.state = t.TempDir()
			var done atomic.Bool
			var volleys sync.WaitGroup
			volleys.Go(func() {
				defer done.Store(true)
				volley(900, 24, func(i int) answer {
					w.clock.Advance(100_000_000) // a tenth of a second: windows open and close
					switch i % 5 {
					case 0:
						return w.stream(replicaKey, "m", "")
					case 1:
						return w.chat(replicaKey, "none")
					default:
						a := w.chat(replicaKey, "m")
						if i%50 == 2 && a.status == 200 {
							_, _ = w.admin.RequestAdjust(context.Background(), admin.RequestAdjustRequest{
								ID: a.header.Get("X-Weir-Request-Id"), Body: admin.AdjustFields{Spend: admin.Some("0.0001"), Reason: "bill"},
							})
						}
						return a
					}
				})
			})
			runs, events := 0, int64(0)
			for last := false; !last; runs++ {
				last = done.Load()
				by := w
				if runs%3 == 1 {
					by = w.peers[0]
				}
				report, err := by.verified(elsewhere.options(), runs%3 == 2)
				if err != nil {
					t.Fatalf("verification %d: %v", runs, err)
				}
				if len(report.Differences) > 0 {
					t.Fatalf("verification %d at %d events: %+v", runs, report.Counts.Events, report.Differences)
				}
				events = max(events, report.Counts.Events)
			}
			volleys.Wait()
			w.quiet()
			w.balanced()
			if runs < 4 || events < 100 {
				t.Errorf("%d verifications of up to %d events: the volley was over before", runs, events)
			}
		})
	}
}

// verified asks the program of w, or a command's that opens the store itself.
func (w *world) verified(beside app.Options, command bool) (admin.VerifyAnswer, error) {
	if !command {
		return w.admin.Verify(context.Background(), admin.VerifyRequest{})
	}
	transport, closeFn, err := app.Connect(context.Background(), beside)
	if err != nil {
		return admin.VerifyAnswer{}, err
	}
	defer func() { _ = closeFn() }()
	return clientOn(transport).Verify(context.Background(), admin.VerifyRequest{})
}

func clientOn(transport http.RoundTripper) *client.Client {
	return client.New(client.Options{Transport: transport})
}
