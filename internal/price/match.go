// SPDX-License-Identifier: Apache-2.0

package price

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The operators of a match rule. A rule is words: an operator and its value
// (=gpt-4o ^gpt-4o- $-latest ~claude /^o[134]), or a group: all( … ), any( … ),
// none( … ). Names are compared in lower case; values are stored so.
const (
	opEquals   = '='
	opStarts   = '^'
	opEnds     = '$'
	opContains = '~'
	opRegexp   = '/'
	wordAll    = "all("
	wordAny    = "any("
	wordNone   = "none("
	wordClose  = ")"
)

const maxRuleDepth = 8

// rule says which names an entry of the catalogue stands for. The zero rule
// matches nothing.
type rule struct {
	op      byte // an operator, or the first byte of a group's word
	value   string
	pattern *regexp.Regexp
	of      []rule
}

// parseRule reads a rule; its words at the top are alternatives.
func parseRule(text string) (rule, error) {
	words := strings.Fields(text)
	list, rest, err := parseTerms(words, 0)
	switch {
	case err != nil:
		return rule{}, err
	case len(rest) != 0:
		return rule{}, errors.New("a group is closed that was not opened")
	}
	return rule{op: wordAny[1], of: list}, nil
}

// parseTerms reads terms up to the end or to the word that closes their group,
// which it leaves in rest.
func parseTerms(words []string, depth int) (list []rule, rest []string, err error) {
	if depth > maxRuleDepth {
		return nil, nil, errors.New("groups are nested too deeply")
	}
	for len(words) != 0 && words[0] != wordClose {
		word := words[0]
		words = words[1:]
		if word != wordAll && word != wordAny && word != wordNone {
			term, err := parseTerm(word)
			if err != nil {
				return nil, nil, err
			}
			list = append(list, term)
			continue
		}
		inner, after, err := parseTerms(words, depth+1)
		if err != nil {
			return nil, nil, err
		}
		if len(after) == 0 || len(inner) == 0 {
			return nil, nil, fmt.Errorf("group %q is empty or never closed", word)
		}
		list = append(list, rule{op: word[1], of: inner})
		words = after[1:]
	}
	return list, words, nil
}

func parseTerm(word string) (rule, error) {
	term := rule{op: word[0], value: word[1:]}
	if term.value == "" {
		return rule{}, fmt.Errorf("%q has no value", word)
	}
	switch term.op {
	case opEquals, opStarts, opEnds, opContains:
		return term, nil
	case opRegexp:
		pattern, err := regexp.Compile(term.value)
		if err != nil {
			return rule{}, fmt.Errorf("compiling a match: %w", err)
		}
		term.pattern = pattern
		return term, nil
	}
	return rule{}, fmt.Errorf("%q is no match", word)
}

// matches reports whether the rule holds for a name in lower case.
func (r rule) matches(name string) bool {
	switch r.op {
	case opEquals:
		return name == r.value
	case opStarts:
		return strings.HasPrefix(name, r.value)
	case opEnds:
		return strings.HasSuffix(name, r.value)
	case opContains:
		return strings.Contains(name, r.value)
	case opRegexp:
		return r.pattern.MatchString(name)
	case wordAll[1]:
		for _, term := range r.of {
			if !term.matches(name) {
				return false
			}
		}
		return true
	case wordAny[1]:
		return r.any(name)
	case wordNone[1]:
		return !r.any(name)
	}
	return false
}

func (r rule) any(name string) bool {
	for _, term := range r.of {
		if term.matches(name) {
			return true
		}
	}
	return false
}

// equals lists the names that alone make the rule hold.
func (r rule) equals() []string {
	var names []string
	switch r.op {
	case opEquals:
		names = append(names, r.value)
	case wordAny[1]:
		for _, term := range r.of {
			names = append(names, term.equals()...)
		}
	}
	return names
}
