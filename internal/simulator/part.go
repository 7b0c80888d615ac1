// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"
	"strconv"
)

// Parts are the tokens of a request that have prices of their own, each of its
// input or output, and the searches that stand beside them.
type Parts struct {
	Cached       int64 `json:"cached_tokens,omitempty"`         // of the input, read from a cache
	CacheWrite5m int64 `json:"cache_write_5m_tokens,omitempty"` // of the input, written for five minutes
	CacheWrite1h int64 `json:"cache_write_1h_tokens,omitempty"` // and for an hour
	AudioInput   int64 `json:"audio_input_tokens,omitempty"`    // of the input
	AudioOutput  int64 `json:"audio_output_tokens,omitempty"`   // of the output
	ImageOutput  int64 `json:"image_output_tokens,omitempty"`   // of the output
	Searches     int64 `json:"web_search_requests,omitempty"`   // of the web
}

// Dialect is a server's own way with OpenAI's chat completions.
type Dialect string

// Dialects. Azure's begins with a chunk without choices; DeepSeek's has comments and
// names of its own for cached tokens; Groq's has usage in x_groq; Mistral's,
// Together's and Fireworks' have it on the last chunk with a choice; xAI's counts
// reasoning beside the completion, and sources; OpenRouter's has comments, a cost and
// searches; vLLM's has cumulative usage on every chunk; Ollama's has no details.
const (
	Azure      Dialect = "azure"
	DeepSeek   Dialect = "deepseek"
	Fireworks  Dialect = "fireworks"
	Groq       Dialect = "groq"
	Mistral    Dialect = "mistral"
	Ollama     Dialect = "ollama"
	OpenRouter Dialect = "openrouter"
	Together   Dialect = "together"
	VLLM       Dialect = "vllm"
	XAI        Dialect = "xai"
)

// Dialects are all of them.
func Dialects() []Dialect {
	return []Dialect{Azure, DeepSeek, Fireworks, Groq, Mistral, Ollama, OpenRouter, Together, VLLM, XAI}
}

func (d Dialect) valid() bool { return d == "" || slices.Contains(Dialects(), d) }

// usage is when a stream of the dialect reports, where the behaviour leaves it to
// the protocol.
func (d Dialect) usage(asked UsageMode) UsageMode {
	switch {
	case asked != UsageAsked:
		return asked
	case d == DeepSeek || d == Fireworks || d == Mistral || d == Together:
		return UsageFinish
	case d == OpenRouter || d == XAI:
		return UsageAlways
	case d == VLLM:
		return UsageEach
	}
	return asked
}

// comment is what the dialect's server says while it works.
func (d Dialect) comment() string {
	switch d {
	case DeepSeek:
		return "keep-alive"
	case OpenRouter:
		return "OPENROUTER PROCESSING"
	default:
		return ""
	}
}

// share takes the parts out of a plan's input and output, as far as they reach.
func (p *plan) share(q *Request, b *Behaviour) {
	left := p.input
	take := func(n int64) int64 {
		n = min(n, left)
		left -= n
		return n
	}
	p.parts.Cached, p.parts.CacheWrite5m, p.parts.CacheWrite1h = take(b.Cached), take(b.CacheWrite5m), take(b.CacheWrite1h)
	switch q.Protocol {
	case Anthropic: // hears and speaks nothing
	case Gemini:
		p.parts.AudioInput, p.tool = take(b.AudioInput), take(b.ToolInput)
	default:
		p.parts.AudioInput = take(b.AudioInput)
	}
	switch q.Protocol {
	case OpenAI: // does not tell one write from the other
		p.parts.CacheWrite5m += p.parts.CacheWrite1h
		p.parts.CacheWrite1h = 0
	case Gemini: // has no price of a write
		p.parts.CacheWrite5m, p.parts.CacheWrite1h = 0, 0
	case Anthropic:
	}
	if q.Protocol != Anthropic && q.Path != responsesPath {
		p.parts.AudioOutput = min(b.AudioOutput, p.output-p.reasoning)
		p.parts.ImageOutput = min(b.ImageOutput, p.output-p.reasoning-p.parts.AudioOutput)
	}
	if q.Path == completionsPath || q.Path == responsesPath {
		p.parts.AudioInput = 0
	}
	if q.Path == completionsPath {
		return
	}
	switch p.dialect {
	case Ollama: // has one price of input and one of output
		p.parts = Parts{}
		return
	case Together:
		p.parts = Parts{Cached: p.parts.Cached}
		return
	default:
	}
	if p.parts.Searches = b.Searches; q.Protocol == Gemini {
		p.parts.Searches = min(b.Searches, 1) // a grounded request is one
	}
}

