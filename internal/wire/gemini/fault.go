// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/weirhq/weir/internal/fault"
)

// errorBody is Google's error (ERR-1): our code is the first detail's reason, its
// figures are that detail's metadata, and a time to wait is a second detail as
// Google's clients read it.
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
	text, err := json.Marshal(b)
	if err != nil { // strings and numbers always marshal
		return []byte(`{"error":{"code":500,"message":"internal error","status":"INTERNAL","details":[]}}`)
	}
	return text
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
