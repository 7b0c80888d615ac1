// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"net/http"
	"strconv"
)

// plan is what an answer consists of, once request and behaviour are known.
type plan struct {
	id        uint64 // by the text of the prompt, so that the same question has the same answer
	model     string
	tier      string
	usage     UsageMode
	choices   int64
	input     int64
	parts     Parts
	tool      int64 // of the input, read by the provider's own tools
	dialect   Dialect
	output    int64 // of each choice, reasoning included
	reasoning int64
	visible   int64 // output without reasoning
	text      int64 // bytes of text of each choice
	chunk     int64
	finish    string
	// usageField: the stream's chunks have a usage field, null until the last.
	usageField bool
	// textual: choices have a text, as those of /v1/completions.
	textual bool
	// whole: it is no stream.
	whole bool
}

func makePlan(q *Request, b *Behaviour) (plan, error) {
	p := plan{
		id: q.textHash, model: q.Name, tier: b.ServiceTier, usage: b.Usage, choices: q.Completions,
		input:  b.Input.or((q.TextBytes + bytesAToken - 1) / bytesAToken),
		output: b.Output.or(16 + int64(q.textHash%33)),
		chunk:  b.ChunkTokens, finish: "stop", usageField: q.IncludeUsage, textual: q.Path == completionsPath,
	}
	if b.AnswerModel != "" {
		p.model = b.AnswerModel
	}
	if p.chunk == 0 {
		p.chunk = chunkTokens
	}
	if q.OutputBound >= 0 && p.output > q.OutputBound && !b.Unbounded {
		p.output, p.finish = q.OutputBound, "length"
	}
	if p.reasoning = min(b.Reasoning, p.output); q.Path == chatPath {
		p.dialect, p.usage = b.Dialect, b.Dialect.usage(b.Usage)
	}
	p.share(q, b)
	p.visible = p.output - p.reasoning
	if p.visible > 0 {
		p.text = b.TextBytes.or(bytesAToken * p.visible)
	}
	if p.choices*p.text > maxAnswer {
		return plan{}, badField("n", "the answer's text would be above %d bytes", maxAnswer)
	}
	return p, nil
}

// events is the number of content events of a choice.
func (p *plan) events() int64 { return (p.visible + p.chunk - 1) / p.chunk }

// offset is where the text of the events before event begins and ends.
func (p *plan) offset(event int64) int64 {
	if p.visible == 0 {
		return 0
	}
	return min(event*p.chunk, p.visible) * p.text / p.visible
}

// tokens is the number of visible tokens in the first events.
func (p *plan) tokens(events int64) int64 { return min(events*p.chunk, p.visible) }

// begun is the output that a message claims at its start.
func (p *plan) begun() int64 { return min(1, p.output) }

// tellsUsage tells that usage is reported, and truly.
func (p *plan) tellsUsage() bool {
	switch p.usage {
	case UsageAsked, UsageAlways, UsageEach, UsageFinish:
		return true
	default:
		return false
	}
}

const lorem = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua. " +
	"Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat. "

// appendText appends bytes from to to of the answer's endless text, which needs
// no quoting in JSON.
func appendText(dst []byte, from, to int64) []byte {
	for from < to {
		start := from % int64(len(lorem))
		end := min(int64(len(lorem)), start+to-from)
		dst = append(dst, lorem[start:end]...)
		from += end - start
	}
	return dst
}

// created is the instant that every answer claims, in Unix seconds.
const created = "1700000000"

func (p *plan) appendHead(dst []byte, object string) []byte {
	dst = append(dst, `{"id":"chatcmpl-`...)
	dst = strconv.AppendUint(dst, p.id|1<<63, 16)
	dst = append(dst, `","object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`+created+`,"model":"`...)
	dst = append(dst, p.model...)
	dst = append(dst, '"')
	if p.tier != "" {
		dst = append(dst, `,"service_tier":"`...)
		dst = append(dst, p.tier...)
		dst = append(dst, '"')
	}
	return append(dst, `,"system_fingerprint":"fp_simulator"`...)
}

// appendWhole appends a whole answer. firstText and usageAt are where the text
// of the first choice and the member "usage" (or the end) begin.
func (p *plan) appendWhole(dst []byte) (answer []byte, firstText, usageAt int) {
	base := len(dst)
	dst = p.appendHead(dst, "chat.completion")
	dst = append(dst, `,"choices":[`...)
	for choice := range p.choices {
		if choice > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, choice, 10)
		if p.textual {
			dst = append(dst, `,"text":"`...)
		} else {
			dst = append(dst, `,"message":{"role":"assistant","content":"`...)
		}
		if choice == 0 {
			firstText = len(dst) - base
		}
		dst = appendText(dst, 0, p.text)
		if p.textual {
			dst = append(dst, `","logprobs":null,"finish_reason":"`...)
		} else {
			dst = append(dst, `","refusal":null},"logprobs":null,"finish_reason":"`...)
		}
		dst = append(dst, p.finish...)
		dst = append(dst, `"}`...)
	}
	dst = append(dst, ']')
	usageAt = len(dst) - base
	switch p.usage {
	case UsageNone:
	case UsageNull:
		dst = append(dst, `,"usage":null`...)
	default:
		dst = append(dst, `,"usage":`...)
		dst = p.appendUsage(dst, p.choices*p.output)
	}
	return append(dst, '}'), firstText, usageAt
}

