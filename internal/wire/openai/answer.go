// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// Whole reads a complete answer: its usage, the bytes of its output over all
// choices, the tier that was served. One that breaks off, or is broken, shows
// the output up to there and nothing else. maxTokens is the largest count to believe, ten times the model's
// context (USE-1); below 1 means 10^9.
func (Chat) Whole(body []byte, maxTokens int64) call.Observed {
	var total tally
	r, ok := readChat(body, wire.CountLimit(maxTokens), &total.report, nil)
	if !ok {
		// It broke off, or is broken: what arrived of the output is charged (RES-4).
		return call.Observed{OutputBytes: r.outputBytes, OutputSeen: r.output, Invalid: true}
	}
	total.take(&r)
	total.finished = r.choices > 0 && !r.failed
	return total.observed()
}

// tally is what the answer so far amounts to.
type tally struct {
	report      report
	outputBytes int64
	output      bool
	failed      bool
	stopped     bool
	finished    bool
	cited       bool // a page of the web is named as a source
	model, tier string
	spoken      []call.Kept
}

func (t *tally) take(r *reading) {
	t.report = r.report
	t.outputBytes += r.outputBytes
	t.output = t.output || r.output
	t.failed = t.failed || r.failed
	t.stopped = t.stopped || r.stopped
	t.cited = t.cited || r.cited
	for _, k := range r.spoken {
		t.spoken = call.AppendKept(t.spoken, k.Kind, k.ID)
	}
	if len(r.model) > 0 && string(r.model) != t.model {
		t.model = string(r.model)
	}
	if len(r.tier) > 0 && string(r.tier) != t.tier {
		t.tier = string(r.tier)
	}
}

// observed judges the tally. A report of nothing at all beside output is no
// report: the placeholder of a stream that was cut before its real figures.
func (t *tally) observed() call.Observed {
	o := call.Observed{
		OutputBytes: t.outputBytes, OutputSeen: t.output, ErrorSeen: t.failed,
		Finished: t.finished, Model: t.model, Kept: t.spoken,
	}
	if !t.report.seen {
		return o
	}
	o.Cost = t.report.cost
	if !t.report.fit() {
		o.Mark(call.MarkAbsurd)
		return o
	}
	usage, consistent := t.report.usage()
	if usage.Tokens() == 0 && t.output {
		o.Mark(call.MarkAbsurd)
		return o
	}
	usage.ServiceTier = t.tier
	if t.cited && !t.report.given(webSearches) {
		usage.Units.Tools.Set(call.WebSearch, 1) // OpenAI searches once, bills it and doesn't count it
	}
	o.Usage, o.Reported = usage, true
	if !consistent {
		o.Mark(call.MarkInconsistent)
	}
	return o
}

// reading is what one JSON text, an answer or a chunk, holds.
type reading struct {
	model, tier []byte
	spoken      []call.Kept
	report      report // the usage so far, with this text's figures laid over it
	choices     int
	outputBytes int64
	output      bool // output of any kind, with or without text
	stopped     bool // a choice has a finish_reason
	failed      bool // an error stands in it
	cited       bool
	usage       bool // usage is there and not null
	removal     []wire.Span
}

// readChat reads an answer or chunk of chat completions. before is the usage
// that earlier chunks gave, spans a buffer for the reading's removal. ok is
// false when text is no JSON object; then nothing of it counts but the output of
// a whole answer up to there. Output that stands beside an error is the error's
// text, which is never output (RES-4).
func readChat(text []byte, limit int64, before *report, spans []wire.Span) (r reading, ok bool) {
	s := wire.NewScanner(text)
	r.report = *before
	cut := wire.Cutter{Spans: spans[:0]}
	s.Object(func(key []byte) {
		at := s.KeyAt()
		cut.Enter(at)
		switch string(key) {
		case "model":
			r.model = s.StringOrSkip()
		case "service_tier":
			r.tier = s.StringOrSkip()
		case "choices":
			s.ArrayOrSkip(func() { r.choice(&s) })
		case "usage":
			r.usage = s.Peek() != 'n' || r.usage
			r.report.read(&s, limit)
		case "x_groq":
			r.groq(&s, limit)
		case "error":
			r.failure(&s)
		case "object":
			r.failed = string(s.StringOrSkip()) == "error" || r.failed
		default:
			s.Skip()
		}
		cut.Leave(at, s.At(), string(key) == "usage")
	})
	s.End()
	r.removal = cut.Spans
	if r.failed {
		r.outputBytes, r.output = 0, false
	}
	return r, s.Err == nil
}

// groq reads Groq's own member, which has the usage whether it was asked or not.
func (r *reading) groq(s *wire.Scanner, limit int64) {
	s.ObjectOrSkip(func(key []byte) {
		if string(key) == "usage" {
			r.report.read(s, limit)
		} else {
			s.Skip()
		}
	})
}

func (r *reading) failure(s *wire.Scanner) {
	r.failed = s.Present() || r.failed
}

func (r *reading) choice(s *wire.Scanner) {
	r.choices++
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "message", "delta":
			r.message(s)
		case "text":
			r.wrote(s.Text())
		case "finish_reason":
			r.stopped = s.Present() || r.stopped
		case "error":
			r.failure(s)
		default:
			s.Skip()
		}
	})
}

// message reads the output in a message or delta. Visible reasoning goes by two
// names, and servers that send both send the same text twice.
func (r *reading) message(s *wire.Scanner) {
	var reasoning, reasoningContent int64
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "content", "refusal":
			r.wrote(s.Writing())
		case "reasoning":
			reasoning = s.Writing()
		case "reasoning_content":
			reasoningContent = s.Writing()
		case "tool_calls":
			s.ArrayOrSkip(func() { r.toolCall(s) })
		case "function_call":
			r.function(s)
		case "audio":
			r.audio(s)
		case "images":
			s.ArrayOrSkip(func() { r.output = true; s.Skip() })
		case "annotations":
			s.ArrayOrSkip(func() { r.annotation(s) })
		default:
			s.Skip()
		}
	})
	r.wrote(max(reasoning, reasoningContent))
}

func (r *reading) annotation(s *wire.Scanner) {
	s.ObjectOrSkip(func(key []byte) {
		if string(key) == "type" {
			r.cited = string(s.StringOrSkip()) == "url_citation" || r.cited
		} else {
			s.Skip()
		}
	})
}

func (r *reading) wrote(bytes int64) {
	r.outputBytes += bytes
	r.output = r.output || bytes > 0
}

func (r *reading) toolCall(s *wire.Scanner) {
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "function", "custom":
			r.function(s)
		default:
			s.Skip()
		}
	})
}

func (r *reading) function(s *wire.Scanner) {
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "name", "arguments", "input":
			r.wrote(s.Text())
		default:
			s.Skip()
		}
	})
}

// audio reads spoken output: its transcript is the text of it.
func (r *reading) audio(s *wire.Scanner) {
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "id":
			r.spoken = call.AppendKept(r.spoken, call.KeptAudio, string(s.StringOrSkip()))
		case "transcript":
			r.wrote(s.Text())
		case "data":
			r.output = s.Text() > 0 || r.output
		default:
			s.Skip()
		}
	})
}
