// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/anthropic"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

var wrongNumbers = []string{"0", "-1", "1.5", "1.0", "1e2", `"7"`, "true", "[]", "{}", "1000000001", "99999999999999999999"}

var messages = wiretest.Shape{
	Door:  anthropic.Messages{},
	Needs: []string{"model", "messages"},
	Members: map[string]string{
		"model": `"claude"`, "messages": `[{"role":"user","content":"Hello"}]`, "system": `"Be brief"`, "tools": `[{"name":"get"}]`,
		"max_tokens": `50`, "stream": `true`, "metadata": `{"user_id":"ada"}`, "service_tier": `"auto"`, "container": `"container_1"`,
		"cache_control": `{"type":"ephemeral"}`, "mcp_servers": `[{"url":"https://example.com"}]`,
	},
	Wrong: map[string][]string{
		"model":            {`""`, `["a"]`, `1`, `"a b"`, `"a,b"`, `"` + strings.Repeat("m", 201) + `"`},
		"messages":         {`[]`, `"hi"`, `{"role":"user"}`, `["hi"]`},
		"messages.role":    {`[{"content":"hi"}]`, `[{"role":1,"content":"hi"}]`},
		"messages.content": {`[{"role":"user","content":1}]`, `[{"role":"user","content":null}]`, `[{"role":"user","content":{"type":"text"}}]`, `[{"role":"user","content":["hi"]}]`},
		"system":           {`1`, `{}`, `["x"]`},
		"tools":            {`{}`, `"x"`, `["x"]`},
		"tools.model":      {`[{"type":"advisor_20260301","name":"advisor","model":"claude-opus-5"}]`},
		"tools.max_uses":   {`[{"type":"web_search_20250305","max_uses":"5"}]`, `[{"type":"web_search_20250305","max_uses":0}]`},
		"max_tokens":       wrongNumbers,
		"stream":           {`1`, `"true"`, `{}`},
		"metadata":         {`"x"`, `[]`},
		"metadata.user_id": {`{"user_id":1}`, `{"user_id":"a","user_id":"b"}`},
		"service_tier":     {`1`, `{}`},
		"container":        {`1`, `true`, `[]`},
	},
	Changes: []string{"model", "max_tokens"},
	Bounds:  map[string]int64{`50`: 50, `1`: 1, `5000`: 5000},
	BoundIn: "max_tokens",
}

func counting() wiretest.Shape {
	s := messages
	s.Door, s.Changes, s.BoundIn = anthropic.CountTokens{}, []string{"model"}, ""
	return s
}

func TestAMemberIsReadStrictly(t *testing.T) { // ERR-5, BR-197
	t.Run("messages", func(t *testing.T) { wiretest.Strict(t, messages) })
	t.Run("count_tokens", func(t *testing.T) { wiretest.Strict(t, counting()) })
}

