// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/simulator"
)

// parting is what the client does.
type parting int

const (
	stays       parting = iota
	leavesEarly         // before the answer's headers
	leavesLate          // after three events
	halfEarly           // closes its sending side before the answer's headers, and reads on
	halfLate            // likewise after three events
)

// ending is one way for a request to end.
type ending struct {
	name    string
	variant string // of the provider's row; "": plain
	client  parting
	behave  func(m mode, b *simulator.Behaviour)
	// gate is where the answer waits for the client's parting.
	gate *simulator.Point
	// opens: the gate lets the answer go on afterwards.
	opens bool
	has   func(m mode) bool
	// status and code are what the client sees: 200 with a clean end, a provider's
	// error, or a failure of ours, which a stream that has begun has as an event.
	status int
	code   string
	// provider: what broke is told by the provider itself.
	provider bool
	owes     owes
	// lax: a stream's clean end has no event of its own.
	lax bool
	// silent: nothing tells the output but its bytes, so that media have none.
	silent bool
}

// owes is what a request of a mode costs: input and output tokens.
type owes func(m mode, output int64) (in, out int64)

func all(m mode, output int64) (in, out int64) {
	if m.counts() {
		return 0, 0
	}
	return m.facts.input, output
}

func nothing(mode, int64) (in, out int64) { return 0, 0 }

func prompt(m mode, _ int64) (in, out int64) { return m.facts.input, 0 }

// begun is what a message owes that has been told its usage at its start.
func begun(m mode, _ int64) (in, out int64) {
	if m.stream && m.route.Door == call.AnthropicMessages {
		return m.facts.input, 1
	}
	return 0, 0
}

// after is what n events have brought, or so much of a whole answer.
func after(n int64) owes {
	return func(m mode, output int64) (in, out int64) {
		switch {
		case m.facts.text:
			return m.facts.input, min(output, n*eventTokens)
		case m.facts.media:
			return m.facts.input, 0
		default:
			return 0, 0
		}
	}
}

const (
	eventTokens  = 4
	outputTokens = 40
	most         = 1 << 20 // more events than any answer has
)

// output is how many tokens the provider writes.
func (e *ending) output(m mode) int64 {
	switch {
	case !m.facts.text && !m.facts.media, m.route.Door == call.OpenAISpeech && m.whole(), e.silent && !m.facts.text:
		return 0
	default:
		return outputTokens
	}
}

// behaviour is what the provider does: its prompt is billed what the gateway
// estimates, and a token is three bytes of text, so that what is charged without a
// report is what the provider bills.
func (e *ending) behaviour(m mode, gate *simulator.Gate) simulator.Behaviour {
	b := simulator.Behaviour{Input: simulator.Exactly(m.facts.input), Output: simulator.Exactly(e.output(m)), ChunkTokens: eventTokens}
	b.TextBytes = simulator.Exactly(3 * e.output(m))
	if e.behave != nil {
		e.behave(m, &b)
	}
	if e.gate != nil {
		b.Gates = []simulator.GateAt{{At: *e.gate, Gate: gate}}
	}
	return b
}

func streamed(m mode) bool { return m.stream }
func entire(m mode) bool   { return m.whole() }
func anyMode(mode) bool    { return true }

// priced: it is no count, which is free however it ends.
func priced(m mode) bool { return !m.counts() }

// textual: a whole answer that is no sound, whose end nobody can tell; nor can
// anybody tell no transcript from that of silence.
func textual(m mode) bool { return m.route.Door != call.OpenAISpeech || m.stream }

func breaks(manner simulator.Manner, at simulator.Point) func(mode, *simulator.Behaviour) {
	return func(_ mode, b *simulator.Behaviour) { b.Break = simulator.Break{Manner: manner, At: at} }
}

// breakPoint is where an answer breaks off, and what is owed there.
type breakPoint struct {
	name string
	at   simulator.Point
	owes owes
}

// late: all of the text has come.
func (p *breakPoint) late() bool {
	return p.at.Place == simulator.PlaceUsage || p.at.Place == simulator.PlaceDone
}

func places() []breakPoint {
	return []breakPoint{
		{"at its start", simulator.AfterEvents(0), begun},
		{"after the first event", simulator.AfterEvents(1), after(1)},
		{"after three events", simulator.AfterEvents(3), after(3)},
		{"before the usage", simulator.BeforeUsage(), after(most)},
		{"before the end", simulator.BeforeDone(), after(most)},
	}
}

