// SPDX-License-Identifier: Apache-2.0

package price

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// KindImport names the kind of object that holds one provider's imported rows.
const KindImport = "price_import"

// MaxImportModels bounds the models of one provider.
const MaxImportModels = 20_000

// Import is the imported rows of one provider, by the model's name in lower case.
type Import struct {
	// Provider is the catalogue's name of the provider where it has one, else the
	// list's.
	Provider string
	Models   map[string]Schedule
}

// importForm is the object's JSON form.
type importForm struct {
	Provider string           `json:"provider"`
	Rows     []jsontext.Value `json:"rows"`
}

// Rows are all rows, by model and start.
func (i *Import) Rows() []*Row {
	var list []*Row
	for _, name := range slices.Sorted(maps.Keys(i.Models)) {
		list = append(list, i.Models[name]...)
	}
	return list
}

// Encode writes the JSON form, the same for equal imports.
func (i *Import) Encode() ([]byte, error) {
	var out bytes.Buffer
	name, err := json.Marshal(i.Provider)
	if err != nil {
		return nil, fmt.Errorf("encode imported prices: %w", err)
	}
	fmt.Fprintf(&out, `{"provider":%s,"rows":[`, name)
	for n, row := range i.Rows() {
		if n > 0 {
			out.WriteByte(',')
		}
		text, err := row.AppendJSON(nil)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	out.WriteString("]}")
	return out.Bytes(), nil
}

// DecodeImport reads what Encode wrote, strictly.
func DecodeImport(body []byte) (*Import, error) {
	var form importForm
	if err := json.Unmarshal(body, &form, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("decode imported prices: %w", err)
	}
	rows := make([]*Row, 0, len(form.Rows))
	for _, text := range form.Rows {
		row, err := DecodeRow(text)
		if err != nil {
			return nil, fmt.Errorf("decode imported prices of %s: %w", form.Provider, err)
		}
		rows = append(rows, row)
	}
	return NewImport(form.Provider, rows)
}

// NewImport puts rows in their places. Two of one model that hold at the same
// time are an error.
func NewImport(provider string, rows []*Row) (*Import, error) {
	i := &Import{Provider: provider, Models: make(map[string]Schedule)}
	byModel := make(map[string][]*Row)
	for _, row := range rows {
		if row.Source != SourceImported {
			return nil, errors.New("decode imported prices: a row of another source")
		}
		name := strings.ToLower(row.Model)
		byModel[name] = append(byModel[name], row)
	}
	for name, rows := range byModel {
		s, err := NewSchedule(rows)
		if err != nil {
			return nil, fmt.Errorf("imported price of %s %s: %w", provider, name, err)
		}
		i.Models[name] = s
	}
	if len(i.Models) > MaxImportModels {
		return nil, fmt.Errorf("imported prices of %s: more than %d models", provider, MaxImportModels)
	}
	return i, nil
}
