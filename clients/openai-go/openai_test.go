// SPDX-License-Identifier: Apache-2.0

// Package openaigo_test runs the official OpenAI client for Go, unchanged,
// through the gateway.
package openaigo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// chat is a chat completion's parameters.
func chat(model string, textBytes int) openai.ChatCompletionNewParams {
	text := "hello there"
	if textBytes > 0 {
		text = strings.Repeat("x", textBytes)
	}
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

// read is a stream that was read to its end.
type read struct {
	text, finish string
	arguments    string
	chunks       []openai.ChatCompletionChunk
}

func drain(stream *ssestream.Stream[openai.ChatCompletionChunk]) (r read, err error) {
	for stream.Next() {
		chunk := stream.Current()
		r.chunks = append(r.chunks, chunk)
		for _, choice := range chunk.Choices {
			r.text += choice.Delta.Content
			r.finish += choice.FinishReason
			for _, call := range choice.Delta.ToolCalls {
				r.arguments += call.Function.Arguments
			}
		}
	}
	return r, stream.Err()
}

// send makes one call in a mode, "whole" or "streamed", to the answer's end.
func send(ctx context.Context, client *openai.Client, mode string, p openai.ChatCompletionNewParams, more map[string]any) error {
	var options []option.RequestOption
	for name, value := range more {
		options = append(options, option.WithJSONSet(name, value))
	}
	if mode == "whole" {
		_, err := client.Chat.Completions.New(ctx, p, options...)
		return err
	}
	_, err := drain(client.Chat.Completions.NewStreaming(ctx, p, options...))
	return err
}

func TestModelsListShowsWhatTheKeyMayCall(t *testing.T) { // KEY-5
	t.Parallel()
	client, _ := newClient("listed", 2)
	page, err := client.Models.List(t.Context())
	if err != nil || len(page.Data) != 1 || page.Data[0].ID != "m" {
		t.Fatalf("got %+v, %v", page, err)
	}
	if model, err := client.Models.Get(t.Context(), "m"); err != nil || model.ID != "m" {
		t.Errorf("got %+v, %v", model, err)
	}
	_, err = client.Models.Get(t.Context(), "other")
	if failed := new(openai.Error); !errors.As(err, &failed) || failed.StatusCode != http.StatusNotFound || failed.Code != "model_not_found" {
		t.Errorf("got %v", err)
	}
}

func TestAWholeCompletion(t *testing.T) {
	t.Parallel()
	client, wire := newClient("plain", 2)
	answer, err := client.Chat.Completions.New(t.Context(), chat("m", 0))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Choices[0].FinishReason != "stop" || answer.Choices[0].Message.Content == "" ||
		answer.Usage.PromptTokens != 20 || answer.Usage.CompletionTokens != 30 {
		t.Errorf("got %s", answer.RawJSON())
	}
	attempts := wire.all()
	if len(attempts) != 1 || attempts[0].header.Get("X-Weir-Cost-Usd") != "0.00032" {
		t.Errorf("attempts %+v", attempts)
	}
}

// TestAStreamShowsItsUsageOnlyToAClientThatAsked: DIS-6, BR-097, BR-100.
func TestAStreamShowsItsUsageOnlyToAClientThatAsked(t *testing.T) {
	t.Parallel()
	client, _ := newClient("plain", 2)
	whole, err := client.Chat.Completions.New(t.Context(), chat("m", 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{false, true} {
		p := chat("m", 0)
		if asked {
			p.StreamOptions.IncludeUsage = openai.Bool(true)
		}
		got, err := drain(client.Chat.Completions.NewStreaming(t.Context(), p))
		if err != nil || got.finish != "stop" || got.text != whole.Choices[0].Message.Content {
			t.Fatalf("asked %t: got %+v, %v", asked, got, err)
		}
		last := got.chunks[len(got.chunks)-1]
		if asked {
			if len(last.Choices) != 0 || last.Usage.PromptTokens != 20 || last.Usage.CompletionTokens != 30 {
				t.Errorf("the last chunk is %s", last.RawJSON())
			}
			continue
		}
		for _, chunk := range got.chunks {
			if len(chunk.Choices) != 1 || strings.Contains(chunk.RawJSON(), "usage") {
				t.Errorf("a client that did not ask sees %s", chunk.RawJSON())
			}
		}
	}
}

// TestARequestWithToolsPassesUntouchedAndSoDoesTheCall: DIS-6.
func TestARequestWithToolsPassesUntouchedAndSoDoesTheCall(t *testing.T) {
	t.Parallel()
	p := chat("tools", 0)
	p.Temperature, p.Seed = openai.Float(0.25), openai.Int(7)
	p.Metadata = map[string]string{"ключ": "значение"}
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name:       "weather",
		Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})}
	p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "weather"})
	const arguments = `{"city":"Zürich"}`

	client, wire := newClient("plain", 2)
	answer, err := client.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if c := answer.Choices[0]; c.FinishReason != "tool_calls" || c.Message.ToolCalls[0].Function.Arguments != arguments {
		t.Errorf("got %s", answer.RawJSON())
	}
	got, sent := recorder.last(), wire.all()[0].body
	if got.path != "/v1/chat/completions" || got.authorization != "Bearer credential-of-the-recorder" {
		t.Errorf("%s with %s", got.path, got.authorization)
	}
	if !bytes.Equal(got.body, sent) {
		t.Errorf("sent %s, the provider got %s", sent, got.body)
	}
	if strings.Contains(got.whole, "the-secret-of-plain") {
		t.Error("the client's key went to the provider")
	}

	stream, err := drain(client.Chat.Completions.NewStreaming(t.Context(), p))
	if err != nil || stream.finish != "tool_calls" || stream.arguments != arguments {
		t.Errorf("got %+v, %v", stream, err)
	}
	var want, had map[string]any
	if err := errors.Join(json.Unmarshal(wire.all()[1].body, &want), json.Unmarshal(recorder.last().body, &had)); err != nil {
		t.Fatal(err)
	}
	want["stream_options"] = map[string]any{"include_usage": true}
	if !reflect.DeepEqual(had, want) {
		t.Errorf("the provider got %v, want %v", had, want)
	}
}

