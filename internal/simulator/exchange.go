// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// exchange is one accepted request on its way through its behaviour. Its steps
// report false when the answer has ended there.
type exchange struct {
	s      *Server
	w      http.ResponseWriter
	client context.Context // ends when the client goes
	ctx    context.Context // ends when the exchange has to stop
	q      *Request
	b      Behaviour
	plan   plan
	speech speech
	fail   *refusal
	ticket *ticket
	out    sink

	status   int
	produced int64  // output tokens so far, of all choices
	ended    bool   // booked
	wrote    bool   // a stream has had its first write
	sequence int64  // of a response's events
	kind     string // of content; "" is JSON
	opened   bool   // of a stream that is an array: it has an element
	lost     bool   // writes fail and are ignored
}

// run answers the request.
func (x *exchange) run() {
	unhook := context.AfterFunc(x.client, func() { x.s.meter.leave(x.ticket) })
	defer func() {
		unhook()
		if !x.ended {
			x.end(Gone)
		}
	}()
	if x.s.gate.pass(x.ctx, x.s.meter.held) != nil {
		return
	}
	if x.b.Latency > 0 && x.s.wait(x.ctx, x.b.Latency) != nil {
		return
	}
	x.out.init(x.w, &x.b, x.q)
	maps.Copy(x.w.Header(), x.b.Header)
	x.w.Header().Set("X-Request-Id", "sim-"+strconv.FormatInt(x.ticket.entry.Number, 10))
	switch {
	case !x.reach(BeforeHeaders()):
	case x.fail != nil:
		x.failed()
	case x.q.Stream && !x.b.Whole:
		x.stream()
	case x.q.Figure:
		x.figure()
	default:
		x.whole()
	}
}

// end books the request by the rule of the package comment.
func (x *exchange) end(o Outcome) {
	x.ended = true
	if o == Gone {
		x.s.meter.leave(x.ticket) // its hook may not have run yet
	}
	input, output := x.plan.input, x.produced
	broken := x.b.Break.Manner != ""
	switch {
	case x.b.Free,
		x.fail != nil && (x.b.Usage != UsageAlways || o == Gone),
		x.b.Break.At == BeforeHeaders(),
		x.b.Invalid && !x.streams() && x.wordless(),
		!x.streams() && broken && (x.b.Break.Manner == BreakError || x.b.Break.At == AfterEvents(0)),
		!x.streams() && broken && x.wordless(),
		x.streams() && broken && x.produced == 0:
		input, output = 0, 0
	case x.fail != nil:
		output = x.plan.choices * x.plan.output
	case x.q.media() && (broken || o == Gone || x.b.Invalid && !x.streams()):
		output = 0
	case !x.streams() && broken && x.b.Break.At.Place == PlaceAfter && x.b.Break.At.Events <= x.plan.events():
		output = min(output, x.plan.reasoning+x.plan.tokens(x.b.Break.At.Events)) // what has been sent
	}
	x.s.meter.end(x.ticket, o, x.status, input, output, x.plan.billed(input, output == x.plan.choices*x.plan.output))
}

// streams tells that the answer is a stream.
func (x *exchange) streams() bool { return x.q.Stream && !x.b.Whole }

// wordless: the beginning of a whole answer is worth nothing.
func (x *exchange) wordless() bool {
	return x.q.Figure && !x.q.media() && x.q.Path != transcriptPath
}

// reach comes to a point of the answer: waits at its gates, or breaks off there.
func (x *exchange) reach(p Point) bool {
	for _, g := range x.b.Gates {
		if g.At != p {
			continue
		}
		if !x.flush() || g.Gate.pass(x.ctx, x.s.meter.held) != nil {
			return false
		}
	}
	if x.b.Break.Manner == "" || x.b.Break.At != p {
		return true
	}
	if !x.flush() || p != BeforeHeaders() && x.out.send(nil) != nil { // the headers at least
		return false
	}
	switch x.b.Break.Manner {
	case BreakCut, BreakClose:
		x.end(Broken)
		hangUp(x.out.control, x.b.Break.Manner == BreakCut)
	case BreakHang:
		select {
		case <-x.client.Done():
		case <-x.s.life.Done():
		}
	case BreakError:
		x.end(Broken)
		x.breaks(x.brokenError())
		x.close()
	case BreakEnd:
		x.status = http.StatusOK
		x.end(Broken)
		x.close()
	}
	return false
}

