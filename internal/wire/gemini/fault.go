// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/weirhq/weir/internal/fault"
)

// errorBody is Google's error (ERR-1): our code is the first detail's reason, its
// figures are that detail's metadata, and a time to wait, or that a day's quota is
// gone, is a second detail as Google's clients read it.
type errorBody struct {
	Error struct {
		Code    int      `json:"code"`
		Message string   `json:"message"`
		Status  string   `json:"status"`
		Details []detail `json:"details"`
	} `json:"error"`
}

type detail struct {
	Type       string            `json:"@type"`
	Reason     string            `json:"reason,omitempty"`
	Domain     string            `json:"domain,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	RetryDelay string            `json:"retryDelay,omitempty"`
	Violations []violation       `json:"violations,omitempty"`
}

type violation struct {
	QuotaMetric string `json:"quotaMetric"`
	QuotaID     string `json:"quotaId"`
	Description string `json:"description"`
}

// Fault is wire.Door's.
func (Generate) Fault(f *fault.Fault, requestID string) (status int, contentType string, body []byte) {
	return f.HTTPStatus(), "application/json", encodeFault(f, requestID)
}

func encodeFault(f *fault.Fault, requestID string) []byte {
	var b errorBody
	b.Error.Code, b.Error.Status = f.HTTPStatus(), statusName(f.HTTPStatus())
	b.Error.Message = f.Message
	metadata := map[string]string{}
	if requestID != "" {
		b.Error.Message += " (request " + requestID + ")"
		metadata["request_id"] = requestID
	}
	if f.Param != "" {
		metadata["param"] = f.Param
	}
	addFigures(metadata, f.Details)
	b.Error.Details = []detail{{Type: "type.googleapis.com/google.rpc.ErrorInfo", Reason: string(f.Code), Domain: "weir", Metadata: metadata}}
	if f.RetryAfterSeconds > 0 {
		b.Error.Details = append(b.Error.Details, detail{
			Type: "type.googleapis.com/google.rpc.RetryInfo", RetryDelay: strconv.Itoa(f.RetryAfterSeconds) + "s",
		})
	}
	if v, ok := daysQuota(f); ok {
		b.Error.Details = append(b.Error.Details, detail{Type: "type.googleapis.com/google.rpc.QuotaFailure", Violations: []violation{v}})
	}
	text, err := json.Marshal(b)
	if err != nil { // strings and numbers always marshal
		return []byte(`{"error":{"code":500,"message":"internal error","status":"INTERNAL","details":[]}}`)
	}
	return text
}

// daysQuota says that a day's budget is spent as Google says it of its own daily
// quotas: Google's programs read no x-should-retry and repeat any other 429 for
// minutes (ERR-3). A RetryInfo would be slept out by some, for hours (ERR-2).
func daysQuota(f *fault.Fault) (violation, bool) {
	if f.Code != fault.BudgetExceeded || f.HTTPStatus() != http.StatusTooManyRequests || !f.NoRetry || f.Details == nil {
		return violation{}, false
	}
	switch f.Details.Window {
	case "day", "1d":
		return violation{QuotaMetric: f.Details.Metric, QuotaID: "BudgetPerDay", Description: f.Message}, true
	default:
		return violation{}, false
	}
}

// addFigures takes over what a refusal says of its limit, by the names that the
// other protocols' bodies have for it.
func addFigures(metadata map[string]string, d *fault.Details) {
	if d == nil {
		return
	}
	text, err := json.Marshal(d)
	if err != nil {
		return
	}
	var figures map[string]json.RawMessage
	if err := json.Unmarshal(text, &figures); err != nil {
		return
	}
	for name, value := range figures {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		metadata[name] = s
	}
}

// statusName is Google's name of an HTTP status (google.rpc.Code).
func statusName(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusPaymentRequired:
		return "FAILED_PRECONDITION"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound, http.StatusGone:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	}
	if status >= http.StatusInternalServerError {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}
