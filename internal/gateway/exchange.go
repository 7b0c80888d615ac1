// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// exchange is one governed request on its way.
type exchange struct {
	g        *Gateway
	w        http.ResponseWriter
	r        *http.Request
	name     string // of a model, in the path
	protocol Protocol
	started  time.Time

	id       ledger.ID
	clientID string

	secret   string
	key      *tenant.Key
	snapshot *admit.Snapshot
	body     []byte
	call     *call.Call
	held     route.Holdings // what the call names of what providers keep
	who      admit.Attribution
	plan     *admit.Plan

	reservation *ledger.Reservation
	planned     *admit.Planned
	ending      admit.Ending
	lease       *lease
	asked       int64 // put aside in the process's own bucket while the step decides
	throttled   int64 // taken from it
	settled     bool
	answered    bool // the client has had a status line
	charged     admit.Charged
}

// receive names the request and its answer's first headers (ERR-4).
func (g *Gateway) receive(w http.ResponseWriter, r *http.Request, route *Route, name string) *exchange {
	x := &exchange{g: g, w: w, r: r, name: name, started: time.Now()}
	if x.protocol = route.protocol; x.protocol == nil {
		x.protocol = g.protocolAt(r.URL)
	}
	x.id, x.clientID = g.name(w, r, route.idHeader)
	return x
}

// name gives a request its id and labels the answer with it; idHeader, if any, is
// the door's own.
func (g *Gateway) name(w http.ResponseWriter, r *http.Request, idHeader string) (ledger.ID, string) {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	id := ledger.NewID(g.Clock.Now(), random)
	label := r.Header.Get("X-Request-Id")
	if !saneLabel(label) {
		label = ""
	}
	h := w.Header()
	h.Set("X-Weir-Request-Id", id.String())
	if label == "" {
		h.Set("X-Request-Id", id.String())
	} else {
		h.Set("X-Request-Id", label)
	}
	if idHeader != "" {
		h.Set(idHeader, h.Get("X-Request-Id"))
	}
	return id, label
}

// saneLabel: a client's id is kept when it is a token of at most 128 characters.
func saneLabel(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// identify finds the caller by its key (KEY-1, check 1).
func (x *exchange) identify() bool {
	if n := x.r.ContentLength; n > x.g.MaxBodyBytes {
		x.refuse(x.tooLarge())
		return false
	}
	secret, f := secretOf(x.r)
	if f != nil {
		x.refuse(f)
		return false
	}
	x.secret = secret
	return x.lookUp()
}

func (x *exchange) lookUp() bool {
	key, snapshot, err := x.g.Directory.Identify(x.r.Context(), x.secret)
	if err != nil {
		x.refuse(x.g.Directory.Refuse(err))
		return false
	}
	x.key, x.snapshot = key, snapshot
	return true
}

func (x *exchange) tooLarge() *fault.Fault {
	return fault.New(fault.RequestTooLarge, "the body is larger than %d bytes, the most that this gateway takes", x.g.MaxBodyBytes)
}

// read takes the body in and decodes what the checks need. An inactive key
// comes before a body that cannot be read (ORD-2).
func (x *exchange) read() bool {
	f := x.decode()
	if f == nil {
		return true
	}
	if f.Code != fault.RequestTooLarge && inactive(x.key, x.g.Clock.Now()) {
		f = inactiveFault(x.key)
	}
	x.refuse(f)
	return false
}

func (x *exchange) decode() (f *fault.Fault) {
	if x.body, f = x.readBody(); f != nil {
		return f
	}
	if x.call, f = x.protocol.Decode(Request{
		Body: x.body, Model: x.name, Query: x.r.URL.Query(), ContentType: x.r.Header.Get("Content-Type"),
	}); f != nil {
		return f
	}
	if f = x.attribute(); f != nil {
		return f
	}
	return x.look()
}

// attribute reads whom and what the request is for (KEY-7, RAT-7).
func (x *exchange) attribute() (f *fault.Fault) {
	h := x.r.Header
	x.who, f = admit.Attribute(x.key, h.Values(admit.UserHeader), h.Values(admit.TagsHeader), x.call)
	return f
}

// BoundTimes gives the body of a request so long to arrive, whether or not
// anybody reads it: net/http reads on after a refusal, to keep the connection.
// The refusal is sent before that. What an earlier request of the connection had
// to take its answer in is lifted.
func BoundTimes(w http.ResponseWriter, r *http.Request, body time.Duration) {
	control := http.NewResponseController(w)
	// Not every writer can do these; then whoever made it bounds it.
	_ = control.SetWriteDeadline(time.Time{})
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(time.Now().Add(body))
		_ = control.EnableFullDuplex()
	}
}

// readBody reads within the bounds of size and time. Its deadline is lifted
// afterwards: left in place it would end a long stream with it.
func (x *exchange) readBody() ([]byte, *fault.Fault) {
	if packed := x.r.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return nil, fault.New(fault.InvalidRequest, "the body is packed (Content-Encoding: %.40q); send it as it is", packed)
	}
	body, err := readUpTo(http.MaxBytesReader(x.w, x.r.Body, x.g.MaxBodyBytes), x.r.ContentLength)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // see BoundTimes
		return body, nil
	case errors.As(err, &tooLarge):
		return nil, x.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fault.New(fault.InvalidRequest, "the body took longer than %s to arrive", x.g.BodyTimeout)
	default:
		return nil, fault.New(fault.InvalidRequest, "the body could not be read to its end")
	}
}

