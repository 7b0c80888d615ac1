// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"testing"

	"github.com/weirhq/weir/internal/route"
)

// USE-1: a provider's dialect is what it was given, else what its address is known
// for, and nothing that merely looks like one.
func TestADialectIsDetectedByTheAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1":                 "openai",
		"https://eu.api.openai.com/v1":              "openai",
		"https://corp.openai.azure.com/openai":      "azure",
		"https://api.deepseek.com":                  "deepseek",
		"https://api.groq.com/openai/v1":            "groq",
		"https://API.Mistral.ai/v1":                 "mistral",
		"https://api.x.ai/v1":                       "xai",
		"https://openrouter.ai/api/v1":              "openrouter",
		"https://api.together.xyz/v1":               "together",
		"https://api.fireworks.ai/inference/v1":     "fireworks",
		"http://127.0.0.1:11434/v1":                 "ollama",
		"https://ollama.com/v1":                     "ollama",
		"https://api.perplexity.ai":                 "perplexity",
		"https://api.cerebras.ai/v1":                "cerebras",
		"https://api.moonshot.cn/v1":                "moonshot",
		"http://gpu:8000/v1":                        "",
		"https://notopenrouter.ai/v1":               "",
		"https://openrouter.ai.example.com/v1":      "",
		"https://proxy.example.com/api.mistral.ai":  "",
		"https://proxy.example.com:8443/x?y=11434z": "",
	} {
		p := route.NewProvider("id", "name")
		p.BaseURL = address
		if got := p.Speaks(); got != want {
			t.Errorf("%s: %q", address, got)
		}
		if tells := want == "mistral" || want == "perplexity"; p.TellsStreamUsage() != tells {
			t.Errorf("%s: tells its usage: %v", address, !tells)
		}
		p.Dialect = "mistral"
		if p.Speaks() != "mistral" || !p.TellsStreamUsage() {
			t.Errorf("%s: its own dialect is %q", address, p.Speaks())
		}
		p.Dialect, p.Protocol = "", route.Anthropic
		if p.Speaks() != "" || p.TellsStreamUsage() {
			t.Errorf("%s of another protocol: %q", address, p.Speaks())
		}
	}
	versioned := route.NewProvider("id", "name")
	versioned.BaseURL, versioned.APIVersion = "https://proxy.example.com/openai", "2024-10-21"
	if versioned.Speaks() != "azure" {
		t.Errorf("Azure behind a proxy: %q", versioned.Speaks())
	}
}
