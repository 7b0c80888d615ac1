// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/app"
)

// TestALoadBalancerHasTheTimeToTurnToOthers: STO-4. After SIGTERM a server says that
// it is not ready, and admits as before until leave_time has passed.
func TestALoadBalancerHasTheTimeToTurnToOthers(t *testing.T) {
	left, waited := make(chan struct{}), make(chan time.Duration, 1)
	w := newWorldWith(t, start, "bounds: {leave_time: 7s}\n"+stopConfig, func(o *app.Options) {
		o.Leaving(func(_ context.Context, wait time.Duration) { waited <- wait; <-left })
	})
	server := w.server
	ended := w.stopping() // /readyz is 503
	if wait := <-waited; wait != 7*time.Second {
		t.Errorf("it waits %s", wait)
	}
	w.server = server // it still serves
	for range 3 {
		w.must(w.chat(stopKey, "m"), http.StatusOK, "")
	}
	w.server = nil
	close(left)
	if err := <-ended; err != nil {
		t.Errorf("stop: %v", err)
	}
}
