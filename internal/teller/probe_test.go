// SPDX-License-Identifier: Apache-2.0

package teller_test

import (
	"context"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

// TestProbesOfProcessesThatAreAskedAtOnceDoNotClash: RES-8. A load balancer asks
// every replica in the same millisecond whether it is ready; each of them writes to
// the same book, and none takes another's probe for a failure of the book.
func TestProbesOfProcessesThatAreAskedAtOnceDoNotClash(t *testing.T) {
	const processes, lanes = 3, 4
	b, now := newBook(), clock.NewManual(start)
	var mu sync.Mutex
	probes := map[ledger.ID]int{}
	b.set(func(ops []*ledger.Op) (error, bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, op := range ops {
			if op.Verb == ledger.Undo {
				probes[op.ID]++
			}
		}
		return nil, true
	})
	var asking sync.WaitGroup
	for range processes {
		l := teller.New(b, teller.Options{Lanes: lanes, Clock: now})
		l.Start()
		t.Cleanup(func() {
			if err := l.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		asking.Go(func() {
			if !l.Healthy() {
				t.Error("it is not healthy")
			}
		})
	}
	asking.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(probes) != processes*lanes {
		t.Errorf("there were %d probes apart, want %d", len(probes), processes*lanes)
	}
}
