// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Messages is the door POST /v1/messages.
type Messages struct{}

var messagesRules = wire.Rules{
	Decides: []string{
		"model", "messages", "system", "tools", "max_tokens", "stream", "metadata", "service_tier", "container", "cache_control", "mcp_servers",
	},
	Required: []string{"model", "messages"},
	Refused:  wire.RefusedMembers(),
	Unread: []string{
		"anthropic_beta", "anthropic_version", "betas", "context_management", "inference_geo", "speed", "stop_sequences", "temperature",
		"thinking", "tool_choice", "top_k", "top_p",
	},
}

// Decode reads a request of this door. Documents in the body count as text of
// their decoded size; what is named by an address or an id cannot be seen.
func (Messages) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	return decode(call.AnthropicMessages, r.Body)
}

// Path is the door's at a provider.
func (Messages) Path(*call.Call, string) string { return "/messages" }

// Rewrite is wire.Door's.
func (Messages) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	body, err := rewrite(body, r)
	if err != nil || r.Version == "" {
		return body, err
	}
	return versioned(body, r.Version, "model")
}

func rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	r.AskStreamUsage, r.OutputField = false, "" // the protocol has one of each
	return wire.RewriteObject(body, r, "max_tokens")
}

// decoder reads one request.
type decoder struct{ *wire.Decoder }

func decode(door call.Door, body []byte) (*call.Call, *fault.Fault) {
	d := decoder{wire.NewDecoder(door, body)}
	return d.Decode(&messagesRules, d.decide, func() {
		if d.Call.Model == "" {
			d.Refuse("model", "model is required")
		}
		if d.Call.Prompt.Messages == 0 {
			d.Refuse("messages", "messages is required and not empty")
		}
	})
}

func (d decoder) decide(name string) {
	switch name {
	case "model":
		d.Call.Model = d.Model(name)
	case "messages":
		d.messages()
	case "system":
		d.content("system")
	case "tools":
		d.tools()
	case "max_tokens":
		d.OutputBound(name)
	case "stream":
		// Usage is a part of every stream of this protocol.
		d.Call.Stream = d.Boolean(name)
		d.Call.WantsStreamUsage = d.Call.Stream
	case "service_tier":
		// Both "auto" and "standard_only" ask for no tier in particular: what was
		// served stands in the answer (USE-2).
		d.StringMember(name)
	case "metadata":
		d.MetadataUser()
	case "container":
		d.container()
	case "cache_control":
		d.cacheControl()
	case "mcp_servers":
		d.Call.Prompt.Unseen = true // what their tools answer is input, too
		d.Skip()
	}
}

// container names an environment that the provider keeps (DIS-8), as a string or
// in an object; an object without an id asks for a new one.
func (d decoder) container() {
	switch d.Peek() {
	case '"':
		d.State(d.StringMember("container"))
	case '{':
		d.Object(func(key []byte) {
			if string(key) == "id" && d.Peek() == '"' {
				d.State(d.StringMember("container.id"))
			} else {
				d.Skip()
			}
		})
	default:
		d.WrongType("container", "a string or an object")
	}
}

// cacheControl asks for writing to the prompt cache, for five minutes or an
// hour (EST-3).
func (d decoder) cacheControl() {
	d.Call.Prompt.CachesInput = true
	d.ObjectOrSkip(func(key []byte) {
		if string(key) == "ttl" && string(d.StringOrSkip()) == "1h" {
			d.Call.Prompt.CachesOneHour = true
			return
		}
		if string(key) != "ttl" {
			d.Skip()
		}
	})
}

// serverTool is a tool's type without its date and the provider's name of it, as
// price rows spell it; "" is a tool that the client runs.
func serverTool(kind string) string {
	for _, t := range [...]struct{ prefix, name string }{
		{"web_search_", call.WebSearch}, {"web_fetch_", call.WebFetch}, {"code_execution_", call.CodeExecution},
	} {
		if strings.HasPrefix(kind, t.prefix) {
			return t.name
		}
	}
	return ""
}
