// SPDX-License-Identifier: Apache-2.0

package admin

// Requests and answers of the operations on budgets and rate limits. Spend is
// in whole micro-dollars there, as in N's API: used and held round up,
// remaining rounds down, and beside each stands the exact decimal string of
// dollars (SPEC MON-3, ADM-1). Tokens and requests are whole numbers.

// BudgetFields are what can be said of a budget (SPEC BUD-1). A field that is
// left out of a change keeps its value, null clears it.
type BudgetFields struct {
	Name        Option[string] `json:"name,omitzero" doc:"1 to 100 characters, one of its kind in the workspace"`
	Scope       Option[string] `json:"scope,omitzero" enum:"org,team,project,user,key,plan"`
	Subject     Option[string] `json:"subject,omitzero" doc:"name of a team, project or user, or name or id of a key or plan; left out: each one separately"`
	Metric      Option[string] `json:"metric,omitzero" enum:"spend,tokens"`
	Limit       Option[int64]  `json:"limit,omitzero" doc:"tokens; for spend whole micro-dollars: 5000000 is $5"`
	LimitUSD    Option[string] `json:"limit_usd,omitzero" doc:"in place of limit, for spend: dollars, a decimal string of at most 9 places"`
	Period      Option[string] `json:"period,omitzero" enum:"day,week,month"`
	TimeZone    Option[string] `json:"time_zone,omitzero" doc:"IANA name of the zone of the period; null is UTC"`
	Window      Option[string] `json:"window,omitzero" doc:"in place of period: a fixed length such as 1h or 30d, aligned to the Unix epoch"`
	Model       Option[string] `json:"model,omitzero" doc:"counts what is used of this model only"`
	Provider    Option[string] `json:"provider,omitzero" doc:"counts what is used of this provider only"`
	WarnPercent Option[[]int]  `json:"warn_percent,omitzero" doc:"thresholds from 1 to 100"`
	Enforcement Option[string] `json:"enforcement,omitzero" enum:"hard,guard,soft"`
	OnExceeded  Option[string] `json:"on_exceeded,omitzero" enum:"block,record" doc:"in place of enforcement, of key and plan budgets: guard or soft"`
	OnMissing   Option[string] `json:"on_missing_usage,omitzero" enum:"charge,skip" doc:"of key and plan budgets: whether a request whose provider reported no usage is charged its estimate"`
	CountCached Option[bool]   `json:"count_cached,omitzero" doc:"false leaves cache reads out of a budget of tokens"`
	OnShort     Option[string] `json:"on_short,omitzero" enum:"refuse,shrink" doc:"of hard budgets: what becomes of a request that asks for more output than is left"`
	CountFrom   Option[string] `json:"count_from,omitzero" enum:"window_start" doc:"a new budget begins with what its window has seen"`
	System      Option[bool]   `json:"system,omitzero" doc:"set by a system administrator, and changed by one only"`

	raw []byte // as received: read by the domain's own strict reader
}

// BudgetListRequest asks for every budget there is, by owner and name.
type BudgetListRequest struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// BudgetListAnswer is one page; an empty NextCursor ends the list.
type BudgetListAnswer struct {
	Budgets    []BudgetAnswer `json:"budgets"`
	NextCursor string         `json:"next_cursor,omitempty"`
}

// BudgetCreateRequest makes a budget.
type BudgetCreateRequest struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 printable characters, kept for good"`
	Body           BudgetFields
}

// BudgetUpdateRequest changes what its body gives.
type BudgetUpdateRequest struct {
	ID   string `path:"id" doc:"id, or a name that no other budget has"`
	Body BudgetFields
}

// BudgetRequest names one budget.
type BudgetRequest struct {
	ID string `path:"id" doc:"id, or a name that no other budget has"`
}

