// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

// SPEC 14, PRC-1.
func TestTheFilesPriceIsReadExactly(t *testing.T) {
	r := row(t, fields{"input": "0.15", "cached_input": "0.075", "output": "0.60"})
	if *r.Input != 150_000_000 || *r.CachedInput != 75_000_000 || *r.Output != 600_000_000 || r.AudioInput != nil {
		t.Errorf("read %+v", r)
	}
	if r.Model != "m" || r.Source != price.SourceOverride || r.Free || r.ID == "" {
		t.Errorf("read %+v", r)
	}
	tiered := row(t, fields{"input": "2", "above.500.input": "9", "above.20.output": "3", "above.20.input": "4", "factor.flex": "0.5"})
	if len(tiered.Tiers) != 2 || tiered.Tiers[0].AboveTokens != 20 || *tiered.Tiers[0].Output != 3*1e9 || *tiered.Tiers[1].Input != 9*1e9 {
		t.Errorf("tiers %+v", tiered.Tiers)
	}
	if tiered.Factors["flex"] != (price.Fraction{Num: 1, Den: 2}) {
		t.Errorf("factors %v", tiered.Factors)
	}
}

func TestARefusedPriceNamesItsField(t *testing.T) {
	many := fields{}
	for i := range 17 {
		many[fmt.Sprintf("above.%d.input", i+10)] = "1"
	}
	crowd := fields{}
	for i := range 17 {
		crowd[fmt.Sprintf("factor.t%02d", i)] = "1"
	}
	for _, c := range []struct {
		name  string
		spec  price.Spec
		field string
		kind  error
	}{
		{"an unknown key", price.Spec{Fields: fields{"inptu": "1"}}, "inptu", nil},
		{"another letter case", price.Spec{Fields: fields{"Input": "1"}}, "Input", nil},
		{"an unknown part of a tier", price.Spec{Fields: fields{"above.9.x": "1"}}, "above.9.x", nil},
		{"no part of a tier", price.Spec{Fields: fields{"above.9": "1"}}, "above.9", nil},
		{"a threshold of zero", price.Spec{Fields: fields{"above.0.input": "1"}}, "above.0.input", nil},
		{"a threshold written twice", price.Spec{Fields: fields{"above.09.input": "1"}}, "above.09.input", nil},
		{"a threshold out of range", price.Spec{Fields: fields{"above.1000000001.input": "1"}}, "above.1000000001.input", nil},
		{"an empty price", price.Spec{Fields: fields{"input": ""}}, "input", money.ErrSyntax},
		{"a price that is no number", price.Spec{Fields: fields{"output": "NaN"}}, "output", money.ErrSyntax},
		{"an exponent", price.Spec{Fields: fields{"output": "1e3"}}, "output", money.ErrSyntax},
		{"a price below zero", price.Spec{Fields: fields{"per_request": "-1"}}, "per_request", money.ErrNegative},
		{"too many places", price.Spec{Fields: fields{"input": "0.0000000001"}}, "input", money.ErrPrecision},
		{"BR-130 a dear price", price.Spec{Fields: fields{"input": "10000.000000001"}}, "input", price.ErrConfirm},
		{"BR-130 a dear request", price.Spec{Fields: fields{"per_request": "10001"}}, "per_request", price.ErrConfirm},
		{"BR-130 a dear tier", price.Spec{Fields: fields{"above.9.output": "10001", "confirm": "false"}}, "output", price.ErrConfirm},
		{"beyond what confirming allows", price.Spec{Fields: fields{"input": "1000000001", "confirm": "true"}}, "input", money.ErrRange},
		{"confirm is no switch", price.Spec{Fields: fields{"confirm": "yes"}}, "confirm", nil},
		{"a factor of zero", price.Spec{Fields: fields{"factor.flex": "0"}}, "factor.flex", nil},
		{"a factor over zero", price.Spec{Fields: fields{"factor.flex": "1/0"}}, "factor.flex", nil},
		{"a factor too high", price.Spec{Fields: fields{"factor.flex": "101"}}, "factor.flex", nil},
		{"a factor of words", price.Spec{Fields: fields{"factor.flex": "half"}}, "factor.flex", money.ErrSyntax},
		{"a signed factor", price.Spec{Fields: fields{"factor.flex": "+1/2"}}, "factor.flex", nil},
		{"half a factor", price.Spec{Fields: fields{"factor.flex": "1/"}}, "factor.flex", nil},
		{"a factor without a name", price.Spec{Fields: fields{"factor.": "1"}}, "factor.", nil},
		{"a factor of a strange name", price.Spec{Fields: fields{"factor.Flex": "1"}}, "factor.Flex", nil},
		{"too many tiers", price.Spec{Fields: many}, "above.26.input", nil},
		{"too many factors", price.Spec{Fields: crowd}, "factor.t16", nil},
		{"free with a price", price.Spec{Fields: fields{"free": "true", "input": "1"}}, "free", nil},
		{"another word", price.Spec{Word: "gratis"}, "", nil},
		{"a word and prices", price.Spec{Word: "free", Fields: fields{"input": "1"}}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := price.ParseSpec("m", c.spec)
			var at *price.FieldError
			if r != nil || !errors.As(err, &at) || at.Field != c.field || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("got %+v, error %v", r, err)
			}
		})
	}
}

