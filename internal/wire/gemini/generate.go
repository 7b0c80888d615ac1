// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Generate is the door :generateContent, or, with Stream, :streamGenerateContent.
type Generate struct{ Stream bool }

var generateRules = wire.Rules{
	Snake: true,
	Decides: []string{
		"model", "contents", "systemInstruction", "tools", "generationConfig", "cachedContent", "serviceTier",
	},
	Required: []string{"contents"},
	Refused:  wire.RefusedMembers(),
	Unread:   []string{"safetySettings", "safety_settings", "toolConfig", "tool_config", "labels", "store"},
}

// Decode reads a request of this door. Media in the body count as text of their
// decoded size, images as images; what is named by an address cannot be seen.
func (g Generate) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := decoder{wire.NewDecoder(call.GeminiGenerate, r.Body)}
	// Usage is a part of every stream of this protocol.
	d.Call.Stream, d.Call.WantsStreamUsage = g.Stream, g.Stream
	d.Call.ArrayStream = g.Stream && r.Query.Get("alt") != "sse"
	return d.read(&generateRules, r.Model)
}

// Path is the door's at a provider.
func (g Generate) Path(c *call.Call, model string) string {
	switch {
	case !g.Stream:
		return modelPath(model) + ":generateContent"
	case c != nil && c.ArrayStream:
		return modelPath(model) + ":streamGenerateContent"
	default:
		return modelPath(model) + ":streamGenerateContent?alt=sse"
	}
}

// modelPath is where a provider has a model; a name may say itself that it is
// no ordinary one ("tunedModels/mine").
func modelPath(model string) string {
	escaped := strings.ReplaceAll(url.PathEscape(model), "%2F", "/")
	if strings.Contains(model, "/") {
		return "/" + escaped
	}
	return "/models/" + escaped
}

// decoder reads one request.
type decoder struct{ *wire.Decoder }

// read decodes the body; the model is the path's, and a body that names another
// one would ask for something else than what was checked (ERR-5).
func (d decoder) read(rules *wire.Rules, model string) (*call.Call, *fault.Fault) {
	d.Call.Model = model
	return d.Decode(rules, d.decide, func() {
		d.CheckModel("model", model)
		if d.Call.Prompt.Messages == 0 {
			d.Refuse(rules.Required[0], "%s is required and not empty", rules.Required[0])
		}
	})
}

func (d decoder) decide(name string) {
	switch name {
	case "model":
		if named := d.StringMember(name); strings.TrimPrefix(named, "models/") != d.Call.Model {
			d.Refuse(name, "model in the body and in the path differ")
		}
	case "contents":
		d.contents()
	case "content":
		d.content(name)
	case "systemInstruction":
		d.instruction()
	case "tools":
		d.tools()
	case "generationConfig":
		d.generationConfig()
	case "cachedContent":
		d.State(d.StringMember(name))
	case "serviceTier":
		d.Call.ServiceTier = strings.ToLower(d.StringMember(name))
	case "generateContentRequest":
		d.nestedRequest()
	case "requests":
		d.batch()
	case "title":
		d.Count(d.Text())
	}
}

var configRules = wire.Rules{
	Snake:   true,
	Decides: []string{"maxOutputTokens", "candidateCount", "responseSchema", "responseJsonSchema"},
	Unread: []string{
		"stopSequences", "stop_sequences", "responseMimeType", "response_mime_type", "responseModalities", "response_modalities", "temperature",
		"topP", "top_p", "topK", "top_k", "seed", "presencePenalty", "presence_penalty", "frequencyPenalty", "frequency_penalty",
		"responseLogprobs", "response_logprobs", "logprobs", "enableEnhancedCivicAnswers", "speechConfig", "speech_config",
		"thinkingConfig", "thinking_config", "mediaResolution", "media_resolution", "imageConfig", "image_config",
	},
}

func (d decoder) generationConfig() {
	if d.Peek() != '{' {
		d.WrongType("generationConfig", "an object")
		return
	}
	d.Members("generationConfig.", &configRules, func(name string) {
		switch name {
		case "maxOutputTokens":
			d.OutputBound("generationConfig.maxOutputTokens")
		case "candidateCount":
			d.Call.Completions = d.Integer("generationConfig.candidateCount", 1, wire.MaxCompletions)
		default:
			d.Count(d.Text())
		}
	})
}
