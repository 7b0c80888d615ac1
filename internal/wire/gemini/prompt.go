// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"strings"

	"github.com/weirhq/weir/internal/call"
)

// The measure of a prompt leans to counting: what is not known to be unread
// counts as text, so that no spelling of a member hides text from the estimate.

// contents reads what the protocol calls so: turns of a conversation, one turn
// alone, or a plain string as some clients send it.
func (d decoder) contents() {
	switch d.Peek() {
	case '[':
		d.Array(func() { d.content("contents") })
	default:
		d.content("contents")
	}
}

func (d decoder) content(name string) {
	switch d.Peek() {
	case '{':
		d.Call.Prompt.Messages++
		d.Object(d.turn)
	case '"':
		d.Call.Prompt.Messages++
		d.Count(d.Text())
	default:
		d.WrongType(name, "an object with parts")
	}
}

// instruction is a content that is no message.
func (d decoder) instruction() {
	if d.Peek() == '{' {
		d.Object(d.turn)
		return
	}
	d.Count(d.Text())
}

func (d decoder) turn(key []byte) {
	switch string(key) {
	case "role":
		d.Skip()
	case "parts":
		if d.Peek() != '[' {
			d.part()
			return
		}
		d.Array(d.part)
	default:
		d.Count(d.Text())
	}
}

func (d decoder) part() {
	if d.Peek() != '{' {
		d.Count(d.Text())
		return
	}
	d.Object(func(key []byte) {
		switch string(key) {
		case "inlineData", "inline_data":
			d.inline()
		case "fileData", "file_data":
			d.file()
		case "thought":
			d.Skip()
		default:
			d.Count(d.Text())
		}
	})
}

// inline reads media. Which kind it is may stand behind it.
func (d decoder) inline() {
	if d.Peek() != '{' {
		d.Count(d.Text())
		return
	}
	var kind string
	var size int64
	d.Object(func(key []byte) {
		switch string(key) {
		case "mimeType", "mime_type":
			kind = string(d.StringOrSkip())
		case "data":
			size += d.Base64()
		default:
			d.Count(d.Text())
		}
	})
	if strings.HasPrefix(kind, "image/") {
		d.Call.Prompt.Images++
	} else {
		d.Count(size)
	}
}

// file reads something that is named: what the provider keeps (DIS-8), or an
// address.
func (d decoder) file() {
	d.Call.Prompt.Unseen = true
	d.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "fileUri", "file_uri":
			if uri := string(d.StringOrSkip()); isKept(uri) {
				d.State(uri)
			}
		default:
			d.Skip()
		}
	})
}

// isKept: files of the provider's own file service have these addresses.
func isKept(uri string) bool {
	return strings.HasPrefix(uri, "files/") || strings.Contains(uri, "generativelanguage.googleapis.com/")
}

func (d decoder) tools() {
	d.Objects("tools", func() {
		d.Object(d.tool)
	})
}

// tool reads declarations of functions, or one of the provider's own tools, which
// may cost by the call, and is held so (EST-4); what it reads by itself is an overrun.
func (d decoder) tool(key []byte) {
	switch name := ownTool(string(key)); {
	case string(key) == "functionDeclarations" || string(key) == "function_declarations":
		if d.Peek() != '[' {
			d.Count(d.Text())
			return
		}
		d.Array(func() {
			d.Call.Prompt.Tools++
			d.Count(d.Text())
		})
	case name != "":
		d.Call.Prompt.Tools++
		d.Call.Units.Tools.Set(name, 0)
		d.Skip()
	default:
		d.Count(d.Text())
	}
}

// ownTool is the name that price rows have for one of the provider's own tools.
func ownTool(key string) string {
	switch key {
	case "googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "enterpriseWebSearch", "enterprise_web_search":
		return call.WebSearch
	case "urlContext", "url_context":
		return call.WebFetch
	case "codeExecution", "code_execution":
		return call.CodeExecution
	case "fileSearch", "file_search", "retrieval":
		return call.FileSearch
	case "googleMaps", "google_maps":
		return call.MapsSearch
	}
	return ""
}
