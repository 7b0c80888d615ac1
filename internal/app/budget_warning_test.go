// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/simulator"
)

// TestAnswersWarnFromTheThresholdOn: BUD-5. What is settled and held, a request's
// own hold included, decides; a budget that holds nothing sees what is settled.
// Requests of a cent and of 61 tokens, at noon, whole and streamed in turn. The
// request after the listed ones is refused, without a warning, where one is.
func TestAnswersWarnFromTheThresholdOn(t *testing.T) {
	for _, c := range []struct {
		name, budget, settings string
		answers                []string // "": no header
		refused                bool
	}{
		{"hard", `metric: spend, limit: "0.05", period: day, warn_percent: [50, 80], enforcement: hard`, "", []string{
			"", "", `"b";used_pct=60;level=threshold;reset=43200`, `"b";used_pct=80;level=threshold;reset=43200`, `"b";used_pct=100;level=threshold;reset=43200`,
		}, true},
		{"guard", `metric: spend, limit: "0.05", period: day, warn_percent: [60], enforcement: guard`, "", []string{
			"", "", "", `"b";used_pct=60;level=threshold;reset=43200`, `"b";used_pct=80;level=threshold;reset=43200`,
		}, true},
		{"soft", `metric: spend, limit: "0.03", period: day, enforcement: soft`, "", []string{
			"", "", "", `"b";used_pct=100;level=soft;reset=43200`, `"b";used_pct=133;level=soft;reset=43200`,
		}, false},
		{"soft with a threshold", `metric: spend, limit: "0.03", period: day, warn_percent: [33], enforcement: soft`, "", []string{
			"", `"b";used_pct=33;level=threshold;reset=43200`, `"b";used_pct=66;level=threshold;reset=43200`, `"b";used_pct=100;level=soft;reset=43200`,
		}, false},
		{"tokens", `metric: tokens, limit: 244, period: day, warn_percent: [51], enforcement: hard`, "", []string{
			"", "", `"b";used_pct=75;level=threshold;reset=43200`, `"b";used_pct=100;level=threshold;reset=43200`,
		}, true},
		{"a zone", `metric: tokens, limit: 122, period: day, time_zone: Asia/Tokyo, warn_percent: [50], enforcement: hard`, "", []string{
			`"b";used_pct=50;level=threshold;reset=10800`, `"b";used_pct=100;level=threshold;reset=10800`,
		}, true},
		{"a window", `metric: tokens, limit: 61, window: 1h, warn_percent: [100], enforcement: hard`, "", []string{
			`"b";used_pct=100;level=threshold;reset=3600`,
		}, true},
		{"narrowed", `metric: tokens, limit: 122, window: 1h, warn_percent: [50], model: m, enforcement: hard`, "", []string{
			`"b";used_pct=50;level=threshold;reset=3600`, `"b";used_pct=100;level=threshold;reset=3600`,
		}, true},
		{"no threshold", `metric: tokens, limit: 122, period: day, enforcement: hard`, "", []string{"", ""}, true},
		{"hidden amounts", `metric: tokens, limit: 122, period: day, warn_percent: [50], enforcement: hard`, "hide_amounts: true\n", []string{
			`"b";level=threshold;reset=43200`, `"b";level=threshold;reset=43200`,
		}, true},
	} {
		for _, scope := range []string{"org", "user", "key"} {
			t.Run(c.name+" of "+scope, func(t *testing.T) {
				t.Parallel()
				w := newWorldAt(t, at(t, "12:00:00"), pennyKey(c.settings+"budgets: [{name: b, scope: "+scope+", "+c.budget+"}]\n", ", user: u"))
				send := func(i int) answer {
					if i%2 == 1 {
						return w.stream(limitKey, "m", "")
					}
					return w.chat(limitKey, "m")
				}
				for i, want := range c.answers {
					if got := w.must(send(i), 200, "").header.Get(admit.WarningHeader); got != want {
						t.Fatalf("request %d warns %q, want %q", i+1, got, want)
					}
				}
				last := send(len(c.answers))
				if last.status == 200 == c.refused || c.refused && last.header.Get(admit.WarningHeader) != "" {
					t.Fatalf("the request after them got %v, %q", last, last.header.Get(admit.WarningHeader))
				}
				w.balanced()
			})
		}
	}
}

// TestAWarningCountsWhatOthersHold, names every budget in the published order,
// and quotes what a header cannot hold: BUD-5.
func TestAWarningCountsWhatOthersHold(t *testing.T) {
	w := newWorldAt(t, at(t, "12:00:00"), pennyKey(`budgets:
  - {name: 'the "whole" \ Größe', scope: org, metric: spend, limit: "0.10", period: day, warn_percent: [30], enforcement: hard}
  - {name: team day, scope: team, metric: tokens, limit: 183, period: day, warn_percent: [60], enforcement: hard}
  - {name: tail, scope: user, metric: spend, limit: "0.01", window: 1h, enforcement: soft}
`, ", team: t, user: u"))
	w.provider.Hold()
	first, second := make(chan answer, 1), make(chan answer, 1)
	go func() { first <- w.chat(limitKey, "m") }()
	w.await("the first", func(n simulator.Totals) bool { return n.Held == 1 })
	go func() { second <- w.chat(limitKey, "m") }()
	w.await("the second", func(n simulator.Totals) bool { return n.Held == 2 })
	w.provider.Release()
	if got := w.must(<-first, 200, "").header.Get(admit.WarningHeader); got != "" {
		t.Errorf("the first warns %q", got)
	}
	if got := w.must(<-second, 200, "").header.Get(admit.WarningHeader); got != `"team day";used_pct=66;level=threshold;reset=43200` {
		t.Errorf("the second warns %q", got)
	}
	want := `"tail";used_pct=200;level=soft;reset=3600, "team day";used_pct=100;level=threshold;reset=43200, "the \"whole\" \\ Gr????e";used_pct=30;level=threshold;reset=43200`
	if got := w.must(w.chat(limitKey, "m"), 200, "").header.Get(admit.WarningHeader); got != want {
		t.Errorf("the third warns %s, want %s", got, want)
	}
}
