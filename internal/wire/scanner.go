// SPDX-License-Identifier: Apache-2.0

// Package wire has what the adapters of all protocols share: a strict scanner
// of JSON texts that edits them in place, requests read as strictly as ERR-5
// wants it, and streams cut into whole events.
//
// It knows no protocol; those are in the packages below it.
package wire

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a JSON text, against stack bombs. Real
// requests stay below 50, deep schemas included.
const maxDepth = 512

// Scanner reads one JSON text (RFC 8259) strictly, forward only and in place.
//
// It exists because three things are wanted of one pass that no decoder gives
// together: the offsets of members for rewriting, the decoded length of strings
// without building them, and every member in order, repeated ones included.
// Its first error stays; after it every method does nothing.
type Scanner struct {
	b     []byte
	i     int
	keyAt int // where the key of the member last entered begins
	depth int
	// Err is the first thing that was wrong.
	Err error
}

// NewScanner starts at the beginning of text.
func NewScanner(text []byte) Scanner { return Scanner{b: text} }

// At is how many bytes have been read.
func (s *Scanner) At() int { return s.i }

// KeyAt is where the key of the member last entered begins.
func (s *Scanner) KeyAt() int { return s.keyAt }

// Len is the text's length in bytes.
func (s *Scanner) Len() int { return len(s.b) }

// Slice is the text from one offset to another.
func (s *Scanner) Slice(from, to int) []byte { return s.b[from:to] }

// Restart goes back to the beginning of the text.
func (s *Scanner) Restart() { s.i = 0 }

// SyntaxError says where a text stops being JSON, or being what was expected.
type SyntaxError struct {
	what   string
	offset int
}

// Error says what, and at which byte.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.offset) }

// Fail sets Err, unless something was wrong before.
func (s *Scanner) Fail(what string) {
	if s.Err == nil {
		s.Err = &SyntaxError{what, s.i}
	}
}

