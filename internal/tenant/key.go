// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
)

// KindKey and KindWorkspace name the kinds of object that this package owns.
const (
	KindKey       = "key"
	KindWorkspace = "workspace"
)

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
	// AttributeUsers says where a request may name its end user: "" nowhere,
	// AttributeHeader or AttributeBody (SPEC KEY-7). RequireUser refuses one that
	// names none.
	AttributeUsers string
	RequireUser    bool
	// FromTemplate maps each field that was copied from the workspace's
	// template to the date of the copy (SPEC KEY-4).
	FromTemplate map[string]string
}

// Where a key's requests may name their end user (SPEC KEY-7).
const (
	AttributeHeader = "header" // X-Weir-User
	AttributeBody   = "body"   // also user or metadata.user_id
)

// Caps are a key's spend caps over trailing calendar days; nil and 0 are both
// unlimited (SPEC section 5).
type Caps struct {
	Day, SevenDay, ThirtyDay *money.Nanos
}

// Any reports whether a cap is set.
func (c Caps) Any() bool {
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
	AttributeUsers      string
	RequireUser         bool
}

// ApplyTemplate copies what the template has into the fields of a new key that
// its maker did not give, and notes the date of each copy (SPEC KEY-4). An
// explicit 0 or null counts as given. Paths are those of the JSON form:
// "caps.day", "limits.rpm", "allowed_models".
func (k *Key) ApplyTemplate(t *Template, explicit map[string]bool, date string) {
	if t == nil {
		return
	}
	from := t.shape()
	for _, f := range k.shape().fields() {
		if !explicit[f.path] && f.copy(from) {
			k.note(f.path, date)
		}
	}
}

// KeepCopies carries over what a declared key keeps of its earlier version: its
// id, its visible prefix when the new version has none, and every copy from the
// template of a field that is still left out. So a template that changes later
// changes no existing key (SPEC KEY-4).
func (k *Key) KeepCopies(previous *Key, explicit map[string]bool) {
	k.ID = previous.ID
	if k.Prefix == "" {
		k.Prefix = previous.Prefix
	}
	from := previous.shape()
	for _, f := range k.shape().fields() {
		date, copied := previous.FromTemplate[f.path]
		if copied && !explicit[f.path] && f.copy(from) {
			k.note(f.path, date)
		}
	}
}

func (k *Key) note(path, date string) {
	if k.FromTemplate == nil {
		k.FromTemplate = map[string]string{}
	}
	k.FromTemplate[path] = date
}

// Active reports whether the key works at an instant in Unix microseconds
// (SPEC KEY-2).
func (k *Key) Active(at int64) bool {
	return !k.Disabled && (k.ExpiresAt == 0 || at < k.ExpiresAt)
}

// Validate tells everything that is wrong with a key of workspace w, as
// document.Problems whose paths are those of its JSON form (SPEC CAP-2, RUN-4,
// KEY-5). The workspace's limits are not asked when w is nil. Lowering a
// workspace's limit later makes no key invalid where it stands: only who writes
// a key validates it.
func (k *Key) Validate(w *Workspace) error {
	var problems document.Problems
	if k.Name != "" {
		if err := ValidKeyName(k.Name); err != nil {
			problems.Add("name", "%v", err)
		}
	}
	checkSubject("user", k.User, &problems)
	if k.ExpiresAt < 0 || k.ExpiresAt > maxInstant {
		problems.Add("expires_at", "must be an instant before the year 10000")
	}
	k.shape().check(w, &problems)
	// A key of the file is validated before it copies from the template.
	copies := w != nil && w.KeyTemplate != nil && w.KeyTemplate.AttributeUsers != ""
	if k.RequireUser && k.AttributeUsers == "" && k.User == "" && !copies {
		problems.Add("require_user", "nothing names a user, so every request would be refused: add attribute_users or user")
	}
	return problems.Err()
}

// Validate is Key.Validate for a template: it has a key's shape and is held to
// the same rules (SPEC KEY-4). Paths are below the template.
func (t *Template) Validate(w *Workspace) error {
	var problems document.Problems
	t.shape().check(w, &problems)
	return problems.Err()
}
