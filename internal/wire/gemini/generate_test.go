// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/gemini"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

var wrongNumbers = []string{"0", "-1", "1.5", "1.0", "1e2", `"7"`, "true", "[]", "{}", "1000000001", "99999999999999999999"}

const hello = `[{"role":"user","parts":[{"text":"Hello"}]}]`

func config(member string, values []string) (list []string) {
	for _, v := range values {
		list = append(list, `{"`+member+`":`+v+`}`)
	}
	return list
}

var generate = wiretest.Shape{
	Door: gemini.Generate{}, Model: "g", Needs: []string{"contents"},
	Members: map[string]string{
		"contents": hello, "systemInstruction": `{"parts":[{"text":"Be brief"}]}`, "tools": `[{"functionDeclarations":[{"name":"get"}]}]`,
		"generationConfig": `{"temperature":1}`, "serviceTier": `"FLEX"`, "cachedContent": `"cachedContents/1"`,
	},
	Wrong: map[string][]string{
		"model":                            {`"other"`, `1`, `["g"]`, `"models/other"`, `""`},
		"contents":                         {`[]`, `1`, `[1]`, `[null]`, `true`},
		"tools":                            {`{}`, `"x"`, `["x"]`},
		"generationConfig":                 {`[]`, `"x"`, `1`},
		"generationConfig.maxOutputTokens": append(config("maxOutputTokens", wrongNumbers), `{"maxOutputTokens":5,"max_output_tokens":6}`, `{"MaxOutputTokens":5}`, `{"max_outputTokens":5}`),
		"generationConfig.candidateCount":  append(config("candidateCount", wrongNumbers), `{"candidateCount":129}`, `{"candidateCount":1,"candidateCount":1}`),
		"serviceTier":                      {`1`, `{}`},
		"cachedContent":                    {`1`, `{}`},
	},
	Changes: []string{"model", "generationConfig"},
	Bounds: map[string]int64{
		`{"maxOutputTokens":50}`: 50, `{ "topK":1, "max_output_tokens" : 5000 }`: 5000, `{"maxOutputTokens":null,"topK":1}`: call.NoBound, `{}`: call.NoBound, `{"topK":2}`: call.NoBound,
	},
	BoundIn: "generationConfig",
}

func counting() wiretest.Shape {
	s := generate
	s.Door, s.BoundIn, s.Changes = gemini.CountTokens{}, "", []string{"model"}
	return s
}

var embed = wiretest.Shape{
	Door: gemini.Embed{}, Model: "g", Needs: []string{"content"},
	Members: map[string]string{"content": `{"parts":[{"text":"Hello"}]}`, "title": `"abc"`},
	Wrong:   map[string][]string{"content": {`1`, `[]`, `true`}, "model": {`"other"`, `1`}},
	Changes: []string{"model"},
}

var batch = wiretest.Shape{
	Door: gemini.EmbedBatch{}, Model: "g", Needs: []string{"requests"},
	Members: map[string]string{"requests": `[{"model":"models/g","content":{"parts":[{"text":"Hello"}]}},{"content":{"parts":[{"text":"you"}]}}]`},
	Wrong: map[string][]string{
		"requests":         {`1`, `[]`, `true`, `{}`, `[1]`, `[null]`},
		"requests.content": {`[{}]`, `[{"content":{"parts":[]}},{}]`, `[{"content":{},"content":{}}]`, `[{"Content":{}}]`},
		"requests.api_key": {`[{"content":{},"api_key":"x"}]`},
		"model":            {`"other"`, `1`},
	},
	Changes: []string{"model", "requests"},
}

func TestAMemberIsReadStrictly(t *testing.T) { // ERR-5, BR-197
	t.Run("generate", func(t *testing.T) { wiretest.Strict(t, generate) })
	t.Run("countTokens", func(t *testing.T) { wiretest.Strict(t, counting()) })
	t.Run("embedContent", func(t *testing.T) { wiretest.Strict(t, embed) })
	t.Run("batchEmbedContents", func(t *testing.T) { wiretest.Strict(t, batch) })
}

