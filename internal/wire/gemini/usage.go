// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// field is one figure of usageMetadata.
type field uint8

const (
	prompt  field = iota // cached content included
	cached               // of prompt
	answer               // candidates
	thought              // beside answer
	toolUse              // beside prompt
	total
	promptAudio
	promptImage
	cachedAudio
	cachedImage
	answerAudio
	answerImage
	fieldCount
)

// report is the usage as the provider spells it. It stands on every chunk of a
// stream and is cumulative: the last value of each figure stands (USE-1).
type report struct {
	seen    bool
	spoiled bool
	figures [fieldCount]wire.Figure
	tier    string
}

func (r *report) read(s *wire.Scanner, limit int64) {
	if s.Null() {
		return
	}
	r.seen = true
	if s.Peek() != '{' {
		s.Skip()
		r.spoiled = true
		return
	}
	s.Object(func(key []byte) {
		switch string(key) {
		case "promptTokenCount":
			r.figures[prompt].Read(s, limit)
		case "cachedContentTokenCount":
			r.figures[cached].Read(s, limit)
		case "candidatesTokenCount", "responseTokenCount":
			r.figures[answer].Read(s, limit)
		case "thoughtsTokenCount":
			r.figures[thought].Read(s, limit)
		case "toolUsePromptTokenCount":
			r.figures[toolUse].Read(s, limit)
		case "totalTokenCount":
			r.figures[total].Read(s, limit)
		case "promptTokensDetails":
			r.details(s, limit, promptAudio, promptImage)
		case "cacheTokensDetails":
			r.details(s, limit, cachedAudio, cachedImage)
		case "candidatesTokensDetails", "responseTokensDetails":
			r.details(s, limit, answerAudio, answerImage)
		case "serviceTier":
			r.tier = strings.ToLower(string(s.StringOrSkip()))
		case "trafficType": // Vertex: ON_DEMAND, ON_DEMAND_FLEX, ON_DEMAND_PRIORITY
			if tier, ok := strings.CutPrefix(string(s.StringOrSkip()), "ON_DEMAND_"); ok {
				r.tier = strings.ToLower(tier)
			}
		default:
			s.Skip()
		}
	})
}

// details reads counts by modality. Frames of a video are priced as text.
func (r *report) details(s *wire.Scanner, limit int64, audio, image field) {
	s.ArrayOrSkip(func() {
		var kind string
		var count wire.Figure
		s.ObjectOrSkip(func(key []byte) {
			switch string(key) {
			case "modality":
				kind = string(s.StringOrSkip())
			case "tokenCount":
				count.Read(s, limit)
			default:
				s.Skip()
			}
		})
		switch kind {
		case "AUDIO":
			r.figures[audio] = count
		case "IMAGE":
			r.figures[image] = count
		}
	})
}

func (r *report) get(f field) int64 { return r.figures[f].Value() }

// fit says whether the report can be charged: no figure unfit, and the prompt
// there, which a total alone does not tell from the answer (USE-1).
func (r *report) fit() bool {
	for i := range r.figures {
		if r.figures[i].Unfit() {
			return false
		}
	}
	return !r.spoiled && r.figures[prompt].Given()
}

// usage normalises a fit report to disjoint parts. consistent is false when its
// figures disagree and were settled upward (USE-1).
func (r *report) usage() (u call.Usage, consistent bool) {
	u = call.Usage{Requests: 1, ServiceTier: r.tier, ToolInput: r.get(toolUse)}
	heard, seen := min(r.get(cachedAudio), r.get(cached)), min(r.get(cachedImage), r.get(cached))
	u.CachedAudioInput = heard
	u.CachedInput = max(0, r.get(cached)-heard)
	u.AudioInput = max(0, r.get(promptAudio)-heard)
	u.ImageInput = max(0, r.get(promptImage)-seen)
	rest, inOrder := call.Remainder(r.get(prompt), u.CachedInput, u.CachedAudioInput, u.AudioInput, u.ImageInput)
	u.Input = rest
	consistent = inOrder && r.get(cached) <= r.get(prompt)

	u.AudioOutput, u.ImageOutput = r.get(answerAudio), r.get(answerImage)
	text, inOrder := call.Remainder(r.get(answer), u.AudioOutput, u.ImageOutput)
	u.Reasoning = r.get(thought)
	u.Output = text + u.Reasoning
	consistent = consistent && inOrder
	if r.figures[total].Given() {
		// What the total has beyond its parts is output: some servers leave the
		// candidates' count out of a chunk, or thoughts out of their own.
		known := max(r.get(prompt), u.InputTotal()-u.ToolInput) + u.ToolInput + u.OutputTotal()
		if beyond := r.get(total) - known; beyond > 0 {
			u.Output += beyond
			consistent = consistent && !r.figures[answer].Given()
		}
	}
	return u, consistent
}
