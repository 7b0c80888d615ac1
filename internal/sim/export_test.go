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

// String shows all counts.
func (t *Tally) String() string { return fmt.Sprintf("%+v", *t) }
