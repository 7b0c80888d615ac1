// SPDX-License-Identifier: Apache-2.0

package wire

// ArrayFeeder cuts a stream that is one JSON array into its elements, and passes
// every byte on as it came. It is not safe for concurrent use.
type ArrayFeeder struct {
	take     func(element []byte)
	max      int
	err      error
	events   int64
	partial  []byte // an element whose end has not come, and what stands before it
	start    int    // of the element in it
	depth    int
	text     bool // within a string
	escaped  bool // after a backslash in it
	elements int
	opened   bool // the array's bracket has come
	bare     bool // there is none: one object, which is all there is
	closed   bool // and its last one
}

// NewArrayFeeder begins a stream; take reads each element, which is valid until
// the next one. maxBytes bounds one element; below 1 means DefaultMaxEventBytes.
func NewArrayFeeder(maxBytes int, take func(element []byte)) *ArrayFeeder {
	if maxBytes < 1 {
		maxBytes = DefaultMaxEventBytes
	}
	return &ArrayFeeder{take: take, max: maxBytes}
}

// Feed reads p, the provider's next bytes, and appends to dst what the client
// gets: whole elements with what stands between them. The error is
// ErrEventTooLarge, and stays.
func (s *ArrayFeeder) Feed(dst, p []byte) ([]byte, error) {
	if s.err != nil {
		return dst, s.err
	}
	for _, c := range p {
		if len(s.partial) == s.max {
			s.err, s.partial = ErrEventTooLarge, nil
			return dst, s.err
		}
		s.partial = append(s.partial, c)
		if s.step(c) {
			s.events++
			s.elements++
			s.take(s.partial[s.start:])
		} else if s.bare || s.depth > 1 || s.text {
			continue
		} else if c != '[' && c != ']' {
			continue // white space and commas go with the next element
		}
		dst = append(dst, s.partial...)
		s.partial = s.partial[:0]
	}
	return dst, nil
}

// step follows the nesting; true: an element has ended.
func (s *ArrayFeeder) step(c byte) bool {
	switch {
	case s.escaped:
		s.escaped = false
	case s.text:
		s.escaped, s.text = c == '\\', c != '"'
	case c == '"':
		s.text = true
	case c == '{' || c == '[':
		if s.depth++; s.depth == 1 && !s.opened {
			s.opened, s.bare = c == '[', c == '{'
		}
		if s.depth == s.level() {
			s.start = len(s.partial) - 1
		}
	case c == '}' || c == ']':
		s.depth--
		s.closed = s.closed || s.depth == 0
		return s.depth == s.level()-1
	}
	return false
}

// level is how deep an element stands.
func (s *ArrayFeeder) level() int {
	if s.bare {
		return 1
	}
	return 2
}

// Close appends what is left of a stream that has ended. An array that the
// provider has left open after an element is closed.
func (s *ArrayFeeder) Close(dst []byte) []byte {
	switch {
	case s.err != nil:
	case s.opened && !s.bare && s.depth == 1:
		dst = append(dst, ']') // what follows a comma has not come
	case s.closed || s.depth <= 1:
		dst = append(dst, s.partial...)
	}
	s.partial = nil
	return dst
}

// Events is how many elements have been read.
func (s *ArrayFeeder) Events() int64 { return s.events }

// Err is what ended the stream, nil while it goes on.
func (s *ArrayFeeder) Err() error { return s.err }

// Last is an element of ours that ends an array which has broken off; what Feed
// has given makes one JSON text with it.
func (s *ArrayFeeder) Last(element []byte) []byte {
	var out []byte
	switch {
	case s.closed:
		return nil // nothing can follow
	case !s.opened:
		out = append(out, '[')
	case s.elements > 0:
		out = append(out, ',')
	}
	return append(append(out, element...), ']')
}
