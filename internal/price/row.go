// SPDX-License-Identifier: Apache-2.0

// Package price says what a request costs: the price rows, the worst case that
// is held before a request and the charge that settles it, on one code path,
// and the built-in catalogue of public prices (SPEC EST-3, PRC-1 to PRC-4,
// USE-2).
//
// It does not choose which row applies to a request, estimates no tokens, and
// reads no clock: callers pass instants. Prices are US dollars per million
// tokens everywhere, or US dollars per request where the name says so.
package price

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/money"
)

// The kinds of refusal, for errors.Is.
var (
	// ErrUnpriced: something that was used, or could be, has no price (PRC-3).
	ErrUnpriced = errors.New("has no price")
	// ErrUsage: a usage with a count below zero can't be priced (USE-1).
	ErrUsage = errors.New("usage is below zero")
	// ErrConfirm: a price that is more likely a slip than meant (SPEC 1).
	ErrConfirm = errors.New("is above 10,000 dollars and needs confirm: true (prices are US dollars per million tokens, or for one where the name says per_)")
)

// Where a row came from; the first that has one wins (PRC-2).
const (
	SourceOverride = "override"
	SourceImported = "imported"
	SourceBuiltIn  = "built-in"
)

// Row is the price of one model. Prices are dollars per million tokens; nil is
// "not set" and falls back to the broader price, never to zero (PRC-1). A Row
// is not changed once it is made: usage events point at it by ID.
type Row struct {
	// ID is the hash of what the row says, so that equal rows are the same
	// price version on every replica and after every start. Seal sets it.
	ID    string
	Model string
	// Source is SourceOverride, SourceImported or SourceBuiltIn.
	Source string
	// Date is the day, as 2006-01-02, on which the source was taken.
	Date string
	// ValidFromMicros is the instant from which the row holds, 0 for always.
	ValidFromMicros int64
	// List names the list that an imported row was read from, and StaleSince the
	// day since which that list has it no more. Neither is a part of the ID.
	List, StaleSince string

	// Free makes every part cost zero, explicitly (`price: free`).
	Free bool

	Input            *money.PerMillion
	CachedInput      *money.PerMillion
	CacheWrite5m     *money.PerMillion
	CacheWrite1h     *money.PerMillion
	Output           *money.PerMillion
	AudioInput       *money.PerMillion
	CachedAudioInput *money.PerMillion
	AudioOutput      *money.PerMillion
	ImageInput       *money.PerMillion
	ImageOutput      *money.PerMillion

	// PerRequest is added for each request; service tiers don't scale it.
	PerRequest *money.Nanos
	// Dollars for a second of audio heard, one of audio spoken, and an image made.
	PerSecondInput  *money.Nanos
	PerSecondOutput *money.Nanos
	PerImage        *money.Nanos
	// PerToolCall is dollars for a call of one of the provider's own tools, by its
	// name (call.WebSearch); service tiers don't scale it.
	PerToolCall map[string]money.Nanos
	// Tiers re-price the whole request by the length of its input, in
	// ascending order of AboveTokens.
	Tiers []Tier
	// Factors multiply the price of tokens, seconds and images by the service tier
	// that was served. A tier that isn't named costs what the standard tier costs.
	Factors map[string]Fraction
	// ServiceTiers are the prices of tokens in service tiers that are no multiple
	// of the standard ones, each in ascending order of AboveTokens, of which 0 is
	// any input. No tier has these and a factor, too.
	ServiceTiers map[string][]Tier
}

// Tier is the prices of a request whose input, all parts together, is longer
// than AboveTokens; exactly at the threshold the lower prices hold.
type Tier struct {
	AboveTokens int64

	Input            *money.PerMillion
	CachedInput      *money.PerMillion
	CacheWrite5m     *money.PerMillion
	CacheWrite1h     *money.PerMillion
	Output           *money.PerMillion
	AudioInput       *money.PerMillion
	CachedAudioInput *money.PerMillion
	AudioOutput      *money.PerMillion
	ImageInput       *money.PerMillion
	ImageOutput      *money.PerMillion
}

// fields are the places of r's own prices, by part.
func (r *Row) fields() [partCount]**money.PerMillion {
	return [partCount]**money.PerMillion{
		&r.Input, &r.CachedInput, &r.CacheWrite5m, &r.CacheWrite1h, &r.Output,
		&r.AudioInput, &r.CachedAudioInput, &r.AudioOutput, &r.ImageInput, &r.ImageOutput,
	}
}

func (t *Tier) fields() [partCount]**money.PerMillion {
	return [partCount]**money.PerMillion{
		&t.Input, &t.CachedInput, &t.CacheWrite5m, &t.CacheWrite1h, &t.Output,
		&t.AudioInput, &t.CachedAudioInput, &t.AudioOutput, &t.ImageInput, &t.ImageOutput,
	}
}

// read is the prices that stand in fields.
func read(fields [partCount]**money.PerMillion) (s rates) {
	for p, field := range fields {
		s[p] = *field
	}
	return s
}

// base is the index of the prices below every tier.
const base = -1

