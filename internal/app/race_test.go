// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/internal/simulator"
)

const raceModels = `
models:
  - {name: m, provider: sim, upstream: "sim?in=100&out=50", context_tokens: 128000, max_output_tokens: 4096, price: {input: "2.5", output: "10"}}
keys:
  - name: k
    secret: the-secret-of-the-racing-key
`

const raceKey = "the-secret-of-the-racing-key"

// TestAVolleyIsAdmittedExactlyAsTheRulesAllow sends 192 requests, 64 at once,
// while the provider holds every one that reaches it, so that all are decided
// against the same use. RACE, BR-024, ORD-2, RUN-1.
func TestAVolleyIsAdmittedExactlyAsTheRulesAllow(t *testing.T) {
	const requests, parallel = 192, 64
	// The estimate of chatBody: 11 bytes of text are 4 tokens, 3 a request, 4 a
	// message.
	const estimate = 11
	for _, c := range []struct {
		name, key, code string
		admitted        int
	}{
		{"rpm 10", "limits: {rpm: 10}", "api_key_rpm_exceeded", 10},
		{"concurrency 4", "limits: {concurrency: 4}", "api_key_concurrency_exceeded", 4},
		{"tpm for ten", fmt.Sprintf("limits: {tpm: %d}", 10*estimate), "api_key_tpm_exceeded", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, raceModels+"    "+c.key+"\n")
			w.provider.Hold()
			done := make(chan []answer, 1)
			decided := make(chan struct{}, requests)
			go func() {
				done <- volley(requests, parallel, func(int) answer {
					a := w.chat(raceKey, "m")
					decided <- struct{}{}
					return a
				})
			}()
			for range requests - c.admitted {
				<-decided
			}
			w.await("every admitted request", func(n simulator.Totals) bool { return n.Held == int64(c.admitted) })
			w.provider.Release()
			answers := <-done
			if got := count(answers, 200); got != c.admitted {
				t.Fatalf("admitted %d, want exactly %d", got, c.admitted)
			}
			for _, a := range answers {
				if a.status != 200 {
					w.must(a, 429, c.code)
				}
			}
			if n := w.provider.Bill().Requests; n != int64(c.admitted) {
				t.Fatalf("%d requests reached the provider, want %d", n, c.admitted)
			}
			w.settled("2.5", "10")
		})
	}
}

// TestADayCapRefusesFromTheRequestAfterTheOneThatCrosses: a funded workspace and
// a cap of five requests' cost. In sequence exactly five pass (BR-133); in a
// volley those that run before anything is settled pass too, and not one after
// (CAP-1). Every refused request consumed nothing.
func TestADayCapRefusesFromTheRequestAfterTheOneThatCrosses(t *testing.T) {
	// 100 × 2.5 + 50 × 10 µ$ = 750 µ$ a request.
	const text = "type: personal\nfunds: prepaid\n" + raceModels + "    caps: {day: \"0.00375\"}\n"
	t.Run("in sequence", func(t *testing.T) {
		w := newWorld(t, text)
		w.fund("1")
		for range 5 {
			w.must(w.chat(raceKey, "m"), 200, "")
		}
		for range 3 {
			w.must(w.chat(raceKey, "m"), 402, "day_limit_reached")
		}
		w.settled("2.5", "10")
	})
	t.Run("in a volley", func(t *testing.T) {
		const parallel = 64
		w := newWorld(t, text)
		w.fund("1")
		w.provider.Hold()
		done := make(chan []answer, 1)
		go func() { done <- volley(parallel, parallel, func(int) answer { return w.chat(raceKey, "m") }) }()
		w.await("the volley", func(n simulator.Totals) bool { return n.Held == parallel })
		w.provider.Release()
		if got := count(<-done, 200); got != parallel {
			t.Fatalf("%d of the first volley passed, want %d: nothing was settled when they were admitted", got, parallel)
		}
		for _, a := range volley(128, parallel, func(int) answer { return w.chat(raceKey, "m") }) {
			w.must(a, 402, "day_limit_reached")
		}
		w.settled("2.5", "10")
	})
}

// TestAHeldBalanceIsNeverOverrunByAVolley: prepaid_hold is a reserving limit
// (BAL-6, BR-025): of 50 at once, each holding what it will cost, a balance of
// ten admits ten.
func TestAHeldBalanceIsNeverOverrunByAVolley(t *testing.T) {
	// Hold: 11 input and 50 output tokens = 27.5 + 500 µ$.
	w := newWorld(t, "funds: prepaid_hold\n"+`
models:
  - {name: m, provider: sim, upstream: "sim?in=11&out=50", context_tokens: 128000, max_output_tokens: 50, price: {input: "2.5", output: "10"}}
keys:
  - {name: k, secret: the-secret-of-the-racing-key}
`)
	w.fund("0.005275")
	w.provider.Hold()
	done := make(chan []answer, 1)
	decided := make(chan struct{}, 50)
	go func() {
		done <- volley(50, 50, func(int) answer {
			a := w.chat(raceKey, "m")
			decided <- struct{}{}
			return a
		})
	}()
	for range 40 {
		<-decided
	}
	w.await("ten held", func(n simulator.Totals) bool { return n.Held == 10 })
	w.provider.Release()
	answers := <-done
	if got := count(answers, 200); got != 10 {
		t.Fatalf("admitted %d, want exactly 10", got)
	}
	for _, a := range answers {
		if a.status != 200 {
			w.must(a, 402, "insufficient_balance")
			if a.header.Get("Retry-After") != "5" || a.header.Get("X-Should-Retry") != "" {
				t.Fatalf("only held amounts are in the way: Retry-After %q, x-should-retry %q", a.header.Get("Retry-After"), a.header.Get("X-Should-Retry"))
			}
		}
	}
	w.settled("2.5", "10")
	w.must(w.chat(raceKey, "m"), 402, "insufficient_balance")
}
