// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

const sourceCatalogue = "source\ts 1\ndate\t2026-01-02\nprovider\tacme\tnames==ac\taddress=https://acme\n" +
	"m\t=m\t0\tinput=3 output=3 per_tool_call.web_search=0.01\n" +
	"old\t=m-2024-05-13\t0\tinput=5 output=5\n" +
	"rule\t^r-\t0\tinput=6 output=6\n" +
	"soon\t=soon\t0\tinput=1 output=1\tfrom=2026-02-01 input=2 output=2\n" +
	"night\t=night\t0\tinput=1 output=1\thours=22:00:00-02:00:00 input=9 output=9\n"

func imported(t testing.TB, prices map[string]string) *price.Import {
	t.Helper()
	var rows []*price.Row
	for model, input := range prices {
		r, err := price.ParseSpec(model, price.Spec{Fields: fields{"input": input, "output": input}})
		if err != nil {
			t.Fatal(err)
		}
		r.Source = price.SourceImported
		rows = append(rows, r.Seal())
	}
	i, err := price.NewImport("acme", rows)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// PRC-2: override > imported > built-in; BR-090, BR-129: a snapshot maps to the
// row that names it, and never to a cheaper one that doesn't.
func TestTheFirstSourceThatKnowsTheModelPricesIt(t *testing.T) {
	builtIn, err := price.ParseCatalogue(sourceCatalogue)
	if err != nil {
		t.Fatal(err)
	}
	override := price.Schedule{row(t, fields{"input": "9", "output": "9"})}
	for _, c := range []struct {
		name, model string
		override    price.Schedule
		imported    map[string]string
		want        string // a million of input; "" for no price
	}{
		{"built-in alone", "m", nil, nil, "3"},
		{"imported before built-in", "m", nil, map[string]string{"m": "4"}, "4"},
		{"imported in any case of letters", "M", nil, map[string]string{"m": "4"}, "4"},
		{"BR-129 override before all", "m", override, map[string]string{"m": "4"}, "9"},
		{"an empty override is none", "m", price.Schedule{row(t, fields{})}, nil, "3"},
		{"BR-090 a snapshot that only the undated name is known of", "m-2024-08-06", nil, map[string]string{"m": "4"}, "4"},
		{"a day without dashes", "m-20240806", nil, map[string]string{"m": "4"}, "4"},
		{"a day after an at sign", "m@20240806", nil, map[string]string{"m": "4"}, "4"},
		{"a dearer snapshot that the catalogue names", "m-2024-05-13", nil, map[string]string{"m": "4"}, "5"},
		{"a snapshot that is imported itself", "m-2024-05-13", nil, map[string]string{"m": "4", "m-2024-05-13": "7"}, "7"},
		{"a day before what a pattern of the catalogue leads to", "r-2-2026-01-01", nil, map[string]string{"r-2": "4"}, "4"},
		{"a pattern of the catalogue", "r-2-2026-01-01", nil, nil, "6"},
		{"a month and day are no date", "m-0613", nil, map[string]string{"m": "4"}, ""},
		{"a longer name is another model", "m-mini", nil, map[string]string{"m": "4"}, ""},
		{"a shorter name is another model", "m", nil, map[string]string{"m-2024-08-06": "1"}, "3"},
		{"a date that is none", "m-2024-13-01", nil, map[string]string{"m": "4"}, ""},
		{"a date alone", "-2024-08-06", nil, map[string]string{"": "4"}, ""},
	} {
		s := price.Sources{Override: c.override, BuiltIn: builtIn, Provider: "acme", Model: c.model}
		if c.imported != nil {
			s.Imported = imported(t, c.imported)
		}
		got := ""
		if r, _ := s.At(0); r != nil {
			n, err := r.Charge(call.Usage{Input: 1_000_000})
			if err != nil {
				t.Fatal(err)
			}
			got = n.String()
		}
		if got != c.want {
			t.Errorf("%s: %q costs %q, want %q", c.name, c.model, got, c.want)
		}
	}
}

// PRC-1, PRC-2: a list that knows no tools takes none away.
func TestAToolThatASourceLeavesOutCostsWhatTheNextOneSays(t *testing.T) {
	builtIn, err := price.ParseCatalogue(sourceCatalogue)
	if err != nil {
		t.Fatal(err)
	}
	u := call.Usage{Units: call.Units{Tools: tools(t, map[string]int64{call.WebSearch: 1})}}
	own := price.Schedule{row(t, fields{"input": "1", "output": "1", "per_tool_call.web_search": "0.02"})}
	bare := price.Schedule{row(t, fields{"input": "1", "output": "1"})}
	for want, s := range map[money.Nanos]price.Sources{
		10_000_000: {Override: bare, BuiltIn: builtIn, Provider: "acme", Model: "m"},
		20_000_000: {Override: own, BuiltIn: builtIn, Provider: "acme", Model: "m"},
	} {
		r, _ := s.At(0)
		if n, err := r.Charge(u); err != nil || n != want {
			t.Errorf("a search costs %s, %v; want %s", n, err, want)
		}
	}
	// An override of nothing but tools leaves the rest as it is.
	alone := price.Sources{Override: price.Schedule{row(t, fields{"per_tool_call.code_execution": "0"})}, BuiltIn: builtIn, Provider: "acme", Model: "m"}
	if r, _ := alone.At(0); r.Input.String() != "3" || len(r.PerToolCall) != 2 {
		t.Errorf("an override of a tool makes the price %v", r.Fields())
	}
	s := price.Sources{Imported: imported(t, map[string]string{"m": "4"}), BuiltIn: builtIn, Provider: "acme", Model: "m"}
	r, _ := s.At(0)
	if n, err := r.Charge(u); err != nil || n != 10_000_000 || r.Source != price.SourceImported {
		t.Errorf("a search of an imported row costs %s, %v", n, err)
	}
}

// PRC-1: the row in force is known together with the instant that it ends at.
func TestAPriceIsInForceUntilTheNextOneBegins(t *testing.T) {
	builtIn, err := price.ParseCatalogue(sourceCatalogue)
	if err != nil {
		t.Fatal(err)
	}
	day := instant(t, "2026-01-10T12:00:00Z")
	dated := func(from string) *price.Row {
		return row(t, fields{"input": "7", "output": "7", "valid_from": from})
	}
	for _, c := range []struct {
		name          string
		s             price.Sources
		at            int64
		input, change string
	}{
		{"never", price.Sources{Model: "m"}, day, "3", ""},
		{"a dated price of the catalogue", price.Sources{Model: "soon"}, day, "1", "2026-02-01T00:00:00Z"},
		{"and from then on", price.Sources{Model: "soon"}, instant(t, "2026-02-01T00:00:00Z"), "2", ""},
		{"an hour of the day", price.Sources{Model: "night"}, day, "1", "2026-01-10T22:00:00Z"},
		{"and its end", price.Sources{Model: "night"}, instant(t, "2026-01-10T22:00:00Z"), "9", "2026-01-11T02:00:00Z"},
		{"a dated override", price.Sources{Model: "m", Override: price.Schedule{dated("2026-01-11")}}, day, "3", "2026-01-11T00:00:00Z"},
		{"the sooner of two", price.Sources{Model: "soon", Override: price.Schedule{dated("2026-03-01")}}, day, "1", "2026-02-01T00:00:00Z"},
		{"a dated override that has begun", price.Sources{Model: "m", Override: price.Schedule{dated("2026-01-01")}}, day, "7", ""},
	} {
		c.s.BuiltIn, c.s.Provider = builtIn, "acme"
		r, until := c.s.At(c.at)
		want := int64(0)
		if c.change != "" {
			want = instant(t, c.change)
		}
		if r == nil || r.Input.String() != c.input || until != want {
			t.Errorf("%s: %+v until %d, want %s until %d", c.name, r, until, c.input, want)
		}
	}
}

func TestImportedRowsSurviveTheStore(t *testing.T) {
	i := imported(t, map[string]string{"m": "4", "n": "5"})
	i.Models["n"][0].StaleSince, i.Models["n"][0].List = "2026-01-02", "litellm"
	body, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := price.DecodeImport(body)
	if err != nil || back.Provider != "acme" || len(back.Rows()) != 2 || back.Models["n"][0].StaleSince != "2026-01-02" || back.Models["n"][0].List != "litellm" {
		t.Fatalf("%s came back as %+v, %v", body, back, err)
	}
	if again, err := back.Encode(); err != nil || string(again) != string(body) {
		t.Errorf("%s became %s, %v", body, again, err)
	}
	for name, text := range map[string]string{
		"another source": `{"provider":"p","rows":[{"model":"m","source":"override","input":"1"}]}`,
		"twice":          `{"provider":"p","rows":[{"model":"m","source":"imported","input":"1"},{"model":"M","source":"imported","input":"2"}]}`,
		"a member more":  `{"provider":"p","rows":[],"x":1}`,
		"no row":         `{"provider":"p","rows":[5]}`,
	} {
		if i, err := price.DecodeImport([]byte(text)); err == nil {
			t.Errorf("%s was read as %+v", name, i)
		}
	}
}
