// SPDX-License-Identifier: Apache-2.0

package wire

import "errors"

// DefaultMaxEventBytes bounds one event of a stream when nobody says otherwise.
const DefaultMaxEventBytes = 8 << 20

// ErrEventTooLarge is what Feed returns when an event exceeds its bound.
var ErrEventTooLarge = errors.New("an event of the stream is too large")

// Take reads one event and appends to dst what the client gets of it: all,
// some or nothing.
type Take func(dst []byte, e *Event) []byte

// Feeder cuts server-sent events. What it forwards are the provider's own
// bytes; where the network cut the stream changes neither them nor what is
// taken. It is not safe for concurrent use.
type Feeder struct {
	take   Take
	max    int
	err    error
	events int64

	splitter splitter
	partial  []byte // the start of an event whose end has not come
	passed   bool   // the last event was forwarded, in whole or in part
	event    Event
	joined   []byte
}

// NewFeeder begins a stream. maxBytes bounds one event, and with it the
// stream's memory; below 1 means DefaultMaxEventBytes.
func NewFeeder(maxBytes int, take Take) *Feeder {
	if maxBytes < 1 {
		maxBytes = DefaultMaxEventBytes
	}
	return &Feeder{take: take, max: maxBytes}
}

// Feed reads p, the provider's next bytes, and appends to dst what the client
// gets of the events that are complete with them. The error is ErrEventTooLarge, and
// stays; dst then has the events before.
func (s *Feeder) Feed(dst, p []byte) ([]byte, error) {
	for len(p) > 0 && s.err == nil {
		if len(s.partial) == 0 && s.splitter.orphan(p[0]) {
			if s.passed {
				dst = append(dst, p[0])
			}
			p = p[1:]
			continue
		}
		n, complete := s.splitter.next(p)
		if len(s.partial)+n > s.max {
			s.err, s.partial = ErrEventTooLarge, nil
			break
		}
		raw := p[:n]
		if len(s.partial) > 0 || !complete {
			s.partial = append(s.partial, raw...)
			raw = s.partial
		}
		if complete {
			dst = s.read(dst, raw)
			s.partial = s.partial[:0]
		}
		p = p[n:]
	}
	return dst, s.err
}

// Close ends the stream: what is left of it without an empty line at its end is
// taken as an event and appended to dst. When the provider broke off, call it
// for what the taker learns and drop what it appends, so that an error event
// which follows stands on a line of its own (ERR-6).
func (s *Feeder) Close(dst []byte) []byte {
	if s.err == nil && len(s.partial) > 0 {
		dst = s.read(dst, s.partial)
		s.partial = nil
	}
	return dst
}

// Events is how many events with data have been read; comments and pings are
// none (DIS-9).
func (s *Feeder) Events() int64 { return s.events }

// Err is what ended the stream, nil while it goes on.
func (s *Feeder) Err() error { return s.err }

func (s *Feeder) read(dst, raw []byte) []byte {
	s.joined = s.event.parse(raw, s.joined)
	if !s.event.Has {
		s.passed = true
		return append(dst, raw...)
	}
	before := len(dst)
	dst = s.take(dst, &s.event)
	s.passed = len(dst) > before
	if !s.event.Ping {
		s.events++
	}
	return dst
}
