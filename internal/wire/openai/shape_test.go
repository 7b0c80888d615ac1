// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

var (
	wrongNumbers = []string{"0", "-1", "1.5", "1.0", "1e2", `"7"`, "true", "[]", "{}", "1000000001", "99999999999999999999"}
	wrongModels  = []string{`""`, `["a"]`, `1`, `"a b"`, `"a,b"`, `"a\u0000"`, `"` + strings.Repeat("m", 201) + `"`}
	wrongTexts   = []string{`[]`, `1`, `{}`, `true`, `[true]`, `[1.5,"x",null]`, `[["a"]]`, `[[-1]]`}
	wrongStrings = []string{`1`, `{}`, `[]`, `true`}
	wrongBools   = []string{`1`, `"true"`, `{}`}
)

var responses = wiretest.Shape{
	Door: openai.Responses{}, Needs: []string{"model"},
	Members: map[string]string{
		"model": `"gpt"`, "input": `"Hello"`, "instructions": `"Be brief"`, "tools": `[{"type":"function","name":"get"}]`, "text": `{"verbosity":"low"}`,
		"max_output_tokens": `50`, "max_tool_calls": `3`, "stream": `true`, "service_tier": `"flex"`, "user": `"ada"`, "metadata": `{"user_id":"ada"}`,
		"previous_response_id": `"resp_1"`, "conversation": `"conv_1"`, "prompt": `{"id":"pmpt_1"}`, "background": `false`,
	},
	Wrong: map[string][]string{
		"input": {`[]`, `1`, `{}`, `true`, `["x"]`, `[null]`}, "tools": {`{}`, `"x"`, `["x"]`}, "text": {`"x"`, `[]`},
		"tools.model":       {`[{"type":"image_generation","model":"gpt-image-1"}]`},
		"max_output_tokens": wrongNumbers, "max_tool_calls": wrongNumbers, "stream": wrongBools, "service_tier": wrongStrings, "user": wrongStrings,
		"metadata": {`"x"`, `[]`}, "previous_response_id": wrongStrings, "conversation": {`1`, `[]`}, "prompt": {`1`, `[]`}, "background": {`true`, `1`, `"false"`},
	},
	Changes: []string{"model", "max_output_tokens"},
	Bounds:  map[string]int64{`50`: 50, `1`: 1, `5000`: 5000},
	BoundIn: "max_output_tokens",
}

// answered is the shape of a request that has something to answer.
func answered() wiretest.Shape {
	s := responses
	s.Needs = []string{"model", "input"}
	s.Wrong = map[string][]string{"model": wrongModels}
	for name, values := range responses.Wrong {
		s.Wrong[name] = values
	}
	return s
}

var completions = wiretest.Shape{
	Door: openai.Completions{}, Needs: []string{"model", "prompt"},
	Members: map[string]string{
		"model": `"gpt"`, "prompt": `"Hello"`, "suffix": `"end"`, "max_tokens": `50`, "n": `2`, "best_of": `3`, "stream": `true`,
		"stream_options": `{"include_usage":true}`, "service_tier": `"flex"`, "user": `"ada"`,
	},
	Wrong: map[string][]string{
		"model": wrongModels, "prompt": wrongTexts, "max_tokens": wrongNumbers, "n": append([]string{"129"}, wrongNumbers...), "best_of": append([]string{"129"}, wrongNumbers...),
		"stream": wrongBools, "stream_options": {`true`, `[]`}, "stream_options.include_usage": {`{"include_usage":1}`}, "service_tier": wrongStrings, "user": wrongStrings,
	},
	Changes: []string{"model", "max_tokens", "stream_options"},
	Bounds:  map[string]int64{`50`: 50, `1`: 1, `5000`: 5000},
	BoundIn: "max_tokens",
}

// deployment is chat under a path that has the model in it.
var deployment = wiretest.Shape{
	Door: openai.Deployment{Door: openai.Chat{}}, Model: "d", Needs: []string{"messages"},
	Members: map[string]string{
		"messages": `[{"role":"user","content":"Hello"}]`, "tools": `[{"type":"function","function":{"name":"get"}}]`, "max_tokens": `50`, "n": `2`,
		"stream": `true`, "user": `"ada"`, "service_tier": `"flex"`, "metadata": `{"user_id":"ada"}`,
	},
	Wrong:   map[string][]string{"messages": {`[]`, `1`}, "max_tokens": wrongNumbers, "stream": wrongBools},
	Changes: []string{"model", "max_tokens"},
	Bounds:  map[string]int64{`50`: 50, `1`: 1, `5000`: 5000},
	BoundIn: "max_tokens",
}

