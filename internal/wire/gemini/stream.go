// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// feeder cuts a stream into its events.
type feeder interface {
	Feed(dst, p []byte) ([]byte, error)
	Close(dst []byte) []byte
	Events() int64
	Err() error
}

// stream reads the chunks of an answer: server-sent events, or the elements of
// one JSON array.
type stream struct {
	feeder
	array *wire.ArrayFeeder // nil: server-sent events
	limit int64
	tally tally
}

// NewStream is wire.Door's.
func (Generate) NewStream(o wire.StreamOptions) wire.Stream {
	s := &stream{limit: wire.CountLimit(o.MaxTokens)}
	if o.Call != nil && o.Call.ArrayStream {
		s.array = wire.NewArrayFeeder(o.MaxEventBytes, func(element []byte) { s.chunk(element) })
		s.feeder = s.array
		return s
	}
	s.feeder = wire.NewFeeder(o.MaxEventBytes, func(dst []byte, e *wire.Event) []byte {
		if !s.chunk(e.Data) && string(e.Name) == "error" {
			s.tally.failed = true
		}
		return append(dst, e.Raw...)
	})
	return s
}

// chunk reads one; false: it is none, and shows nothing.
func (s *stream) chunk(data []byte) bool {
	before := s.tally
	in := wire.NewScanner(data)
	s.tally.read(&in, s.limit)
	in.End()
	if in.Err != nil {
		s.tally = before
	}
	return in.Err == nil
}

// Close is wire.Stream's. A stream of this protocol has no terminal event: one
// that ended after a candidate's finish is finished.
func (s *stream) Close(dst []byte) []byte {
	dst = s.feeder.Close(dst)
	if s.tally.stopped && !s.tally.failed && s.Err() == nil {
		s.tally.finished = true
	}
	return dst
}

// Observed is wire.Stream's.
func (s *stream) Observed() call.Observed { return s.tally.observed() }

// Fault is f as the event that ends a stream which has started (ERR-6), or as an
// array's last element.
func (s *stream) Fault(f *fault.Fault, requestID string) []byte {
	text := encodeFault(f, requestID)
	if s.array != nil {
		return s.array.Last(text)
	}
	return append(append([]byte("data: "), text...), "\n\n"...)
}
