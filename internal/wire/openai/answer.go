// SPDX-License-Identifier: Apache-2.0

package openai

import "github.com/weirhq/weir/internal/call"

// Whole reads a complete answer: its usage, the bytes of its output over all
// choices, the tier that was served. One that breaks off, or is broken, shows
// the output up to there and nothing else. maxTokens is the largest count to believe, ten times the model's
// context (USE-1); below 1 means 10^9.
func (Chat) Whole(body []byte, maxTokens int64) call.Observed {
	var total tally
	r, ok := readChat(body, tokenLimit(maxTokens), &total.report, nil)
	if !ok {
		// It broke off, or is broken: what arrived of the output is charged (RES-4).
		return call.Observed{OutputBytes: r.outputBytes, OutputSeen: r.output}
	}
	total.take(&r)
	total.finished = r.choices > 0 && !r.failed
	return total.observed()
}

func tokenLimit(maxTokens int64) int64 {
	if maxTokens < 1 || maxTokens > 1000*defaultMaxTokens {
		return defaultMaxTokens
	}
	return maxTokens
}

// tally is what the answer so far amounts to.
type tally struct {
	report      report
	outputBytes int64
	output      bool
	failed      bool
	stopped     bool
	finished    bool
	model, tier string
}

func (t *tally) take(r *reading) {
	t.report = r.report
	t.outputBytes += r.outputBytes
	t.output = t.output || r.output
	t.failed = t.failed || r.failed
	t.stopped = t.stopped || r.stopped
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
		Finished: t.finished, Model: t.model,
	}
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
	usage.ServiceTier = t.tier
	o.Usage, o.Reported = usage, true
	if !consistent {
		o.Mark(call.MarkInconsistent)
	}
	return o
}

// reading is what one JSON text, an answer or a chunk, holds.
type reading struct {
	model, tier []byte
	report      report // the usage so far, with this text's figures laid over it
	choices     int
	outputBytes int64
	output      bool // output of any kind, with or without text
	stopped     bool // a choice has a finish_reason
	failed      bool // an error stands in it
	usage       bool // usage is there and not null
	removal     []span
}

// readChat reads an answer or chunk of chat completions. before is the usage
// that earlier chunks gave, spans a buffer for the reading's removal. ok is
// false when text is no JSON object; then nothing of it counts but the output of
// a whole answer up to there. Output that stands beside an error is the error's
// text, which is never output (RES-4).
func readChat(text []byte, limit int64, before *report, spans []span) (r reading, ok bool) {
	s := scanner{b: text}
	r.report = *before
	cut := cutter{spans: spans[:0]}
	s.object(func(key []byte) {
		at := s.keyAt
		cut.enter(at)
		switch string(key) {
		case "model":
			r.model = stringOrSkip(&s)
		case "service_tier":
			r.tier = stringOrSkip(&s)
		case "choices":
			s.arrayOrSkip(func() { r.choice(&s) })
		case "usage":
			r.usage = s.peek() != 'n' || r.usage
			r.report.read(&s, limit)
		case "x_groq":
			r.groq(&s, limit)
		case "error":
			r.failure(&s)
		case "object":
			r.failed = string(stringOrSkip(&s)) == "error" || r.failed
		default:
			s.skip()
		}
		cut.leave(at, s.i, string(key) == "usage")
	})
	s.end()
	r.removal = cut.spans
	if r.failed {
		r.outputBytes, r.output = 0, false
	}
	return r, s.err == nil
}

// groq reads Groq's own member, which has the usage whether it was asked or not.
func (r *reading) groq(s *scanner, limit int64) {
	s.objectOrSkip(func(key []byte) {
		if string(key) == "usage" {
			r.report.read(s, limit)
		} else {
			s.skip()
		}
	})
}

func (r *reading) failure(s *scanner) {
	if !s.null() {
		r.failed = true
		s.skip()
	}
}

func (r *reading) choice(s *scanner) {
	r.choices++
	s.objectOrSkip(func(key []byte) {
		switch string(key) {
		case "message", "delta":
			r.message(s)
		case "finish_reason":
			if !s.null() {
				r.stopped = true
				s.skip()
			}
		case "error":
			r.failure(s)
		default:
			s.skip()
		}
	})
}

// message reads the output in a message or delta. Visible reasoning goes by two
// names, and servers that send both send the same text twice.
func (r *reading) message(s *scanner) {
	var reasoning, reasoningContent int64
	s.objectOrSkip(func(key []byte) {
		switch string(key) {
		case "content", "refusal":
			r.wrote(writing(s))
		case "reasoning":
			reasoning = writing(s)
		case "reasoning_content":
			reasoningContent = writing(s)
		case "tool_calls":
			s.arrayOrSkip(func() { r.toolCall(s) })
		case "function_call":
			r.function(s)
		case "audio":
			r.audio(s)
		case "images":
			s.arrayOrSkip(func() { r.output = true; s.skip() })
		default:
			s.skip()
		}
	})
	r.wrote(max(reasoning, reasoningContent))
}

func (r *reading) wrote(bytes int64) {
	r.outputBytes += bytes
	r.output = r.output || bytes > 0
}

func (r *reading) toolCall(s *scanner) {
	s.objectOrSkip(func(key []byte) {
		switch string(key) {
		case "function", "custom":
			r.function(s)
		default:
			s.skip()
		}
	})
}

func (r *reading) function(s *scanner) {
	s.objectOrSkip(func(key []byte) {
		switch string(key) {
		case "name", "arguments", "input":
			r.wrote(s.text())
		default:
			s.skip()
		}
	})
}

// audio reads spoken output: its transcript is the text of it.
func (r *reading) audio(s *scanner) {
	s.objectOrSkip(func(key []byte) {
		switch string(key) {
		case "transcript":
			r.wrote(s.text())
		case "data":
			r.output = s.text() > 0 || r.output
		default:
			s.skip()
		}
	})
}

// writing is the size of the text in a string, or of all strings in a list of
// parts but for their types.
func writing(s *scanner) (size int64) {
	switch s.peek() {
	case '"':
		_, size = s.str()
	case '[':
		s.array(func() { size += writing(s) })
	case '{':
		s.object(func(key []byte) {
			if string(key) == "type" {
				s.skip()
			} else {
				size += writing(s)
			}
		})
	default:
		s.skip()
	}
	return size
}

// stringOrSkip reads a string, and anything else as none.
func stringOrSkip(s *scanner) []byte {
	if s.peek() != '"' {
		s.skip()
		return nil
	}
	raw, _ := s.str()
	return unquote(raw)
}

// span is a range of bytes.
type span struct{ start, end int }

// cutter finds what to cut out of an object's text so that it reads as if
// members had never been there: each with the comma before it, or, when nothing
// that stays stands before it, with the comma behind.
type cutter struct {
	spans []span
	last  int  // where the previous member ended
	kept  bool // a member that stays has passed
	open  bool // the last span reaches to the next key
}

func (c *cutter) enter(keyAt int) {
	if c.open {
		c.spans[len(c.spans)-1].end = keyAt
		c.open = false
	}
}

func (c *cutter) leave(keyAt, end int, remove bool) {
	switch {
	case !remove:
		c.kept = true
	case c.kept:
		c.spans = append(c.spans, span{c.last, end})
	default:
		c.spans = append(c.spans, span{keyAt, end})
		c.open = true
	}
	c.last = end
}
