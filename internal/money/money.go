// SPDX-License-Identifier: Apache-2.0

// Package money holds amounts of US dollars as integers of nano-dollars, and
// prices as integers of nano-dollars per million units (SPEC MON-1 to MON-4).
// Sums of price times units are kept exactly and rounded up once.
//
// It knows no currency but the dollar, no models and no usage: what is priced,
// and how, is package price.
package money

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Nanos is an amount in nano-dollars: 1e9 is one dollar. It may be negative
// (a balance in debt, an adjustment).
type Nanos int64

const (
	// Dollar is one US dollar.
	Dollar Nanos = 1_000_000_000
	// MaxAmount bounds every amount where it enters the system (SPEC 1).
	MaxAmount = 1_000_000_000 * Dollar

	nanosPerMicro = 1000
	maxPlaces     = 9
	// maxText is the longest amount within the bound: sign, ten digits of
	// dollars, the point, nine places.
	maxText = 1 + 10 + 1 + maxPlaces
)

// The kinds of refusal, for errors.Is.
var (
	ErrSyntax    = errors.New("not a decimal amount")
	ErrNegative  = errors.New("must not be negative")
	ErrPrecision = errors.New("has more than 9 decimal places")
	ErrRange     = errors.New("is out of range")
	ErrOverflow  = errors.New("does not fit")
)

// ParseUSD reads a decimal string of dollars: "0", "5", "0.0105". Digits must
// stand on both sides of a point, so "1." and ".5" are refused, as are
// superfluous leading zeros ("05"), signs, exponents, spaces and separators,
// more than nine places, and amounts over MaxAmount (SPEC MON-4). Zero is
// accepted; callers to whom zero means nothing refuse it themselves.
func ParseUSD(s string) (Nanos, error) {
	n, err := parse(s, MaxAmount)
	if err != nil {
		return 0, fmt.Errorf("amount %s %w", quote(s), err)
	}
	return n, nil
}

// ParseSignedUSD reads what ParseUSD reads, with an optional "-" before it.
// It is for adjustments (SPEC BAL-5); no limit or price may be negative.
func ParseSignedUSD(s string) (Nanos, error) {
	unsigned, negative := strings.CutPrefix(s, "-")
	n, err := parse(unsigned, MaxAmount)
	if errors.Is(err, ErrNegative) {
		err = ErrSyntax
	}
	if err != nil {
		return 0, fmt.Errorf("amount %s %w", quote(s), err)
	}
	if negative {
		return -n, nil
	}
	return n, nil
}

// parse reads an unsigned decimal string of dollars up to most.
func parse(s string, most Nanos) (Nanos, error) {
	whole, places, pointed := strings.Cut(s, ".")
	if strings.HasPrefix(whole, "-") && digits(whole[1:]) && (!pointed || digits(places)) {
		return 0, ErrNegative
	}
	if !digits(whole) || pointed && !digits(places) {
		return 0, ErrSyntax
	}
	if len(whole) > 1 && whole[0] == '0' {
		return 0, ErrSyntax
	}
	if len(places) > maxPlaces {
		return 0, ErrPrecision
	}
	if len(whole) > 10 {
		return 0, ErrRange
	}
	// At most ten digits and nine: 19 digits that begin with 9 pass int64,
	// hence unsigned, where 9,999,999,999.999999999 dollars fit.
	text := whole + places + "000000000"[len(places):]
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > uint64(most) {
		return 0, ErrRange
	}
	return Nanos(n), nil
}

// digits reports whether s is one or more ASCII digits.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// quote shows the beginning of hostile input in an error of bounded length.
func quote(s string) string {
	if len(s) > 2*maxText {
		return strconv.QuoteToASCII(s[:2*maxText]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// String is the exact amount in dollars without trailing zeros: "0.0105",
// "-2", "5". ParseSignedUSD reads it back within the bound.
func (n Nanos) String() string {
	var buf [1 + maxText]byte
	out := buf[:0]
	magnitude := uint64(n)
	if n < 0 {
		out = append(out, '-')
		magnitude = -magnitude
	}
	out = strconv.AppendUint(out, magnitude/uint64(Dollar), 10)
	rest := magnitude % uint64(Dollar)
	if rest == 0 {
		return string(out)
	}
	out = append(out, '.')
	for scale := uint64(Dollar) / 10; rest > 0; scale /= 10 {
		out = append(out, byte('0'+rest/scale))
		rest %= scale
	}
	return string(out)
}

// Add is n + m; ok is false when the sum does not fit, and sum is then 0.
func (n Nanos) Add(m Nanos) (sum Nanos, ok bool) {
	total, saturated := SaturatingAdd(int64(n), int64(m))
	if saturated {
		return 0, false
	}
	return Nanos(total), true
}

// SaturatingAdd is a + b, held at the nearest int64 when the sum does not fit.
// Settlements use it: they are flagged then, but never lost (SPEC 1).
func SaturatingAdd(a, b int64) (sum int64, saturated bool) {
	sum = a + b
	if (sum < a) == (b < 0) {
		return sum, false
	}
	if b < 0 {
		return math.MinInt64, true
	}
	return math.MaxInt64, true
}

// MicrosUp is the amount in micro-dollars, rounded towards positive infinity:
// used and held amounts (SPEC MON-3).
func (n Nanos) MicrosUp() int64 {
	micros := int64(n) / nanosPerMicro
	if int64(n)%nanosPerMicro > 0 {
		micros++
	}
	return micros
}

// MicrosDown is the amount in micro-dollars, rounded towards negative
// infinity: remaining amounts (SPEC MON-3).
func (n Nanos) MicrosDown() int64 {
	micros := int64(n) / nanosPerMicro
	if int64(n)%nanosPerMicro < 0 {
		micros--
	}
	return micros
}

// FromMicros converts a limit given in micro-dollars, exactly. Negative
// amounts and amounts over MaxAmount are refused.
func FromMicros(micros int64) (Nanos, error) {
	if micros < 0 {
		return 0, fmt.Errorf("amount of %d micro-dollars %w", micros, ErrNegative)
	}
	if micros > int64(MaxAmount)/nanosPerMicro {
		return 0, fmt.Errorf("amount of %d micro-dollars %w", micros, ErrRange)
	}
	return Nanos(micros * nanosPerMicro), nil
}
