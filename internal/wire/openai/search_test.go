// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

// EST-4: however a server of this protocol is asked to search the web, or to run a
// tool of its own, the call says how often that may be; 0 is for the default.
func TestAChatSaysWhichToolsOfTheProviderItOffers(t *testing.T) {
	tool := func(name string, calls int64) (list call.ToolCalls) {
		list.Set(name, calls)
		return list
	}
	for members, want := range map[string]call.ToolCalls{
		``: {},
		`,"tools":[{"type":"function","function":{"name":"web_search","parameters":{"max_uses":3}}}]`: {},
		`,"tools":[{"type":"custom","custom":{"name":"sql"}}]`:                                        {},
		`,"functions":[{"name":"f","parameters":{"max_uses":3}}]`:                                     {},
		`,"tools":[{"type":"mcp","server_label":"x"}]`:                                                {},
		`,"tools":[{"type":"openrouter:web_search","parameters":{"max_uses":3,"engine":"exa"}}]`:      tool(call.WebSearch, 3),
		`,"tools":[{"type":"openrouter:web_search"}]`:                                                 tool(call.WebSearch, 0),
		`,"tools":[{"type":"live_search","sources":[{"type":"x"}]}]`:                                  tool(call.WebSearch, 0),
		`,"tools":[{"type":"browser_search"}]`:                                                        tool(call.WebSearch, 0),
		`,"tools":[{"type":"builtin_function","function":{"name":"$web_search"}}]`:                    tool(call.WebSearch, 0),
		`,"tools":[{"type":"code_interpreter"}]`:                                                      tool(call.CodeExecution, 0),
		`,"web_search_options":{}`:                                                                    tool(call.WebSearch, 1),
		`,"web_search_options":null`:                                                                  {},
		`,"search_parameters":{"mode":"auto"}`:                                                        tool(call.WebSearch, 20),
		`,"search_parameters":{"mode":"on","max_search_results":5,"sources":[{"type":"web"}]}`:        tool(call.WebSearch, 5),
		`,"search_parameters":{"mode":"off"}`:                                                         {},
		`,"plugins":[{"id":"web","max_results":3}]`:                                                   tool(call.WebSearch, 1),
		`,"plugins":[{"id":"file-parser","pdf":{"engine":"native"}}]`:                                 {},
	} {
		if got := decode(t, body(members)); got.Units.Tools != want {
			t.Errorf("%s: %+v", members, got.Units.Tools.List())
		}
	}
	for _, members := range []string{
		`,"search_parameters":1`, `,"search_parameters":{"max_search_results":0}`, `,"search_parameters":{"mode":"off","mode":"on"}`,
		`,"search_parameters":{"Mode":"on"}`, `,"plugins":{}`, `,"plugins":["web"]`,
	} {
		if c, f := (openai.Chat{}).Decode(wire.Request{Body: []byte(body(members))}); f == nil {
			t.Errorf("%s became %+v", members, c)
		}
	}
}

// USE-1: a search that OpenAI bills and doesn't count is known by its citations.
func TestASearchIsKnownByItsCitations(t *testing.T) {
	const usage = `,"usage":{"prompt_tokens":10,"completion_tokens":9}}`
	for text, want := range map[string]call.Units{
		`{"choices":[{"message":{"content":"a","annotations":[{"type":"url_citation","url_citation":{"url":"https://e.com"}}]}}]` + usage:                                                          searches(1),
		`{"choices":[{"message":{"content":"a","annotations":[]}}]` + usage:                                                                                                                        {},
		`{"choices":[{"message":{"content":"a","annotations":[{"type":"file_citation"}]}}]` + usage:                                                                                                {},
		`{"choices":[{"message":{"content":"a","annotations":[{"type":"url_citation"}]}}],"usage":{"prompt_tokens":10,"completion_tokens":9,"server_tool_use_details":{"web_search_requests":3}}}`: searches(3),
	} {
		if got := (openai.Chat{}).Whole([]byte(text), 0); !got.Reported || got.Usage.Units != want {
			t.Errorf("%s: %+v", text, got.Usage.Units)
		}
	}
	lines := []string{`data: {"choices":[{"delta":{"content":"a"}}]}`, `data: {"choices":[{"delta":{"annotations":[{"type":"url_citation"}]},"finish_reason":"stop"}]}`, `data: {"choices":[]` + usage, `data: [DONE]`}
	if got, _ := feed(t, lines); !got.Reported || got.Usage.Units != searches(1) {
		t.Errorf("a stream: %+v", got)
	}
}
