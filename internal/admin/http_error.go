// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirhq/weir/internal/fault"
)

// ErrorAnswer is the body of every answer that is no success.
type ErrorAnswer struct {
	Detail ErrorFields `json:"error"`

	fault *fault.Fault
}

// ErrorFields is a Fault as the API tells it (SPEC ERR-1).
type ErrorFields struct {
	Message   string         `json:"message"`
	Type      string         `json:"type"`
	Code      string         `json:"code"`
	Param     string         `json:"param,omitempty" doc:"the field or header to blame"`
	Details   *fault.Details `json:"details,omitempty"`
	RequestID string         `json:"request_id"`
}

// Error is the code and the message.
func (e *ErrorAnswer) Error() string { return e.Detail.Code + ": " + e.Detail.Message }

// GetStatus is the HTTP status.
func (e *ErrorAnswer) GetStatus() int { return e.fault.HTTPStatus() }

// GetHeaders are the headers beside the body.
func (e *ErrorAnswer) GetHeaders() http.Header {
	h := http.Header{}
	if e.fault.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(e.fault.RetryAfterSeconds))
	}
	if e.fault.Code == fault.Unauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return h
}

// refusal is an operation's error as an answer.
func refusal(ctx context.Context, err error) *ErrorAnswer {
	f, ok := answer(err).(*fault.Fault) //nolint:errorlint // answer returns nothing else
	if !ok {
		f = fault.New(fault.InternalError, "%v", err)
	}
	return &ErrorAnswer{fault: f, Detail: ErrorFields{
		Message: f.Message, Type: fault.TypeFor(f.HTTPStatus()), Code: string(f.Code), Param: f.Param, Details: f.Details,
		RequestID: callerOf(ctx).id,
	}}
}

func writeError(w http.ResponseWriter, e *ErrorAnswer) {
	for name, values := range e.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.GetStatus())
	_ = json.NewEncoder(w).Encode(e) // a client that has gone misses nothing
}

// plainError turns the framework's own errors (a missing or mistyped parameter,
// a body too large) into ours. It never repeats what was sent.
func plainError(ctx huma.Context, status string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	ctx.SetHeader("Content-Type", "application/json")
	f := fault.New(fault.InvalidRequest, "%s", model.Detail)
	switch status {
	case "413":
		f = fault.New(fault.RequestTooLarge, "the body has more than %d bytes", maxBodyBytes)
	case "500":
		f = fault.New(fault.InternalError, "%s", model.Detail)
	}
	var texts []string
	for _, e := range model.Errors {
		_, field, _ := strings.Cut(e.Location, ".")
		if f.Param == "" {
			f.Param = field
		}
		texts = append(texts, strings.TrimPrefix(field+": "+e.Message, ": "))
	}
	if len(texts) > 0 {
		f.Message = strings.Join(texts, "; ")
	}
	return refusal(ctx.Context(), f), nil
}

// framework is huma's context under a name that its own method does not take.
type framework = huma.Context

// badRequest answers 400 where the framework would answer 422.
type badRequest struct{ framework }

// SetStatus is huma.Context's.
func (c badRequest) SetStatus(status int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	c.framework.SetStatus(status)
}