// ERR-5: a member in camel case and one with underscores are one member.
func TestBothSpellingsOfAMemberAreOne(t *testing.T) {
	for _, c := range []struct{ first, second, param string }{
		{`"generationConfig":{}`, `"generation_config":{}`, "generationConfig"},
		{`"system_instruction":{}`, `"systemInstruction":{}`, "systemInstruction"},
		{`"cached_content":"a"`, `"cachedContent":"a"`, "cachedContent"},
	} {
		generate.Decode(t, generate.Body("", c.first))
		generate.Decode(t, generate.Body("", c.second))
		generate.Refused(t, generate.Body("", c.first, c.second), c.param)
	}
	generate.Refused(t, generate.Body("", `"Generation_Config":{}`), "generationConfig")
}

func TestTheModelOfABodyIsThePaths(t *testing.T) { // ERR-5
	for _, text := range []string{`"model":"g"`, `"model":"models/g"`} {
		generate.Decode(t, generate.Body("", text))
	}
	for _, name := range []string{"", "a b", "a,b", strings.Repeat("m", 201)} {
		s := generate
		s.Model = name
		s.Refused(t, s.Body(""), "model")
	}
	count := counting()
	count.Decode(t, `{"generateContentRequest":{"model":"models/g","contents":`+hello+`}}`)
	count.Refused(t, `{"generateContentRequest":{"model":"models/other","contents":`+hello+`}}`, "model")
	count.Refused(t, `{"generateContentRequest":[]}`, "generateContentRequest")
	count.Refused(t, `{"generateContentRequest":{}}`, "contents")
	count.Refused(t, `{"generateContentRequest":{"contents":`+hello+`,"base_url":"x"}}`, "generateContentRequest.base_url")
}

