// SPDX-License-Identifier: Apache-2.0

package price

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed catalogue.txt
var catalogueText string

const (
	microsPerSecond = 1_000_000
	secondsPerDay   = 86_400
)

// Catalogue is a read-only list of public prices by provider and model (PRC-2).
// It is safe for concurrent use.
type Catalogue struct {
	source     string
	date       string
	dateMicros int64
	providers  []*provider
	byID       map[string]*provider
}

// provider is one account type of the source, with its models in its order.
type provider struct {
	id        string
	names     rule           // other names of the provider
	models    rule           // names of models that are this provider's
	address   *regexp.Regexp // base URLs; nil: none
	fallbacks []string       // providers whose models this one resells
	entries   []*Entry
	exact     map[string]*Entry
}

// Entry is one model of the catalogue.
type Entry struct {
	Provider string
	Model    string
	// ContextTokens is the length of the model's context, 0 when not known.
	ContextTokens int64
	// Omitted names the source's prices that no part of a row can hold (web
	// searches, pages, seconds, video): what they bill, the row does not.
	Omitted []string

	match    rule
	versions []version
	date     int64
}

// version is the prices of an entry from an instant on, or in some hours.
type version struct {
	row   *Row
	hours *hours
}

// hours is a part of each UTC day, in seconds from midnight; from is in it, to
// isn't, and it may go over midnight.
type hours struct{ from, to int64 }

// Load reads the built-in catalogue. It takes some milliseconds: keep it.
func Load() (*Catalogue, error) { return ParseCatalogue(catalogueText) }

// Source names what the catalogue was made from, with its version.
func (c *Catalogue) Source() string { return c.source }

// Date is the day, as 2006-01-02, of which the prices are.
func (c *Catalogue) Date() string { return c.date }

// Find is the row of a provider's model in force on the catalogue's own date;
// where the price depends on the hour, the dearest. The provider is given by
// the catalogue's name or by one that its rules know ("gemini", "bedrock"); ""
// takes the first provider whose models are called so. See Lookup for the
// price at an instant.
func (c *Catalogue) Find(providerName, model string) (*Row, bool) {
	entry, ok := c.Lookup(providerName, model)
	if !ok {
		return nil, false
	}
	return entry.Row()
}

// Lookup is the entry of a provider's model: by its exact names, then by the
// source's rules in the source's order, then the same in the providers that it
// resells, and then all of it with a date in the name written the other way
// (20250514 for 2025-05-14). Letter case does not count.
func (c *Catalogue) Lookup(providerName, model string) (*Entry, bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	p := c.provider(providerName, name)
	if p == nil {
		return nil, false
	}
	if entry, ok := c.search(p, name); ok {
		return entry, true
	}
	if other := dashDates(name); other != name {
		return c.search(p, other)
	}
	return nil, false
}

// Exact is Lookup by the names alone that an entry spells out: its own and those
// that its rule equals, no pattern and no date written otherwise.
func (c *Catalogue) Exact(providerName, model string) (*Entry, bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	p := c.provider(providerName, name)
	if p == nil {
		return nil, false
	}
	entry, ok := p.exact[name]
	for i := 0; !ok && i < len(p.fallbacks); i++ {
		entry, ok = c.byID[p.fallbacks[i]].exact[name]
	}
	return entry, ok
}

// ProviderNamed is the catalogue's own name of a provider that others call so.
func (c *Catalogue) ProviderNamed(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	if p := c.provider(name, ""); p != nil {
		return p.id, true
	}
	return "", false
}

// ProviderOf is the name that prices of a provider stand under: the catalogue's,
// by its address, else by what it is called, else the latter itself.
func (c *Catalogue) ProviderOf(baseURL, name string) string {
	if id, ok := c.ProviderAt(baseURL); ok {
		return id
	}
	if id, ok := c.ProviderNamed(name); ok {
		return id
	}
	return name
}

// ProviderAt is the catalogue's name of the provider whose API answers at a
// base URL.
func (c *Catalogue) ProviderAt(baseURL string) (string, bool) {
	for _, p := range c.providers {
		if p.address != nil && p.address.MatchString(baseURL) {
			return p.id, true
		}
	}
	return "", false
}

