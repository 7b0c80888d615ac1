// SPDX-License-Identifier: Apache-2.0

package price

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/money"
)

// Fraction is the exact factor of a service tier: 1/2, 5/3. Num and Den are
// positive.
type Fraction struct{ Num, Den int64 }

var one = Fraction{1, 1}

const (
	maxFractionTerm = 1_000_000_000
	maxFactor       = 100
)

// ParseFraction reads "1/2" or a decimal, "0.5", into lowest terms. A factor
// is above 0, for no tier is free because of a slip, and at most 100.
func ParseFraction(s string) (Fraction, error) {
	numText, denText, isFraction := strings.Cut(s, "/")
	f := Fraction{Den: int64(money.Dollar)}
	if !isFraction {
		n, err := money.ParseUSD(s)
		if err != nil {
			return Fraction{}, fmt.Errorf("factor: %w", err)
		}
		f.Num = int64(n)
	} else {
		num, okNum := term(numText)
		den, okDen := term(denText)
		if !okNum || !okDen {
			return Fraction{}, fmt.Errorf("factor %.40q is neither a decimal nor a fraction of whole numbers", s)
		}
		f = Fraction{num, den}
	}
	if f.Num <= 0 || f.Den <= 0 || f.Num > maxFactor*f.Den {
		return Fraction{}, fmt.Errorf("factor %.40q is not above 0 and at most %d", s, maxFactor)
	}
	common := gcd(f.Num, f.Den)
	return Fraction{f.Num / common, f.Den / common}, nil
}

// term reads one number of a fraction, digits only.
func term(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && n <= maxFractionTerm && s[0] != '+'
}

// String is the fraction as ParseFraction reads it: "1/2", "2/1".
func (f Fraction) String() string {
	return strconv.FormatInt(f.Num, 10) + "/" + strconv.FormatInt(f.Den, 10)
}

// less reports whether f is below g.
func (f Fraction) less(g Fraction) bool {
	leftHi, leftLo := bits.Mul64(uint64(f.Num), uint64(g.Den))
	rightHi, rightLo := bits.Mul64(uint64(g.Num), uint64(f.Den))
	return leftHi < rightHi || leftHi == rightHi && leftLo < rightLo
}

// factor is what the tokens of a service tier are multiplied with.
func (r *Row) factor(serviceTier string) Fraction {
	if f, ok := r.Factors[serviceTier]; ok {
		return f
	}
	return one
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