func TestARewriteChangesOnlyWhatItNames(t *testing.T) { // DIS-6, EST-2
	t.Run("messages", func(t *testing.T) { wiretest.Rewritten(t, messages) })
	t.Run("count_tokens", func(t *testing.T) { wiretest.Rewritten(t, counting()) })
	for _, c := range []struct {
		in   string
		r    wire.Rewrite
		want string
	}{
		{`{ "model" : "a" }`, wire.Rewrite{}, `{ "model" : "a" }`},
		{`{"model":"a"}`, wire.Rewrite{OutputBound: 9, OutputField: "max_completion_tokens", AskStreamUsage: true}, `{"model":"a","max_tokens":9}`},
		{`{"max_tokens":10,"model":"a"}`, wire.Rewrite{Model: "b", OutputBound: 9}, `{"max_tokens":9,"model":"b"}`},
	} {
		got, err := anthropic.Messages{}.Rewrite([]byte(c.in), c.r)
		if err != nil || string(got) != c.want {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
	got, err := anthropic.CountTokens{}.Rewrite([]byte(`{"model":"a"}`), wire.Rewrite{Model: "b", OutputBound: 9})
	if err != nil || string(got) != `{"model":"b"}` {
		t.Errorf("a count became %s, %v", got, err)
	}
}

func TestARequestBecomesACall(t *testing.T) {
	for _, c := range []struct {
		name, members string
		change        func(*call.Call)
	}{
		{"the least of it", ``, func(*call.Call) {}},
		{"a bound", `"max_tokens":7`, func(c *call.Call) { c.OutputBound, c.OutputField = 7, "max_tokens" }},
		{"a stream shows its usage", `"stream":true`, func(c *call.Call) { c.Stream, c.WantsStreamUsage = true, true }},
		{"a tier is the provider's to choose", `"service_tier":"standard_only"`, func(*call.Call) {}},
		{"a user", `"metadata":{"x":[1],"user_id":"ada"}`, func(c *call.Call) { c.MetadataUser = "ada" }},
		{"a new container", `"container":{"skills":[]}`, func(*call.Call) {}},
		{"a kept container", `"container":"container_1"`, func(c *call.Call) { c.StateIDs, c.Prompt.Unseen = []string{"container_1"}, true }},
		{"a kept container in an object", `"container":{"id":"container_1"}`, func(c *call.Call) { c.StateIDs, c.Prompt.Unseen = []string{"container_1"}, true }},
		{"an empty id", `"container":""`, func(*call.Call) {}},
		{"servers of tools", `"mcp_servers":[{"url":"https://example.com"}]`, func(c *call.Call) { c.Prompt.Unseen = true }},
		{"nulls are absent", `"max_tokens":null,"stream":null,"metadata":{"user_id":null},"system":null,"tools":null,"container":null,"mcp_servers":null,"cache_control":null`, func(*call.Call) {}},
		{"web search", `"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3}]`, func(c *call.Call) {
			c.Units.Tools.Set(call.WebSearch, 3)
			c.Prompt.Tools, c.Prompt.TextBytes = 1, 5+10
		}},
		{"tools without a bound", `"tools":[{"type":"web_fetch_20250910"},{"type":"code_execution_20250825","max_uses":null},{"type":"bash_20250124"}]`, func(c *call.Call) {
			c.Units.Tools.Set(call.WebFetch, 0)
			c.Units.Tools.Set(call.CodeExecution, 0)
			c.Prompt.Tools = 3
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := call.Call{
				Door: call.AnthropicMessages, Model: "claude", OutputBound: call.NoBound, Completions: 1,
				Prompt: call.Prompt{TextBytes: 5, Messages: 1},
			}
			c.change(&want)
			if got := messages.Decode(t, messages.Body("", strings.Fields(c.members)...)); !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}

// EST-1, EST-3, EST-4, DIS-8: all that the model reads is counted once, decoded.
func TestAPromptIsMeasured(t *testing.T) {
	base64 := strings.Repeat("A", 400)
	for _, c := range []struct {
		name, text string
		want       call.Prompt
		ids        []string
	}{
		{"escapes decode", `"messages":[{"role":"user","content":"a\n\u00e9\ud83d\ude00"}]`, call.Prompt{TextBytes: 8, Messages: 1}, nil},
		{"blocks and a system", `"system":[{"type":"text","text":"abc"}],"messages":[{"role":"user","content":[{"type":"text","text":"four"}]}]`, call.Prompt{TextBytes: 7, Messages: 1}, nil},
		{"unknown members are text", `"documents":["abc"],"messages":[{"role":"user","content":"hi","name":"ada"}]`, call.Prompt{TextBytes: 2 + 3 + 7, Messages: 1}, nil},
		{"settings are not text", `"thinking":{"type":"enabled"},"stop_sequences":["END"],"messages":[{"role":"user","content":"hi"}]`, call.Prompt{TextBytes: 2, Messages: 1}, nil},
		{
			"a tool's use and result", `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"get","input":{"a" : 1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":false,"content":[{"type":"text","text":"sunny"},"x"]},
			{"type":"tool_result","tool_use_id":"toolu_2","content":"dry"}]}]`,
			call.Prompt{TextBytes: 3 + 7 + 5 + 5 + 1 + 3, Messages: 2},
			nil,
		},
		{"thinking goes back", `"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"abcd"}]}]`, call.Prompt{TextBytes: 6, Messages: 1}, nil},
		{"a tool", `"tools":[{"name":"get","description":"Gets","input_schema":{ "type" : "object" }}],"messages":[{"role":"user","content":"hi"}]`, call.Prompt{TextBytes: 2 + 3 + 4 + 17, Messages: 1, Tools: 1}, nil},
		{"an image as data", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64 + `"}}]}]`, call.Prompt{Messages: 1, Images: 1}, nil},
		{"an image by address", `"messages":[{"role":"user","content":[{"source":{"type":"url","url":"https://e.org/a.png"},"type":"image"}]}]`, call.Prompt{Messages: 1, Images: 1}, nil},
		{"an image that is kept", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"file_1"}}]}]`, call.Prompt{Messages: 1, Images: 1, Unseen: true}, []string{"file_1"}},
		{"a document as data", `"messages":[{"role":"user","content":[{"type":"document","title":"abc","source":{"type":"base64","media_type":"application/pdf","data":"` + base64 + `"}}]}]`, call.Prompt{TextBytes: 303, Messages: 1}, nil},
		{"a document as text", `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"abcd"}}]}]`, call.Prompt{TextBytes: 4, Messages: 1}, nil},
		{"a document as text, which is said behind it", `"messages":[{"role":"user","content":[{"type":"document","source":{"data":"abcd","type":"text"}}]}]`, call.Prompt{TextBytes: 4, Messages: 1}, nil},
		{"a document of blocks", `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"abcd"}]}}]}]`, call.Prompt{TextBytes: 4, Messages: 1}, nil},
		{"a document by address", `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"}}]}]`, call.Prompt{Messages: 1, Unseen: true}, nil},
		{"a document that is kept", `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_2"}}]}]`, call.Prompt{Messages: 1, Unseen: true}, []string{"file_2"}},
		{"a file for a container", `"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"file_3"}]}]`, call.Prompt{Messages: 1, Unseen: true}, []string{"file_3"}},
		{"no id at all", `"messages":[{"role":"user","content":[{"type":"container_upload","file_id":null}]}]`, call.Prompt{Messages: 1}, nil},
		{"five minutes of cache", `"messages":[{"role":"user","content":[{"type":"text","text":"ab","cache_control":{"type":"ephemeral"}}]}]`, call.Prompt{TextBytes: 2, Messages: 1, CachesInput: true}, nil},
		{"an hour of cache in a tool", `"tools":[{"name":"a","cache_control":{"ttl":"1h","type":"ephemeral"}}],"messages":[{"role":"user","content":"ab"}]`, call.Prompt{TextBytes: 3, Messages: 1, Tools: 1, CachesInput: true, CachesOneHour: true}, nil},
		{"an hour of cache in a result", `"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"ab","cache_control":{"ttl":"1h"}}]}]}]`, call.Prompt{TextBytes: 2, Messages: 1, CachesInput: true, CachesOneHour: true}, nil},
		{"cache at the top", `"cache_control":{"type":"ephemeral","ttl":"5m"},"messages":[{"role":"user","content":"ab"}]`, call.Prompt{TextBytes: 2, Messages: 1, CachesInput: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := messages.Decode(t, `{"model":"m",`+c.text+`}`)
			if got.Prompt != c.want || !reflect.DeepEqual(got.StateIDs, c.ids) {
				t.Errorf("got  %+v %v\nwant %+v %v", got.Prompt, got.StateIDs, c.want, c.ids)
			}
		})
	}
}

func TestADoorSaysWhereItIsAtAProvider(t *testing.T) {
	c := messages.Decode(t, messages.Body(""))
	if got := (anthropic.Messages{}).Path(c, "m"); got != "/messages" {
		t.Errorf("messages at %s", got)
	}
	if got := (anthropic.CountTokens{}).Path(c, "m"); got != "/messages/count_tokens" {
		t.Errorf("count_tokens at %s", got)
	}
	if s := counting(); s.Decode(t, s.Body("")).Door != call.AnthropicCountTokens {
		t.Error("a count is another door")
	}
}