// The name in the path decides, whatever the body says: ERR-5.
func TestADeploymentsPathNamesTheModel(t *testing.T) {
	for _, model := range []string{``, `"model":"other"`, `"model":"d"`, `"model":null`, `"model":7`} {
		c := deployment.Decode(t, deployment.Body("", strings.Fields(model)...))
		if c.Model != "d" || c.Door != call.OpenAIChat {
			t.Errorf("%s: %+v", model, c)
		}
		out, err := deployment.Door.Rewrite([]byte(deployment.Body("", strings.Fields(model)...)), wire.Rewrite{Model: "up"})
		if err != nil || !strings.Contains(string(out), `"model":"up"`) || strings.Contains(string(out), "other") {
			t.Errorf("%s became %s, %v", model, out, err)
		}
	}
	deployment.Refused(t, deployment.Body("", `"model":"a"`, `"model":"b"`), "model")
	deployment.Refused(t, deployment.Body("", `"Model":"a"`), "model")
}

var embeddings = wiretest.Shape{
	Door: openai.Embeddings{}, Needs: []string{"model", "input"},
	Members: map[string]string{"model": `"e"`, "input": `["a","b"]`, "user": `"ada"`, "service_tier": `"flex"`},
	Wrong:   map[string][]string{"model": wrongModels, "input": wrongTexts, "user": wrongStrings, "service_tier": wrongStrings},
	Changes: []string{"model"},
}

var moderations = wiretest.Shape{
	Door: openai.Moderations{}, Needs: []string{"input"},
	Members: map[string]string{"model": `"omni"`, "input": `["a",{"type":"text","text":"b"}]`, "user": `"ada"`},
	Wrong:   map[string][]string{"model": wrongModels, "input": wrongTexts, "user": wrongStrings},
	Changes: []string{"model"},
}

var images = wiretest.Shape{
	Door: openai.Images{}, Needs: []string{"model", "prompt"},
	Members: map[string]string{"model": `"i"`, "prompt": `"a cat"`, "n": `2`, "stream": `true`, "user": `"ada"`},
	Wrong: map[string][]string{
		"model": wrongModels, "prompt": wrongTexts, "n": append([]string{"65"}, wrongNumbers...), "stream": wrongBools, "user": wrongStrings,
	},
	Changes: []string{"model"},
}

var speech = wiretest.Shape{
	Door: openai.Speech{}, Needs: []string{"model", "input"},
	Members: map[string]string{"model": `"s"`, "input": `"Hello"`, "instructions": `"slow"`, "stream_format": `"sse"`, "user": `"ada"`},
	Wrong:   map[string][]string{"model": wrongModels, "input": wrongTexts, "stream_format": wrongStrings, "user": wrongStrings},
	Changes: []string{"model"},
}

// shapes are the doors whose requests are objects, beside chat.
func shapes() map[string]wiretest.Shape {
	return map[string]wiretest.Shape{
		"responses": answered(), "completions": completions, "embeddings": embeddings, "moderations": moderations, "images": images, "speech": speech,
		"deployment": deployment,
	}
}

func TestEveryDoorReadsItsMembersStrictly(t *testing.T) { // ERR-5, BR-197
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) { wiretest.Strict(t, s) })
	}
}

func TestEveryDoorsRewriteChangesOnlyWhatItNames(t *testing.T) { // DIS-6, EST-2
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) { wiretest.Rewritten(t, s) })
	}
	all := wire.Rewrite{Model: "b", OutputBound: 9, OutputField: "max_completion_tokens", AskStreamUsage: true}
	for _, c := range []struct {
		door     wire.Door
		in, want string
	}{
		{openai.Responses{}, `{"model":"a"}`, `{"model":"b","max_output_tokens":9}`},
		{openai.Completions{}, `{"model":"a","max_completion_tokens":"x"}`, `{"model":"b","max_completion_tokens":"x","max_tokens":9,"stream_options":{"include_usage":true}}`},
		{openai.Embeddings{}, `{"model":"a"}`, `{"model":"b"}`},
		{openai.Moderations{}, `{"input":"x"}`, `{"input":"x","model":"b"}`},
		{openai.Images{}, `{"model":"a"}`, `{"model":"b"}`},
		{openai.Speech{}, `{"model":"a"}`, `{"model":"b"}`},
	} {
		if got, err := c.door.Rewrite([]byte(c.in), all); err != nil || string(got) != c.want {
			t.Errorf("%T: got %s, %v, want %s", c.door, got, err, c.want)
		}
	}
}

