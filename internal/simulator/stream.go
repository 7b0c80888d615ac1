// SPDX-License-Identifier: Apache-2.0

package simulator

import "net/http"

// stream sends an answer event by event.
func (x *exchange) stream() {
	x.status = http.StatusOK
	x.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	x.w.Header().Set("Cache-Control", "no-cache")
	x.w.WriteHeader(x.status)
	if !x.roles() || !x.reach(AfterEvents(0)) || !x.contents() || !x.finishes() || !x.reach(BeforeUsage()) {
		return
	}
	if x.plan.hasUsageChunk() {
		if !x.chunk(x.plan.appendUsageChunk) {
			return
		}
	}
	if !x.reach(BeforeDone()) || !x.pause() {
		return
	}
	x.end(Served)
	x.append(func(dst []byte) []byte { return append(dst, "[DONE]"...) })
	x.close()
}

func (x *exchange) roles() bool {
	delta := func(dst []byte) []byte { return append(dst, `"role":"assistant","content":"","refusal":null`...) }
	for choice := range x.plan.choices {
		if !x.chunk(func(dst []byte) []byte { return x.plan.appendChunk(dst, choice, delta, "", -1) }) {
			return false
		}
	}
	return true
}

// contents sends the text of one choice after the other.
func (x *exchange) contents() bool {
	var choice, event, sent int64
	delta := func(dst []byte) []byte {
		dst = append(dst, `"content":"`...)
		dst = appendText(dst, x.plan.offset(event), x.plan.offset(event+1))
		return append(dst, '"')
	}
	data := func(dst []byte) []byte {
		dst = x.plan.appendChunk(dst, choice, delta, "", x.soFar())
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
			x.produced = choice*x.plan.output + x.plan.reasoning + x.plan.tokens(event+1)
			if !x.write(data) {
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
	if x.plan.usage == UsageEach {
		return x.produced
	}
	return -1
}

func (x *exchange) finishes() bool {
	nothing := func(dst []byte) []byte { return dst }
	for choice := range x.plan.choices {
		usage := x.soFar()
		if x.plan.usage == UsageFinish && choice == x.plan.choices-1 {
			usage = x.produced
		}
		if !x.chunk(func(dst []byte) []byte {
			return x.plan.appendChunk(dst, choice, nothing, x.plan.finish, usage)
		}) {
			return false
		}
	}
	return true
}

// chunk pauses and sends one event.
func (x *exchange) chunk(data func([]byte) []byte) bool { return x.pause() && x.write(data) }

// pause keeps the gap between two writes, and notices that the client has gone.
func (x *exchange) pause() bool {
	if x.ctx.Err() != nil {
		return false
	}
	gap := x.wrote && x.out.events == 0 && x.b.Gap > 0
	return !gap || x.s.wait(x.ctx, x.b.Gap) == nil
}

// write appends an event and sends when enough are pending.
func (x *exchange) write(data func([]byte) []byte) bool {
	x.append(data)
	if !x.out.full() {
		return true
	}
	x.wrote = true
	return x.flush()
}

// append makes data the next pending event.
func (x *exchange) append(data func([]byte) []byte) {
	newline := "\n"
	if x.b.CRLF {
		newline = "\r\n"
	}
	dst := x.out.pending
	if x.b.Ping {
		dst = append(append(append(dst, ": ping"...), newline...), newline...)
	}
	dst = data(append(dst, "data: "...))
	x.out.pending = append(append(dst, newline...), newline...)
	x.out.events++
}

// event appends an event with the data given.
func (x *exchange) event(data []byte) {
	x.append(func(dst []byte) []byte { return append(dst, data...) })
}