// prepare brings about what a row needs; the result ends it.
func prepare(t *testing.T, row setting) (release func()) {
	t.Helper()
	client, _ := newClient(row.Key, 2)
	for range row.Before.Times {
		if err := send(t.Context(), client, "whole", chat(row.Before.Model, 0), nil); err != nil {
			t.Fatalf("before: %v", err)
		}
	}
	if row.While == "" {
		return func() {}
	}
	stream := client.Chat.Completions.NewStreaming(t.Context(), chat(row.While, 0))
	if !stream.Next() {
		t.Fatalf("while: %v", stream.Err())
	}
	return func() { _ = stream.Close() } // the stream is given up
}

// TestARefusalIsTheClientsOwnError: ERR-1 to ERR-5, RUN-2, DIS-2, BR-211,
// BR-213, BR-214, BR-217. Each row runs whole and streamed.
func TestARefusalIsTheClientsOwnError(t *testing.T) {
	t.Parallel()
	for _, row := range readTable(t).Refusals {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			defer prepare(t, row.setting)()
			if row.Modes == nil {
				row.Modes = []string{"whole", "streamed"}
			}
			for _, mode := range row.Modes {
				client, wire := newClient(row.Key, row.Retries)
				err := send(t.Context(), client, mode, chat(row.Model, row.TextBytes), row.Body)
				failed := new(openai.Error)
				if !errors.As(err, &failed) {
					t.Fatalf("%s: got %T: %v", mode, err, err)
				}
				row.holds(t, failed, len(wire.all()))
			}
		})
	}
}

