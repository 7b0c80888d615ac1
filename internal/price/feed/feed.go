// SPDX-License-Identifier: Apache-2.0

// Package feed reads price lists that others publish into rows of package price:
// LiteLLM's, models.dev's and genai-prices' (SPEC PRC-2).
//
// It takes what is exact and leaves out what is not: a price that a row can't
// hold to the nano-dollar, or that looks like a slip, is told by its model and
// never read as zero. It fetches nothing and knows no store.
package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/price"
)

// The lists.
const (
	LiteLLM     = "litellm"
	ModelsDev   = "models.dev"
	GenaiPrices = "genai-prices"
)

// Formats are the lists that can be read.
func Formats() []string { return []string{LiteLLM, ModelsDev, GenaiPrices} }

// MaxBytes bounds a list's file.
const MaxBytes = 32 << 20

// Options say how a list is read.
type Options struct {
	// Format is one of Formats; empty: it is told by the list's shape.
	Format string
	// Date is the day of the list, as 2006-01-02.
	Date string
	// Confirm takes prices above 10,000 dollars.
	Confirm bool
}

// Note is something about one model of a list.
type Note struct{ Provider, Model, Field, Text string }

// List is what was read.
type List struct {
	Format string
	// Rows are the rows by provider, each sealed, in the order of their names.
	Rows map[string][]*price.Row
	// Skipped are models that were not taken, and why; Notes what of those that
	// were taken is otherwise than the list has it.
	Skipped, Notes []Note
	// Unpriced counts models without any price that a row can hold.
	Unpriced int
}

// Count is how many rows there are.
func (l *List) Count() int {
	n := 0
	for _, rows := range l.Rows {
		n += len(rows)
	}
	return n
}

// Read reads a list.
func Read(text []byte, o Options) (*List, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the list is larger than %d bytes", MaxBytes)
	}
	n, err := document.ParseJSON(text)
	if err != nil {
		return nil, err
	}
	return FromDocument(n, o)
}

// FromDocument reads a list that was parsed.
func FromDocument(n *document.Node, o Options) (*List, error) {
	format := detect(n)
	if o.Format == "" && format == "" {
		return nil, fmt.Errorf("this is none of the lists that can be read: %s", strings.Join(Formats(), ", "))
	}
	if o.Format != "" && !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("format %.40q is none of %s", o.Format, strings.Join(Formats(), ", "))
	}
	if o.Format != "" && format != "" && format != o.Format {
		return nil, fmt.Errorf("this is a list of %s and not of %s", format, o.Format)
	}
	if o.Format != "" {
		format = o.Format
	}
	r := &reader{Options: o, list: &List{Format: format}, rows: make(map[place]placed)}
	switch format {
	case LiteLLM:
		r.liteLLM(n)
	case ModelsDev:
		r.modelsDev(n)
	case GenaiPrices:
		r.genaiPrices(n)
	}
	r.sort()
	if r.list.Count() == 0 && len(r.list.Skipped) == 0 {
		return nil, errors.New("there is no price in this list")
	}
	return r.list, nil
}

// detect tells a list by its shape; "" for none of them.
func detect(n *document.Node) string {
	if n.Kind == document.Object && n.Member("providers") != nil {
		n = n.Member("providers")
	}
	if n.Kind == document.Array {
		if len(n.Items) > 0 && n.Items[0].Member("models") != nil {
			return GenaiPrices
		}
		return ""
	}
	for _, m := range n.Members {
		switch v := m.Value; {
		case v.Kind != document.Object:
		case v.Member("models") != nil && v.Member("models").Kind == document.Object:
			return ModelsDev
		case v.Member("litellm_provider") != nil:
			return LiteLLM
		}
	}
	return ""
}

// place is where a row stands: two of one place are one too many.
type place struct {
	provider, model string
	from            int64
}

// placed is a row, and whether its provider is a second one there.
type placed struct {
	*price.Row
	second bool
}

type reader struct {
	Options
	list *List
	rows map[place]placed
}

// keep makes a row of a model, or tells why not.
func (r *reader) keep(m *model) {
	home := homeOf(m.provider)
	provider := home.name
	if m.wrong != nil {
		m.wrong.Provider, m.wrong.Model = provider, m.name
		r.list.Skipped = append(r.list.Skipped, *m.wrong)
		return
	}
	if len(m.fields) == 0 {
		r.list.Unpriced++
		return
	}
	if provider == "" {
		r.list.Skipped = append(r.list.Skipped, Note{"", m.name, "", "names no provider"})
		return
	}
	row, err := r.row(m)
	if err != nil {
		skipped := Note{Provider: provider, Model: m.name, Text: err.Error()}
		var field *price.FieldError
		if errors.As(err, &field) {
			skipped.Field, skipped.Text = field.Field, field.Err.Error()
		}
		r.list.Skipped = append(r.list.Skipped, skipped)
		return
	}
	if allZero(m.fields) {
		r.list.Skipped = append(r.list.Skipped, Note{provider, m.name, "", "every price is 0, which lists write for unknown, too: if it is free, declare price: free"})
		return
	}
	for _, note := range m.notes {
		r.list.Notes = append(r.list.Notes, Note{provider, m.name, note.Field, note.Text})
	}
	r.put(place{provider, strings.ToLower(m.name), row.ValidFromMicros}, placed{row, home.second})
}

func (r *reader) row(m *model) (*price.Row, error) {
	if r.Confirm {
		m.fields["confirm"] = "true"
	}
	row, err := price.ParseSpec(m.name, price.Spec{Fields: m.fields})
	if err != nil {
		return nil, err
	}
	row.Source, row.List, row.Date = price.SourceImported, r.list.Format, r.Date
	return row.Seal(), nil
}

// put takes a row. Of two in one place the first provider's stays; of two such
// the dearer one, for a charge must not be too low.
func (r *reader) put(at place, row placed) {
	other, taken := r.rows[at]
	switch {
	case !taken || other.second && !row.second:
		r.rows[at] = row
	case row.second && !other.second, other.ID == row.ID:
	default:
		r.list.Notes = append(r.list.Notes, Note{at.provider, row.Model, "", "is listed twice at different prices: the dearer is taken"})
		if probe(row.Row) > probe(other.Row) {
			r.rows[at] = row
		}
	}
}

// probe is a measure of how dear a row is: what some requests cost by it.
func probe(row *price.Row) (sum int64) {
	for _, u := range []call.Usage{
		{Input: 1_000},
		{Output: 1_000},
		{CachedInput: 1_000},
		{CacheWrite1h: 1_000},
		{Input: 1_000_000, Output: 1_000},
		{Units: call.Units{AudioInputMicros: 1_000_000}},
		{Units: call.Units{Images: 1}},
	} {
		if n, err := row.Charge(u); err == nil {
			sum += int64(n)
		}
	}
	return sum
}

func allZero(fields map[string]string) bool {
	for key, value := range fields {
		if value != "0" && key != "confirm" && key != "valid_from" {
			return false
		}
	}
	return true
}

func (r *reader) sort() {
	r.list.Rows = make(map[string][]*price.Row)
	for at, row := range r.rows {
		r.list.Rows[at.provider] = append(r.list.Rows[at.provider], row.Row)
	}
	for _, rows := range r.list.Rows {
		slices.SortFunc(rows, func(a, b *price.Row) int {
			if n := strings.Compare(a.Model, b.Model); n != 0 {
				return n
			}
			return int(a.ValidFromMicros/1_000_000 - b.ValidFromMicros/1_000_000)
		})
	}
}
