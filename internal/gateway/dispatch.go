// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/route"
)

// forwarded are the request headers that go to a provider. It is a list of what
// may pass, so that no credential, cookie or address of a client ever does.
func forwarded() []string {
	return []string{"Accept", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "Openai-Beta", "User-Agent"}
}

// outcomeGone is the call log's word for a request whose client has gone.
const outcomeGone = "client_gone"

// causes of an upstream context's end.
var (
	errFirstByte  = errors.New("no answer within the provider's first-byte time-out")
	errIdle       = errors.New("no event within the provider's idle time-out")
	errTotal      = errors.New("the provider's whole time-out has passed")
	errClientGone = errors.New("the client has gone")
	errTerminal   = errors.New("the stream stayed open after its terminal event")
	errStopping   = errors.New("the gateway is stopping")
)

// upstream is one attempt at a provider. Its context is not the client's: an
// answer that is billed is read, whether or not the client is there (DIS-7).
type upstream struct {
	*http.Response
	provider   *route.Provider
	credential string
	secrets    [][]byte // what is replaced where the provider repeats it
	askedUsage bool     // of a stream, for a client that did not
	cancel     context.CancelCauseFunc
	ctx        context.Context
	connected  atomic.Bool // there was a connection to send something on
	unwatch    func() bool // the client is not watched any more
	total      *time.Timer // bounds the whole of it; nil: nothing does
}

// goneGrace: a provider is read on for its usage this long after the client has
// gone, then cancelled (DIS-7).
const goneGrace = 500 * time.Millisecond

// watchClient ends the attempt soon after its client has gone. Where the
// provider row does not say otherwise, that is so for streams: a whole answer is
// billed whole, and read (DIS-7).
func (u *upstream) watchClient(client context.Context, stream bool) {
	u.unwatch = func() bool { return true }
	if u.provider.ClientGone == route.Cancel || stream && u.provider.ClientGone != route.Drain {
		u.unwatch = context.AfterFunc(client, u.clientGone)
	}
}

func (u *upstream) clientGone() {
	if u.provider.ClientGone != route.Drain {
		time.AfterFunc(goneGrace, func() { u.cancel(errClientGone) })
	}
}

// end lets go of an attempt. A timer that ran on would keep all of it in memory
// until the whole time-out has passed (BR-166).
func (u *upstream) end() {
	if u.total != nil {
		u.total.Stop()
	}
	u.unwatch()
	u.cancel(nil)
}

// dispatch sends the request to the admitted candidate's provider and waits for
// the head of its answer.
func (x *exchange) dispatch() (*upstream, bool) {
	if x.r.Context().Err() != nil {
		// Gone before anything was sent: everything goes back (RES-10).
		x.ending.Outcome = outcomeGone
		x.answerFault(clientGone())
		return nil, false
	}
	p := x.planned.Provider
	u, ok := x.attempt(p, x.asksUsage(p))
	if !ok || u.StatusCode != http.StatusBadRequest || !u.askedUsage || p.StreamUsage != route.StreamUsageAuto {
		return u, ok
	}
	return x.withoutUsage(u)
}

// asksUsage: usage is asked of a stream's provider unless the client did it, or
// the provider is known not to take it, or to tell it anyway (USE-1).
func (x *exchange) asksUsage(p *route.Provider) bool {
	if !x.call.Stream || x.call.WantsStreamUsage || p.StreamUsage == route.StreamUsageOff {
		return false
	}
	if p.StreamUsage == route.StreamUsageAuto && p.TellsStreamUsage() {
		return false
	}
	_, refuses := x.g.noUsage.Load(p.BaseURL)
	return !refuses || p.StreamUsage == route.StreamUsageOn
}

// withoutUsage looks at a 400: one that names stream_options is answered by
// repeating the request once without it, at no charge (USE-1).
func (x *exchange) withoutUsage(u *upstream) (*upstream, bool) {
	body, err := u.readAll(u.Body)
	_ = u.Body.Close() // it has been read
	u.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || !bytes.Contains(body, []byte("stream_options")) {
		return u, true
	}
	u.end()
	x.g.noUsage.Store(u.provider.BaseURL, struct{}{})
	return x.attempt(u.provider, false)
}

