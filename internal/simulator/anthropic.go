// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"net/http"
	"strconv"
)

const (
	messagesPath = "/v1/messages"
	countPath    = messagesPath + "/count_tokens"
)

// anthropicSpeech is Anthropic's messages. They have one choice, and usage is a
// part of every answer: a mode that says when it is asked for changes nothing.
type anthropicSpeech struct{}

func (anthropicSpeech) head(dst []byte, p *plan) []byte {
	dst = append(dst, `{"id":"msg_`...)
	dst = strconv.AppendUint(dst, p.id|1<<63, 16)
	dst = append(dst, `","type":"message","role":"assistant","model":"`...)
	dst = append(dst, p.model...)
	return append(dst, `","content":[`...)
}

func (s anthropicSpeech) whole(dst []byte, p *plan) (answer []byte, firstText, usageAt int) {
	base := len(dst)
	dst = s.head(dst, p)
	dst = append(dst, `{"type":"text","text":"`...)
	firstText = len(dst) - base
	dst = appendText(dst, 0, p.text)
	dst = append(dst, `"}],"stop_reason":"`...)
	dst = append(dst, stopReason(p)...)
	dst = append(dst, `","stop_sequence":null`...)
	usageAt = len(dst) - base
	return append(s.appendUsage(dst, p, p.output, true), '}'), firstText, usageAt
}

func stopReason(p *plan) string {
	if p.finish == "length" {
		return "max_tokens"
	}
	return "end_turn"
}

// appendUsage appends the member, unless the mode has none.
func (anthropicSpeech) appendUsage(dst []byte, p *plan, output int64, input bool) []byte {
	switch p.usage {
	case UsageNone:
		return dst
	case UsageNull:
		return append(dst, `,"usage":null`...)
	default:
	}
	dst = append(dst, `,"usage":{`...)
	if input && p.usage != UsagePartial {
		dst = append(dst, `"input_tokens":`...)
		dst = p.appendNumber(dst, p.input-p.parts.Cached-p.parts.CacheWrite5m-p.parts.CacheWrite1h)
		dst = append(dst, `,"cache_creation_input_tokens":`...)
		dst = strconv.AppendInt(dst, p.parts.CacheWrite5m+p.parts.CacheWrite1h, 10)
		dst = append(dst, `,"cache_read_input_tokens":`...)
		dst = strconv.AppendInt(dst, p.parts.Cached, 10)
		five := p.parts.CacheWrite5m
		if p.usage == UsageInconsistent {
			five += 7
		}
		dst = append(dst, `,"cache_creation":{"ephemeral_5m_input_tokens":`...)
		dst = strconv.AppendInt(dst, five, 10)
		dst = append(dst, `,"ephemeral_1h_input_tokens":`...)
		dst = append(strconv.AppendInt(dst, p.parts.CacheWrite1h, 10), '}')
		dst = append(dst, ',')
	}
	dst = append(dst, `"output_tokens":`...)
	dst = p.appendNumber(dst, output)
	if p.reasoning > 0 {
		dst = append(dst, `,"output_tokens_details":{"thinking_tokens":`...)
		dst = append(strconv.AppendInt(dst, min(p.reasoning, output), 10), '}')
	}
	if p.parts.Searches > 0 && output == p.output {
		dst = append(dst, `,"server_tool_use":{"web_search_requests":`...)
		dst = append(strconv.AppendInt(dst, p.parts.Searches, 10), '}')
	}
	if p.tier != "" {
		dst = append(dst, `,"service_tier":"`...)
		dst = append(append(dst, p.tier...), '"')
	}
	return append(dst, '}')
}

// opening: the message's input is known, its output a placeholder.
func (s anthropicSpeech) opening(x *exchange) bool {
	return x.chunk("message_start", func(dst []byte) []byte {
		dst = append(dst, `{"type":"message_start","message":`...)
		dst = append(s.head(dst, &x.plan), `],"stop_reason":null,"stop_sequence":null`...)
		placeholder := x.plan.begun()
		if x.plan.usage == UsageShrink {
			placeholder = x.plan.output + shrinks
		}
		return append(s.appendUsage(dst, &x.plan, placeholder, true), "}}"...)
	}) && x.chunk("content_block_start", func(dst []byte) []byte {
		return append(dst, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`...)
	})
}

func (anthropicSpeech) content(dst []byte, x *exchange, _, event int64) []byte {
	dst = append(dst, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`...)
	dst = appendText(dst, x.plan.offset(event), x.plan.offset(event+1))
	return append(dst, `"}}`...)
}

func (anthropicSpeech) finish(x *exchange) bool {
	return x.chunk("content_block_stop", func(dst []byte) []byte {
		return append(dst, `{"type":"content_block_stop","index":0}`...)
	})
}

func (s anthropicSpeech) usage(x *exchange) bool {
	return s.delta(x) && (x.plan.usage != UsageTwice || s.delta(x))
}

func (s anthropicSpeech) delta(x *exchange) bool {
	return x.chunk("message_delta", func(dst []byte) []byte {
		dst = append(dst, `{"type":"message_delta","delta":{"stop_reason":"`...)
		dst = append(dst, stopReason(&x.plan)...)
		dst = append(dst, `","stop_sequence":null}`...)
		return append(s.appendUsage(dst, &x.plan, x.plan.output, false), '}')
	})
}

func (anthropicSpeech) done(x *exchange) {
	x.append("message_stop", func(dst []byte) []byte { return append(dst, `{"type":"message_stop"}`...) })
}

func (s anthropicSpeech) failure(dst []byte, r *refusal, p *plan, usage bool) []byte {
	dst = append(dst, `{"type":"error","error":{"type":"`...)
	dst = append(dst, anthropicErrorType(r.status)...)
	dst = append(dst, `","message":`...)
	dst = appendQuoted(dst, r.message)
	dst = append(dst, '}')
	if usage {
		dst = s.appendUsage(dst, p, p.output, true)
	}
	return append(dst, `,"request_id":"req_sim"}`...)
}

func anthropicErrorType(status int) string {
	switch status {
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case 529:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return errorType(status)
}
