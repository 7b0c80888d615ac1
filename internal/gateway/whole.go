// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strconv"
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
	x.ending.Outcome = "ok"
	if x.r.Context().Err() != nil {
		x.ending.Outcome = "client_gone"
	}
	x.settle()
	h := x.answerHeaders(u)
	h.Set("X-Weir-Cost-Usd", x.charged.Cost.String())
	x.write(u.StatusCode, u.redact(body))
}

// decoded reads the body, unpacking it when the provider packed it unasked.
func (u *upstream) decoded() ([]byte, error) {
	if u.Header.Get("Content-Encoding") != "gzip" {
		return u.readAll(u.Body)
	}
	unpacked, err := gzip.NewReader(u.Body)
	if err != nil {
		return nil, errInvalidAnswer
	}
	return u.readAll(io.Reader(unpacked))
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
