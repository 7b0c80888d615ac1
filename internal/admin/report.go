// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"

	"github.com/weirhq/weir/internal/admit"
)

// Requests and answers of funds, reports, prices and the rest.

// FundRequest books an entry. Sending it again with the same IdempotencyKey
// books nothing more.
type FundRequest struct {
	IdempotencyKey string `header:"Idempotency-Key"`
	Body           FundFields
}

// FundFields are a top-up or credit, which are above zero, or an adjustment,
// which is signed and says why (SPEC BAL-5).
type FundFields struct {
	Kind   string `json:"kind" enum:"top_up,credit,adjustment"`
	Amount string `json:"amount" doc:"dollars, a decimal string of at most 9 places"`
	Reason string `json:"reason,omitempty" doc:"required for an adjustment, at most 500 characters"`

	raw []byte
}

// BalanceRequest asks for the workspace's funds.
type BalanceRequest struct{}

// BalanceAnswer is a workspace's funds in dollars. Entry is the one that was
// booked; Replayed says that it had been booked before.
type BalanceAnswer struct {
	Workspace  string     `json:"workspace"`
	Funds      string     `json:"funds" doc:"open, prepaid or prepaid_hold"`
	Balance    string     `json:"balance" doc:"what was paid in less what was spent"`
	CreditLine string     `json:"credit_line"`
	Held       string     `json:"held" doc:"by running requests; prepaid_hold only"`
	Available  string     `json:"available"`
	Entry      *FundEntry `json:"entry,omitempty"`
	Replayed   bool       `json:"replayed,omitempty"`
}

// FundEntriesRequest asks for entries, the newest first.
type FundEntriesRequest struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// FundEntriesAnswer is one page; an empty NextCursor ends the list.
type FundEntriesAnswer struct {
	Entries    []FundEntry `json:"entries"`
	NextCursor string      `json:"next_cursor,omitempty"`
}

// FundEntry is one top-up, credit or adjustment.
type FundEntry struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Amount string `json:"amount"`
	At     string `json:"at"`
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor,omitempty"`
}

// UsageRequest asks for what requests used. From and To are local dates of the
// workspace's zone, or instants; both may be left out: the last 30 days up to
// now. From is in it; a To that is a date is in it too.
type UsageRequest struct {
	By   string `query:"by" doc:"by commas: key, model, provider, user, team, project, day"`
	From string `query:"from" doc:"2006-01-02 or RFC 3339"`
	To   string `query:"to" doc:"2006-01-02 (that day included) or RFC 3339"`
}

// UsageAnswer is usage by group, and in all.
type UsageAnswer struct {
	From     string     `json:"from"`
	To       string     `json:"to"`
	TimeZone string     `json:"time_zone"`
	By       []string   `json:"by"`
	Rows     []UsageRow `json:"rows"`
	Total    UsageRow   `json:"total"`
}

