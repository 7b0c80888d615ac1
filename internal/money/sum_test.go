// SPDX-License-Identifier: Apache-2.0

package money_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/money"
)

func TestPricesAreDollarsPerMillionUnits(t *testing.T) {
	for text, want := range map[string]money.PerMillion{
		"0": 0, "0.15": 150_000_000, "0.075": 75_000_000, "0.000000001": 1, "10000": money.MaxPrice,
	} {
		got, err := money.ParsePerMillion(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParsePerMillion(%q) = %d (%s), %v; want %d", text, int64(got), got, err, want)
		}
	}
}

func TestAPriceAboveTenThousandDollarsNeedsConfirmation(t *testing.T) {
	for _, text := range []string{"10000.000000001", "10001", "1000000000"} {
		if _, err := money.ParsePerMillion(text); !errors.Is(err, money.ErrRange) {
			t.Errorf("ParsePerMillion(%q): %v, want %v", text, err, money.ErrRange)
		}
		if got, err := money.ParsePerMillionConfirmed(text); err != nil || got.String() != text {
			t.Errorf("ParsePerMillionConfirmed(%q) = %s, %v", text, got, err)
		}
	}
}

// MON-2.
func TestACostIsRoundedUpToTheNextNanoDollar(t *testing.T) {
	for _, c := range []struct {
		price money.PerMillion
		units int64
		want  money.Nanos
	}{
		{0, math.MaxInt64, 0},
		{150_000_000, 0, 0},
		{150_000_000, 1, 150},
		{1, 1, 1},
		{1, 1_000_000, 1},
		{1, 1_000_001, 2},
		{75_000_001, 1, 76},
		{money.MaxPrice, 1_000_000_000, 10_000_000 * money.Dollar},
		{1_000_000, math.MaxInt64, math.MaxInt64},
	} {
		got, err := c.price.Cost(c.units)
		if err != nil || got != c.want {
			t.Errorf("%s per million, %d units: %d, %v; want %d", c.price, c.units, got, err, c.want)
		}
	}
}

func TestNegativeAndOverflowingCostsAreErrors(t *testing.T) {
	for _, c := range []struct {
		price money.PerMillion
		units int64
		kind  error
	}{
		{-1, 1, money.ErrNegative},
		{1, -1, money.ErrNegative},
		{1_000_001, math.MaxInt64, money.ErrOverflow},
		{math.MaxInt64, math.MaxInt64, money.ErrOverflow},
	} {
		if got, err := c.price.Cost(c.units); !errors.Is(err, c.kind) {
			t.Errorf("price %d, %d units: %d, %v; want %v", int64(c.price), c.units, got, err, c.kind)
		}
	}
}

// MON-2: a third of a nano-dollar three times is one nano-dollar, not three.
func TestASumIsRoundedOnce(t *testing.T) {
	var sum money.Sum
	for range 3 {
		must(t, sum.Add(1, 333_333))
	}
	must(t, sum.Add(1, 1))
	if got, err := sum.Nanos(); err != nil || got != 1 {
		t.Errorf("got %d, %v; want 1", got, err)
	}
}

// MON-2: factors are exact fractions; a third is a third.
func TestAFactorIsExact(t *testing.T) {
	var sum money.Sum
	must(t, sum.AddNanos(3))
	must(t, sum.Scale(1, 3))
	if got, err := sum.Nanos(); err != nil || got != 1 {
		t.Errorf("a third of 3 = %d, %v", got, err)
	}
	must(t, sum.Scale(1, 7))
	must(t, sum.Scale(7, 1))
	must(t, sum.AddNanos(2))
	if got, err := sum.Nanos(); err != nil || got != 3 {
		t.Errorf("1/7*7+2 = %d, %v", got, err)
	}
}

func TestAnImpossibleFactorIsRefused(t *testing.T) {
	var sum money.Sum
	must(t, sum.AddNanos(3))
	for _, f := range [][2]int64{{-1, 2}, {1, -2}, {1, 0}, {0, 0}} {
		if err := sum.Scale(f[0], f[1]); !errors.Is(err, money.ErrRange) {
			t.Errorf("Scale(%d, %d): %v", f[0], f[1], err)
		}
	}
	if err := sum.AddNanos(-1); !errors.Is(err, money.ErrNegative) {
		t.Errorf("AddNanos(-1): %v", err)
	}
	if got, err := sum.Nanos(); err != nil || got != 3 {
		t.Errorf("after refused calls: %d, %v; want 3", got, err)
	}
}

