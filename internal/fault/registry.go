// SPDX-License-Identifier: Apache-2.0

package fault

// The refusals of the checks, in their order (SPEC 2).
const (
	InvalidAPIKey                Code = "invalid_api_key"
	APIKeyInactive               Code = "apikey_inactive"
	InsufficientBalance          Code = "insufficient_balance"
	ModelNotFound                Code = "model_not_found"
	ModelNotAllowed              Code = "model_not_allowed"
	ModelUnpriced                Code = "model_unpriced"
	MaxOutputTokensExceeded      Code = "max_output_tokens_exceeded"
	DayLimitReached              Code = "day_limit_reached"
	SevenDayLimitReached         Code = "seven_day_limit_reached"
	ThirtyDayLimitReached        Code = "thirty_day_limit_reached"
	BudgetExceeded               Code = "budget_exceeded"
	APIKeyRPMExceeded            Code = "api_key_rpm_exceeded"
	APIKeyTPMExceeded            Code = "api_key_tpm_exceeded"
	APIKeyConcurrencyExceeded    Code = "api_key_concurrency_exceeded"
	WorkspaceRPMExceeded         Code = "workspace_rpm_exceeded"
	WorkspaceTPMExceeded         Code = "workspace_tpm_exceeded"
	WorkspaceConcurrencyExceeded Code = "workspace_concurrency_exceeded"
	RateLimited                  Code = "rate_limited"
)

// What is wrong with the request itself (SPEC KEY-7, ERR-5).
const (
	InvalidRequest   Code = "invalid_request"
	RequestTooLarge  Code = "request_too_large"
	NotFound         Code = "not_found"
	MethodNotAllowed Code = "method_not_allowed"
	UserRequired     Code = "user_required"
	UserLimitReached Code = "user_limit_reached"
)

// Failures, not refusals (SPEC DIS-9, RES-8).
const (
	ServiceUnavailable  Code = "service_unavailable"
	NoCandidate         Code = "no_candidate"
	UpstreamUnreachable Code = "upstream_unreachable"
	UpstreamInvalid     Code = "upstream_invalid"
	UpstreamTimeout     Code = "upstream_timeout"
	InternalError       Code = "internal_error"
)

// The admin API's own (SPEC ADM-1 to ADM-5, RAT-7).
const (
	Unauthorized         Code = "invalid_admin_token"
	Forbidden            Code = "forbidden"
	Conflict             Code = "conflict"
	DeclaredInFile       Code = "declared_in_file"
	IdempotencyKeyReused Code = "idempotency_key_reused"
	TooManyRules         Code = "too_many_rules"
	Gone                 Code = "gone"
)

// section groups codes in the registry and in its page.
type section struct {
	title, intro string
	infos        []Info
}

// sections is a constant table: the registry.
var sections = []section{checks, requests, failures, administration}

var checks = section{
	title: "Refusals by the checks",
	intro: "In the order in which the checks run; the first that fails is the answer. A refused request consumes nothing.",
	infos: []Info{
		{Code: InvalidAPIKey, Status: 401, Help: "No key was sent, two different ones were, or the key is unknown, deleted or rotated away. Send a valid key."},
		{Code: APIKeyInactive, Status: 403, Help: "The key is disabled or has expired. Have it enabled or renewed, or use another."},
		{Code: InsufficientBalance, Status: 402, Help: "The workspace's prepaid funds are spent. Top it up; the key stays valid."},
		{Code: ModelNotFound, Status: 404, Help: "No model, alias or route has this name. `GET /v1/models` lists what the key may call."},
		{Code: ModelNotAllowed, Status: 400, Help: "The key's allowed models do not include this one. `GET /v1/models` lists what the key may call."},
		{Code: ModelUnpriced, Status: 400, Help: "The model has no price, and a spend limit or prepaid funds apply. Give it a price, or `price: free`."},
		{Code: MaxOutputTokensExceeded, Status: 400, Help: "The request asks for more output tokens than the key allows. Ask for fewer."},
		{Code: DayLimitReached, Status: 402, Help: "The key's spend has reached its cap for the day. Wait for the reset, or have the cap raised."},
		{Code: SevenDayLimitReached, Status: 402, Help: "The key's spend has reached its cap for seven days. Wait for the reset, or have the cap raised."},
		{Code: ThirtyDayLimitReached, Status: 402, Help: "The key's spend has reached its cap for thirty days. Wait for the reset, or have the cap raised."},
		{Code: BudgetExceeded, Status: 429, Help: "A budget is spent, or what is left does not cover this request's worst case. Wait for the reset, have the budget raised, or ask for fewer output tokens; a workspace may answer 402 instead."},
		{Code: APIKeyRPMExceeded, Status: 429, Retryable: true, Help: "The key's requests per minute are used up. Retry after `Retry-After`."},
		{Code: APIKeyTPMExceeded, Status: 429, Retryable: true, Help: "The key's tokens per minute are used up. Retry after `Retry-After`."},
		{Code: APIKeyConcurrencyExceeded, Status: 429, Retryable: true, Help: "The key has as many requests in flight as it may. Retry when one has ended."},
		{Code: WorkspaceRPMExceeded, Status: 429, Retryable: true, Help: "The workspace's requests per minute are used up, whatever the key has left. Retry after `Retry-After`."},
		{Code: WorkspaceTPMExceeded, Status: 429, Retryable: true, Help: "The workspace's tokens per minute are used up, whatever the key has left. Retry after `Retry-After`."},
		{Code: WorkspaceConcurrencyExceeded, Status: 429, Retryable: true, Help: "The workspace has as many requests in flight as it may. Retry when one has ended."},
		{Code: RateLimited, Status: 429, Retryable: true, Help: "A rate rule has no room for this request. Retry after `Retry-After`."},
	},
}

