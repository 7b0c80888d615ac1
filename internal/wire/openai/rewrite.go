// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"fmt"
	"strconv"

	"github.com/weirhq/weir/internal/wire"
)

// Rewrite returns body with r applied. Only the values that r names change and
// only members that are missing are added, at the end; every other byte stays
// as it came and in its order. body is not modified, and returned itself when
// there is nothing to change.
func (Chat) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	w := rewriter{Scanner: wire.NewScanner(body), want: r}
	if w.want.OutputField == "" {
		w.want.OutputField = "max_tokens"
	}
	w.Object(w.member)
	w.End()
	if w.Err != nil {
		return nil, fmt.Errorf("rewrite the request: %w", w.Err)
	}
	w.add()
	return wire.Apply(body, w.splices), nil
}

type rewriter struct {
	wire.Scanner
	want    wire.Rewrite
	splices []wire.Splice
	tail    int // where the last member ends, 0 before the first

	modelSeen, optionsSeen bool
	boundSeen              bool
	emptyBound             wire.Splice // a null where the bound may stand
}

func (w *rewriter) member(key []byte) {
	w.Peek()
	start := w.At()
	switch name := string(key); {
	case name == "model" && w.want.Model != "":
		w.Skip()
		w.modelSeen = true
		w.replace(start, wire.Quote(w.want.Model))
	case w.want.OutputBound > 0 && (name == "max_tokens" || name == "max_completion_tokens" || name == w.want.OutputField):
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
	w.splices = append(w.splices, wire.Replace(start, w.At(), text))
}

func (w *rewriter) bound(name string, start int) {
	bound := strconv.FormatInt(w.want.OutputBound, 10)
	if w.Null() {
		if name == w.want.OutputField {
			w.emptyBound = wire.Replace(start, w.At(), bound)
		}
		return
	}
	n, err := strconv.ParseInt(string(w.Number()), 10, 64)
	w.boundSeen = true
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
		w.splices = append(w.splices, wire.Replace(tail, tail, ","+asked))
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
		put(`"model":` + wire.Quote(w.want.Model))
	}
	if w.want.OutputBound > 0 && !w.boundSeen {
		if w.emptyBound.Text != "" {
			w.splices = append(w.splices, w.emptyBound)
		} else {
			put(wire.Quote(w.want.OutputField) + ":" + strconv.FormatInt(w.want.OutputBound, 10))
		}
	}
	if w.want.AskStreamUsage && !w.optionsSeen {
		put(`"stream_options":{"include_usage":true}`)
	}
	if text != "" {
		w.splices = append(w.splices, wire.Replace(at, at, text))
	}
}
