// SPDX-License-Identifier: Apache-2.0

package money_test

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/money"
)

// MON-1, MON-4.
func TestParseUSDReadsExactDecimals(t *testing.T) {
	for text, want := range map[string]money.Nanos{
		"0":                    0,
		"0.0":                  0,
		"0.000000000":          0,
		"0.000000001":          1,
		"0.0105":               10_500_000,
		"0.1":                  100_000_000,
		"5":                    5 * money.Dollar,
		"5.00":                 5 * money.Dollar,
		"10.123456789":         10_123_456_789,
		"1000000000":           money.MaxAmount,
		"1000000000.000000000": money.MaxAmount,
		"999999999.999999999":  money.MaxAmount - 1,
	} {
		got, err := money.ParseUSD(text)
		if err != nil || got != want {
			t.Errorf("ParseUSD(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

// malformed holds what neither amounts nor prices may look like (MON-4).
var malformed = []struct {
	text string
	kind error
}{
	{"", money.ErrSyntax},
	{" ", money.ErrSyntax},
	{".", money.ErrSyntax},
	{"1.", money.ErrSyntax},
	{".5", money.ErrSyntax},
	{"-", money.ErrSyntax},
	{"--7", money.ErrSyntax},
	{"+7", money.ErrSyntax},
	{" 7", money.ErrSyntax},
	{"7 ", money.ErrSyntax},
	{"7\n", money.ErrSyntax},
	{"7\x00", money.ErrSyntax},
	{"$7", money.ErrSyntax},
	{"7 USD", money.ErrSyntax},
	{"07", money.ErrSyntax},
	{"00", money.ErrSyntax},
	{"00.5", money.ErrSyntax},
	{"1,5", money.ErrSyntax},
	{"1,000", money.ErrSyntax},
	{"1_000", money.ErrSyntax},
	{"1.2.3", money.ErrSyntax},
	{"1.-2", money.ErrSyntax},
	{"1.+2", money.ErrSyntax},
	{"1e3", money.ErrSyntax},
	{"1E3", money.ErrSyntax},
	{"1.5e-3", money.ErrSyntax},
	{"0x10", money.ErrSyntax},
	{"NaN", money.ErrSyntax},
	{"nan", money.ErrSyntax},
	{"Inf", money.ErrSyntax},
	{"infinity", money.ErrSyntax},
	{"null", money.ErrSyntax},
	{"true", money.ErrSyntax},
	{"\u096b", money.ErrSyntax},
	{"\uff17", money.ErrSyntax},
	{"10.1234567891", money.ErrPrecision},
	{"0.0000000000", money.ErrPrecision},
	{"1000000000.000000001", money.ErrRange},
	{"1000000001", money.ErrRange},
	{"9999999999.999999999", money.ErrRange},
	{"18446744074", money.ErrRange},
	{"99999999999999999999", money.ErrRange},
}

// MON-4.
func TestMalformedAmountsAreRefused(t *testing.T) {
	refused := func(what, text string, err, kind error) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("%s(%q): error %v, want %v", what, text, err, kind)
		}
	}
	for _, c := range malformed {
		_, err := money.ParseUSD(c.text)
		refused("ParseUSD", c.text, err, c.kind)
		_, err = money.ParseSignedUSD(c.text)
		refused("ParseSignedUSD", c.text, err, c.kind)
		_, err = money.ParsePerMillion(c.text)
		refused("ParsePerMillion", c.text, err, c.kind)
		_, err = money.ParsePerMillionConfirmed(c.text)
		refused("ParsePerMillionConfirmed", c.text, err, c.kind)
	}
	for _, text := range []string{"-7", "-0", "-0.5", "-1000000001"} {
		_, err := money.ParseUSD(text)
		refused("ParseUSD", text, err, money.ErrNegative)
		_, err = money.ParsePerMillion(text)
		refused("ParsePerMillion", text, err, money.ErrNegative)
	}
}

func TestAnErrorShowsOnlyTheBeginningOfALongInput(t *testing.T) {
	for _, text := range []string{strings.Repeat("9", 1<<20), "0." + strings.Repeat("0", 1<<20), strings.Repeat("\x00", 1<<20)} {
		_, err := money.ParseUSD(text)
		if err == nil || len(err.Error()) > 300 {
			t.Fatalf("ParseUSD of %d bytes: error of %d bytes", len(text), len(err.Error()))
		}
	}
}

// BAL-5.
func TestSignedAmountsReadAMinus(t *testing.T) {
	for text, want := range map[string]money.Nanos{
		"-7": -7 * money.Dollar, "-0.000000001": -1, "-0": 0, "3.5": 3_500_000_000, "-1000000000": -money.MaxAmount,
	} {
		got, err := money.ParseSignedUSD(text)
		if err != nil || got != want {
			t.Errorf("ParseSignedUSD(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	if _, err := money.ParseSignedUSD("-1000000000.000000001"); !errors.Is(err, money.ErrRange) {
		t.Errorf("below the bound: %v", err)
	}
}

func TestStringIsTheShortestExactDecimal(t *testing.T) {
	for n, want := range map[money.Nanos]string{
		0: "0", 1: "0.000000001", -1: "-0.000000001", 10_500_000: "0.0105", -2 * money.Dollar: "-2", 5 * money.Dollar: "5",
		1_200_000_000: "1.2", math.MaxInt64: "9223372036.854775807", math.MinInt64: "-9223372036.854775808",
	} {
		if got := n.String(); got != want {
			t.Errorf("%d nano-dollars = %q, want %q", int64(n), got, want)
		}
	}
}

// MON-1.
func TestStringAndParseRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := money.Nanos(rapid.Int64Range(-int64(money.MaxAmount), int64(money.MaxAmount)).Draw(t, "nanos"))
		got, err := money.ParseSignedUSD(n.String())
		if err != nil || got != n {
			t.Fatalf("%d -> %q -> %d, %v", int64(n), n, got, err)
		}
		if n < 0 {
			return
		}
		if got, err = money.ParseUSD(n.String()); err != nil || got != n {
			t.Fatalf("%d -> %q -> %d, %v", int64(n), n, got, err)
		}
	})
}

func TestAdditionNeverWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		exact := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		sum, ok := money.Nanos(a).Add(money.Nanos(b))
		if ok != exact.IsInt64() || ok && int64(sum) != exact.Int64() {
			t.Fatalf("%d + %d = %d, %t", a, b, sum, ok)
		}
		held, saturated := money.SaturatingAdd(a, b)
		want := exact
		if saturated {
			want = big.NewInt(math.MaxInt64)
			if exact.Sign() < 0 {
				want = big.NewInt(math.MinInt64)
			}
		}
		if saturated == ok || held != want.Int64() {
			t.Fatalf("SaturatingAdd(%d, %d) = %d, %t", a, b, held, saturated)
		}
	})
}

