// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Speech is the door POST /v1/audio/speech. Its answers are audio, and say
// nothing of their usage: the text is what is charged (RES-3).
type Speech struct{ Chat }

var speechRules = wire.Rules{
	Decides:  []string{"model", "input", "instructions", "stream_format", "user"},
	Required: []string{"model", "input"},
	Refused:  wire.RefusedMembers(),
	Unread:   []string{"response_format", "speed", "voice"},
}

// microsAByteOfText is how long speech lasts at most for a byte of its text: a
// slow speaker says two words of five letters a second.
const microsAByteOfText = 100_000

// Decode reads a request of this door.
func (Speech) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := chatDecoder{wire.NewDecoder(call.OpenAISpeech, r.Body)}
	texts := int64(0)
	return d.Decode(&speechRules, func(name string) {
		switch name {
		case "input":
			texts = d.texts(name)
			d.Call.Units.AudioOutputMicros = d.Call.Prompt.TextBytes * microsAByteOfText
		case "instructions":
			d.Count(d.Text())
		case "stream_format":
			// As events, the answer ends with its usage.
			d.Call.Stream = d.StringMember(name) == "sse"
			d.Call.WantsStreamUsage = d.Call.Stream
		default:
			d.decide(name)
		}
	}, func() { d.needs("input", texts) })
}

// Path is the door's at a provider.
func (Speech) Path(*call.Call, string) string { return "/audio/speech" }

// Rewrite is wire.Door's. The protocol has no bound of the output here.
func (Speech) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	return wire.RewriteObject(body, wire.Rewrite{Model: r.Model}, "max_tokens")
}

// Whole is wire.Door's. Audio has no bytes of text.
func (Speech) Whole(body []byte, maxTokens int64) call.Observed {
	if isObject(body) {
		return Chat{}.Whole(body, maxTokens) // an error
	}
	return call.Observed{Finished: true, OutputSeen: len(body) > 0}
}

// isObject tells a JSON object from audio or a text that begins with a brace.
func isObject(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	if len(body) == 0 || body[0] != '{' {
		return false
	}
	body = bytes.TrimLeft(body[1:], " \t\r\n")
	return len(body) > 0 && (body[0] == '"' || body[0] == '}')
}

// NewStream is wire.Door's.
func (Speech) NewStream(o wire.StreamOptions) wire.Stream {
	return newAudioStream(o, "speech.audio.done")
}

// audioStream reads events that carry audio or its transcript, of which the last
// has the usage.
type audioStream struct {
	*wire.Feeder
	limit int64
	tally tally
	last  string
}

func newAudioStream(o wire.StreamOptions, last string) wire.Stream {
	s := &audioStream{limit: wire.CountLimit(o.MaxTokens), last: last}
	s.Feeder = wire.NewFeeder(o.MaxEventBytes, s.take)
	return s
}

func (s *audioStream) take(dst []byte, e *wire.Event) []byte {
	in := wire.NewScanner(e.Data)
	before := s.tally
	kind := ""
	in.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(in.StringOrSkip())
		case "delta":
			s.tally.wrote(in.Text())
		case "audio":
			s.tally.output = true
			in.Skip()
		case "usage":
			s.tally.report.read(&in, s.limit)
		case "error":
			s.tally.failed = in.Present() || s.tally.failed
		default:
			in.Skip()
		}
	})
	in.End()
	switch {
	case in.Err != nil:
		s.tally = before
	case kind == "error" || string(e.Name) == "error":
		s.tally.failed = true
	case kind == s.last:
		s.tally.finished = !s.tally.failed
	}
	return append(dst, e.Raw...)
}

// Observed is wire.Stream's.
func (s *audioStream) Observed() call.Observed { return s.tally.observed() }

// Fault is f as the event that ends a stream which has started (ERR-6).
func (s *audioStream) Fault(f *fault.Fault, requestID string) []byte {
	return append(append([]byte("event: error\ndata: "), encodeFault(f, requestID)...), "\n\n"...)
}