func TestARewriteChangesOnlyWhatItNames(t *testing.T) { // DIS-6, EST-2
	t.Run("generate", func(t *testing.T) { wiretest.Rewritten(t, generate) })
	t.Run("countTokens", func(t *testing.T) { wiretest.Rewritten(t, counting()) })
	t.Run("embedContent", func(t *testing.T) { wiretest.Rewritten(t, embed) })
	t.Run("batchEmbedContents", func(t *testing.T) { wiretest.Rewritten(t, batch) })
	bound := wire.Rewrite{OutputBound: 9, OutputField: "max_tokens"}
	for _, c := range []struct {
		in   string
		r    wire.Rewrite
		want string
	}{
		{`{ "contents" : [] }`, wire.Rewrite{}, `{ "contents" : [] }`},
		{`{ "contents" : [] }`, wire.Rewrite{Model: "b"}, `{ "contents" : [] }`},
		{`{"model":"a"}`, wire.Rewrite{Model: "b"}, `{"model":"b"}`},
		{`{"model":"models/a"}`, wire.Rewrite{Model: "b"}, `{"model":"models/b"}`},
		{`{"model":"models/a"}`, wire.Rewrite{Model: "tunedModels/b"}, `{"model":"tunedModels/b"}`},
		{`{"generateContentRequest":{"model":"models/a"}}`, wire.Rewrite{Model: "b"}, `{"generateContentRequest":{"model":"models/b"}}`},
		{`{}`, bound, `{"generationConfig":{"maxOutputTokens":9}}`},
		{`{"contents":[]}`, bound, `{"contents":[],"generationConfig":{"maxOutputTokens":9}}`},
		{`{"generation_config":null}`, bound, `{"generation_config":{"maxOutputTokens":9}}`},
		{`{"generationConfig":{ }}`, bound, `{"generationConfig":{"maxOutputTokens":9}}`},
		{`{"generationConfig":{"topK":1 }}`, bound, `{"generationConfig":{"topK":1,"maxOutputTokens":9 }}`},
		{`{"generationConfig":{"max_output_tokens":10}}`, bound, `{"generationConfig":{"max_output_tokens":9}}`},
		{`{"generationConfig":{"maxOutputTokens":8}}`, bound, `{"generationConfig":{"maxOutputTokens":8}}`},
		{`{"generationConfig":{"maxOutputTokens":null}}`, bound, `{"generationConfig":{"maxOutputTokens":9}}`},
	} {
		got, err := gemini.Generate{}.Rewrite([]byte(c.in), c.r)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.in, got, err, c.want)
		}
	}
	for _, text := range []string{``, `[]`, `{"model":"a"}x`, `{"generationConfig":[]}`} {
		if got, err := (gemini.Generate{}).Rewrite([]byte(text), bound); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestARequestBecomesACall(t *testing.T) {
	for _, c := range []struct {
		name, members string
		change        func(*call.Call)
	}{
		{"the least of it", ``, func(*call.Call) {}},
		{"a bound", `"generationConfig":{"maxOutputTokens":7}`, func(c *call.Call) { c.OutputBound, c.OutputField = 7, "generationConfig.maxOutputTokens" }},
		{"candidates", `"generation_config":{"candidate_count":4}`, func(c *call.Call) { c.Completions = 4 }},
		{"a tier", `"serviceTier":"FLEX"`, func(c *call.Call) { c.ServiceTier = "flex" }},
		{"cached content", `"cachedContent":"cachedContents/1"`, func(c *call.Call) { c.StateIDs, c.Prompt.Unseen = []string{"cachedContents/1"}, true }},
		{"nulls are absent", `"generationConfig":null,"tools":null,"systemInstruction":null,"serviceTier":null,"cachedContent":null`, func(*call.Call) {}},
		{"nulls in the configuration", `"generationConfig":{"maxOutputTokens":null,"candidateCount":null,"responseSchema":null}`, func(*call.Call) {}},
		{"the provider's tools", `"tools":[{"googleSearch":{}},{"url_context":{},"codeExecution":{}}]`, func(c *call.Call) {
			c.Prompt.Tools = 3
			for _, name := range []string{call.WebSearch, call.WebFetch, call.CodeExecution} {
				c.Units.Tools.Set(name, 0)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := call.Call{
				Door: call.GeminiGenerate, Model: "g", OutputBound: call.NoBound, Completions: 1, Prompt: call.Prompt{TextBytes: 5, Messages: 1},
			}
			c.change(&want)
			if got := generate.Decode(t, generate.Body("", strings.Fields(c.members)...)); !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}

// EST-1, EST-4, DIS-8: all that the model reads is counted once, decoded.
func TestAPromptIsMeasured(t *testing.T) {
	base64 := strings.Repeat("A", 400)
	for _, c := range []struct {
		name, text string
		want       call.Prompt
		ids        []string
	}{
		{"escapes decode", `"contents":[{"parts":[{"text":"a\n\u00e9\ud83d\ude00"}]}]`, call.Prompt{TextBytes: 8, Messages: 1}, nil},
		{"one turn alone, one part alone", `"contents":{"parts":{"text":"abc"}}`, call.Prompt{TextBytes: 3, Messages: 1}, nil},
		{"plain strings", `"contents":["ab","cd"],"systemInstruction":"ef"`, call.Prompt{TextBytes: 6, Messages: 2}, nil},
		{"a system", `"system_instruction":{"role":"system","parts":[{"text":"abc"}]},"contents":"x"`, call.Prompt{TextBytes: 4, Messages: 1}, nil},
		{"a function, its call and its answer", `"tools":[{"functionDeclarations":[{"name":"get"}]}],"contents":[{"parts":[{"functionCall":{"name":"get"}}]},{"parts":[{"functionResponse":{"name":"get"}}]}]`, call.Prompt{TextBytes: 3 * 14, Messages: 2, Tools: 1}, nil},
		{"a schema", `"generationConfig":{"responseSchema":{ "type" : "OBJECT" }},"contents":"x"`, call.Prompt{TextBytes: 1 + 17, Messages: 1}, nil},
		{"settings are not text", `"safetySettings":[{"a":"b"}],"generationConfig":{"stopSequences":["END"],"temperature":1},"contents":"x"`, call.Prompt{TextBytes: 1, Messages: 1}, nil},
		{"unknown members are text", `"documents":["abc"],"contents":"x"`, call.Prompt{TextBytes: 8, Messages: 1}, nil},
		{"an image", `"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + base64 + `"}}]}]`, call.Prompt{Messages: 1, Images: 1}, nil},
		{"an image, said behind it", `"contents":[{"parts":[{"inline_data":{"data":"` + base64 + `","mime_type":"image/png"}}]}]`, call.Prompt{Messages: 1, Images: 1}, nil},
		{"a document", `"contents":[{"parts":[{"inlineData":{"mimeType":"application/pdf","data":"` + base64 + `"}}]}]`, call.Prompt{TextBytes: 300, Messages: 1}, nil},
		{"audio", `"contents":[{"parts":[{"inlineData":{"mimeType":"audio/wav","data":"` + base64 + `"}}]}]`, call.Prompt{TextBytes: 300, Messages: 1}, nil},
		{"a file by address", `"contents":[{"parts":[{"fileData":{"fileUri":"https://e.org/a.pdf"}}]}]`, call.Prompt{Messages: 1, Unseen: true}, nil},
		{"a kept file", `"contents":[{"parts":[{"file_data":{"file_uri":"https://generativelanguage.googleapis.com/v1beta/files/1"}},{"fileData":{"fileUri":"files/2"}}]}]`, call.Prompt{Messages: 1, Unseen: true}, []string{"https://generativelanguage.googleapis.com/v1beta/files/1", "files/2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := generate.Decode(t, `{`+c.text+`}`)
			if got.Prompt != c.want || !reflect.DeepEqual(got.StateIDs, c.ids) {
				t.Errorf("got  %+v %v\nwant %+v %v", got.Prompt, got.StateIDs, c.want, c.ids)
			}
		})
	}
	got := counting()
	if p := got.Decode(t, `{"generateContentRequest":{"contents":`+hello+`}}`).Prompt; p != (call.Prompt{TextBytes: 5, Messages: 1}) {
		t.Errorf("a nested request: %+v", p)
	}
	if c := embed.Decode(t, embed.Body("", `"title":"abc"`, `"taskType":"X"`)); c.Prompt != (call.Prompt{TextBytes: 8, Messages: 1}) || c.Door != call.GeminiEmbed {
		t.Errorf("a text to embed: %+v", c)
	}
	batch.Refused(t, `{"requests":[{"content":{}},{"model":"models/other","content":{}}]}`, "model")
	batch.Refused(t, `{"requests":[{"content":1}]}`, "content")
	if c := batch.Decode(t, batch.Body("")); c.Prompt != (call.Prompt{TextBytes: 8, Messages: 2}) || c.Door != call.GeminiEmbedBatch {
		t.Errorf("texts to embed: %+v", c)
	}
}

func TestADoorSaysWhereItIsAtAProvider(t *testing.T) {
	streams := gemini.Generate{Stream: true}
	decode := func(query string) *call.Call {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		c, f := streams.Decode(wire.Request{Body: []byte(generate.Body("")), Model: "g", Query: values})
		if f != nil || !c.Stream || !c.WantsStreamUsage {
			t.Fatalf("%+v, %v", c, f)
		}
		return c
	}
	for _, c := range []struct{ got, want string }{
		{streams.Path(decode("alt=sse"), "g"), "/models/g:streamGenerateContent?alt=sse"},
		{streams.Path(decode(""), "g"), "/models/g:streamGenerateContent"},
		{streams.Path(decode("alt=json"), "g"), "/models/g:streamGenerateContent"},
		{gemini.Generate{}.Path(nil, "tunedModels/a b"), "/tunedModels/a%20b:generateContent"},
		{gemini.CountTokens{}.Path(nil, "g"), "/models/g:countTokens"},
		{gemini.Embed{}.Path(nil, "g?x"), "/models/g%3Fx:embedContent"},
		{gemini.EmbedBatch{}.Path(nil, "g"), "/models/g:batchEmbedContents"},
	} {
		if c.got != c.want {
			t.Errorf("at %s, want %s", c.got, c.want)
		}
	}
}