// attempt sends the request once.
func (x *exchange) attempt(p *route.Provider, askUsage bool) (*upstream, bool) {
	ctx, cancel := context.WithCancelCause(x.g.base)
	u := &upstream{provider: p, credential: x.planned.Credential, secrets: spellings(x.planned.Credential), cancel: cancel, ctx: ctx, askedUsage: askUsage}
	if !x.exchangeCredential(u) {
		return nil, false
	}
	request, err := x.upstreamRequest(u)
	if err != nil {
		cancel(nil)
		x.g.Log.Error("request could not be rewritten", "request_id", x.id.String(), "error", err)
		x.refuse(fault.New(fault.InternalError, "the request could not be prepared for its provider"))
		return nil, false
	}
	u.total = u.after(p.Timeouts.Total, errTotal)
	firstByte := u.after(p.Timeouts.FirstByte, errFirstByte)
	u.watchClient(x.r.Context(), x.call.Stream)
	before := x.ending
	x.ending.Sent, x.ending.SentAt = true, x.g.Clock.Now()
	u.Response, err = x.g.Upstream.RoundTrip(p, request) //nolint:bodyclose // whoever relays it closes it
	if firstByte != nil {
		firstByte.Stop()
	}
	if err != nil {
		if !u.connected.Load() {
			// Nobody was there to be sent anything (ORD-5).
			x.ending.Sent, x.ending.SentAt = before.Sent, before.SentAt
		}
		x.unreachable(u, err)
		return nil, false
	}
	x.ending.FirstByteAt, x.ending.Status = x.g.Clock.Now(), u.StatusCode
	return u, true
}

// exchangeCredential gets the token that a service account's key is good for.
// Without one the provider cannot be reached, and nothing was sent.
func (x *exchange) exchangeCredential(u *upstream) bool {
	if u.provider.Auth != route.AuthServiceAccount {
		return true
	}
	u.unwatch = func() bool { return true }
	wait := u.after(u.provider.Timeouts.FirstByte, errFirstByte)
	leave := context.AfterFunc(x.r.Context(), func() { u.cancel(errClientGone) })
	defer leave()
	token, err := x.g.Tokens.Token(u.ctx, u.provider, u.credential)
	if wait != nil {
		wait.Stop()
	}
	if err != nil {
		x.unreachable(u, err)
		return false
	}
	u.credential, u.secrets = token, append(u.secrets, spellings(token)...)
	return true
}

// after ends the attempt with a cause; 0 is no bound.
func (u *upstream) after(micros int64, cause error) *time.Timer {
	if micros <= 0 {
		return nil
	}
	return time.AfterFunc(time.Duration(micros)*time.Microsecond, func() { u.cancel(cause) })
}

