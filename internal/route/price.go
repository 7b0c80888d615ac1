// SPDX-License-Identifier: Apache-2.0

package route

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/price"
)

// readPrice reads "free", the prices that somebody declares, or a list of such
// objects, each with the instant that it holds from.
func (m *Model) readPrice(r *document.Reader) {
	n := r.Node("price")
	if n == nil {
		return
	}
	m.Prices, m.Free = nil, false
	switch n.Kind {
	case document.Null:
	case document.String:
		row, err := price.ParseSpec(m.Name, price.Spec{Word: n.Text})
		if err != nil {
			failPrice(r, "price", err)
		}
		m.Free = err == nil && row.Free
	case document.Array:
		m.readPrices(r, n)
	default:
		row, err := m.readRow(n)
		switch {
		case err != nil:
			failPrice(r, "price", err)
		case row.Free && row.ValidFromMicros == 0:
			m.Free = true
		default:
			m.Prices = price.Schedule{row}
		}
	}
}

func (m *Model) readPrices(r *document.Reader, n *document.Node) {
	rows := make([]*price.Row, 0, len(n.Items))
	for i, item := range n.Items {
		row, err := m.readRow(item)
		if err != nil {
			failPrice(r, "price["+strconv.Itoa(i)+"]", err)
			return
		}
		rows = append(rows, row)
	}
	var err error
	if m.Prices, err = price.NewSchedule(rows); err != nil {
		failPrice(r, "price", err)
	}
}

// readRow reads an object of prices, or a stored row, which has an id.
func (m *Model) readRow(n *document.Node) (*price.Row, error) {
	if n.Kind != document.Object {
		return nil, errors.New("must be free, an object of prices in dollars per million tokens, or a list of such objects")
	}
	if n.Member("id") != nil {
		return price.DecodeRow(n.JSON())
	}
	fields := map[string]string{}
	if err := flatten("", n, fields); err != nil {
		return nil, err
	}
	return price.ParseSpec(m.Name, price.Spec{Fields: fields})
}

// failPrice names the one price that is wrong, where one is.
func failPrice(r *document.Reader, path string, err error) {
	var field *price.FieldError
	if errors.As(err, &field) {
		path, err = document.Join(path, field.Field), field.Err
	}
	r.Add(document.Problems{{Path: path, Text: err.Error()}})
}

// flatten writes nested prices as the dotted keys that price.Spec has. A null
// is left out: it is "not set" (SPEC PRC-1).
func flatten(prefix string, n *document.Node, into map[string]string) error {
	for _, m := range n.Members {
		key := document.Join(prefix, m.Name)
		switch m.Value.Kind {
		case document.Null:
		case document.Object:
			if err := flatten(key, m.Value, into); err != nil {
				return err
			}
		case document.String, document.Number, document.Bool:
			if m.Value.Kind == document.Number && !wholeNumber(m.Value.Text) {
				return &price.FieldError{Field: key, Err: errors.New("must be a decimal string: write it in quotes")}
			}
			into[key] = m.Value.Text
		case document.Array:
			return &price.FieldError{Field: key, Err: errors.New("must be a decimal string such as \"0.15\"")}
		}
	}
	return nil
}

func wholeNumber(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// encodePrice writes what readPrice reads; nil for no price.
func encodePrice(m *Model) (json.RawMessage, error) {
	if m.Free {
		return json.RawMessage(`"` + price.WordFree + `"`), nil
	}
	rows := make([][]byte, 0, len(m.Prices))
	for _, row := range m.Prices {
		text, err := row.AppendJSON(nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, text)
	}
	switch len(rows) {
	case 0:
		return nil, nil
	case 1:
		return rows[0], nil
	default:
		return append(append([]byte("["), bytes.Join(rows, []byte(","))...), ']'), nil
	}
}
