// SPDX-License-Identifier: Apache-2.0

package price

import (
	"regexp"
	"strings"
)

// Sources is where the price of one model of one provider can stand (PRC-2).
type Sources struct {
	// Override is what a workspace says for its model.
	Override Schedule
	// Imported is what was imported of the provider; nil: nothing.
	Imported *Import
	BuiltIn  *Catalogue
	// Provider is the catalogue's name of the provider where it has one, Model the
	// name that the provider knows the model by. The name in an answer is never
	// asked: it decides no price.
	Provider, Model string
}

// At is the row in force at an instant, in Unix microseconds, and the first
// instant from which that may change, 0 for never; nil is no price.
//
// Override goes before imported, imported before built-in, and a source that
// spells the model's name out before one that a rule leads to it: a dated
// snapshot may cost more than the name without its date, and takes that one's
// price only where no source knows better.
func (s Sources) At(at int64) (row *Row, until int64) {
	under, until := s.under(at)
	until = Sooner(until, s.Override.Next(at))
	over := s.Override.At(at)
	if over == nil || over.IsEmpty() {
		return under, until
	}
	return over.Over(under), until
}

func (s Sources) under(at int64) (row *Row, until int64) {
	var imported, undated Schedule
	if s.Imported != nil {
		imported = s.Imported.Models[strings.ToLower(s.Model)]
		if base, ok := Undated(s.Model); ok {
			undated = s.Imported.Models[strings.ToLower(base)]
		}
	}
	builtIn := func(find func(provider, model string) (*Entry, bool)) *Row {
		entry, ok := find(s.Provider, s.Model)
		if !ok {
			return nil
		}
		until = Sooner(until, entry.Next(at))
		if row, ok := entry.RowAt(at); ok {
			return row
		}
		return nil
	}
	until = Sooner(imported.Next(at), undated.Next(at))
	exact, byRule := builtIn(s.BuiltIn.Exact), builtIn(s.BuiltIn.Lookup)
	for _, row := range []*Row{imported.At(at), exact, undated.At(at), byRule} {
		switch {
		case row == nil || row.IsEmpty():
		case row.Source == SourceImported && byRule != nil:
			return row.Over(byRule), until
		default:
			return row, until
		}
	}
	return nil, until
}

// dated is a day at the end of a model's name, as providers name snapshots:
// gpt-4o-2024-08-06, claude-opus-4-1-20250805, claude-opus-4@20250514.
var dated = regexp.MustCompile(`[-@]20\d\d(-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])|(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))$`)

// Undated is a snapshot's name without its day; ok is false for a name that ends
// in none. A month and day alone (-0613) are none: such snapshots were sold at
// prices of their own.
func Undated(model string) (base string, ok bool) {
	base = dated.ReplaceAllString(model, "")
	return base, base != model && base != ""
}