// MON-3.
func TestMicroDollarsRoundUpForUseAndDownForWhatRemains(t *testing.T) {
	for _, c := range []struct {
		n        money.Nanos
		up, down int64
	}{
		{0, 0, 0},
		{1, 1, 0},
		{999, 1, 0},
		{1000, 1, 1},
		{1001, 2, 1},
		{-1, 0, -1},
		{-1000, -1, -1},
		{-1001, -1, -2},
		{math.MaxInt64, 9223372036854776, 9223372036854775},
		{math.MinInt64, -9223372036854775, -9223372036854776},
	} {
		if up, down := c.n.MicrosUp(), c.n.MicrosDown(); up != c.up || down != c.down {
			t.Errorf("%d nano-dollars: up %d, down %d; want %d, %d", int64(c.n), up, down, c.up, c.down)
		}
	}
}

// MON-3.
func TestMicroDollarLimitsConvertExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, int64(money.MaxAmount)/1000).Draw(t, "micros")
		n, err := money.FromMicros(micros)
		if err != nil || n.MicrosUp() != micros || n.MicrosDown() != micros {
			t.Fatalf("FromMicros(%d) = %d, %v", micros, n, err)
		}
	})
	for micros, kind := range map[int64]error{
		-1: money.ErrNegative, math.MinInt64: money.ErrNegative,
		int64(money.MaxAmount)/1000 + 1: money.ErrRange, math.MaxInt64: money.ErrRange,
	} {
		if _, err := money.FromMicros(micros); !errors.Is(err, kind) {
			t.Errorf("FromMicros(%d): %v, want %v", micros, err, kind)
		}
	}
}

var decimal = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]{1,9})?$`)

// FuzzParseUSD holds the parser against a regular expression and math/big.
func FuzzParseUSD(f *testing.F) {
	for _, c := range malformed {
		f.Add(c.text)
	}
	for _, text := range []string{"-7", "0", "5.00", "0.000000001", "1000000000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := money.ParseUSD(text)
		want, fits := new(big.Rat), false
		if decimal.MatchString(text) && len(text) < 100 {
			want.SetString(text)
			want.Mul(want, big.NewRat(int64(money.Dollar), 1))
			fits = want.Cmp(big.NewRat(int64(money.MaxAmount), 1)) <= 0
		}
		if fits != (err == nil) {
			t.Fatalf("ParseUSD(%q): %v, want accepted %t", text, err, fits)
		}
		if fits && want.Cmp(big.NewRat(int64(got), 1)) != 0 {
			t.Fatalf("ParseUSD(%q) = %d, want %s", text, got, want)
		}
	})
}
