// SPDX-License-Identifier: Apache-2.0

package tenant

import "github.com/weirhq/weir/internal/money"

// Key is an API key: the credential that a client sends, known here by a stable
// id and a short visible prefix. Its secret is never part of it.
//
// ID and Name stand beside its JSON form, not in it.
type Key struct {
	ID, Name string
	Prefix   string // the visible beginning of the current secret; may be empty
	Disabled bool
	// ExpiresAt is the first instant, in Unix microseconds, at which the key no
	// longer works; 0 is never.
	ExpiresAt int64
	// Team, Project and User name the subjects that its requests are charged
	// to; Plan names the shared set of limits. Empty is none.
	Team, Project, User, Plan string
	// AllowedModels are exact names or "prefix/*"; nil allows every model, an
	// empty list none (SPEC KEY-5).
	AllowedModels   *[]string
	MaxOutputTokens *int64 // nil or 0: none (SPEC KEY-6)
	Caps            Caps
	Limits          RuntimeLimits
	// FromTemplate maps each field that was copied from the workspace's
	// template to the date of the copy (SPEC KEY-4).
	FromTemplate map[string]string
}

// Caps are a key's spend caps over trailing calendar days; nil and 0 are both
// unlimited (SPEC section 5).
type Caps struct {
	Day, SevenDay, ThirtyDay *money.Nanos
}

// Any reports whether a cap is set.
func (c *Caps) Any() bool {
	return positive(c.Day) || positive(c.SevenDay) || positive(c.ThirtyDay)
}

func positive[T ~int64](n *T) bool { return n != nil && *n > 0 }

// Template is a key's shape without identity: what a new key copies where its
// maker left a value out (SPEC KEY-4).
type Template struct {
	Team, Project, Plan string
	AllowedModels       *[]string
	MaxOutputTokens     *int64
	Caps                Caps
	Limits              RuntimeLimits
}
