// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Option is a field that may be left out, null, or a value: a change keeps what
// is left out and clears what is null. Its JSON tag needs omitzero.
type Option[T any] struct {
	given, null bool
	value       T
}

// Some is a value.
func Some[T any](value T) Option[T] { return Option[T]{given: true, value: value} }

// Null is an explicit null.
func Null[T any]() Option[T] { return Option[T]{given: true, null: true} }

// IsZero reports whether the field is left out.
func (o Option[T]) IsZero() bool { return !o.given }

// MarshalJSON writes the value or null.
func (o Option[T]) MarshalJSON() ([]byte, error) {
	if !o.given || o.null {
		return []byte("null"), nil
	}
	text, err := json.Marshal(o.value)
	if err != nil {
		return nil, fmt.Errorf("write an optional field: %w", err)
	}
	return text, nil
}

// UnmarshalJSON reads a value or null.
func (o *Option[T]) UnmarshalJSON(text []byte) error {
	*o = Option[T]{given: true, null: string(text) == "null"}
	if o.null {
		return nil
	}
	if err := json.Unmarshal(text, &o.value); err != nil {
		return fmt.Errorf("read an optional field: %w", err)
	}
	return nil
}

// Schema is that of the value, or null.
func (o Option[T]) Schema(r huma.Registry) *huma.Schema {
	value := r.Schema(reflect.TypeFor[T](), true, "")
	if value.Ref != "" {
		return &huma.Schema{OneOf: []*huma.Schema{value, {Type: "null"}}}
	}
	value.Nullable = true
	return value
}