func (x *exchange) upstreamRequest(u *upstream) (*http.Request, error) {
	body, err := x.protocol.Rewrite(x.body, Rewrite{
		Model: x.planned.Model.Upstream, OutputBound: x.planned.WriteBound, OutputField: x.planned.OutputField,
		AskStreamUsage: u.askedUsage, ContentType: x.r.Header.Get("Content-Type"), Version: u.provider.BodyVersion(),
	})
	if err != nil {
		return nil, err
	}
	target := u.provider.Address(x.protocol.Path(x.call, x.planned.Model.Upstream), x.planned.Model.Upstream, x.call.Stream)
	ctx := httptrace.WithClientTrace(u.ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { u.connected.Store(true) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, name := range forwarded() {
		if values := x.r.Header.Values(name); len(values) > 0 {
			request.Header[http.CanonicalHeaderKey(name)] = slices.Clip(values)
		}
	}
	if v := x.r.URL.Query().Get("beta"); v != "" {
		q := request.URL.Query()
		q.Set("beta", v)
		request.URL.RawQuery = q.Encode()
	}
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, v := range u.provider.Headers {
		request.Header.Set(name, v)
	}
	authorize(request, u.provider, u.credential)
	return request, nil
}

// authorize puts the gateway's own credential where the provider reads it.
func authorize(r *http.Request, p *route.Provider, credential string) {
	switch p.Auth {
	case route.AuthBearer, route.AuthServiceAccount:
		r.Header.Set("Authorization", "Bearer "+credential)
	case route.AuthHeader:
		r.Header.Set(p.AuthName, credential)
	case route.AuthQuery:
		q := r.URL.Query()
		q.Set(p.AuthName, credential)
		r.URL.RawQuery = q.Encode()
	}
}

// unreachable answers for a provider that gave no answer (DIS-9).
func (x *exchange) unreachable(u *upstream, err error) {
	x.breakOff(u, err)
	u.end()
}

// breakOff answers for an attempt that ended without an answer. err is what was
// seen of it; what ended it is the cause, where that is known.
func (x *exchange) breakOff(u *upstream, err error) {
	x.fail(x.brokenBy(u, err))
}

// brokenBy is broken with what ended the attempt, where that is known.
func (x *exchange) brokenBy(u *upstream, err error) *fault.Fault {
	if cause := context.Cause(u.ctx); cause != nil {
		err = cause
	}
	return x.broken(err)
}

// broken names how an answer failed, and notes it for the charge and the call
// log. The error's text may hold the provider's address: it is logged, not
// answered.
func (x *exchange) broken(err error) *fault.Fault {
	name := x.planned.Provider.Name
	if errors.Is(err, errStopping) {
		// The provider has not failed: what it has done is charged (RES-4).
		x.ending.Outcome = "gateway_stopped"
		f := fault.New(fault.ServiceUnavailable, "the gateway is stopping and has cut this request; what its provider has done is charged")
		f.RetryAfterSeconds = 2
		return f
	}
	if errors.Is(err, errClientGone) {
		x.ending.Outcome = outcomeGone
		return clientGone()
	}
	// What is too large for us, its provider has made and bills (RES-4).
	x.ending.Failed = !errors.Is(err, errTooLarge)
	x.g.Log.Warn("provider failed", "request_id", x.id.String(), "provider", name, "error", redactURL(err))
	var timeout net.Error
	switch {
	case errors.Is(err, errFirstByte), errors.Is(err, errIdle), errors.Is(err, errTotal),
		errors.As(err, &timeout) && timeout.Timeout():
		x.ending.Outcome = "upstream_timeout"
		return fault.New(fault.UpstreamTimeout, "provider %q did not answer in time", name)
	case errors.Is(err, errInvalidAnswer):
		x.ending.Outcome = "upstream_invalid"
		return fault.New(fault.UpstreamInvalid, "provider %q gave an answer that is not %s", name, "valid: cut off, too large or not its protocol")
	case x.ending.FirstByteAt > 0:
		x.ending.Outcome = "upstream_cut"
		return fault.New(fault.UpstreamUnreachable, "the connection to provider %q broke before its answer was complete", name)
	default:
		x.ending.Outcome = "upstream_unreachable"
		return fault.New(fault.UpstreamUnreachable, "provider %q cannot be reached", name)
	}
}

// redactURL drops the address from a transport error: a query may hold a key.
func redactURL(err error) string {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Op + ": " + e.Err.Error()
	}
	return err.Error()
}

var (
	errInvalidAnswer = errors.New("invalid answer")
	errTooLarge      = fmt.Errorf("%w: it is too large", errInvalidAnswer)
)

// answerBytes bounds a whole answer.
func (u *upstream) answerBytes() int64 {
	if n := u.provider.Bounds.MaxAnswerBytes; n > 0 {
		return n
	}
	return route.DefaultMaxAnswerBytes
}

// readAll reads a whole answer within its bound.
func (u *upstream) readAll(r io.Reader) ([]byte, error) {
	limit := u.answerBytes()
	if n := u.ContentLength; n > 0 && n <= limit && r == io.Reader(u.Body) {
		body := make([]byte, n)
		k, err := io.ReadFull(r, body)
		return body[:k], err
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		return body, errTooLarge
	}
	return body, err
}
