// SPDX-License-Identifier: Apache-2.0

// Package fault is the registry of every error code that clients see, and the
// error type that carries one. docs/errors.md is generated from the registry.
//
// It does not know the shapes of protocols: package wire writes a Fault as each
// protocol's error body.
package fault

import (
	"fmt"
	"net/http"
)

// Code names a reason for refusing or failing a request. Codes are part of the
// API: they are never renamed, and one that is no longer sent stays listed as
// retired.
type Code string

// Info is what is known of a code.
type Info struct {
	Code   Code
	Status int // the HTTP status, unless a Fault says otherwise
	// Retryable says that the same request may pass within a minute without
	// anybody changing anything. A Fault's Details may know better.
	Retryable bool
	Help      string // one line: what happened and what to do
	Retired   bool   // no longer sent
}

// All is the registry in its documented order: first the refusals in the order
// of the checks (SPEC ORD-1).
func All() []Info {
	var all []Info
	for _, s := range sections {
		all = append(all, s.infos...)
	}
	return all
}

// Lookup is what is known of a code; ok is false for one that is not registered.
func Lookup(code Code) (info Info, ok bool) {
	for _, s := range sections {
		for _, info := range s.infos {
			if info.Code == code {
				return info, true
			}
		}
	}
	return Info{}, false
}

// TypeFor is the `type` of an error body, by its HTTP status (SPEC ERR-1). Other
// statuses of the client's fault are invalid_request_error.
func TypeFor(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	if status >= 400 && status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// Fault is a refusal or a failure that a client sees. Any other error means
// "could not tell", and refuses too.
type Fault struct {
	Code    Code
	Status  int    // HTTP status; 0: the registry's
	Message string // for people: the limit, whose it is, amount, use, reset (SPEC ERR-1)
	Param   string // the offending member of the request, if one is to blame
	Details *Details
	// RetryAfterSeconds is the Retry-After header; 0: none (SPEC ERR-2).
	RetryAfterSeconds int
	// NoRetry sends x-should-retry: false (SPEC ERR-3).
	NoRetry bool
	// ResetSeconds is the X-Weir-Reset header; 0: none (SPEC ERR-2).
	ResetSeconds int64
}

// unavailableRetrySeconds is the Retry-After of every 503 of ours (SPEC ERR-2).
const unavailableRetrySeconds = 2

// New is a fault with the registry's answer about retrying: codes that are not
// retryable ask for no retry (SPEC ERR-3), those of status 503 for one in two
// seconds (SPEC ERR-2). Callers that know the very case better set the fields.
func New(code Code, format string, args ...any) *Fault {
	info, _ := Lookup(code)
	f := &Fault{Code: code, Message: fmt.Sprintf(format, args...), NoRetry: !info.Retryable}
	if info.Status == http.StatusServiceUnavailable {
		f.RetryAfterSeconds = unavailableRetrySeconds
	}
	return f
}

// Error is the code and the message.
func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

// HTTPStatus is the status to answer with; an unregistered code is 500.
func (f *Fault) HTTPStatus() int {
	if f.Status != 0 {
		return f.Status
	}
	if info, ok := Lookup(f.Code); ok {
		return info.Status
	}
	return http.StatusInternalServerError
}

// Details are a refusal's figures (SPEC ERR-1). All of them are text, so that
// none is ever rounded on its way: money is decimal US dollars, tokens and
// requests are whole numbers. What does not apply, or is hidden from callers, is
// empty.
type Details struct {
	LimitID   string `json:"limit_id,omitempty"`
	Scope     string `json:"scope,omitempty"`     // key, plan, user, project, team, org, workspace
	Subject   string `json:"subject,omitempty"`   // whose limit it is
	Metric    string `json:"metric,omitempty"`    // spend, tokens, requests, concurrency
	Window    string `json:"window,omitempty"`    // such as day, 7d, 1h
	Amount    string `json:"amount,omitempty"`    // what the limit allows
	Used      string `json:"used,omitempty"`      // settled
	Held      string `json:"held,omitempty"`      // by requests that still run
	Wanted    string `json:"wanted,omitempty"`    // by this request
	ResetsAt  string `json:"resets_at,omitempty"` // RFC 3339
	Reason    string `json:"reason,omitempty"`    // such as held, larger_than_limit
	Retryable bool   `json:"retryable"`
}
