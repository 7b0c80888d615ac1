// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// Whole is wire.Door's. One that breaks off, or is broken, shows the output up
// to there and nothing else.
func (Messages) Whole(body []byte, maxTokens int64) call.Observed {
	var t tally
	s := wire.NewScanner(body)
	kind := t.message(&s, wire.CountLimit(maxTokens))
	s.End()
	if s.Err != nil {
		return call.Observed{OutputBytes: t.outputBytes, OutputSeen: t.output, Invalid: true}
	}
	t.failed = t.failed || kind == "error"
	t.finished = kind == "message" && !t.failed
	return t.observed()
}

// tally is what the answer so far amounts to.
type tally struct {
	report      report
	outputBytes int64
	output      bool
	failed      bool
	finished    bool
	model       string
	kept        []call.Kept
}

// message reads an answer, or the message that opens a stream, and returns its
// type.
func (t *tally) message(s *wire.Scanner, limit int64) (kind string) {
	s.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(s.StringOrSkip())
		case "model":
			t.model = string(s.StringOrSkip())
		case "content":
			s.ArrayOrSkip(func() { t.block(s) })
		case "usage":
			t.report.read(s, limit)
		case "container":
			t.container(s)
		case "error":
			t.failed = s.Present() || t.failed
		default:
			s.Skip()
		}
	})
	return kind
}

// block reads the output in a block of content: text, thinking, a tool's name
// and input. Results of the provider's own tools are input.
func (t *tally) block(s *wire.Scanner) {
	var bytes int64
	var kind string
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(s.StringOrSkip())
		case "text", "thinking", "name", "input", "data":
			if s.Peek() == '{' {
				if size := s.Skip(); size > len64("{}") {
					bytes += size
				}
				return
			}
			bytes += s.Text()
		case "content":
			t.files(s, maxResultDepth)
		default:
			s.Skip()
		}
	})
	if !isResult(kind) {
		t.wrote(bytes)
	}
}

func len64(s string) int64 { return int64(len(s)) }

// isResult: a block in which the provider's own tool answers.
func isResult(kind string) bool {
	const suffix = "_result"
	return len(kind) > len(suffix) && kind[len(kind)-len(suffix):] == suffix
}

func (t *tally) wrote(bytes int64) {
	t.outputBytes += bytes
	t.output = t.output || bytes > 0
}

// observed judges the tally. A report of nothing at all beside output is no
// report: the placeholder of a stream that was cut before its real figures.
func (t *tally) observed() call.Observed {
	o := call.Observed{OutputBytes: t.outputBytes, OutputSeen: t.output, ErrorSeen: t.failed, Finished: t.finished, Model: t.model, Kept: t.kept}
	if !t.report.seen {
		return o
	}
	if !t.report.fit() {
		o.Mark(call.MarkAbsurd)
		return o
	}
	usage, consistent := t.report.usage()
	if usage.Tokens() == 0 && t.output {
		o.Mark(call.MarkAbsurd)
		return o
	}
	o.Usage, o.Reported = usage, true
	if !consistent {
		o.Mark(call.MarkInconsistent)
	}
	if t.report.other {
		o.Mark(call.MarkOtherModel)
	}
	return o
}
