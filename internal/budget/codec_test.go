// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/window"
)

// draw is any valid budget.
func draw(t *rapid.T) *budget.Budget {
	pick := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
	b := &budget.Budget{
		Scope: rapid.SampledFrom(budget.Scopes()).Draw(t, "scope"), Metric: pick("metric", budget.Spend, budget.Tokens),
		Limit:       rapid.Int64Range(1, int64(money.MaxAmount)).Draw(t, "limit"),
		Enforcement: pick("enforcement", budget.Hard, budget.Guard, budget.Soft),
		CountFrom:   pick("from", "", budget.WindowStart), System: rapid.Bool().Draw(t, "system"),
	}
	if b.Metric == budget.Tokens {
		b.Limit = rapid.Int64Range(1, budget.MaxTokens).Draw(t, "tokens")
		b.Uncached = rapid.Bool().Draw(t, "uncached")
	}
	if b.Scope != budget.ScopeOrg {
		b.Subject = pick("subject", "", "ada")
	}
	if b.Scope == budget.ScopePlan {
		b.Subject = "intern"
	}
	if b.Scope == budget.ScopeKey || b.Scope == budget.ScopePlan {
		b.SkipMissingUsage = rapid.Bool().Draw(t, "skip")
		if b.Subject != "" && rapid.Bool().Draw(t, "owned") {
			b.Owner = b.Subject
		}
	}
	if b.Enforcement == budget.Hard {
		yes, no := true, false
		b.Shrink = rapid.SampledFrom([]*bool{nil, &yes, &no}).Draw(t, "shrink")
	}
	if rapid.Bool().Draw(t, "calendar") {
		b.Period, b.Zone = pick("period", budget.Day, budget.Week, budget.Month), pick("zone", "", "Asia/Kathmandu")
	} else {
		b.WindowMicros = rapid.Int64Range(10, window.MaxLength/1_000_000).Draw(t, "seconds") * 1_000_000
	}
	switch pick("narrow", "", "model", "provider") {
	case "model":
		b.Model = "acme/gpt"
	case "provider":
		b.Provider = "openai"
	}
	for p := int64(1); p <= 100; p++ {
		if len(b.WarnPercent) < budget.MaxWarnings && rapid.IntRange(0, 9).Draw(t, "warn") == 0 {
			b.WarnPercent = append(b.WarnPercent, p)
		}
	}
	return b
}

// BUD-1: what was written comes back, and is written the same again.
func TestABudgetComesBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := draw(t)
		body, err := budget.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		back, err := budget.Decode(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(b, back); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", body, diff)
		}
		if again, err := budget.Encode(back); err != nil || !bytes.Equal(body, again) {
			t.Fatalf("%s is written as %s, %v", body, again, err)
		}
		if back.Counts(b) {
			t.Fatalf("%s counts something else than itself", body)
		}
	})
}

// problems are what is wrong with a text read over a budget, by path.
func problems(t testing.TB, b *budget.Budget, text string) map[string]string {
	t.Helper()
	n, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	_, err = b.Read(n)
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

func read(t *testing.T, text string) *budget.Budget {
	t.Helper()
	b := &budget.Budget{}
	if wrong := problems(t, b, text); len(wrong) > 0 {
		t.Fatalf("%s: %v", text, wrong)
	}
	return b
}

// Whatever is accepted is valid, is written, and comes back as itself.
func FuzzReadBudget(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"scope":"org","metric":"spend","limit":"500","period":"month","warn_percent":[80],"enforcement":"hard"}`,
		`{"scope":"key","subject":"ci","metric":"tokens","limit":5,"window":"1w","on_exceeded":"block","count_cached":false}`,
		`{"scope":"plan","subject_id":"intern","metric":"spend","limit":1e309,"window":"daily","time_zone":"Europe/Berlin"}`,
		`{"scope":"user","metric":"spend","limit":1,"period":"week","time_zone":"UTC","on_short":"shrink","model":"m","count_from":"window_start"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := document.ParseJSON(text)
		if err != nil {
			return
		}
		b := &budget.Budget{}
		if _, err := b.Read(n); err != nil {
			if err.Error() == "" {
				t.Error("an error says nothing")
			}
			return
		}
		if err := b.Validate(); err != nil {
			t.Fatalf("%s is accepted: %v", text, err)
		}
		body, err := budget.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		back, err := budget.Decode(body)
		if err != nil || back.Counts(b) || back.Limit != b.Limit || back.Enforcement != b.Enforcement {
			t.Fatalf("%s became %s: %v", text, body, err)
		}
		if again, err := budget.Encode(back); err != nil || !bytes.Equal(again, body) {
			t.Fatalf("%s is written as %s, %v", body, again, err)
		}
		if _, err := b.Spec(); err != nil {
			t.Fatal(err)
		}
	})
}
