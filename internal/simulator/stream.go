// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"bytes"
	"net/http"
)

// stream sends an answer event by event.
func (x *exchange) stream() {
	x.status = http.StatusOK
	kind := "text/event-stream; charset=utf-8"
	if x.q.Array {
		kind = "application/json"
	}
	x.w.Header().Set("Content-Type", kind)
	x.w.Header().Set("Cache-Control", "no-cache")
	x.w.WriteHeader(x.status)
	if x.q.Protocol == Anthropic && x.plan.tellsUsage() {
		x.produced = x.plan.begun() // the message is told so at its start
	}
	if !x.speech.opening(x) || !x.reach(AfterEvents(0)) || !x.contents() || !x.speech.finish(x) || !x.pad() || !x.reach(BeforeUsage()) ||
		!x.speech.usage(x) || !x.reach(BeforeDone()) || !x.pause() {
		return
	}
	x.end(Served)
	x.speech.done(x)
	if x.b.Linger && x.flush() {
		<-x.ctx.Done()
	}
	x.close()
}

// pad sends an event that says nothing.
func (x *exchange) pad() bool {
	if x.b.Pad == 0 {
		return true
	}
	if !x.q.Array {
		x.out.pending = append(x.out.pending, ": "...)
	}
	x.out.pending = append(x.out.pending, bytes.Repeat([]byte{' '}, int(x.b.Pad))...)
	if !x.q.Array {
		x.out.pending = append(x.out.pending, "\n\n"...)
	}
	return x.flush()
}

// contents sends the text of one choice after the other.
func (x *exchange) contents() bool {
	var choice, event, sent int64
	data := func(dst []byte) []byte {
		dst = x.speech.content(dst, x, choice, event)
		if x.b.Invalid && sent == 1 {
			dst[len(dst)-1] = ']'
		}
		return dst
	}
	for choice = range x.plan.choices {
		for event = range x.plan.events() {
			if !x.pause() {
				return false
			}
			x.produced = max(x.produced, choice*x.plan.output+x.plan.reasoning+x.plan.tokens(event+1))
			if !x.write(x.q.deltaName(), data) {
				return false
			}
			sent++
			if !x.reach(AfterEvents(sent)) {
				return false
			}
		}
		x.produced = (choice + 1) * x.plan.output
	}
	return true
}

// soFar is the output that a content chunk reports, -1 for none.
func (x *exchange) soFar() int64 {
	switch x.plan.usage {
	case UsageEach, UsageSpread:
		return x.produced
	case UsageShrink:
		return x.produced + shrinks
	default:
		return -1
	}
}

// shrinks is what a report is too high by, before the last one (UsageShrink).
const shrinks = 1_000

// chunk pauses and sends one event.
func (x *exchange) chunk(name string, data func([]byte) []byte) bool {
	return x.pause() && x.write(name, data)
}

// pause keeps the gap between two writes, and notices that the client has gone.
func (x *exchange) pause() bool {
	if x.ctx.Err() != nil {
		return false
	}
	gap := x.wrote && x.out.events == 0 && x.b.Gap > 0
	return !gap || x.s.wait(x.ctx, x.b.Gap) == nil
}

// write appends an event and sends when enough are pending.
func (x *exchange) write(name string, data func([]byte) []byte) bool {
	x.append(name, data)
	if !x.out.full() {
		return true
	}
	x.wrote = true
	return x.flush()
}

// append makes data the next pending event. name is that of the event in
// protocols that name them.
func (x *exchange) append(name string, data func([]byte) []byte) {
	dst := x.out.pending
	if x.q.Array {
		separator := byte(',')
		if !x.opened {
			separator, x.opened = '[', true
		}
		x.out.pending = append(data(append(dst, separator)), '\n')
		x.out.events++
		return
	}
	newline := "\n"
	if x.b.CRLF {
		newline = "\r\n"
	}
	comment := x.plan.dialect.comment()
	if x.b.Ping {
		comment = "ping"
	}
	if comment != "" {
		dst = append(append(append(append(dst, ": "...), comment...), newline...), newline...)
	}
	if name != "" && x.q.namesEvents() {
		dst = append(append(append(dst, "event: "...), name...), newline...)
	}
	dst = data(append(dst, "data: "...))
	x.out.pending = append(append(dst, newline...), newline...)
	x.out.events++
}
