// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"slices"
	"strconv"
)

// RewriteObject applies r to a request that is a JSON object with its model and
// output bound at the top. fields are the members that may bound the output; the
// first is written when r names none and the body bounds nothing.
func RewriteObject(body []byte, r Rewrite, fields ...string) ([]byte, error) {
	w := rewriter{Scanner: NewScanner(body), want: r, fields: fields}
	if w.want.OutputField == "" {
		w.want.OutputField = fields[0]
	}
	w.Object(w.member)
	w.End()
	if w.Err != nil {
		return nil, fmt.Errorf("rewrite the request: %w", w.Err)
	}
	w.add()
	return Apply(body, w.splices), nil
}

type rewriter struct {
	Scanner
	want    Rewrite
	fields  []string // that may bound the output
	splices []Splice
	tail    int // where the last member ends, 0 before the first

	modelSeen, optionsSeen bool
	boundSeen              bool
	emptyBound             Splice // a null where the bound may stand
}

func (w *rewriter) member(key []byte) {
	w.Peek()
	start := w.At()
	switch name := string(key); {
	case name == "model" && w.want.Model != "":
		w.Skip()
		w.modelSeen = true
		w.replace(start, Quote(w.want.Model))
	case w.want.OutputBound > 0 && (slices.Contains(w.fields, name) || name == w.want.OutputField):
		w.bound(name, start)
	case name == "stream_options" && w.want.AskStreamUsage:
		w.optionsSeen = true
		w.options(start)
	default:
		w.Skip()
	}
	w.tail = w.At()
}

func (w *rewriter) replace(start int, text string) {
	w.splices = append(w.splices, Replace(start, w.At(), text))
}

func (w *rewriter) bound(name string, start int) {
	bound := strconv.FormatInt(w.want.OutputBound, 10)
	if w.Null() {
		if name == w.want.OutputField {
			w.emptyBound = Replace(start, w.At(), bound)
		}
		return
	}
	w.boundSeen = true
	w.Skip() // a row's own field may have been sent with any type
	n, err := strconv.ParseInt(string(w.Slice(start, w.At())), 10, 64)
	if err != nil || n > w.want.OutputBound {
		w.replace(start, bound)
	}
}

func (w *rewriter) options(start int) {
	const asked = `"include_usage":true`
	if w.Null() {
		w.replace(start, "{"+asked+"}")
		return
	}
	seen, tail := false, 0
	w.Object(func(key []byte) {
		w.Peek()
		at := w.At()
		w.Skip()
		tail = w.At()
		if string(key) == "include_usage" {
			seen = true
			if string(w.Slice(at, w.At())) != "true" {
				w.replace(at, "true")
			}
		}
	})
	switch {
	case seen || w.Err != nil:
	case tail == 0:
		w.replace(start, "{"+asked+"}")
	default:
		w.splices = append(w.splices, Replace(tail, tail, ","+asked))
	}
}

// add appends what the body did not have.
func (w *rewriter) add() {
	at, comma := w.tail, ","
	if at == 0 {
		w.Restart()
		w.Peek()
		at, comma = w.At()+1, ""
	}
	text := ""
	put := func(member string) { text, comma = text+comma+member, "," }
	if w.want.Model != "" && !w.modelSeen {
		put(`"model":` + Quote(w.want.Model))
	}
	if w.want.OutputBound > 0 && !w.boundSeen {
		if w.emptyBound.Text != "" {
			w.splices = append(w.splices, w.emptyBound)
		} else {
			put(Quote(w.want.OutputField) + ":" + strconv.FormatInt(w.want.OutputBound, 10))
		}
	}
	if w.want.AskStreamUsage && !w.optionsSeen {
		put(`"stream_options":{"include_usage":true}`)
	}
	if text != "" {
		w.splices = append(w.splices, Replace(at, at, text))
	}
}
