// SPDX-License-Identifier: Apache-2.0

package price

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/money"
)

// priceUnit is written into every row, so that no reader takes a price per million
// for a price per token; what begins with per_ is dollars for one.
const priceUnit = "usd_per_million_tokens"

// A row's objects nest as deep as above and one threshold; the prices of a service
// tier stand two deeper.
const (
	maxRowDepth     = 3
	maxServiceDepth = 5
)

// AppendJSON appends the row to dst as one JSON object, always the same for
// the same row. Prices are decimal strings; tiers and factors are objects, as
// in the file: {"input":"2","above":{"200000":{"input":"4"}},"factor":{"flex":"1/2"},
// "service_tier":{"priority":{"input":"3"}}}.
func (r *Row) AppendJSON(dst []byte) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	w := &writer{encoder: jsontext.NewEncoder(buffer)}
	w.token(jsontext.BeginObject)
	w.text("id", r.ID)
	w.text("model", r.Model)
	w.text("source", r.Source)
	if r.Date != "" {
		w.text("date", r.Date)
	}
	if r.List != "" {
		w.text("list", r.List)
	}
	if r.StaleSince != "" {
		w.text("stale_since", r.StaleSince)
	}
	if r.ValidFromMicros != 0 {
		w.name("valid_from_micros")
		w.token(jsontext.Int(r.ValidFromMicros))
	}
	w.text("unit", priceUnit)
	if r.needsConfirm() {
		w.name(keyConfirm)
		w.token(jsontext.Bool(true))
	}
	for _, p := range r.prices() {
		w.price(p)
	}
	w.enter(nil)
	w.token(jsontext.EndObject)
	if w.err != nil {
		return nil, fmt.Errorf("encoding the price of %q: %w", r.Model, w.err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// MarshalJSON is AppendJSON for encoding/json.
func (r *Row) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

func (r *Row) needsConfirm() bool {
	dear := false
	for _, price := range r.unitPrices() {
		dear = dear || price != nil && *price > money.Nanos(money.MaxPrice)
	}
	for _, price := range r.PerToolCall {
		dear = dear || price > money.Nanos(money.MaxPrice)
	}
	r.allRates(func(s rates) {
		for _, rate := range s {
			dear = dear || rate != nil && *rate > money.MaxPrice
		}
	})
	return dear
}

// writer writes dotted keys as nested objects; the first error stays.
type writer struct {
	encoder *jsontext.Encoder
	open    []string
	err     error
}

func (w *writer) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.encoder.WriteToken(t)
	}
}

func (w *writer) name(s string) { w.token(jsontext.String(s)) }

func (w *writer) text(name, value string) {
	w.name(name)
	w.token(jsontext.String(value))
}

func (w *writer) price(p pair) {
	path := strings.Split(p.key, ".")
	last := len(path) - 1
	w.enter(path[:last])
	w.name(path[last])
	if p.key == keyFree {
		w.token(jsontext.Bool(true))
		return
	}
	w.token(jsontext.String(p.value))
}

// enter closes and opens objects until those of path, and no others, are open.
func (w *writer) enter(path []string) {
	same := 0
	for same < min(len(path), len(w.open)) && path[same] == w.open[same] {
		same++
	}
	for range w.open[same:] {
		w.token(jsontext.EndObject)
	}
	for _, name := range path[same:] {
		w.name(name)
		w.token(jsontext.BeginObject)
	}
	w.open = append(w.open[:same:same], path[same:]...)
}

// DecodeRow reads what AppendJSON writes, strictly: unknown, repeated and
// mistyped members, a foreign unit, prices that aren't decimal strings, and an
// id that isn't the hash of the rest are errors. null is "not set". The id may
// be left out; source is "override" unless it is given.
func DecodeRow(data []byte) (*Row, error) {
	r := &reader{builder: newBuilder(&Row{Source: SourceOverride})}
	r.decoder = jsontext.NewDecoder(bytes.NewReader(data))
	if r.decoder.PeekKind() != jsontext.KindBeginObject {
		return nil, errors.New("decoding a price: not a JSON object")
	}
	if err := r.object(""); err != nil {
		return nil, fmt.Errorf("decoding a price: %w", err)
	}
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decoding a price: more than one JSON value")
	}
	row, err := r.builder.finish()
	if err != nil {
		return nil, fmt.Errorf("decoding a price: %w", err)
	}
	if r.id != "" && r.id != row.ID {
		return nil, fmt.Errorf("decoding a price: id %.40q does not belong to these prices (%s)", r.id, row.ID)
	}
	return row, nil
}

// UnmarshalJSON is DecodeRow for encoding/json.
func (r *Row) UnmarshalJSON(data []byte) error {
	row, err := DecodeRow(data)
	if err != nil {
		return err
	}
	*r = *row
	return nil
}

// reader turns nested objects back into dotted keys.
type reader struct {
	decoder *jsontext.Decoder
	builder *builder
	id      string
	depth   int
}

func (r *reader) object(prefix string) error {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxRowDepth && !strings.HasPrefix(prefix, keyServiceTier+".") || r.depth > maxServiceDepth {
		return &FieldError{strings.TrimSuffix(prefix, "."), errors.New("is nested too deeply")}
	}
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	for r.decoder.PeekKind() != jsontext.KindEndObject {
		name, err := r.decoder.ReadToken()
		if err != nil {
			return err
		}
		member := name.String()
		if strings.Contains(member, ".") {
			return &FieldError{prefix + member, errors.New("has a dot in its name")}
		}
		if err := r.member(prefix + member); err != nil {
			return err
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

func (r *reader) member(key string) error {
	kind := r.decoder.PeekKind()
	if kind == jsontext.KindBeginObject {
		return r.object(key + ".")
	}
	token, err := r.decoder.ReadToken()
	if err != nil {
		return err
	}
	value := token.String()
	want := jsontext.KindString
	switch key {
	case "valid_from_micros":
		want = jsontext.KindNumber
	case keyFree, keyConfirm:
		want = jsontext.KindTrue
		if kind == jsontext.KindFalse {
			kind = jsontext.KindTrue
		}
	}
	switch {
	case kind == jsontext.KindNull:
		return nil
	case kind != want:
		return &FieldError{key, fmt.Errorf("is a JSON %s; prices are decimal strings", kind)}
	}
	return r.value(key, value)
}

func (r *reader) value(key, value string) error {
	row := r.builder.row
	switch key {
	case "id":
		r.id = value
	case "model":
		row.Model = value
	case "source":
		row.Source = value
	case "date":
		row.Date = value
	case "list":
		row.List = value
	case "stale_since":
		row.StaleSince = value
	case "unit":
		if value != priceUnit {
			return &FieldError{key, fmt.Errorf("%.40q is not %q", value, priceUnit)}
		}
	case "valid_from_micros":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return &FieldError{key, errors.New("is no whole number of microseconds")}
		}
		row.ValidFromMicros = n
	default:
		return r.builder.set(key, value)
	}
	return nil
}
