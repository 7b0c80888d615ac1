// SPDX-License-Identifier: Apache-2.0

package openai

import "bytes"

// The measure of a prompt leans to counting: what is not known to be unread
// counts as text, so that no spelling of a member hides text from the estimate.
// Repeated members inside a message count each.

func (d *chatDecoder) messages() {
	if d.peek() != '[' {
		d.wrongType("messages", "an array of objects")
		return
	}
	d.array(func() {
		if d.peek() != '{' {
			d.wrongType("messages", "an array of objects")
			return
		}
		d.call.Prompt.Messages++
		role := false
		d.object(func(key []byte) { role = d.messageMember(key) || role })
		if d.err == nil && !role {
			d.refuse("messages.role", "each message has a role")
		}
	})
}

// messageMember reads a member of a message and says whether it was the role.
func (d *chatDecoder) messageMember(key []byte) (role bool) {
	switch string(key) {
	case "role":
		if d.peek() != '"' {
			d.wrongType("messages.role", "a string")
		} else {
			d.skip()
		}
		return true
	case "tool_call_id", "id":
		d.skip()
	case "content":
		d.content()
	case "tool_calls":
		d.toolCalls()
	case "audio":
		d.kept("id")
	default:
		d.count(d.text())
	}
	return false
}

func (d *chatDecoder) count(bytes int64) { d.call.Prompt.TextBytes += bytes }

// content reads a message's content: a string, or parts.
func (d *chatDecoder) content() {
	if d.peek() != '[' {
		d.count(d.text())
		return
	}
	d.array(func() {
		if d.peek() == '{' {
			d.object(d.part)
		} else {
			d.count(d.text())
		}
	})
}

// part reads a member of a content part. An image is an image, whether it is
// named by an address or carried as base64.
func (d *chatDecoder) part(key []byte) {
	switch string(key) {
	case "type":
		d.skip()
	case "image_url":
		d.call.Prompt.Images++
		d.skip()
	case "input_audio":
		d.objectOrSkip(func(key []byte) {
			if string(key) == "data" {
				d.count(d.base64())
			} else {
				d.skip()
			}
		})
	case "file":
		d.kept("file_id")
	default:
		d.count(d.text())
	}
}

// kept reads an object that carries data or names, under idKey, something that
// the provider keeps (DIS-8).
func (d *chatDecoder) kept(idKey string) {
	if d.peek() != '{' {
		d.count(d.text())
		return
	}
	d.object(func(key []byte) {
		switch {
		case bytes.EqualFold(key, []byte(idKey)) && d.peek() == '"':
			raw, _ := d.str()
			d.call.StateIDs = append(d.call.StateIDs, string(unquote(raw)))
			d.call.Prompt.Unseen = true
		case string(key) == "file_data":
			d.count(d.base64())
		default:
			d.count(d.text())
		}
	})
}

// base64 reads base64, bare or as a data URL, and returns the size of what it
// encodes. A file by address is input that the gateway cannot see (EST-4).
func (d *chatDecoder) base64() int64 {
	if d.peek() != '"' {
		return d.text()
	}
	raw, size := d.str()
	if bytes.HasPrefix(raw, []byte("http")) && bytes.Contains(raw[:min(len(raw), 8)], []byte(":")) {
		d.call.Prompt.Unseen = true
		return size
	}
	if bytes.HasPrefix(raw, []byte("data:")) {
		comma := bytes.IndexByte(raw, ',')
		if comma < 0 || !bytes.HasSuffix(raw[:comma], []byte(";base64")) {
			return size
		}
		size -= int64(comma) + 1
	}
	return size/4*3 + size%4
}

func (d *chatDecoder) toolCalls() {
	if d.peek() != '[' {
		d.count(d.text())
		return
	}
	d.array(d.definition)
}

func (d *chatDecoder) tools(name string) {
	if d.peek() != '[' {
		d.wrongType(name, "an array")
		return
	}
	d.array(func() {
		d.call.Prompt.Tools++
		d.definition()
	})
}

// definition reads a tool, a tool call or a response format: names,
// descriptions, arguments, and schemas as compact JSON. What wraps them is not
// read by the model.
func (d *chatDecoder) definition() {
	if d.peek() != '{' {
		d.count(d.text())
		return
	}
	d.object(func(key []byte) {
		switch string(key) {
		case "type", "id", "index", "strict":
			d.skip()
		case "function", "custom", "json_schema":
			d.definitionBody()
		default:
			d.count(d.text())
		}
	})
}

func (d *chatDecoder) definitionBody() {
	if d.peek() != '{' {
		d.count(d.text())
		return
	}
	d.object(func(key []byte) {
		if string(key) == "strict" {
			d.skip()
		} else {
			d.count(d.text())
		}
	})
}

// prediction reads predicted output, which has the shape of a content.
func (d *chatDecoder) prediction() {
	if d.peek() != '{' {
		d.wrongType("prediction", "an object")
		return
	}
	d.object(func(key []byte) {
		switch string(key) {
		case "type":
			d.skip()
		case "content":
			d.content()
		default:
			d.count(d.text())
		}
	})
}
