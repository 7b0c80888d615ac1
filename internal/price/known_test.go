// SPDX-License-Identifier: Apache-2.0

package price_test

// wellKnown are figures that calcPrice of the source package gives for these
// names at 2026-09-23T02:00:00Z.
var wellKnown = []struct {
	provider, model string
	want            fields
}{
	{"openai", "gpt-4o", fields{"per_tool_call.file_search": "0.0025", "per_tool_call.web_search": "0.01", "input": "2.5", "cached_input": "1.25", "output": "10"}},
	{"openai", "gpt-4o-mini", fields{"per_tool_call.file_search": "0.0025", "per_tool_call.web_search": "0.01", "input": "0.15", "cached_input": "0.075", "output": "0.6"}},
	{"openai", "gpt-4.1", fields{"per_tool_call.file_search": "0.0025", "per_tool_call.web_search": "0.01", "input": "2", "cached_input": "0.5", "output": "8"}},
	{"openai", "gpt-4.1-nano", fields{"input": "0.1", "cached_input": "0.025", "output": "0.4"}},
	{"openai", "gpt-5", fields{"per_tool_call.file_search": "0.0025", "per_tool_call.web_search": "0.01", "input": "1.25", "cached_input": "0.125", "output": "10"}},
	{"openai", "gpt-5-mini", fields{"per_tool_call.file_search": "0.0025", "per_tool_call.web_search": "0.01", "input": "0.25", "cached_input": "0.025", "output": "2"}},
	{"openai", "o3", fields{"per_tool_call.file_search": "0.0025", "per_tool_call.web_search": "0.01", "input": "2", "cached_input": "0.5", "output": "8"}},
	{"openai", "gpt-4o-audio-preview", fields{"input": "2.5", "output": "10"}},
	{"openai", "gpt-image-1.5", fields{"input": "5", "cached_input": "1.25", "output": "10", "image_input": "8", "image_output": "32"}},
	{"openai", "gpt-5.6-sol", fields{"per_tool_call.file_search": "0.0025", "per_tool_call.web_search": "0.01", "input": "4", "above.271999.input": "8", "cache_write_5m": "5", "above.271999.cache_write_5m": "10", "cached_input": "0.4", "above.271999.cached_input": "0.8", "output": "20", "above.271999.output": "30"}},
	{"openai", "text-embedding-3-small", fields{"input": "0.02"}},
	{"anthropic", "claude-opus-4-1", fields{"per_tool_call.web_search": "0.01", "input": "15", "cache_write_5m": "18.75", "cached_input": "1.5", "output": "75", "cache_write_1h": "30"}},
	{"anthropic", "claude-sonnet-4-5", fields{"per_tool_call.web_search": "0.01", "input": "3", "above.200000.input": "6", "cache_write_5m": "3.75", "above.200000.cache_write_5m": "7.5", "cached_input": "0.3", "above.200000.cached_input": "0.6", "output": "15", "above.200000.output": "22.5", "cache_write_1h": "6", "above.200000.cache_write_1h": "12"}},
	{"anthropic", "claude-haiku-4-5", fields{"per_tool_call.web_search": "0.01", "input": "1", "cache_write_5m": "1.25", "cached_input": "0.1", "output": "5", "cache_write_1h": "2"}},
	{"google", "gemini-2.5-pro", fields{"input": "1.25", "above.200000.input": "2.5", "cached_input": "0.125", "above.200000.cached_input": "0.25", "output": "10", "above.200000.output": "15"}},
	{"google", "gemini-2.5-flash", fields{"input": "0.3", "cached_input": "0.03", "output": "2.5", "audio_input": "1", "cached_audio_input": "0.1"}},
	{"mistral", "mistral-medium-latest", fields{"input": "1.5", "cached_input": "0.15", "output": "7.5"}},
	{"deepseek", "deepseek-v4-pro", fields{"input": "1.32", "cached_input": "0.044", "output": "3.96"}},
	{"x-ai", "grok-4", fields{"input": "3", "cached_input": "0.75", "output": "15"}},
	{"perplexity", "sonar-pro", fields{"input": "3", "output": "15", "per_request": "0.014"}},
	{"aws", "amazon.nova-lite-v1:0", fields{"input": "0.06", "cached_input": "0.015", "output": "0.24"}},
	{"groq", "llama-3.3-70b-versatile", fields{"input": "0.59", "output": "0.79"}},
	{"moonshotai", "kimi-k3", fields{"input": "3", "cached_input": "0.3", "output": "15"}},
	{"openrouter", "x-ai/grok-4-fast", fields{"input": "0.2", "above.128000.input": "0.4", "cached_input": "0.05", "above.128000.cached_input": "0.05", "output": "0.5", "above.128000.output": "1"}},
}
