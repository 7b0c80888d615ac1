// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"math/big"
	"slices"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
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

// factor takes the prices of a service tier as one factor of the standard ones.
// Lists round each price of a tier by itself; where the ratios differ the dearest
// is taken, so that no part is charged at less than the list has. A tier that
// discounts some parts alone has no factor: it costs what the standard one does,
// and who is served it is marked so.
func (m *model) factor(tier string, prices map[string]string) {
	var ratios []*big.Rat
	for key, value := range prices {
		standard, listed := m.fields[key]
		if !listed {
			m.note(key, "has a price in the service tier "+tier+" and none outside of it, which is left out")
			continue
		}
		if value == "0" && standard == "0" {
			continue
		}
		q, ok := ratio(value, standard)
		if !ok {
			m.refuse(key, "costs nothing, and something in the service tier "+tier)
			return
		}
		ratios = append(ratios, q)
	}
	if len(ratios) == 0 {
		return
	}
	most, least := slices.MaxFunc(ratios, (*big.Rat).Cmp), slices.MinFunc(ratios, (*big.Rat).Cmp)
	switch {
	case least.Cmp(most) == 0:
	case most.Cmp(one) == 0:
		m.note("factor."+tier, "is left out: some of the tier's prices are discounted and some are not, which no factor is")
		return
	default:
		m.note("factor."+tier, "the tier's prices are no one multiple of the standard ones: its dearest part's factor is taken for all")
	}
	text, ok := factorText(most)
	switch {
	case !ok:
		m.refuse("factor."+tier, "is "+most.RatString()+", which is no factor")
	case most.Sign() > 0:
		m.fields["factor."+tier] = text
	}
}

// factorText is a factor as a row reads it; one whose terms are too long is
// rounded up to nine places.
func factorText(f *big.Rat) (string, bool) {
	const most = 1_000_000_000
	if f.Num().IsInt64() && f.Denom().IsInt64() && f.Num().Int64() <= most && f.Denom().Int64() <= most {
		return f.RatString(), true
	}
	n, err := money.ParseNumber(f.FloatString(18))
	if err != nil {
		return "", false
	}
	nanos, err := n.Up()
	return nanos.String(), err == nil
}
