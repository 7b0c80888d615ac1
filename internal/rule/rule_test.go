// SPDX-License-Identifier: Apache-2.0

package rule_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/rule"
)

// draw is any valid rule.
func draw(t *rapid.T) *rule.Rule {
	r := &rule.Rule{
		SubjectKind: rapid.SampledFrom(rule.Subjects()).Draw(t, "kind"), Metric: rapid.SampledFrom([]string{rule.Requests, rule.Tokens}).Draw(t, "metric"),
		Model:         rapid.SampledFrom([]string{"", "acme/gpt"}).Draw(t, "model"),
		WindowSeconds: rapid.Int64Range(1, rule.MaxWindowSeconds).Draw(t, "window"), Limit: rapid.Int64Range(1, rule.MaxLimit).Draw(t, "limit"),
		Enabled: rapid.Bool().Draw(t, "enabled"),
	}
	if r.SubjectKind == rule.SubjectTag || r.SubjectKind != rule.SubjectOrg && rapid.Bool().Draw(t, "one") {
		r.SubjectID = "batch"
	}
	if r.Metric == rule.Tokens {
		r.EstimateInput, r.Uncached = rapid.Bool().Draw(t, "input"), rapid.Bool().Draw(t, "uncached")
	}
	return r
}

// RAT-7: what was written comes back, and is written the same again.
func TestARuleComesBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := draw(t)
		body, err := rule.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := rule.Decode(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", body, diff)
		}
		if again, err := rule.Encode(back); err != nil || !bytes.Equal(body, again) || back.Counts(r) {
			t.Fatalf("%s is written as %s, %v", body, again, err)
		}
	})
}

// problems are what is wrong with a text read over a rule, by path.
func problems(t testing.TB, r *rule.Rule, text string) map[string]string {
	t.Helper()
	n, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	_, err = r.Read(n)
	var list document.Problems
	if err != nil && !errors.As(err, &list) {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, p := range list {
		if found[p.Path] != "" {
			t.Errorf("%s: %s is told twice: %s; %s", text, p.Path, found[p.Path], p.Text)
		}
		found[p.Path] = p.Text
	}
	return found
}

// with is a valid rule with further or other fields.
func with(fields string) string {
	all := []string{fields}
	for _, standard := range []string{`"subject_kind":"user"`, `"metric":"tokens"`, `"window_seconds":60`, `"limit":5`} {
		if name, _, _ := strings.Cut(standard, ":"); !strings.Contains(fields, name) {
			all = append(all, standard)
		}
	}
	return "{" + strings.TrimPrefix(strings.Join(all, ","), ",") + "}"
}

// RAT-7: N's fields and bounds.
func TestARuleIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		with(``):                                              "",
		with(`"window_seconds":1`):                            "",
		with(`"window_seconds":86400`):                        "",
		with(`"window_seconds":0`):                            "window_seconds",
		with(`"window_seconds":86401`):                        "window_seconds",
		with(`"window_seconds":1.5`):                          "window_seconds",
		with(`"window_seconds":"60"`):                         "window_seconds",
		with(`"window_seconds":null`):                         "window_seconds",
		with(`"limit":1`):                                     "",
		with(`"limit":1000000000000`):                         "",
		with(`"limit":0`):                                     "limit",
		with(`"limit":-1`):                                    "limit",
		with(`"limit":1000000000001`):                         "limit",
		with(`"limit":1e3`):                                   "limit",
		with(`"limit":"1"`):                                   "limit",
		`{"subject_kind":"user","metric":"tokens","limit":1}`: "window_seconds",
		`{"subject_kind":"user","metric":"tokens","window_seconds":1}`: "limit",
		`{"subject_kind":"user","limit":1,"window_seconds":1}`:         "metric",
		`{"metric":"tokens","limit":1,"window_seconds":1}`:             "subject_kind",
		with(`"metric":"spend"`):                                       "metric",
		with(`"metric":"requests"`):                                    "",
		with(`"subject_kind":"key"`):                                   "subject_kind",
		with(`"subject_kind":"plan"`):                                  "subject_kind",
		with(`"subject_kind":"org"`):                                   "",
		with(`"subject_kind":"org","subject_id":null`):                 "",
		with(`"subject_kind":"org","subject_id":"x"`):                  "subject_id",
		with(`"subject_kind":"tag"`):                                   "subject_id",
		with(`"subject_kind":"tag","subject_id":""`):                   "subject_id",
		with(`"subject_kind":"tag","subject_id":"a/b=c:d._-"`):         "",
		with(`"subject_kind":"tag","subject_id":"a@b"`):                "subject_id",
		with(`"subject_kind":"team","subject_id":"a@b"`):               "",
		with(`"subject_kind":"project","subject_id":"a b"`):            "subject_id",
		with(`"subject_kind":"api_key","subject_id":"a b"`):            "",
		with(`"subject_kind":"api_key","subject_id":" a"`):             "subject_id",
		with(`"subject":"ada"`):                                        "subject",
		with(`"model":"acme/gpt"`):                                     "",
		with(`"model":"acme gpt"`):                                     "model",
		with(`"enabled":false`):                                        "",
		with(`"enabled":"no"`):                                         "enabled",
		with(`"estimate":"input"`):                                     "",
		with(`"estimate":"output"`):                                    "estimate",
		with(`"metric":"requests","estimate":"input"`):                 "estimate",
		with(`"metric":"requests","estimate":"full"`):                  "",
		with(`"count_cached":false`):                                   "",
		with(`"metric":"requests","count_cached":false`):               "count_cached",
		with(`"id":"rat_1"`):                                           "id",
		with(`"epoch":1`):                                              "epoch",
		with(`"window":"1m"`):                                          "window",
	} {
		wrong := problems(t, rule.New("", ""), text)
		if want == "" && len(wrong) > 0 || want != "" && (len(wrong) != 1 || wrong[want] == "") {
			t.Errorf("%s: problems are %v, want one of %q", text, wrong, want)
		}
	}
}

