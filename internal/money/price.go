// SPDX-License-Identifier: Apache-2.0

package money

import "fmt"

// PerMillion is a price: nano-dollars per million units. 150_000_000 is $0.15
// per million tokens. It is never negative.
type PerMillion int64

const (
	// MaxPrice is the dearest price accepted without confirmation: 10,000
	// dollars per million units (SPEC 1).
	MaxPrice = PerMillion(10_000 * Dollar)

	unitsPerPrice = 1_000_000
)

// ParsePerMillion reads a decimal string of dollars per million units, by the
// rules of ParseUSD, up to MaxPrice.
func ParsePerMillion(usdPerMillion string) (PerMillion, error) {
	n, err := parse(usdPerMillion, Nanos(MaxPrice))
	if err != nil {
		return 0, fmt.Errorf("price %s %w", quote(usdPerMillion), err)
	}
	return PerMillion(n), nil
}

// ParsePerMillionConfirmed is ParsePerMillion for a price that somebody has
// confirmed: up to MaxAmount dollars per million units.
func ParsePerMillionConfirmed(usdPerMillion string) (PerMillion, error) {
	n, err := parse(usdPerMillion, MaxAmount)
	if err != nil {
		return 0, fmt.Errorf("price %s %w", quote(usdPerMillion), err)
	}
	return PerMillion(n), nil
}

// String is the exact price in dollars per million units: "0.15".
func (p PerMillion) String() string { return Nanos(p).String() }

// Cost is the price of n units, rounded up to the next nano-dollar.
//
// It rounds up because a hold must never be smaller than the charge that
// settles it; rounding to nearest would break that for every odd fraction.
// A negative price or count, and a cost that does not fit, are errors.
func (p PerMillion) Cost(n int64) (Nanos, error) {
	var sum Sum
	if err := sum.Add(p, n); err != nil {
		return 0, err
	}
	return sum.Nanos()
}