// brokenEndings are every manner at every place.
func brokenEndings() (list []ending) {
	headers := simulator.BeforeHeaders()
	for _, manner := range []simulator.Manner{simulator.BreakCut, simulator.BreakClose} {
		list = append(list, ending{name: string(manner) + " before the headers", behave: breaks(manner, headers), status: 502, code: "upstream_unreachable", owes: nothing})
	}
	// A reset may overtake what was sent before it: what has arrived is not certain.
	for _, manner := range []simulator.Manner{simulator.BreakClose, simulator.BreakEnd, simulator.BreakError} {
		for _, p := range places() {
			e := ending{
				name: string(manner) + " " + p.name, behave: breaks(manner, p.at), has: anyMode, status: 502, code: "upstream_unreachable", owes: p.owes,
			}
			switch manner {
			case simulator.BreakError:
				e.provider, e.status, e.code, e.has = true, 200, "", streamed
			case simulator.BreakEnd:
				e.has = func(m mode) bool { return m.stream && (!p.late() || !finishes(m)) }
				whole := e
				whole.name, whole.code, whole.has = e.name+", whole", "upstream_invalid", func(m mode) bool {
					return m.whole() && textual(m) && (p.at != simulator.AfterEvents(0) || m.route.Door != call.OpenAITranscriptions)
				}
				list = append(list, whole)
			case simulator.BreakCut, simulator.BreakClose, simulator.BreakHang: // as they stand
			}
			list = append(list, e)
		}
	}
	return append(list, ending{
		name: "an error in place of a whole answer", behave: breaks(simulator.BreakError, simulator.AfterEvents(0)),
		has: entire, provider: true, status: 200, owes: nothing,
	})
}

// timedEndings are those of the provider's time-outs.
func timedEndings() []ending {
	hang := func(at simulator.Point) func(mode, *simulator.Behaviour) { return breaks(simulator.BreakHang, at) }
	return []ending{
		{name: "no headers in time", variant: "mute", behave: hang(simulator.BeforeHeaders()), status: 504, code: "upstream_timeout", owes: nothing},
		{name: "no event in time", variant: "idle", behave: hang(simulator.AfterEvents(0)), has: streamed, status: 504, code: "upstream_timeout", owes: begun},
		{name: "no further event in time", variant: "idle", behave: hang(simulator.AfterEvents(3)), has: streamed, status: 504, code: "upstream_timeout", owes: after(3)},
		{name: "nothing but pings in time", variant: "brief", behave: func(_ mode, b *simulator.Behaviour) {
			b.Ping, b.Break = true, simulator.Break{Manner: simulator.BreakHang, At: simulator.AfterEvents(3)}
		}, has: streamed, status: 504, code: "upstream_timeout", owes: after(3)},
		{name: "no end in time", variant: "brief", behave: hang(simulator.AfterEvents(3)), status: 504, code: "upstream_timeout", owes: after(3)},
		{name: "an end that does not close", variant: "idle", behave: func(_ mode, b *simulator.Behaviour) { b.Linger = true }, has: terminated, status: 200, owes: all},
	}
}

// terminated: the stream has an event that ends it. What lingers behind an array
// or behind Gemini's last event cannot be told from what goes on.
func terminated(m mode) bool { return m.stream && m.route.Door != call.GeminiGenerate }

// clientEndings are those of the client's making.
func clientEndings() []ending {
	headers, third := simulator.BeforeHeaders(), simulator.AfterEvents(3)
	halt := func(_ mode, b *simulator.Behaviour) { b.Halt = true }
	return []ending{
		{name: "client gone before the headers, whole", client: leavesEarly, gate: &headers, opens: true, has: entire, owes: all},
		{name: "client gone before the headers, streamed", client: leavesEarly, gate: &headers, has: streamed, owes: prompt},
		{name: "client gone before the headers, drained", client: leavesEarly, variant: "drain", gate: &headers, opens: true, owes: all},
		{name: "client gone before the headers, cancelled", client: leavesEarly, variant: "cancel", behave: halt, gate: &headers, has: priced, owes: prompt},
		{name: "client gone after three events", client: leavesLate, gate: &third, has: streamed, owes: after(3)},
		{name: "client gone after three events, drained", client: leavesLate, variant: "drain", gate: &third, opens: true, has: streamed, owes: all},
		{name: "half-closed before the headers, whole", client: halfEarly, gate: &headers, opens: true, has: entire, status: 200, owes: all},
		{name: "half-closed before the headers, streamed", client: halfEarly, gate: &headers, has: streamed, status: 400, code: "invalid_request", owes: prompt},
		{name: "half-closed before the headers, drained", client: halfEarly, variant: "drain", gate: &headers, opens: true, status: 200, owes: all},
		{name: "half-closed after three events", client: halfLate, gate: &third, has: streamed, status: 400, code: "invalid_request", owes: after(3)},
		{name: "half-closed after three events, drained", client: halfLate, variant: "drain", gate: &third, opens: true, has: streamed, status: 200, owes: all},
	}
}

