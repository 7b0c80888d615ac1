// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// stream reads the events of a message.
type stream struct {
	*wire.Feeder
	limit int64
	tally tally
	// delta: a message_delta has brought usage. Until then the report's input is
	// the real one, and its output a placeholder.
	delta bool
}

// NewStream is wire.Door's.
func (Messages) NewStream(o wire.StreamOptions) wire.Stream {
	s := &stream{limit: wire.CountLimit(o.MaxTokens)}
	s.Feeder = wire.NewFeeder(o.MaxEventBytes, s.take)
	return s
}

// Observed is wire.Stream's. Of a stream that was cut before its real figures the
// output is estimated from what has arrived (RES-4).
func (s *stream) Observed() call.Observed {
	o := s.tally.observed()
	if o.Reported && !s.delta {
		o.Usage.Output = max(o.Usage.Output, call.TextTokens(o.OutputBytes, 0))
		o.Mark(call.MarkEstimated)
	}
	return o
}

func (s *stream) take(dst []byte, e *wire.Event) []byte {
	in := wire.NewScanner(e.Data)
	before, delta := s.tally, s.delta
	kind := s.event(&in)
	in.End()
	switch {
	case in.Err != nil:
		s.tally, s.delta = before, delta // no event of the protocol: it shows nothing
		kind = ""
	case kind == "error" || string(e.Name) == "error":
		s.tally = before
		s.tally.failed = true
	case kind == "message_stop":
		s.tally.finished = !s.tally.failed
	}
	e.Ping = kind == "ping"
	return append(dst, e.Raw...)
}

// event reads one event and returns its type.
func (s *stream) event(in *wire.Scanner) (kind string) {
	usage := false
	in.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(in.StringOrSkip())
		case "message":
			if in.Peek() == '{' {
				s.tally.message(in, s.limit)
			} else {
				in.Skip()
			}
		case "content_block":
			s.tally.block(in)
		case "delta":
			in.ObjectOrSkip(func(key []byte) {
				switch string(key) {
				case "text", "thinking", "partial_json":
					s.tally.wrote(in.Text())
				case "container":
					s.tally.container(in)
				default:
					in.Skip()
				}
			})
		case "usage":
			usage = in.Peek() == '{' || usage
			s.tally.report.read(in, s.limit)
		default:
			in.Skip()
		}
	})
	s.delta = s.delta || usage && kind == "message_delta"
	return kind
}