func TestADearPriceIsTakenWhenConfirmed(t *testing.T) { // BR-130
	r := row(t, fields{"input": "10001", "per_request": "20000", "above.9.output": "1000000000", "confirm": "true"})
	data, err := r.AppendJSON(nil)
	if err != nil || !strings.Contains(string(data), `"confirm":true`) {
		t.Fatalf("%s, %v", data, err)
	}
	if back, err := price.DecodeRow(data); err != nil || back.ID != r.ID {
		t.Errorf("a confirmed row does not come back: %v", err)
	}
	row(t, fields{"input": "10000", "per_request": "10000"})
}

func TestTheIDIsTheHashOfWhatTheRowSays(t *testing.T) {
	base := fields{"input": "1", "output": "2", "above.9.input": "3", "factor.flex": "1/2", "per_request": "4"}
	id := row(t, base).ID
	if again := row(t, fields{"per_request": "4.0", "factor.flex": "0.50", "output": "2.00", "above.9.input": "3", "input": "1"}).ID; again != id {
		t.Errorf("the same prices have ids %s and %s", id, again)
	}
	const stable = "0e3f240b5587010a73fe35a24be2e606"
	if r := row(t, fields{"input": "0.15", "output": "0.60"}); r.ID != stable {
		t.Errorf("the id of a fixed row is now %s: stored events would lose their price", r.ID)
	}
	seen := map[string]string{id: "base"}
	for key, value := range map[string]string{
		"input": "1.000000001", "output": "3", "above.9.input": "4", "above.9.output": "3", "factor.flex": "1/3",
		"factor.batch": "1/2", "per_request": "5", "cached_input": "1", "audio_output": "2",
	} {
		changed := maps.Clone(base)
		changed[key] = value
		other := row(t, changed).ID
		if was, ok := seen[other]; ok {
			t.Errorf("%s=%s has the id of %s", key, value, was)
		}
		seen[other] = key
	}
	a, b := *row(t, base), *row(t, base)
	a.Model, b.Source = "other", price.SourceImported
	if a.Seal().ID == id || b.Seal().ID == id {
		t.Error("model and source are not in the id")
	}
	c := *row(t, base)
	c.Date = "2026-01-02"
	if c.Seal().ID != id {
		t.Error("the date of the source is in the id")
	}
}

