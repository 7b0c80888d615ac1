// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// Stream reads a stream of chat completion chunks on its way to the client. It
// is not safe for concurrent use.
type Stream struct {
	*wire.Feeder
	options wire.StreamOptions
	tally   tally
	spans   []wire.Span
}

// NewStream returns the decoder of one stream.
func (Chat) NewStream(options wire.StreamOptions) wire.Stream {
	options.MaxTokens = wire.CountLimit(options.MaxTokens)
	s := &Stream{options: options}
	s.Feeder = wire.NewFeeder(options.MaxEventBytes, s.take)
	return s
}

// Close ends the stream. One that ended after the choices' finish without a
// [DONE] is finished too.
func (s *Stream) Close(dst []byte) []byte {
	dst = s.Feeder.Close(dst)
	if s.tally.stopped && !s.tally.failed && s.Err() == nil {
		s.tally.finished = true
	}
	return dst
}

// Observed is what the events so far have shown.
func (s *Stream) Observed() call.Observed { return s.tally.observed() }

func (s *Stream) take(dst []byte, e *wire.Event) []byte {
	if bytes.Equal(bytes.TrimSpace(e.Data), []byte("[DONE]")) {
		s.tally.finished = true
		return append(dst, e.Raw...)
	}
	r, ok := readChat(e.Data, s.options.MaxTokens, &s.tally.report, s.spans)
	s.spans = r.removal
	if string(e.Name) == "error" {
		r.failed, r.outputBytes, r.output = true, 0, false
		s.tally.failed = true
	}
	if !ok {
		return s.opaque(dst, e)
	}
	s.tally.take(&r)
	switch {
	case !s.options.HideUsage || len(r.removal) == 0:
		return append(dst, e.Raw...)
	case r.usage && r.choices == 0 && !r.failed:
		return dst
	}
	return e.Without(dst, r.removal)
}

// opaque appends an event that is no chunk. Only the torn rest of a stream
// whose usage is hidden stays back: it may be the start of a usage chunk, and
// no client reads an event that has no end.
func (s *Stream) opaque(dst []byte, e *wire.Event) []byte {
	if s.options.HideUsage && e.Torn() {
		return dst
	}
	return append(dst, e.Raw...)
}
