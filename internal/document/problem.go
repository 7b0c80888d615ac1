// SPDX-License-Identifier: Apache-2.0

// Package document reads documents strictly, whether they came as JSON or as
// YAML: every field is asked for by name, whatever nobody asked for is an
// error, and all errors are told, each with its path and line.
//
// It knows the shape of documents, not what their fields mean; the packages
// that own a kind of object say that.
package document

import (
	"fmt"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	Path string // "caps.day", "keys[0].name"; empty for the whole document
	Line int    // 0 when the document has no lines
	Text string // what is wrong, and what to write instead
}

// String is "PATH: TEXT".
func (p Problem) String() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// Problems are all that is wrong with a document, in its order.
type Problems []Problem

// Error joins the problems with semicolons.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i := range p {
		texts[i] = p[i].String()
	}
	return strings.Join(texts, "; ")
}

// Add appends a problem without a line.
func (p *Problems) Add(path, format string, args ...any) {
	*p = append(*p, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// Err is p as an error: nil when there is none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Join is the path of a member below path; either may be empty.
func Join(path, member string) string {
	if path == "" || member == "" {
		return path + member
	}
	return path + "." + member
}

// maxQuoted bounds hostile input inside an error.
const maxQuoted = 64

// Quote shows text inside an error, shortened and without control characters.
func Quote(text string) string {
	if len(text) > maxQuoted {
		return strconv.QuoteToASCII(text[:maxQuoted]) + "…"
	}
	return strconv.QuoteToASCII(text)
}
