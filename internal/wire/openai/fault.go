// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"

	"github.com/weirhq/weir/internal/fault"
)

// errorBody is OpenAI's error, with details beside its four members (ERR-1).
type errorBody struct {
	Error struct {
		Message string         `json:"message"`
		Type    string         `json:"type"`
		Param   *string        `json:"param"`
		Code    fault.Code     `json:"code"`
		Details *fault.Details `json:"details,omitempty"`
	} `json:"error"`
}

// Fault gives f the protocol's shape. requestID is ours and ends the message,
// where every client shows it (ERR-1).
func (Chat) Fault(f *fault.Fault, requestID string) (status int, contentType string, body []byte) {
	return f.HTTPStatus(), "application/json", encodeFault(f, requestID)
}

// Fault is f as the event that ends a stream which has started (ERR-6).
// No [DONE] may follow it.
func (s *Stream) Fault(f *fault.Fault, requestID string) []byte {
	return append(append([]byte("data: "), encodeFault(f, requestID)...), "\n\n"...)
}

func encodeFault(f *fault.Fault, requestID string) []byte {
	var b errorBody
	b.Error.Message = f.Message
	if requestID != "" {
		b.Error.Message += " (request " + requestID + ")"
	}
	b.Error.Type = fault.TypeFor(f.HTTPStatus())
	b.Error.Code = f.Code
	b.Error.Details = f.Details
	if f.Param != "" {
		b.Error.Param = &f.Param
	}
	text, err := json.Marshal(b)
	if err != nil { // strings and a bool always marshal
		return []byte(`{"error":{"message":"internal error","type":"api_error","param":null,"code":"internal_error"}}`)
	}
	return text
}
