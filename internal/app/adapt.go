// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/anthropic"
	"github.com/weirhq/weir/internal/wire/gemini"
	"github.com/weirhq/weir/internal/wire/openai"
)

// spoken fits an adapter to the gateway: adapters do not import each other, so
// their joints are here.
type spoken struct{ wire.Door }

func (p spoken) Decode(r gateway.Request) (*call.Call, *fault.Fault) {
	return p.Door.Decode(wire.Request(r))
}

func (p spoken) Rewrite(body []byte, r gateway.Rewrite) ([]byte, error) {
	return p.Door.Rewrite(body, wire.Rewrite(r))
}

func (p spoken) NewStream(o gateway.StreamOptions) gateway.Stream {
	return p.Door.NewStream(wire.StreamOptions(o))
}

// doors are the governed endpoints (SPEC section 9).
func doors() []gateway.Door {
	list := []gateway.Door{
		{Name: call.OpenAIChat, Path: "/v1/chat/completions", Protocol: spoken{openai.Chat{}}},
		{Name: call.OpenAIResponses, Path: "/v1/responses", Protocol: spoken{openai.Responses{}}},
		{Name: call.OpenAICompletions, Path: "/v1/completions", Protocol: spoken{openai.Completions{}}},
		{Name: call.OpenAIEmbeddings, Path: "/v1/embeddings", Protocol: spoken{openai.Embeddings{}}},
		{Name: call.OpenAIModerations, Path: "/v1/moderations", Protocol: spoken{openai.Moderations{}}},
		{Name: call.OpenAIImages, Path: "/v1/images/generations", Protocol: spoken{openai.Images{}}},
		{Name: call.OpenAISpeech, Path: "/v1/audio/speech", Protocol: spoken{openai.Speech{}}},
		{Name: call.OpenAITranscriptions, Path: "/v1/audio/transcriptions", Protocol: spoken{openai.Transcriptions{}}},
		{Name: call.AnthropicMessages, Path: "/v1/messages", Protocol: spoken{anthropic.Messages{}}, IDHeader: "Request-Id"},
		{Name: call.AnthropicCountTokens, Path: "/v1/messages/count_tokens", Protocol: spoken{anthropic.CountTokens{}}, IDHeader: "Request-Id"},
	}
	for _, d := range []gateway.Door{
		{Name: call.OpenAIChat, Path: "/chat/completions", Protocol: spoken{openai.Deployment{Door: openai.Chat{}}}},
		{Name: call.OpenAICompletions, Path: "/completions", Protocol: spoken{openai.Deployment{Door: openai.Completions{}}}},
		{Name: call.OpenAIEmbeddings, Path: "/embeddings", Protocol: spoken{openai.Deployment{Door: openai.Embeddings{}}}},
		{Name: call.OpenAIImages, Path: "/images/generations", Protocol: spoken{openai.Deployment{Door: openai.Images{}}}},
		{Name: call.OpenAISpeech, Path: "/audio/speech", Protocol: spoken{openai.Deployment{Door: openai.Speech{}}}},
	} {
		d.Path = "/openai/deployments/{model}" + d.Path
		list = append(list, d)
	}
	for _, version := range []string{"/v1beta", "/v1"} {
		at := version + "/models/{model}"
		list = append(list,
			gateway.Door{Name: call.GeminiGenerate, Path: at + ":generateContent", Protocol: spoken{gemini.Generate{}}},
			gateway.Door{Name: call.GeminiGenerate, Path: at + ":streamGenerateContent", Protocol: spoken{gemini.Generate{Stream: true}}},
			gateway.Door{Name: call.GeminiCountTokens, Path: at + ":countTokens", Protocol: spoken{gemini.CountTokens{}}},
			gateway.Door{Name: call.GeminiEmbed, Path: at + ":embedContent", Protocol: spoken{gemini.Embed{}}},
			gateway.Door{Name: call.GeminiEmbedBatch, Path: at + ":batchEmbedContents", Protocol: spoken{gemini.EmbedBatch{}}},
		)
	}
	return list
}