func TestARowIsOneStableJSONObject(t *testing.T) {
	r := row(t, fields{
		"input": "2", "output": "12", "above.200000.output": "18", "above.200000.input": "4", "above.300000.input": "5",
		"factor.priority": "5/3", "factor.flex": "0.5", "per_request": "0.01",
	})
	r.Date = "2026-01-02"
	got, err := json.Marshal(r)
	want := `{"id":"` + r.ID + `","model":"m","source":"override","date":"2026-01-02","unit":"usd_per_million_tokens",` +
		`"input":"2","output":"12","per_request":"0.01","above":{"200000":{"input":"4","output":"18"},"300000":{"input":"5"}},` +
		`"factor":{"flex":"1/2","priority":"5/3"}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	var back price.Row
	if err := json.Unmarshal(got, &back); err != nil || back.ID != r.ID || back.Date != r.Date || *back.Tiers[1].Input != *r.Tiers[1].Input {
		t.Errorf("came back as %+v, %v", back, err)
	}
	free, _ := price.ParseSpec("m", price.Spec{Word: "free"})
	if got, _ := json.Marshal(free); !strings.HasSuffix(string(got), `"free":true}`) {
		t.Errorf("free is %s", got)
	}
}

func TestARowIsDecodedStrictly(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                    ``,
		"no object":                  `["input"]`,
		"two values":                 `{"input":"1"}{}`,
		"a truncated object":         `{"input":"1"`,
		"an unknown member":          `{"inptu":"1"}`,
		"another letter case":        `{"Input":"1"}`,
		"a member twice":             `{"input":"1","input":"2"}`,
		"a nested member twice":      `{"above":{"9":{"input":"1","input":"1"}}}`,
		"a number for a price":       `{"input":0.15}`,
		"a boolean for a price":      `{"input":true}`,
		"a list for a price":         `{"input":["1"]}`,
		"an object for a price":      `{"input":{"usd":"1"}}`,
		"a string for a tier":        `{"above":"9"}`,
		"a dotted member":            `{"above.9.input":"1"}`,
		"nesting without an end":     `{"above":{"9":{"input":{"x":{}}}}}`,
		"a string for a switch":      `{"free":"true"}`,
		"a dear price":               `{"input":"10001"}`,
		"another unit":               `{"unit":"usd_per_token","input":"1"}`,
		"an unknown source":          `{"source":"rumour","input":"1"}`,
		"a date that is none":        `{"date":"2026-02-30","input":"1"}`,
		"a start that is not whole":  `{"valid_from_micros":1.5,"input":"1"}`,
		"a start below zero":         `{"valid_from_micros":-1,"input":"1"}`,
		"a start as a string":        `{"valid_from_micros":"1","input":"1"}`,
		"an id of other prices":      `{"id":"00000000000000000000000000000000","input":"1"}`,
		"a model's name without end": `{"model":"` + strings.Repeat("m", 201) + `"}`,
		"text that is not UTF-8":     "{\"model\":\"\xff\"}",
		"free beside a price":        `{"free":true,"input":"1"}`,
		"a float's tail":             `{"input":"0.36300000000000004"}`,
	} {
		if r, err := price.DecodeRow([]byte(text)); err == nil {
			t.Errorf("%s: decoded as %+v", name, r)
		}
	}
	r, err := price.DecodeRow([]byte(`{"cached_input":null,"free":null,"above":null,"model":"m","valid_from_micros":5,"source":"imported","input":"1"}`))
	if err != nil || r.CachedInput != nil || r.ValidFromMicros != 5 || r.Source != price.SourceImported {
		t.Errorf("null is not \"not set\": %+v, %v", r, err)
	}
}

// PRC-1, PRC-2, BR-031: by what the override sets.
func TestAnOverrideTakesWhatItLeavesOutFromTheNextSource(t *testing.T) {
	under := fields{
		"input": "3", "cached_input": "0.3", "output": "15", "audio_output": "60",
		"above.200.input": "6", "above.200.output": "30", "factor.flex": "1/2", "per_request": "1",
	}
	for _, c := range []struct {
		name       string
		over, want fields
	}{
		{"nothing: all of the next", fields{}, under},
		{"both text prices: nothing of the next", fields{"input": "1", "output": "2"}, fields{"input": "1", "output": "2"}},
		{"input: its side is its own", fields{"input": "1"}, fields{
			"input": "1", "output": "15", "audio_output": "60", "above.200.output": "30", "factor.flex": "1/2", "per_request": "1",
		}},
		{"input with tiers: they stay whole", fields{"input": "1", "above.9.input": "4"}, fields{
			"input": "1", "above.9.input": "4", "output": "15", "audio_output": "60", "factor.flex": "1/2", "per_request": "1",
		}},
		{"a narrow price: laid into the next", fields{"cached_input": "0.1"}, fields{
			"input": "3", "cached_input": "0.1", "output": "15", "audio_output": "60",
			"above.200.input": "6", "above.200.output": "30", "factor.flex": "1/2", "per_request": "1",
		}},
		{"tiers, factors and requests replace the next one's", fields{"above.9.input": "4", "factor.batch": "1/2", "per_request": "0"}, fields{
			"input": "3", "cached_input": "0.3", "output": "15", "audio_output": "60",
			"above.9.input": "4", "factor.batch": "1/2", "per_request": "0",
		}},
	} {
		next := row(t, under)
		before := *next
		got, want := row(t, c.over).Over(next), row(t, c.want)
		if got.ID != want.ID {
			a, _ := got.AppendJSON(nil)
			b, _ := want.AppendJSON(nil)
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, a, b)
		}
		if next.Seal().ID != before.ID {
			t.Errorf("%s: the next source's row was changed", c.name)
		}
	}
	free, _ := price.ParseSpec("m", price.Spec{Word: "free"})
	if free.Over(row(t, under)) != free || !row(t, fields{}).Over(free).IsFree() || row(t, fields{}).Over(nil).IsFree() {
		t.Error("free and nothing are confused")
	}
}
