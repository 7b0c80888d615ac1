// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"net/http"
	"strconv"
	"strings"
)

// The verbs after a model's name in a path.
const (
	geminiGenerate = ":generateContent"
	geminiStream   = ":streamGenerateContent"
	geminiCount    = ":countTokens"
	geminiEmbed    = ":embedContent"
	geminiBatch    = ":batchEmbedContents"
)

// geminiPath takes a path apart; ok is false when it is none of the protocol's.
func geminiPath(path string) (model, verb string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1beta/models/")
	if !ok {
		if rest, ok = strings.CutPrefix(path, "/v1/models/"); !ok {
			return "", "", false
		}
	}
	at := strings.LastIndexByte(rest, ':')
	if at < 1 {
		return "", "", false
	}
	switch model, verb = rest[:at], rest[at:]; verb {
	case geminiGenerate, geminiStream, geminiCount, geminiEmbed, geminiBatch:
		return model, verb, true
	}
	return "", "", false
}

func isGemini(path string) bool {
	_, _, ok := geminiPath(path)
	return ok || strings.HasPrefix(path, "/v1beta/")
}

// geminiSpeech is Gemini's generateContent. Usage is a part of every chunk, and
// counts thoughts apart: a mode that says when it is asked for changes nothing.
type geminiSpeech struct{}

func (geminiSpeech) candidate(dst []byte, p *plan, choice, from, to int64, finish string) []byte {
	dst = append(dst, `{"content":{"parts":[{"text":"`...)
	dst = appendText(dst, from, to)
	dst = append(dst, `"}],"role":"model"},"index":`...)
	dst = strconv.AppendInt(dst, choice, 10)
	if finish != "" {
		dst = append(dst, `,"finishReason":"`...)
		dst = append(append(dst, finishReason(p)...), '"')
		if p.parts.Searches > 0 {
			dst = append(dst, `,"groundingMetadata":{"webSearchQueries":["weir"],"groundingChunks":[{"web":{"uri":"https://example.com"}}]}`...)
		}
	}
	return append(dst, '}')
}

func finishReason(p *plan) string {
	if p.finish == "length" {
		return "MAX_TOKENS"
	}
	return "STOP"
}

func (s geminiSpeech) whole(dst []byte, p *plan) (answer []byte, firstText, usageAt int) {
	base := len(dst)
	dst = append(dst, `{"candidates":[`...)
	firstText = len(dst) - base + len(`{"content":{"parts":[{"text":"`)
	for choice := range p.choices {
		if choice > 0 {
			dst = append(dst, ',')
		}
		dst = s.candidate(dst, p, choice, 0, p.text, p.finish)
	}
	dst = append(dst, ']')
	usageAt = len(dst) - base
	p.whole = true
	return s.tail(dst, p, p.choices*p.output), firstText, usageAt
}

// tail appends the usage and what ends every chunk.
func (s geminiSpeech) tail(dst []byte, p *plan, output int64) []byte {
	switch p.usage {
	case UsageNone:
	case UsageNull:
		dst = append(dst, `,"usageMetadata":null`...)
	default:
		dst = append(s.report(append(dst, `,"usageMetadata":{`...), p, output), '}')
	}
	dst = append(dst, `,"modelVersion":"`...)
	dst = append(dst, p.model...)
	dst = append(dst, `","responseId":"sim-`...)
	dst = strconv.AppendUint(dst, p.id|1<<63, 16)
	return append(dst, `"}`...)
}

// report appends the figures. Spread, the chunks before the last have the prompt's
// alone, and the last the answer's.
func (geminiSpeech) report(dst []byte, p *plan, output int64) []byte {
	last := output == p.choices*p.output
	prompt := p.usage != UsagePartial && (p.usage != UsageSpread || !last || p.whole)
	if p.usage == UsageShrink && !last {
		output += shrinks
	}
	thoughts := min(p.reasoning*p.choices, output)
	if prompt {
		dst = append(dst, `"promptTokenCount":`...)
		dst = append(p.appendNumber(dst, p.input-p.tool), `,"cachedContentTokenCount":`...)
		dst = append(strconv.AppendInt(dst, p.parts.Cached, 10), ',')
		if p.tool > 0 {
			dst = append(dst, `"toolUsePromptTokenCount":`...)
			dst = append(strconv.AppendInt(dst, p.tool, 10), ',')
		}
		if p.parts.AudioInput > 0 {
			dst = append(dst, `"promptTokensDetails":[{"modality":"AUDIO","tokenCount":`...)
			dst = append(strconv.AppendInt(dst, p.parts.AudioInput, 10), `}],`...)
		}
	}
	if p.usage != UsageSpread || last {
		dst = append(dst, `"candidatesTokenCount":`...)
		dst = p.appendNumber(dst, output-thoughts)
		dst = append(dst, `,"thoughtsTokenCount":`...)
		dst = append(strconv.AppendInt(dst, thoughts, 10), ',')
		if last && p.parts.AudioOutput+p.parts.ImageOutput > 0 {
			dst = append(dst, `"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":`...)
			dst = strconv.AppendInt(dst, p.parts.AudioOutput*p.choices, 10)
			dst = append(dst, `},{"modality":"IMAGE","tokenCount":`...)
			dst = append(strconv.AppendInt(dst, p.parts.ImageOutput*p.choices, 10), `}],`...)
		}
	}
	if p.usage != UsagePartial && p.usage != UsageSpread {
		total := p.input + output
		if p.usage == UsageInconsistent {
			total += 7
		}
		dst = append(dst, `"totalTokenCount":`...)
		dst = append(p.appendNumber(dst, total), ',')
	}
	if p.tier != "" {
		dst = append(dst, `"serviceTier":"`...)
		dst = append(append(dst, p.tier...), `",`...)
	}
	return dst[:len(dst)-1]
}

func (geminiSpeech) opening(*exchange) bool { return true }

func (s geminiSpeech) content(dst []byte, x *exchange, choice, event int64) []byte {
	dst = append(dst, `{"candidates":[`...)
	dst = s.candidate(dst, &x.plan, choice, x.plan.offset(event), x.plan.offset(event+1), "")
	return s.tail(append(dst, ']'), &x.plan, x.produced)
}

func (geminiSpeech) finish(*exchange) bool { return true }

// usage is the last chunk, with every candidate's end.
func (s geminiSpeech) usage(x *exchange) bool {
	return s.last(x) && (x.plan.usage != UsageTwice || s.last(x))
}

func (s geminiSpeech) last(x *exchange) bool {
	return x.chunk("", func(dst []byte) []byte {
		dst = append(dst, `{"candidates":[`...)
		for choice := range x.plan.choices {
			if choice > 0 {
				dst = append(dst, ',')
			}
			dst = s.candidate(dst, &x.plan, choice, 0, 0, x.plan.finish)
		}
		return s.tail(append(dst, ']'), &x.plan, x.plan.choices*x.plan.output)
	})
}

func (geminiSpeech) done(x *exchange) {
	if x.q.Array {
		x.out.pending = append(x.out.pending, "]\n"...)
	}
}

func (s geminiSpeech) failure(dst []byte, r *refusal, p *plan, usage bool) []byte {
	dst = append(dst, `{"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(r.status), 10)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, r.message)
	dst = append(dst, `,"status":"`...)
	dst = append(dst, geminiStatus(r.status)...)
	dst = append(dst, `"}`...)
	if usage {
		return s.tail(dst, p, p.choices*p.output)
	}
	return append(dst, '}')
}

func geminiStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	}
	if status >= http.StatusInternalServerError {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}
