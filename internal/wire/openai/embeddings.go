// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Embeddings is the door POST /v1/embeddings. Vectors pass in the form in which
// they were asked for, base64 too.
type Embeddings struct{ Chat }

var embeddingsRules = wire.Rules{
	Decides:  []string{"model", "input", "user", "service_tier"},
	Required: []string{"model", "input"},
	Refused:  wire.RefusedMembers(),
	Unread:   []string{"dimensions", "encoding_format", "input_type", "truncate"},
}

// Decode reads a request of this door.
func (Embeddings) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	return decodeInput(call.OpenAIEmbeddings, &embeddingsRules, r.Body)
}

func decodeInput(door call.Door, rules *wire.Rules, body []byte) (*call.Call, *fault.Fault) {
	d := chatDecoder{wire.NewDecoder(door, body)}
	texts := int64(0)
	return d.Decode(rules, func(name string) {
		if name == "input" {
			texts = d.texts(name)
			return
		}
		d.decide(name)
	}, func() {
		if door == call.OpenAIModerations && d.Call.Model == "" {
			d.Call.Model = DefaultModeration
		}
		d.needs("input", texts)
	})
}

// Path is the door's at a provider.
func (Embeddings) Path(*call.Call, string) string { return "/embeddings" }

// Rewrite is wire.Door's. There is no output to bound.
func (Embeddings) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	return wire.RewriteObject(body, wire.Rewrite{Model: r.Model}, "max_tokens")
}

// Whole is wire.Door's: the usage has an input and no output.
func (Embeddings) Whole(body []byte, maxTokens int64) call.Observed {
	return readInput(body, maxTokens)
}

func readInput(body []byte, maxTokens int64) call.Observed {
	var t tally
	t.report.inputOnly = true
	r, ok := readChat(body, wire.CountLimit(maxTokens), &t.report, nil)
	if !ok {
		return call.Observed{Invalid: true}
	}
	t.take(&r)
	t.finished = !r.failed
	return t.observed()
}

// Moderations is the door POST /v1/moderations.
type Moderations struct{ Embeddings }

// DefaultModeration is the model that the protocol itself takes when a request
// names none.
const DefaultModeration = "omni-moderation-latest"

var moderationsRules = wire.Rules{
	Decides: []string{"model", "input", "user"}, Required: []string{"input"}, Refused: wire.RefusedMembers(),
}

// Decode reads a request of this door.
func (Moderations) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	return decodeInput(call.OpenAIModerations, &moderationsRules, r.Body)
}

// Path is the door's at a provider.
func (Moderations) Path(*call.Call, string) string { return "/moderations" }
