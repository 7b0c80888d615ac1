// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Responses is the door POST /v1/responses.
type Responses struct{}

var responsesRules = wire.Rules{
	Decides: []string{
		"model", "input", "instructions", "tools", "text", "max_output_tokens", "max_tool_calls", "stream", "service_tier", "user", "metadata",
		"previous_response_id", "conversation", "prompt", "background", "store",
	},
	Required: []string{"model"},
	Refused:  wire.RefusedMembers(),
	Unread: []string{
		"context_management", "include", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier",
		"stream_options", "temperature", "tool_choice", "top_logprobs", "top_p", "truncation",
	},
}

// Decode reads a request of this door. Ids of what the provider keeps are noted
// (DIS-8), and what they stand for cannot be seen.
func (Responses) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := responsesDecoder{chatDecoder{wire.NewDecoder(call.OpenAIResponses, r.Body)}}
	return d.Decode(&responsesRules, d.decide, func() {
		if d.Call.Model == "" {
			d.Refuse("model", "model is required")
		}
		if d.Call.Prompt.Messages == 0 && !d.Call.Prompt.Unseen {
			d.Refuse("input", "input is required and not empty")
		}
	})
}

// Path is the door's at a provider.
func (Responses) Path(*call.Call, string) string { return "/responses" }

// Rewrite is wire.Door's. Usage is a part of every stream of this door.
func (Responses) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	r.AskStreamUsage, r.OutputField = false, ""
	return wire.RewriteObject(body, r, "max_output_tokens")
}

// Fault is wire.Door's.
func (Responses) Fault(f *fault.Fault, requestID string) (status int, contentType string, body []byte) {
	return Chat{}.Fault(f, requestID)
}

type responsesDecoder struct{ chatDecoder }

func (d responsesDecoder) decide(name string) {
	switch name {
	case "model":
		d.Call.Model = d.Model(name)
	case "input":
		d.input()
	case "instructions":
		d.Count(d.Text())
	case "tools":
		d.tools()
	case "text":
		d.text()
	case "max_output_tokens":
		d.OutputBound(name)
	case "max_tool_calls":
		d.Call.MaxToolCalls = d.Integer(name, 1, maxToolCalls)
	case "stream":
		d.Call.Stream = d.Boolean(name)
		d.Call.WantsStreamUsage = d.Call.Stream
	case "service_tier":
		d.Call.ServiceTier = d.StringMember(name)
	case "user":
		d.Call.User = d.StringMember(name)
	case "metadata":
		d.MetadataUser()
	case "previous_response_id":
		d.State(d.StringMember(name))
	case "conversation", "prompt":
		d.named(name)
	case "store":
		d.Call.Unstored = !d.Boolean(name)
	case "background":
		if d.Boolean(name) {
			d.Refuse(name, "background is not served: nobody would see here what such a request costs; leave it out")
		}
	}
}

// text reads how an answer's text is formed: its schema is a part of the prompt.
func (d responsesDecoder) text() {
	if d.Peek() != '{' {
		d.WrongType("text", "an object")
		return
	}
	d.Object(func(key []byte) {
		if string(key) == "format" {
			d.definition()
		} else {
			d.Skip()
		}
	})
}

// maxToolCalls bounds what a request may say of how often tools run.
const maxToolCalls = 1_000_000

// named reads something that the provider keeps: its id, or an object with one.
func (d responsesDecoder) named(name string) {
	switch d.Peek() {
	case '"':
		d.State(d.StringMember(name))
	case '{':
		d.Object(func(key []byte) {
			switch {
			case strings.EqualFold(string(key), "id") && d.Peek() == '"':
				d.State(d.StringMember(name + ".id"))
			case string(key) == "variables": // of a stored prompt
				d.ObjectOrSkip(func([]byte) { d.variable() })
			default:
				d.Count(d.Text())
			}
		})
	default:
		d.WrongType(name, "a string or an object")
	}
}

// variable is a text, an image or a file for a stored prompt.
func (d responsesDecoder) variable() {
	if d.Peek() == '{' {
		d.Object(d.itemPart)
	} else {
		d.Count(d.Text())
	}
}