// UsageRow is one group. Only the fields that were asked for are set.
type UsageRow struct {
	Key      string `json:"key,omitempty" doc:"id"`
	KeyName  string `json:"key_name,omitempty"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
	User     string `json:"user,omitempty"`
	Team     string `json:"team,omitempty"`
	Project  string `json:"project,omitempty"`
	Day      string `json:"day,omitempty"`
	Spend    string `json:"spend"`
	Tokens   int64  `json:"tokens"`
	Requests int64  `json:"requests"`
}

// RequestListRequest asks for ended and refused requests, the newest first.
type RequestListRequest struct {
	Key      string `query:"key" doc:"id or name"`
	Outcome  string `query:"outcome" doc:"settled, swept, voided, undone or refused"`
	ClientID string `query:"client_id" doc:"the client's own X-Request-Id: every request that carried it"`
	Cursor   string `query:"cursor"`
	Limit    int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// RequestListAnswer is one page; an empty NextCursor ends the list.
type RequestListAnswer struct {
	Requests   []RequestSummary `json:"requests"`
	NextCursor string           `json:"next_cursor,omitempty"`
}

// RequestSummary is one line of the call log. A Count above 1 stands for that
// many refusals of one key and code.
type RequestSummary struct {
	ID       string `json:"id"`
	At       string `json:"at"`
	Outcome  string `json:"outcome" doc:"running, settled, swept, voided, undone or refused"`
	Code     string `json:"code,omitempty"`
	Key      string `json:"key,omitempty"`
	KeyName  string `json:"key_name,omitempty"`
	User     string `json:"user,omitempty"`
	Team     string `json:"team,omitempty"`
	Project  string `json:"project,omitempty"`
	Model    string `json:"model,omitempty" doc:"that served, or would have"`
	Provider string `json:"provider,omitempty"`
	Spend    string `json:"spend"`
	Tokens   int64  `json:"tokens"`
	ClientID string `json:"client_id,omitempty"`
	Count    int64  `json:"count"`
}

// RequestShowRequest names one request by our id.
type RequestShowRequest struct {
	ID string `path:"id" doc:"X-Weir-Request-Id"`
}

// RequestAdjustRequest says what an ended request cost instead of what it was
// charged (SPEC RES-9). Sending it again with the same IdempotencyKey books
// nothing more.
type RequestAdjustRequest struct {
	ID             string `path:"id" doc:"X-Weir-Request-Id"`
	IdempotencyKey string `header:"Idempotency-Key"`
	Body           AdjustFields
}

// AdjustFields are what the request cost and used in all. What is left out stays
// as it was charged.
type AdjustFields struct {
	Spend  Option[string] `json:"spend,omitzero" doc:"dollars, a decimal string; 0 takes the whole charge back"`
	Tokens Option[int64]  `json:"tokens,omitzero"`
	Reason string         `json:"reason" doc:"why; 1 to 500 bytes, kept with the entry"`

	raw []byte
}

// RequestAnswer explains one request: every check in its order with what it
// saw, the estimate, the price and the charge (SPEC ADM-7).
type RequestAnswer struct {
	RequestSummary
	EndedAt    string        `json:"ended_at,omitempty"`
	Door       string        `json:"door,omitempty"`
	ModelSent  string        `json:"model_sent,omitempty"`
	KeyUser    string        `json:"key_user,omitempty" doc:"the key's own user, where the request named another"`
	Stream     bool          `json:"stream,omitempty"`
	Message    string        `json:"message,omitempty" doc:"of a refusal by the model policy"`
	Generation int64         `json:"generation" doc:"of the configuration that decided"`
	Place      int32         `json:"place" doc:"in the batch that decided at this instant"`
	Checks     []CheckView   `json:"checks"`
	Estimate   *EstimateView `json:"estimate,omitempty"`
	PriceID    string        `json:"price_id,omitempty"`
	Price      *PriceView    `json:"price,omitempty" doc:"absent when the row is not in force any more"`
	End        *EndView      `json:"end,omitempty"`
	Events     []EventView   `json:"events"`
	Replayed   bool          `json:"replayed,omitempty" doc:"of an adjustment: this Idempotency-Key came before"`
}

// CheckView is one limit as the decision saw it. Figures are in the limit's own
// unit: dollars for spend.
type CheckView struct {
	Place     int    `json:"place" doc:"from 1, in the published order"`
	ID        string `json:"limit_id"`
	Name      string `json:"name"`
	Scope     string `json:"scope"`
	Origin    string `json:"origin,omitempty"`
	Metric    string `json:"metric,omitempty"`
	Window    string `json:"window,omitempty"`
	Admission string `json:"admission" doc:"track, observe, reserve or take"`
	Amount    string `json:"amount,omitempty"`
	Used      string `json:"used,omitempty"`
	Held      string `json:"held,omitempty"`
	Wanted    string `json:"wanted,omitempty"`
	ResetsAt  string `json:"resets_at,omitempty"`
	Code      string `json:"code,omitempty" doc:"with which it refuses"`
	Verdict   string `json:"verdict" doc:"pass, refused, or would refuse when an earlier check had refused"`
}

// EstimateView is the worst case that was admitted (SPEC EST-1 to EST-3).
type EstimateView struct {
	TextBytes    int64  `json:"text_bytes"`
	Messages     int64  `json:"messages"`
	Tools        int64  `json:"tools"`
	Images       int64  `json:"images"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens" doc:"the bound, for all completions"`
	Completions  int64  `json:"completions"`
	Worst        string `json:"worst" doc:"dollars"`
}