func readUpTo(r io.Reader, length int64) ([]byte, error) {
	if length > 0 {
		body := make([]byte, length)
		n, err := io.ReadFull(r, body)
		return body[:n], err
	}
	return io.ReadAll(r)
}

func inactive(k *tenant.Key, now int64) bool {
	return k.Disabled || k.ExpiresAt > 0 && now >= k.ExpiresAt
}

func inactiveFault(k *tenant.Key) *fault.Fault {
	f := fault.New(fault.APIKeyInactive, "key %q is disabled or has expired; ask whoever runs this gateway", k.Name)
	f.NoRetry = true
	return f
}

// admit submits the one atomic step. An operation that was built on an old
// snapshot is built again, from the key on (ENGINE 13); one whose output a short
// budget may lower is tried smaller, and the last word is one that is recorded
// (BUD-10).
func (x *exchange) admit() bool {
	defer x.leaveLocal()
	outputCap, final := int64(0), false
	for try := 1; try <= decisionTries; try++ {
		x.plan = admit.Build(admit.Request{
			ID: x.id, Key: x.key, Call: x.call, Snapshot: x.snapshot, Who: x.who,
			Process: x.g.Process, ClientID: x.clientID, HoldMicros: x.g.HoldMicros, OutputCap: outputCap,
			Held:      x.held,
			Tentative: !final && try < decisionTries,
		})
		if !x.throttle() {
			return false
		}
		result, err := x.g.Teller.Submit(x.r.Context(), x.plan.Op)
		if err != nil {
			x.refuse(unavailable())
			return false
		}
		switch result.Verdict {
		case ledger.Admitted:
			x.admitted(&result)
			return true
		case ledger.Refused:
			if x.plan.Op.Quiet {
				bound, fits := x.plan.Shrunk(&result)
				if outputCap = 0; fits {
					outputCap = bound
				}
				final = !fits
				continue
			}
			x.rateHeaders(&result, false)
			x.refuse(x.plan.Refuse(&result))
			return false
		case ledger.Stale:
			if !x.refresh() {
				return false
			}
		default:
			x.g.Log.Error("admission was not decided", "request_id", x.id.String(), "verdict", int(result.Verdict))
			x.refuse(unavailable())
			return false
		}
	}
	x.refuse(unavailable())
	return false
}

// refresh starts again from the key, on the configuration as it is now.
func (x *exchange) refresh() bool {
	if _, err := x.g.Directory.Refresh(x.r.Context(), x.snapshot.Workspace.ID); err != nil {
		x.refuse(unavailable())
		return false
	}
	if !x.lookUp() {
		return false
	}
	if f := x.attribute(); f != nil {
		x.refuse(f)
		return false
	}
	return true
}

func (x *exchange) admitted(result *ledger.Result) {
	x.takeLocal()
	x.reservation = result.Reservation
	x.planned = &x.plan.Targets[result.Candidate]
	x.ending = admit.Ending{
		Outcome:        "not_sent",
		FreeWhenBroken: !x.planned.Provider.ChargesPartial(),
	}
	x.rateHeaders(result, true)
	h := x.w.Header()
	if text := admit.Warnings(result.Readings, result.At, x.snapshot.Workspace.HideAmounts); text != "" {
		h.Set(admit.WarningHeader, text)
	}
	if bound := x.plan.OutputCap; bound > 0 {
		h.Set(admit.OutputHeader, strconv.FormatInt(bound, 10))
	}
	x.lease = x.g.running.keep(x.reservation, x.g.Clock.Now()+x.g.HoldMicros/3)
}

// unavailable is our answer while nobody can tell (RES-8): at once, and nothing
// was sent.
func unavailable() *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "the gateway cannot decide right now because its store does not answer; nothing was sent and nothing is charged")
	f.RetryAfterSeconds = 2
	return f
}

// stopping is the answer to what comes after SIGTERM (STO-4).
func stopping() *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "the gateway is stopping and takes no new requests; nothing was sent and nothing is charged")
	f.RetryAfterSeconds = 2
	return f
}

// settle ends the reservation, once. It is queued before the last byte of the
// answer leaves (RES-11).
func (x *exchange) settle() {
	if x.settled || x.reservation == nil {
		return
	}
	x.settled = true
	x.g.running.drop(x.lease)
	x.ending.EndedAt = x.g.Clock.Now()
	x.charged = admit.Settle(x.reservation, x.planned, x.ending)
	x.correctLocal()
	if err := x.g.Teller.Post(x.charged.Op, nil); err != nil {
		x.g.Log.Error("a settlement could not be queued; the sweep charges its worst case", "request_id", x.id.String(), "error", err)
	}
	x.keep()
	x.g.Observer.Ended(x.reservation, &x.charged, time.Since(x.started))
}

// finish is the last word on every path, a panic's too: the reservation is
// settled with what is known, and the process lives on (BR-116). An answer that
// had begun is broken off, never ended cleanly (ERR-6).
func (x *exchange) finish() {
	p := recover()
	if p == nil {
		x.settle()
		return
	}
	x.g.Log.Error("panic while serving a request", "request_id", x.id.String(), "panic", p, "stack", string(debug.Stack()))
	if x.reservation != nil && x.ending.Sent {
		x.ending.Outcome = "gateway_error"
	}
	x.settle()
	if x.answered {
		panic(http.ErrAbortHandler)
	}
	x.refuse(fault.New(fault.InternalError, "the gateway failed while serving this request; its id is in X-Weir-Request-Id"))
}