var requests = section{
	title: "Faulty requests",
	intro: "Nothing is charged and nothing is sent to a provider.",
	infos: []Info{
		{Code: InvalidRequest, Status: 400, Help: "The request is malformed, or a value in it is not acceptable; `param` names it where one is to blame. Correct the request."},
		{Code: RequestTooLarge, Status: 413, Help: "The body is larger than this server accepts. Send less."},
		{Code: NotFound, Status: 404, Help: "There is nothing at this path, or no such object in this workspace."},
		{Code: MethodNotAllowed, Status: 405, Help: "The path exists, but not with this method. The `Allow` header lists those that it has."},
		{Code: UserRequired, Status: 400, Help: "The key requires the end user's name in each request. Send `X-Weir-User`."},
		{Code: UserLimitReached, Status: 400, Help: "The workspace has as many users as it may have. Have `max_users` raised, or name a known user."},
	},
}

var failures = section{
	title: "Failures",
	intro: "The request was not at fault. A provider's own errors are none of these: they pass through unchanged, marked `X-Weir-Error-Source: provider`.",
	infos: []Info{
		{Code: ServiceUnavailable, Status: 503, Retryable: true, Help: "The limits cannot be checked now (the store is down, or the server is stopping), and nothing was sent. Retry after `Retry-After`."},
		{Code: NoCandidate, Status: 503, Retryable: true, Help: "No provider of this model can be tried now. Retry after `Retry-After`."},
		{Code: UpstreamUnreachable, Status: 502, Retryable: true, Help: "The provider could not be connected to. Retry; check the provider's address if it lasts."},
		{Code: UpstreamInvalid, Status: 502, Retryable: true, Help: "The provider answered what is not its protocol. Retry; check the provider's address and protocol if it lasts."},
		{Code: UpstreamTimeout, Status: 504, Retryable: true, Help: "The provider did not answer, or stopped answering, within its time-outs. Retry, or have the time-outs raised."},
		{Code: InternalError, Status: 500, Retryable: true, Help: "The server failed in a way that it should not. Retry, and report it with the request id."},
	},
}

var administration = section{
	title: "Administration",
	intro: "Of `/api/v1` alone, beside those above. An API key opens nothing there.",
	infos: []Info{
		{Code: Unauthorized, Status: 401, Help: "No admin token was sent, or it is unknown. An API key is no admin token."},
		{Code: Forbidden, Status: 403, Help: "The token's role does not permit this. Use a token of a role that does."},
		{Code: Conflict, Status: 409, Help: "The name is taken, or the object has changed since it was read. Read it again, then decide."},
		{Code: DeclaredInFile, Status: 409, Help: "The object is declared in the configuration file, and read-only here. Change it at the file and line that the message names."},
		{Code: IdempotencyKeyReused, Status: 409, Help: "This `Idempotency-Key` came before with another request. Use a new one for each change."},
		{Code: TooManyRules, Status: 400, Help: "The workspace has as many rate rules as it may have. Delete one first."},
		{Code: Gone, Status: 410, Help: "This route is retired. Use the successor that the message names."},
	},
}
