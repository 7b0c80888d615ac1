// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const apiKey = "sk-simulated"

// rig is a started simulator with clients of its own.
type rig struct {
	*simulator.Server
	t    *testing.T
	http *http.Client
}

func start(t *testing.T, o simulator.Options) *rig {
	t.Helper()
	r := &rig{Server: simulator.New(o), t: t, http: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.http.CloseIdleConnections()
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) official() openai.Client {
	return openai.NewClient(option.WithBaseURL(r.URL()+"/v1"), option.WithAPIKey(apiKey), option.WithHTTPClient(r.http), option.WithMaxRetries(0))
}

// post sends a body and gives the answer, whose error is the transport's.
func (r *rig) post(ctx context.Context, body string, header ...string) (*http.Response, error) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+apiKey)
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	return r.http.Do(q)
}

// ask posts and reads to the end.
func (r *rig) ask(body string, header ...string) (status int, h http.Header, text string, err error) {
	r.t.Helper()
	a, err := r.post(r.t.Context(), body, header...)
	if err != nil {
		return 0, nil, "", err
	}
	defer a.Body.Close()
	all, err := io.ReadAll(a.Body)
	return a.StatusCode, a.Header, string(all), err
}

func (r *rig) await(want func(simulator.Totals) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	if err := r.Await(ctx, want); err != nil {
		r.t.Fatalf("%v: %+v", err, r.Bill().Totals)
	}
}

func (r *rig) idle() { r.t.Helper(); r.await(func(t simulator.Totals) bool { return t.InFlight == 0 }) }

// body is a request with a prompt of 12 bytes, 3 tokens.
func body(model string, more ...string) string {
	fields := append([]string{`"model":"` + model + `"`, `"messages":[{"role":"user","content":"Hello there."}]`}, more...)
	return "{" + strings.Join(fields, ",") + "}"
}

const (
	streamed = `"stream":true`
	asked    = `"stream":true,"stream_options":{"include_usage":true}`
)

// events are the data of an SSE body.
func events(text string) (data []string) {
	scan := bufio.NewScanner(strings.NewReader(text))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		if d, ok := strings.CutPrefix(scan.Text(), "data: "); ok {
			data = append(data, d)
		}
	}
	return data
}

type chunk struct {
	Choices []struct {
		Index        int64
		Delta        struct{ Content string }
		FinishReason *string `json:"finish_reason"`
	}
	Usage json.RawMessage
}

func content(t *testing.T, text string) (content string, usages []string) {
	t.Helper()
	for _, d := range events(text) {
		if d == "[DONE]" {
			break
		}
		var c chunk
		if err := json.Unmarshal([]byte(d), &c); err != nil {
			t.Fatalf("%v: %s", err, d)
		}
		if len(c.Usage) > 0 {
			usages = append(usages, string(c.Usage))
		}
		if len(c.Choices) > 0 {
			content += c.Choices[0].Delta.Content
		}
	}
	return content, usages
}

func TestTheOfficialClientReadsWholeAndStreamedAnswers(t *testing.T) {
	r := start(t, simulator.Options{})
	client := r.official()
	for _, c := range []struct {
		name, model   string
		bound         int64
		input, output int64
		cached        int64
		reasoning     int64
		textBytes     int
		finish        string
	}{
		{"counts that the script names", "sim?in=10&out=5", 0, 10, 5, 0, 0, 20, "stop"},
		{"the bound of the request", "sim?in=10&out=50", 7, 10, 7, 0, 0, 28, "length"},
		{"a provider that pays no heed to it", "sim?out=50&unbounded", 7, 3, 50, 0, 0, 200, "stop"},
		{"reasoning and cache", "sim?in=100&out=500&reasoning=480&cached=60&chunk=7", 0, 100, 500, 60, 480, 80, "stop"},
		{"bytes apart from tokens", "sim?out=200&bytes=600&chunk=1", 0, 3, 200, 0, 0, 600, "stop"},
		{"nothing at all", "sim?in=0&out=0", 0, 0, 0, 0, 0, 0, "stop"},
		{"gzip and odd framing", "sim?out=9&gzip&crlf&ping&split=3&join=2", 0, 3, 9, 0, 0, 36, "stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Reset()
			params := openai.ChatCompletionNewParams{
				Model:    c.model,
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello there.")},
			}
			if c.bound > 0 {
				params.MaxCompletionTokens = openai.Int(c.bound)
			}
			whole, err := client.Chat.Completions.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			check := func(how string, u openai.CompletionUsage, text, finish, model string) {
				t.Helper()
				got := []any{u.PromptTokens, u.CompletionTokens, u.TotalTokens, u.PromptTokensDetails.CachedTokens, u.CompletionTokensDetails.ReasoningTokens, len(text), finish, model}
				want := []any{c.input, c.output, c.input + c.output, c.cached, c.reasoning, c.textBytes, c.finish, "sim"}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s:\n%s", how, d)
				}
			}
			choice := whole.Choices[0]
			check("whole", whole.Usage, choice.Message.Content, choice.FinishReason, whole.Model)

			params.StreamOptions.IncludeUsage = openai.Bool(true)
			stream := client.Chat.Completions.NewStreaming(t.Context(), params)
			var all openai.ChatCompletionAccumulator
			for stream.Next() {
				all.AddChunk(stream.Current())
			}
			if err := errors.Join(stream.Err(), stream.Close()); err != nil {
				t.Fatal(err)
			}
			check("streamed", all.Usage, all.Choices[0].Message.Content, all.Choices[0].FinishReason, all.Model)
			if all.Choices[0].Message.Content != choice.Message.Content || all.ID != whole.ID {
				t.Error("the stream says other than the whole answer")
			}
			line := r.Bill().Line(apiKey, c.model)
			if line.Input != 2*c.input || line.Output != 2*c.output || line.Requests != 2 {
				t.Errorf("bill: %+v", line)
			}
		})
	}
}

