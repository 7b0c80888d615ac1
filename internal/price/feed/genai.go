// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"math/big"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// genaiParts are genai-prices' prices: of a million tokens, or of a thousand.
// The first that a model has of one part counts.
var genaiParts = []struct {
	field, part string
	shift       int
}{
	{"input_mtok", "input", 0},
	{"output_mtok", "output", 0},
	{"cache_read_mtok", "cached_input", 0},
	{"cache_write_5m_mtok", "cache_write_5m", 0},
	{"cache_write_mtok", "cache_write_5m", 0},
	{"cache_write_1h_mtok", "cache_write_1h", 0},
	{"input_audio_mtok", "audio_input", 0},
	{"cache_audio_read_mtok", "cached_audio_input", 0},
	{"output_audio_mtok", "audio_output", 0},
	{"input_image_mtok", "image_input", 0},
	{"output_image_mtok", "image_output", 0},
	{"requests_kcount", "per_request", -3},
	{"web_searches_kcount", "per_tool_call.web_search", -3},
	{"storage_searches_kcount", "per_tool_call.file_search", -3},
	{"code_executions_kcount", "per_tool_call.code_execution", -3},
}

// genaiHours are prices of an hour of audio.
var genaiHours = []struct{ field, part string }{
	{"input_audio_hours", "per_second_input"},
	{"output_audio_hours", "per_second_output"},
}

// genaiPrices reads data.json: a list of providers with a list of models each.
func (r *reader) genaiPrices(n *document.Node) {
	if providers := n.Member("providers"); providers != nil {
		n = providers
	}
	for _, provider := range n.Items {
		models := provider.Member("models")
		if models == nil {
			continue
		}
		for _, item := range models.Items {
			for _, name := range genaiNames(item) {
				r.genaiModel(text(provider, "id"), name, item.Member("prices"))
			}
		}
	}
}

// genaiNames are the names that a model is known by exactly: its own and those
// that its match equals. What only a pattern matches is no name.
func genaiNames(n *document.Node) []string {
	names := []string{text(n, "id")}
	var walk func(match *document.Node)
	walk = func(match *document.Node) {
		if match == nil || match.Kind != document.Object {
			return
		}
		if name := text(match, "equals"); name != "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, name)
		}
		if either := match.Member("or"); either != nil {
			for _, item := range either.Items {
				walk(item)
			}
		}
	}
	walk(n.Member("match"))
	return names
}

// genaiModel reads one model's prices, or each of those that hold from a day on.
func (r *reader) genaiModel(provider, name string, prices *document.Node) {
	if prices == nil || prices.Kind == document.Object {
		m := newModel(provider, name)
		m.genaiSet(prices)
		r.keep(m)
		return
	}
	var dated []*model
	for _, item := range prices.Items {
		m := newModel(provider, name)
		m.genaiSet(item.Member("prices"))
		if when := item.Member("constraint"); when != nil {
			day := text(when, "start_date")
			if day == "" {
				m.refuse("prices", "depend on the hour of the day, which an imported row can't")
			}
			m.fields["valid_from"] = day
		}
		if m.wrong != nil { // without one of them the others would hold too long
			dated = []*model{m}
			break
		}
		dated = append(dated, m)
	}
	for _, m := range dated {
		if _, from := m.fields["valid_from"]; from && len(m.fields) == 1 {
			delete(m.fields, "valid_from")
		}
		r.keep(m)
	}
}

func (m *model) genaiSet(n *document.Node) {
	if n == nil || n.Kind != document.Object {
		return
	}
	thresholds := m.genaiThresholds(n)
	for _, p := range genaiParts {
		value := n.Member(p.field)
		if _, taken := m.fields[p.part]; value == nil || taken {
			continue
		}
		for _, above := range append([]string{""}, thresholds...) {
			if above != "" && p.shift != 0 {
				break // what is priced by the piece has no tiers
			}
			key := p.part
			if above != "" {
				key = "above." + above + "." + key
			}
			m.set(key, p.field, genaiAbove(value, above), p.shift)
		}
	}
	m.reasoning("output_reasoning_mtok", genaiAbove(n.Member("output_reasoning_mtok"), ""), 0)
	for _, p := range genaiHours {
		m.hours(p.part, p.field, n.Member(p.field))
	}
	for _, member := range n.Members {
		if !genaiKnown(member.Name) {
			m.note(member.Name, "is left out: a row has no such price")
		}
	}
}

func genaiKnown(field string) bool {
	for _, p := range genaiParts {
		if p.field == field {
			return true
		}
	}
	for _, p := range genaiHours {
		if p.field == field {
			return true
		}
	}
	return field == "output_reasoning_mtok"
}

// genaiThresholds are where any of the prices changes.
func (m *model) genaiThresholds(n *document.Node) []string {
	var list []string
	for _, member := range n.Members {
		tiers := member.Value.Member("tiers")
		if tiers == nil {
			continue
		}
		for _, tier := range tiers.Items {
			start, ok := m.number(member.Name, tier.Member("start"))
			if ok && !slices.Contains(list, start.String()) {
				list = append(list, start.String())
			}
		}
	}
	return list
}

// genaiAbove is a price above a threshold, "" for below all. A price without
// tiers is the same in each.
func genaiAbove(n *document.Node, above string) *document.Node {
	if n == nil || n.Kind != document.Object {
		return n
	}
	found, tiers := n.Member("base"), n.Member("tiers")
	if above == "" || tiers == nil {
		return found
	}
	threshold, _ := new(big.Rat).SetString(above)
	for _, tier := range tiers.Items {
		start := tier.Member("start")
		if start == nil {
			continue
		}
		at, ok := new(big.Rat).SetString(start.Text)
		if ok && at.Cmp(threshold) <= 0 {
			found = tier.Member("price")
		}
	}
	return found
}

// hours takes a price of an hour as one of a second, where that is exact.
func (m *model) hours(key, field string, n *document.Node) {
	const secondsPerHour = 3600
	value, ok := m.number(field, n)
	if !ok {
		return
	}
	hour, err := value.Exact()
	switch {
	case err != nil:
		m.refuse(field, value.String()+" dollars "+err.Error())
	case hour%secondsPerHour != 0:
		m.note(field, "is left out: a second of it is no whole number of nano-dollars")
	default:
		m.fields[key] = (hour / secondsPerHour).String()
	}
}