// EndView is how a request ended.
type EndView struct {
	Outcome       string       `json:"outcome"`
	Status        int          `json:"status,omitempty" doc:"of the provider"`
	AnsweredModel string       `json:"answered_model,omitempty"`
	Marks         []string     `json:"marks,omitempty"`
	Charge        string       `json:"charge" doc:"dollars"`
	NamedCost     string       `json:"named_cost,omitempty" doc:"dollars that the answer itself names"`
	OwnCost       string       `json:"own_cost,omitempty" doc:"what our price makes of it, where the answer names a cost"`
	Usage         *admit.Usage `json:"usage,omitempty"`
	SentAt        string       `json:"sent_at,omitempty"`
	FirstByteAt   string       `json:"first_byte_at,omitempty"`
	EndedAt       string       `json:"ended_at,omitempty"`
}

// EventView is one append-only entry of a request.
type EventView struct {
	Kind     string       `json:"kind"`
	Attempt  int32        `json:"attempt"`
	At       string       `json:"at"`
	Model    string       `json:"model,omitempty"`
	Provider string       `json:"provider,omitempty"`
	PriceID  string       `json:"price_id,omitempty"`
	Spend    string       `json:"spend"`
	Tokens   int64        `json:"tokens"`
	Reason   string       `json:"reason,omitempty"`
	Actor    string       `json:"actor,omitempty"`
	Usage    *admit.Usage `json:"usage,omitempty"`
	Charges  []ChargeView `json:"charges"`
}

// ChargeView is what an event added to one counter, in the counter's unit:
// dollars for spend.
type ChargeView struct {
	Limit   string `json:"limit"`
	Subject string `json:"subject,omitempty"`
	Amount  string `json:"amount"`
	Credit  bool   `json:"credit,omitempty"`
}

// VerifyRequest recomputes every counter of the store from its records (SPEC
// RES-7). Progress, if set, hears of it now and then; not over HTTP.
type VerifyRequest struct {
	Progress func(VerifyCounts) `json:"-"`
}

// VerifyCounts says how much was looked at.
type VerifyCounts struct {
	Counters     int64 `json:"counters"`
	Reservations int64 `json:"reservations"`
	Tombstones   int64 `json:"tombstones"`
	Closings     int64 `json:"closings"`
	Events       int64 `json:"events"`
	Calls        int64 `json:"calls" doc:"records that say what flowed through buckets and sliding windows"`
	Rollups      int64 `json:"rollups" doc:"sums that usage reports are made of"`
	Partial      int64 `json:"partial" doc:"buckets and windows that are not compared: the call log begins after what they hold"`
	Saturated    int64 `json:"saturated" doc:"counters that an overflow was cut from and cannot be compared"`
}

// VerifyAnswer lists every figure that is not what the records say.
type VerifyAnswer struct {
	Balanced    bool             `json:"balanced"`
	At          string           `json:"at"`
	Counts      VerifyCounts     `json:"counts"`
	Differences []DifferenceView `json:"differences"`
}

// DifferenceView is one figure of one counter. Have and Want are raw: spend is
// in nano-dollars.
type DifferenceView struct {
	Workspace string `json:"workspace"`
	Limit     string `json:"limit,omitempty"`
	Subject   string `json:"subject,omitempty"`
	Epoch     uint32 `json:"epoch,omitempty"`
	Window    int64  `json:"window,omitempty" doc:"its start, Unix microseconds"`
	Request   string `json:"request,omitempty"`
	Figure    string `json:"figure" doc:"settled, credits, held, ending, a date, or what flowed through a bucket or window"`
	Have      int64  `json:"have"`
	Want      int64  `json:"want"`
}

