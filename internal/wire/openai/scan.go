// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a JSON text, against stack bombs. Real
// requests stay below 50, deep schemas included.
const maxDepth = 512

// scanner reads one JSON text (RFC 8259) strictly, forward only and in place.
//
// It exists because three things are wanted of one pass that no decoder gives
// together: the offsets of members for rewriting, the decoded length of strings
// without building them, and every member in order, repeated ones included.
// Its first error stays; after it every method does nothing.
type scanner struct {
	b     []byte
	i     int
	keyAt int // where the key of the member last entered begins
	depth int
	err   error
}

// syntaxError says where a text stops being JSON, or being what was expected.
type syntaxError struct {
	what   string
	offset int
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.offset) }

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = &syntaxError{what, s.i}
	}
}

// peek returns the first byte of the next token, 0 at the end or after an error.
func (s *scanner) peek() byte {
	if s.err != nil {
		return 0
	}
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
		default:
			return s.b[s.i]
		}
	}
	return 0
}

// end checks that nothing follows the text.
func (s *scanner) end() {
	if s.peek(); s.err == nil && s.i < len(s.b) {
		s.fail("something follows the JSON text")
	}
}

// object reads an object and calls member for each of its members, in order,
// with the decoded key; member reads exactly one value.
func (s *scanner) object(member func(key []byte)) {
	if !s.open('{', '}', "expected an object") {
		return
	}
	for more := true; more; more = s.more('}') {
		s.peek()
		at := s.i
		raw, _ := s.str()
		if s.peek() != ':' {
			s.fail("expected a colon")
			return
		}
		s.i++
		s.keyAt = at
		member(unquote(raw))
	}
}

// array reads an array and calls element for each of its elements; element
// reads exactly one value.
func (s *scanner) array(element func()) {
	if !s.open('[', ']', "expected an array") {
		return
	}
	for more := true; more; more = s.more(']') {
		element()
	}
}

// open enters an object or array; it is false when there is nothing inside.
func (s *scanner) open(first, last byte, expected string) bool {
	if s.peek() != first {
		s.fail(expected)
		return false
	}
	if s.depth == maxDepth {
		s.fail("nested too deeply")
		return false
	}
	s.i++
	if s.peek() == last {
		s.i++
		return false
	}
	s.depth++
	return true
}

func (s *scanner) more(last byte) bool {
	switch s.peek() {
	case ',':
		s.i++
		return true
	case last:
		s.i++
		s.depth--
		return false
	}
	s.fail("expected a comma or an end")
	return false
}

// str reads a string: what stands between its quotes, and the length in bytes
// of what that decodes to; of a broken string the length up to there.
func (s *scanner) str() (raw []byte, size int64) {
	if s.peek() != '"' {
		s.fail("expected a string")
		return nil, 0
	}
	b, start, saved := s.b, s.i+1, 0
	for i := start; i < len(b); {
		c := b[i]
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		s.i = i
		if c == '"' {
			s.i++
			return b[start:i], int64(i - start - saved)
		}
		if c != '\\' {
			s.fail("control character in a string")
			return nil, int64(i - start - saved)
		}
		r, width := escape(b[i:])
		if width == 0 {
			s.fail("bad escape in a string")
			return nil, int64(i - start - saved)
		}
		saved += width - utf8.RuneLen(r)
		i += width
	}
	s.i = len(b)
	s.fail("unfinished string")
	return nil, int64(len(b) - start - saved)
}

// escape decodes the escape that b begins with; width 0 means a bad one. Half
// a surrogate pair is the replacement character, as encoding/json has it.
func escape(b []byte) (r rune, width int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	high := unit(b)
	if high < 0 {
		return 0, 0
	}
	if high < 0xD800 || high > 0xDFFF {
		return high, 6
	}
	if low := unit(b[6:]); high < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF {
		return (high-0xD800)<<10 + (low - 0xDC00) + 0x10000, 12
	}
	return utf8.RuneError, 6
}

// unit is the UTF-16 unit of the \uXXXX that b begins with, -1 when it doesn't.
func unit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	r := rune(0)
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return -1
		}
	}
	return r
}

// unquote decodes what stood between a valid string's quotes; without escapes
// it is raw itself.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	text := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			text = append(text, raw[i])
			i++
			continue
		}
		r, width := escape(raw[i:])
		text = utf8.AppendRune(text, r)
		i += width
	}
	return text
}

// number reads a number and returns its spelling.
func (s *scanner) number() []byte {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		s.fail("expected a number")
		return nil
	}
	start := s.i
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if s.digits() == 0 {
		s.fail("bad number")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		if s.i++; s.digits() == 0 {
			s.fail("bad number")
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		if s.i++; s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			s.fail("bad number")
		}
	}
	return s.b[start:s.i]
}

func (s *scanner) digits() (n int) {
	for ; s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9'; n++ {
		s.i++
	}
	return n
}

// literal reads true, false or null.
func (s *scanner) literal() string {
	for _, word := range [...]string{"true", "false", "null"} {
		if s.peek() == word[0] && bytes.HasPrefix(s.b[s.i:], []byte(word)) {
			s.i += len(word)
			return word
		}
	}
	s.fail("expected a value")
	return ""
}

// null reads a null if one stands here.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal() != "" }

// skip reads any value and returns its compact size: the bytes of its shortest
// spelling with every string decoded. That is what a model reads of a schema,
// however the client indents and escapes it.
func (s *scanner) skip() (size int64) {
	switch c := s.peek(); {
	case c == '{':
		size = 1
		s.object(func(key []byte) { size += int64(len(key)) + 4 + s.skip() })
		return max(size, 2)
	case c == '[':
		size = 1
		s.array(func() { size += 1 + s.skip() })
		return max(size, 2)
	case c == '"':
		_, size = s.str()
		return size + 2
	case c == '-' || c >= '0' && c <= '9':
		return int64(len(s.number()))
	}
	return int64(len(s.literal()))
}

// text reads any value as text: a string is its decoded length, null nothing,
// anything else its compact size.
func (s *scanner) text() int64 {
	switch s.peek() {
	case '"':
		_, size := s.str()
		return size
	case 'n':
		s.literal()
		return 0
	}
	return s.skip()
}

// objectOrSkip reads an object as object does, and anything else as nothing.
func (s *scanner) objectOrSkip(member func(key []byte)) {
	if s.peek() == '{' {
		s.object(member)
	} else {
		s.skip()
	}
}

// arrayOrSkip reads an array as array does, and anything else as nothing.
func (s *scanner) arrayOrSkip(element func()) {
	if s.peek() == '[' {
		s.array(element)
	} else {
		s.skip()
	}
}
