// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
)

// value is a JavaScript literal. Numbers keep their source text: a price must
// never pass through a float.
type value struct {
	kind   kind
	text   string // of strings and numbers
	list   []value
	fields []field
}

type field struct {
	name string
	value
}

type kind string

const (
	kindString kind = "string"
	kindNumber kind = "number"
	kindBool   kind = "boolean"
	kindList   kind = "list"
	kindObject kind = "object"
)

// get is the field of an object; ok is false when it has none of that name.
func (v value) get(name string) (value, bool) {
	for _, f := range v.fields {
		if f.name == name {
			return f.value, true
		}
	}
	return value{}, false
}

// text is the text of a field, empty when there is none.
func (v value) textOf(name string) string {
	found, _ := v.get(name)
	return found.text
}

const maxDepth = 32

// literals reads one literal from the start of a script, of the kinds that a
// bundler writes data in: no expressions, no regular expressions, no calls.
type literals struct {
	text  string
	at    int
	depth int
}

func parseLiteral(text string) (value, error) {
	p := &literals{text: text}
	v, err := p.value()
	if err != nil {
		line := 1 + strings.Count(text[:min(p.at, len(text))], "\n")
		return value{}, fmt.Errorf("line %d of the literal: %w", line, err)
	}
	return v, nil
}

func (p *literals) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take moves over c, after space, if it is next.
func (p *literals) take(c byte) bool {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *literals) value() (value, error) {
	p.depth++
	defer func() { p.depth-- }()
	p.space()
	if p.at >= len(p.text) || p.depth > maxDepth {
		return value{}, errors.New("ends too soon, or is nested too deeply")
	}
	switch c := p.text[p.at]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"' || c == '`' || c == '\'':
		text, err := p.quoted(c)
		return value{kind: kindString, text: text}, err
	case c == '!':
		word := p.word("!01")
		if word != "!0" && word != "!1" {
			return value{}, fmt.Errorf("%q is no boolean", word)
		}
		return value{kind: kindBool, text: word}, nil
	case c >= '0' && c <= '9' || c == '.':
		return value{kind: kindNumber, text: p.word("0123456789.e-+")}, nil
	default:
		return value{}, fmt.Errorf("%q begins no literal", string(c))
	}
}

// word moves over all bytes of set.
func (p *literals) word(set string) string {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(set, p.text[p.at]) >= 0 {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *literals) array() (value, error) {
	v := value{kind: kindList}
	p.at++
	for !p.take(']') {
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.list = append(v.list, item)
		if !p.take(',') {
			if !p.take(']') {
				return v, errors.New("a list goes on with neither , nor ]")
			}
			return v, nil
		}
	}
	return v, nil
}

func (p *literals) object() (value, error) {
	v := value{kind: kindObject}
	p.at++
	for !p.take('}') {
		name, err := p.name()
		if err != nil {
			return v, err
		}
		if !p.take(':') {
			return v, fmt.Errorf("no : after %q", name)
		}
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.fields = append(v.fields, field{name, item})
		if !p.take(',') {
			if !p.take('}') {
				return v, errors.New("an object goes on with neither , nor }")
			}
			return v, nil
		}
	}
	return v, nil
}

func (p *literals) name() (string, error) {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == '"' {
		return p.quoted('"')
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$"
	name := p.word(letters)
	if name == "" {
		return "", errors.New("a field has no name")
	}
	return name, nil
}

// quoted reads a string, with the escapes that stand in the data.
func (p *literals) quoted(quote byte) (string, error) {
	var out strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == quote:
			p.at++
			return out.String(), nil
		case c == '$' && quote == '`' && strings.HasPrefix(p.text[p.at:], "${"):
			return "", errors.New("a template has an expression")
		case c != '\\':
			out.WriteByte(c)
			continue
		}
		p.at++
		if p.at >= len(p.text) {
			break
		}
		switch c := p.text[p.at]; c {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case '\\', '"', '\'', '`', '$', '/':
			out.WriteByte(c)
		default:
			return "", fmt.Errorf("escape \\%s isn't read here", string(c))
		}
	}
	return "", errors.New("a string is never closed")
}
