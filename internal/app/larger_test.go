// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWhatIsLargerThanAWholeBudgetIsToldWhatFits: RUN-2, ERR-1, ERR-3. The bound
// that the refusal names is admitted, one token more is not; nothing is named
// where no bound would do, or where amounts are hidden.
func TestWhatIsLargerThanAWholeBudgetIsToldWhatFits(t *testing.T) {
	const phrase = "it would fit now"
	for _, c := range []struct {
		name, settings, budget string
		bound                  int64 // that fits; 0: none
	}{
		{"spend", "", `scope: org, metric: spend, limit: "0.02", period: day`, 2000},
		{"tokens", "", "scope: key, metric: tokens, limit: 3000, period: day, enforcement: hard", 2989},
		{"on the model", "", `scope: user, metric: spend, limit: "0.02", window: 1h, model: m`, 2000},
		{"not even the prompt", "", "scope: org, metric: tokens, limit: 11, period: day", 0},
		{"hidden amounts", "hide_amounts: true\n", `scope: org, metric: spend, limit: "0.02", period: day`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.Replace(longConfig(c.settings, c.budget, "sim?in=11&out=1"), ", team: t", ", user: u", 1))
			send := func(extra string) answer {
				return w.do(context.Background(), http.MethodPost, "/v1/chat/completions", limitKey, chatBody("m", extra))
			}
			a := w.must(send(""), 429, "budget_exceeded")
			if !strings.Contains(a.body, "larger_than_limit") || a.header.Get("x-should-retry") != "false" || a.header.Get("Retry-After") != "" {
				t.Fatalf("refused with %v: %v", a, a.header)
			}
			if c.bound == 0 {
				if strings.Contains(a.body, phrase) {
					t.Errorf("refused with %v", a)
				}
				return
			}
			if want := fmt.Sprintf("asking for at most %d tokens of output, %s", c.bound, phrase); !strings.Contains(a.body, want) {
				t.Errorf("refused with %v, want %q in it", a, want)
			}
			w.must(send(fmt.Sprintf(`"max_tokens":%d`, c.bound+1)), 429, "budget_exceeded")
			w.must(send(fmt.Sprintf(`"max_tokens":%d`, c.bound)), 200, "")
			w.balanced()
		})
	}
}
