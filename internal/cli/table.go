// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// align is how a column's cells stand below each other.
type align uint8

const (
	left  align = iota
	right       // whole numbers
	point       // decimals: one decimal point below the other
)

const gutter = "  "

// column is one column of a table.
type column struct {
	head  string
	align align
}

// table is what people read. Its cells come from stores and providers: no byte
// of them reaches the terminal as a control character.
type table struct {
	columns []column
	rows    [][]string
	indent  string
	// empty is said in place of a table without rows.
	empty string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write renders the table; a column without any content is left out.
func (t *table) write(w io.Writer) error {
	if len(t.rows) == 0 {
		return line(w, t.indent+t.empty)
	}
	var shown [][]string
	headed := false
	for i, c := range t.columns {
		cells, filled := t.column(i)
		if !filled {
			continue
		}
		headed = headed || c.head != ""
		shown = append(shown, justify(c, cells))
	}
	from := 0
	if !headed {
		from = 1
	}
	var out strings.Builder
	for row := from; row <= len(t.rows); row++ {
		var text strings.Builder
		for i, cells := range shown {
			if i > 0 {
				text.WriteString(gutter)
			}
			text.WriteString(cells[row])
		}
		out.WriteString(strings.TrimRight(t.indent+text.String(), " "))
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// column returns the printable cells of a column, its head first.
func (t *table) column(i int) (cells []string, filled bool) {
	cells = append(cells, t.columns[i].head)
	for _, row := range t.rows {
		cell := ""
		if i < len(row) {
			cell = printable(row[i])
		}
		filled = filled || cell != ""
		cells = append(cells, cell)
	}
	return cells, filled
}

// justify pads the cells of a column to one width.
func justify(c column, cells []string) []string {
	padded := append([]string(nil), cells...)
	if c.align == point {
		pointed := alignPoints(padded[1:])
		copy(padded[1:], pointed)
	}
	width := 0
	for _, cell := range padded {
		width = max(width, utf8.RuneCountInString(cell))
	}
	for i, cell := range padded {
		space := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
		if c.align == left {
			padded[i] = cell + space
		} else {
			padded[i] = space + cell
		}
	}
	return padded
}

// alignPoints pads decimals behind the point, so that right-aligned they stand
// point below point.
func alignPoints(cells []string) []string {
	places := func(s string) int {
		if _, fraction, ok := strings.Cut(s, "."); ok {
			return 1 + len(fraction)
		}
		return 0
	}
	most := 0
	for _, cell := range cells {
		most = max(most, places(cell))
	}
	aligned := make([]string, len(cells))
	for i, cell := range cells {
		if cell != "" {
			cell += strings.Repeat(" ", most-places(cell))
		}
		aligned[i] = cell
	}
	return aligned
}

// printable replaces what a terminal would act upon.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func line(w io.Writer, text string) error {
	_, err := io.WriteString(w, text+"\n")
	return err
}