// BudgetAnswer is one budget with its live use (SPEC BUD-1, BR-051).
type BudgetAnswer struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	OwnerKind   string  `json:"owner_kind,omitempty" doc:"key or plan: what it was declared with"`
	Owner       string  `json:"owner,omitempty" doc:"its id"`
	OwnerName   string  `json:"owner_name,omitempty"`
	Scope       string  `json:"scope"`
	Subject     string  `json:"subject,omitempty" doc:"a key's or plan's id, or a name"`
	SubjectName string  `json:"subject_name,omitempty" doc:"of a key or plan"`
	Per         string  `json:"per,omitempty" doc:"subject: each subject has a counter of its own, and no use stands here"`
	Metric      string  `json:"metric"`
	Limit       int64   `json:"limit" doc:"tokens; for spend micro-dollars, rounded down"`
	LimitUSD    string  `json:"limit_usd,omitempty" doc:"exact"`
	Period      string  `json:"period,omitempty"`
	Window      string  `json:"window,omitempty"`
	Zone        string  `json:"zone" doc:"in which its windows begin"`
	Model       string  `json:"model,omitempty"`
	Provider    string  `json:"provider,omitempty"`
	WarnPercent []int64 `json:"warn_percent,omitempty"`
	Enforcement string  `json:"enforcement" doc:"hard, guard or soft"`
	OnMissing   string  `json:"on_missing_usage,omitempty"`
	CountCached bool    `json:"count_cached" doc:"false: cache reads are left out"`
	OnShort     string  `json:"on_short,omitempty" doc:"absent: as the workspace says"`
	CountFrom   string  `json:"count_from,omitempty"`
	System      bool    `json:"system" doc:"true: only a system administrator changes it"`
	Used        *int64  `json:"used,omitempty" doc:"settled in the window; spend rounds up"`
	UsedUSD     string  `json:"used_usd,omitempty"`
	Held        *int64  `json:"held,omitempty" doc:"by running requests; spend rounds up"`
	HeldUSD     string  `json:"held_usd,omitempty"`
	Remaining   *int64  `json:"remaining,omitempty" doc:"spend rounds down"`
	RemainUSD   string  `json:"remaining_usd,omitempty"`
	Raised      *int64  `json:"raised,omitempty" doc:"added to the limit for this window; spend rounds down"`
	RaisedUSD   string  `json:"raised_usd,omitempty"`
	WindowStart string  `json:"window_start,omitempty"`
	UseOf       string  `json:"use_of,omitempty" doc:"of per: the subject whose use stands here, after a raise or a reset"`
	ResetsAt    string  `json:"resets_at,omitempty"`
	Source      string  `json:"source" doc:"api or file"`
	Origin      string  `json:"origin,omitempty" doc:"file:line"`
	Version     int64   `json:"version"`
	CreatedAt   string  `json:"created_at"`
	UpdatedAt   string  `json:"updated_at"`
	Replayed    bool    `json:"replayed,omitempty" doc:"this Idempotency-Key came before"`
}

// RateLimitFields are what can be said of a rate rule (SPEC RAT-7).
type RateLimitFields struct {
	Name          Option[string] `json:"name,omitzero" doc:"1 to 100 characters, one of its kind in the workspace"`
	SubjectKind   Option[string] `json:"subject_kind,omitzero" enum:"user,api_key,project,team,org,tag"`
	SubjectID     Option[string] `json:"subject_id,omitzero" doc:"left out for org, required for tag, else optional: without it each one separately; a key by name or id"`
	Model         Option[string] `json:"model,omitzero" doc:"counts what is sent to this model only"`
	Metric        Option[string] `json:"metric,omitzero" enum:"requests,tokens"`
	WindowSeconds Option[int64]  `json:"window_seconds,omitzero" doc:"1 to 86400"`
	Limit         Option[int64]  `json:"limit,omitzero" doc:"1 to 1000000000000"`
	Enabled       Option[bool]   `json:"enabled,omitzero" doc:"true when left out"`
	Estimate      Option[string] `json:"estimate,omitzero" enum:"full,input" doc:"input: tokens are asked for by the input estimate alone"`
	CountCached   Option[bool]   `json:"count_cached,omitzero" doc:"false leaves cache reads out of a rule on tokens"`

	raw []byte
}

// RateLimitListRequest asks for the workspace's rate rules by name.
type RateLimitListRequest struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// RateLimitListAnswer is one page; an empty NextCursor ends the list.
type RateLimitListAnswer struct {
	RateLimits []RateLimitAnswer `json:"rate_limits"`
	NextCursor string            `json:"next_cursor,omitempty"`
}

