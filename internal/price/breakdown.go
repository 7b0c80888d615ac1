// SPDX-License-Identifier: Apache-2.0

package price

import (
	"math/big"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
)

// Breakdown is a charge as it comes about: each part times its rate, the factor
// of the service tier, and the one rounding (MON-2).
type Breakdown struct {
	Lines []Line
	// AboveTokens is the threshold of the context tier whose prices hold, 0 for
	// the prices below all of them.
	AboveTokens int64
	// Factor multiplies the lines that are Scaled.
	Factor Fraction
	// Exact is the cost in dollars before it is rounded up, in decimal; where it
	// never ends it is cut and ends in "…".
	Exact string
	Cost  money.Nanos

	sum big.Rat
}

// Line is one part of a charge: Units at Rate dollars per Per are Amount dollars,
// exactly. Units are tokens, pieces, or seconds in decimal.
type Line struct {
	Part, Units, Rate, Per, Amount string
	Scaled                         bool
}

// places of an exact product of a price and a count: nano-dollars and millionths.
const linePlaces = 15

// Explain is Charge with the way to it.
func (r *Row) Explain(u call.Usage) (*Breakdown, error) {
	b := &Breakdown{Factor: one}
	for _, tiers := range [][]Tier{r.Tiers, r.ServiceTiers[u.ServiceTier]} {
		if t := tierFor(tiers, u.InputTotal()); t != base {
			b.AboveTokens = max(b.AboveTokens, tiers[t].AboveTokens)
		}
	}
	cost, err := r.cost(r.ratesFor(u.InputTotal(), u.ServiceTier), &u, r.factor(u.ServiceTier), b)
	if err != nil {
		return nil, err
	}
	b.Cost = cost
	if places, exact := b.sum.FloatPrec(); exact {
		b.Exact = b.sum.FloatString(places)
	} else {
		b.Exact = cut(&b.sum, linePlaces) + "…"
	}
	return b, nil
}

// cut is x, at least 0, without what is beyond so many places.
func cut(x *big.Rat, places int) string {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	whole := new(big.Int).Mul(x.Num(), unit)
	whole.Quo(whole, x.Denom())
	return new(big.Rat).SetFrac(whole, unit).FloatString(places)
}

// add writes a line down. seconds says that count is in microseconds and the rate
// for a second; a rate of tokens is for a million of them.
func (b *Breakdown) add(part string, count int64, seconds bool, rate money.PerMillion, per string) {
	l := Line{Part: part, Units: big.NewInt(count).String(), Rate: rate.String(), Per: per}
	product := new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(count), big.NewInt(int64(rate))))
	product.Quo(product, big.NewRat(int64(money.Dollar), 1))
	if _, tokens := partNamed(part); tokens || seconds {
		product.Quo(product, big.NewRat(1_000_000, 1))
		l.Scaled = true
	}
	if seconds {
		l.Units = trimZeros(big.NewRat(count, 1_000_000).FloatString(6))
	}
	l.Scaled = l.Scaled || part == unitKinds[unitImage].key
	l.Amount = trimZeros(product.FloatString(linePlaces))
	b.Lines = append(b.Lines, l)
	b.sum.Add(&b.sum, product)
}

// scale multiplies what is written down so far.
func (b *Breakdown) scale(f Fraction) {
	b.Factor = f
	b.sum.Mul(&b.sum, big.NewRat(f.Num, f.Den))
}

// trimZeros takes the zeros off the end of a decimal that has a point.
func trimZeros(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }
