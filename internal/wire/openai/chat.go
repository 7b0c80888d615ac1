// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Chat is the door POST /v1/chat/completions. It has no state.
type Chat struct{}

// chatRules: servers of this protocol have members of their own that reach the
// model ("documents", "chat_template").
var chatRules = wire.Rules{
	Decides: []string{
		"model", "messages", "tools", "functions", "response_format", "prediction",
		"max_tokens", "max_completion_tokens", "n", "best_of",
		"stream", "stream_options", "service_tier", "user", "metadata",
		"web_search_options", "search_parameters", "plugins",
	},
	Required: []string{"model", "messages"},
	Refused:  wire.RefusedMembers(),
	Unread: []string{
		"audio", "frequency_penalty", "function_call", "logit_bias", "logprobs", "modalities",
		"parallel_tool_calls", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning",
		"reasoning_effort", "safety_identifier", "seed", "stop", "store", "temperature", "tool_choice",
		"top_logprobs", "top_p", "verbosity",
	},
}

// Decode reads a request of this door strictly (ERR-5) and measures its prompt
// (EST-1). Everything that it refuses is a 400 that names the member.
//
// When both output bounds are given, the least is the call's, and Rewrite
// clamps both. Audio and files in the body count as text of their decoded size:
// no codec or format in use gives more than a token for three of its bytes.
func (Chat) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := chatDecoder{wire.NewDecoder(call.OpenAIChat, r.Body)}
	return d.Decode(&chatRules, d.decide, func() {
		if d.Call.Model == "" {
			d.Refuse("model", "model is required")
		}
		if d.Call.Prompt.Messages == 0 {
			d.Refuse("messages", "messages is required and not empty")
		}
	})
}

// Path is the door's at a provider.
func (Chat) Path(*call.Call, string) string { return "/chat/completions" }

type chatDecoder struct{ *wire.Decoder }

func (d chatDecoder) decide(name string) {
	switch name {
	case "model":
		d.Call.Model = d.Model(name)
	case "messages":
		d.messages()
	case "tools", "functions":
		d.tools(name)
	case "response_format":
		d.definition()
	case "prediction":
		d.prediction()
	case "max_tokens", "max_completion_tokens":
		d.OutputBound(name)
	case "n", "best_of":
		d.Call.Completions = max(d.Call.Completions, d.Integer(name, 1, wire.MaxCompletions))
	case "stream":
		d.Call.Stream = d.Boolean(name)
	case "stream_options":
		d.streamOptions()
	case "service_tier":
		d.Call.ServiceTier = d.StringMember(name)
	case "user":
		d.Call.User = d.StringMember(name)
	case "metadata":
		d.MetadataUser()
	case "web_search_options":
		d.searchOptions()
	case "search_parameters":
		d.searchParameters(name)
	case "plugins":
		d.plugins(name)
	}
}

func (d chatDecoder) streamOptions() {
	if d.Peek() != '{' {
		d.WrongType("stream_options", "an object")
		return
	}
	const param = "stream_options.include_usage"
	seen := false
	d.Object(func(key []byte) {
		switch {
		case !bytes.EqualFold(key, []byte("include_usage")):
			d.Skip()
		case string(key) != "include_usage":
			d.Refuse(param, "%q is written %q", key, "include_usage")
		case seen:
			d.Refuse(param, "%s stands twice", param)
		default:
			seen = true
			d.Call.WantsStreamUsage = !d.Null() && d.Boolean(param)
		}
	})
}
