// SPDX-License-Identifier: Apache-2.0

// Package call holds the canonical call and its usage: what admission, routing
// and accounting need to know of a request and of its answer, in one shape for
// every protocol.
//
// It is not a model of anybody's API. The wire adapters fill these types and
// pass the remaining bytes through.
package call

import "strings"

// Door names the endpoint that a request came in by: the protocol, a dot, the
// operation (SPEC section 9).
type Door string

// The doors. Models and WeirKey reach no provider and cost nothing.
const (
	OpenAIChat           Door = "openai.chat"
	OpenAICompletions    Door = "openai.completions"
	OpenAIResponses      Door = "openai.responses"
	OpenAIEmbeddings     Door = "openai.embeddings"
	OpenAIImages         Door = "openai.images"
	OpenAITranscriptions Door = "openai.transcriptions"
	OpenAISpeech         Door = "openai.speech"
	OpenAIModerations    Door = "openai.moderations"
	OpenAIModels         Door = "openai.models"
	AnthropicMessages    Door = "anthropic.messages"
	AnthropicCountTokens Door = "anthropic.count_tokens"
	GeminiGenerate       Door = "gemini.generate"
	GeminiCountTokens    Door = "gemini.count_tokens"
	GeminiEmbed          Door = "gemini.embed"
	GeminiEmbedBatch     Door = "gemini.embed_batch"
	GeminiModels         Door = "gemini.models"
	WeirKey              Door = "weir.key"
)

// Protocol is the one that is spoken at the door: a provider that is reached by it
// speaks the same.
func (d Door) Protocol() string {
	protocol, _, _ := strings.Cut(string(d), ".")
	return protocol
}

// Counts tells that the door only counts tokens: a request of price zero that
// counts for requests and slots (SPEC section 9).
func (d Door) Counts() bool { return d == AnthropicCountTokens || d == GeminiCountTokens }

// Writes tells that a model writes at the door: its answers may have output that
// is counted in tokens.
func (d Door) Writes() bool {
	switch d {
	case OpenAIEmbeddings, OpenAIModerations, OpenAIModels, GeminiEmbed, GeminiEmbedBatch, GeminiModels, WeirKey:
		return false
	default:
		return !d.Counts()
	}
}

// NoBound is the OutputBound of a call whose client sent none.
const NoBound int64 = -1

// Call is a decoded request. It is only built by a wire adapter, which has
// checked every member that it carries (SPEC ERR-5).
type Call struct {
	Door Door
	// Model is the name as the client sent it: a model, alias or route (KEY-5).
	Model string
	// Stream says that the client wants the answer as events.
	Stream bool
	// ArrayStream says that the stream is one JSON array, and not server-sent
	// events.
	ArrayStream bool
	// WantsStreamUsage says that the client itself asked for the usage of its
	// stream; without it the gateway asks and keeps the answer to itself (DIS-6).
	WantsStreamUsage bool
	// OutputBound is the client's own bound on the tokens of one completion,
	// NoBound when it sent none.
	OutputBound int64
	// OutputField is the member that carried OutputBound, in the protocol's
	// spelling; empty when the client sent none.
	OutputField string
	// Completions is how many completions are asked for, at least 1 (EST-2).
	Completions int64
	Prompt      Prompt
	// Units is the most that may be used beside tokens: audio by its length,
	// images asked for, and each of the provider's own tools that the request
	// offers, with its own bound or 0 (EST-4).
	Units Units
	// MaxToolCalls bounds the calls of all those tools together; 0: not sent.
	MaxToolCalls int64
	// ServiceTier is the tier asked for, empty when none was.
	ServiceTier string
	// User is the end user named in the body, unchecked: whether it counts is
	// the key's affair (KEY-7).
	User string
	// MetadataUser is the one in the body's metadata, likewise unchecked.
	MetadataUser string
	// StateIDs are the ids in the body that point at state kept by a provider;
	// each must be known to this workspace (DIS-8).
	StateIDs []string
	// Unstored: the request says that its answer is not stored.
	Unstored bool
}

// Prompt measures what the model reads, for the estimate of EST-1.
type Prompt struct {
	// TextBytes counts the decoded UTF-8 bytes of all text: system text,
	// messages, tool definitions, tool results and schemas.
	TextBytes int64
	Messages  int64
	Tools     int64
	Images    int64
	// CachesInput says that the body asks for writing to the provider's prompt
	// cache, CachesOneHour that it asks for one hour (EST-3).
	CachesInput, CachesOneHour bool
	// Unseen says that there is further input which the gateway cannot see: a
	// stored id, a file by address. It is held at what the context leaves
	// (EST-4); InputTokens is the visible part.
	Unseen bool
}

// What EST-1 adds to the text, in tokens.
const (
	DefaultBytesPerToken int64 = 3
	DefaultImageTokens   int64 = 1600

	tokensPerRequest int64 = 3
	tokensPerMessage int64 = 4
	tokensPerTool    int64 = 8
)

// InputTokens is the estimate of EST-1: the text's bytes over bytesPerToken,
// rounded up, and what a request, each message, each tool and each image adds.
// bytesPerToken outside 1 to 4 and imageTokens below 1 mean the defaults. The
// result saturates instead of overflowing.
func (p Prompt) InputTokens(bytesPerToken, imageTokens int64) int64 {
	if bytesPerToken < 1 || bytesPerToken > 4 {
		bytesPerToken = DefaultBytesPerToken
	}
	if imageTokens < 1 {
		imageTokens = DefaultImageTokens
	}
	n := TextTokens(p.TextBytes, bytesPerToken)
	n = add(n, tokensPerRequest)
	n = add(n, times(tokensPerMessage, p.Messages))
	n = add(n, times(tokensPerTool, p.Tools))
	return add(n, times(imageTokens, p.Images))
}

// TextTokens is bytes over bytesPerToken, rounded up: the estimate of a piece
// of text, used for prompts (EST-1) and for output received without a usage
// report (RES-4). bytesPerToken outside 1 to 4 means the default.
func TextTokens(bytes, bytesPerToken int64) int64 {
	if bytes <= 0 {
		return 0
	}
	if bytesPerToken < 1 || bytesPerToken > 4 {
		bytesPerToken = DefaultBytesPerToken
	}
	return (bytes-1)/bytesPerToken + 1
}
