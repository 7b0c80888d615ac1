// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strconv"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// refuse answers with one of our faults; a reservation is settled first, so that
// whoever has read the answer finds it settled (RES-11).
func (x *exchange) refuse(f *fault.Fault) {
	workspace := ""
	if x.snapshot != nil {
		workspace = x.snapshot.Workspace.ID
	}
	x.g.Observer.Refused(f, workspace)
	x.answerFault(f)
}

// fail answers for an attempt that broke off; who has gone is refused nothing.
func (x *exchange) fail(f *fault.Fault) {
	if x.ending.Outcome == outcomeGone {
		x.answerFault(f)
		return
	}
	x.refuse(f)
}

// answerFault is for what is no refusal.
func (x *exchange) answerFault(f *fault.Fault) {
	x.settle()
	x.answered = true
	writeFault(x.w, x.protocol, f, x.id.String())
}

// clientGone is for a client that has closed its side of the connection. It has
// gone as far as anybody can tell; one that reads on is told so, and never finds
// an empty answer or a clean end (ERR-6).
func clientGone() *fault.Fault {
	f := fault.New(fault.InvalidRequest, "the client closed its side of the connection before the answer was complete, which ends the request; what its provider has done is charged")
	f.NoRetry = true
	return f
}

// refuseEarly answers where no exchange has begun: an unknown path or method.
func (g *Gateway) refuseEarly(w http.ResponseWriter, r *http.Request, f *fault.Fault) {
	id, _ := g.name(w, r, "")
	g.Observer.Refused(f, "")
	writeFault(w, g.protocolAt(r.URL), f, id.String())
}

// Refuse answers a request that nothing can serve yet, in the shape and under the
// names of the door that it came to (ERR-1, ERR-4).
func Refuse(w http.ResponseWriter, r *http.Request, doors []Door, c clock.Clock, f *fault.Fault) {
	g := &Gateway{Doors: doors, Clock: c}
	g.routes = g.table()
	protocol, idHeader := g.protocolAt(r.URL), ""
	for i := range g.routes {
		route := &g.routes[i]
		if _, ok := route.matches(r.URL); ok && route.Governed {
			protocol, idHeader = route.protocol, route.idHeader
		}
	}
	id, _ := g.name(w, r, idHeader)
	writeFault(w, protocol, f, id.String())
}

// writeFault sets what ERR-2 and ERR-3 promise and writes the protocol's body.
func writeFault(w http.ResponseWriter, p Protocol, f *fault.Fault, id string) {
	h := w.Header()
	h.Set("X-Weir-Error-Source", "gateway")
	if f.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfterSeconds))
	}
	if f.NoRetry {
		h.Set("X-Should-Retry", "false")
	}
	if f.ResetSeconds > 0 {
		h.Set("X-Weir-Reset", strconv.FormatInt(f.ResetSeconds, 10))
	}
	status, contentType, body := p.Fault(f, id)
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; the refusal stands
}

// rateHeaders describes the tightest runtime limit (RAT-3).
func (x *exchange) rateHeaders(result *ledger.Result, admitted bool) {
	rate, ok := admit.Rate(result.Readings, admitted, result.At)
	if !ok {
		return
	}
	h := x.w.Header()
	h.Set("X-RateLimit-Limit", strconv.FormatInt(rate.Limit, 10))
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(rate.Remaining, 10))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(rate.ResetSeconds, 10))
}