func TestTheOfficialClientMapsErrorsAndListsModels(t *testing.T) {
	r := start(t, simulator.Options{Models: []string{"a", "b"}, Keys: []string{apiKey}})
	client := r.official()
	page, err := client.Models.List(t.Context())
	if err != nil || len(page.Data) != 2 || page.Data[1].ID != "b" {
		t.Fatalf("models: %+v, %v", page, err)
	}
	_, err = client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "sim?status=429&retry=7", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")},
	})
	fault, ok := errors.AsType[*openai.Error](err)
	if !ok || fault.StatusCode != http.StatusTooManyRequests || fault.Code != "simulated_error" || fault.Response.Header.Get("Retry-After") != "7" {
		t.Fatalf("got %v", err)
	}
	other := openai.NewClient(option.WithBaseURL(r.URL()+"/v1"), option.WithAPIKey("other"), option.WithHTTPClient(r.http), option.WithMaxRetries(0))
	if _, err := other.Models.List(t.Context()); err == nil {
		t.Error("an unknown key was accepted")
	}
	if b := r.Bill(); b.Refused != 1 || b.Input != 0 || b.Line(apiKey, "sim?status=429&retry=7").Errors != 1 {
		t.Errorf("bill: %+v", b)
	}
}

func TestTheSameRequestHasTheSameAnswer(t *testing.T) {
	r := start(t, simulator.Options{})
	for _, more := range []string{`"n":1`, `"n":3`, streamed, asked, streamed + `,"n":2`} {
		_, _, first, _ := r.ask(body("sim-gpt", more))
		_, _, second, _ := r.ask(body("sim-gpt", more))
		if first != second || first == "" {
			t.Errorf("%s: %s\nand then %s", more, first, second)
		}
	}
}

func TestUsageIsReportedAsTheModeSays(t *testing.T) {
	r := start(t, simulator.Options{})
	const whole = `{"prompt_tokens":3,"completion_tokens":8,"total_tokens":11,`
	for _, c := range []struct {
		mode, whole        string   // beginning of the whole answer's usage, "" when there is none
		unasked, withAsked []string // beginnings of the stream's usages
	}{
		{"", whole, nil, []string{"null", "null", "null", "null", whole}},
		{"always", whole, []string{whole}, []string{"null", "null", "null", "null", whole}},
		{"none", "", nil, nil},
		{"null", "null", []string{"null", "null", "null", "null"}, []string{"null", "null", "null", "null", "null"}},
		{
			"each", whole,
			[]string{`{"prompt_tokens":3,"completion_tokens":4,`, whole, whole},
			[]string{"null", `{"prompt_tokens":3,"completion_tokens":4,`, whole, whole},
		},
		{"finish", whole, []string{whole}, []string{whole}},
		{"partial", `{"completion_tokens":8}`, nil, []string{"null", "null", "null", "null", `{"completion_tokens":8}`}},
		{"inconsistent", `{"prompt_tokens":3,"completion_tokens":8,"total_tokens":18,`, nil, []string{"null", "null", "null", "null", `{"prompt_tokens":3,"completion_tokens":8,"total_tokens":18,`}},
		{"zero", `{"prompt_tokens":0,"completion_tokens":0,`, nil, []string{"null", "null", "null", "null", `{"prompt_tokens":0,`}},
		{"negative", `{"prompt_tokens":-3,"completion_tokens":-8,`, nil, []string{"null", "null", "null", "null", `{"prompt_tokens":-3,`}},
		{"huge", `{"prompt_tokens":1000000000000,`, nil, []string{"null", "null", "null", "null", `{"prompt_tokens":1000000000000,`}},
		{"overflow", `{"prompt_tokens":99999999999999999999,`, nil, []string{"null", "null", "null", "null", `{"prompt_tokens":99999999999999999999,`}},
		{"string", `{"prompt_tokens":"3","completion_tokens":"8",`, nil, []string{"null", "null", "null", "null", `{"prompt_tokens":"3",`}},
		{"fraction", `{"prompt_tokens":3.5,"completion_tokens":8.5,`, nil, []string{"null", "null", "null", "null", `{"prompt_tokens":3.5,`}},
	} {
		t.Run("usage="+c.mode, func(t *testing.T) {
			r.Reset()
			model := simulator.Behaviour{Output: simulator.Exactly(8), Usage: simulator.UsageMode(c.mode)}.Model("sim")
			_, _, text, err := r.ask(body(model))
			if err != nil || !json.Valid([]byte(text)) {
				t.Fatalf("%v: %s", err, text)
			}
			_, usage, has := strings.Cut(text, `"usage":`)
			if has != (c.whole != "") || !strings.HasPrefix(usage, c.whole) {
				t.Errorf("whole: %s", usage)
			}
			for how, want := range map[string][]string{streamed: c.unasked, asked: c.withAsked} {
				_, _, text, err := r.ask(body(model, how))
				said, usages := content(t, text)
				if err != nil || len(said) != 32 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
					t.Errorf("%v: %s", err, text)
				}
				if len(usages) != len(want) {
					t.Fatalf("%s: usages %q, want %q", how, usages, want)
				}
				for i := range want {
					if !strings.HasPrefix(usages[i], want[i]) {
						t.Errorf("%s: usage %d is %s, want %s", how, i, usages[i], want[i])
					}
				}
			}
			if line := r.Bill().Line(apiKey, model); line.Input != 9 || line.Output != 24 {
				t.Errorf("bill: %+v", line)
			}
		})
	}
}
