// SPDX-License-Identifier: Apache-2.0

package teller_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

func TestNoFaultLosesASettlementOrLeaksAHold(t *testing.T) {
	// Random arrivals, cancellations, failures and lost answers; then the book
	// recovers. Every admission that was answered was settled once; of all
	// others nothing is left.
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, teller.Limits{Batch: rapid.IntRange(1, 5).Draw(t, "batch")})
		healthy := false
		b.b.script = func([]*ledger.Op) (error, bool) {
			if healthy {
				return nil, true
			}
			switch rapid.IntRange(0, 9).Draw(t, "fault") {
			case 0, 1:
				return errDown, false
			case 2:
				return errUnknown, false
			case 3:
				return errUnknown, true
			default:
				return nil, true
			}
		}
		n := 0
		waiting := map[teller.Ticket]bool{}
		settled := map[ledger.ID]bool{}
		collect := func() {
			for ticket := range b.last + 1 {
				c, ok := b.answers[ticket]
				if !ok || !waiting[ticket] {
					continue
				}
				delete(waiting, ticket)
				if c.Err == nil && c.Result.Verdict == ledger.Admitted {
					settled[c.Op.ID] = true
					b.enqueue(settle(c.Result.Reservation))
				}
			}
		}
		var running *teller.Batch
		finish := func() {
			if running != nil {
				results, err := b.b.Apply(context.Background(), running.Ops)
				b.keep(b.m.Done(running, results, err, b.now))
				running = nil
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				n++
				op := of(admit(n, slots(6), hourly(200)), workspace, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"))
				b.last++
				if err := b.m.Enqueue(op, b.last, b.now); err == nil {
					waiting[b.last] = true
				}
			},
			"begin": func(*rapid.T) {
				if running == nil {
					running, _ = b.m.Next(b.now)
				}
			},
			"finish": func(*rapid.T) { finish() },
			"cancel": func(t *rapid.T) {
				for ticket := range b.last {
					if waiting[ticket] && rapid.Bool().Draw(t, "gone") {
						if _, known := b.m.Cancel(ticket); known {
							delete(waiting, ticket)
						}
						return
					}
				}
			},
			"time": func(t *rapid.T) {
				b.now += rapid.Int64Range(0, 300_000).Draw(t, "pause")
				b.b.at += rapid.Int64Range(0, hour).Draw(t, "window")
			},
			"": func(*rapid.T) { collect() },
		})
		finish()
		collect()
		healthy = true
		for len(waiting) > 0 || !b.m.Idle() {
			b.drain()
			collect()
		}
		if b.b.running() != 0 {
			t.Fatalf("%d reservations are left", b.b.running())
		}
		charged := map[ledger.ID]int{}
		for _, e := range b.b.events {
			charged[e.ID]++
			if settled[e.ID] != (e.Kind == ledger.EventSettled) {
				t.Fatalf("%s was %s, answered %t", e.ID, e.Kind, settled[e.ID])
			}
		}
		for id := range settled {
			if charged[id] != 1 {
				t.Fatalf("%s has %d endings", id, charged[id])
			}
		}
		for c, s := range b.b.counters {
			if s.Held != 0 {
				t.Fatalf("%s holds %d", c.Limit, s.Held)
			}
		}
	})
}
