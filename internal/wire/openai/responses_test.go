// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

func TestAResponsesRequestBecomesACall(t *testing.T) { // EST-4, DIS-8
	unseen := func(c *call.Call, ids ...string) { c.Prompt.Unseen, c.StateIDs = true, ids }
	for _, c := range []struct {
		name, members string
		change        func(*call.Call)
	}{
		{"the least of it", ``, func(*call.Call) {}},
		{"a bound", `"max_output_tokens":7`, func(c *call.Call) { c.OutputBound, c.OutputField = 7, "max_output_tokens" }},
		{"a stream shows its usage", `"stream":true`, func(c *call.Call) { c.Stream, c.WantsStreamUsage = true, true }},
		{"tier and users", `"service_tier":"flex","user":"ada","metadata":{"user_id":"bob"}`, func(c *call.Call) { c.ServiceTier, c.User, c.MetadataUser = "flex", "ada", "bob" }},
		{"a response before", `"previous_response_id":"resp_1"`, func(c *call.Call) { unseen(c, "resp_1") }},
		{"a conversation", `"conversation":{"id":"conv_1"}`, func(c *call.Call) { unseen(c, "conv_1") }},
		{"a stored prompt", `"prompt":{"id":"pmpt_1","variables":{"a":"xy"}}`, func(c *call.Call) { unseen(c, "pmpt_1"); c.Prompt.TextBytes += 2 }},
		{"a stored prompt with a kept file", `"prompt":{"id":"pmpt_1","variables":{"a":{"type":"input_file","file_id":"file_1"}}}`, func(c *call.Call) { unseen(c, "pmpt_1", "file_1") }},
		{"empty ids", `"previous_response_id":"","conversation":""`, func(*call.Call) {}},
		{"nulls are absent", `"previous_response_id":null,"background":null,"tools":null,"text":null,"max_tool_calls":null,"conversation":null,"prompt":null`, func(*call.Call) {}},
		{"not in the background", `"background":false`, func(*call.Call) {}},
		{"provider's tools", `"max_tool_calls":4,"tools":[{"type":"web_search_preview"},{"type":"code_interpreter","container":"cntr_1"},{"type":"file_search","vector_store_ids":["vs_1","vs_2"]}]`, func(c *call.Call) {
			unseen(c, "cntr_1", "vs_1", "vs_2")
			c.MaxToolCalls, c.Prompt.Tools = 4, 3
			for _, name := range []string{call.WebSearch, call.CodeExecution, call.FileSearch} {
				c.Units.Tools.Set(name, 0)
			}
		}},
		{"a server of tools", `"tools":[{"type":"mcp","server_label":"ab"}]`, func(c *call.Call) { unseen(c); c.StateIDs = nil; c.Prompt.Tools = 1; c.Prompt.TextBytes += 2 }},
		{"a container with kept files", `"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["file_1"]}}]`, func(c *call.Call) {
			unseen(c, "file_1")
			c.Prompt.Tools = 1
			c.Units.Tools.Set(call.CodeExecution, 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := call.Call{
				Door: call.OpenAIResponses, Model: "gpt", OutputBound: call.NoBound, Completions: 1, Prompt: call.Prompt{TextBytes: 5, Messages: 1},
			}
			c.change(&want)
			if got := responses.Decode(t, responses.Body("", append([]string{`"input":"Hello"`}, strings.Fields(c.members)...)...)); !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
	responses.Refused(t, `{"model":"m"}`, "input")
	responses.Decode(t, `{"model":"m","previous_response_id":"resp_1"}`)
	responses.Decode(t, `{"model":"m","prompt":{"id":"pmpt_1"}}`)
}

// EST-1, EST-4, DIS-8: all that the model reads is counted once, decoded.
func TestAResponsesPromptIsMeasured(t *testing.T) {
	base64 := strings.Repeat("A", 400)
	for _, c := range []struct {
		name, text string
		want       call.Prompt
		ids        []string
	}{
		{"a text", `"input":"a\n\u00e9\ud83d\ude00","instructions":"abc"`, call.Prompt{TextBytes: 11, Messages: 1}, nil},
		{"messages", `"input":[{"role":"user","content":"ab"},{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"four"}]}]`, call.Prompt{TextBytes: 6, Messages: 2}, nil},
		{"calls and results", `"input":[{"type":"function_call","call_id":"c","name":"get","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"dry"}]`, call.Prompt{TextBytes: 8, Messages: 2}, nil},
		{"a tool", `"input":"x","tools":[{"type":"function","name":"get","strict":true,"parameters":{ "type" : "object" }}]`, call.Prompt{TextBytes: 1 + 3 + 17, Messages: 1, Tools: 1}, nil},
		{"a schema", `"input":"x","text":{"verbosity":"low","format":{"type":"json_schema","name":"out","schema":{"type":"object"}}}`, call.Prompt{TextBytes: 1 + 3 + 17, Messages: 1}, nil},
		{"settings are not text", `"input":"x","reasoning":{"effort":"high"},"include":["abc"],"store":true`, call.Prompt{TextBytes: 1, Messages: 1}, nil},
		{"unknown members are text", `"input":"x","documents":["abc"]`, call.Prompt{TextBytes: 8, Messages: 1}, nil},
		{"an image by address", `"input":[{"role":"user","content":[{"type":"input_image","detail":"low","image_url":"https://e.org/a.png"}]}]`, call.Prompt{Messages: 1, Images: 1}, nil},
		{"a kept image", `"input":[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]`, call.Prompt{Messages: 1, Unseen: true}, []string{"file_1"}},
		{"an image that was made", `"input":[{"type":"image_generation_call","id":"ig_1","result":"` + base64 + `"}]`, call.Prompt{Messages: 1, Images: 1}, nil},
		{"a file", `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,` + base64 + `"}]}]`, call.Prompt{TextBytes: 305, Messages: 1}, nil},
		{"a file by address", `"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://e.org/a.pdf"}]}]`, call.Prompt{Messages: 1, Unseen: true}, nil},
		{"audio", `"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"` + base64 + `","format":"wav"}}]}]`, call.Prompt{TextBytes: 300, Messages: 1}, nil},
		{"a reference", `"input":[{"type":"item_reference","id":"msg_1"}]`, call.Prompt{Messages: 1, Unseen: true}, []string{"msg_1"}},
		{"a reference without its type, behind text", `"instructions":"abc","input":[{"role":"user","content":"x"},{"id":"msg_1"},{"id":"msg_2","type":null}]`, call.Prompt{TextBytes: 4, Messages: 3, Unseen: true}, []string{"msg_1", "msg_2"}},
		{"an item with an id that says all itself", `"input":[{"id":"msg_1","role":"user","content":""}]`, call.Prompt{Messages: 1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := responses.Decode(t, `{"model":"m",`+c.text+`}`)
			if got.Prompt != c.want || !reflect.DeepEqual(got.StateIDs, c.ids) {
				t.Errorf("got  %+v %v\nwant %+v %v", got.Prompt, got.StateIDs, c.want, c.ids)
			}
		})
	}
}

func response(status, rest string) string {
	return `{"id":"resp_1","object":"response","status":"` + status + `","model":"gpt","service_tier":"flex","output":[` + rest + `],"usage":{"input_tokens":20,` +
		`"input_tokens_details":{"cached_tokens":5},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":10},"total_tokens":50}}`
}

func responseEvent(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + members + "}\n\n"
}

var (
	responseStart = responseEvent("response.created", `"sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"gpt","usage":null,"error":null,"output":[]}`)
	responseDelta = responseEvent("response.output_text.delta", `"sequence_number":4,"delta":"Hello"`) +
		responseEvent("response.output_text.done", `"sequence_number":5,"text":"Hello"`)
)

// BR-105, USE-1: usage stands inside the last event's response, whichever event
// that is.
func TestAResponsesUsageIsInItsLastEvent(t *testing.T) {
	want := call.Usage{Input: 15, CachedInput: 5, Output: 30, Reasoning: 10, ServiceTier: "flex", Requests: 1}
	for kind, failed := range map[string]bool{"completed": false, "incomplete": false, "failed": true} {
		item := `{"type":"message","content":[{"type":"output_text","text":"Hello"}]},{"type":"web_search_call"},{"type":"web_search_call"},{"type":"web_search_call_output"},{"type":"mcp_call"}`
		want := want
		want.Units.Tools.Set(call.WebSearch, 2)
		got := wiretest.Lines(t, openai.Responses{}, responseStart+responseDelta+responseEvent("response."+kind, `"response":`+response(kind, item)))
		if got.Usage != want || got.ErrorSeen != failed || got.Finished == failed || got.OutputBytes != 5 {
			t.Errorf("%s: %+v", kind, got)
		}
		whole := openai.Responses{}.Whole([]byte(response(kind, item)), 0)
		if whole.Usage != want || whole.ErrorSeen != failed || whole.Finished == failed || whole.OutputBytes != 5 {
			t.Errorf("%s, whole: %+v", kind, whole)
		}
	}
	cut := wiretest.Lines(t, openai.Responses{}, responseStart+responseDelta)
	if cut.Finished || cut.Reported || cut.OutputBytes != 5 || cut.ErrorSeen {
		t.Errorf("cut: %+v", cut)
	}
	odd := wiretest.Lines(t, openai.Responses{}, responseStart+responseDelta+
		responseEvent("response.completed", `"sequence_number":"9","response":`+response("completed", "")))
	if odd.Usage != want || !odd.Finished {
		t.Errorf("an odd sequence number: %+v", odd)
	}
}

func TestAFailedResponseIsNoAnswer(t *testing.T) { // RES-4, ERR-6
	for _, text := range []string{`{"error":{"message":"x"}}`, `{"status":"failed"}`, `{"error":true}`} {
		if got := (openai.Responses{}).Whole([]byte(text), 0); !got.ErrorSeen || got.Finished || got.Invalid {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, e := range []string{"event: error\ndata: {\"type\":\"error\",\"code\":\"x\"}\n\n", "data: {\"type\":\"error\"}\n\n", "data: {\"error\":{}}\n\n"} {
		got := wiretest.Lines(t, openai.Responses{}, responseStart+responseDelta+e)
		if !got.ErrorSeen || got.Finished || got.OutputBytes != 5 {
			t.Errorf("%q: %+v", e, got)
		}
	}
	for _, text := range []string{``, `[]`, `{"output":[{"content":[{"text":"abc`, `{}x`} {
		if got := (openai.Responses{}).Whole([]byte(text), 0); !got.Invalid || got.Finished || got.Reported {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// ERR-6: clients raise on response.failed alone, and others read error.
func TestAFaultInAResponsesStreamIsTwoEvents(t *testing.T) {
	s := openai.Responses{}.NewStream(wire.StreamOptions{})
	if _, err := s.Feed(nil, []byte(responseStart+responseDelta)); err != nil {
		t.Fatal(err)
	}
	events := string(s.Fault(fault.New(fault.UpstreamTimeout, "a\nb"), "req_1"))
	want := `event: response.failed` + "\n" + `data: {"type":"response.failed","sequence_number":6,"response":{"id":"resp_1","object":"response","status":"failed","model":"gpt","output":[],` +
		`"error":{"code":"upstream_timeout","message":"a\nb (request req_1)"}}}` + "\n\n" +
		`event: error` + "\n" + `data: {"type":"error","sequence_number":7,"code":"upstream_timeout","message":"a\nb (request req_1)","param":null}` + "\n\n"
	if events != want {
		t.Errorf("got %s\nwant %s", events, want)
	}
	if got := wiretest.Lines(t, openai.Responses{}, responseStart+responseDelta+events); !got.ErrorSeen || got.Finished || got.OutputBytes != 5 {
		t.Errorf("our own events read as %+v", got)
	}
	wiretest.TooLarge(t, openai.Responses{}, wire.StreamOptions{}, "data: {}\n\n", responseStart)
}

func TestEveryDoorRefusesInTheProtocolsShape(t *testing.T) { // ERR-1
	for _, door := range []wire.Door{openai.Responses{}, openai.Completions{}, openai.Embeddings{}, openai.Moderations{}, openai.Images{}, openai.Speech{}, openai.Transcriptions{}} {
		for _, info := range fault.All() {
			status, contentType, body := door.Fault(fault.New(info.Code, "x"), "")
			var got struct {
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if status != info.Status || contentType != "application/json" || got.Error.Type != fault.TypeFor(status) || got.Error.Code != string(info.Code) {
				t.Errorf("%T, %s: %d %s", door, info.Code, status, body)
			}
		}
	}
}