// appendNumber writes a count as truthfully as the mode wants.
func (p *plan) appendNumber(dst []byte, n int64) []byte {
	switch p.usage {
	case UsageZero:
		n = 0
	case UsageNegative:
		n = -max(n, 1)
	case UsageHuge:
		n = 1_000_000_000_000
	case UsageOverflow:
		return append(dst, "99999999999999999999"...)
	case UsageString:
		dst = append(dst, '"')
		return append(strconv.AppendInt(dst, n, 10), '"')
	case UsageFraction:
		return append(strconv.AppendInt(dst, n, 10), ".5"...)
	default:
	}
	return strconv.AppendInt(dst, n, 10)
}

// appendChunk appends the data of one event of a choice: a delta and a finish
// reason, null when it is empty. usage is the output to report, or negative.
func (p *plan) appendChunk(dst []byte, choice int64, delta func([]byte) []byte, finish string, usage int64) []byte {
	dst = p.appendHead(dst, "chat.completion.chunk")
	dst = append(dst, `,"choices":[{"index":`...)
	dst = strconv.AppendInt(dst, choice, 10)
	if p.textual {
		dst = append(dst, ',')
		if before := len(dst); len(delta(dst)) == before {
			dst = append(dst, `"text":""`...)
		} else {
			dst = delta(dst)
		}
	} else {
		dst = append(delta(append(dst, `,"delta":{`...)), '}')
	}
	if finish == "" {
		dst = append(dst, `,"logprobs":null,"finish_reason":null}]`...)
	} else {
		dst = append(dst, `,"logprobs":null,"finish_reason":"`...)
		dst = append(dst, finish...)
		dst = append(dst, `"}]`...)
	}
	if p.dialect == Groq && finish != "" && choice == p.choices-1 && p.usage != UsageNone {
		dst = append(dst, `,"x_groq":{"id":"req_sim","usage":`...)
		dst = append(p.appendUsage(dst, p.choices*p.output), '}')
	}
	switch {
	case usage >= 0 && p.usage == UsageSpread:
		of := promptPiece
		if finish != "" {
			of = completionPiece
		}
		dst = append(dst, `,"usage":`...)
		dst = p.appendPiece(dst, usage, of)
	case usage >= 0:
		dst = append(dst, `,"usage":`...)
		dst = p.appendUsage(dst, usage)
	case p.usage == UsageNull || p.usageField && p.usage != UsageNone && p.usage != UsageFinish && p.usage != UsageSpread:
		dst = append(dst, `,"usage":null`...)
	}
	return append(dst, '}')
}

func (p *plan) appendUsageChunk(dst []byte) []byte {
	dst = p.appendHead(dst, "chat.completion.chunk")
	if p.dialect == OpenRouter {
		dst = append(dst, `,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":`...)
	} else {
		dst = append(dst, `,"choices":[],"usage":`...)
	}
	switch p.usage {
	case UsageNull:
		return append(dst, "null}"...)
	case UsageSpread:
		dst = p.appendPiece(dst, p.choices*p.output, totalPiece)
	default:
		dst = p.appendUsage(dst, p.choices*p.output)
	}
	return append(dst, '}')
}

// hasUsageChunk reports whether the stream ends with a chunk of its own for usage.
func (p *plan) hasUsageChunk() bool {
	switch p.usage {
	case UsageAlways, UsageSpread, UsageTwice:
		return true
	case UsageEach:
		return p.dialect == VLLM && p.usageField
	case UsageNone, UsageFinish, UsageShrink:
		return false
	default:
		return p.usageField
	}
}

// failure is the error that the behaviour answers with, nil for none.
func failure(q *Request, b *Behaviour) *refusal {
	message := b.Message
	if i := fieldIndex(b.Refuse); i >= 0 && q.has[i] {
		if message == "" {
			message = "Unsupported parameter: '" + string(b.Refuse) + "' is not supported with this model."
		}
		return &refusal{http.StatusBadRequest, "unsupported_parameter", string(b.Refuse), message}
	}
	status := b.Status
	if status == 0 && b.Echo && b.Break.Manner != BreakError {
		status = http.StatusUnauthorized
	}
	if status == 0 {
		return nil
	}
	return &refusal{status, simulatedCode, "", brokenMessage(q, b)}
}

// simulatedCode is the code of every error that a behaviour asked for.
const simulatedCode = "simulated_error"

func brokenMessage(q *Request, b *Behaviour) string {
	message := b.Message
	if message == "" {
		message = "The simulator was told to fail."
	}
	if b.Echo {
		message += " Credential: " + q.Key
	}
	return message
}