// Peek returns the first byte of the next token, 0 at the end or after an error.
func (s *Scanner) Peek() byte {
	if s.Err != nil {
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

// End checks that nothing follows the text.
func (s *Scanner) End() {
	if s.Peek(); s.Err == nil && s.i < len(s.b) {
		s.Fail("something follows the JSON text")
	}
}

// Object reads an object and calls member for each of its members, in order,
// with the decoded key; member reads exactly one value.
func (s *Scanner) Object(member func(key []byte)) {
	if !s.open('{', '}', "expected an object") {
		return
	}
	for more := true; more; more = s.more('}') {
		s.Peek()
		at := s.i
		raw, _ := s.String()
		if s.Peek() != ':' {
			s.Fail("expected a colon")
			return
		}
		s.i++
		s.keyAt = at
		member(Unquote(raw))
	}
}

// Array reads an array and calls element for each of its elements; element
// reads exactly one value.
func (s *Scanner) Array(element func()) {
	if !s.open('[', ']', "expected an array") {
		return
	}
	for more := true; more; more = s.more(']') {
		element()
	}
}

// open enters an object or array; it is false when there is nothing inside.
func (s *Scanner) open(first, last byte, expected string) bool {
	if s.Peek() != first {
		s.Fail(expected)
		return false
	}
	if s.depth == maxDepth {
		s.Fail("nested too deeply")
		return false
	}
	s.i++
	if s.Peek() == last {
		s.i++
		return false
	}
	s.depth++
	return true
}

func (s *Scanner) more(last byte) bool {
	switch s.Peek() {
	case ',':
		s.i++
		return true
	case last:
		s.i++
		s.depth--
		return false
	}
	s.Fail("expected a comma or an end")
	return false
}

// String reads a string: what stands between its quotes, and the length in bytes
// of what that decodes to; of a broken string the length up to there.
func (s *Scanner) String() (raw []byte, size int64) {
	if s.Peek() != '"' {
		s.Fail("expected a string")
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
			s.Fail("control character in a string")
			return nil, int64(i - start - saved)
		}
		r, width := escape(b[i:])
		if width == 0 {
			s.Fail("bad escape in a string")
			return nil, int64(i - start - saved)
		}
		saved += width - utf8.RuneLen(r)
		i += width
	}
	s.i = len(b)
	s.Fail("unfinished string")
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

// Unquote decodes what stood between a valid string's quotes; without escapes
// it is raw itself.
func Unquote(raw []byte) []byte {
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

// Number reads a number and returns its spelling.
func (s *Scanner) Number() []byte {
	if c := s.Peek(); c != '-' && (c < '0' || c > '9') {
		s.Fail("expected a number")
		return nil
	}
	start := s.i
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if s.digits() == 0 {
		s.Fail("bad number")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		if s.i++; s.digits() == 0 {
			s.Fail("bad number")
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		if s.i++; s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			s.Fail("bad number")
		}
	}
	return s.b[start:s.i]
}

func (s *Scanner) digits() (n int) {
	for ; s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9'; n++ {
		s.i++
	}
	return n
}

// Literal reads true, false or null.
func (s *Scanner) Literal() string {
	for _, word := range [...]string{"true", "false", "null"} {
		if s.Peek() == word[0] && bytes.HasPrefix(s.b[s.i:], []byte(word)) {
			s.i += len(word)
			return word
		}
	}
	s.Fail("expected a value")
	return ""
}

// Null reads a null if one stands here.
func (s *Scanner) Null() bool { return s.Peek() == 'n' && s.Literal() != "" }

// Present reads any value and tells whether it is another one than null, be it
// broken.
func (s *Scanner) Present() bool {
	if s.Null() {
		return false
	}
	s.Skip()
	return true
}

// Skip reads any value and returns its compact size: the bytes of its shortest
// spelling with every string decoded. That is what a model reads of a schema,
// however the client indents and escapes it.
func (s *Scanner) Skip() (size int64) {
	switch c := s.Peek(); {
	case c == '{':
		size = 1
		s.Object(func(key []byte) { size += int64(len(key)) + 4 + s.Skip() })
		return max(size, 2)
	case c == '[':
		size = 1
		s.Array(func() { size += 1 + s.Skip() })
		return max(size, 2)
	case c == '"':
		_, size = s.String()
		return size + 2
	case c == '-' || c >= '0' && c <= '9':
		return int64(len(s.Number()))
	}
	return int64(len(s.Literal()))
}

// Text reads any value as text: a string is its decoded length, null nothing,
// anything else its compact size.
func (s *Scanner) Text() int64 {
	switch s.Peek() {
	case '"':
		_, size := s.String()
		return size
	case 'n':
		s.Literal()
		return 0
	}
	return s.Skip()
}

// ObjectOrSkip reads an object as Object does, and anything else as nothing.
func (s *Scanner) ObjectOrSkip(member func(key []byte)) {
	if s.Peek() == '{' {
		s.Object(member)
	} else {
		s.Skip()
	}
}

// ArrayOrSkip reads an array as Array does, and anything else as nothing.
func (s *Scanner) ArrayOrSkip(element func()) {
	if s.Peek() == '[' {
		s.Array(element)
	} else {
		s.Skip()
	}
}

// StringOrSkip reads a string, and anything else as none.
func (s *Scanner) StringOrSkip() []byte {
	if s.Peek() != '"' {
		s.Skip()
		return nil
	}
	raw, _ := s.String()
	return Unquote(raw)
}

// Writing is the size of the text in a string, or of all strings in a list of
// parts but for their types.
func (s *Scanner) Writing() (size int64) {
	switch s.Peek() {
	case '"':
		_, size = s.String()
	case '[':
		s.Array(func() { size += s.Writing() })
	case '{':
		s.Object(func(key []byte) {
			if string(key) == "type" {
				s.Skip()
			} else {
				size += s.Writing()
			}
		})
	default:
		s.Skip()
	}
	return size
}
