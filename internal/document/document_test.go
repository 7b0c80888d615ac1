// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/document"
)

func TestOnlyOneWholeJSONValueIsRead(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, ` [1, "a", null, true, {"a": -1.5e3}] `: true, `"\u00e9"`: true,
		``: false, `{`: false, `{} {}`: false, `{"a":1,"a":2}`: false, `{"a":1,}`: false, `{a:1}`: false, `nul`: false, "\"\xff\"": false, `[01]`: false, `NaN`: false,
		strings.Repeat("[", 33) + strings.Repeat("]", 33): true,
		strings.Repeat("[", 34) + strings.Repeat("]", 34): false,
		strings.Repeat(`{"a":`, 1_000_000):                false,
		`{"a":{"b":1,"\u0062":2}}`:                        false,
		`{"a":1,"A":2}`:                                   true,
	} {
		if _, err := document.ParseJSON([]byte(text)); (err == nil) != want {
			t.Errorf("%.40q: %v, want accepted %t", text, err, want)
		}
	}
}

func TestAReadingTellsEveryProblemAndEveryFieldThatWasGiven(t *testing.T) {
	n, err := document.ParseJSON([]byte(`{"a":1,"b":null,"c":{"d":"x","e":2},"list":[{"f":1},{"g":2}],"extra":0}`))
	if err != nil {
		t.Fatal(err)
	}
	var a string
	var d int64
	var items []map[string]bool
	given, err := document.Read(n, func(r *document.Reader) {
		r.String("a", &a)
		r.String("b", &a)
		r.Object("c", func(r *document.Reader) { r.Int("d", &d, 0, 9) })
		r.Objects("list", 5, func(_ int, r *document.Reader) {
			var f int64
			r.Int("f", &f, 0, 9)
			items = append(items, r.Given())
		})
		r.Later("coming")
		r.Need("missing")
	})
	var problems document.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error is %v", err)
	}
	want := `a: must be a string: write it in quotes; c.d: must be a whole number from 0 to 9, is "x"; c.e: unknown field; ` +
		`list[1].g: unknown field; missing: is required; extra: unknown field`
	if diff := cmp.Diff(want, problems.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true, "c": true, "c.d": true, "list": true}, given); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]map[string]bool{{"f": true}, {}}, items); diff != "" {
		t.Errorf("given in the items (-want +got):\n%s", diff)
	}
}

// A null clears, and what is left out stays. A number that may not be 0 stays too:
// no bound is lost to a null.
func TestANullIsTheZeroValueAndAnAbsentFieldStays(t *testing.T) {
	n, err := document.ParseJSON([]byte(`{"s":null,"b":null,"i":null,"z":null,"o":null,"l":null,"m":null}`))
	if err != nil {
		t.Fatal(err)
	}
	s, b, i, z, o, l, m, kept := "x", true, int64(5), int64(5), new(int64), []string{"a"}, map[string]string{"a": "b"}, int64(7)
	_, err = document.Read(n, func(r *document.Reader) {
		r.String("s", &s)
		r.Bool("b", &b)
		r.Int("i", &i, 1, 9)
		r.Int("z", &z, 0, 9)
		r.OptInt("o", &o, 1, 9)
		r.Strings("l", &l, 9)
		r.Map("m", &m, 9)
		r.Int("absent", &kept, 1, 9)
	})
	if err != nil || s != "" || b || i != 5 || z != 0 || o != nil || l != nil || m != nil || kept != 7 {
		t.Errorf("read %q %t %d %d %v %v %v %d, %v", s, b, i, z, o, l, m, kept, err)
	}
}

func TestDurationsAreWholeNumbersWithAUnit(t *testing.T) {
	const second = 1_000_000
	for text, want := range map[string]int64{
		"1ms": 1000, "5s": 5 * second, "90s": 90 * second, "15m": 900 * second, "2h": 7200 * second, "7d": 604800 * second, "1w": 604800 * second,
		"": 0, "5": 0, "s": 0, "-5s": 0, "+5s": 0, "1.5h": 0, "1h30m": 0, "5 s": 0, "5S": 0, "9223372036854775807w": 0, "99999999999999999999s": 0, "0s": 0,
	} {
		got, err := document.ParseDuration(text, 1, math.MaxInt64)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
		if back, err := document.ParseDuration(document.FormatDuration(got), 1, math.MaxInt64); want > 0 && (err != nil || back != want) {
			t.Errorf("%q is written %s", text, document.FormatDuration(got))
		}
	}
	if _, err := document.ParseDuration("2h", 1, 3600*second); err == nil {
		t.Error("2h is accepted where 1h is the most")
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,null,"x"]}`, `{"a":1,"a":2}`, `[[[[`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := document.ParseJSON(text)
		if err != nil {
			return
		}
		again, err := document.ParseJSON(n.JSON())
		if err != nil {
			t.Fatalf("%q became %s: %v", text, n.JSON(), err)
		}
		if diff := cmp.Diff(n, again); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text, diff)
		}
	})
}
