// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Embed is the door :embedContent.
type Embed struct{ Generate }

var embedRules = wire.Rules{
	Snake:    true,
	Decides:  []string{"model", "content", "title"},
	Required: []string{"content"},
	Refused:  wire.RefusedMembers(),
	Unread:   []string{"taskType", "task_type", "outputDimensionality", "output_dimensionality"},
}

// Decode reads a request of this door. It has no output that costs.
func (Embed) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := decoder{wire.NewDecoder(call.GeminiEmbed, r.Body)}
	return d.read(&embedRules, r.Model)
}

// Path is the door's at a provider.
func (Embed) Path(_ *call.Call, model string) string { return modelPath(model) + ":embedContent" }

// Rewrite is wire.Door's.
func (Embed) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	return rewrite(body, wire.Rewrite{Model: r.Model})
}

// EmbedBatch is the door :batchEmbedContents, which Google's own clients embed
// with: requests of Embed, all to one model.
type EmbedBatch struct{ Embed }

var batchRules = wire.Rules{
	Snake:    true,
	Decides:  []string{"model", "requests"},
	Required: []string{"requests"},
	Refused:  wire.RefusedMembers(),
}

// Decode reads a request of this door.
func (EmbedBatch) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := decoder{wire.NewDecoder(call.GeminiEmbedBatch, r.Body)}
	return d.read(&batchRules, r.Model)
}

func (d decoder) batch() {
	d.Objects("requests", func() {
		before := d.Call.Prompt.Messages
		d.Members("requests.", &embedRules, d.decide)
		if d.Call.Prompt.Messages == before {
			d.Refuse("requests.content", "requests.content is required")
		}
	})
}

// Path is the door's at a provider.
func (EmbedBatch) Path(_ *call.Call, model string) string {
	return modelPath(model) + ":batchEmbedContents"
}
