// SPDX-License-Identifier: Apache-2.0

package money_test

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/money"
)

// PRC-2: prices per token become nano-dollars per million exactly, or not at all.
func TestANumberIsExactOrRefused(t *testing.T) {
	for _, c := range []struct {
		text  string
		shift int
		want  money.Nanos
		kind  error
	}{
		{"1.5e-07", 6, 150_000_000, nil},
		{"1.5E-07", 6, 150_000_000, nil},
		{"2.5e-6", 6, 2_500_000_000, nil},
		{"0.000003", 6, 3_000_000_000, nil},
		{"3", 0, 3 * money.Dollar, nil},
		{"3.0", 0, 3 * money.Dollar, nil},
		{"1e+2", 0, 100 * money.Dollar, nil},
		{"0", 6, 0, nil},
		{"0.0", 6, 0, nil},
		{"-0", 0, 0, nil},
		{"0e400", 0, 0, nil},
		{"1e-15", 6, 1, nil},
		{"1e-16", 6, 0, money.ErrPrecision},
		{"3.0001999999999996e-7", 6, 0, money.ErrPrecision},
		{"-1e-7", 6, 0, money.ErrNegative},
		{"1000000000", 0, money.MaxAmount, nil},
		{"1000000000.000000001", 0, 0, money.ErrRange},
		{"1e300", 0, 0, money.ErrRange},
		{"1e999", 0, 0, money.ErrRange},
		{"NaN", 0, 0, money.ErrSyntax},
		{"Infinity", 0, 0, money.ErrSyntax},
		{"", 0, 0, money.ErrSyntax},
		{".5", 0, 0, money.ErrSyntax},
		{"5.", 0, 0, money.ErrSyntax},
		{"+5", 0, 0, money.ErrSyntax},
		{"1e", 0, 0, money.ErrSyntax},
		{"1e-+5", 0, 0, money.ErrSyntax},
		{" 1", 0, 0, money.ErrSyntax},
		{"1e5e5", 0, 0, money.ErrSyntax},
	} {
		n, err := money.ParseNumber(c.text)
		var got money.Nanos
		if err == nil {
			got, err = n.Shift(c.shift).Exact()
		}
		if got != c.want || !errors.Is(err, c.kind) {
			t.Errorf("%q times 10^%d is %d, %v; want %d, %v", c.text, c.shift, int64(got), err, int64(c.want), c.kind)
		}
	}
}

// USE-4, MON-2: another's cost is rounded up once.
func TestANumberIsRoundedUpToTheNextNanoDollar(t *testing.T) {
	for text, want := range map[string]money.Nanos{
		"0.000008775": 8775, "8.775e-06": 8775, "87750e-10": 8775, "87751e-10": 8776, "1e-30": 1, "0": 0, "0.1000000000000000055": 100_000_001,
	} {
		n, err := money.ParseNumber(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := n.Up(); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, int64(got), err, int64(want))
		}
	}
}

func TestANumberIsWhatItsTextSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,12})(\.[0-9]{1,14})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		n, err := money.ParseNumber(text)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := new(big.Rat).SetString(text)
		if got, ok := new(big.Rat).SetString(n.String()); !ok || got.Cmp(want) != 0 {
			t.Fatalf("%s became %s", text, n)
		}
		scaled := new(big.Rat).Mul(want, big.NewRat(int64(money.Dollar), 1))
		exact, err := n.Exact()
		if err == nil && scaled.Cmp(big.NewRat(int64(exact), 1)) != 0 || err != nil && scaled.IsInt() && scaled.Sign() >= 0 && scaled.Cmp(big.NewRat(int64(money.MaxAmount), 1)) <= 0 {
			t.Fatalf("%s is %d nano-dollars, %v", text, int64(exact), err)
		}
		up, err := n.Up()
		if err != nil {
			return
		}
		gap := new(big.Rat).Sub(big.NewRat(int64(up), 1), scaled)
		if gap.Sign() < 0 || gap.Cmp(big.NewRat(1, 1)) >= 0 {
			t.Fatalf("%s rounded up is %d nano-dollars", text, int64(up))
		}
	})
}

func FuzzParseNumber(f *testing.F) {
	f.Add("1.5e-07")
	f.Add("-0.0E+0")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := money.ParseNumber(text)
		if err != nil {
			return
		}
		if again, err := money.ParseNumber(n.String()); err == nil && again != n {
			t.Errorf("%q became %s", text, n)
		}
	})
}
