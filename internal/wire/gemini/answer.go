// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// tally is what the answer so far amounts to.
type tally struct {
	report      report
	outputBytes int64
	output      bool
	failed      bool
	stopped     bool // a candidate has its finishReason, or the prompt was blocked
	finished    bool
	searched    bool // the answer is grounded in a search
	model       string
}

// Whole is wire.Door's. One that breaks off, or is broken, shows the output up
// to there and nothing else.
func (Generate) Whole(body []byte, maxTokens int64) call.Observed {
	var t tally
	s := wire.NewScanner(body)
	t.read(&s, wire.CountLimit(maxTokens))
	s.End()
	if s.Err != nil {
		return call.Observed{OutputBytes: t.outputBytes, OutputSeen: t.output, Invalid: true}
	}
	t.finished = !t.failed
	return t.observed()
}

// read reads an answer or a chunk: both have one shape. Some servers answer
// errors in an array.
func (t *tally) read(s *wire.Scanner, limit int64) {
	if s.Peek() == '[' {
		s.Array(func() { t.read(s, limit) })
		return
	}
	before, seen := t.outputBytes, t.output
	failed := false
	s.Object(func(key []byte) {
		switch string(key) {
		case "candidates":
			s.ArrayOrSkip(func() { t.candidate(s) })
		case "usageMetadata":
			t.report.read(s, limit)
		case "promptFeedback":
			s.ObjectOrSkip(func(key []byte) {
				t.stopped = t.stopped || string(key) == "blockReason"
				s.Skip()
			})
		case "modelVersion":
			t.model = string(s.StringOrSkip())
		case "error":
			failed = s.Present() || failed
		default:
			s.Skip()
		}
	})
	if failed { // an error's text is never output (RES-4)
		t.failed, t.outputBytes, t.output = true, before, seen
	}
}

func (t *tally) candidate(s *wire.Scanner) {
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "content":
			s.ObjectOrSkip(func(key []byte) {
				if string(key) == "parts" {
					s.ArrayOrSkip(func() { t.part(s) })
				} else {
					s.Skip()
				}
			})
		case "finishReason":
			t.stopped = s.Present() || t.stopped
		case "groundingMetadata":
			s.ObjectOrSkip(func(key []byte) {
				if string(key) == "webSearchQueries" {
					s.ArrayOrSkip(func() { t.searched = true; s.Skip() })
				} else {
					s.Skip()
				}
			})
		default:
			s.Skip()
		}
	})
}

// part reads the output in a part: text, thoughts, a function's name and
// arguments, code. What the provider's own tools answer is input.
func (t *tally) part(s *wire.Scanner) {
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "text":
			t.wrote(s.Text())
		case "functionCall", "executableCode":
			s.ObjectOrSkip(func(key []byte) {
				switch string(key) {
				case "name", "args", "code":
					t.wrote(s.Text())
				default:
					s.Skip()
				}
			})
		case "inlineData":
			t.output = true
			s.Skip()
		default:
			s.Skip()
		}
	})
}

func (t *tally) wrote(bytes int64) {
	t.outputBytes += bytes
	t.output = t.output || bytes > 0
}

// observed judges the tally. Output that no figure speaks of was cut off before
// its figures came: it is estimated (RES-4).
func (t *tally) observed() call.Observed {
	o := call.Observed{OutputBytes: t.outputBytes, OutputSeen: t.output, ErrorSeen: t.failed, Finished: t.finished, Model: t.model}
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
	if t.output && usage.OutputTotal() == 0 {
		usage.Output = call.TextTokens(t.outputBytes, 0)
		o.Mark(call.MarkEstimated)
	}
	if t.searched {
		usage.Units.Tools.Set(call.WebSearch, 1) // billed by the grounded request
	}
	o.Usage, o.Reported = usage, true
	if !consistent {
		o.Mark(call.MarkInconsistent)
	}
	return o
}