func (row *refusal) holds(t *testing.T, got *openai.Error, attempts int) {
	t.Helper()
	if got.StatusCode != row.Status || got.Type != row.Type || got.Code != row.Code || got.Param != row.Param {
		t.Errorf("got %d %s", got.StatusCode, got.RawJSON())
	}
	if attempts != row.Attempts {
		t.Errorf("%d attempts, want %d", attempts, row.Attempts)
	}
	for _, part := range row.Says {
		if !strings.Contains(got.Message, part) {
			t.Errorf("the message lacks %q: %s", part, got.Message)
		}
	}
	for _, part := range row.SaysNot {
		if strings.Contains(got.RawJSON(), part) {
			t.Errorf("the error shows %q: %s", part, got.RawJSON())
		}
	}
	row.heads(t, got)
	if row.Details == nil {
		return
	}
	var body struct {
		Details map[string]any `json:"details"`
	}
	if err := json.Unmarshal([]byte(got.RawJSON()), &body); err != nil {
		t.Fatal(err)
	}
	for name, want := range row.Details {
		if body.Details[name] != want {
			t.Errorf("details.%s is %v, want %s", name, body.Details[name], want)
		}
	}
}

// heads checks the answer's headers.
func (row *refusal) heads(t *testing.T, got *openai.Error) {
	t.Helper()
	h, source := got.Response.Header, row.Source
	if source == "" {
		source = "gateway"
		if id := h.Get("X-Weir-Request-Id"); id == "" || !strings.Contains(got.Message, id) {
			t.Errorf("the message lacks the request's id %q: %s", id, got.Message)
		}
	}
	if h.Get("X-Weir-Error-Source") != source || h.Get("X-Request-Id") != h.Get("X-Weir-Request-Id") {
		t.Errorf("headers %v", h)
	}
	for name, pattern := range row.Headers {
		switch value := h.Get(name); {
		case pattern == nil && value != "":
			t.Errorf("%s is %q, want none", name, value)
		case pattern != nil && !regexp.MustCompile(*pattern).MatchString(value):
			t.Errorf("%s is %q, want %s", name, value, *pattern)
		}
	}
}

// TestABrokenStreamRaises: ERR-6.
func TestABrokenStreamRaises(t *testing.T) {
	t.Parallel()
	for _, row := range readTable(t).BrokenStreams {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			client, wire := newClient("plain", 2)
			got, err := drain(client.Chat.Completions.NewStreaming(t.Context(), chat(row.Model, 0)))
			if got.text == "" {
				t.Error("what came before is lost")
			}
			failed := new(ssestream.StreamError)
			if !errors.As(err, &failed) || !strings.Contains(string(failed.Event.Data), strconv.Quote(row.Code)) {
				t.Errorf("got %T: %v", err, err)
			}
			if n := len(wire.all()); n != 1 {
				t.Errorf("a stream that has started was sent %d times", n)
			}
		})
	}
}

// TestAClientThatWaitsAsItIsToldIsAdmitted: ERR-2, BR-137.
func TestAClientThatWaitsAsItIsToldIsAdmitted(t *testing.T) {
	t.Parallel()
	for _, row := range readTable(t).Waits {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			defer prepare(t, row)()
			client, wire := newClient(row.Key, 4)
			if err := send(t.Context(), client, "whole", chat("m", 0), nil); err != nil {
				t.Fatal(err)
			}
			attempts := wire.all()
			if len(attempts) < 2 || row.While == "" && len(attempts) > 2 {
				t.Fatalf("%d attempts", len(attempts))
			}
			for i, refused := range attempts[:len(attempts)-1] {
				told, err := strconv.Atoi(refused.header.Get("Retry-After"))
				waited := attempts[i+1].sent.Sub(refused.ended)
				if err != nil || told < 1 || refused.status != http.StatusTooManyRequests || waited < time.Duration(told)*time.Second {
					t.Errorf("%d: told %q, waited %s", refused.status, refused.header.Get("Retry-After"), waited)
				}
			}
		})
	}
}
