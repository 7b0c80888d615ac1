// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

// perMillion is the power of ten from a price of one token to that of a million.
const perMillion = 6

// model is one model of a list on its way to a row: its prices by the keys of a
// price spec, as exact decimals.
type model struct {
	provider, name string
	fields         map[string]string
	// notes tell what the row has otherwise than the list; Field and Text alone.
	notes []Note
	// wrong is the first thing for which the model is not taken.
	wrong *Note
}

func newModel(provider, name string) *model {
	return &model{provider: provider, name: name, fields: make(map[string]string)}
}

func (m *model) note(field, text string) { m.notes = append(m.notes, Note{Field: field, Text: text}) }

func (m *model) refuse(field, text string) {
	if m.wrong == nil {
		m.wrong = &Note{Field: field, Text: text}
	}
}

// number reads a price of the list; ok is false where it has none or it is wrong.
func (m *model) number(field string, n *document.Node) (value money.Number, ok bool) {
	switch {
	case n == nil || n.Kind == document.Null:
		return value, false
	case n.Kind == document.String:
		m.refuse(field, "is the text "+document.Quote(n.Text)+" and no number")
		return value, false
	case n.Kind != document.Number:
		m.refuse(field, "is "+n.Kind.String()+" and no number")
		return value, false
	}
	value, err := money.ParseNumber(n.Text)
	if err != nil {
		m.refuse(field, err.Error())
	}
	return value, err == nil
}

// set takes a price of the list, times 10^shift dollars, under a key of a row.
func (m *model) set(key, field string, n *document.Node, shift int) {
	value, ok := m.number(field, n)
	if !ok {
		return
	}
	nanos, err := value.Shift(shift).Exact()
	if err != nil {
		m.refuse(field, value.Shift(shift).String()+" dollars "+err.Error())
		return
	}
	m.fields[key] = nanos.String()
}

// ratio is a/b for decimals of a row; ok is false when b is 0.
func ratio(a, b string) (*big.Rat, bool) {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !okX || !okY || y.Sign() == 0 {
		return nil, false
	}
	return x.Quo(x, y), true
}

// service takes the prices of a service tier: as one factor where each price of
// tokens that the model has is that multiple of the standard one, and else as they
// are listed, part by part.
func (m *model) service(tier string, prices map[string]string) {
	if factor, ok := m.factor(prices); ok {
		if factor.Cmp(one) != 0 {
			m.fields["factor."+tier] = factor.RatString()
		}
		return
	}
	for key, value := range prices {
		m.fields["service_tier."+tier+"."+key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(m.fields)) {
		if _, listed := prices[key]; !listed && !strings.ContainsRune(key, '.') && price.IsTokenPart(key) && m.fields[key] != "0" {
			m.note("service_tier."+tier+"."+key, "is not listed: it costs what the standard tier does")
		}
	}
}

// factor is what all prices of a service tier are of the standard ones; ok is false
// where they are no one multiple, where one of them isn't listed, or where the model
// bills anything else that a factor would multiply.
func (m *model) factor(prices map[string]string) (factor *big.Rat, ok bool) {
	for key := range m.fields {
		token := price.IsTokenPart(key[strings.LastIndexByte(key, '.')+1:])
		_, listed := prices[key]
		switch {
		case strings.HasPrefix(key, "service_tier.") || strings.HasPrefix(key, "factor."):
		case token && !listed && m.fields[key] != "0", price.IsMediaUnit(key):
			return nil, false
		}
	}
	for key, value := range prices {
		if value == "0" && m.fields[key] == "0" {
			continue
		}
		q, comparable := ratio(value, m.fields[key])
		if !comparable || factor != nil && q.Cmp(factor) != 0 {
			return nil, false
		}
		factor = q
	}
	if factor == nil {
		return one, true
	}
	_, err := price.ParseFraction(factor.RatString())
	return factor, err == nil
}