func TestEveryDoorSaysWhereItIsAtAProvider(t *testing.T) {
	for path, door := range map[string]wire.Door{
		"/chat/completions": openai.Chat{}, "/responses": openai.Responses{}, "/completions": openai.Completions{}, "/embeddings": openai.Embeddings{},
		"/moderations": openai.Moderations{}, "/images/generations": openai.Images{}, "/audio/speech": openai.Speech{}, "/audio/transcriptions": openai.Transcriptions{},
	} {
		if got := door.Path(nil, "m"); got != path {
			t.Errorf("%T at %s, want %s", door, got, path)
		}
	}
}

// EST-2: completions are asked for of each prompt.
func TestCompletionsAreThoseOfEveryPrompt(t *testing.T) {
	for _, c := range []struct {
		text        string
		completions int64
		prompt      call.Prompt
	}{
		{`"prompt":"Hello"`, 1, call.Prompt{TextBytes: 5}},
		{`"prompt":["ab","cd","ef"]`, 3, call.Prompt{TextBytes: 6}},
		{`"prompt":["ab","cd"],"n":2,"best_of":5`, 10, call.Prompt{TextBytes: 4}},
		{`"best_of":5,"prompt":["ab","cd"],"n":2`, 10, call.Prompt{TextBytes: 4}},
		{`"prompt":[1,2,3]`, 1, call.Prompt{TextBytes: 9}},
		{`"prompt":[[1,2,3],[4]],"n":3`, 6, call.Prompt{TextBytes: 12}},
		{`"prompt":["ab",[1,2]],"suffix":"end"`, 2, call.Prompt{TextBytes: 2 + 6 + 3}},
		{`"prompt":"Hello","documents":["x"],"echo":true,"stop":["END"]`, 1, call.Prompt{TextBytes: 5 + 5}},
	} {
		got := completions.Decode(t, `{"model":"m",`+c.text+`}`)
		if got.Completions != c.completions || got.Prompt != c.prompt || got.Door != call.OpenAICompletions {
			t.Errorf("%s: %d of %+v", c.text, got.Completions, got.Prompt)
		}
	}
	many := `{"model":"m","prompt":[` + strings.Repeat(`"a",`, 4096) + `"a"]}`
	completions.Refused(t, many, "prompt")
	embeddings.Refused(t, strings.Replace(many, "prompt", "input", 1), "input")
}

// EST-1: what the doors without an answer in text are asked for.
func TestWhatIsAskedForIsMeasured(t *testing.T) {
	speak, draw := speech.Decode(t, `{"model":"m","input":"Hello","instructions":"slow"}`), images.Decode(t, `{"model":"m","prompt":"a cat","n":4,"size":"1024x1024"}`)
	if speak.Prompt.TextBytes != 9 || speak.Units.AudioOutputMicros != 500_000 || speak.Stream {
		t.Errorf("speech: %+v", speak)
	}
	if draw.Units.Images != 4 || draw.Completions != 4 || draw.Prompt.TextBytes != 5 {
		t.Errorf("images: %+v", draw)
	}
	if c := images.Decode(t, `{"model":"m","prompt":"a cat"}`); c.Units.Images != 1 || c.Completions != 1 {
		t.Errorf("one image: %+v", c)
	}
	if c := speech.Decode(t, `{"model":"m","input":"Hello","stream_format":"sse"}`); !c.Stream || !c.WantsStreamUsage {
		t.Errorf("speech as events: %+v", c)
	}
	if c := images.Decode(t, `{"model":"m","prompt":"a","stream":true}`); !c.Stream || !c.WantsStreamUsage {
		t.Errorf("images as events: %+v", c)
	}
	if c := moderations.Decode(t, `{"input":"Hello"}`); c.Model != openai.DefaultModeration || c.Prompt.TextBytes != 5 {
		t.Errorf("a moderation: %+v", c)
	}
	if c := embeddings.Decode(t, `{"model":"m","input":[[1,2],[3]],"encoding_format":"base64"}`); c.Prompt.TextBytes != 9 || c.Completions != 1 {
		t.Errorf("tokens to embed: %+v", c)
	}
}
