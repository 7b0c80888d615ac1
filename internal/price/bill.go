// SPDX-License-Identifier: Apache-2.0

package price

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
)

// bill adds up one request: parts times their rates, exactly, rounded once.
// Lines are written down only where somebody wants to read them.
type bill struct {
	row   *Row
	sum   money.Sum
	shown *Breakdown // nil: nobody
	used  bool
}

// cost is the one way from units to money: u at these prices of tokens. Tokens,
// seconds and images are scaled by factor; requests and the calls of tools are
// not, for providers discount what a model does and not what surrounds it.
func (r *Row) cost(prices rates, u *call.Usage, factor Fraction, shown *Breakdown) (money.Nanos, error) {
	if r.IsEmpty() {
		return 0, fmt.Errorf("model %q %w", r.Model, ErrUnpriced)
	}
	b := bill{row: r, shown: shown}
	if err := b.tokens(prices, u); err != nil {
		return 0, err
	}
	pieces := r.unitPrices()
	for n, count := range mediaPlaces(&u.Units) {
		if count == nil {
			continue
		}
		if err := b.unit(unit(n), pieces[n], *count); err != nil {
			return 0, err
		}
	}
	if err := b.sum.Scale(factor.Num, factor.Den); err != nil {
		return 0, fmt.Errorf("pricing a service tier of model %q: %w", r.Model, err)
	}
	if shown != nil {
		shown.scale(factor)
	}
	if err := b.tools(&u.Units.Tools); err != nil {
		return 0, err
	}
	requests := u.Requests
	if b.used {
		// What was used came from at least one request, counted or not.
		requests = max(requests, 1)
	}
	if pieces[unitRequest] != nil || requests < 0 {
		if err := b.unit(unitRequest, pieces[unitRequest], requests); err != nil {
			return 0, err
		}
	}
	return b.sum.Nanos()
}

func (b *bill) tokens(prices rates, u *call.Usage) error {
	for p, n := range units(u) {
		if n == 0 {
			continue
		}
		if err := b.usable(parts[p].name, n, prices[p] != nil); err != nil {
			return err
		}
		if err := b.sum.Add(*prices[p], n); err != nil {
			return fmt.Errorf("pricing %s of model %q: %w", parts[p].name, b.row.Model, err)
		}
		if b.shown != nil {
			b.shown.add(parts[p].name, n, false, *prices[p], "a million tokens")
		}
	}
	return nil
}

// unit adds so many of a unit, in microseconds where it is priced by the second.
func (b *bill) unit(n unit, price *money.Nanos, count int64) error {
	kind := &unitKinds[n]
	if count == 0 {
		return nil
	}
	if err := b.usable(kind.key, count, price != nil); err != nil {
		return err
	}
	var err error
	if kind.seconds {
		// Dollars a second are dollars a million microseconds.
		err = b.sum.Add(money.PerMillion(*price), count)
	} else {
		err = b.pieces(*price, count)
	}
	if err != nil {
		return fmt.Errorf("pricing %s of model %q: %w", kind.key, b.row.Model, err)
	}
	if b.shown != nil {
		b.shown.add(kind.key, count, kind.seconds, money.PerMillion(*price), kind.one)
	}
	return nil
}

func (b *bill) tools(t *call.ToolCalls) error {
	for _, c := range t.List() {
		if c.Calls == 0 {
			continue
		}
		price := b.row.toolPrice(c.Name)
		if err := b.usable("per_tool_call."+c.Name, c.Calls, price != nil); err != nil {
			return err
		}
		if err := b.pieces(*price, c.Calls); err != nil {
			return fmt.Errorf("pricing %s of model %q: %w", c.Name, b.row.Model, err)
		}
		if b.shown != nil {
			b.shown.add(keyPerToolCall+"."+c.Name, c.Calls, false, money.PerMillion(*price), "a call")
		}
	}
	return nil
}

// usable refuses a count that can't be priced.
func (b *bill) usable(name string, count int64, priced bool) error {
	b.used = true
	switch {
	case count < 0:
		return fmt.Errorf("%s of model %q: %w", name, b.row.Model, ErrUsage)
	case !priced:
		return fmt.Errorf("%s of model %q %w", name, b.row.Model, ErrUnpriced)
	}
	return nil
}

func (b *bill) pieces(price money.Nanos, count int64) error {
	hi, lo := bits.Mul64(uint64(price), uint64(count))
	if hi != 0 || lo > math.MaxInt64 {
		return money.ErrOverflow
	}
	return b.sum.AddNanos(money.Nanos(lo))
}
