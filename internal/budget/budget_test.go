// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/window"
)

// with is a valid budget of a scope, with further or other fields.
func with(scope budget.Scope, fields string) string {
	subject := ""
	if scope == budget.ScopePlan {
		subject = `"subject":"intern",`
	}
	text := fmt.Sprintf(`{"scope":%q,%s%s`, scope, subject, fields)
	for _, standard := range []string{`"metric":"spend"`, `"limit":"5"`, `"period":"day"`} {
		name, _, _ := strings.Cut(standard, ":")
		if name == `"period"` && strings.Contains(fields, `"window"`) || strings.Contains(fields, name) {
			continue
		}
		text += "," + standard
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, ",,", ","), "{,", "{") + "}"
}

// BUD-1: A's default for keys and plans, N's for the other scopes; both
// spellings mean the same.
func TestEnforcementIsReadInBothSpellings(t *testing.T) {
	for _, scope := range budget.Scopes() {
		own := scope == budget.ScopeKey || scope == budget.ScopePlan
		standard := budget.Hard
		if own {
			standard = budget.Guard
		}
		for fields, want := range map[string]string{
			``: standard, `"enforcement":"hard"`: budget.Hard, `"enforcement":"guard"`: budget.Guard, `"enforcement":"soft"`: budget.Soft,
		} {
			if b := read(t, with(scope, fields)); b.Enforcement != want {
				t.Errorf("%s, %s: enforcement is %s, want %s", scope, fields, b.Enforcement, want)
			}
		}
		for fields, want := range map[string]string{`"on_exceeded":"block"`: budget.Guard, `"on_exceeded":"record"`: budget.Soft} {
			if !own {
				if wrong := problems(t, &budget.Budget{}, with(scope, fields)); len(wrong) != 1 || wrong["on_exceeded"] == "" {
					t.Errorf("%s, %s: problems are %v", scope, fields, wrong)
				}
			} else if b := read(t, with(scope, fields)); b.Enforcement != want {
				t.Errorf("%s, %s: enforcement is %s, want %s", scope, fields, b.Enforcement, want)
			}
		}
	}
}

// BR-050, BUD-1: every spelling of a length is one window, and what is none is
// refused with what to write.
func TestEqualLengthsAreOneWindow(t *testing.T) {
	for _, same := range [][]string{
		{"1d", "24h", "1440m", "86400s"}, {"1w", "7d", "168h"}, {"1h", "60m", "3600s"}, {"10s"}, {"366d", "8784h"},
	} {
		first := read(t, with(budget.ScopeUser, `"window":"`+same[0]+`"`))
		body, err := budget.Encode(first)
		if err != nil {
			t.Fatal(err)
		}
		for _, spelling := range same {
			b := read(t, with(budget.ScopeUser, `"window":"`+spelling+`"`))
			if diff := cmp.Diff(first, b); diff != "" || b.Counts(first) {
				t.Errorf("%s is not %s:\n%s", spelling, same[0], diff)
			}
			if again, err := budget.Encode(b); err != nil || string(again) != string(body) {
				t.Errorf("%s is written as %s, %s as %s", spelling, again, same[0], body)
			}
		}
	}
	for spelling, hint := range map[string]string{
		"daily": "period: day", "weekly": "period: week", "monthly": "period: month", "day": "period: day", "month": "period: month",
		"": "1h", "1": "1h", "1M": "1h", "1mo": "1h", "1y": "1h", "01h": "1h", "+1h": "1h", "-1h": "1h", "1.5h": "1h", "1 h": "1h", "P1D": "1h",
		"9s": "10s", "367d": "366d", "0s": "10s", "99999999999999999999d": "366d", "500ms": "1h",
	} {
		wrong := problems(t, &budget.Budget{}, with(budget.ScopeUser, `"window":"`+spelling+`"`))
		if len(wrong) != 1 || !strings.Contains(wrong["window"], hint) {
			t.Errorf("%q: problems are %v, want %q in one", spelling, wrong, hint)
		}
	}
	for _, word := range []string{"daily", "Day", "year", "1d", ""} {
		if wrong := problems(t, &budget.Budget{}, with(budget.ScopeUser, `"period":"`+word+`"`)); len(wrong) != 1 || wrong["period"] == "" {
			t.Errorf("period %q: problems are %v", word, wrong)
		}
	}
}