// RAT-7: 1 to 100 characters, of any script.
func TestTheNameOfARuleHasUpToAHundredCharacters(t *testing.T) {
	for name, want := range map[string]bool{
		"Interactive users": true, strings.Repeat("é", 100): true, "x": true,
		strings.Repeat("x", 101): false, "\x00": false, " x": false, "a\u200bb": false,
	} {
		r := rule.New("", name)
		wrong := problems(t, r, with(``))
		if (len(wrong) == 0) != want {
			t.Errorf("%q: problems are %v, want valid %t", name, wrong, want)
		}
	}
}

// RAT-7: defaults, and what a change leaves alone.
func TestAChangeOfARuleLeavesTheRest(t *testing.T) {
	first := func() *rule.Rule {
		r := rule.New("rat_1", "a")
		if wrong := problems(t, r, with(`"subject_id":"ada","model":"gpt","estimate":"input"`)); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		return r
	}
	if r := first(); !r.Enabled || r.Uncached || !r.EstimateInput {
		t.Errorf("rule is %+v", r)
	}
	for text, want := range map[string]func(r *rule.Rule){
		`{}`:                                   func(*rule.Rule) {},
		`{"enabled":false}`:                    func(r *rule.Rule) { r.Enabled = false },
		`{"enabled":null}`:                     func(*rule.Rule) {},
		`{"count_cached":false}`:               func(r *rule.Rule) { r.Uncached = true },
		`{"subject_id":null,"model":null}`:     func(r *rule.Rule) { r.SubjectID, r.Model = "", "" },
		`{"estimate":"full","limit":9}`:        func(r *rule.Rule) { r.EstimateInput, r.Limit = false, 9 },
		`{"window_seconds":1,"model":"other"}`: func(r *rule.Rule) { r.WindowSeconds, r.Model = 1, "other" },
	} {
		r, wanted := first(), first()
		want(wanted)
		if wrong := problems(t, r, text); len(wrong) > 0 {
			t.Errorf("%s: %v", text, wrong)
		}
		if diff := cmp.Diff(wanted, r); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// RAT-4.
func TestAnotherWindowModelSubjectOrStartBeginsEmpty(t *testing.T) {
	base := rule.Rule{Name: "a", SubjectKind: rule.SubjectUser, Metric: rule.Tokens, WindowSeconds: 60, Limit: 5, Enabled: true}
	for name, c := range map[string]struct {
		change func(r *rule.Rule)
		want   bool
	}{
		"nothing":        {func(*rule.Rule) {}, false},
		"name":           {func(r *rule.Rule) { r.Name = "b" }, false},
		"limit":          {func(r *rule.Rule) { r.Limit = 6 }, false},
		"estimate":       {func(r *rule.Rule) { r.EstimateInput = true }, false},
		"disabled":       {func(r *rule.Rule) { r.Enabled = false }, false},
		"window_seconds": {func(r *rule.Rule) { r.WindowSeconds = 61 }, true},
		"model":          {func(r *rule.Rule) { r.Model = "gpt" }, true},
		"metric":         {func(r *rule.Rule) { r.Metric = rule.Requests }, true},
		"subject_kind":   {func(r *rule.Rule) { r.SubjectKind = rule.SubjectTeam }, true},
		"subject_id":     {func(r *rule.Rule) { r.SubjectID = "ada" }, true},
		"count_cached":   {func(r *rule.Rule) { r.Uncached = true }, true},
	} {
		r := base
		c.change(&r)
		if got := r.Counts(&base); got != c.want {
			t.Errorf("%s: begins empty: %t, want %t", name, got, c.want)
		}
	}
	off := base
	off.Enabled = false
	if !base.Counts(&off) {
		t.Error("a rule that is enabled again remembers what it counted")
	}
}

// RAT-7.
func TestATagHasUpToSixtyFourCharacters(t *testing.T) {
	for tag, want := range map[string]bool{
		"batch": true, "a.b_c:d/e=f-0": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "a b": false, "a,b": false, "ä": false, "a@b": false, "a+b": false, "a\n": false,
	} {
		if err := rule.ValidTag(tag); (err == nil) != want {
			t.Errorf("%q: %v, want valid %t", tag, err, want)
		}
	}
}

func TestAMadeRuleIsHeldToTheSameBounds(t *testing.T) {
	for want, change := range map[string]func(r *rule.Rule){
		"limit":          func(r *rule.Rule) { r.Limit = rule.MaxLimit + 1 },
		"window_seconds": func(r *rule.Rule) { r.WindowSeconds = 0 },
		"metric":         func(r *rule.Rule) { r.Metric = "" },
		"subject_kind":   func(r *rule.Rule) { r.SubjectKind = "key" },
		"subject_id":     func(r *rule.Rule) { r.SubjectKind = rule.SubjectTag },
	} {
		r := &rule.Rule{SubjectKind: rule.SubjectOrg, Metric: rule.Requests, WindowSeconds: 1, Limit: 1, Enabled: true}
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		change(r)
		wrong, ok := r.Validate().(document.Problems) //nolint:errorlint // that is what it returns
		if !ok || len(wrong) != 1 || wrong[0].Path != want {
			t.Errorf("%s: problems are %v", want, wrong)
		}
	}
}

// Whatever is accepted is valid, is written, and comes back as itself.
func FuzzReadRule(f *testing.F) {
	for _, seed := range []string{
		`{}`, with(``), with(`"subject_kind":"tag","subject_id":"batch"`), with(`"estimate":"input","count_cached":false,"enabled":false,"model":"m"`), `{"limit":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := document.ParseJSON(text)
		if err != nil {
			return
		}
		r := rule.New("", "")
		if _, err := r.Read(n); err != nil {
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%s is accepted: %v", text, err)
		}
		body, err := rule.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := rule.Decode(body)
		if diff := cmp.Diff(r, back); err != nil || diff != "" {
			t.Fatalf("%s became %s: %v\n%s", text, body, err, diff)
		}
	})
}
