// SPDX-License-Identifier: Apache-2.0

package simulator

import "net/http"

// Protocol is a wire protocol that the simulator speaks.
type Protocol string

// The protocols.
const (
	OpenAI    Protocol = "openai"
	Anthropic Protocol = "anthropic"
	Gemini    Protocol = "gemini"
)

// speech puts an answer into a protocol's words. The events of a stream are
// sent in the order of its methods; each reports false when the answer has ended.
type speech interface {
	// whole appends a whole answer. firstText and usageAt are where the text of
	// the first choice and the usage (or the end) begin.
	whole(dst []byte, p *plan) (answer []byte, firstText, usageAt int)
	// opening sends what comes before the text.
	opening(x *exchange) bool
	// content appends the data of one event with text.
	content(dst []byte, x *exchange, choice, event int64) []byte
	// finish sends what ends the choices, usage what reports it.
	finish(x *exchange) bool
	usage(x *exchange) bool
	// done appends the terminal event, if there is one.
	done(x *exchange)
	// failure appends an error; usage says that it is billed and reported.
	failure(dst []byte, r *refusal, p *plan, usage bool) []byte
}

// breaker is a speech whose error events are not as its errors are.
type breaker interface {
	breaks(x *exchange, r *refusal)
}

// breaks appends the error event that ends a stream.
func (x *exchange) breaks(r *refusal) {
	if b, ok := x.speech.(breaker); ok {
		b.breaks(x, r)
		return
	}
	x.append("error", func(dst []byte) []byte { return x.speech.failure(dst, r, &x.plan, false) })
	if x.q.Array {
		x.speech.done(x)
	}
}

// speechOf is how a protocol is spoken.
func speechOf(p Protocol) speech {
	switch p {
	case Anthropic:
		return anthropicSpeech{}
	case Gemini:
		return geminiSpeech{}
	default:
		return openAISpeech{}
	}
}

// openAISpeech is chat completions.
type openAISpeech struct{}

func (openAISpeech) whole(dst []byte, p *plan) ([]byte, int, int) { return p.appendWhole(dst) }

func (openAISpeech) opening(x *exchange) bool {
	delta := func(dst []byte) []byte { return append(dst, `"role":"assistant","content":"","refusal":null`...) }
	if x.plan.textual {
		return true
	}
	if x.plan.dialect == Azure && !x.chunk("", func(dst []byte) []byte {
		return append(dst, `{"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`...)
	}) {
		return false
	}
	for choice := range x.plan.choices {
		if !x.chunk("", func(dst []byte) []byte { return x.plan.appendChunk(dst, choice, delta, "", -1) }) {
			return false
		}
	}
	return true
}

func (openAISpeech) content(dst []byte, x *exchange, choice, event int64) []byte {
	return x.plan.appendChunk(dst, choice, func(dst []byte) []byte {
		name := `"content":"`
		if x.plan.textual {
			name = `"text":"`
		}
		dst = appendText(append(dst, name...), x.plan.offset(event), x.plan.offset(event+1))
		return append(dst, '"')
	}, "", x.soFar())
}

func (openAISpeech) finish(x *exchange) bool {
	nothing := func(dst []byte) []byte { return dst }
	for choice := range x.plan.choices {
		usage := x.soFar()
		switch x.plan.usage {
		case UsageFinish, UsageShrink, UsageSpread:
			if usage = -1; choice == x.plan.choices-1 {
				usage = x.produced
			}
		default:
		}
		if !x.chunk("", func(dst []byte) []byte {
			return x.plan.appendChunk(dst, choice, nothing, x.plan.finish, usage)
		}) {
			return false
		}
	}
	return true
}

func (openAISpeech) usage(x *exchange) bool {
	if !x.plan.hasUsageChunk() {
		return true
	}
	return x.chunk("", x.plan.appendUsageChunk) && (x.plan.usage != UsageTwice || x.chunk("", x.plan.appendUsageChunk))
}

func (openAISpeech) done(x *exchange) {
	x.append("", func(dst []byte) []byte { return append(dst, "[DONE]"...) })
}

func (openAISpeech) failure(dst []byte, r *refusal, p *plan, usage bool) []byte {
	dst = append(dst, openError(r)...)
	if usage {
		dst = append(dst, `,"usage":`...)
		dst = p.appendUsage(dst, p.choices*p.output)
	}
	return append(dst, '}')
}

// protocolAt is what is spoken at a path.
func protocolAt(r *http.Request) Protocol {
	switch path := r.URL.Path; {
	case len(path) >= len(messagesPath) && path[:len(messagesPath)] == messagesPath:
		return Anthropic
	case isGemini(path):
		return Gemini
	default:
		return OpenAI
	}
}
