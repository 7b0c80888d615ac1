// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// maxShown bounds how many problems an error's text lists.
const maxShown = 100

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	File string // empty: the environment
	Line int    // 0: the file as a whole
	Path string // "keys[0].caps.day", or the variable's name
	Text string
}

// String is "FILE:LINE: PATH: TEXT".
func (p Problem) String() string {
	place := p.File
	switch {
	case place == "":
		place = "environment"
	case p.Line > 0:
		place = fmt.Sprintf("%s:%d", place, p.Line)
	}
	if p.Path != "" {
		place += ": " + p.Path
	}
	return place + ": " + p.Text
}

// Problems is all that is wrong with a configuration, by line.
type Problems []Problem

// Error is one line for each problem.
func (p Problems) Error() string {
	var text strings.Builder
	for i, problem := range p {
		if i == maxShown {
			fmt.Fprintf(&text, "\nand %d more", len(p)-maxShown)
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(problem.String())
	}
	return text.String()
}

// Err is p as an error: nil when there is none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// located puts a document's problems into a file, by line, each once.
func located(file string, problems document.Problems) Problems {
	all := make(Problems, 0, len(problems))
	for _, p := range problems {
		all = append(all, Problem{File: file, Line: p.Line, Path: p.Path, Text: p.Text})
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return slices.Compact(all)
}
