// SPDX-License-Identifier: Apache-2.0

package sdksgo_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

var (
	plain   = &kind{Key: "plain"}
	tools   = &kind{Key: "plain", Model: "tools"}
	nothing = &kind{Key: "spent-count"} // its cap is zero
	weather = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}
	zurich  = map[string]any{"city": "Zürich"}
)

// called checks a tool's arguments, JSON text or what was read from it.
func called(t *testing.T, name string, arguments any) {
	t.Helper()
	var got map[string]any
	text, ok := arguments.(string)
	if !ok {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		text = string(raw)
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || name != "weather" || !reflect.DeepEqual(got, zurich) {
		t.Errorf("the call is %s(%s): %v", name, text, err)
	}
}

func TestAnthropicsTurnWholeAndStreamed(t *testing.T) {
	t.Parallel()
	w := new(wire)
	c := newAnthropic(w, plain, 2)
	whole, err := c.Messages.New(t.Context(), message(plain))
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := readMessage(t.Context(), &c, message(plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []*anthropic.Message{whole, &streamed} {
		if got.StopReason != "end_turn" || got.Content[0].Text != whole.Content[0].Text || got.Usage.InputTokens != 20 || got.Usage.OutputTokens != 30 {
			t.Errorf("got %+v", got)
		}
	}
	if !slices.Equal(w.statuses, []int{200, 200}) {
		t.Errorf("the answers are %v", w.statuses)
	}
}

func TestAnthropicsToolIsCalled(t *testing.T) { // DIS-6
	t.Parallel()
	c := newAnthropic(new(wire), tools, 2)
	p := message(tools)
	p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "weather", InputSchema: anthropic.ToolInputSchemaParam{Properties: weather["properties"]},
	}}}
	whole, err := c.Messages.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := readMessage(t.Context(), &c, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []*anthropic.Message{whole, &streamed} {
		if got.StopReason != "tool_use" {
			t.Errorf("it stops with %s", got.StopReason)
		}
		called(t, got.Content[0].Name, string(got.Content[0].Input))
	}
	recorder.passedOn(t, "/v1/messages")
}

// TestAnthropicCountsForNothing: SPEC section 9.
func TestAnthropicCountsForNothing(t *testing.T) {
	t.Parallel()
	c := newAnthropic(new(wire), nothing, 2)
	p := message(nothing)
	got, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: p.Model, Messages: p.Messages})
	if err != nil || got.InputTokens != 20 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAResponseWholeAndStreamed(t *testing.T) {
	t.Parallel()
	w := new(wire)
	c := newOpenAI(w, plain, 2)
	whole, err := c.Responses.New(t.Context(), response(plain))
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := readResponse(t.Context(), &c, response(plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []*responses.Response{whole, &streamed} {
		if got.Status != "completed" || got.OutputText() == "" || got.OutputText() != whole.OutputText() || got.Usage.InputTokens != 20 || got.Usage.OutputTokens != 30 {
			t.Errorf("got %s", got.RawJSON())
		}
	}
	if !slices.Equal(w.statuses, []int{200, 200}) {
		t.Errorf("the answers are %v", w.statuses)
	}
}

func TestAResponsesToolIsCalled(t *testing.T) { // DIS-6
	t.Parallel()
	c := newOpenAI(new(wire), tools, 2)
	p := response(tools)
	p.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "weather", Parameters: weather, Strict: openai.Bool(false)}}}
	whole, err := c.Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := readResponse(t.Context(), &c, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []*responses.Response{whole, &streamed} {
		call := got.Output[0].AsFunctionCall()
		called(t, call.Name, call.Arguments)
	}
	recorder.passedOn(t, "/v1/responses")
}

func TestAResponseThatBreaksOffHasNoCleanEnd(t *testing.T) { // ERR-6
	t.Parallel()
	row := &kind{Key: "plain", Model: "cut"}
	c := newOpenAI(new(wire), row, 2)
	got, err := readResponse(t.Context(), &c, response(row))
	if got.Status != "failed" || err != nil && !strings.Contains(err.Error(), "upstream_unreachable") {
		t.Errorf("got %s, %v", got.RawJSON(), err)
	}
}

