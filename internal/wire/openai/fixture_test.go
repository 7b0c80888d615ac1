// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

// expectation is what a recorded answer shows, worked out by hand from the file.
type expectation struct {
	file        string
	interaction int
	want        call.Usage // zero: nothing reported
	failed      bool
	bytes       int64 // output bytes, -1: not worked out
	mark        call.Mark
}

const (
	agentgateway = "agentgateway/crates__llm__src__tests__response__completions__"
	envoy        = "envoy-ai-gateway/tests__internal__testopenai__cassettes__"
	pydantic     = "pydantic-ai/tests__models__cassettes__"
	thinking     = "pydantic-ai/tests__cassettes__test_thinking_wire_contract__test_reasoning_wire_contract"
	tier         = "default"
)

var own = []expectation{
	{file: "answer.json", want: call.Usage{Input: 18, CachedInput: 32, Output: 9, ServiceTier: "priority"}, bytes: 15},
	{file: "stream.txt", want: call.Usage{Input: 6, Output: 3}, bytes: 7},
}

var recorded = []expectation{
	{file: agentgateway + "basic.json", want: call.Usage{Input: 17, Output: 23, ServiceTier: tier}, bytes: 106},
	{file: agentgateway + "cache_write.json", want: call.Usage{Input: 500, CachedInput: 300, CacheWrite5m: 200, Output: 10, ServiceTier: tier}, bytes: 15},
	{file: agentgateway + "gemini_zero_completion_tokens.json", want: call.Usage{Input: 7, Output: 1}, mark: call.MarkInconsistent},
	{file: agentgateway + "gemini_with_completion_tokens.json", want: call.Usage{Input: 7, Output: 395}, mark: call.MarkInconsistent, bytes: 55},
	{file: agentgateway + "openrouter_reasoning.json", want: call.Usage{Input: 23, Output: 796}, bytes: 12 + 40},
	{file: agentgateway + "audio.json", want: call.Usage{Input: 68, CachedInput: 12, AudioInput: 240, Output: 90, AudioOutput: 90, Reasoning: 15, ServiceTier: tier}, bytes: 44 + 44},
	{file: agentgateway + "tool_call.json", want: call.Usage{Input: 25, Output: 18, ServiceTier: tier}, bytes: 11 + 48 + 10 + 22},
	{file: agentgateway + "truncated_tool_call.json", want: call.Usage{Input: 20, Output: 15}, bytes: 11 + 17},
	{file: agentgateway + "stream.json", want: call.Usage{Input: 18, Output: 286, Reasoning: 192, ServiceTier: tier}, bytes: 356},
	{file: envoy + "azure-chat-basic.yaml", want: call.Usage{Input: 8, Output: 271, Reasoning: 192}, bytes: 304},
	{file: envoy + "chat-basic.yaml", want: call.Usage{Input: 8, Output: 377, Reasoning: 320, ServiceTier: tier}, bytes: 208},
	{file: envoy + "chat-audio-to-text.yaml", want: call.Usage{Input: 27, AudioInput: 1, Output: 17, ServiceTier: tier}, bytes: 73},
	{file: envoy + "chat-bad-request.yaml", failed: true},
	{file: envoy + "chat-unknown-model.yaml", failed: true},
	{file: envoy + "chat-image-to-text.yaml", want: call.Usage{Input: 22, Output: 719, Reasoning: 704, ServiceTier: tier}, bytes: 30},
	{file: envoy + "chat-json-mode.yaml", want: call.Usage{Input: 21, Output: 280, Reasoning: 256, ServiceTier: tier}, bytes: 53},
	{file: envoy + "chat-multimodal.yaml", want: call.Usage{Input: 2245, Output: 100, Reasoning: 100, ServiceTier: tier}},
	{file: envoy + "chat-multiturn.yaml", want: call.Usage{Input: 50, Output: 526, Reasoning: 512, ServiceTier: tier}, bytes: 20},
	{file: envoy + "chat-parallel-tools.yaml", want: call.Usage{Input: 162, Output: 219, Reasoning: 192, ServiceTier: tier}, bytes: 51},
	{file: envoy + "chat-reasoning.yaml", want: call.Usage{Input: 27, Output: 267, Reasoning: 192, ServiceTier: tier}, bytes: 140},
	{file: envoy + "chat-web-search.yaml", want: call.Usage{Input: 26, Output: 22}, bytes: 80},
	{file: envoy + "chat-streaming-detailed-usage.yaml", want: call.Usage{Input: 12, Output: 100, Reasoning: 100, ServiceTier: tier}},
	{file: envoy + "chat-streaming-web-search.yaml", bytes: -1},
	{file: pydantic + "test_deepseek__test_deepseek_model_thinking_stream.yaml", want: call.Usage{Input: 6, Output: 212, Reasoning: 198}, bytes: -1},
	{file: pydantic + "test_cerebras__test_cerebras_model_simple.yaml", want: call.Usage{Input: 43, Output: 9}, bytes: 10},
	{file: pydantic + "test_cerebras__test_cerebras_thinking_part_survives_multiturn.yaml", want: call.Usage{Input: 79, Output: 37, Reasoning: 25}, bytes: -1},
	{file: pydantic + "test_cerebras__test_cerebras_thinking_part_survives_multiturn.yaml", interaction: 1, want: call.Usage{Input: 98, Output: 47, Reasoning: 27}, bytes: -1},
	{file: pydantic + "test_cerebras__test_cerebras_zai_reasoning_replayed_as_think_tags.yaml", want: call.Usage{Input: 17, Output: 415, Reasoning: 406}, bytes: -1},
	{file: pydantic + "test_openai__test_openai_model_cerebras_provider.yaml", want: call.Usage{Input: 42, Output: 8}, bytes: -1},
	{file: pydantic + "test_openai__test_openai_model_cerebras_provider_harmony.yaml", want: call.Usage{Input: 74, Output: 36}, bytes: -1},
	{file: thinking + "[cerebras-gpt-oss-always-on].yaml", want: call.Usage{Input: 80, Output: 45, Reasoning: 34}, bytes: -1},
	{file: thinking + "[cerebras-zai-clear-thinking].yaml", want: call.Usage{Input: 18, Output: 2}, bytes: -1},
	{file: pydantic + "test_openai_prompt_cache__test_openai_chat_prompt_cache_e2e.yaml", want: call.Usage{Input: 8, CacheWrite5m: 4012, Output: 4, ServiceTier: tier}, bytes: -1},
	{file: pydantic + "test_openai_prompt_cache__test_openai_chat_prompt_cache_e2e.yaml", interaction: 1, want: call.Usage{Input: 8, CachedInput: 4012, Output: 4, ServiceTier: tier}, bytes: -1},
	{file: pydantic + "test_openrouter__test_openrouter_stream_error.yaml", want: call.Usage{Input: 43, Output: 11, Reasoning: 11}, failed: true, mark: call.MarkInconsistent, bytes: -1},
	{file: pydantic + "test_openrouter__test_openrouter_stream_with_native_options.yaml", want: call.Usage{Input: 8, CachedInput: 679, Output: 187, Reasoning: 118}, bytes: -1},
	{file: pydantic + "test_openrouter__test_openrouter_usage.yaml", want: call.Usage{Input: 17, Output: 1515, Reasoning: 704}, bytes: -1},
	{file: pydantic + "test_groq__test_tool_use_failed_error_streaming.yaml", failed: true, bytes: -1},
	{file: pydantic + "test_groq__test_tool_use_failed_error_streaming.yaml", interaction: 1, want: call.Usage{Input: 304, Output: 49, Reasoning: 23}, bytes: -1},
}