// BR-054, MON-4: an amount is above 0 and exact, or it is refused.
func TestAnAmountIsAboveZeroAndExact(t *testing.T) {
	for text, want := range map[string]int64{
		`"10"`: 10 * int64(money.Dollar), `10`: 10 * int64(money.Dollar), `"0.000000001"`: 1, `"1000000000"`: int64(money.MaxAmount),
		`0`: 0, `"0"`: 0, `"0.000000000"`: 0, `-7`: 0, `"-7"`: 0, `"NaN"`: 0, `"+Inf"`: 0, `1e309`: 0, `1e3`: 0, `10.5`: 0, `"1e3"`: 0,
		`"10.1234567891"`: 0, `"1000000000.000000001"`: 0, `1000000001`: 0, `true`: 0, `[]`: 0, `null`: 0, `" 1"`: 0, `""`: 0, `"+1"`: 0,
	} {
		b := &budget.Budget{}
		wrong := problems(t, b, with(budget.ScopeOrg, `"limit":`+text))
		if accepted := len(wrong) == 0; accepted != (want > 0) || accepted && b.Limit != want || !accepted && wrong["limit"] == "" {
			t.Errorf("%s dollars: %d, %v; want %d", text, b.Limit, wrong, want)
		}
	}
	for text, want := range map[string]int64{
		`1`: 1, `1000000000000000`: budget.MaxTokens,
		`0`: 0, `-1`: 0, `1000000000000001`: 0, `1.0`: 0, `1e3`: 0, `"10"`: 0, `99999999999999999999`: 0, `null`: 0, `false`: 0,
	} {
		b := &budget.Budget{}
		wrong := problems(t, b, with(budget.ScopeOrg, `"metric":"tokens","limit":`+text))
		if accepted := len(wrong) == 0; accepted != (want > 0) || accepted && b.Limit != want || !accepted && wrong["limit"] == "" {
			t.Errorf("%s tokens: %d, %v; want %d", text, b.Limit, wrong, want)
		}
	}
}

