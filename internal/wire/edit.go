// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"slices"
)

// Span is a range of bytes.
type Span struct{ Start, End int }

// Cutter finds what to cut out of an object's text so that it reads as if
// members had never been there: each with the comma before it, or, when nothing
// that stays stands before it, with the comma behind.
type Cutter struct {
	// Spans is what to cut, in order.
	Spans []Span
	last  int  // where the previous member ended
	kept  bool // a member that stays has passed
	open  bool // the last span reaches to the next key
}

// Enter is called when a member begins.
func (c *Cutter) Enter(keyAt int) {
	if c.open {
		c.Spans[len(c.Spans)-1].End = keyAt
		c.open = false
	}
}

// Leave is called when it has ended.
func (c *Cutter) Leave(keyAt, end int, remove bool) {
	switch {
	case !remove:
		c.kept = true
	case c.kept:
		c.Spans = append(c.Spans, Span{c.last, end})
	default:
		c.Spans = append(c.Spans, Span{keyAt, end})
		c.open = true
	}
	c.last = end
}

// Splice replaces the bytes from Start to End by Text.
type Splice struct {
	Start, End int
	Text       string
}

// Replace is the splice that replaces the bytes from start to end by text.
func Replace(start, end int, text string) Splice { return Splice{start, end, text} }

// Apply makes the changes, which do not overlap, in one copy.
func Apply(body []byte, splices []Splice) []byte {
	if len(splices) == 0 {
		return body
	}
	slices.SortStableFunc(splices, func(a, b Splice) int { return a.Start - b.Start })
	size := len(body)
	for _, s := range splices {
		size += len(s.Text)
	}
	out, from := make([]byte, 0, size), 0
	for _, s := range splices {
		out = append(append(out, body[from:s.Start]...), s.Text...)
		from = s.End
	}
	return append(out, body[from:]...)
}

// Quote is s as a JSON string.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // no string fails to marshal
		return `""`
	}
	return string(b)
}
