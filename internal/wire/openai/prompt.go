// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"

	"github.com/weirhq/weir/internal/wire"
)

// The measure of a prompt leans to counting: what is not known to be unread
// counts as text, so that no spelling of a member hides text from the estimate.
// Repeated members inside a message count each.

func (d chatDecoder) messages() {
	d.Objects("messages", func() {
		d.Call.Prompt.Messages++
		role := false
		d.Object(func(key []byte) { role = d.messageMember(key) || role })
		if d.Err == nil && !role {
			d.Refuse("messages.role", "each message has a role")
		}
	})
}

// messageMember reads a member of a message and says whether it was the role.
func (d chatDecoder) messageMember(key []byte) (role bool) {
	switch string(key) {
	case "role":
		if d.Peek() != '"' {
			d.WrongType("messages.role", "a string")
		} else {
			d.Skip()
		}
		return true
	case "tool_call_id", "id":
		d.Skip()
	case "content":
		d.content()
	case "tool_calls":
		d.toolCalls()
	case "audio":
		d.kept("id")
	default:
		d.Count(d.Text())
	}
	return false
}

// content reads a message's content: a string, or parts.
func (d chatDecoder) content() {
	if d.Peek() != '[' {
		d.Count(d.Text())
		return
	}
	d.Array(func() {
		if d.Peek() == '{' {
			d.Object(d.part)
		} else {
			d.Count(d.Text())
		}
	})
}

// part reads a member of a content part. An image is an image, whether it is
// named by an address or carried as base64.
func (d chatDecoder) part(key []byte) {
	switch string(key) {
	case "type":
		d.Skip()
	case "image_url":
		d.Call.Prompt.Images++
		d.Skip()
	case "input_audio":
		d.ObjectOrSkip(func(key []byte) {
			if string(key) == "data" {
				d.Count(d.Base64())
			} else {
				d.Skip()
			}
		})
	case "file":
		d.kept("file_id")
	default:
		d.Count(d.Text())
	}
}

// kept reads an object that carries data or names, under idKey, something that
// the provider keeps (DIS-8).
func (d chatDecoder) kept(idKey string) {
	if d.Peek() != '{' {
		d.Count(d.Text())
		return
	}
	d.Object(func(key []byte) {
		switch {
		case bytes.EqualFold(key, []byte(idKey)) && d.Peek() == '"':
			raw, _ := d.String()
			d.State(string(wire.Unquote(raw)))
		case string(key) == "file_data":
			d.Count(d.Base64())
		default:
			d.Count(d.Text())
		}
	})
}

func (d chatDecoder) toolCalls() {
	if d.Peek() != '[' {
		d.Count(d.Text())
		return
	}
	d.Array(d.definition)
}

func (d chatDecoder) tools(name string) {
	if d.Peek() != '[' {
		d.WrongType(name, "an array")
		return
	}
	d.Array(func() {
		d.Call.Prompt.Tools++
		d.tool()
	})
}

// definition reads a tool, a tool call or a response format: names,
// descriptions, arguments, and schemas as compact JSON. What wraps them is not
// read by the model.
func (d chatDecoder) definition() {
	if d.Peek() != '{' {
		d.Count(d.Text())
		return
	}
	d.Object(func(key []byte) {
		switch string(key) {
		case "type", "id", "index", "strict":
			d.Skip()
		case "function", "custom", "json_schema":
			d.definitionBody()
		default:
			d.Count(d.Text())
		}
	})
}

func (d chatDecoder) definitionBody() {
	if d.Peek() != '{' {
		d.Count(d.Text())
		return
	}
	d.Object(func(key []byte) {
		if string(key) == "strict" {
			d.Skip()
		} else {
			d.Count(d.Text())
		}
	})
}

// prediction reads predicted output, which has the shape of a content.
func (d chatDecoder) prediction() {
	if d.Peek() != '{' {
		d.WrongType("prediction", "an object")
		return
	}
	d.Object(func(key []byte) {
		switch string(key) {
		case "type":
			d.Skip()
		case "content":
			d.content()
		default:
			d.Count(d.Text())
		}
	})
}
