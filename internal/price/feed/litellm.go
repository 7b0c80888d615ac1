// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// liteLLMParts are LiteLLM's prices of one token and the parts that they are.
// The first that a model has of one part counts.
var liteLLMParts = []struct{ field, part string }{
	{"input_cost_per_token", "input"},
	{"output_cost_per_token", "output"},
	{"cache_read_input_token_cost", "cached_input"},
	{"input_cost_per_token_cache_hit", "cached_input"},
	{"cache_creation_input_token_cost", "cache_write_5m"},
	{"cache_creation_input_token_cost_above_1hr", "cache_write_1h"},
	{"input_cost_per_audio_token", "audio_input"},
	{"cache_read_input_audio_token_cost", "cached_audio_input"},
	{"output_cost_per_audio_token", "audio_output"},
	{"input_cost_per_image_token", "image_input"},
	{"output_cost_per_image_token", "image_output"},
}

var (
	liteLLMAbove = regexp.MustCompile(`^(.+)_above_(\d{1,6})k_tokens$`)
	liteLLMTier  = regexp.MustCompile(`^(.+)_(flex|priority|batches|ultrafast|balanced)$`)
)

// liteLLM reads model_prices_and_context_window.json: an object of models, each
// with prices in dollars for one token, image, second or call.
func (r *reader) liteLLM(n *document.Node) {
	for _, member := range n.Members {
		if member.Name == "sample_spec" || member.Value.Kind != document.Object {
			continue
		}
		provider := text(member.Value, "litellm_provider")
		m := newModel(provider, liteLLMName(provider, member.Name))
		m.liteLLMTokens(member.Value)
		m.liteLLMUnits(member.Value)
		m.liteLLMTiers(member.Value)
		m.liteLLMReasoning(member.Value)
		r.keep(m)
	}
}

// liteLLMName is the provider's own name of a model: LiteLLM writes its name of
// the provider before it.
func liteLLMName(provider, name string) string {
	head, rest, ok := strings.Cut(name, "/")
	if ok && (head == provider || strings.HasPrefix(provider, head+"_") || strings.HasPrefix(provider, head+"-")) {
		return rest
	}
	return name
}

func text(n *document.Node, member string) string {
	if v := n.Member(member); v != nil && v.Kind == document.String {
		return v.Text
	}
	return ""
}

// liteLLMTokens reads prices of tokens: standard ones, and those above so many
// thousand tokens of input.
func (m *model) liteLLMTokens(n *document.Node) {
	for _, p := range liteLLMParts {
		if _, taken := m.fields[p.part]; !taken {
			m.set(p.part, p.field, n.Member(p.field), perMillion)
		}
	}
	for _, member := range n.Members {
		match := liteLLMAbove.FindStringSubmatch(member.Name)
		if match == nil {
			continue
		}
		if part, ok := liteLLMPart(match[1]); ok {
			m.set("above."+match[2]+"000."+part, member.Name, member.Value, perMillion)
		}
	}
	ranges := n.Member("tiered_pricing")
	if ranges == nil || ranges.Kind != document.Array {
		return
	}
	for _, item := range ranges.Items {
		m.liteLLMRange(item)
	}
}

// liteLLMRange reads an item of tiered_pricing: prices and the range of input
// tokens that they are for.
func (m *model) liteLLMRange(n *document.Node) {
	bounds := n.Member("range")
	if bounds == nil || bounds.Kind != document.Array || len(bounds.Items) == 0 {
		m.refuse("tiered_pricing", "has an item without a range")
		return
	}
	from, ok := m.number("tiered_pricing", bounds.Items[0])
	if !ok {
		m.refuse("tiered_pricing", "has a range that begins nowhere")
		return
	}
	prefix := ""
	if !from.IsZero() {
		prefix = "above." + from.String() + "."
	}
	for _, p := range liteLLMParts {
		m.set(prefix+p.part, p.field, n.Member(p.field), perMillion)
	}
}

func liteLLMPart(field string) (string, bool) {
	for _, p := range liteLLMParts {
		if p.field == field {
			return p.part, true
		}
	}
	return "", false
}

// liteLLMTiers reads the prices of service tiers.
func (m *model) liteLLMTiers(n *document.Node) {
	tiers := make(map[string]*model)
	for _, member := range n.Members {
		match := liteLLMTier.FindStringSubmatch(member.Name)
		if match == nil {
			continue
		}
		field, above := match[1], ""
		if long := liteLLMAbove.FindStringSubmatch(field); long != nil {
			field, above = long[1], "above."+long[2]+"000."
		}
		part, ok := liteLLMPart(field)
		if !ok {
			continue
		}
		name := strings.TrimSuffix(match[2], "es") // batches
		if tiers[name] == nil {
			tiers[name] = newModel(m.provider, m.name)
		}
		tiers[name].set(above+part, member.Name, member.Value, perMillion)
	}
	for name, tier := range tiers {
		if tier.wrong != nil {
			m.refuse(tier.wrong.Field, tier.wrong.Text)
			return
		}
		m.service(name, tier.fields)
	}
}

// liteLLMUnits reads prices of what is no token. A model that is listed by the
// token and by the second, or by the image, too is billed by the token.
func (m *model) liteLLMUnits(n *document.Node) {
	_, tokens := m.fields["input"]
	m.set("per_request", "input_cost_per_request", n.Member("input_cost_per_request"), 0)
	switch text(n, "mode") {
	case "audio_transcription":
		m.byUnit("per_second_input", "input_cost_per_second", n, tokens)
	case "audio_speech":
		m.byUnit("per_second_output", "output_cost_per_second", n, tokens)
	case "image_generation", "image_edit":
		m.byUnit("per_image", "output_cost_per_image", n, tokens)
	}
	if maps := n.Member("google_maps_grounding_cost_per_query"); maps != nil {
		m.set("per_tool_call.maps_search", "google_maps_grounding_cost_per_query", maps, 0)
	}
	if search := n.Member("search_context_cost_per_query"); search != nil && search.Kind == document.Object {
		m.liteLLMSearch(search)
	}
}

func (m *model) byUnit(key, field string, n *document.Node, tokens bool) {
	if tokens && n.Member(field) != nil {
		m.note(field, "is left out: the model is priced by the token, too")
		return
	}
	m.set(key, field, n.Member(field), 0)
}

// liteLLMSearch reads the price of a web search, which may depend on how much the
// search reads: the dearest is taken.
func (m *model) liteLLMSearch(n *document.Node) {
	const key, field = "per_tool_call.web_search", "search_context_cost_per_query"
	dearest := newModel(m.provider, m.name)
	for i, member := range n.Members {
		dearest.set(strconv.Itoa(i), field, member.Value, 0)
	}
	if dearest.wrong != nil {
		m.refuse(field, dearest.wrong.Text)
		return
	}
	for _, value := range dearest.fields {
		now, ok := m.fields[key]
		if q, comparable := ratio(value, now); !ok || now == "0" || comparable && q.Cmp(one) > 0 {
			m.fields[key] = value
		}
	}
	for _, value := range dearest.fields {
		if value != m.fields[key] {
			m.note(field, "differs by the size of the search: the dearest is taken")
			return
		}
	}
}

// liteLLMReasoning refuses a model whose reasoning is priced otherwise than its
// output, of which it is a part.
func (m *model) liteLLMReasoning(n *document.Node) {
	m.reasoning("output_cost_per_reasoning_token", n.Member("output_cost_per_reasoning_token"), perMillion)
}
