// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"compress/gzip"
	"encoding/json/jsontext"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// openError is r in OpenAI's shape, open at its end for further members.
func openError(r *refusal) []byte {
	dst := []byte(`{"error":{"message":`)
	dst = appendQuoted(dst, r.message)
	dst = append(dst, `,"type":"`...)
	dst = append(dst, errorType(r.status)...)
	dst = append(dst, `","param":`...)
	if r.param == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendQuoted(dst, r.param)
	}
	dst = append(dst, `,"code":"`...)
	dst = append(dst, r.code...)
	return append(dst, `"}`...)
}

// appendQuoted replaces what is not UTF-8.
func appendQuoted(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(s, "\uFFFD")) // valid UTF-8 never fails
	return dst
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// writeJSON sends a whole body. Its errors are the client's having gone.
func writeJSON(w http.ResponseWriter, status int, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}

// sink writes an answer's body in as many writes as the behaviour wants.
type sink struct {
	w       http.ResponseWriter
	control *http.ResponseController
	zip     *gzip.Writer // nil: plain
	split   int64
	join    int64
	pending []byte
	events  int64 // in pending
}

func (s *sink) init(w http.ResponseWriter, b *Behaviour, q *Request) {
	s.w, s.control = w, http.NewResponseController(w)
	s.split, s.join = max(b.Split, 1), max(b.Join, 1)
	if b.Pack || b.Gzip && strings.Contains(q.Header.Get("Accept-Encoding"), "gzip") {
		s.zip = gzip.NewWriter(w)
		w.Header().Set("Content-Encoding", "gzip")
	}
}

// full reports whether enough events are pending for a write.
func (s *sink) full() bool { return s.events >= s.join }

// flush sends what is pending.
func (s *sink) flush() error {
	rest := s.pending
	s.pending, s.events = s.pending[:0], 0
	for pieces := s.split; len(rest) > 0; pieces-- {
		n := (int64(len(rest)) + pieces - 1) / pieces
		if err := s.send(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (s *sink) send(piece []byte) error {
	if s.zip != nil {
		if _, err := s.zip.Write(piece); err != nil {
			return err
		}
		if err := s.zip.Flush(); err != nil {
			return err
		}
	} else if _, err := s.w.Write(piece); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// end closes the compressed body, if there is one.
func (s *sink) end() error {
	if s.zip == nil {
		return nil
	}
	return s.zip.Close()
}

// hangUp ends the connection in mid-answer. It does not return where the
// connection cannot be taken over: there the HTTP server has to cut it.
func hangUp(control *http.ResponseController, reset bool) {
	conn, _, err := control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // makes Close send a reset; when it fails the close is still a cut
	}
	_ = conn.Close() // the connection is given up either way
}
