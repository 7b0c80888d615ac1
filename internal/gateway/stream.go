// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/fault"
)

const (
	// terminalGrace: a stream is closed this long after its last event (DIS-9).
	terminalGrace = time.Second
	// A stream is read into a small buffer, since thousands may be open, which grows
	// while the provider fills it. What it leaves behind takes a write of its own.
	leastStreamBuffer = 4 << 10
	mostStreamBuffer  = 32 << 10
)

// buffers are what a stream is read into and written from. Nothing of them is kept.
type buffers struct{ in, out []byte }

var spareBuffers = sync.Pool{New: func() any { return &buffers{in: make([]byte, leastStreamBuffer)} }}

// spare gives them to the next stream, unless they have become large.
func (b *buffers) spare() {
	if len(b.in) == leastStreamBuffer && cap(b.out) <= mostStreamBuffer {
		spareBuffers.Put(b)
	}
}

// relay is one streamed answer on its way to the client.
type relay struct {
	x      *exchange
	u      *upstream
	stream Stream
	flush  *http.ResponseController
	idle   *time.Timer
	last   *time.Timer // set at the terminal event
	events int64
	*buffers
	// started: the head of the answer has gone to the client.
	started bool
	// lost: writing to the client failed; the provider is read for its usage.
	lost bool
}

// relayStream passes events on as they come, flushing each, and settles before
// the last one leaves (RES-11).
func (x *exchange) relayStream(u *upstream) {
	defer u.end()
	defer u.Body.Close()
	r := &relay{x: x, u: u, flush: http.NewResponseController(x.w), buffers: spareBuffers.Get().(*buffers)}
	defer r.spare()
	r.stream = x.protocol.NewStream(StreamOptions{
		HideUsage: !x.call.WantsStreamUsage, MaxEventBytes: int(u.provider.Bounds.MaxEventBytes), MaxTokens: x.planned.MaxUsageTokens(),
		Call: x.call,
	})
	r.idle = u.after(u.provider.Timeouts.Idle, errIdle)
	if !x.call.ArrayStream && u.isObject() {
		r.stopTimers()
		x.relayWhole(u)
		return
	}
	err := r.pump()
	r.stopTimers()
	r.end(err)
}

func (r *relay) stopTimers() {
	for _, timer := range [...]*time.Timer{r.idle, r.last} {
		if timer != nil {
			timer.Stop()
		}
	}
}

// pump reads until the stream ends; nil is an end in order.
func (r *relay) pump() error {
	body, err := r.u.plain()
	if err != nil {
		return err
	}
	for {
		n, err := body.Read(r.in)
		if n > 0 {
			if feedErr := r.feed(r.in[:n], errors.Is(err, io.EOF)); feedErr != nil {
				return feedErr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == len(r.in) && n < mostStreamBuffer {
			r.in = make([]byte, 2*n)
		}
	}
}

// feed takes what was read; last: it is known that nothing follows.
func (r *relay) feed(p []byte, last bool) error {
	var err error
	r.out, err = r.stream.Feed(r.out[:0], p)
	if n := r.stream.Events(); n > r.events {
		r.events = n
		if r.idle != nil {
			r.idle.Reset(time.Duration(r.u.provider.Timeouts.Idle) * time.Microsecond)
		}
	}
	if !r.x.settled {
		// Whatever happens from here on, this much is known of it.
		r.x.ending.Observed = r.stream.Observed()
		if r.x.ending.Observed.Finished {
			r.finished("ok")
			r.last = time.AfterFunc(terminalGrace, func() { r.u.cancel(errTerminal) })
		}
	}
	if last && err == nil && r.x.settled {
		r.write(r.out) // the end of the answer is on its way: one write for both
	} else {
		r.send(r.out)
	}
	if err != nil {
		return errors.Join(errTooLarge, err)
	}
	return nil
}

// finished settles with what the stream has shown.
func (r *relay) finished(outcome string) {
	x := r.x
	x.ending.Observed = r.stream.Observed()
	x.ending.Outcome = outcome
	if x.ending.Observed.ErrorSeen {
		x.ending.Failed, x.ending.Outcome = true, "provider_error"
	}
	r.start()
	x.settle()
	x.w.Header().Set("X-Weir-Cost-Usd", x.charged.Cost.String())
}

// start sends the head, when the first event is there (DIS-9). The cost of a
// stream is known at its end: it goes as a trailer (ERR-4).
func (r *relay) start() {
	if r.started {
		return
	}
	r.started, r.x.answered = true, true
	h := r.x.answerHeaders(r.u)
	h.Set("Trailer", "X-Weir-Cost-Usd")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	r.x.w.WriteHeader(r.u.StatusCode)
}

// send writes events to the client and flushes them.
func (r *relay) send(p []byte) {
	if !r.write(p) {
		return
	}
	if err := r.flush.Flush(); err != nil {
		r.loseClient()
	}
}

// write leaves it to the server when they are flushed; false: there is nothing to
// flush.
func (r *relay) write(p []byte) bool {
	if len(p) == 0 || r.lost {
		return false
	}
	r.start()
	_ = r.flush.SetWriteDeadline(time.Now().Add(r.x.g.WriteTimeout)) // a client that takes nothing has gone
	if _, err := r.x.w.Write(r.u.redact(p)); err != nil {
		r.loseClient()
		return false
	}
	return true
}

func (r *relay) loseClient() {
	r.lost = true
	r.u.clientGone()
}

// end settles a stream that was not settled at its terminal event, and tells
// the client how it broke (ERR-6): never a clean end.
func (r *relay) end(err error) {
	x := r.x
	if x.settled {
		return
	}
	rest := r.stream.Close(nil)
	x.ending.Observed = r.stream.Observed()
	gone := x.r.Context().Err() != nil || r.lost
	if gone && !x.ending.Observed.Finished {
		x.ending.Outcome = outcomeGone
		r.breakOff(clientGone())
		return
	}
	if err == nil && x.ending.Observed.Finished {
		r.finished("ok")
		r.send(rest)
		return
	}
	if x.ending.Observed.ErrorSeen && err == nil {
		// The provider has told the client itself how it ended.
		r.finished("provider_error")
		r.send(rest)
		return
	}
	if err == nil {
		err = io.ErrUnexpectedEOF // without a terminal event
	}
	r.breakOff(x.brokenBy(r.u, err))
}

// breakOff settles, and ends the answer with a fault.
func (r *relay) breakOff(f *fault.Fault) {
	x := r.x
	if !r.started {
		x.fail(f)
		return
	}
	x.settle()
	x.w.Header().Set("X-Weir-Cost-Usd", x.charged.Cost.String())
	r.send(r.stream.Fault(f, x.id.String()))
}
