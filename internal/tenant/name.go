// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/document"
)

// Bounds of names, in bytes.
const (
	MaxModelName     = 200
	MaxSubject       = 128
	MaxKeyName       = 100
	MaxWorkspaceName = 64
)

// MaxLimitName bounds the name of a budget or rate rule, in characters.
const MaxLimitName = 100

// wildcard ends an entry of a model list that stands for every model below a
// prefix: "acme/*".
const wildcard = "/*"

// ValidModelName tells what is wrong with the name of a model, an alias or a
// route (SPEC KEY-5). Names are compared byte by byte, so nothing that merely
// looks like another name, and nothing invisible, may stand in one.
func ValidModelName(name string) error {
	return valid(name, MaxModelName, "._:/@+-")
}

// ValidSubject tells what is wrong with the name of a user, team or project
// (SPEC KEY-7).
func ValidSubject(name string) error {
	return valid(name, MaxSubject, "._@:+-")
}

// ValidWorkspaceName tells what is wrong with the name of a workspace. It
// travels in a header.
func ValidWorkspaceName(name string) error {
	return valid(name, MaxWorkspaceName, "._-")
}

// ValidKeyName tells what is wrong with the name of a key: 1 to 100 printable
// ASCII characters, no space at either end.
func ValidKeyName(name string) error {
	if name == "" || len(name) > MaxKeyName {
		return fmt.Errorf("must have 1 to %d characters", MaxKeyName)
	}
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return errors.New("must have printable ASCII characters only")
		}
	}
	if strings.TrimSpace(name) != name {
		return errors.New("must not begin or end with a space")
	}
	return nil
}

// ValidPlanName tells what is wrong with the name of a plan.
func ValidPlanName(name string) error { return ValidSubject(name) }

// ValidLimitName tells what is wrong with the name of a budget or rate rule: 1
// to 100 printable characters of any script, no space at either end (SPEC
// RAT-7). Nothing invisible may stand in one, and no space but the ordinary.
func ValidLimitName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > MaxLimitName {
		return fmt.Errorf("must have 1 to %d characters", MaxLimitName)
	}
	for _, c := range name {
		if c == utf8.RuneError || !unicode.IsPrint(c) {
			return errors.New("must have printable characters only")
		}
	}
	if strings.Trim(name, " ") != name {
		return errors.New("must not begin or end with a space")
	}
	return nil
}

func valid(name string, most int, marks string) error {
	if name == "" || len(name) > most {
		return fmt.Errorf("must have 1 to %d characters", most)
	}
	for i := range len(name) {
		c := name[i]
		if !alphanumeric(c) && strings.IndexByte(marks, c) < 0 {
			return fmt.Errorf("%s may have only letters, digits and %s", document.Quote(name), marks)
		}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// validEntry tells what is wrong with an entry of a model list.
func validEntry(entry string) error {
	if prefix, ok := strings.CutSuffix(entry, wildcard); ok {
		return ValidModelName(prefix)
	}
	if strings.Contains(entry, "*") {
		return fmt.Errorf("%s: a star stands only at the end, as in prefix/*", document.Quote(entry))
	}
	return ValidModelName(entry)
}

// Allows reports whether a list allows a model (SPEC KEY-5): it has the model's
// own name, a prefix/* that the name begins with, or one of the names that the
// request used and that lead to the model (an alias, a route). A nil list
// allows everything, an empty one nothing. Names are compared exactly, and
// prefixes match model names alone: an alias must be listed itself.
func Allows(list *[]string, modelName string, requested []string) bool {
	if list == nil {
		return true
	}
	for _, entry := range *list {
		if prefix, ok := strings.CutSuffix(entry, "*"); ok && strings.HasSuffix(entry, wildcard) {
			if strings.HasPrefix(modelName, prefix) && len(modelName) > len(prefix) {
				return true
			}
			continue
		}
		if entry == modelName {
			return true
		}
		for _, name := range requested {
			if entry == name {
				return true
			}
		}
	}
	return false
}
