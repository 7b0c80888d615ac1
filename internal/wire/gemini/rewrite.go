// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/wire"
)

// Rewrite is wire.Door's. The model stands in the path; a body that repeats it
// gets the provider's name of it.
func (Generate) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) { return rewrite(body, r) }

func rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	w := rewriter{Scanner: wire.NewScanner(body), want: r}
	w.Object(w.member)
	w.End()
	if w.Err != nil {
		return nil, fmt.Errorf("rewrite the request: %w", w.Err)
	}
	if r.OutputBound > 0 && !w.bounded {
		w.add()
	}
	return wire.Apply(body, w.splices), nil
}

type rewriter struct {
	wire.Scanner
	want    wire.Rewrite
	splices []wire.Splice
	tail    int  // where the last member ends, 0 before the first
	bounded bool // the bound stands somewhere
}

func (w *rewriter) replace(start int, text string) {
	w.splices = append(w.splices, wire.Replace(start, w.At(), text))
}

func (w *rewriter) member(key []byte) {
	w.Peek()
	start := w.At()
	switch string(key) {
	case "model":
		named := string(w.StringOrSkip())
		if w.want.Model != "" {
			prefix := ""
			if strings.HasPrefix(named, "models/") && !strings.Contains(w.want.Model, "/") {
				prefix = "models/"
			}
			w.replace(start, wire.Quote(prefix+w.want.Model))
		}
	case "generateContentRequest", "generate_content_request":
		if w.Peek() == '{' {
			w.Object(w.member)
		} else {
			w.Skip()
		}
	case "requests":
		w.ArrayOrSkip(func() { w.ObjectOrSkip(w.member) })
	case "generationConfig", "generation_config":
		w.config(start)
	default:
		w.Skip()
	}
	w.tail = w.At()
}

// config lowers the bound in a configuration, or puts it in.
func (w *rewriter) config(start int) {
	if w.want.OutputBound <= 0 {
		w.Skip()
		return
	}
	bound := strconv.FormatInt(w.want.OutputBound, 10)
	w.bounded = true
	if w.Null() {
		w.replace(start, `{"maxOutputTokens":`+bound+`}`)
		return
	}
	seen, tail := false, 0
	w.Object(func(key []byte) {
		w.Peek()
		at := w.At()
		if name := string(key); name != "maxOutputTokens" && name != "max_output_tokens" {
			w.Skip()
		} else if seen = true; w.Null() {
			w.replace(at, bound)
		} else if n, err := strconv.ParseInt(string(w.Number()), 10, 64); err != nil || n > w.want.OutputBound {
			w.replace(at, bound)
		}
		tail = w.At()
	})
	switch {
	case seen || w.Err != nil:
	case tail == 0:
		w.replace(start, `{"maxOutputTokens":`+bound+`}`)
	default:
		w.splices = append(w.splices, wire.Replace(tail, tail, `,"maxOutputTokens":`+bound))
	}
}

// add appends a configuration to a body without one.
func (w *rewriter) add() {
	at, comma := w.tail, ","
	if at == 0 {
		w.Restart()
		w.Peek()
		at, comma = w.At()+1, ""
	}
	text := comma + `"generationConfig":{"maxOutputTokens":` + strconv.FormatInt(w.want.OutputBound, 10) + `}`
	w.splices = append(w.splices, wire.Replace(at, at, text))
}
