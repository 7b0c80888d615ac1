// SPDX-License-Identifier: Apache-2.0

package admin

import "github.com/weirhq/weir/internal/admit"

// Requests and answers of the operations on keys and workspaces. Fields with a
// path, query or header tag travel there, Body as the JSON body. Money is a
// decimal string of US dollars, an instant is RFC 3339 in UTC.

// KeyFields are what can be said of a key when it is made or changed. A field
// that is left out keeps its value, or takes the workspace template's when the
// key is new (SPEC KEY-4); null clears it; null and 0 of a limit mean unlimited.
type KeyFields struct {
	Name            Option[string]    `json:"name,omitzero" doc:"1 to 100 printable characters, one of its kind in the workspace"`
	Team            Option[string]    `json:"team,omitzero"`
	Project         Option[string]    `json:"project,omitzero"`
	User            Option[string]    `json:"user,omitzero"`
	Plan            Option[string]    `json:"plan,omitzero" doc:"name of a plan: its limits apply too"`
	AttributeUsers  Option[string]    `json:"attribute_users,omitzero" enum:"header,body" doc:"where requests may name their end user: X-Weir-User, with body also in the body; null is nowhere"`
	RequireUser     Option[bool]      `json:"require_user,omitzero" doc:"true refuses requests that name no user"`
	AllowedModels   Option[[]string]  `json:"allowed_models,omitzero" doc:"exact names or prefix/*; null allows all, an empty list none"`
	MaxOutputTokens Option[int64]     `json:"max_output_tokens,omitzero"`
	ExpiresAt       Option[string]    `json:"expires_at,omitzero" doc:"RFC 3339; null is never"`
	Disabled        Option[bool]      `json:"disabled,omitzero"`
	Caps            Option[CapFields] `json:"caps,omitzero" doc:"spend caps; null and \"0\" are unlimited"`
	Limits          Option[RunFields] `json:"limits,omitzero" doc:"runtime limits; null and 0 are unlimited"`

	raw []byte // as received: read by the domain's own strict reader
}

// CapFields are the spend caps of a key in dollars.
type CapFields struct {
	Day       Option[string] `json:"day,omitzero"`
	SevenDay  Option[string] `json:"seven_day,omitzero"`
	ThirtyDay Option[string] `json:"thirty_day,omitzero"`
}

// RunFields are runtime limits.
type RunFields struct {
	RPM         Option[int64] `json:"rpm,omitzero" doc:"requests a minute"`
	TPM         Option[int64] `json:"tpm,omitzero" doc:"tokens a minute"`
	Concurrency Option[int64] `json:"concurrency,omitzero" doc:"requests in flight"`
	CountCached Option[bool]  `json:"count_cached,omitzero" doc:"false leaves cache reads out of tpm"`
}

// KeyCreateRequest makes a key. A replay with the same IdempotencyKey returns
// the key without its secret.
type KeyCreateRequest struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 printable characters, kept for good"`
	Body           KeyFields
}

// KeyListRequest asks for the workspace's keys by name.
type KeyListRequest struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// KeyListAnswer is one page; an empty NextCursor ends the list.
type KeyListAnswer struct {
	Keys       []KeyAnswer `json:"keys"`
	NextCursor string      `json:"next_cursor,omitempty"`
}

// KeyRequest names one key, by id or by name.
type KeyRequest struct {
	Key string `path:"key" doc:"id or name"`
}

// KeyUpdateRequest changes what its body gives.
type KeyUpdateRequest struct {
	Key  string `path:"key" doc:"id or name"`
	Body KeyFields
}

// KeyRotateRequest gives a key a new secret; the old one works on for the grace
// period (SPEC KEY-3).
type KeyRotateRequest struct {
	Key            string `path:"key" doc:"id or name"`
	IdempotencyKey string `header:"Idempotency-Key"`
	Body           RotateFields
}

// RotateFields say how a key is rotated.
type RotateFields struct {
	GraceSeconds int64 `json:"grace_seconds,omitempty" doc:"how long the old secret still works, 0 to 2592000"`

	raw []byte
}

// KeyAnswer is one key. Secret is there once: when it was made.
type KeyAnswer struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Prefix          string            `json:"prefix,omitempty" doc:"the visible beginning of the secret"`
	Secret          string            `json:"secret,omitempty" doc:"shown once"`
	Replayed        bool              `json:"replayed,omitempty" doc:"this Idempotency-Key came before: the secret was in the first answer"`
	Status          string            `json:"status" doc:"active, disabled, expired or retired"`
	Team            string            `json:"team,omitempty"`
	Project         string            `json:"project,omitempty"`
	User            string            `json:"user,omitempty"`
	Plan            string            `json:"plan,omitempty" doc:"name"`
	AttributeUsers  string            `json:"attribute_users,omitempty" doc:"header or body; absent: nowhere"`
	RequireUser     bool              `json:"require_user,omitempty"`
	AllowedModels   *[]string         `json:"allowed_models,omitempty" doc:"absent: all"`
	MaxOutputTokens *int64            `json:"max_output_tokens,omitempty"`
	ExpiresAt       string            `json:"expires_at,omitempty"`
	Caps            CapValues         `json:"caps"`
	Limits          RunValues         `json:"limits"`
	FromTemplate    map[string]string `json:"from_template,omitempty" doc:"field to the date on which it was copied"`
	Source          string            `json:"source" doc:"api or file"`
	Origin          string            `json:"origin,omitempty" doc:"file:line"`
	Version         int64             `json:"version"`
	CreatedAt       string            `json:"created_at"`
	UpdatedAt       string            `json:"updated_at"`
}

