// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// field is one figure of a usage object.
type field uint8

const (
	promptTokens field = iota
	completionTokens
	totalTokens
	cachedTokens
	cachedAlias // DeepSeek's and Moonshot's names for cachedTokens
	cacheWrite
	cacheWriteAlias
	cachedAudio
	audioInput
	imageInput
	reasoning
	audioOutput
	imageOutput
	webSearches
	fieldCount
)

// report is the usage as the provider spells it. Counts are cumulative: the
// last value of each figure stands, and one left out or null changes nothing
// (USE-1).
type report struct {
	seen bool
	// inputOnly: the door has no output, and its usage no figure of it.
	inputOnly bool
	cost      string // what the provider says that it costs (USE-4)
	figures   [fieldCount]wire.Figure
}

// read takes in a usage object; limit bounds each count.
func (r *report) read(s *wire.Scanner, limit int64) {
	if s.Null() {
		return
	}
	r.seen = true
	if s.Peek() != '{' {
		s.Skip()
		r.figures[promptTokens].Spoil()
		return
	}
	s.Object(func(key []byte) {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			r.set(promptTokens, s, limit)
		case "completion_tokens", "output_tokens":
			r.set(completionTokens, s, limit)
		case "total_tokens":
			r.set(totalTokens, s, limit)
		case "cost": // OpenRouter's, in dollars
			r.setCost(s, func(spelling []byte) string { return string(spelling) })
		case "cost_in_usd_ticks": // xAI's, in ten-billionths of a dollar
			r.setCost(s, func(spelling []byte) string {
				ticks, ok := wire.Whole(spelling)
				if !ok {
					return string(spelling)
				}
				return call.Decimal(ticks, 10)
			})
		case "num_sources_used": // xAI's, each of which it bills as a search
			r.set(webSearches, s, limit)
		case "server_tool_use", "server_tool_use_details": // OpenRouter's
			r.details(s, limit, serverTool, webSearches)
		case "prompt_cache_hit_tokens", "cached_tokens":
			r.set(cachedAlias, s, limit)
		case "prompt_tokens_details", "input_tokens_details", "input_token_details":
			r.details(s, limit, promptDetail, promptTokens)
		case "completion_tokens_details", "output_tokens_details":
			r.details(s, limit, completionDetail, completionTokens)
		default:
			s.Skip()
		}
	})
}

// setCost reads a number and keeps it as dollars, every digit of it; anything else
// is kept as it is, for whoever judges it.
func (r *report) setCost(s *wire.Scanner, dollars func(spelling []byte) string) {
	switch c := s.Peek(); {
	case c == 'n':
		s.Literal()
	case c == '-' || c >= '0' && c <= '9':
		r.cost = dollars(s.Number())
	default:
		from := s.At()
		s.Skip()
		r.cost = string(s.Slice(from, s.At()))
	}
}

// details reads an object of parts, whose names name resolves; anything else
// than an object makes the figure that they belong to unfit.
func (r *report) details(s *wire.Scanner, limit int64, name func(key []byte) (field, bool), of field) {
	switch s.Peek() {
	case 'n':
		s.Literal()
	case '{':
		s.Object(func(key []byte) {
			if string(key) == "cached_tokens_details" {
				s.ObjectOrSkip(func(key []byte) {
					if string(key) == "audio_tokens" {
						r.set(cachedAudio, s, limit)
					} else {
						s.Skip()
					}
				})
			} else if f, ok := name(key); ok {
				r.set(f, s, limit)
			} else {
				s.Skip()
			}
		})
	default:
		s.Skip()
		r.figures[of].Spoil()
	}
}

func promptDetail(key []byte) (field, bool) {
	switch string(key) {
	case "cached_tokens":
		return cachedTokens, true
	case "cache_write_tokens":
		return cacheWrite, true
	case "cache_creation_tokens", "cache_creation_input_tokens":
		return cacheWriteAlias, true
	case "audio_tokens":
		return audioInput, true
	case "image_tokens":
		return imageInput, true
	}
	return 0, false
}

