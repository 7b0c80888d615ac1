// SPDX-License-Identifier: Apache-2.0

package anthropic

// maxToolUses bounds what a request may say of how often a tool runs.
const maxToolUses = 1_000_000

// The measure of a prompt leans to counting: what is not known to be unread
// counts as text, so that no spelling of a member hides text from the estimate.

func (d decoder) messages() {
	d.Objects("messages", func() {
		d.Call.Prompt.Messages++
		role := false
		d.Object(func(key []byte) {
			switch string(key) {
			case "role":
				role = d.StringMember("messages.role") != ""
			case "content":
				d.content("messages.content")
			default:
				d.Count(d.Text())
			}
		})
		if d.Err == nil && !role {
			d.Refuse("messages.role", "each message has a role")
		}
	})
}

// content reads a string, or blocks.
func (d decoder) content(name string) {
	switch d.Peek() {
	case '"':
		d.Count(d.Text())
	case '[':
		d.Array(func() {
			if d.Peek() == '{' {
				d.block()
			} else {
				d.WrongType(name, "a string or an array of blocks")
			}
		})
	default:
		d.WrongType(name, "a string or an array of blocks")
	}
}

// block reads one block of content. What its source is depends on its type,
// which may stand behind it.
func (d decoder) block() {
	var kind string
	var s source
	d.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(d.StringOrSkip())
		case "id", "tool_use_id":
			d.Skip()
		case "cache_control":
			d.cacheControl()
		case "source":
			d.source(&s)
		case "file_id":
			d.State(string(d.StringOrSkip()))
		case "content":
			d.nested()
		default:
			d.Count(d.Text())
		}
	})
	switch {
	case !s.seen:
	case kind == "image":
		d.Call.Prompt.Images++
	default:
		if s.kind == "text" {
			s.size += s.text
		}
		d.Count(s.size)
		d.Call.Prompt.Unseen = d.Call.Prompt.Unseen || s.remote
	}
}

// nested reads the content of a tool's result or a document: text, blocks, or
// an object such as a tool's error.
func (d decoder) nested() {
	if d.Peek() != '[' {
		d.Count(d.Text())
		return
	}
	d.Array(func() {
		if d.Peek() == '{' {
			d.block()
		} else {
			d.Count(d.Text())
		}
	})
}

// source is where an image or a document comes from.
type source struct {
	seen   bool
	kind   string
	size   int64 // of what it has in itself
	text   int64 // what its data has beyond that where they are no base64
	remote bool  // it is named by an address
}

func (d decoder) source(s *source) {
	s.seen = true
	if d.Peek() != '{' {
		s.size += d.Text() // of a search result: a string that the model reads
		return
	}
	d.Object(func(key []byte) {
		switch string(key) {
		case "type":
			s.kind = string(d.StringOrSkip())
		case "media_type":
			d.Skip()
		case "data":
			d.data(s)
		case "url":
			s.remote = true
			d.Skip()
		case "file_id":
			d.State(string(d.StringOrSkip()))
		case "content":
			d.nested()
		default:
			s.size += d.Text()
		}
	})
}

// data are base64, or text: which of both may stand behind them.
func (d decoder) data(s *source) {
	if s.kind != "" && s.kind != "text" {
		s.size += d.Base64()
		return
	}
	again := d.Scanner
	size := d.Base64()
	s.size += size
	s.text += again.Text() - size
}

func (d decoder) tools() {
	d.Objects("tools", func() {
		d.Call.Prompt.Tools++
		d.tool()
	})
}

// tool reads a definition. One that the provider runs may cost by the call, and is
// held so (EST-4); what it reads by itself is an overrun. One that names a model of
// its own would run on something that was neither allowed nor priced (ERR-5).
func (d decoder) tool() {
	var kind string
	var uses int64
	d.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(d.StringOrSkip())
		case "cache_control":
			d.cacheControl()
		case "max_uses":
			if !d.Null() {
				uses = d.Integer("tools.max_uses", 1, maxToolUses)
			}
		case "model":
			d.Refuse("tools.model", "tools.model is not taken from a request: no tool runs on a model of its own here")
		default:
			d.Count(d.Text())
		}
	})
	if name := serverTool(kind); name != "" {
		d.Call.Units.Tools.Set(name, uses)
	}
}
