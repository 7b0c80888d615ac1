// SPDX-License-Identifier: Apache-2.0

package admin

// PlanFields are what can be said of a plan. A field that is left out of a
// change keeps its value, null clears it. Its budgets are made as budgets, with
// the scope plan.
type PlanFields struct {
	Name            Option[string]   `json:"name,omitzero" doc:"1 to 128 letters, digits and ._@:+-, one of its kind in the workspace"`
	AllowedModels   Option[[]string] `json:"allowed_models,omitzero" doc:"exact names or prefix/*; null allows all, an empty list none"`
	MaxOutputTokens Option[int64]    `json:"max_output_tokens,omitzero"`

	raw []byte
}

// PlanListRequest asks for the workspace's plans by name.
type PlanListRequest struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// PlanListAnswer is one page; an empty NextCursor ends the list.
type PlanListAnswer struct {
	Plans      []PlanAnswer `json:"plans"`
	NextCursor string       `json:"next_cursor,omitempty"`
}

// PlanCreateRequest makes a plan.
type PlanCreateRequest struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 printable characters, kept for good"`
	Body           PlanFields
}

// PlanRequest names one plan.
type PlanRequest struct {
	ID string `path:"id" doc:"id or name"`
}

// PlanUpdateRequest changes what its body gives.
type PlanUpdateRequest struct {
	ID   string `path:"id" doc:"id or name"`
	Body PlanFields
}

// PlanAnswer is one plan. What a plan and its key both limit, both limit.
type PlanAnswer struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	Status          string    `json:"status" doc:"active or retired"`
	AllowedModels   *[]string `json:"allowed_models,omitempty" doc:"absent: all"`
	MaxOutputTokens *int64    `json:"max_output_tokens,omitempty"`
	Source          string    `json:"source" doc:"api or file"`
	Origin          string    `json:"origin,omitempty" doc:"file:line"`
	Version         int64     `json:"version"`
	CreatedAt       string    `json:"created_at"`
	UpdatedAt       string    `json:"updated_at"`
	Replayed        bool      `json:"replayed,omitempty" doc:"this Idempotency-Key came before"`
}
