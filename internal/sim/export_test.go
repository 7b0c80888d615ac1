// SPDX-License-Identifier: Apache-2.0

package sim

import "fmt"

// RunTally is Run with the counts of what it came across.
func RunTally(seed uint64, steps int) (Tally, error) { return runWith(seed, steps, flaw{}) }

// Flaw damages a book.
type Flaw = flaw

// RunFlawed is Run over a book that is damaged on purpose.
func RunFlawed(seed uint64, steps int, spoil Flaw) error {
	_, err := runWith(seed, steps, spoil)
	return err
}

// Combinations is how many kinds of budget there are, Refusals those of them that
// can refuse.
const (
	Combinations = combinations
	Refusals     = combinations * 2 / 3
)

// String shows all counts, of combinations how many.
func (t *Tally) String() string {
	short := *t
	short.Combined, short.Refusing = nil, nil
	return fmt.Sprintf("%+v, %d kinds of budget admitted, %d refused", short, len(t.Combined), len(t.Refusing))
}