// answeredEndings are those in which the provider says its word.
func answeredEndings() (list []ending) {
	list = []ending{
		{name: "complete", status: 200, owes: all},
		{name: "complete in pieces", behave: func(_ mode, b *simulator.Behaviour) { b.Split, b.CRLF, b.Ping = 7, true, true }, has: streamed, status: 200, owes: all},
		{name: "packed unasked", behave: func(_ mode, b *simulator.Behaviour) { b.Pack = true }, status: 200, owes: all},
		{name: "without usage", behave: func(_ mode, b *simulator.Behaviour) { b.Usage = simulator.UsageNone }, status: 200, owes: all, silent: true},
		{name: "with an absurd usage", behave: func(_ mode, b *simulator.Behaviour) { b.Usage = simulator.UsageOverflow }, has: tells, status: 200, owes: all, silent: true},
		{name: "whole where a stream was asked for", behave: func(_ mode, b *simulator.Behaviour) { b.Whole = true }, has: objects, status: 200, owes: all},
		{name: "an end without the last event", behave: breaks(simulator.BreakEnd, simulator.BeforeDone()), has: marked, lax: true, status: 200, owes: all},
		{name: "an array that is not closed", behave: breaks(simulator.BreakEnd, simulator.BeforeDone()), has: func(m mode) bool { return m.array }, status: 200, owes: all},
		{name: "malformed", behave: func(_ mode, b *simulator.Behaviour) { b.Invalid = true }, has: malformed, status: 502, code: "upstream_invalid", owes: after(most), silent: true},
		{name: "a malformed event", behave: func(_ mode, b *simulator.Behaviour) { b.Invalid = true }, has: terminated, status: 200, owes: all},
		{name: "oversized", variant: "narrow", behave: padded, status: 502, code: "upstream_invalid", owes: tooLarge, silent: true},
		{name: "oversized when unpacked", variant: "narrow", behave: func(m mode, b *simulator.Behaviour) { padded(m, b); b.Pack = true }, status: 502, code: "upstream_invalid", owes: tooLarge, silent: true},
		{name: "broken where that is free", variant: "lenient", behave: func(_ mode, b *simulator.Behaviour) {
			b.Free, b.Break = true, simulator.Break{Manner: simulator.BreakClose, At: simulator.AfterEvents(3)}
		}, has: unreported, status: 502, code: "upstream_unreachable", owes: nothing},
	}
	for _, status := range []int{400, 401, 404, 408, 409, 413, 422, 429, 500, 503, 529} {
		list = append(list, ending{
			name: fmt.Sprintf("status %d", status), behave: func(_ mode, b *simulator.Behaviour) { b.Status = status },
			provider: true, status: status, owes: nothing,
		})
	}
	return append(
		list,
		ending{name: "status 500, packed", behave: func(_ mode, b *simulator.Behaviour) { b.Status, b.Pack = 500, true }, provider: true, status: 500, owes: nothing},
		ending{name: "status 500 with usage", behave: func(_ mode, b *simulator.Behaviour) { b.Status, b.Usage = 500, simulator.UsageAlways }, has: tells, provider: true, status: 500, owes: all},
	)
}

// finishes: the stream says before its last event that all has been said.
func finishes(m mode) bool {
	return m.stream && (m.route.Door == call.OpenAIChat || m.route.Door == call.OpenAICompletions || m.route.Door == call.GeminiGenerate)
}

// marked: and it has such an event.
func marked(m mode) bool { return finishes(m) && (m.route.Door != call.GeminiGenerate) }

// tells: the answer has a usage.
func tells(m mode) bool { return m.facts.usage || m.route.Door == call.OpenAISpeech && m.stream }

// objects: a stream of events, for which a JSON object can stand.
func objects(m mode) bool { return m.stream && !m.array && m.route.Door != call.OpenAISpeech }

// malformed: a whole answer that is JSON.
func malformed(m mode) bool { return m.whole() && m.route.Door != call.OpenAISpeech }

// unreported: what is broken off has no usage yet.
func unreported(m mode) bool {
	return priced(m) && (m.whole() || m.route.Door != call.AnthropicMessages && m.route.Door != call.GeminiGenerate)
}

func padded(_ mode, b *simulator.Behaviour) { b.Pad = 4096 }

// tooLarge is the prompt and what has come of an answer that is too large: the bound
// is ours, and its provider bills it.
func tooLarge(m mode, output int64) (in, out int64) {
	if m.counts() {
		return 0, 0
	}
	return m.facts.input, output
}

// endings are the rows of the matrix.
func endings() (list []ending) {
	for _, part := range [][]ending{answeredEndings(), brokenEndings(), timedEndings(), clientEndings()} {
		list = append(list, part...)
	}
	for i := range list {
		if list[i].has == nil {
			list[i].has = anyMode
		}
		if list[i].variant == "" {
			list[i].variant = "plain"
		}
	}
	return list
}
