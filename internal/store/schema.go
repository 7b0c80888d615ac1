// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
)

// ErrOlderSchema means that the store waits for a migration that is run by hand.
var ErrOlderSchema = errors.New("store has an older schema than this program")

// Migration is one step of a schema. A program that knows at least the schema
// CompatibleSince goes on over it, new ones beside it (ENGINE, two versions).
type Migration struct {
	Version         int64
	Name            string
	CompatibleSince int64
}

// Schema says how a store's tables stand to this program.
type Schema struct {
	// Have is the last migration that the store has had, 0: none; Want the last
	// that this program knows.
	Have, Want int64
	// Compatible is the least that a program has to know to use the store.
	Compatible int64
	// Pending are the migrations from Have to Want, in order.
	Pending []Migration
	// Older are running processes that Pending would leave behind: they know less
	// than a program has to know afterwards.
	Older []Replica
}

// Check tells whether this program may use the store as it is, or with Pending.
// Errors: ErrNewerSchema.
func (s *Schema) Check() error {
	if s.Have > s.Want && s.Compatible > s.Want {
		return fmt.Errorf("schema %d, which programs use that know schema %d, this one knows %d: %w", s.Have, s.Compatible, s.Want, ErrNewerSchema)
	}
	return nil
}
