// SPDX-License-Identifier: Apache-2.0

package feed

import "strings"

// home is whose prices a provider of a list names: the catalogue's name of it, and
// whether the list's provider only resells there what another one sells first.
type home struct {
	name   string
	second bool
}

// homes are the lists' names of providers that the catalogue knows by another one.
// Only what is written here is put together: a name that merely looks like another
// (vertex_ai-openai_models) may have other prices. Of two that are one home, the
// rows of a second only fill what the first doesn't list.
var homes = map[string]home{
	"text-completion-openai":        {"openai", true},
	"gemini":                        {"google", false},
	"google-vertex":                 {"google", true},
	"google-vertex-anthropic":       {"google", true},
	"azure_ai":                      {"azure", true},
	"azure_text":                    {"azure", true},
	"azure-cognitive-services":      {"azure", true},
	"amazon-bedrock":                {"aws", false},
	"bedrock":                       {"aws", false},
	"bedrock_converse":              {"aws", false},
	"bedrock_mantle":                {"aws", true},
	"xai":                           {"x-ai", false},
	"togetherai":                    {"together", false},
	"together_ai":                   {"together", false},
	"fireworks-ai":                  {"fireworks", false},
	"fireworks_ai":                  {"fireworks", false},
	"fireworks_ai-embedding-models": {"fireworks", true},
	"cohere_chat":                   {"cohere", false},
	"moonshot":                      {"moonshotai", false},
	"codestral":                     {"mistral", true},
	"text-completion-codestral":     {"mistral", true},
	"voyage":                        {"voyageai", false},
	"github_copilot":                {"github-copilot", false},
	"bigmodel":                      {"zhipuai", false},
	"zai-coding-plan":               {"zai", true},
}

// homeOf finds the home of a list's provider: its own name where nothing else is
// known. All that LiteLLM lists of Vertex is Google's to bill.
func homeOf(name string) home {
	if h, ok := homes[name]; ok {
		return h
	}
	if name == "vertex_ai" || strings.HasPrefix(name, "vertex_ai-") {
		return home{"google", true}
	}
	return home{name: name}
}