// ModelListRequest asks for the models that the workspace has, its own and the
// shared ones.
type ModelListRequest struct{}

// ModelListAnswer lists models by name.
type ModelListAnswer struct {
	Models []ModelAnswer `json:"models"`
}

// ModelRequest names one model.
type ModelRequest struct {
	Model string `path:"model" doc:"name or alias"`
}

// ModelAnswer is one model. Counts of 0 are not set.
type ModelAnswer struct {
	ID                  string     `json:"id"`
	Name                string     `json:"name"`
	Shared              bool       `json:"shared"`
	Provider            string     `json:"provider"`
	Upstream            string     `json:"upstream"`
	ContextTokens       int64      `json:"context_tokens,omitempty"`
	MaxOutputTokens     int64      `json:"max_output_tokens,omitempty"`
	DefaultOutputTokens int64      `json:"default_output_tokens,omitempty"`
	ImageTokens         int64      `json:"image_tokens,omitempty"`
	BytesPerToken       int64      `json:"bytes_per_token,omitempty"`
	OutputField         string     `json:"output_field,omitempty"`
	Aliases             []string   `json:"aliases,omitempty"`
	Price               *PriceView `json:"price,omitempty" doc:"in force; absent: unpriced"`
	Source              string     `json:"source"`
	Origin              string     `json:"origin,omitempty"`
}

// ProviderListRequest asks for the providers that the workspace has, its own
// and the shared ones.
type ProviderListRequest struct{}

// ProviderListAnswer lists providers by name.
type ProviderListAnswer struct {
	Providers []ProviderAnswer `json:"providers"`
}

// ProviderRequest names one provider.
type ProviderRequest struct {
	Provider string `path:"provider"`
}

// ProviderAnswer is one provider; its credential is never shown.
type ProviderAnswer struct {
	ID                string   `json:"id"`
	Name              string   `json:"name"`
	Shared            bool     `json:"shared"`
	Protocol          string   `json:"protocol"`
	Dialect           string   `json:"dialect,omitempty" doc:"declared, or detected by the address"`
	BaseURL           string   `json:"base_url"`
	Auth              string   `json:"auth"`
	AuthName          string   `json:"auth_name,omitempty"`
	HasCredential     bool     `json:"has_credential"`
	HeaderNames       []string `json:"header_names,omitempty" doc:"their values may be secret"`
	ClientGone        string   `json:"client_gone,omitempty"`
	StreamUsage       string   `json:"stream_usage"`
	TrustProviderCost bool     `json:"trust_provider_cost,omitempty" doc:"a cost that an answer names replaces ours"`
	Source            string   `json:"source"`
	Origin            string   `json:"origin,omitempty"`
}

// AuditListRequest asks for changes, the newest first. Shared asks for those of
// what all workspaces share, which is System's alone.
type AuditListRequest struct {
	Shared bool   `query:"shared" doc:"changes of shared providers and models; system only"`
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// AuditListAnswer is one page; an empty NextCursor ends the list.
type AuditListAnswer struct {
	Entries    []AuditEntry `json:"entries"`
	NextCursor string       `json:"next_cursor,omitempty"`
}

// AuditEntry is one change: who, what, before, after; never a secret (SPEC
// ADM-3).
type AuditEntry struct {
	Seq    int64           `json:"seq"`
	At     string          `json:"at"`
	Actor  string          `json:"actor"`
	Action string          `json:"action"`
	Kind   string          `json:"kind"`
	ID     string          `json:"id"`
	Name   string          `json:"name,omitempty"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// StatusRequest asks what answers.
type StatusRequest struct{}

// StatusAnswer says what answers, and what its store is.
type StatusAnswer struct {
	Version       string `json:"version"`
	StartedAt     string `json:"started_at"`
	Now           string `json:"now" doc:"by the store's clock"`
	Store         string `json:"store" doc:"such as sqlite, memory"`
	Durable       bool   `json:"durable" doc:"false: nothing survives a restart, and no money limit can be set"`
	Catalogue     string `json:"catalogue"`
	CatalogueDate string `json:"catalogue_date"`
}