// CapValues are spend caps in dollars; absent is unlimited.
type CapValues struct {
	Day       string `json:"day,omitempty"`
	SevenDay  string `json:"seven_day,omitempty"`
	ThirtyDay string `json:"thirty_day,omitempty"`
}

// RunValues are runtime limits as set; absent is unset, 0 unlimited.
type RunValues struct {
	RPM         *int64 `json:"rpm,omitempty"`
	TPM         *int64 `json:"tpm,omitempty"`
	Concurrency *int64 `json:"concurrency,omitempty"`
	CountCached *bool  `json:"count_cached,omitempty" doc:"false: cache reads are left out of tpm"`
}

// KeyLimitsAnswer is every limit that applies to a key, with its state (SPEC
// EFF-1).
type KeyLimitsAnswer = admit.KeyView

// WorkspaceRequest asks for the actor's workspace.
type WorkspaceRequest struct{}

// WorkspaceListRequest asks for all workspaces by name.
type WorkspaceListRequest struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// WorkspaceListAnswer is one page; an empty NextCursor ends the list.
type WorkspaceListAnswer struct {
	Workspaces []WorkspaceAnswer `json:"workspaces"`
	NextCursor string            `json:"next_cursor,omitempty"`
}

// WorkspaceFields are what can be changed of a workspace; what is left out
// stays. type_defaults and key_template replace the whole of what was.
type WorkspaceFields struct {
	Type          Option[string]               `json:"type,omitzero" enum:"personal,enterprise"`
	Funds         Option[string]               `json:"funds,omitzero" enum:"open,prepaid,prepaid_hold"`
	CreditLine    Option[string]               `json:"credit_line,omitzero"`
	TimeZone      Option[string]               `json:"time_zone,omitzero" doc:"IANA name; null is UTC"`
	Limits        Option[RunFields]            `json:"limits,omitzero"`
	TypeDefaults  Option[map[string]RunFields] `json:"type_defaults,omitzero" doc:"by personal and enterprise"`
	KeyTemplate   Option[TemplateFields]       `json:"key_template,omitzero" doc:"null removes it"`
	BudgetRefusal Option[int64]                `json:"budget_refusal,omitzero" enum:"402,429"`
	HideAmounts   Option[bool]                 `json:"hide_amounts,omitzero"`
	HoldOutput    Option[int64]                `json:"hold_output_tokens,omitzero" doc:"bounds what is held for output; null and 0: the worst case"`
	OnShort       Option[string]               `json:"on_short,omitzero" enum:"refuse,shrink" doc:"what a hard budget does with a request that asks for more output than is left"`
	ShrinkFloor   Option[int64]                `json:"shrink_floor,omitzero" doc:"output tokens that a request is never shrunk below"`
	MaxUsers      Option[int64]                `json:"max_users,omitzero" doc:"how many users requests may name"`

	raw []byte
}

// TemplateFields are what a new key copies where its maker left a value out.
type TemplateFields struct {
	Team            Option[string]    `json:"team,omitzero"`
	Project         Option[string]    `json:"project,omitzero"`
	Plan            Option[string]    `json:"plan,omitzero"`
	AttributeUsers  Option[string]    `json:"attribute_users,omitzero" enum:"header,body"`
	RequireUser     Option[bool]      `json:"require_user,omitzero"`
	AllowedModels   Option[[]string]  `json:"allowed_models,omitzero"`
	MaxOutputTokens Option[int64]     `json:"max_output_tokens,omitzero"`
	Caps            Option[CapFields] `json:"caps,omitzero"`
	Limits          Option[RunFields] `json:"limits,omitzero"`
}

// WorkspaceUpdateRequest changes what its body gives.
type WorkspaceUpdateRequest struct {
	Body WorkspaceFields
}

// WorkspaceAnswer is one workspace.
type WorkspaceAnswer struct {
	ID            string               `json:"id"`
	Name          string               `json:"name"`
	Type          string               `json:"type"`
	Funds         string               `json:"funds"`
	CreditLine    string               `json:"credit_line"`
	TimeZone      string               `json:"time_zone"`
	Limits        []EffectiveLimit     `json:"limits" doc:"the runtime limits in force, with their origin (workspace, type default, unlimited)"`
	TypeDefaults  map[string]RunValues `json:"type_defaults,omitempty"`
	KeyTemplate   *TemplateValues      `json:"key_template,omitempty"`
	BudgetRefusal int                  `json:"budget_refusal"`
	HideAmounts   bool                 `json:"hide_amounts"`
	HoldOutput    int64                `json:"hold_output_tokens,omitempty" doc:"absent: the worst case is held"`
	OnShort       string               `json:"on_short"`
	ShrinkFloor   int64                `json:"shrink_floor"`
	MaxUsers      int64                `json:"max_users"`
	Source        string               `json:"source"`
	Origin        string               `json:"origin,omitempty"`
	Version       int64                `json:"version"`
	CreatedAt     string               `json:"created_at"`
	UpdatedAt     string               `json:"updated_at"`
}

// EffectiveLimit is a workspace's runtime limit and whence it comes (SPEC
// RUN-5). 0 is unlimited.
type EffectiveLimit struct {
	Metric string `json:"metric"`
	Amount int64  `json:"amount"`
	Origin string `json:"origin"`
}

// TemplateValues is a workspace's template.
type TemplateValues struct {
	Team            string    `json:"team,omitempty"`
	Project         string    `json:"project,omitempty"`
	Plan            string    `json:"plan,omitempty"`
	AttributeUsers  string    `json:"attribute_users,omitempty"`
	RequireUser     bool      `json:"require_user,omitempty"`
	AllowedModels   *[]string `json:"allowed_models,omitempty"`
	MaxOutputTokens *int64    `json:"max_output_tokens,omitempty"`
	Caps            CapValues `json:"caps"`
	Limits          RunValues `json:"limits"`
}
