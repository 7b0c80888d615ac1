// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
)

// warnedConfig has a hard budget of a dollar and a soft one of 30 cents.
func warnedConfig(percents string) string {
	return pennyKey(`budgets:
  - {name: hard, scope: org, metric: spend, limit: "1", period: day, warn_percent: [`+percents+`], enforcement: hard}
  - {name: soft, scope: key, metric: spend, limit: "0.30", period: week, enforcement: soft}
`, "")
}

// TestAWarningIsAnnouncedOnce: BUD-5. However many settle at once, the event of
// each budget, window and level is written once; of several thresholds that one
// settlement passes, the highest.
func TestAWarningIsAnnouncedOnce(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		w := newWorld(t, warnedConfig("50"))
		if got := count(w.together(64, 64, func(int) answer { return w.chat(limitKey, "m") }), 200); got != 64 {
			t.Fatalf("%d passed", got)
		}
		got := w.notices()
		slices.Sort(got)
		if want := []string{"hard threshold 50 2026-07-20", "soft soft 100 2026-07-20"}; !slices.Equal(got, want) {
			t.Errorf("announced %q, want %q", got, want)
		}
		w.balanced()
	})
	t.Run("several thresholds at once", func(t *testing.T) {
		w := newWorld(t, warnedConfig("10, 20, 30, 40, 50, 60, 70"))
		w.together(64, 64, func(int) answer { return w.chat(limitKey, "m") })
		var hard []string
		for _, n := range w.notices() {
			if strings.HasPrefix(n, "hard") {
				hard = append(hard, n)
			}
		}
		if len(hard) == 0 || hard[len(hard)-1] != "hard threshold 60 2026-07-20" || !slices.IsSorted(hard) || len(slices.Compact(slices.Clone(hard))) != len(hard) {
			t.Errorf("announced %q", hard)
		}
	})
}

// TestAWarningStaysAnnounced over a restart, a changed amount and a raise; a reset
// and the next window begin anew: BUD-5, BUD-9, BUD-4.
func TestAWarningStaysAnnounced(t *testing.T) {
	ctx := context.Background()
	config := func(limit string) string {
		return pennyKey(`budgets: [{name: b, scope: org, metric: spend, limit: "`+limit+`", period: day, warn_percent: [50, 75], enforcement: hard}]`+"\n", "")
	}
	w := newWorld(t, config("0.04"))
	var want []string
	spend := func(what string, requests int, more ...string) {
		t.Helper()
		for range requests {
			w.must(w.chat(limitKey, "m"), 200, "")
		}
		want = append(want, more...)
		if got := w.notices(); !slices.Equal(got, want) {
			t.Fatalf("%s: announced %q, want %q", what, got, want)
		}
	}
	spend("below", 1)
	spend("at 50", 1, "b threshold 50 2026-07-20")
	w.restart()
	spend("at 75 after a restart", 1, "b threshold 75 2026-07-20")
	w.restart()
	spend("at 100 after another", 1)
	w.reload(config("0.06"), func() bool { return w.limit(limitKey, "b").Amount == "0.06" })
	spend("with a larger amount, at 83", 1)
	_, err := w.admin.BudgetRaise(ctx, admin.BudgetRaiseRequest{ID: "b", Body: admin.RaiseFields{AmountUSD: admin.Some("0.02"), Reason: "a busy day"}})
	if err != nil {
		t.Fatal(err)
	}
	spend("raised to 0.08, at 75 and above again", 3)
	if _, err := w.admin.BudgetReset(ctx, admin.BudgetResetRequest{ID: "b", Body: admin.ResetFields{Reason: "an error"}}); err != nil {
		t.Fatal(err)
	}
	spend("after a reset, below", 3)
	spend("after a reset, at 50 of 0.08", 1, "b threshold 50 2026-07-20")
	w.clock.Set(instant(t, "2026-07-21T00:00:00Z"))
	spend("in the next window, below", 2)
	spend("in the next window, at 50 of 0.06", 1, "b threshold 50 2026-07-21")
	w.balanced()
}

// TestEachSubjectIsWarnedOfForItself: BUD-5, KEY-7. 16 users at once, each at the
// threshold: an event each.
func TestEachSubjectIsWarnedOfForItself(t *testing.T) {
	const users = 16
	w := newWorld(t, pennyKey(`budgets: [{name: each, scope: user, metric: spend, limit: "0.04", period: day, warn_percent: [50], enforcement: guard}]`+"\n", ", attribute_users: header"))
	answers := w.together(users*3, users*3, func(i int) answer {
		return w.chat(limitKey, "m", "X-Weir-User", fmt.Sprintf("user-%d", i%users))
	})
	if got := count(answers, 200); got != users*3 {
		t.Fatalf("%d passed", got)
	}
	list := w.outbox()
	told := map[string]int{}
	for i := range list {
		told[list[i].Counter.Subject]++
	}
	for user := range users {
		if n := told[fmt.Sprintf("user-%d", user)]; n != 1 {
			t.Errorf("user %d: %d events", user, n)
		}
	}
	if len(list) != users {
		t.Errorf("%d events of %d users", len(list), users)
	}
}