func completionDetail(key []byte) (field, bool) {
	switch string(key) {
	case "reasoning_tokens":
		return reasoning, true
	case "audio_tokens":
		return audioOutput, true
	case "image_tokens":
		return imageOutput, true
	}
	return 0, false
}

func serverTool(key []byte) (field, bool) {
	return webSearches, string(key) == "web_search_requests"
}

func (r *report) set(f field, s *wire.Scanner, limit int64) { r.figures[f].Read(s, limit) }

// get is a figure and 0 when it is absent.
func (r *report) get(f field) int64 { return r.figures[f].Value() }

func (r *report) given(f field) bool { return r.figures[f].Given() }

// fit says whether the report can be charged: no figure unfit, and both totals
// there (USE-1).
func (r *report) fit() bool {
	for i := range r.figures {
		if r.figures[i].Unfit() {
			return false
		}
	}
	return r.given(promptTokens) && (r.inputOnly || r.given(completionTokens))
}

// usage normalises a fit report to disjoint parts. consistent is false when its
// figures disagree and were settled upward (USE-1).
func (r *report) usage() (u call.Usage, consistent bool) {
	u.Requests = 1
	input := r.input(&u)
	output := r.output(&u)
	if n := r.get(webSearches); n > 0 {
		u.Units.Tools.Set(call.WebSearch, n)
	}
	return u, input && output
}

// input divides prompt_tokens, which includes cached, written, audio and image
// tokens. Cached tokens may also be audio or image tokens: what the parts have
// beyond the total is in two of them for certain, so it is cached audio, or
// counted as the image it also is. What still exceeds the total stands.
func (r *report) input(u *call.Usage) (consistent bool) {
	total := r.get(promptTokens)
	cached, one := r.either(cachedTokens, cachedAlias)
	write, two := r.either(cacheWrite, cacheWriteAlias)
	audio, image := r.get(audioInput), r.get(imageInput)
	consistent = one && two && cached <= total && write <= total && audio <= total && image <= total

	both := r.get(cachedAudio)
	if !r.given(cachedAudio) {
		both = max(0, cached+write+audio+image-total)
		both = min(both, cached, audio)
	} else if both > min(cached, audio) {
		both, consistent = min(cached, audio), false
	}
	cached, audio = cached-both, audio-both
	if excess := cached + write + audio + image + both - total; consistent && excess > 0 {
		cached -= min(excess, cached, image)
	}
	u.CachedInput, u.CachedAudioInput, u.CacheWrite5m = cached, both, write
	u.AudioInput, u.ImageInput = audio, image
	rest, ok := call.Remainder(total, cached, both, write, audio, image)
	u.Input = rest
	return consistent && ok
}

// either is the larger of two names for one figure; they agree unless both are
// given and differ.
func (r *report) either(a, b field) (n int64, agree bool) {
	agree = !r.given(a) || !r.given(b) || r.get(a) == r.get(b)
	return max(r.get(a), r.get(b)), agree
}

// output divides completion_tokens, which includes reasoning, audio and image
// tokens. What total_tokens has beyond prompt and completion is output as well: xAI
// counts reasoning beside completion_tokens, and where it is just that, the figures
// agree.
func (r *report) output(u *call.Usage) (consistent bool) {
	completion, prompt := r.get(completionTokens), max(r.get(promptTokens), u.InputTotal())
	consistent = true
	if r.given(totalTokens) {
		total := r.get(totalTokens)
		beyond := total - r.get(promptTokens) - completion
		consistent = beyond == 0 || beyond == r.get(reasoning)
		completion += max(0, total-prompt-completion)
	}
	u.AudioOutput, u.ImageOutput = r.get(audioOutput), r.get(imageOutput)
	rest, ok := call.Remainder(completion, u.AudioOutput, u.ImageOutput)
	u.Output, u.Reasoning = rest, r.get(reasoning)
	if u.Reasoning > u.Output {
		u.Output, ok = u.Reasoning, false
	}
	return consistent && ok
}
