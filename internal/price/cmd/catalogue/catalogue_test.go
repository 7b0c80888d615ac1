// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/price"
)

const script = `const E = [
  {
    id: "acme",
    api_pattern: "https://api\\.acme\\.test",
    model_match: { or: [{ starts_with: "Ac-" }, { regex: "^(?!x/)ac\\d" }] },
    fallback_model_providers: ["acme"],
    extractors: [{ root: "usage", required: !0, mappings: [] }],
    models: [
      {
        id: "ac-1", description: ` + "`two\nlines`" + `, match: { equals: 'Ac-1' }, context_window: 2e5,
        prices: { input_mtok: { base: 875e-5, tiers: [{ start: 272e3, price: 0.02 }] }, output_mtok: 1.5, requests_kcount: 12, web_searches_kcount: 10 }
      },
      {
        id: "ac-2", match: { and: [{ contains: "ac-2" }, { regex: "^(?!.*-tts$)" }] },
        prices: [
          { prices: { input_mtok: 0.18000000000000002 } },
          { constraint: { start_date: "2026-03-13", type: "start_date" }, prices: { input_mtok: 0.08333333333333334 } },
          { constraint: { start_time: "00:30:00Z", end_time: "16:30:00Z", type: "time_of_date" }, prices: { audio_hours: 1 } }
        ]
      },
      { id: "ac-3", match: { ends_with: "-3" }, prices: {} }
    ]
  }
], J = {};
`

// source writes an unpacked package into a folder.
func source(t *testing.T, script, licence string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"package.json":  `{"name":"prices","version":"9.9","license":"` + licence + `","files":["dist"]}`,
		"LICENSE":       "Copyright (c) Acme\n\nUse it.  \n",
		"dist/index.js": script,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestThePackageBecomesTheCataloguesText(t *testing.T) {
	text, notes, err := generate(source(t, script, "MIT"), "2026-01-02")
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(text, "\nsource\t")
	if !strings.Contains(head, "# Copyright (c) Acme\n#\n# Use it.\n#") || !strings.Contains(head, "prices 9.9,\n# published 2026-01-02") {
		t.Errorf("header:\n%s", head)
	}
	want := "prices 9.9\ndate\t2026-01-02\n" +
		"provider\tacme\tmodels=^ac- all( none( /^(?:x/) ) /^(?:ac\\d) )\taddress=https://api\\.acme\\.test\tresells=acme\n" +
		"ac-1\t=ac-1\t200000\tinput=0.00875 output=1.5 per_request=0.012 per_tool_call.web_search=0.01 above.272000.input=0.02 above.272000.output=1.5\n" +
		"ac-2\tall( ~ac-2 none( /^(?:.*-tts$) ) )\t0\tinput=0.18\tfrom=2026-03-13 input=0.083333334\thours=00:30:00-16:30:00 !audio_hours\n" +
		"ac-3\t$-3\t0\t-\n"
	if body != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
	if len(notes) != 3 || !strings.HasPrefix(notes[2], "3 models, 1 of them") {
		t.Errorf("notes %q", notes)
	}
	c, err := price.ParseCatalogue(text)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := c.Find("acme", "AC-1"); !ok || r.Tiers[0].Input.String() != "0.02" {
		t.Errorf("found %+v", r)
	}
}

func TestWhatCannotBeCarriedOverStopsTheGenerator(t *testing.T) {
	for name, replace := range map[string][2]string{
		"a script of another shape":    {"const E = [", "const E = f(["},
		"a call among the data":        {`api_pattern: "`, `api_pattern: f("`},
		"a list that stays open":       {"], J", "; J"},
		"a template's expression":      {"two\n", "${two}"},
		"an unknown escape":            {`\\.acme`, `\x2eacme`},
		"an unknown match":             {"ends_with", "sounds_like"},
		"a match with a space":         {`"-3"`, `"- 3"`},
		"a pattern that stays open":    {`^(?!.*-tts$)`, `^(?!.*-tts$`},
		"an hour of another zone":      {"00:30:00Z", "00:30:00+02:00"},
		"a threshold that isn't whole": {"start: 272e3", "start: 0.5"},
		"a price of another kind":      {"output_mtok: 1.5", `output_mtok: "1.5"`},
		"a price that is no number":    {"output_mtok: 1.5", "output_mtok: 1.5.5"},
		"a monstrous exponent":         {"output_mtok: 1.5", "output_mtok: 1e99"},
		"a model without prices":       {", prices: {} }", "}"},
	} {
		broken := strings.Replace(script, replace[0], replace[1], 1)
		if broken == script {
			t.Fatalf("%s: nothing was replaced", name)
		}
		if text, _, err := generate(source(t, broken, "MIT"), "2026-01-02"); err == nil {
			t.Errorf("%s: wrote\n%s", name, text)
		}
	}
	if _, _, err := generate(source(t, script, "GPL-3.0"), "2026-01-02"); err == nil {
		t.Error("another licence went unnoticed")
	}
	if err := run(t.TempDir(), "", "x"); err == nil {
		t.Error("no date went unnoticed")
	}
}

func TestANumberKeepsItsDigits(t *testing.T) {
	for _, c := range []struct {
		text  string
		shift int
		want  string
		exact bool
	}{
		{"0", 0, "0", true},
		{"0.0", 0, "0", true},
		{".5", 0, "0.5", true},
		{"2e5", 0, "200000", true},
		{"3625e-6", 0, "0.003625", true},
		{"1.50", 0, "1.5", true},
		{"100", 3, "0.1", true},
		{"12", 3, "0.012", true},
		{"0.000000001", 0, "0.000000001", true},
		{"0.000000001", 3, "0.000000001", false},
		{"0.18000000000000002", 0, "0.18", false},
		{"0.9999999999999999", 0, "1", false},
		{"0.08333333333333334", 0, "0.083333334", false},
	} {
		got, exact, err := decimal(c.text, c.shift)
		if err != nil || got != c.want || exact != c.exact {
			t.Errorf("%s / 10^%d is %s (exact %t), %v; want %s", c.text, c.shift, got, exact, err, c.want)
		}
	}
}

func FuzzParseLiteral(f *testing.F) {
	f.Add("[" + script[len("const E = ["):])
	f.Add("{\"a b\": [!0, .5, `x`], c: 'd',}")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseLiteral(text)
		if err != nil {
			return
		}
		if _, err := match(v); err == nil && v.kind != kindObject {
			t.Fatalf("a %s was taken for a match", v.kind)
		}
	})
}
