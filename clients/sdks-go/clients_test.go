// SPDX-License-Identifier: Apache-2.0

package sdksgo_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// refused is what an error of a client says, whichever it is; empty members are
// those that the client does not have.
type refused struct {
	status         int
	kind, code, id string
	text           string
}

// client is one of the clients, each as a user has it.
type client struct {
	name string
	// send makes one call, repeated at most so often, to the answer's end.
	send func(ctx context.Context, w *wire, row *kind, streamed bool, retries int) error
	// refusal takes the client's own error apart; ok is false for another one.
	refusal func(err error) (r refused, ok bool)
	// again tells whether the client repeats a request that was refused so.
	again func(row *kind) bool
}

func told(row *kind) bool { return row.Again }

var all = []client{
	{"anthropic", sendAnthropic, anthropicRefusal, told},
	{"openai responses", sendResponse, openAIRefusal, told},
	// Google's clients repeat by status alone.
	{"google", sendGoogle, googleRefusal, func(row *kind) bool { return row.Status == 429 || row.Status >= 500 }},
}

// text is a row's prompt, output its bound, model its model at a protocol.
func (row *kind) text() string {
	return cmp.Or(strings.Repeat("x", row.TextBytes), "hello there")
}

func (row *kind) output() int64 { return cmp.Or(row.Output, 100) }

func (row *kind) model(usual, suffix string) string {
	if row.Model == "" {
		return usual
	}
	return row.Model + suffix
}

func newAnthropic(w *wire, row *kind, retries int) anthropic.Client {
	return anthropic.NewClient(
		anthropicoption.WithBaseURL(at(row, false)), anthropicoption.WithAPIKey("the-secret-of-"+row.Key),
		anthropicoption.WithMaxRetries(retries), anthropicoption.WithHTTPClient(w.client()),
	)
}

func message(row *kind) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: row.model("messages", "-messages"), MaxTokens: row.output(),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(row.text()))},
	}
}

func sendAnthropic(ctx context.Context, w *wire, row *kind, streamed bool, retries int) error {
	c := newAnthropic(w, row, retries)
	if !streamed {
		_, err := c.Messages.New(ctx, message(row))
		return err
	}
	_, err := readMessage(ctx, &c, message(row))
	return err
}

func readMessage(ctx context.Context, c *anthropic.Client, p anthropic.MessageNewParams) (got anthropic.Message, err error) {
	stream := c.Messages.NewStreaming(ctx, p)
	for stream.Next() {
		if err := got.Accumulate(stream.Current()); err != nil {
			return got, err
		}
	}
	return got, stream.Err()
}

func anthropicRefusal(err error) (r refused, ok bool) {
	var failed *anthropic.Error
	if !errors.As(err, &failed) {
		return r, false
	}
	var body struct {
		Error struct{ Code string }
	}
	if err := json.Unmarshal([]byte(failed.RawJSON()), &body); err != nil {
		return r, false
	}
	return refused{failed.StatusCode, string(failed.Type()), body.Error.Code, failed.RequestID, failed.Error()}, true
}

func newOpenAI(w *wire, row *kind, retries int) openai.Client {
	return openai.NewClient(
		option.WithBaseURL(at(row, true)), option.WithAPIKey("the-secret-of-"+row.Key),
		option.WithMaxRetries(retries), option.WithHTTPClient(w.client()),
	)
}

func response(row *kind) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: row.model("m", ""), MaxOutputTokens: openai.Int(row.output()),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(row.text())},
	}
}

func sendResponse(ctx context.Context, w *wire, row *kind, streamed bool, retries int) error {
	c := newOpenAI(w, row, retries)
	if !streamed {
		_, err := c.Responses.New(ctx, response(row))
		return err
	}
	_, err := readResponse(ctx, &c, response(row))
	return err
}

// readResponse returns the response of the stream's last event that has one.
func readResponse(ctx context.Context, c *openai.Client, p responses.ResponseNewParams) (got responses.Response, err error) {
	stream := c.Responses.NewStreaming(ctx, p)
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "response.completed", "response.failed", "response.incomplete":
			got = event.Response
		}
	}
	return got, stream.Err()
}

func openAIRefusal(err error) (r refused, ok bool) {
	var failed *openai.Error
	if !errors.As(err, &failed) {
		return r, false
	}
	return refused{failed.StatusCode, failed.Type, failed.Code, failed.Response.Header.Get("X-Request-Id"), failed.Message}, true
}

func newGoogle(ctx context.Context, w *wire, row *kind, retries int) (*genai.Client, error) {
	attempts, soon := int32(retries)+1, 0.05
	return genai.NewClient(ctx, &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "the-secret-of-" + row.Key, HTTPClient: w.client(),
		HTTPOptions: genai.HTTPOptions{
			BaseURL:      at(row, false),
			RetryOptions: &genai.HTTPRetryOptions{Attempts: &attempts, InitialDelay: &soon, Jitter: &soon},
		},
	})
}

func sendGoogle(ctx context.Context, w *wire, row *kind, streamed bool, retries int) error {
	c, err := newGoogle(ctx, w, row, retries)
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	model, config := row.model("contents", "-contents"), &genai.GenerateContentConfig{MaxOutputTokens: int32(row.output())}
	if !streamed {
		_, err := c.Models.GenerateContent(ctx, model, genai.Text(row.text()), config)
		return err
	}
	for _, err := range c.Models.GenerateContentStream(ctx, model, genai.Text(row.text()), config) {
		if err != nil {
			return err
		}
	}
	return nil
}

func googleRefusal(err error) (r refused, ok bool) {
	var failed genai.APIError
	if !errors.As(err, &failed) {
		return r, false
	}
	r = refused{status: failed.Code, text: failed.Message}
	for _, detail := range failed.Details {
		if reason, ok := detail["reason"].(string); ok {
			r.code = reason
		}
	}
	return r, true
}