func TestOpenAIsEmbeddingsKeepTheirForm(t *testing.T) {
	t.Parallel()
	c := newOpenAI(new(wire), plain, 2)
	got, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "m", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("hello")}})
	if err != nil || !slices.Equal(got.Data[0].Embedding, []float64{0.25, -0.5, 0.75}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestGooglesTurnWholeAndStreamed(t *testing.T) {
	t.Parallel()
	w := new(wire)
	c, err := newGoogle(t.Context(), w, plain, 2)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := c.Models.GenerateContent(t.Context(), "contents", genai.Text("hello there"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	last := whole
	for chunk, err := range c.Models.GenerateContentStream(t.Context(), "contents", genai.Text("hello there"), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(chunk.Text())
		last = chunk
	}
	if text.String() != whole.Text() || text.Len() == 0 {
		t.Errorf("streamed %q, whole %q", text.String(), whole.Text())
	}
	for _, got := range []*genai.GenerateContentResponse{whole, last} {
		if u := got.UsageMetadata; got.Candidates[0].FinishReason != "STOP" || u.PromptTokenCount != 20 || u.CandidatesTokenCount != 30 {
			t.Errorf("it ends with %s, %+v", got.Candidates[0].FinishReason, u)
		}
	}
	if !slices.Equal(w.statuses, []int{200, 200}) {
		t.Errorf("the answers are %v", w.statuses)
	}
}

func TestGooglesFunctionIsCalled(t *testing.T) { // DIS-6
	t.Parallel()
	c, err := newGoogle(t.Context(), new(wire), tools, 2)
	if err != nil {
		t.Fatal(err)
	}
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{
		FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "weather", ParametersJsonSchema: weather}},
	}}}
	got, err := c.Models.GenerateContent(t.Context(), "tools-contents", genai.Text("hello"), config)
	if err != nil {
		t.Fatal(err)
	}
	called(t, got.FunctionCalls()[0].Name, got.FunctionCalls()[0].Args)
	for chunk, err := range c.Models.GenerateContentStream(t.Context(), "tools-contents", genai.Text("hello"), config) {
		if err != nil {
			t.Fatal(err)
		}
		called(t, chunk.FunctionCalls()[0].Name, chunk.FunctionCalls()[0].Args)
	}
	recorder.passedOn(t, "/v1beta/models/tools:generateContent")
}

// TestGoogleCountsForNothingAndEmbeds: SPEC section 9.
func TestGoogleCountsForNothingAndEmbeds(t *testing.T) {
	t.Parallel()
	c, err := newGoogle(t.Context(), new(wire), nothing, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Models.CountTokens(t.Context(), "contents", genai.Text("hello"), nil); err != nil || got.TotalTokens != 20 {
		t.Errorf("counted %+v, %v", got, err)
	}
	if c, err = newGoogle(t.Context(), new(wire), plain, 2); err != nil {
		t.Fatal(err)
	}
	contents := []*genai.Content{genai.NewContentFromText("hello", genai.RoleUser), genai.NewContentFromText("there", genai.RoleUser)}
	got, err := c.Models.EmbedContent(t.Context(), "contents", contents, nil)
	if err != nil || len(got.Embeddings) != 2 || !slices.Equal(got.Embeddings[1].Values, []float32{0.25, -0.5, 0.75}) {
		t.Errorf("embedded %+v, %v", got, err)
	}
}

func TestTheModelsOfEachClient(t *testing.T) { // KEY-5
	t.Parallel()
	c := newAnthropic(new(wire), &kind{Key: "listed"}, 2)
	if page, err := c.Models.List(t.Context(), anthropic.ModelListParams{}); err != nil || len(page.Data) != 1 || page.Data[0].ID != "m" {
		t.Errorf("Anthropic's: %+v, %v", page, err)
	}
	g, err := newGoogle(t.Context(), new(wire), &kind{Key: "listed-contents"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if page, err := g.Models.List(t.Context(), nil); err != nil || len(page.Items) != 1 || page.Items[0].Name != "models/contents" {
		t.Errorf("Google's: %+v, %v", page, err)
	}
}
