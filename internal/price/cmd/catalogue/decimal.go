// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

const (
	// places is how many decimal places a price may have.
	places = 9
	// noisePlaces is where the tail of a float ends: 0.18000000000000002 was
	// 0.18 before somebody multiplied it.
	noisePlaces = 12
)

// decimal is the plain decimal of a number's source text divided by
// 10^shift, exactly. Only what has more than nine places is rounded: to the
// twelfth, to lose a float's tail, and then up to the ninth.
func decimal(text string, shift int) (plain string, exact bool, err error) {
	mantissa, exponentText, hasExponent := strings.Cut(text, "e")
	exponent := 0
	if hasExponent {
		if exponent, err = strconv.Atoi(exponentText); err != nil || exponent < -30 || exponent > 30 {
			return "", false, fmt.Errorf("number %q has no usable exponent", text)
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, ok := new(big.Int).SetString("0"+whole+fraction, 10)
	if !ok || whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", false, fmt.Errorf("%q is no number", text)
	}
	exponent -= len(fraction) + shift
	digits, exponent = trim(digits, exponent)
	if exact = exponent >= -places; !exact {
		digits, exponent = toPlaces(digits, exponent, noisePlaces, false)
		digits, exponent = toPlaces(digits, exponent, places, true)
		digits, exponent = trim(digits, exponent)
	}
	return format(digits, exponent), exact, nil
}

// trim takes zeros off the end.
func trim(digits *big.Int, exponent int) (*big.Int, int) {
	ten := big.NewInt(10)
	for digits.Sign() != 0 {
		quotient, rest := new(big.Int).QuoRem(digits, ten, new(big.Int))
		if rest.Sign() != 0 {
			return digits, exponent
		}
		digits, exponent = quotient, exponent+1
	}
	return digits, 0
}

// toPlaces cuts digits to n places, up or to the nearest.
func toPlaces(digits *big.Int, exponent, n int, up bool) (*big.Int, int) {
	if exponent >= -n {
		return digits, exponent
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-exponent-n)), nil)
	quotient, rest := new(big.Int).QuoRem(digits, unit, new(big.Int))
	double := new(big.Int).Lsh(rest, 1)
	if up && rest.Sign() > 0 || !up && double.Cmp(unit) >= 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient, -n
}

func format(digits *big.Int, exponent int) string {
	s := digits.String()
	if exponent >= 0 {
		if digits.Sign() == 0 {
			return "0"
		}
		return s + strings.Repeat("0", exponent)
	}
	if missing := 1 - exponent - len(s); missing > 0 {
		s = strings.Repeat("0", missing) + s
	}
	return s[:len(s)+exponent] + "." + s[len(s)+exponent:]
}
