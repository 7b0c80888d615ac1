// SPDX-License-Identifier: Apache-2.0

package price

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The catalogue's text, a line each, fields separated by tabs:
//
//	# comment
//	source <name and version>
//	date   <2006-01-02>
//	provider <id> [<key>=<value> …]       names= and models= are match rules,
//	                                      address= a pattern, resells= ids by comma
//	<model> <match rule> <context tokens> <prices> [<prices> …]
//
// Prices are key=value words as in a price spec, led by from=<date> or
// hours=<15:04:05>-<15:04:05> (UTC) where they don't always hold; "!name" is a
// price of the source that rows can't hold, and "-" alone stands for none.
const (
	lineSource   = "source"
	lineDate     = "date"
	lineProvider = "provider"
	wordNothing  = "-"
)

// ParseCatalogue reads a catalogue's text, strictly. Errors name the line.
func ParseCatalogue(text string) (*Catalogue, error) {
	c := &Catalogue{byID: make(map[string]*provider)}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := c.parseLine(strings.Split(line, "\t")); err != nil {
			return nil, fmt.Errorf("reading the price catalogue: line %d: %w", number, err)
		}
	}
	if c.source == "" || c.date == "" {
		return nil, errors.New("reading the price catalogue: it names no source or no date")
	}
	for _, p := range c.providers {
		for _, id := range p.fallbacks {
			if c.byID[id] == nil {
				return nil, fmt.Errorf("reading the price catalogue: %s resells %q, which is no provider", p.id, id)
			}
		}
	}
	return c, nil
}

func (c *Catalogue) parseLine(fields []string) error {
	switch {
	case fields[0] == lineSource && len(fields) == 2:
		c.source = fields[1]
		return nil
	case fields[0] == lineDate && len(fields) == 2:
		micros, err := parseDate(fields[1])
		c.date, c.dateMicros = fields[1], micros
		return err
	case fields[0] == lineProvider && len(fields) >= 2:
		return c.parseProvider(fields[1], fields[2:])
	case len(fields) < 4:
		return errors.New("neither a provider nor a model with rule, context and prices")
	case len(c.providers) == 0 || c.date == "":
		return errors.New("a model before the date or its provider")
	}
	return c.parseModel(c.providers[len(c.providers)-1], fields)
}

func (c *Catalogue) parseProvider(id string, fields []string) error {
	p := &provider{id: id, exact: make(map[string]*Entry)}
	if c.byID[id] != nil || id == "" || id != strings.ToLower(strings.TrimSpace(id)) {
		return fmt.Errorf("provider %.40q is repeated, empty, not in lower case or has blanks around it", id)
	}
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "names":
			p.names, err = parseRule(value)
		case "models":
			p.models, err = parseRule(value)
		case "address":
			p.address, err = regexp.Compile("^(?:" + value + ")")
		case "resells":
			p.fallbacks = strings.Split(value, ",")
		default:
			err = fmt.Errorf("unknown field %.40q", key)
		}
		if err != nil {
			return fmt.Errorf("provider %.40q: %w", id, err)
		}
	}
	c.byID[id] = p
	c.providers = append(c.providers, p)
	return nil
}

func (c *Catalogue) parseModel(p *provider, fields []string) error {
	entry := &Entry{Provider: p.id, Model: fields[0], date: c.dateMicros}
	var err error
	if entry.match, err = parseRule(fields[1]); err != nil {
		return fmt.Errorf("model %.80q: %w", fields[0], err)
	}
	if entry.ContextTokens, err = strconv.ParseInt(fields[2], 10, 64); err != nil || entry.ContextTokens < 0 {
		return fmt.Errorf("model %.80q: context %.40q is no number of tokens", fields[0], fields[2])
	}
	for _, words := range fields[3:] {
		if err := entry.parsePrices(c.date, words); err != nil {
			return fmt.Errorf("model %.80q: %w", fields[0], err)
		}
	}
	p.entries = append(p.entries, entry)
	for _, name := range append(entry.match.equals(), strings.ToLower(entry.Model)) {
		if p.exact[name] == nil {
			p.exact[name] = entry
		}
	}
	return nil
}

func (e *Entry) parsePrices(date, text string) error {
	b := newBuilder(&Row{Model: e.Model, Source: SourceBuiltIn, Date: date})
	var open *hours
	for _, word := range strings.Split(text, " ") {
		if word == wordNothing {
			continue
		}
		if name, ok := strings.CutPrefix(word, "!"); ok {
			e.omit(name)
			continue
		}
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "from":
			b.row.ValidFromMicros, err = parseDate(value)
		case "hours":
			open, err = parseHours(value)
		default:
			err = b.set(key, value)
		}
		if err != nil {
			return err
		}
	}
	row, err := b.finish()
	if err != nil {
		return err
	}
	e.versions = append(e.versions, version{row, open})
	return nil
}

func (e *Entry) omit(name string) {
	for _, known := range e.Omitted {
		if known == name {
			return
		}
	}
	e.Omitted = append(e.Omitted, name)
}

// parseHours reads "00:30:00-16:30:00".
func parseHours(s string) (*hours, error) {
	from, to, _ := strings.Cut(s, "-")
	h := new(hours)
	for _, side := range []struct {
		text string
		into *int64
	}{{from, &h.from}, {to, &h.to}} {
		t, err := time.Parse(time.TimeOnly, side.text)
		if err != nil {
			return nil, fmt.Errorf("hours %.40q are not like 00:30:00-16:30:00", s)
		}
		*side.into = int64(t.Hour()*3600 + t.Minute()*60 + t.Second())
	}
	return h, nil
}
