// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"math/big"

	"github.com/weirhq/weir/internal/document"
)

var one = big.NewRat(1, 1)

// modelsDevParts are models.dev's prices of a million tokens.
var modelsDevParts = []struct{ field, part string }{
	{"input", "input"},
	{"output", "output"},
	{"cache_read", "cached_input"},
	{"cache_write", "cache_write_5m"},
	{"input_audio", "audio_input"},
	{"output_audio", "audio_output"},
}

// modelsDev reads api.json: an object of providers with an object of models each,
// whose cost is in dollars for a million tokens.
func (r *reader) modelsDev(n *document.Node) {
	if providers := n.Member("providers"); providers != nil {
		n = providers
	}
	for _, provider := range n.Members {
		models := provider.Value.Member("models")
		if models == nil || models.Kind != document.Object {
			continue
		}
		for _, member := range models.Members {
			m := newModel(provider.Name, member.Name)
			if cost := member.Value.Member("cost"); cost != nil && cost.Kind == document.Object {
				m.modelsDevCost(cost)
			}
			r.keep(m)
		}
	}
}

func (m *model) modelsDevCost(n *document.Node) {
	for _, p := range modelsDevParts {
		m.set(p.part, "cost."+p.field, n.Member(p.field), 0)
	}
	m.reasoning("cost.reasoning", n.Member("reasoning"), 0)
	tiers := n.Member("tiers")
	if tiers != nil && tiers.Kind == document.Array && len(tiers.Items) > 0 {
		for _, item := range tiers.Items {
			m.modelsDevTier(item)
		}
		return
	}
	if long := n.Member("context_over_200k"); long != nil && long.Kind == document.Object {
		m.modelsDevAbove("200000", long)
	}
}

func (m *model) modelsDevTier(n *document.Node) {
	const field = "cost.tiers"
	tier := n.Member("tier")
	if tier == nil || text(tier, "type") != "context" {
		m.refuse(field, "has a tier that is none of the context's length")
		return
	}
	if size, ok := m.number(field, tier.Member("size")); ok {
		m.modelsDevAbove(size.String(), n)
		return
	}
	m.refuse(field, "has a tier without a size")
}

func (m *model) modelsDevAbove(threshold string, n *document.Node) {
	for _, p := range modelsDevParts {
		m.set("above."+threshold+"."+p.part, "cost."+p.field, n.Member(p.field), 0)
	}
}

// reasoning refuses a model whose reasoning costs something else than its output:
// a row prices it as the part of output that it is.
func (m *model) reasoning(field string, n *document.Node, shift int) {
	const key = "reasoning"
	m.set(key, field, n, shift)
	value, ok := m.fields[key]
	delete(m.fields, key)
	if ok && value != "0" && value != m.fields["output"] {
		m.refuse(field, "prices reasoning at "+value+" dollars a million tokens and not as output, of which it is a part")
	}
}
