// SPDX-License-Identifier: Apache-2.0

package money

import (
	"fmt"
	"math"
	"math/bits"
)

// Sum is an exact, never negative sum of prices times units, scaled by exact
// fractions; Nanos rounds it up once (SPEC MON-2). The zero value is zero. A
// method that fails leaves the sum as it was.
type Sum struct {
	// The value is (hi·2^64 + lo) / den, in millionths of a nano-dollar,
	// in lowest terms as far as den goes. den = 0 stands for 1.
	hi, lo, den uint64
}

// Add adds the price of so many units.
func (s *Sum) Add(p PerMillion, units int64) error {
	if p < 0 || units < 0 {
		return fmt.Errorf("price %d times %d units %w", int64(p), units, ErrNegative)
	}
	return s.add(uint64(p), uint64(units))
}

// AddNanos adds an amount, such as a price per request.
func (s *Sum) AddNanos(n Nanos) error {
	if n < 0 {
		return fmt.Errorf("amount %s %w", n, ErrNegative)
	}
	return s.add(uint64(n), unitsPerPrice)
}

// add adds a·b millionths of a nano-dollar.
func (s *Sum) add(a, b uint64) error {
	hi, lo := bits.Mul64(a, b)
	hi, lo, ok := multiply(hi, lo, s.denominator())
	if !ok {
		return fmt.Errorf("sum of costs %w", ErrOverflow)
	}
	lo, carry := bits.Add64(s.lo, lo, 0)
	hi, carry = bits.Add64(s.hi, hi, carry)
	if carry != 0 {
		return fmt.Errorf("sum of costs %w", ErrOverflow)
	}
	s.hi, s.lo = hi, lo
	return nil
}

// Scale multiplies all that the sum holds so far by num/den, exactly: the
// factor of a service tier. num must not be negative, den must be positive.
func (s *Sum) Scale(num, den int64) error {
	if num < 0 || den <= 0 {
		return fmt.Errorf("factor %d/%d %w", num, den, ErrRange)
	}
	if num == 0 {
		*s = Sum{}
		return nil
	}
	n, d := reduce(uint64(num), uint64(den))
	old := s.denominator()
	n, old = reduce(n, old)
	hi, lo := s.hi, s.lo
	if common := gcd(d, remainder(hi, lo, d)); common > 1 {
		hi, lo, _ = divide(hi, lo, common)
		d /= common
	}
	hi, lo, ok := multiply(hi, lo, n)
	over, product := bits.Mul64(old, d)
	if !ok || over != 0 {
		return fmt.Errorf("cost times %d/%d %w", num, den, ErrOverflow)
	}
	s.hi, s.lo, s.den = hi, lo, product
	return nil
}

// Nanos is the sum, rounded up to the next nano-dollar.
func (s *Sum) Nanos() (Nanos, error) {
	// Rounding up twice in a row is rounding up once by the product, which
	// itself might not fit in 64 bits.
	hi, lo := divideUp(s.hi, s.lo, s.denominator())
	hi, lo = divideUp(hi, lo, unitsPerPrice)
	if hi != 0 || lo > math.MaxInt64 {
		return 0, fmt.Errorf("cost in nano-dollars %w", ErrOverflow)
	}
	return Nanos(lo), nil
}

func (s *Sum) denominator() uint64 { return max(s.den, 1) }

// multiply is (hi, lo)·m; ok is false when the product passes 128 bits.
func multiply(hi, lo, m uint64) (productHi, productLo uint64, ok bool) {
	over, high := bits.Mul64(hi, m)
	carry, low := bits.Mul64(lo, m)
	high, carried := bits.Add64(high, carry, 0)
	return high, low, over == 0 && carried == 0
}

// divide is (hi, lo)/d and its remainder; d must not be 0.
func divide(hi, lo, d uint64) (quotientHi, quotientLo, rest uint64) {
	quotientHi, rest = hi/d, hi%d
	quotientLo, rest = bits.Div64(rest, lo, d)
	return quotientHi, quotientLo, rest
}

// divideUp is (hi, lo)/d rounded up. It cannot overflow: a remainder needs
// d > 1, and the quotient is then at most half of the range.
func divideUp(hi, lo, d uint64) (quotientHi, quotientLo uint64) {
	quotientHi, quotientLo, rest := divide(hi, lo, d)
	if rest == 0 {
		return quotientHi, quotientLo
	}
	quotientLo, carry := bits.Add64(quotientLo, 1, 0)
	return quotientHi + carry, quotientLo
}

func remainder(hi, lo, d uint64) uint64 {
	_, _, rest := divide(hi, lo, d)
	return rest
}

// reduce brings a/b to lowest terms; both must be positive.
func reduce(a, b uint64) (uint64, uint64) {
	common := gcd(a, b)
	return a / common, b / common
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