// brokenError is the error that a broken answer ends with.
func (x *exchange) brokenError() *refusal {
	return &refusal{http.StatusInternalServerError, simulatedCode, "", brokenMessage(x.q, &x.b)}
}

// failed answers with an error status.
func (x *exchange) failed() {
	x.status = x.fail.status
	body := x.speech.failure(nil, x.fail, &x.plan, x.b.Usage == UsageAlways)
	if x.b.RetryAfterSeconds > 0 {
		x.w.Header().Set("Retry-After", strconv.FormatInt(x.b.RetryAfterSeconds, 10))
	}
	x.end(Failed)
	x.send(x.fail.status, body, len(body))
	x.close()
}

// whole sends a whole answer, or its beginning when it breaks off.
func (x *exchange) whole() {
	body, firstText, usageAt := x.speech.whole(x.out.pending[:0], &x.plan)
	body = x.padded(body, usageAt)
	x.out.pending = body[:0]
	if !x.passGates() {
		return
	}
	x.produced = x.plan.choices * x.plan.output
	x.status = http.StatusOK
	if x.b.Invalid {
		body[len(body)-1] = ']'
	}
	sent := len(body)
	switch at := x.b.Break.At; {
	case x.b.Break.Manner == "":
	case x.b.Break.Manner == BreakError:
		body = x.speech.failure(nil, x.brokenError(), &x.plan, false)
		sent = len(body)
	case at == AfterEvents(0):
		sent = 0
	case at.Place == PlaceAfter && at.Events <= x.plan.events():
		sent = firstText + int(x.plan.offset(at.Events))
	case at.Place == PlaceUsage:
		sent = usageAt
	case at.Place == PlaceDone:
		sent = len(body) - 1
	}
	x.sendWhole(body, sent)
}

// padded has spaces at a place of an answer, between two of its words.
func (x *exchange) padded(body []byte, at int) []byte {
	if x.b.Pad == 0 {
		return body
	}
	padding := bytes.Repeat([]byte{' '}, int(x.b.Pad))
	return slices.Insert(body, at, padding...)
}

// sendWhole sends the first bytes of a body, and breaks off there unless they
// are all. An end in order has to be booked before its bytes go.
func (x *exchange) sendWhole(body []byte, sent int) {
	length := len(body)
	switch {
	case x.b.Break.Manner == BreakEnd && sent < length:
		x.end(Broken)
		length = sent
	case x.b.Break.Manner == BreakError:
		x.end(Broken)
	case sent == length:
		x.end(Served)
	}
	ok := x.send(x.status, body[:sent], length)
	if sent == length {
		x.close()
	} else if ok && x.out.send(nil) == nil {
		x.reach(x.b.Break.At)
	}
}

// passGates waits at the gates inside a whole answer, which is sent at once.
func (x *exchange) passGates() bool {
	for _, g := range x.b.Gates {
		if g.At != BeforeHeaders() && g.Gate.pass(x.ctx, x.s.meter.held) != nil {
			return false
		}
	}
	return true
}

// send writes headers and a body, or the beginning of one of length bytes.
func (x *exchange) send(status int, body []byte, length int) bool {
	kind := x.kind
	if kind == "" {
		kind = "application/json"
	}
	x.w.Header().Set("Content-Type", kind)
	if x.out.zip == nil {
		x.w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	x.w.WriteHeader(status)
	if len(body) == 0 {
		return true
	}
	if x.out.zip == nil && x.out.split == 1 {
		_, err := x.w.Write(body)
		return err == nil
	}
	x.out.pending = body
	return x.flush()
}

// flush sends pending events. A client that has gone ends the answer, unless
// the behaviour ignores it.
func (x *exchange) flush() bool {
	if x.lost {
		x.out.pending, x.out.events = x.out.pending[:0], 0
		return true
	}
	if x.out.flush() == nil {
		return true
	}
	x.lost = x.b.Ignore
	return x.lost
}

// close ends the body in order.
func (x *exchange) close() {
	if x.flush() && !x.lost {
		_ = x.out.end() // the client has gone: it was billed before the last byte
	}
}
