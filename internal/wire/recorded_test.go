// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/anthropic"
	"github.com/weirhq/weir/internal/wire/gemini"
	"github.com/weirhq/weir/internal/wire/openai"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

const (
	agentgateway = "agentgateway/crates__llm__src__tests__response__"
	envoy        = "envoy-ai-gateway/tests__internal__testopenai__cassettes__"
	pydantic     = "pydantic-ai/tests__models__cassettes__"
	thinking     = "pydantic-ai/tests__cassettes__test_thinking_wire_contract__test_reasoning_wire_contract"
	vercel       = "vercel-ai/packages__"
)

// recorded are the doors with the recorded answers that they read.
func recorded() []group {
	return []group{
		{"chat", openai.Chat{}, chat},
		{"responses", openai.Responses{}, responses},
		{"completions", openai.Completions{}, completions},
		{"embeddings", openai.Embeddings{}, embeddings},
		{"images", openai.Images{}, images},
		{"transcriptions", openai.Transcriptions{}, transcriptions},
		{"messages", anthropic.Messages{}, messages},
		{"count_tokens", anthropic.CountTokens{}, messageCounts},
		{"generateContent", gemini.Generate{}, generations},
		{"countTokens", gemini.CountTokens{}, geminiCounts},
	}
}

type group struct {
	name string
	door wire.Door
	list []wiretest.Expectation
}

func TestRecordedAnswersReadAsWorkedOut(t *testing.T) { // USE-1
	for _, g := range recorded() {
		t.Run(g.name, func(t *testing.T) { wiretest.Recorded(t, g.door, g.list) })
	}
}

// notOurs are parts of the names of files that no door reads, with the reason.
var notOurs = map[string]string{
	"bedrock":                             "Amazon's own protocol",
	"ohere":                               "Cohere's own protocol",
	"__rerank":                            "there is no door for it",
	"test_responses_count_tokens":         "an endpoint that is no door: /v1/responses/input_tokens",
	"test_responses_usage_limit_exceeded": "the same endpoint",
	"groq-transcription-text":             "an answer wrapped by its test, not as it was sent",
}

// TestEveryRecordedFileIsWorkedOut: a file that is added needs an expectation.
func TestEveryRecordedFileIsWorkedOut(t *testing.T) { // USE-1
	folder, ok := wiretest.Folder(t)
	if !ok {
		return
	}
	known := map[string]bool{"README.md": true, "index.json": true}
	for _, g := range recorded() {
		for i := range g.list {
			known[g.list[i].File] = true
		}
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); !known[name] && !foreign(name) {
			t.Errorf("no expectation covers %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func foreign(name string) bool {
	for part := range notOurs {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
