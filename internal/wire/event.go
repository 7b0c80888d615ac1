// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
)

// splitter finds where server-sent events end, byte by byte, so that it does
// not matter how the network cut the stream. A line ends with LF, CR or CRLF; an
// event ends with an empty line.
type splitter struct {
	text bool // the current line has a byte
	cr   bool // the previous byte was a CR
}

// next returns how many bytes of p belong to the current event and whether it
// is complete with them. An event ends at the CR of an empty line, without
// waiting for an LF that may never come; see orphan.
func (s *splitter) next(p []byte) (n int, complete bool) {
	for i, c := range p {
		switch {
		case c == '\n' && s.cr:
			s.cr = false
		case c == '\n' || c == '\r':
			s.cr = c == '\r'
			if !s.text {
				return i + 1, true
			}
			s.text = false
		default:
			s.text, s.cr = true, false
		}
	}
	return len(p), false
}

// orphan says whether c, the first byte after an event, is the LF that
// completes the CRLF which ended it.
func (s *splitter) orphan(c byte) bool {
	if s.cr && c == '\n' {
		s.cr = false
		return true
	}
	return false
}

// piece says that the data of an event from at on stands in it from origin on.
type piece struct{ at, origin int }

// Event is one event of a stream. It is valid until the next one is read.
type Event struct {
	// Raw is all of it as it came, its end included.
	Raw []byte
	// Name is the event's field, empty when it has none.
	Name []byte
	// Data is the data lines, joined by LF.
	Data []byte
	// Has says that there is a data line; without one it is a comment.
	Has bool
	// Ping is for whoever reads it to set: it only keeps the connection alive.
	Ping bool
	// pieces map offsets in data to offsets in the event's bytes, in order.
	pieces []piece
}

// parse reads raw into e, reusing its pieces; joined is a buffer for data that
// stands on several lines. The buffer is returned for the next time.
func (e *Event) parse(raw, joined []byte) []byte {
	*e = Event{Raw: raw, pieces: e.pieces[:0]}
	at := 0
	if bytes.HasPrefix(raw, []byte("\xEF\xBB\xBF")) {
		at = 3
	}
	for at < len(raw) {
		line, next := raw[at:], len(raw)
		if end := bytes.IndexAny(line, "\r\n"); end >= 0 {
			line, next = line[:end], at+end+1
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		origin := at + len(line) - len(value)
		if len(value) > 0 && value[0] == ' ' {
			value, origin = value[1:], origin+1
		}
		switch string(name) {
		case "event":
			e.Name = value
		case "data":
			joined = e.line(value, origin, joined)
		}
		at = next
	}
	return joined
}

func (e *Event) line(value []byte, origin int, joined []byte) []byte {
	switch {
	case !e.Has:
		e.Has, e.Data = true, value
	case len(e.pieces) == 1:
		joined = append(append(append(joined[:0], e.Data...), '\n'), value...)
		e.Data = joined
	default:
		joined = append(append(joined, '\n'), value...)
		e.Data = joined
	}
	e.pieces = append(e.pieces, piece{len(e.Data) - len(value), origin})
	return joined
}

// origin is where the byte of data at offset stands in the event.
func (e *Event) origin(offset int) int {
	i := len(e.pieces) - 1
	for i > 0 && e.pieces[i].at > offset {
		i--
	}
	return e.pieces[i].origin + offset - e.pieces[i].at
}

// Torn says that the event has no end: the stream broke off in it.
func (e *Event) Torn() bool {
	last := e.Raw[len(e.Raw)-1]
	return last != '\n' && last != '\r'
}

// Without appends the event to dst, leaving out spans of its data. A span over
// several lines takes the line breaks between along.
func (e *Event) Without(dst []byte, spans []Span) []byte {
	from := 0
	for _, s := range spans {
		dst = append(dst, e.Raw[from:e.origin(s.Start)]...)
		from = e.origin(s.End-1) + 1
	}
	return append(dst, e.Raw[from:]...)
}
