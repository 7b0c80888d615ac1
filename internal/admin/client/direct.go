// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"io"
	"net/http"
)

// Direct is a transport that calls a handler in this process, without a network.
func Direct(h http.Handler) http.RoundTripper { return direct{h} }

type direct struct{ handler http.Handler }

// RoundTrip is http.RoundTripper's.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	inside := r.Clone(r.Context())
	inside.RequestURI, inside.Host = r.URL.RequestURI(), r.URL.Host
	if inside.Body == nil {
		inside.Body = http.NoBody
	}
	w := &answer{header: http.Header{}}
	d.handler.ServeHTTP(w, inside)
	if err := inside.Body.Close(); err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// answer is a response that is kept in memory.
type answer struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

// Header is http.ResponseWriter's.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader is http.ResponseWriter's: the first one counts.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status, a.sent = status, a.header.Clone()
	}
}

// Write is http.ResponseWriter's.
func (a *answer) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(text)
}
