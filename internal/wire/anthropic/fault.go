// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"

	"github.com/weirhq/weir/internal/fault"
)

// details are our figures and, where Anthropic's clients read it, the code again.
type details struct {
	*fault.Details
	ErrorCode fault.Code `json:"error_code"`
}

// errorBody is Anthropic's error with our code and details in it (ERR-1).
type errorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string     `json:"type"`
		Message string     `json:"message"`
		Code    fault.Code `json:"code"`
		Param   string     `json:"param,omitempty"`
		Details details    `json:"details"`
	} `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}

// Fault is wire.Door's.
func (Messages) Fault(f *fault.Fault, requestID string) (status int, contentType string, body []byte) {
	return f.HTTPStatus(), "application/json", encodeFault(f, requestID)
}

// Fault is f as the event that ends a stream which has started (ERR-6).
func (s *stream) Fault(f *fault.Fault, requestID string) []byte {
	return append(append([]byte("event: error\ndata: "), encodeFault(f, requestID)...), "\n\n"...)
}

func encodeFault(f *fault.Fault, requestID string) []byte {
	b := errorBody{Type: "error", RequestID: requestID}
	b.Error.Message = f.Message
	if requestID != "" {
		b.Error.Message += " (request " + requestID + ")"
	}
	b.Error.Type = fault.TypeFor(f.HTTPStatus())
	b.Error.Code, b.Error.Param, b.Error.Details = f.Code, f.Param, details{f.Details, f.Code}
	text, err := json.Marshal(b)
	if err != nil { // strings and a bool always marshal
		return []byte(`{"type":"error","error":{"type":"api_error","message":"internal error","code":"internal_error"}}`)
	}
	return text
}