func TestOwnAnswersReadAsWorkedOut(t *testing.T) {
	for _, e := range own {
		checkFixture(t, "testdata", e)
	}
}

// The recorded traffic of real providers is not part of the repository;
// WEIR_FIXTURES names its folder.
func TestRecordedAnswersReadAsWorkedOut(t *testing.T) {
	folder := os.Getenv("WEIR_FIXTURES")
	if folder == "" {
		folder = filepath.Join(moduleRoot(t), "..", "shared", "fixtures")
	}
	if _, err := os.Stat(folder); err != nil {
		t.Logf("no recorded traffic at %s: the package's own answers are what is checked", folder)
		return
	}
	for _, e := range recorded {
		checkFixture(t, folder, e)
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("no go.mod above the package")
		}
	}
}

func checkFixture(t *testing.T, folder string, e expectation) {
	t.Helper()
	t.Run(filepath.Base(e.file), func(t *testing.T) {
		text := answer(t, filepath.Join(folder, e.file), e.interaction)
		var got call.Observed
		if strings.Contains(text[:min(len(text), 200)], "data: ") || strings.HasPrefix(text, ": ") {
			var out string
			out, got = run(t, wire.StreamOptions{}, text)
			if out != text {
				t.Error("the stream did not pass byte for byte")
			}
			hidden, again := run(t, wire.StreamOptions{HideUsage: true}, strings.SplitAfter(text, "e")...)
			if strings.Contains(hidden, `"usage":{"prompt`) || again.Usage != got.Usage {
				t.Errorf("hidden: %+v", again)
			}
		} else {
			got = openai.Chat{}.Whole([]byte(text), 0)
		}
		want := e.want
		if want != (call.Usage{}) {
			want.Requests = 1
		}
		if got.Usage != want || got.Reported != (want != call.Usage{}) || got.ErrorSeen != e.failed {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if e.bytes >= 0 && got.OutputBytes != e.bytes {
			t.Errorf("%d bytes of output, want %d", got.OutputBytes, e.bytes)
		}
		if len(got.Marks) > 0 && got.Marks[0] != e.mark || len(got.Marks) == 0 && e.mark != "" {
			t.Errorf("marks %v, want %q", got.Marks, e.mark)
		}
	})
}

// answer is a file's text, or the body of one response of a cassette.
func answer(t *testing.T, path string, interaction int) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) != ".yaml" {
		return string(text)
	}
	var cassette struct {
		Interactions []struct {
			Response struct {
				Body   any `yaml:"body"`
				Parsed any `yaml:"parsed_body"`
			} `yaml:"response"`
		} `yaml:"interactions"`
	}
	if err := yaml.Unmarshal(text, &cassette); err != nil {
		t.Fatal(err)
	}
	response := cassette.Interactions[interaction].Response
	if response.Parsed != nil {
		parsed, err := json.Marshal(response.Parsed)
		if err != nil {
			t.Fatal(err)
		}
		return string(parsed)
	}
	if body, ok := response.Body.(map[string]any); ok {
		response.Body = body["string"]
	}
	body, ok := response.Body.(string)
	if !ok {
		t.Fatalf("a response body of %T", response.Body)
	}
	return body
}