// input reads a text, or items.
func (d responsesDecoder) input() {
	switch d.Peek() {
	case '"':
		d.Call.Prompt.Messages++
		d.Count(d.Text())
	case '[':
		d.Array(func() {
			if d.Peek() != '{' {
				d.WrongType("input", "a string or an array of objects")
				return
			}
			d.Call.Prompt.Messages++
			d.item()
		})
	default:
		d.WrongType("input", "a string or an array of objects")
	}
}

// item reads a message, a call, a call's result, or a reference to an item that
// the provider keeps. What kind it is may stand behind its id.
func (d responsesDecoder) item() {
	var kind, id string
	bare := true // it has an id and nothing to read
	d.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(d.StringOrSkip())
			return
		case "id":
			id = string(d.StringOrSkip())
			return
		}
		bare = false
		switch string(key) {
		case "call_id", "role", "status":
			d.Skip()
		case "content", "output":
			d.itemContent()
		case "result": // of an image that was made
			d.Call.Prompt.Images++
			d.Skip()
		default:
			d.Count(d.Text())
		}
	})
	if kind == "item_reference" || bare {
		d.State(id)
	}
}

func (d responsesDecoder) itemContent() {
	if d.Peek() != '[' {
		d.Count(d.Text())
		return
	}
	d.Array(func() {
		if d.Peek() == '{' {
			d.Object(d.itemPart)
		} else {
			d.Count(d.Text())
		}
	})
}

// itemPart reads a member of a part of an item's content.
func (d responsesDecoder) itemPart(key []byte) {
	switch string(key) {
	case "type", "detail", "annotations", "logprobs":
		d.Skip()
	case "image_url":
		d.Call.Prompt.Images++
		d.Skip()
	case "file_id":
		if d.Peek() == '"' {
			d.State(d.StringMember("file_id"))
		} else {
			d.Skip()
		}
	case "file_data":
		d.Count(d.Base64())
	case "file_url":
		d.Call.Prompt.Unseen = true
		d.Skip()
	case "input_audio":
		d.ObjectOrSkip(func(key []byte) {
			if string(key) == "data" {
				d.Count(d.Base64())
			} else {
				d.Skip()
			}
		})
	default:
		d.Count(d.Text())
	}
}

func (d responsesDecoder) tools() {
	d.Objects("tools", func() {
		d.Call.Prompt.Tools++
		d.tool()
	})
}

// tool reads a definition. One that the provider runs may cost by the call, and is
// held so (EST-4); what it reads by itself is an overrun. One that names a model of
// its own would run on something that was neither allowed nor priced (ERR-5).
func (d responsesDecoder) tool() {
	kind := ""
	d.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(d.StringOrSkip())
		case "strict":
			d.Skip()
		case "model":
			d.Refuse("tools.model", "tools.model is not taken from a request: no tool runs on a model of its own here")
		case "vector_store_ids", "file_ids":
			d.ids()
		case "container":
			d.container()
		default:
			d.Count(d.Text())
		}
	})
	switch name := ownTool(kind); name {
	case "":
	case unbilled:
		d.Call.Prompt.Unseen = true // what its tools answer is input, too
	default:
		d.Call.Units.Tools.Set(name, 0)
	}
}

func (d responsesDecoder) ids() {
	d.ArrayOrSkip(func() {
		if d.Peek() == '"' {
			d.State(d.StringMember("tools"))
		} else {
			d.Skip()
		}
	})
}

// container names one that the provider keeps, or asks for a new one.
func (d responsesDecoder) container() {
	if d.Peek() == '"' {
		d.State(d.StringMember("tools.container"))
		return
	}
	d.ObjectOrSkip(func(key []byte) {
		if string(key) == "file_ids" {
			d.ids()
		} else {
			d.Skip()
		}
	})
}

// unbilled is a server of tools, which reads further input, but whose calls no
// provider bills: counted, they would have no price.
const unbilled = "mcp"

// ownTool is the name that price rows have for one of the provider's own tools;
// "" is a tool that the client runs.
func ownTool(kind string) string {
	switch {
	case strings.HasPrefix(kind, "web_search"), kind == "x_search":
		return call.WebSearch
	case kind == "file_search":
		return call.FileSearch
	case kind == "code_interpreter", kind == "code_execution":
		return call.CodeExecution
	case kind == "image_generation", kind == unbilled, kind == "collections_search":
		return kind
	}
	return ""
}
