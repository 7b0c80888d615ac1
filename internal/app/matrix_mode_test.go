// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/gateway"
)

// mode is one way to ask at a door: a row of the route table, whole or streamed.
type mode struct {
	route  gateway.Route
	stream bool
	array  bool // a stream that is one JSON array
	facts  doorFacts
}

// doorFacts is what the matrix has to know of a door.
type doorFacts struct {
	streams bool
	// input is what doorRequest's prompt is estimated at (EST-1), by hand: a token
	// for three of its bytes, 3 for the request, 4 for a message.
	input int64
	// text: the output is text, whose bytes tell its tokens where nothing else does.
	text bool
	// media: it is images or sound, of which a part is worth something.
	media bool
	// usage: the answer tells it.
	usage bool
}

// factsOf is the table of doors. A door that is added has to be added here.
func factsOf(t *testing.T, door call.Door) doorFacts {
	t.Helper()
	switch door {
	case call.OpenAIChat, call.AnthropicMessages, call.GeminiGenerate:
		return doorFacts{streams: true, input: 9, text: true, usage: true}
	case call.OpenAIResponses:
		return doorFacts{streams: true, input: 9, text: true, usage: true}
	case call.OpenAICompletions:
		return doorFacts{streams: true, input: 5, text: true, usage: true}
	case call.OpenAITranscriptions: // nine bytes of sound are no whole token
		return doorFacts{streams: true, input: 3, text: true, usage: true}
	case call.OpenAIImages:
		return doorFacts{streams: true, input: 5, media: true, usage: true}
	case call.OpenAISpeech:
		return doorFacts{streams: true, input: 5, media: true}
	case call.OpenAIEmbeddings:
		return doorFacts{input: 5, usage: true}
	case call.GeminiEmbed, call.GeminiEmbedBatch:
		return doorFacts{input: 9, usage: true}
	case call.OpenAIModerations:
		return doorFacts{input: 5}
	case call.AnthropicCountTokens, call.GeminiCountTokens:
		return doorFacts{}
	default:
		t.Fatalf("say how the requests of door %q end", door)
		return doorFacts{}
	}
}

// modesOf lists every way to ask, from the running server's own route table.
func modesOf(t *testing.T, routes []gateway.Route) (list []mode) {
	t.Helper()
	for _, route := range routes {
		if !route.Governed {
			continue
		}
		facts := factsOf(t, route.Door)
		switch {
		case strings.HasSuffix(route.Path, ":streamGenerateContent"):
			list = append(list, mode{route: route, stream: true, facts: facts}, mode{route: route, stream: true, array: true, facts: facts})
		case facts.streams && route.Door != call.GeminiGenerate:
			list = append(list, mode{route: route, facts: facts}, mode{route: route, stream: true, facts: facts})
		default:
			list = append(list, mode{route: route, facts: facts})
		}
	}
	return list
}

func (m mode) String() string {
	name := strings.ReplaceAll(m.route.Path, "/", " ")[1:]
	switch {
	case m.array:
		name += ", as an array"
	case m.stream:
		name += ", streamed"
	}
	return name
}

// whole: the answer is no stream.
func (m mode) whole() bool { return !m.stream }

// counts: it only counts, and costs nothing.
func (m mode) counts() bool { return m.route.Door.Counts() }

// path is where a request for a model goes.
func (m mode) path(model string) string {
	path := strings.ReplaceAll(m.route.Path, "{model}", model)
	if strings.HasSuffix(path, ":streamGenerateContent") && !m.array {
		path += "?alt=sse"
	}
	return path
}

