// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/call"
)

// relayWhole reads an answer to its end, settles it, then sends it on: who has
// read the answer finds it settled (RES-11). A client that has gone meanwhile
// changes nothing, the answer is billed whole (DIS-7).
func (x *exchange) relayWhole(u *upstream) {
	defer u.end()
	defer u.Body.Close()
	body, err := u.decoded()
	if u.StatusCode >= http.StatusBadRequest {
		x.relayError(u, body, err)
		return
	}
	// Until the answer is understood, all of it may be output.
	x.ending.Observed = call.Observed{OutputBytes: int64(len(body))}
	x.ending.Observed = x.protocol.Whole(body, x.planned.MaxUsageTokens())
	if err == nil && x.ending.Observed.Invalid {
		err = errInvalidAnswer
	}
	if err != nil {
		x.breakOff(u, err)
		return
	}
	switch {
	case x.ending.Observed.ErrorSeen: // one that calls itself an answer
		x.ending.Failed, x.ending.Outcome = true, "provider_error"
	case x.r.Context().Err() != nil:
		x.ending.Outcome = outcomeGone
	default:
		x.ending.Outcome = "ok"
	}
	x.settle()
	h := x.answerHeaders(u)
	h.Set("X-Weir-Cost-Usd", x.charged.Cost.String())
	x.write(u.StatusCode, u.redact(body))
}

// decoded reads the whole body, unpacked.
func (u *upstream) decoded() ([]byte, error) {
	body, err := u.plain()
	if err != nil {
		return nil, err
	}
	return u.readAll(body)
}

// plain is the body, unpacked where the provider has packed it unasked. What is
// packed in another way than these cannot be read.
func (u *upstream) plain() (io.Reader, error) {
	var unpacked io.Reader
	var err error
	switch strings.ToLower(strings.TrimSpace(u.Header.Get("Content-Encoding"))) {
	case "", "identity":
		return u.Body, nil
	case "gzip", "x-gzip":
		unpacked, err = gzip.NewReader(u.Body)
	case "deflate":
		unpacked, err = zlib.NewReader(u.Body)
	default:
		return nil, errInvalidAnswer
	}
	if err != nil {
		return nil, errors.Join(errInvalidAnswer, err)
	}
	return unpacked, nil
}

// isObject: the provider has answered a request for events with one JSON object,
// as some servers do that know no streams. It looks at the first byte, for others
// send events under that name.
func (u *upstream) isObject() bool {
	kind, _, _ := strings.Cut(u.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") || u.Header.Get("Content-Encoding") != "" {
		return false
	}
	ahead := bufio.NewReader(u.Body)
	first, err := ahead.Peek(1)
	u.Body = struct {
		io.Reader
		io.Closer
	}{ahead, u.Body}
	return err == nil && first[0] == '{'
}

// relayError passes a provider's own error on with its status and body
// (DIS-2). An error's text is never output, so it costs nothing unless usage
// was reported (RES-4).
func (x *exchange) relayError(u *upstream, body []byte, err error) {
	x.ending.Failed, x.ending.Outcome = true, "provider_error"
	observed := x.protocol.Whole(body, x.planned.MaxUsageTokens())
	if observed.Reported {
		x.ending.Observed = observed
	}
	if err != nil {
		x.breakOff(u, err)
		return
	}
	x.settle()
	h := x.answerHeaders(u)
	h.Set("X-Weir-Error-Source", "provider")
	if v := u.Header.Get("Retry-After"); v != "" {
		h.Set("Retry-After", v)
	}
	x.write(u.StatusCode, u.redact(body))
}

// redact replaces the gateway's own credential wherever a provider repeats it.
func (u *upstream) redact(body []byte) []byte {
	for _, secret := range u.secrets {
		if bytes.Contains(body, secret) {
			body = bytes.ReplaceAll(body, secret, []byte("[credential]"))
		}
	}
	return body
}

// spellings are how a credential may be repeated: as it is, or as a URL has it.
func spellings(credential string) [][]byte {
	const shortest = 8 // anything shorter is no credential, and may be a word
	if len(credential) < shortest {
		return nil
	}
	all := [][]byte{[]byte(credential)}
	if escaped := url.QueryEscape(credential); escaped != credential {
		all = append(all, []byte(escaped))
	}
	return all
}

// answerHeaders takes over the headers of a provider's answer that concern the
// client: a list of what may pass (DIS-2), and who answered.
func (x *exchange) answerHeaders(u *upstream) http.Header {
	h := x.w.Header()
	for _, name := range [...]string{"Content-Type", "Openai-Processing-Ms", "Openai-Version"} {
		if v := u.Header.Get(name); v != "" {
			h.Set(name, string(u.redact([]byte(v))))
		}
	}
	for _, name := range [...]string{"X-Request-Id", "Request-Id"} {
		if v := u.Header.Get(name); v != "" {
			h.Set("X-Weir-Provider-Request-Id", string(u.redact([]byte(v))))
		}
	}
	h.Set("X-Weir-Model", x.planned.Model.Name)
	h.Set("X-Weir-Provider", x.planned.Provider.Name)
	return h
}

func (x *exchange) write(status int, body []byte) {
	x.answered = true
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(x.g.WriteTimeout))
	_, _ = x.w.Write(body) // a client that has gone has been charged already
}