// BUD-1: what may stand in each field, each refusal told once and at its place.
func TestABudgetIsReadStrictly(t *testing.T) {
	long := strings.Repeat("a", 129)
	for text, want := range map[string]string{
		with(budget.ScopeUser, `"subject":"ada"`):                                 "",
		with(budget.ScopeUser, `"subject_id":"ada"`):                              "",
		with(budget.ScopeUser, `"subject":"a","subject_id":"a"`):                  "subject_id",
		with(budget.ScopeUser, `"subject":"`+long+`"`):                            "subject",
		with(budget.ScopeTeam, `"subject":"a b"`):                                 "subject",
		with(budget.ScopeKey, `"subject":"a b"`):                                  "",
		with(budget.ScopeKey, `"subject":" a"`):                                   "subject",
		with(budget.ScopeOrg, `"subject":"x"`):                                    "subject",
		with(budget.ScopeOrg, `"subject":null`):                                   "",
		`{"scope":"plan","metric":"spend","limit":"5","period":"day"}`:            "subject",
		`{"scope":"world","metric":"spend","limit":"5","period":"day"}`:           "scope",
		`{"metric":"spend","limit":"5","period":"day"}`:                           "scope",
		`{"scope":"org","limit":"5","period":"day"}`:                              "metric",
		`{"scope":"org","metric":"spend","period":"day"}`:                         "limit",
		`{"scope":"org","metric":"spend","limit":"5"}`:                            "",
		with(budget.ScopeOrg, `"window":"1h","period":"day"`):                     "",
		with(budget.ScopeOrg, `"window":3600`):                                    "window",
		with(budget.ScopeOrg, `"window":"1h","time_zone":"Europe/Berlin"`):        "time_zone",
		with(budget.ScopeOrg, `"time_zone":"Europe/Berlin"`):                      "",
		with(budget.ScopeOrg, `"time_zone":"Europe/berlin"`):                      "time_zone",
		with(budget.ScopeOrg, `"time_zone":"../etc"`):                             "time_zone",
		with(budget.ScopeOrg, `"model":"gpt"`):                                    "",
		with(budget.ScopeOrg, `"model":"g p t"`):                                  "model",
		with(budget.ScopeOrg, `"provider":"a/b"`):                                 "provider",
		with(budget.ScopeOrg, `"model":"gpt","provider":"openai"`):                "provider",
		with(budget.ScopeOrg, `"warn_percent":[80,50,80]`):                        "",
		with(budget.ScopeOrg, `"warn_percent":1`):                                 "",
		with(budget.ScopeOrg, `"warn_percent":100`):                               "",
		with(budget.ScopeOrg, `"warn_percent":0`):                                 "warn_percent",
		with(budget.ScopeOrg, `"warn_percent":[101]`):                             "warn_percent[0]",
		with(budget.ScopeOrg, `"warn_percent":["80"]`):                            "warn_percent[0]",
		with(budget.ScopeOrg, `"warn_percent":[80.0]`):                            "warn_percent[0]",
		with(budget.ScopeOrg, `"warn_percent":{}`):                                "warn_percent",
		with(budget.ScopeOrg, `"warn_percent":[1,2,3,4,5,6,7,8,9,10,11]`):         "warn_percent",
		with(budget.ScopeOrg, `"enforcement":"block"`):                            "enforcement",
		with(budget.ScopeKey, `"enforcement":"guard","on_exceeded":"block"`):      "on_exceeded",
		with(budget.ScopeKey, `"on_exceeded":"hard"`):                             "on_exceeded",
		with(budget.ScopeKey, `"on_missing_usage":"skip"`):                        "",
		with(budget.ScopePlan, `"on_missing_usage":"skip"`):                       "",
		with(budget.ScopeUser, `"on_missing_usage":"skip"`):                       "on_missing_usage",
		with(budget.ScopeUser, `"on_missing_usage":"charge"`):                     "",
		with(budget.ScopeKey, `"on_missing_usage":"drop"`):                        "on_missing_usage",
		with(budget.ScopeOrg, `"count_cached":false`):                             "count_cached",
		with(budget.ScopeOrg, `"metric":"tokens","limit":5,"count_cached":false`): "",
		with(budget.ScopeOrg, `"on_short":"shrink"`):                              "",
		with(budget.ScopeOrg, `"on_short":"grow"`):                                "on_short",
		with(budget.ScopeKey, `"on_short":"shrink"`):                              "on_short",
		with(budget.ScopeOrg, `"enforcement":"soft","on_short":"refuse"`):         "on_short",
		with(budget.ScopeOrg, `"count_from":"window_start"`):                      "",
		with(budget.ScopeOrg, `"count_from":"yesterday"`):                         "count_from",
		with(budget.ScopeOrg, `"owner":"key_0123456789abcdef"`):                   "owner",
		with(budget.ScopeOrg, `"system":true`):                                    "system",
		with(budget.ScopeOrg, `"epoch":1`):                                        "epoch",
		with(budget.ScopeOrg, `"Limit":1`):                                        "Limit",
	} {
		wrong := problems(t, &budget.Budget{}, text)
		unplaced := strings.Contains(text, `"window":"1h","period"`) || !strings.Contains(text, `"window"`) && !strings.Contains(text, `"period"`)
		switch {
		case unplaced: // of two fields, neither is the wrong one
			if len(wrong) != 1 || wrong[""] == "" {
				t.Errorf("%s: problems are %v", text, wrong)
			}
		case want == "" && len(wrong) > 0, want != "" && (len(wrong) != 1 || wrong[want] == ""):
			t.Errorf("%s: problems are %v, want one of %q", text, wrong, want)
		}
	}
}