// counts draws numbers of every magnitude, ends included.
func counts() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1_000_000_000), rapid.Int64Range(0, math.MaxInt64))
}

// model is a Sum kept by math/big: the same steps, exact without bound.
type model struct{ value *big.Rat }

var million = big.NewRat(1_000_000, 1)

// step applies one random operation to both and reports whether it was
// accepted. A refused operation leaves both as they were.
func (m *model) step(t *rapid.T, sum *money.Sum) bool {
	next := new(big.Rat)
	var err error
	a := counts().Draw(t, "a")
	switch rapid.IntRange(0, 2).Draw(t, "operation") {
	case 0:
		b := counts().Draw(t, "units")
		product := new(big.Rat).Mul(big.NewRat(a, 1), big.NewRat(b, 1))
		next.Add(m.value, product.Quo(product, million))
		err = sum.Add(money.PerMillion(a), b)
	case 1:
		next.Add(m.value, big.NewRat(a, 1))
		err = sum.AddNanos(money.Nanos(a))
	case 2:
		b := 1 + rapid.Int64Range(0, 1_000_000).Draw(t, "den")
		next.Mul(m.value, big.NewRat(a, b))
		err = sum.Scale(a, b)
	}
	if err != nil {
		if !errors.Is(err, money.ErrOverflow) {
			t.Fatalf("unexpected error: %v", err)
		}
		// Refusing is right only when the exact value needs more than the
		// 128 bits, or its denominator more than 64.
		inUnits := new(big.Rat).Mul(next, million)
		if inUnits.Num().BitLen() <= 62 && inUnits.Denom().BitLen() <= 24 {
			t.Fatalf("refused a value that fits: %s", next)
		}
		return false
	}
	m.value = next
	return true
}

// ceiling is the exact value rounded up to a whole nano-dollar.
func (m *model) ceiling() *big.Int {
	up := new(big.Int).Add(m.value.Num(), m.value.Denom())
	up.Sub(up, big.NewInt(1))
	return up.Div(up, m.value.Denom())
}

// MON-2: the sum is the exact value rounded up once, never below it, and an
// overflow is an error, never a wrong amount.
func TestASumIsTheExactValueRoundedUpOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum money.Sum
		exact := &model{value: new(big.Rat)}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			exact.step(t, &sum)
			want := exact.ceiling()
			got, err := sum.Nanos()
			if want.IsInt64() != (err == nil) {
				t.Fatalf("want %s, got %d, %v", want, got, err)
			}
			if err == nil && int64(got) != want.Int64() {
				t.Fatalf("want %s, got %d", want, got)
			}
		}
	})
}

// MON-2: more units or a dearer price never cost less.
func TestCostsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Int64Range(0, int64(money.MaxPrice)).Draw(t, "price")
		units := rapid.Int64Range(0, 1_000_000_000).Draw(t, "units")
		dearer := price + rapid.Int64Range(0, 1_000_000).Draw(t, "dearer")
		more := units + rapid.Int64Range(0, 1_000_000).Draw(t, "more")
		low, err := money.PerMillion(price).Cost(units)
		must(t, err)
		high, err := money.PerMillion(dearer).Cost(more)
		must(t, err)
		if high < low {
			t.Fatalf("%d units at %d cost %d, but %d at %d cost %d", units, price, low, more, dearer, high)
		}
	})
}

// MON-2: one rounding of the whole is never more than rounding each part, and
// less than that by under one nano-dollar a part.
func TestOneRoundingIsWithinTheRoundedParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum money.Sum
		var parts money.Nanos
		n := rapid.IntRange(1, 12).Draw(t, "parts")
		for range n {
			price := money.PerMillion(rapid.Int64Range(0, int64(money.MaxPrice)).Draw(t, "price"))
			units := rapid.Int64Range(0, 1_000_000_000).Draw(t, "units")
			part, err := price.Cost(units)
			must(t, err)
			parts += part
			must(t, sum.Add(price, units))
		}
		whole, err := sum.Nanos()
		must(t, err)
		if whole > parts || parts-whole >= money.Nanos(n) {
			t.Fatalf("whole %d, parts %d", whole, parts)
		}
	})
}

func must(t interface {
	Helper()
	Fatal(...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