// RateLimitCreateRequest makes a rate rule.
type RateLimitCreateRequest struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 printable characters, kept for good"`
	Body           RateLimitFields
}

// RateLimitUpdateRequest changes what its body gives.
type RateLimitUpdateRequest struct {
	ID   string `path:"id" doc:"id or name"`
	Body RateLimitFields
}

// RateLimitRequest names one rate rule.
type RateLimitRequest struct {
	ID string `path:"id" doc:"id or name"`
}

// RateLimitAnswer is one rate rule with its live use.
type RateLimitAnswer struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	SubjectKind   string `json:"subject_kind"`
	SubjectID     string `json:"subject_id,omitempty"`
	SubjectName   string `json:"subject_name,omitempty" doc:"of a key"`
	Per           string `json:"per,omitempty" doc:"subject: each subject has a counter of its own, and no use stands here"`
	Model         string `json:"model,omitempty"`
	Metric        string `json:"metric"`
	WindowSeconds int64  `json:"window_seconds"`
	Limit         int64  `json:"limit"`
	Enabled       bool   `json:"enabled"`
	Estimate      string `json:"estimate,omitempty" doc:"input: tokens are asked for by the input estimate alone"`
	CountCached   bool   `json:"count_cached" doc:"false: cache reads are left out"`
	Note          string `json:"note,omitempty" doc:"what a tag rule does not do"`
	Used          *int64 `json:"used,omitempty" doc:"in the window that ends now"`
	Remaining     *int64 `json:"remaining,omitempty"`
	ResetsAt      string `json:"resets_at,omitempty" doc:"when the use is next less"`
	Source        string `json:"source" doc:"api or file"`
	Origin        string `json:"origin,omitempty" doc:"file:line"`
	Version       int64  `json:"version"`
	CreatedAt     string `json:"created_at"`
	UpdatedAt     string `json:"updated_at"`
	Replayed      bool   `json:"replayed,omitempty" doc:"this Idempotency-Key came before"`
}

// RaiseFields say what a budget is raised by for its current window (SPEC
// BUD-9).
type RaiseFields struct {
	Amount    Option[int64]  `json:"amount,omitzero" doc:"tokens; for spend whole micro-dollars"`
	AmountUSD Option[string] `json:"amount_usd,omitzero" doc:"in place of amount, for spend: dollars, a decimal string"`
	Subject   Option[string] `json:"subject,omitzero" doc:"whose: required of a budget that each subject has for itself"`
	Reason    string         `json:"reason" doc:"why; 1 to 500 bytes, kept with the entry"`

	raw []byte
}

// ResetFields say why what was used is set to zero.
type ResetFields struct {
	Subject Option[string] `json:"subject,omitzero" doc:"whose: required of a limit that each subject has for itself"`
	Reason  string         `json:"reason" doc:"why; 1 to 500 bytes, kept with the entry"`

	raw []byte
}

// BudgetRaiseRequest raises a budget for its current window. Sending it again
// with the same IdempotencyKey raises it no further.
type BudgetRaiseRequest struct {
	ID             string `path:"id" doc:"id, or a name that no other budget has"`
	IdempotencyKey string `header:"Idempotency-Key"`
	Body           RaiseFields
}

// BudgetResetRequest sets what a budget's window has used to zero.
type BudgetResetRequest struct {
	ID             string `path:"id" doc:"id, or a name that no other budget has"`
	IdempotencyKey string `header:"Idempotency-Key"`
	Body           ResetFields
}

// RateLimitResetRequest empties a rate rule's window.
type RateLimitResetRequest struct {
	ID             string `path:"id" doc:"id or name"`
	IdempotencyKey string `header:"Idempotency-Key"`
	Body           ResetFields
}

// KeyResetRequest sets to zero what the open windows of a key's caps, its own
// budgets and its plan's have used.
type KeyResetRequest struct {
	Key            string `path:"key" doc:"id or name"`
	IdempotencyKey string `header:"Idempotency-Key"`
	Body           KeyResetFields
}

// KeyResetFields say why.
type KeyResetFields struct {
	Reason string `json:"reason" doc:"why; 1 to 500 bytes, kept with the entry"`

	raw []byte
}