func TestThresholdsAreAscendingAndDistinct(t *testing.T) {
	for text, want := range map[string][]int64{`[80,50,80]`: {50, 80}, `100`: {100}, `[]`: nil, `null`: nil} {
		b := read(t, with(budget.ScopeOrg, `"warn_percent":`+text))
		if diff := cmp.Diff(want, b.WarnPercent); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// BUD-1, CAP-3: the window of a budget is the calendar's of its zone, or a
// length from the epoch.
func TestTheWindowOfABudgetIsWhereItsFieldsPutIt(t *testing.T) {
	at := time.Date(2026, 3, 8, 23, 30, 0, 0, time.UTC).UnixMicro() // a Sunday; Monday in Kathmandu
	for fields, want := range map[string]string{
		`"period":"day"`:   "2026-03-08T00:00:00Z",
		`"period":"week"`:  "2026-03-02T00:00:00Z",
		`"period":"month"`: "2026-03-01T00:00:00Z",
		`"period":"day","time_zone":"Asia/Kathmandu"`:   "2026-03-08T18:15:00Z",
		`"period":"week","time_zone":"Asia/Kathmandu"`:  "2026-03-08T18:15:00Z",
		`"period":"month","time_zone":"Asia/Kathmandu"`: "2026-02-28T18:15:00Z",
		`"window":"1h"`: "2026-03-08T23:00:00Z",
		`"window":"1d"`: "2026-03-08T00:00:00Z",
		`"window":"1w"`: "2026-03-05T00:00:00Z", // weeks of a fixed length begin on Thursdays, as the epoch did
	} {
		spec, err := read(t, with(budget.ScopeTeam, fields)).Spec()
		if err != nil {
			t.Fatal(err)
		}
		start, end := spec.Bounds(at)
		if got := time.UnixMicro(start).UTC().Format(time.RFC3339); got != want || end <= at {
			t.Errorf("%s: the window begins %s, want %s", fields, got, want)
		}
	}
	b := &budget.Budget{Period: budget.Day, Zone: "Mars/Base"}
	if _, err := b.Spec(); err == nil {
		t.Error("a budget counts in a zone that nobody knows")
	}
	if spec, err := (&budget.Budget{WindowMicros: window.MinLength}).Spec(); err != nil || spec.Length != window.MinLength {
		t.Errorf("spec is %+v, %v", spec, err)
	}
}

// BUD-4.
func TestOnlyWhatChangesTheSumNeedsANewCounter(t *testing.T) {
	base := func() *budget.Budget {
		return &budget.Budget{
			Name: "a", Scope: budget.ScopeKey, Subject: "key_1", Metric: budget.Tokens, Limit: 5, Period: budget.Day, Enforcement: budget.Hard,
		}
	}
	yes := true
	for name, c := range map[string]struct {
		change func(b *budget.Budget)
		want   bool
	}{
		"name":             {func(b *budget.Budget) { b.Name = "b" }, false},
		"id":               {func(b *budget.Budget) { b.ID = "bud_1" }, false},
		"limit":            {func(b *budget.Budget) { b.Limit = 6 }, false},
		"warn_percent":     {func(b *budget.Budget) { b.WarnPercent = []int64{80} }, false},
		"enforcement":      {func(b *budget.Budget) { b.Enforcement = budget.Soft }, false},
		"on_missing_usage": {func(b *budget.Budget) { b.SkipMissingUsage = true }, false},
		"on_short":         {func(b *budget.Budget) { b.Shrink = &yes }, false},
		"count_from":       {func(b *budget.Budget) { b.CountFrom = budget.WindowStart }, false},
		"system":           {func(b *budget.Budget) { b.System = true }, false},
		"utc":              {func(b *budget.Budget) { b.Zone = "UTC" }, false},
		"scope":            {func(b *budget.Budget) { b.Scope = budget.ScopeUser }, true},
		"subject":          {func(b *budget.Budget) { b.Subject = "key_2" }, true},
		"metric":           {func(b *budget.Budget) { b.Metric = budget.Spend }, true},
		"period":           {func(b *budget.Budget) { b.Period = budget.Week }, true},
		"time_zone":        {func(b *budget.Budget) { b.Zone = "Asia/Kathmandu" }, true},
		"window":           {func(b *budget.Budget) { b.Period, b.WindowMicros = "", 86_400_000_000 }, true},
		"model":            {func(b *budget.Budget) { b.Model = "gpt" }, true},
		"provider":         {func(b *budget.Budget) { b.Provider = "openai" }, true},
		"count_cached":     {func(b *budget.Budget) { b.Uncached = true }, true},
	} {
		b := base()
		c.change(b)
		if b.Counts(base()) != c.want || base().Counts(b) != c.want {
			t.Errorf("%s: counts something else: %t, want %t", name, !c.want, c.want)
		}
	}
}

// A change names what it changes: what excludes it goes, the rest stays.
func TestAChangeReplacesWhatItExcludes(t *testing.T) {
	first := func() *budget.Budget {
		return read(t, with(budget.ScopeKey, `"subject":"ci","period":"month","time_zone":"Europe/Berlin","model":"gpt","on_exceeded":"record","warn_percent":[50]`))
	}
	for text, want := range map[string]func(b *budget.Budget){
		`{}`:                    func(*budget.Budget) {},
		`{"limit":"7"}`:         func(b *budget.Budget) { b.Limit = 7 * int64(money.Dollar) },
		`{"window":"1h"}`:       func(b *budget.Budget) { b.Period, b.Zone, b.WindowMicros = "", "", 3600_000_000 },
		`{"period":"day"}`:      func(b *budget.Budget) { b.Period = budget.Day },
		`{"time_zone":null}`:    func(b *budget.Budget) { b.Zone = "" },
		`{"time_zone":"UTC"}`:   func(b *budget.Budget) { b.Zone = "" },
		`{"provider":"openai"}`: func(b *budget.Budget) { b.Model, b.Provider = "", "openai" },
		`{"model":null}`:        func(b *budget.Budget) { b.Model = "" },
		`{"subject":null}`:      func(b *budget.Budget) { b.Subject = "" },
		`{"metric":"tokens","limit":9,"count_cached":false}`: func(b *budget.Budget) { b.Metric, b.Limit, b.Uncached = budget.Tokens, 9, true },
		`{"warn_percent":null,"enforcement":"hard","on_short":"shrink"}`: func(b *budget.Budget) {
			yes := true
			b.WarnPercent, b.Enforcement, b.Shrink = nil, budget.Hard, &yes
		},
	} {
		b, wanted := first(), first()
		want(wanted)
		if wrong := problems(t, b, text); len(wrong) > 0 {
			t.Errorf("%s: %v", text, wrong)
		}
		if diff := cmp.Diff(wanted, b); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{`{"metric":"tokens"}`: "limit", `{"limit":null}`: "limit", `{"scope":"user"}`: "", `{"enforcement":"hard","on_exceeded":"block"}`: "on_exceeded"} {
		wrong := problems(t, first(), text)
		if want == "" && len(wrong) > 0 || want != "" && wrong[want] == "" {
			t.Errorf("%s: problems are %v", text, wrong)
		}
	}
	fixed := read(t, with(budget.ScopeKey, `"window":"1h"`))
	if wrong := problems(t, fixed, `{"period":"week"}`); len(wrong) > 0 || fixed.WindowMicros != 0 || fixed.Period != budget.Week {
		t.Errorf("budget is %+v, %v", fixed, wrong)
	}
}

// Two keys may each have a budget of one name, and none of the workspace's can
// take the place of theirs.
func TestTheNameOfAnOwnedBudgetFollowsItsOwner(t *testing.T) {
	const key = "key_0123456789abcdef"
	if got := budget.ObjectName("", "month"); got != "month" || budget.SplitObjectName("", got) != "month" {
		t.Errorf("name is %q", got)
	}
	if got := budget.ObjectName(key, "a: b"); got != key+": a: b" || budget.SplitObjectName(key, got) != "a: b" {
		t.Errorf("name is %q", got)
	}
	for name, want := range map[string]bool{
		"month": true, "Büro, Monat €": true, strings.Repeat("é", 100): true, "key_0123: x": true, "key_0123456789abcdef": true,
		"bud_0123456789abcdef: x": true, "key_0123456789ABCDEF: x": true, "key_0123456789abcdef:x": true,
		"": false, strings.Repeat("é", 101): false, " a": false, "a ": false, "a\nb": false, "a\u200bb": false, "a\u00a0b": false, "a\xff": false, "a\u202eb": false,
		"key_0123456789abcdef: x": false, "pla_0123456789abcdef: ": false,
	} {
		if err := budget.ValidName(name); (err == nil) != want {
			t.Errorf("%q: %v, want valid %t", name, err, want)
		}
	}
}

func TestAnOwnedBudgetBoundsItsOwner(t *testing.T) {
	for body, want := range map[string]bool{
		`{"owner":"key_1","scope":"key","subject":"key_1","metric":"spend","limit":"1","period":"day","enforcement":"guard"}`:  true,
		`{"owner":"pla_1","scope":"plan","subject":"pla_1","metric":"spend","limit":"1","period":"day","enforcement":"guard"}`: true,
		`{"owner":"key_1","scope":"key","subject":"key_2","metric":"spend","limit":"1","period":"day","enforcement":"guard"}`:  false,
		`{"owner":"key_1","scope":"user","subject":"key_1","metric":"spend","limit":"1","period":"day","enforcement":"guard"}`: false,
		`{"scope":"key","metric":"spend","limit":"1","period":"day","enforcement":"guard"} {}`:                                 false,
		`{"scope":"key","metric":"spend","limit":"1","period":"day","enforcement":"guard","unknown":1}`:                        false,
		`{"scope":"key","scope":"org","metric":"spend","limit":"1","period":"day","enforcement":"guard"}`:                      false,
	} {
		if _, err := budget.Decode([]byte(body)); (err == nil) != want {
			t.Errorf("%s: %v, want valid %t", body, err, want)
		}
	}
}

// What is not read but made is held to the same bounds.
func TestAMadeBudgetIsHeldToTheSameBounds(t *testing.T) {
	for want, change := range map[string]func(b *budget.Budget){
		"limit":           func(b *budget.Budget) { b.Limit = int64(money.MaxAmount) + 1 },
		"metric":          func(b *budget.Budget) { b.Metric = "requests" },
		"enforcement":     func(b *budget.Budget) { b.Enforcement = "" },
		"period":          func(b *budget.Budget) { b.Period = "year" },
		"window":          func(b *budget.Budget) { b.Period, b.WindowMicros = "", window.MinLength+1 },
		"warn_percent[1]": func(b *budget.Budget) { b.WarnPercent = []int64{50, 50} },
		"warn_percent[0]": func(b *budget.Budget) { b.WarnPercent = []int64{0} },
		"count_from":      func(b *budget.Budget) { b.CountFrom = "now" },
		"name":            func(b *budget.Budget) { b.Name = "\t" },
	} {
		b := &budget.Budget{Scope: budget.ScopeOrg, Metric: budget.Spend, Limit: 1, Period: budget.Day, Enforcement: budget.Hard}
		if err := b.Validate(); err != nil {
			t.Fatal(err)
		}
		change(b)
		wrong, ok := b.Validate().(document.Problems) //nolint:errorlint // that is what it returns
		if !ok || len(wrong) != 1 || wrong[0].Path != want {
			t.Errorf("%s: problems are %v", want, wrong)
		}
	}
}