// rates are the prices in tier t, or below all tiers, with the chain applied.
func (r *Row) rates(t int) rates {
	if r.Free {
		var free rates
		free[partInput] = new(money.PerMillion)
		free[partOutput] = free[partInput]
		return free.spread()
	}
	own := read(r.fields())
	if t == base {
		return own.spread()
	}
	return read(r.Tiers[t].fields()).over(own)
}

// IsEmpty reports whether the row sets no price at all. Such a row is no
// price: the next source's row stands in (see Over).
func (r *Row) IsEmpty() bool {
	for _, field := range r.unitFields() {
		if *field != nil {
			return false
		}
	}
	return !r.Free && len(r.PerToolCall) == 0 && len(r.Tiers) == 0 && len(r.ServiceTiers) == 0 && read(r.fields()) == rates{}
}

// IsFree reports whether every kind of token is priced and no price is above
// zero, whatever the length of the input (PRC-4).
func (r *Row) IsFree() bool {
	for _, price := range r.unitPrices() {
		if price != nil && *price != 0 {
			return false
		}
	}
	for _, price := range r.PerToolCall {
		if price != 0 && !r.Free {
			return false
		}
	}
	free := true
	r.allRates(func(s rates) {
		for _, rate := range s {
			free = free && rate != nil && *rate == 0
		}
	})
	return free
}

// Over is r with what it leaves unset taken from under, the row of the next
// source: null prices in an override do not make a model free or unpriced
// (PRC-1, PRC-2). A side, input or output, of which r sets the text price is
// r's alone; the prices that under's tiers have for it are left out too.
func (r *Row) Over(under *Row) *Row {
	if under == nil || r.Free {
		return r
	}
	merged := *r
	merged.PerToolCall = maps.Clone(under.PerToolCall)
	for name, price := range r.PerToolCall {
		merged.setTool(name, price)
	}
	if r.Input != nil && r.Output != nil {
		if len(merged.PerToolCall) == len(r.PerToolCall) {
			return r
		}
		return merged.Seal()
	}
	own := [partCount]bool{partInput: r.Input != nil, partOutput: r.Output != nil}
	merged.Tiers = slices.Clone(r.Tiers)
	if len(merged.Tiers) == 0 {
		merged.Tiers = slices.Clone(under.Tiers)
	}
	into, from := merged.fields(), under.rates(base)
	if !under.Free {
		from = read(under.fields())
	}
	for p := range partCount {
		if *into[p] == nil && !own[p.root()] {
			*into[p] = from[p]
		}
		for t := range merged.Tiers {
			if len(r.Tiers) == 0 && own[p.root()] {
				*merged.Tiers[t].fields()[p] = nil
			}
		}
	}
	unitsUnder := under.unitPrices()
	for n, field := range merged.unitFields() {
		if *field == nil {
			*field = unitsUnder[n]
		}
	}
	r.overService(&merged, under, own)
	return merged.Seal()
}

func (r *Row) setTool(name string, price money.Nanos) {
	if r.PerToolCall == nil {
		r.PerToolCall = make(map[string]money.Nanos)
	}
	r.PerToolCall[name] = price
}

// Seal sets the row's ID from what it says and returns it. Date does not
// count: the same prices in a newer catalogue are the same version.
func (r *Row) Seal() *Row {
	var text strings.Builder
	fmt.Fprintf(&text, "model=%s\nsource=%s\nvalid_from_micros=%d\n", r.Model, r.Source, r.ValidFromMicros)
	for _, f := range r.prices() {
		fmt.Fprintf(&text, "%s=%s\n", f.key, f.value)
	}
	sum := sha256.Sum256([]byte(text.String()))
	r.ID = hex.EncodeToString(sum[:16])
	return r
}

// pair is one price of a row in the notation that files, JSON and the
// catalogue share: "input", "above.200000.output", "factor.flex".
type pair struct{ key, value string }

// Fields is what the row sets, as a Spec has it: decimals by key.
func (r *Row) Fields() map[string]string {
	fields := make(map[string]string)
	for _, p := range r.prices() {
		fields[p.key] = p.value
	}
	return fields
}

// prices lists what the row sets, in a fixed order.
func (r *Row) prices() []pair {
	var list []pair
	if r.Free {
		list = append(list, pair{keyFree, "true"})
	}
	list = appendRates(list, "", read(r.fields()))
	for n, field := range r.unitFields() {
		if *field != nil {
			list = append(list, pair{unitKinds[n].key, (*field).String()})
		}
	}
	for _, name := range r.tools() {
		list = append(list, pair{keyPerToolCall + "." + name, r.PerToolCall[name].String()})
	}
	for i := range r.Tiers {
		prefix := keyAbove + "." + strconv.FormatInt(r.Tiers[i].AboveTokens, 10) + "."
		list = appendRates(list, prefix, read(r.Tiers[i].fields()))
	}
	for _, name := range r.serviceTiers() {
		list = append(list, pair{keyFactor + "." + name, r.Factors[name].String()})
	}
	return r.appendServices(list)
}

func appendRates(list []pair, prefix string, s rates) []pair {
	for p, rate := range s {
		if rate != nil {
			list = append(list, pair{prefix + parts[p].name, rate.String()})
		}
	}
	return list
}

// serviceTiers are the names that have a factor, sorted.
func (r *Row) serviceTiers() []string {
	names := make([]string, 0, len(r.Factors))
	for name := range r.Factors {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
