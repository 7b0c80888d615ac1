// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/simulator"
)

// longConfig has a model of up to 4,096 output tokens at 10 dollars a million and
// a free prompt: a request holds 11 tokens and 10 µ$ an output token.
func longConfig(settings, budget, upstream string) string {
	text := settings + `
models:
  - {name: m, provider: sim, upstream: "` + upstream + `", context_tokens: 128000, max_output_tokens: 4096, price: {input: "0", output: "10"}}
keys:
  - {name: k, secret: ` + limitKey + `, team: t}
`
	if budget != "" {
		text += "budgets:\n  - {name: b, " + budget + "}\n"
	}
	return text
}

// received records the output bounds and bodies that reach the provider.
type received struct {
	mu     sync.Mutex
	bounds []int64
	bodies []string
}

func (w *world) record() *received {
	r := &received{}
	w.provider.SetScript(func(q simulator.Request) simulator.Behaviour {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bounds, r.bodies = append(r.bounds, q.OutputBound), append(r.bodies, string(q.Body))
		return q.Scripted
	})
	return r
}

func (r *received) last() (int64, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bounds[len(r.bounds)-1], r.bodies[len(r.bodies)-1]
}

// TestAShortBudgetLowersTheOutputBound: BUD-10. A first request holds the model's
// 4,096; a second gets what is left, written into the request in the client's own
// field, and says so; a third finds less than the floor and is refused.
func TestAShortBudgetLowersTheOutputBound(t *testing.T) {
	const hard = ", period: day, enforcement: hard"
	for _, c := range []struct {
		name, settings, budget, body, field string
		bound                               int64 // of the second; 0: refused
	}{
		{"tokens", "", "scope: org, metric: tokens, limit: 6000, on_short: shrink" + hard, "", "max_tokens", 6000 - 4107 - 11},
		{"spend", "", `scope: org, metric: spend, limit: "0.06", on_short: shrink` + hard, "", "max_tokens", 6000 - 4096},
		{"the client's field", "", `scope: key, metric: spend, limit: "0.06", on_short: shrink` + hard, `"max_completion_tokens":4000`, "max_completion_tokens", 6000 - 4096},
		{"its other field", "", `scope: team, metric: spend, limit: "0.06", on_short: shrink` + hard, `"max_tokens":4000`, "max_tokens", 6000 - 4096},
		{"streamed", "", `scope: team, metric: spend, limit: "0.06", on_short: shrink` + hard, `"stream":true`, "max_tokens", 6000 - 4096},
		{"two completions", "", `scope: org, metric: spend, limit: "0.07", on_short: shrink` + hard, `"n":2`, "max_tokens", (7000 - 4096) / 2},
		{"what fits is left alone", "", `scope: org, metric: spend, limit: "0.06", on_short: shrink` + hard, `"max_tokens":1904`, "", 1904},
		{"the workspace's word", "on_short: shrink\n", `scope: org, metric: spend, limit: "0.06"` + hard, "", "max_tokens", 6000 - 4096},
		{"against the workspace's word", "on_short: shrink\n", `scope: org, metric: spend, limit: "0.06", on_short: refuse` + hard, "", "", 0},
		{"the default refuses", "", `scope: org, metric: spend, limit: "0.06"` + hard, "", "", 0},
		{"on the model", "", `scope: org, metric: spend, limit: "0.06", model: m, on_short: shrink` + hard, "", "max_tokens", 6000 - 4096},
		{"the floor itself", "", `scope: org, metric: spend, limit: "0.0512", on_short: shrink` + hard, "", "max_tokens", 1024},
		{"below the floor", "", `scope: org, metric: spend, limit: "0.05119", on_short: shrink` + hard, "", "", 0},
		{"another floor", "shrink_floor: 10\n", `scope: org, metric: spend, limit: "0.04106", on_short: shrink` + hard, "", "max_tokens", 10},
		{"below another floor", "shrink_floor: 10\n", `scope: org, metric: spend, limit: "0.04105", on_short: shrink` + hard, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, longConfig(c.settings, c.budget, "sim?in=11&out=4096"))
			seen := w.record()
			w.provider.Hold()
			first, second := make(chan answer, 1), make(chan answer, 1)
			send := func(extra string) answer {
				return w.do(context.Background(), http.MethodPost, "/v1/chat/completions", limitKey, chatBody("m", extra))
			}
			go func() { first <- send("") }()
			w.await("the first", func(n simulator.Totals) bool { return n.Held == 1 })
			if c.bound > 0 {
				go func() { second <- send(c.body) }()
				w.await("the second", func(n simulator.Totals) bool { return n.Held == 2 })
				bound, body := seen.last()
				if bound != c.bound || c.field != "" && !strings.Contains(body, fmt.Sprintf(`"%s":%d`, c.field, c.bound)) {
					t.Errorf("the provider is asked for %d: %s", bound, body)
				}
			}
			third := w.must(send(c.body), 429, "budget_exceeded")
			if third.header.Get(admit.OutputHeader) != "" {
				t.Errorf("a refusal says %v", third.header)
			}
			w.provider.Release()
			answers := []answer{w.must(<-first, 200, ""), third}
			if answers[0].header.Get(admit.OutputHeader) != "" {
				t.Errorf("the first was not lowered and says %q", answers[0].header.Get(admit.OutputHeader))
			}
			if c.bound > 0 {
				a, want := w.must(<-second, 200, ""), ""
				if c.field != "" {
					want = strconv.FormatInt(c.bound, 10)
				}
				if got := a.header.Get(admit.OutputHeader); got != want {
					t.Errorf("the answer says %q, want %q", got, want)
				}
				answers = append(answers, a)
			}
			w.recordedOnce(answers)
			w.settled("0", "10")
			w.rest(limitKey)
		})
	}
}

