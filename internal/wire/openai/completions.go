// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Completions is the door POST /v1/completions. Its answers are a chat's but for
// where their text stands.
type Completions struct{ Chat }

var completionsRules = wire.Rules{
	Decides:  []string{"model", "prompt", "suffix", "max_tokens", "n", "best_of", "stream", "stream_options", "service_tier", "user"},
	Required: []string{"model", "prompt"},
	Refused:  wire.RefusedMembers(),
	Unread: []string{
		"echo", "frequency_penalty", "logit_bias", "logprobs", "presence_penalty", "seed", "stop", "temperature", "top_p",
	},
}

// Decode reads a request of this door. Each prompt of a list is answered so often
// as completions are asked for (EST-2).
func (Completions) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := chatDecoder{wire.NewDecoder(call.OpenAICompletions, r.Body)}
	completions, prompts := int64(1), int64(0)
	return d.Decode(&completionsRules, func(name string) {
		switch name {
		case "prompt":
			prompts = d.texts(name)
		case "suffix":
			d.Count(d.Text())
		case "n", "best_of":
			completions = max(completions, d.Integer(name, 1, wire.MaxCompletions))
		default:
			d.decide(name)
		}
	}, func() {
		d.needs("prompt", prompts)
		d.Call.Completions = completions * max(1, prompts)
	})
}

// needs refuses a request without a model or without anything to read.
func (d chatDecoder) needs(name string, texts int64) {
	if d.Call.Model == "" {
		d.Refuse("model", "model is required")
	}
	if texts == 0 {
		d.Refuse(name, "%s is required and not empty", name)
	}
}

// Path is the door's at a provider.
func (Completions) Path(*call.Call, string) string { return "/completions" }

// Rewrite is wire.Door's. This door has one member that bounds the output.
func (Completions) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	r.OutputField = ""
	return wire.RewriteObject(body, r, "max_tokens")
}

// maxTexts bounds the texts of one request.
const maxTexts = 4096

// texts reads one text or a list, each as a string or as tokens, and returns how
// many there are.
func (d chatDecoder) texts(name string) (n int64) {
	switch d.Peek() {
	case '"':
		d.Count(d.Text())
		return 1
	case '[':
	default:
		d.WrongType(name, "a string or an array")
		return 0
	}
	tokens := false
	d.Array(func() {
		switch d.Peek() {
		case '[':
			n++
			d.Array(func() { d.token(name) })
		case '"', '{':
			n++
			d.Count(d.Text())
		default:
			tokens = true
			d.token(name)
		}
		if n > maxTexts {
			d.Refuse(name, "%s has more than %d texts", name, maxTexts)
		}
	})
	if tokens {
		n++
	}
	return n
}

// token reads one token that the client has counted itself.
func (d chatDecoder) token(name string) {
	if c := d.Peek(); c < '0' || c > '9' {
		d.WrongType(name, "a string, or whole numbers")
		return
	}
	d.Number()
	d.Count(call.DefaultBytesPerToken)
}
