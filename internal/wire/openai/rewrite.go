// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Rewrite is what the gateway changes in a request that Decode has accepted.
// The zero value changes nothing.
type Rewrite struct {
	// Model is the provider's own name of the model; empty leaves the client's.
	Model string
	// OutputBound, when above 0, is the most output tokens of one completion: a
	// larger value in the body is lowered to it, whichever member carries it.
	OutputBound int64
	// OutputField is the member to write OutputBound in when the body bounds
	// nothing (EST-2); empty means max_tokens.
	OutputField string
	// AskStreamUsage asks the provider for the usage of its stream (DIS-6).
	AskStreamUsage bool
}

// splice replaces body[start:end] by text.
type splice struct {
	start, end int
	text       string
}

// Rewrite returns body with r applied. Only the values that r names change and
// only members that are missing are added, at the end; every other byte stays
// as it came and in its order. body is not modified, and returned itself when
// there is nothing to change.
func (Chat) Rewrite(body []byte, r Rewrite) ([]byte, error) {
	w := rewriter{scanner: scanner{b: body}, want: r}
	if w.want.OutputField == "" {
		w.want.OutputField = "max_tokens"
	}
	w.object(w.member)
	w.end()
	if w.err != nil {
		return nil, fmt.Errorf("rewrite the request: %w", w.err)
	}
	w.add()
	return apply(body, w.splices), nil
}

type rewriter struct {
	scanner
	want    Rewrite
	splices []splice
	tail    int // where the last member ends, 0 before the first

	modelSeen, optionsSeen bool
	boundSeen              bool
	emptyBound             splice // a null where the bound may stand
}

func (w *rewriter) member(key []byte) {
	w.peek()
	start := w.i
	switch name := string(key); {
	case name == "model" && w.want.Model != "":
		w.skip()
		w.modelSeen = true
		w.replace(start, quote(w.want.Model))
	case w.want.OutputBound > 0 && (name == "max_tokens" || name == "max_completion_tokens" || name == w.want.OutputField):
		w.bound(name, start)
	case name == "stream_options" && w.want.AskStreamUsage:
		w.optionsSeen = true
		w.options(start)
	default:
		w.skip()
	}
	w.tail = w.i
}

func (w *rewriter) replace(start int, text string) {
	w.splices = append(w.splices, splice{start, w.i, text})
}

func (w *rewriter) bound(name string, start int) {
	bound := strconv.FormatInt(w.want.OutputBound, 10)
	if w.null() {
		if name == w.want.OutputField {
			w.emptyBound = splice{start, w.i, bound}
		}
		return
	}
	n, err := strconv.ParseInt(string(w.number()), 10, 64)
	w.boundSeen = true
	if err != nil || n > w.want.OutputBound {
		w.replace(start, bound)
	}
}

func (w *rewriter) options(start int) {
	const asked = `"include_usage":true`
	if w.null() {
		w.replace(start, "{"+asked+"}")
		return
	}
	seen, tail := false, 0
	w.object(func(key []byte) {
		w.peek()
		at := w.i
		w.skip()
		tail = w.i
		if string(key) == "include_usage" {
			seen = true
			if string(w.b[at:w.i]) != "true" {
				w.replace(at, "true")
			}
		}
	})
	switch {
	case seen || w.err != nil:
	case tail == 0:
		w.replace(start, "{"+asked+"}")
	default:
		w.splices = append(w.splices, splice{tail, tail, "," + asked})
	}
}

// add appends what the body did not have.
func (w *rewriter) add() {
	at, comma := w.tail, ","
	if at == 0 {
		w.i = 0
		w.peek()
		at, comma = w.i+1, ""
	}
	text := ""
	put := func(member string) { text, comma = text+comma+member, "," }
	if w.want.Model != "" && !w.modelSeen {
		put(`"model":` + quote(w.want.Model))
	}
	if w.want.OutputBound > 0 && !w.boundSeen {
		if w.emptyBound.text != "" {
			w.splices = append(w.splices, w.emptyBound)
		} else {
			put(quote(w.want.OutputField) + ":" + strconv.FormatInt(w.want.OutputBound, 10))
		}
	}
	if w.want.AskStreamUsage && !w.optionsSeen {
		put(`"stream_options":{"include_usage":true}`)
	}
	if text != "" {
		w.splices = append(w.splices, splice{at, at, text})
	}
}

// apply makes the changes, which do not overlap, in one copy.
func apply(body []byte, splices []splice) []byte {
	if len(splices) == 0 {
		return body
	}
	slices.SortStableFunc(splices, func(a, b splice) int { return a.start - b.start })
	size := len(body)
	for _, s := range splices {
		size += len(s.text)
	}
	out, from := make([]byte, 0, size), 0
	for _, s := range splices {
		out = append(append(out, body[from:s.start]...), s.text...)
		from = s.end
	}
	return append(out, body[from:]...)
}

// quote is s as a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // no string fails to marshal
		return `""`
	}
	return string(b)
}