// TestManyShrinkingRequestsNeverPassTheBudget: BUD-10, BUD-2, ORD-2. 64 at once,
// each for all that the model can say: holds and then charges stay within the
// budget, nobody gets less than the floor, each is recorded once.
func TestManyShrinkingRequestsNeverPassTheBudget(t *testing.T) {
	for _, c := range []struct {
		name, budget string
		most         int64 // output tokens in all
	}{
		{"spend", `scope: org, metric: spend, limit: "0.20", period: day, enforcement: hard, on_short: shrink`, 20_000},
		{"tokens", `scope: key, metric: tokens, limit: 20000, period: day, enforcement: hard, on_short: shrink`, 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, longConfig("", c.budget, "sim?in=11&out=4096"))
			seen := w.record()
			answers := volley(64, 64, func(int) answer { return w.chat(limitKey, "m") })
			admitted := 0
			for _, a := range answers {
				if a.status != 200 {
					w.must(a, 429, "budget_exceeded")
					continue
				}
				admitted++
			}
			// Four whole ones and the rest of the last. Some may take their turn in between.
			if admitted < 5 || admitted != len(seen.bounds) {
				t.Errorf("%d admitted, %d reached the provider", admitted, len(seen.bounds))
			}
			sum := int64(0)
			for _, bound := range seen.bounds {
				if bound < 1024 || bound > 4096 {
					t.Errorf("a bound of %d", bound)
				}
				sum += bound
			}
			if sum > c.most || sum < c.most-1024-64*11 {
				t.Errorf("%d output tokens were held of %d", sum, c.most)
			}
			w.recordedOnce(answers)
			w.settled("0", "10")
			w.rest(limitKey)
		})
	}
}

// TestHoldsMayBeBoundedApartFromWhatIsSent: BUD-10, EFF-1, RES-2. With 1,000 output
// tokens held for each, nine of 64 at once fit 10,000 tokens; each may answer all
// that it was asked for, and is charged it; the next is refused.
func TestHoldsMayBeBoundedApartFromWhatIsSent(t *testing.T) {
	for _, c := range []struct {
		name, limit string
		fit         int
		code        string
	}{
		{"tokens", "budgets: [{name: b, scope: org, metric: tokens, limit: 10000, period: day}]\n", 9, "budget_exceeded"},
		{"spend", `budgets: [{name: b, scope: org, metric: spend, limit: "0.10", period: day}]` + "\n", 10, "budget_exceeded"},
		{"a token rule", "rate_limits: [{name: b, subject_kind: org, metric: tokens, window_seconds: 60, limit: 10000}]\n", 9, "rate_limited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, longConfig("hold_output_tokens: 1000\n"+c.limit, "", "sim?in=11&out=4096"))
			seen := w.record()
			answers := w.together(64, c.fit, func(int) answer { return w.chat(limitKey, "m") })
			if got := count(answers, 200); got != c.fit {
				t.Fatalf("%d admitted, want %d", got, c.fit)
			}
			if bound, body := seen.last(); bound != 4096 {
				t.Errorf("the provider is asked for %d, not for what the model can say: %s", bound, body)
			}
			w.must(w.chat(limitKey, "m"), 429, c.code)
			if a := w.must(w.do(context.Background(), http.MethodGet, "/v1/key", limitKey, ""), 200, ""); !strings.Contains(a.body, `"hold_output_tokens":1000`) {
				t.Errorf("the key is not told: %s", a.body)
			}
			w.settled("0", "10")
			w.rest(limitKey)
		})
	}
}
