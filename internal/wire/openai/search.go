// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// A chat may ask its provider to search the web, in a way of each server's own. What
// such a search costs is held by its bound (EST-4).

// defaultSources is how many sources xAI reads, and bills, where a request says
// nothing.
const defaultSources = 20

// tool reads a tool: one that the client runs, or one that the provider does.
func (d chatDecoder) tool() {
	if d.Peek() != '{' {
		d.Count(d.Text())
		return
	}
	kind, uses := "", int64(0)
	d.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(d.StringOrSkip())
		case "id", "index", "strict":
			d.Skip()
		case "function", "custom", "json_schema":
			d.definitionBody()
		case "parameters": // of a tool of OpenRouter's
			uses = d.parameters()
		default:
			d.Count(d.Text())
		}
	})
	if name := chatTool(kind); name != "" {
		d.Call.Units.Tools.Set(name, uses)
	}
}

// chatTool is the name that price rows have for a tool of this kind which the
// provider runs; "" is one that the client runs.
func chatTool(kind string) string {
	switch kind = strings.TrimPrefix(kind, "openrouter:"); kind {
	case "live_search", "browser_search", "builtin_function": // xAI's, Groq's, Moonshot's
		return call.WebSearch
	case unbilled:
		return ""
	}
	return ownTool(kind)
}

// parameters reads those of a tool, and how often they let it run: 0, it is not said.
func (d chatDecoder) parameters() (uses int64) {
	from := d.At()
	d.Count(d.Text())
	in := wire.NewScanner(d.Slice(from, d.At()))
	in.ObjectOrSkip(func(key []byte) {
		if c := in.Peek(); string(key) != "max_uses" || c < '0' || c > '9' {
			in.Skip()
			return
		}
		if n, ok := wire.Whole(in.Number()); ok {
			uses = min(n, maxToolCalls)
		}
	})
	return uses
}

// searchOptions is OpenAI's web_search_options: the model searches once.
func (d chatDecoder) searchOptions() {
	d.Skip()
	d.Call.Units.Tools.Set(call.WebSearch, 1)
}

// searchParameters are xAI's, which bills each source.
func (d chatDecoder) searchParameters(name string) {
	if d.Peek() != '{' {
		d.WrongType(name, "an object")
		return
	}
	rules := wire.Rules{Decides: []string{"mode", "max_search_results"}, Unread: []string{"return_citations", "from_date", "to_date", "sources"}}
	mode, sources := "", int64(defaultSources)
	d.Members(name+".", &rules, func(member string) {
		if member == "mode" {
			mode = d.StringMember(name + ".mode")
		} else {
			sources = d.Integer(name+"."+member, 1, maxToolCalls)
		}
	})
	if mode != "off" {
		d.Call.Units.Tools.Set(call.WebSearch, sources)
	}
}

// plugins are OpenRouter's: the one for the web searches once.
func (d chatDecoder) plugins(name string) {
	d.Objects(name, func() {
		d.Object(func(key []byte) {
			if string(key) != "id" {
				d.Count(d.Text())
				return
			}
			if string(d.StringOrSkip()) == "web" {
				d.Call.Units.Tools.Set(call.WebSearch, 1)
			}
		})
	})
}