func (c *Catalogue) provider(name, model string) *provider {
	name = strings.ToLower(strings.TrimSpace(name))
	if p, ok := c.byID[name]; ok {
		return p
	}
	for _, p := range c.providers {
		if name == "" && p.models.matches(model) || name != "" && p.names.matches(name) {
			return p
		}
	}
	return nil
}

func (c *Catalogue) search(p *provider, model string) (*Entry, bool) {
	if entry, ok := p.find(model); ok {
		return entry, true
	}
	for _, id := range p.fallbacks {
		if entry, ok := c.byID[id].find(model); ok {
			return entry, true
		}
	}
	return nil, false
}

func (p *provider) find(model string) (*Entry, bool) {
	if entry, ok := p.exact[model]; ok {
		return entry, true
	}
	for _, entry := range p.entries {
		if entry.match.matches(model) {
			return entry, true
		}
	}
	return nil, false
}

// compactDate is a date without dashes that ends a word of a model's name.
var compactDate = regexp.MustCompile(`-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(-|:|$)`)

func dashDates(name string) string { return compactDate.ReplaceAllString(name, "-$1-$2-$3$4") }

// Row is the entry's row in force on the catalogue's date, the dearest of the
// day; ok is false when the source knows no price that a row can hold.
func (e *Entry) Row() (*Row, bool) { return e.at(e.date, func(*hours) bool { return true }) }

// RowAt is the entry's row in force at an instant, in Unix microseconds.
func (e *Entry) RowAt(at int64) (*Row, bool) {
	second := at / microsPerSecond % secondsPerDay
	if second < 0 {
		second += secondsPerDay
	}
	return e.at(at, func(h *hours) bool { return h.contain(second) })
}

// at is the last version that holds; the first stands in when none does, as it
// does in the source. The source lists hours after the prices that hold
// outside of them, and dearer ones: every version counts from the last.
func (e *Entry) at(at int64, open func(*hours) bool) (*Row, bool) {
	if len(e.versions) == 0 {
		return nil, false
	}
	found := e.versions[0].row
	at = max(at, 0) // "always" is 0
	for _, v := range e.versions {
		if v.row.ValidFromMicros <= at && (v.hours == nil || open(v.hours)) {
			found = v.row
		}
	}
	return found, !found.IsEmpty()
}

// Next is the first instant after at from which RowAt may answer otherwise, in
// Unix microseconds, 0 for never.
func (e *Entry) Next(at int64) int64 {
	next := int64(0)
	for _, v := range e.versions {
		if v.row.ValidFromMicros > at {
			next = Sooner(next, v.row.ValidFromMicros)
		}
		if v.hours != nil {
			next = Sooner(next, Sooner(nextSecond(at, v.hours.from), nextSecond(at, v.hours.to)))
		}
	}
	return next
}

// nextSecond is the first instant after at that is so many seconds into a UTC day.
func nextSecond(at, second int64) int64 {
	const day = secondsPerDay * microsPerSecond
	into := (at%day + day) % day
	wait := second*microsPerSecond - into
	if wait <= 0 {
		wait += day
	}
	return at + wait
}

func (h *hours) contain(second int64) bool {
	if h.to < h.from {
		return second >= h.from || second < h.to
	}
	return second >= h.from && second < h.to
}

// Filter chooses entries; empty fields choose all.
type Filter struct {
	// Provider is the catalogue's name of a provider, exactly.
	Provider string
	// Contains is a part of the model's name, in any letter case.
	Contains string
}

// List is the chosen entries, in the catalogue's order.
func (c *Catalogue) List(f Filter) []*Entry {
	var list []*Entry
	part := strings.ToLower(f.Contains)
	for _, p := range c.providers {
		if f.Provider != "" && f.Provider != p.id {
			continue
		}
		for _, entry := range p.entries {
			if strings.Contains(strings.ToLower(entry.Model), part) {
				list = append(list, entry)
			}
		}
	}
	return list
}

// String names the entry: "openai gpt-4o".
func (e *Entry) String() string { return fmt.Sprintf("%s %s", e.Provider, e.Model) }
