// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func body(members string) string {
	return `{"model":"gpt-4o",` + hello + members + `}`
}

func decode(t *testing.T, text string) *call.Call {
	t.Helper()
	c, f := openai.Chat{}.Decode(wire.Request{Body: []byte(text)})
	if f != nil {
		t.Fatalf("%.200s\nrefused: %s", text, f.Message)
	}
	return c
}

func TestARequestBecomesACall(t *testing.T) {
	plain := call.Call{
		Door: call.OpenAIChat, Model: "gpt-4o", OutputBound: call.NoBound, Completions: 1,
		Prompt: call.Prompt{TextBytes: 5, Messages: 1},
	}
	for _, c := range []struct {
		name, members string
		change        func(*call.Call)
	}{
		{"the least of it", ``, func(*call.Call) {}},
		{"max_tokens", `,"max_tokens":7`, func(c *call.Call) { c.OutputBound, c.OutputField = 7, "max_tokens" }},
		{"max_completion_tokens", `,"max_completion_tokens":7`, func(c *call.Call) { c.OutputBound, c.OutputField = 7, "max_completion_tokens" }},
		{"of two bounds the least", `,"max_tokens":9,"max_completion_tokens":7`, func(c *call.Call) { c.OutputBound, c.OutputField = 7, "max_completion_tokens" }},
		{"of two bounds the least, the other way", `,"max_tokens":3,"max_completion_tokens":7`, func(c *call.Call) { c.OutputBound, c.OutputField = 3, "max_tokens" }},
		{"completions", `,"n":128`, func(c *call.Call) { c.Completions = 128 }},
		{"best_of completions", `,"n":2,"best_of":5`, func(c *call.Call) { c.Completions = 5 }},
		{"a stream", `,"stream":true`, func(c *call.Call) { c.Stream = true }},
		{"a stream with usage", `,"stream":true,"stream_options":{"include_usage":true}`, func(c *call.Call) { c.Stream, c.WantsStreamUsage = true, true }},
		{"usage refused by the client", `,"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":false}`, func(c *call.Call) { c.Stream = true }},
		{"nulls are absent", `,"n":null,"max_tokens":null,"stream":null,"stream_options":null,"service_tier":null,"user":null,"tools":null`, func(*call.Call) {}},
		{"a null inside the options", `,"stream_options":{"include_usage":null}`, func(*call.Call) {}},
		{"tier and user", `,"service_tier":"flex","user":"ad\u0061"`, func(c *call.Call) { c.ServiceTier, c.User = "flex", "ada" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := plain
			c.change(&want)
			if got := decode(t, body(c.members)); !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}

// ERR-5: what is checked is what is sent.
func TestABadBodyIsRefusedAndNamesTheMember(t *testing.T) {
	type refusal struct{ text, param string }
	cases := []refusal{
		{``, ""},
		{`null`, ""},
		{`[]`, ""},
		{`"x"`, ""},
		{`{`, ""},
		{`{"model"`, ""},
		{"\xff", ""},
		{"\xEF\xBB\xBF" + body(``), ""},
		{body(``) + `{}`, ""},
		{body(``) + `x`, ""},
		{body(`,`), ""},
		{body(`,"a":01`), ""},
		{body(`,"a":1.`), ""},
		{body(`,"a":+1`), ""},
		{body(`,"a":tru`), ""},
		{body(`,"a":[1,]`), ""},
		{body(`,"a":"` + "\n" + `"`), ""},
		{body(`,"a":"\x"`), ""},
		{body(`,"a":"\u12g4"`), ""},
		{body(`,"a":1e`), ""},
		{body(`,'a':1`), ""},
		{body(`,"a":` + strings.Repeat("[", 100_000)), ""},
		{`{` + hello + `}`, "model"},
		{`{"model":"",` + hello + `}`, "model"},
		{`{"model":null,` + hello + `}`, "model"},
		{`{"model":["a","b"],` + hello + `}`, "model"},
		{`{"model":"a b",` + hello + `}`, "model"},
		{`{"model":"a\u0000b",` + hello + `}`, "model"},
		{`{"model":"gpt,other",` + hello + `}`, "model"},
		{`{"model":"` + strings.Repeat("m", 201) + `",` + hello + `}`, "model"},
		{`{"model":"a"}`, "messages"},
		{`{"model":"a","messages":[]}`, "messages"},
		{`{"model":"a","messages":null}`, "messages"},
		{`{"model":"a","messages":"hi"}`, "messages"},
		{`{"model":"a","messages":{"role":"user"}}`, "messages"},
		{`{"model":"a","messages":["hi"]}`, "messages"},
		{`{"model":"a","messages":[{"content":"hi"}]}`, "messages.role"},
		{`{"model":"a","messages":[{"role":1}]}`, "messages.role"},
		{body(`,"stream":1`), "stream"},
		{body(`,"stream":"true"`), "stream"},
		{body(`,"stream_options":true`), "stream_options"},
		{body(`,"stream_options":[]`), "stream_options"},
		{body(`,"stream_options":{"include_usage":"yes"}`), "stream_options.include_usage"},
		{body(`,"stream_options":{"include_usage":true,"include_usage":false}`), "stream_options.include_usage"},
		{body(`,"stream_options":{"Include_Usage":true}`), "stream_options.include_usage"},
		{body(`,"service_tier":1`), "service_tier"},
		{body(`,"user":{}`), "user"},
		{body(`,"tools":{}`), "tools"},
		{body(`,"functions":"x"`), "functions"},
		{body(`,"prediction":"x"`), "prediction"},
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "n", "best_of"} {
		for _, value := range []string{"0", "-1", "1.5", "1.0", "1e2", `"7"`, "true", "[]", "{}", "1000000001", "99999999999999999999"} {
			cases = append(cases, refusal{body(`,"` + name + `":` + value), name})
		}
	}
	cases = append(cases, refusal{body(`,"n":129`), "n"})
	for _, c := range cases {
		_, f := openai.Chat{}.Decode(wire.Request{Body: []byte(c.text)})
		switch {
		case f == nil:
			t.Errorf("accepted: %.200s", c.text)
		case f.Code != fault.InvalidRequest || f.HTTPStatus() != http.StatusBadRequest || f.Param != c.param:
			t.Errorf("%.200s\ngot %s, param %q, want param %q", c.text, f.Code, f.Param, c.param)
		}
	}
}

// ERR-5: a member that is read twice, in whatever letter case, could ask the
// provider for something else than what was checked.
func TestAMemberStandsOnceAndInItsOwnSpelling(t *testing.T) {
	values := map[string]string{
		"model": `"gpt-4o"`, "messages": `[{"role":"user","content":"Hello"}]`, "tools": `[]`, "functions": `[]`,
		"response_format": `{"type":"text"}`, "prediction": `{}`, "max_tokens": `5`, "max_completion_tokens": `5`, "n": `1`,
		"best_of": `1`, "stream": `true`, "stream_options": `{}`, "service_tier": `"auto"`, "user": `"ada"`,
	}
	for name, value := range values {
		rest := `{"model":"gpt-4o",` + hello + `,`
		switch name {
		case "model":
			rest = `{` + hello + `,`
		case "messages":
			rest = `{"model":"gpt-4o",`
		}
		member := `"` + name + `":` + value
		decode(t, rest+member+`}`)
		for _, second := range []string{
			`,` + member, `,` + strings.ToUpper(member[:len(name)+2]) + `:` + value,
			`,"` + strings.ToUpper(name[:1]) + name[1:] + `":` + value, `,"\u00` + fmt.Sprintf("%02x", name[0]) + name[1:] + `":` + value,
		} {
			_, f := openai.Chat{}.Decode(wire.Request{Body: []byte(rest + member + second + `}`)})
			if f == nil || f.Param != name {
				t.Errorf("%s%s: got %v", member, second, f)
			}
		}
		if _, f := (openai.Chat{}).Decode(wire.Request{Body: []byte(rest + `"` + strings.ToUpper(name) + `":` + value + `}`)}); f == nil {
			t.Errorf("%s alone in capitals was accepted", name)
		}
	}
	if _, f := (openai.Chat{}).Decode(wire.Request{Body: []byte(body(`,"ſtream":true`))}); f == nil {
		t.Error("a letter that folds to s hid a member")
	}
}

// BR-197: the body never says where the call goes, with what credential, or to
// which other model.
func TestABodyNamesNoAddressCredentialOrFurtherModel(t *testing.T) {
	for _, name := range []string{"api_base", "base_url", "api_key", "API_BASE", "Base_Url", "models", "fallbacks"} {
		_, f := openai.Chat{}.Decode(wire.Request{Body: []byte(body(`,"` + name + `":"http://127.0.0.1:1/"`))})
		if f == nil || f.HTTPStatus() != http.StatusBadRequest || f.Param != strings.ToLower(name) {
			t.Errorf("%s: got %v", name, f)
		}
	}
}

// EST-1: all that the model reads is counted once, decoded.
func TestAPromptIsMeasured(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       call.Prompt
	}{
		{"escapes decode", `"messages":[{"role":"user","content":"a\n\u00e9\ud83d\ude00"}]`, call.Prompt{TextBytes: 1 + 1 + 2 + 4, Messages: 1}},
		{"half a pair is three bytes", `"messages":[{"role":"user","content":"\ud83d"}]`, call.Prompt{TextBytes: 3, Messages: 1}},
		{"names count", `"messages":[{"role":"user","name":"ada","content":"hi"},{"role":"x"}]`, call.Prompt{TextBytes: 5, Messages: 2}},
		{"parts", `"messages":[{"role":"user","content":[{"type":"text","text":"four"},{"type":"refusal","refusal":"no"},"bare"]}]`, call.Prompt{TextBytes: 10, Messages: 1}},
		{"repeated text counts twice", `"messages":[{"role":"user","content":"a","content":"bc","Content":"def"}]`, call.Prompt{TextBytes: 6, Messages: 1}},
		{"tool calls and results", `"messages":[
			{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get","arguments":"{\"a\":1}"}}]},
			{"role":"tool","tool_call_id":"call_1","content":"sunny"}]`, call.Prompt{TextBytes: 3 + 7 + 5, Messages: 2}},
		{
			"tools", hello + `,"tools":[{"type":"function","function":{"name":"get","description":"Gets","strict":true,
			"parameters":{ "type" : "object", "properties" : { } }}},{"type":"custom","custom":{"name":"sql"}}]`,
			call.Prompt{TextBytes: 5 + 3 + 4 + int64(len(`{"type":"object","properties":{}}`)) + 3, Messages: 1, Tools: 2},
		},
		{"functions of old", hello + `,"functions":[{"name":"get","parameters":{}}]`, call.Prompt{TextBytes: 5 + 3 + 2, Messages: 1, Tools: 1}},
		{
			"a schema", hello + `,"response_format":{"type":"json_schema","json_schema":{"name":"out","schema":{"type":"object"}}}`,
			call.Prompt{TextBytes: 5 + 3 + int64(len(`{"type":"object"}`)), Messages: 1},
		},
		{"a prediction", hello + `,"prediction":{"type":"content","content":[{"type":"text","text":"guess"}]}`, call.Prompt{TextBytes: 10, Messages: 1}},
		{"an image by address", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`, call.Prompt{Messages: 1, Images: 1}},
		{"an image as data", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 4000) + `"}}]}]`, call.Prompt{Messages: 1, Images: 1}},
		{"audio counts its decoded size", `"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"` + strings.Repeat("A", 400) + `","format":"wav"}}]}]`, call.Prompt{TextBytes: 300, Messages: 1}},
		{"a file counts its decoded size", `"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + strings.Repeat("A", 400) + `"}}]}]`, call.Prompt{TextBytes: 305, Messages: 1}},
		{"a file by address is unseen", `"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"https://e.org/"}}]}]`, call.Prompt{TextBytes: 14, Messages: 1, Unseen: true}},
		{"settings are not text", hello + `,"stop":["END"],"metadata":{"a":"b"},"reasoning_effort":"high","temperature":0.5,"logit_bias":{"50256":-100}`, call.Prompt{TextBytes: 5, Messages: 1}},
		{"unknown members are text", hello + `,"documents":["abc"],"chat_template":"xyz","top_k":40`, call.Prompt{TextBytes: 5 + 7 + 3, Messages: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := decode(t, `{"model":"m",`+c.text+`}`).Prompt; got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// DIS-8: an id of something that the provider keeps is reported, never passed by.
func TestIdsOfKeptStateAreCollected(t *testing.T) {
	got := decode(t, `{"model":"m","messages":[
		{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]},
		{"role":"assistant","audio":{"id":"audio_1"}}]}`)
	if want := []string{"file-1", "audio_1"}; !reflect.DeepEqual(got.StateIDs, want) || !got.Prompt.Unseen {
		t.Errorf("got %v, unseen %v", got.StateIDs, got.Prompt.Unseen)
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		body(``), body(`,"stream":true,"stream_options":{"include_usage":true}`), body(`,"n":2,"max_tokens":10`), `{`, `[]`, "\xff",
		body(`,"tools":[{"type":"function","function":{"name":"a","parameters":{"x":[1,2.5e3,null,true]}}}]`),
		`{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAA"}}]}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, refusal := openai.Chat{}.Decode(wire.Request{Body: text})
		if refusal != nil {
			if c != nil || refusal.HTTPStatus() != http.StatusBadRequest {
				t.Fatalf("refused with %d", refusal.HTTPStatus())
			}
			return
		}
		var decoded struct {
			Model    string            `json:"model"`
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(text, &decoded); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		p := c.Prompt
		if c.Model != decoded.Model || p.Messages != int64(len(decoded.Messages)) {
			t.Fatalf("read %q and %d messages, encoding/json %q and %d", c.Model, p.Messages, decoded.Model, len(decoded.Messages))
		}
		if p.TextBytes < 0 || p.TextBytes > 3*int64(len(text)) || c.Completions < 1 || c.OutputBound == 0 || c.OutputBound < call.NoBound {
			t.Fatalf("out of bounds: %+v", c)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(`{"model":"gpt-4o","stream":true,"messages":[` +
		strings.Repeat(`{"role":"user","content":"`+strings.Repeat("The quick brown fox\\n", 50)+`"},`, 40) + `{"role":"user","content":"go"}]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, f := (openai.Chat{}).Decode(wire.Request{Body: text}); f != nil {
			b.Fatal(f)
		}
	}
}
