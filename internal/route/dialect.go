// SPDX-License-Identifier: Apache-2.0

package route

import (
	"net/url"
	"slices"
	"strings"
)

// dialects are the ways with a protocol that are known here, and where they are
// spoken. What an answer says is read in every dialect alike: no two servers mean
// different things by one member. A dialect decides what is asked for.
var dialects = []struct {
	name string
	// hosts are the ends of host names, or a port where it begins with a colon.
	hosts []string
	// tells: every stream has its usage, and asking for it is at best unknown there.
	tells bool
}{
	{"openai", []string{"api.openai.com"}, false},
	{"azure", []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"}, false},
	{"cerebras", []string{"api.cerebras.ai"}, false},
	{"deepseek", []string{"api.deepseek.com"}, false},
	{"fireworks", []string{"api.fireworks.ai"}, false},
	{"groq", []string{"api.groq.com"}, false},
	{"mistral", []string{"api.mistral.ai"}, true},
	{"moonshot", []string{"api.moonshot.ai", "api.moonshot.cn"}, false},
	{"ollama", []string{"ollama.com", ":11434"}, false},
	{"openrouter", []string{"openrouter.ai"}, false},
	{"perplexity", []string{"api.perplexity.ai"}, true},
	{"together", []string{"api.together.xyz", "api.together.ai"}, false},
	{"vllm", nil, false},
	{"xai", []string{"api.x.ai"}, false},
}

// Speaks is the provider's dialect of OpenAI's protocol: the one that it was given,
// else the one that its address is known for; "" is the protocol as published.
func (p *Provider) Speaks() string {
	if p.Dialect != "" || p.Protocol != OpenAI {
		return p.Dialect
	}
	if p.APIVersion != "" {
		return "azure"
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return ""
	}
	host, port := strings.ToLower(u.Hostname()), ":"+u.Port()
	for _, d := range dialects {
		if slices.ContainsFunc(d.hosts, func(end string) bool {
			return port == end || host == end || strings.HasPrefix(end, ".") && strings.HasSuffix(host, end) || strings.HasSuffix(host, "."+end)
		}) {
			return d.name
		}
	}
	return ""
}

// TellsStreamUsage says that its streams have their usage whether it is asked for or
// not (USE-1).
func (p *Provider) TellsStreamUsage() bool {
	name := p.Speaks()
	for _, d := range dialects {
		if d.name == name {
			return d.tells
		}
	}
	return false
}
