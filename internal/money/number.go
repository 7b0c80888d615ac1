// SPDX-License-Identifier: Apache-2.0

package money

import (
	"fmt"
	"strconv"
	"strings"
)

// Number is a JSON number that somebody else wrote, in decimal, exactly: their
// price lists and bills have exponents and float's tails, which no amount of our
// own may have (MON-4). The zero value is 0.
type Number struct {
	digits   string // without zeros at either end; "" for 0
	exponent int    // of the last digit
	negative bool
}

const (
	maxNumberText = 128
	maxExponent   = 400
)

// ParseNumber reads a number as JSON writes it: "0.15", "1.5e-07", "-3". NaN,
// infinities, signs of plus and spaces are ErrSyntax.
func ParseNumber(s string) (Number, error) {
	n, err := parseNumber(s)
	if err != nil {
		return Number{}, fmt.Errorf("number %s %w", quote(s), err)
	}
	return n, nil
}

func parseNumber(s string) (Number, error) {
	if len(s) > maxNumberText {
		return Number{}, ErrRange
	}
	unsigned, negative := strings.CutPrefix(s, "-")
	mantissa, exponentText, scientific := strings.Cut(strings.Replace(unsigned, "E", "e", 1), "e")
	whole, places, pointed := strings.Cut(mantissa, ".")
	if !digits(whole) || pointed && !digits(places) {
		return Number{}, ErrSyntax
	}
	exponent := 0
	if scientific {
		var err error
		if !digits(strings.TrimLeft(exponentText, "+-")) {
			return Number{}, ErrSyntax
		}
		if exponent, err = strconv.Atoi(exponentText); err != nil {
			return Number{}, ErrSyntax
		}
		if exponent < -maxExponent || exponent > maxExponent {
			return Number{}, ErrRange
		}
	}
	text := strings.TrimLeft(whole+places, "0")
	short := strings.TrimRight(text, "0")
	if short == "" {
		return Number{}, nil
	}
	return Number{digits: short, exponent: exponent - len(places) + len(text) - len(short), negative: negative}, nil
}

// Shift is the number times 10^places.
func (n Number) Shift(places int) Number {
	if n.digits != "" {
		n.exponent += places
	}
	return n
}

// IsZero reports whether the number is 0.
func (n Number) IsZero() bool { return n.digits == "" }

// Exact is the number as dollars. Below zero is ErrNegative, more than nine
// places ErrPrecision, above MaxAmount ErrRange.
func (n Number) Exact() (Nanos, error) { return n.nanos(false) }

// Up is the number as dollars, rounded up to the next nano-dollar.
func (n Number) Up() (Nanos, error) { return n.nanos(true) }

func (n Number) nanos(up bool) (Nanos, error) {
	shift := n.exponent + maxPlaces
	switch {
	case n.IsZero():
		return 0, nil
	case n.negative:
		return 0, ErrNegative
	case len(n.digits)+shift > 2*maxPlaces+1:
		return 0, ErrRange
	case shift < 0 && !up:
		return 0, ErrPrecision
	case len(n.digits)+shift <= 0:
		return 1, nil
	}
	text := n.digits
	if shift >= 0 {
		text += strings.Repeat("0", shift)
	} else {
		text = text[:len(text)+shift]
	}
	whole, err := strconv.ParseUint(text, 10, 64)
	if shift < 0 {
		whole++ // the last digit is never a zero
	}
	if err != nil || whole > uint64(MaxAmount) {
		return 0, ErrRange
	}
	return Nanos(whole), nil
}

// String is the number in plain decimal, without an exponent.
func (n Number) String() string {
	if n.IsZero() {
		return "0"
	}
	text := n.digits
	switch {
	case n.exponent >= 0:
		text += strings.Repeat("0", n.exponent)
	case -n.exponent >= len(text):
		text = "0." + strings.Repeat("0", -n.exponent-len(text)) + text
	default:
		text = text[:len(text)+n.exponent] + "." + text[len(text)+n.exponent:]
	}
	if n.negative {
		return "-" + text
	}
	return text
}
