// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/weirhq/weir/internal/document"
)

// Bodies keep the text that they were received as: it is read by the strict
// reader of the package that owns the object, so that an unknown, repeated or
// mistyped member is told by its name. The typed fields are for callers in Go;
// what does not fit them is left for that reader to refuse.

// UnmarshalJSON is for encoding/json.
func (f *KeyFields) UnmarshalJSON(text []byte) error {
	type plain KeyFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *RotateFields) UnmarshalJSON(text []byte) error {
	type plain RotateFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *WorkspaceFields) UnmarshalJSON(text []byte) error {
	type plain WorkspaceFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *FundFields) UnmarshalJSON(text []byte) error {
	type plain FundFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *CostFields) UnmarshalJSON(text []byte) error {
	type plain CostFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *BackupFields) UnmarshalJSON(text []byte) error {
	type plain BackupFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *BudgetFields) UnmarshalJSON(text []byte) error {
	type plain BudgetFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *RateLimitFields) UnmarshalJSON(text []byte) error {
	type plain RateLimitFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *PlanFields) UnmarshalJSON(text []byte) error {
	type plain PlanFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *RaiseFields) UnmarshalJSON(text []byte) error {
	type plain RaiseFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *ResetFields) UnmarshalJSON(text []byte) error {
	type plain ResetFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *KeyResetFields) UnmarshalJSON(text []byte) error {
	type plain KeyResetFields
	return receive(text, (*plain)(f), &f.raw)
}

// UnmarshalJSON is for encoding/json.
func (f *AdjustFields) UnmarshalJSON(text []byte) error {
	type plain AdjustFields
	return receive(text, (*plain)(f), &f.raw)
}

func receive(text []byte, fields any, raw *[]byte) error {
	_ = json.Unmarshal(text, fields) // the strict reader tells what is wrong
	*raw = bytes.Clone(text)
	return nil
}

// node is a body as a document: as received, else as its fields say.
func node(raw []byte, fields any) (*document.Node, error) {
	if raw == nil {
		text, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("write a request: %w", err)
		}
		raw = text
	}
	n, err := document.ParseJSON(raw)
	if err != nil {
		return nil, invalid(err)
	}
	return n, nil
}