// ended tells whether a stream's body has the end of one that is complete.
func (m mode) ended(body string) bool {
	body = strings.ReplaceAll(body, "\r\n", "\n")
	switch m.route.Door {
	case call.OpenAIChat, call.OpenAICompletions:
		return strings.HasSuffix(body, "data: [DONE]\n\n")
	case call.OpenAIResponses:
		return strings.Contains(body, "event: response.completed\n")
	case call.OpenAIImages:
		return strings.Contains(body, "event: image_generation.completed\n")
	case call.OpenAISpeech:
		return strings.Contains(body, "event: speech.audio.done\n")
	case call.OpenAITranscriptions:
		return strings.Contains(body, "event: transcript.text.done\n")
	case call.AnthropicMessages:
		return strings.Contains(body, "event: message_stop\n")
	default:
		return strings.Contains(body, `"finishReason":"STOP"`) && (!m.array || json.Valid([]byte(body)))
	}
}

// failed tells whether a stream's body ends in the protocol's own error event
// (ERR-6); ours tells a failure of the gateway's finding from the provider's word.
func (m mode) failed(body string, ours bool) bool {
	switch {
	case m.array:
		var elements []struct{ Error json.RawMessage }
		return json.Unmarshal([]byte(body), &elements) == nil && elements[len(elements)-1].Error != nil
	case m.route.Door == call.OpenAIResponses && ours:
		return strings.Contains(body, "event: response.failed\n") && strings.Contains(body, "event: error\n")
	case m.route.Door == call.OpenAIChat, m.route.Door == call.OpenAICompletions, m.route.Door == call.GeminiGenerate:
		return strings.Contains(body, `data: {"error":`)
	default:
		return strings.Contains(body, "event: error\n")
	}
}

// third is what shows that three events with output have come.
func (m mode) third(body string) bool {
	switch m.route.Door {
	case call.OpenAIImages:
		return strings.Contains(body, `"partial_image_index":2`)
	case call.OpenAISpeech:
		return strings.Count(body, `"audio":"SUQz"`) == 3
	default:
		return strings.Contains(body, "et, consecte")
	}
}

// variants are how a provider's row can be set; each is a model for each protocol,
// at a provider of HTTP/1.1 and at one of HTTP/2.
var variants = map[string]string{
	"plain":   "",
	"other":   "",
	"drain":   ", client_gone: drain",
	"cancel":  ", client_gone: cancel",
	"mute":    ", timeouts: {first_byte: 1s}",
	"idle":    ", timeouts: {idle: 1s}",
	"brief":   ", timeouts: {total: 1s}",
	"narrow":  ", bounds: {max_answer_bytes: 2048, max_event_bytes: 2048}",
	"lenient": ", charge_partial_on_upstream_failure: false",
}

// matrixModel is the name of a variant's model.
func (m mode) matrixModel(variant string, h2 bool) string {
	name := m.route.Door.Protocol() + "-" + variant
	if h2 {
		name += "-h2"
	}
	return name
}

// matrixModels declares them, with one of each protocol that has no price.
func matrixModels(second, roots string) string {
	const price = `price: {input: "1", output: "10", per_second_input: "0", per_second_output: "0"}`
	var providers, models strings.Builder
	for _, protocol := range []string{"openai", "anthropic", "gemini"} {
		for variant, row := range variants {
			for _, h2 := range []bool{false, true} {
				name, base, more := protocol+"-"+variant, "%PROVIDER%", row
				if h2 {
					name, base, more = name+"-h2", second+"/v1", row+`, ca_file: "`+roots+`"`
				}
				if protocol == "gemini" {
					base += "beta"
				}
				providers.WriteString("  - {name: " + name + ", protocol: " + protocol + `, base_url: "` + base + `", api_key: ` + providerCredential + more + "}\n")
				models.WriteString("  - {name: " + name + ", provider: " + name + ", upstream: sim, context_tokens: 128000, max_output_tokens: 100, " + price + "}\n")
			}
		}
		models.WriteString("  - {name: " + protocol + "-bare, provider: " + protocol + "-plain, upstream: nothing-that-has-a-price}\n")
	}
	return "providers:\n" + providers.String() + "models:\n" + models.String()
}
