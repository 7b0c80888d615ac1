// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"errors"

	"github.com/weirhq/weir/internal/call"
)

// DefaultMaxEventBytes bounds one event of a stream when StreamOptions don't.
const DefaultMaxEventBytes = 8 << 20

// ErrEventTooLarge is what Feed returns when an event exceeds its bound.
var ErrEventTooLarge = errors.New("an event of the stream is too large")

// StreamOptions say how a stream is read.
type StreamOptions struct {
	// HideUsage keeps from the client what only stands in the stream because
	// the gateway asked for usage (DIS-6): the usage-only chunk, and the usage
	// member of every other chunk.
	HideUsage bool
	// MaxEventBytes bounds one event; below 1 means DefaultMaxEventBytes. It
	// bounds the stream's memory as well.
	MaxEventBytes int
	// MaxTokens is the largest count to believe, ten times the model's context
	// (USE-1); below 1 means 10^9.
	MaxTokens int64
}

// Stream reads a stream of chat completion chunks on its way to the client. It
// is not safe for concurrent use.
//
// What it forwards are the provider's own bytes, whole events at a time; where
// the network cut the stream changes neither them nor what is observed.
type Stream struct {
	options StreamOptions
	tally   tally
	err     error
	events  int64

	splitter splitter
	partial  []byte // the start of an event whose end has not come
	passed   bool   // the last event was forwarded, in whole or in part

	event  event
	joined []byte
	spans  []span
}

// NewStream returns the decoder of one stream.
func (Chat) NewStream(options StreamOptions) *Stream {
	if options.MaxEventBytes < 1 {
		options.MaxEventBytes = DefaultMaxEventBytes
	}
	options.MaxTokens = tokenLimit(options.MaxTokens)
	return &Stream{options: options}
}

// Feed reads p, the provider's next bytes, and appends to dst what the client
// gets of the events that are complete with them. The error is
// ErrEventTooLarge, and stays; dst then has the events before.
func (s *Stream) Feed(dst, p []byte) ([]byte, error) {
	for len(p) > 0 && s.err == nil {
		if len(s.partial) == 0 && s.splitter.orphan(p[0]) {
			if s.passed {
				dst = append(dst, p[0])
			}
			p = p[1:]
			continue
		}
		n, complete := s.splitter.next(p)
		if len(s.partial)+n > s.options.MaxEventBytes {
			s.err, s.partial = ErrEventTooLarge, nil
			break
		}
		raw := p[:n]
		if len(s.partial) > 0 || !complete {
			s.partial = append(s.partial, raw...)
			raw = s.partial
		}
		if complete {
			dst = s.take(dst, raw)
			s.partial = s.partial[:0]
		}
		p = p[n:]
	}
	return dst, s.err
}

// Close ends the stream: what is left of it without an empty line at its end is
// read as an event and appended to dst. When the provider broke off, call it
// for what it observes and drop what it appends, so that the error event which
// follows stands on a line of its own (ERR-6). A stream that ended after the
// choices' finish without a [DONE] is finished too.
func (s *Stream) Close(dst []byte) []byte {
	if s.err == nil && len(s.partial) > 0 {
		dst = s.take(dst, s.partial)
		s.partial = nil
	}
	if s.tally.stopped && !s.tally.failed && s.err == nil {
		s.tally.finished = true
	}
	return dst
}

// Observed is what the events so far have shown.
func (s *Stream) Observed() call.Observed { return s.tally.observed() }

// Events is how many events with data have been read; comments and pings are
// none (DIS-9).
func (s *Stream) Events() int64 { return s.events }

// take reads one event and appends what the client gets of it.
func (s *Stream) take(dst, raw []byte) []byte {
	s.passed = true
	s.joined = s.event.parse(raw, s.joined)
	if !s.event.has {
		return append(dst, raw...)
	}
	s.events++
	if bytes.Equal(bytes.TrimSpace(s.event.data), []byte("[DONE]")) {
		s.tally.finished = true
		return append(dst, raw...)
	}
	r, ok := readChat(s.event.data, s.options.MaxTokens, &s.tally.report, s.spans)
	s.spans = r.removal
	if string(s.event.name) == "error" {
		r.failed, r.outputBytes, r.output = true, 0, false
		s.tally.failed = true
	}
	if !ok {
		return s.opaque(dst, raw)
	}
	s.tally.take(&r)
	switch {
	case !s.options.HideUsage || len(r.removal) == 0:
		return append(dst, raw...)
	case r.usage && r.choices == 0 && !r.failed:
		s.passed = false
		return dst
	}
	return s.event.without(dst, raw, r.removal)
}

// opaque appends an event that is no chunk. Only the torn rest of a stream
// whose usage is hidden stays back: it may be the start of a usage chunk, and
// no client reads an event that has no end.
func (s *Stream) opaque(dst, raw []byte) []byte {
	if s.options.HideUsage && raw[len(raw)-1] != '\n' && raw[len(raw)-1] != '\r' {
		return dst
	}
	return append(dst, raw...)
}
