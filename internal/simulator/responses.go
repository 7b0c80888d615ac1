// SPDX-License-Identifier: Apache-2.0

package simulator

import "strconv"

// The paths of the OpenAI protocol besides chat completions.
const (
	chatPath        = "/v1/chat/completions"
	completionsPath = "/v1/completions"
	responsesPath   = "/v1/responses"
	embeddingsPath  = "/v1/embeddings"
	moderationsPath = "/v1/moderations"
	imagesPath      = "/v1/images/generations"
	speechPath      = "/v1/audio/speech"
	transcriptPath  = "/v1/audio/transcriptions"
)

// responsesSpeech is OpenAI's responses. They have one choice, and usage is a
// part of every answer.
type responsesSpeech struct{}

func (responsesSpeech) head(dst []byte, p *plan, status string) []byte {
	dst = append(dst, `{"id":"resp_`...)
	dst = strconv.AppendUint(dst, p.id|1<<63, 16)
	dst = append(dst, `","object":"response","created_at":`+created+`,"status":"`...)
	dst = append(dst, status...)
	dst = append(dst, `","error":null,"incomplete_details":null,"model":"`...)
	dst = append(append(dst, p.model...), '"')
	if p.tier != "" {
		dst = append(dst, `,"service_tier":"`...)
		dst = append(append(dst, p.tier...), '"')
	}
	return append(dst, `,"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"output":[`...)
}

func (responsesSpeech) status(p *plan) string {
	if p.finish == "length" {
		return "incomplete"
	}
	return "completed"
}

func (responsesSpeech) item(dst []byte, text int64) []byte {
	dst = append(dst, `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"`...)
	return append(appendText(dst, 0, text), `"}]}`...)
}

func (s responsesSpeech) whole(dst []byte, p *plan) (answer []byte, firstText, usageAt int) {
	base := len(dst)
	dst = s.head(dst, p, s.status(p))
	firstText = len(s.item(dst, 0)) - base - len(`"}]}`)
	dst = append(s.searched(s.item(dst, p.text), p), ']')
	usageAt = len(dst) - base
	return append(s.appendUsage(dst, p, p.output), '}'), firstText, usageAt
}

func (responsesSpeech) appendUsage(dst []byte, p *plan, output int64) []byte {
	switch p.usage {
	case UsageNone:
		return dst
	case UsageNull:
		return append(dst, `,"usage":null`...)
	case UsagePartial:
		dst = append(dst, `,"usage":{"output_tokens":`...)
		return append(p.appendNumber(dst, output), '}')
	default:
	}
	total := p.input + output
	if p.usage == UsageInconsistent {
		total += 7
	}
	dst = append(dst, `,"usage":{"input_tokens":`...)
	dst = p.appendNumber(dst, p.input)
	dst = append(dst, `,"input_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, p.parts.Cached, 10)
	if p.parts.CacheWrite5m > 0 {
		dst = append(dst, `,"cache_write_tokens":`...)
		dst = strconv.AppendInt(dst, p.parts.CacheWrite5m, 10)
	}
	dst = append(dst, `},"output_tokens":`...)
	dst = p.appendNumber(dst, output)
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, min(p.reasoning, output), 10)
	dst = append(dst, `},"total_tokens":`...)
	return append(p.appendNumber(dst, total), '}')
}

// event sends one event; sequence numbers count from 0.
func (responsesSpeech) event(x *exchange, name string, data func(dst []byte) []byte) bool {
	return x.chunk(name, func(dst []byte) []byte { return data(x.numbered(dst, name)) })
}

// numbered begins the data of an event.
func (x *exchange) numbered(dst []byte, name string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, name...)
	dst = append(dst, `","sequence_number":`...)
	dst = strconv.AppendInt(dst, x.sequence, 10)
	x.sequence++
	return dst
}

func (s responsesSpeech) opening(x *exchange) bool {
	for _, name := range []string{"response.created", "response.in_progress"} {
		if !s.event(x, name, func(dst []byte) []byte {
			dst = append(s.head(append(dst, `,"response":`...), &x.plan, "in_progress"), ']')
			if x.plan.usage == UsageShrink {
				return append(s.appendUsage(dst, &x.plan, x.plan.output+shrinks), "}}"...)
			}
			return append(dst, `,"usage":null}}`...)
		}) {
			return false
		}
	}
	return s.event(x, "response.output_item.added", func(dst []byte) []byte {
		return append(dst, `,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`...)
	}) && s.event(x, "response.content_part.added", func(dst []byte) []byte {
		return append(dst, `,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}`...)
	})
}

func (responsesSpeech) content(dst []byte, x *exchange, _, event int64) []byte {
	dst = x.numbered(dst, "response.output_text.delta")
	dst = append(dst, `,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"`...)
	dst = appendText(dst, x.plan.offset(event), x.plan.offset(event+1))
	return append(dst, `"}`...)
}

func (s responsesSpeech) finish(x *exchange) bool {
	return s.event(x, "response.output_text.done", func(dst []byte) []byte {
		dst = append(dst, `,"item_id":"msg_1","output_index":0,"content_index":0,"text":"`...)
		return append(appendText(dst, 0, x.plan.text), `"}`...)
	}) && s.event(x, "response.output_item.done", func(dst []byte) []byte {
		return append(s.item(append(dst, `,"output_index":0,"item":`...), x.plan.text), '}')
	})
}

// usage comes with the terminal event.
func (responsesSpeech) usage(*exchange) bool { return true }

func (s responsesSpeech) done(x *exchange) {
	name, times := "response."+s.status(&x.plan), 1
	if x.plan.usage == UsageTwice {
		times = 2
	}
	for range times {
		x.append(name, func(dst []byte) []byte {
			dst = s.head(append(x.numbered(dst, name), `,"response":`...), &x.plan, s.status(&x.plan))
			dst = append(s.searched(s.item(dst, x.plan.text), &x.plan), ']')
			return append(s.appendUsage(dst, &x.plan, x.plan.output), "}}"...)
		})
	}
}

// searched appends the searches to the output.
func (responsesSpeech) searched(dst []byte, p *plan) []byte {
	for n := range p.parts.Searches {
		dst = append(dst, `,{"id":"ws_`...)
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, `","type":"web_search_call","status":"completed","action":{"type":"search","query":"weir"}}`...)
	}
	return dst
}

func (responsesSpeech) failure(dst []byte, r *refusal, p *plan, usage bool) []byte {
	return openAISpeech{}.failure(dst, r, p, usage)
}

func (responsesSpeech) breaks(x *exchange, r *refusal) {
	x.append("error", func(dst []byte) []byte {
		dst = append(x.numbered(dst, "error"), `,"code":"`...)
		dst = append(append(dst, r.code...), `","message":`...)
		return append(appendQuoted(dst, r.message), `,"param":null}`...)
	})
}