// billed are the parts of a request that is billed so much: those of an answer that
// did not come whole are text.
func (p *plan) billed(input int64, whole bool) Parts {
	parts := p.parts
	if input == 0 {
		return Parts{}
	}
	if !whole {
		parts.AudioOutput, parts.ImageOutput, parts.Searches = 0, 0, 0
	}
	parts.AudioOutput *= p.choices
	parts.ImageOutput *= p.choices
	return parts
}

func (p *Parts) add(q Parts) {
	p.Cached += q.Cached
	p.CacheWrite5m += q.CacheWrite5m
	p.CacheWrite1h += q.CacheWrite1h
	p.AudioInput += q.AudioInput
	p.AudioOutput += q.AudioOutput
	p.ImageOutput += q.ImageOutput
	p.Searches += q.Searches
}

// appendUsage reports output tokens, as truthfully as the mode wants, in the
// dialect's words.
func (p *plan) appendUsage(dst []byte, output int64) []byte {
	return p.appendPiece(dst, output, wholeReport)
}

// piece is what a part of a report that is spread over events has.
type piece uint8

const (
	wholeReport piece = iota
	promptPiece
	completionPiece
	totalPiece
)

func (p *plan) appendPiece(dst []byte, output int64, of piece) []byte {
	first := true
	member := func(name string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), name...), `":`...)
	}
	number := func(name string, n int64) {
		member(name)
		dst = p.appendNumber(dst, n)
	}
	plain := func(name string, n int64) {
		member(name)
		dst = strconv.AppendInt(dst, n, 10)
	}
	reasoning := min(p.reasoning*p.choices, output)
	completion, total := output, p.input+output
	if p.dialect == XAI {
		completion -= reasoning
	}
	if p.usage == UsageInconsistent {
		total += 7
	}
	dst = append(dst, '{')
	if of == promptPiece || of == wholeReport && p.usage != UsagePartial {
		number("prompt_tokens", p.input)
	}
	if of == completionPiece || of == wholeReport {
		number("completion_tokens", completion)
	}
	if of == totalPiece || of == wholeReport && p.usage != UsagePartial {
		number("total_tokens", total)
	}
	if (of == promptPiece || of == wholeReport) && p.usage != UsagePartial {
		p.appendPrompt(member, plain, &dst)
	}
	if (of == completionPiece || of == wholeReport) && p.usage != UsagePartial {
		p.appendCompletion(member, plain, &dst, reasoning)
	}
	return append(dst, '}')
}

// appendPrompt appends what stands beside the prompt's tokens.
func (p *plan) appendPrompt(member func(string), plain func(string, int64), dst *[]byte) {
	switch p.dialect {
	case Ollama:
		return
	case Together:
		plain("cached_tokens", p.parts.Cached)
		return
	case DeepSeek:
		plain("prompt_cache_hit_tokens", p.parts.Cached)
		plain("prompt_cache_miss_tokens", p.input-p.parts.Cached)
	default:
	}
	member("prompt_tokens_details")
	*dst = append(*dst, `{"cached_tokens":`...)
	*dst = strconv.AppendInt(*dst, p.parts.Cached, 10)
	if p.parts.CacheWrite5m > 0 {
		plain("cache_write_tokens", p.parts.CacheWrite5m)
	}
	plain("audio_tokens", p.parts.AudioInput)
	*dst = append(*dst, '}')
	if p.dialect == XAI {
		plain("num_sources_used", p.parts.Searches)
		plain("cost_in_usd_ticks", 10_000_000) // a thousandth of a dollar, whatever it was
	} else if p.parts.Searches > 0 || p.dialect == OpenRouter {
		member("server_tool_use_details")
		*dst = append(*dst, `{"web_search_requests":`...)
		*dst = append(strconv.AppendInt(*dst, p.parts.Searches, 10), '}')
	}
	if p.dialect == OpenRouter {
		member("cost")
		*dst = append(*dst, `0.001`...)
	}
}

// appendCompletion appends what stands beside the completion's tokens.
func (p *plan) appendCompletion(member func(string), plain func(string, int64), dst *[]byte, reasoning int64) {
	if p.dialect == Ollama || p.dialect == Together {
		return
	}
	member("completion_tokens_details")
	*dst = append(*dst, `{"reasoning_tokens":`...)
	*dst = strconv.AppendInt(*dst, reasoning, 10)
	plain("audio_tokens", p.parts.AudioOutput*p.choices)
	if p.parts.ImageOutput > 0 {
		plain("image_tokens", p.parts.ImageOutput*p.choices)
	}
	*dst = append(*dst, `,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}`...)
}
