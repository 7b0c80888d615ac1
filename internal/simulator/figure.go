// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// figure answers what has no text: counts, vectors, verdicts, images, sounds.
func (x *exchange) figure() {
	x.status = http.StatusOK
	body, kind := x.figureBody()
	if kind != "" {
		x.kind = kind
	}
	body = x.padded(body, len(body)-1)
	if x.b.Invalid {
		body[len(body)-1] = ']'
	}
	if !x.passGates() {
		return
	}
	x.produced = x.plan.choices * x.plan.output
	sent := len(body)
	switch at := x.b.Break.At; {
	case x.b.Break.Manner == "":
	case x.b.Break.Manner == BreakError:
		x.kind = ""
		body = x.speech.failure(nil, x.brokenError(), &x.plan, false)
		sent = len(body)
	case at == AfterEvents(0):
		sent = 0
	case at.Place == PlaceDone:
		sent = len(body) - 1
	default: // in the middle of it
		sent = max(1, int(x.figureAt(body)))
	}
	x.sendWhole(body, sent)
}

// figureAt is where an answer breaks off that is to break in its middle: a
// transcript after so much of its text, anything else at its half.
func (x *exchange) figureAt(body []byte) int64 {
	switch at := x.b.Break.At; {
	case x.q.Path != transcriptPath:
		return int64(len(body) / 2)
	case at.Place == PlaceUsage || at.Events > x.plan.events():
		return int64(len(transcriptHead)) + x.plan.text + 1
	default:
		return int64(len(transcriptHead)) + x.plan.offset(at.Events)
	}
}

const transcriptHead = `{"text":"`

func (x *exchange) figureBody() (body []byte, kind string) {
	number := func(dst []byte, n int64) []byte { return x.plan.appendNumber(dst, n) }
	input, output := x.plan.input, x.plan.choices*x.plan.output
	switch x.q.Path {
	case countPath:
		return append(strconv.AppendInt([]byte(`{"input_tokens":`), input, 10), '}'), ""
	case embeddingsPath:
		body = []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.75]}],"model":"` + x.plan.model + `"`)
		if x.b.Usage != UsageNone {
			body = number(append(body, `,"usage":{"prompt_tokens":`...), input)
			body = append(number(append(body, `,"total_tokens":`...), input), '}')
		}
		return append(body, '}'), ""
	case moderationsPath:
		return []byte(`{"id":"modr-1","model":"` + x.plan.model + `","results":[{"flagged":false,"categories":{},"category_scores":{}}]}`), ""
	case imagesPath:
		body = []byte(`{"created":` + created + `,"data":[{"b64_json":"aW1hZ2U="}]`)
		if x.b.Usage != UsageNone {
			body = number(append(body, `,"usage":{"input_tokens":`...), input)
			body = number(append(body, `,"output_tokens":`...), output)
			body = append(number(append(body, `,"total_tokens":`...), input+output), '}')
		}
		return append(body, '}'), ""
	case speechPath:
		return []byte("ID3 this is no music"), "audio/mpeg"
	case transcriptPath:
		body = append(appendText([]byte(transcriptHead), 0, x.plan.text), '"')
		if x.b.Usage != UsageNone {
			body = number(append(body, `,"usage":{"type":"tokens","input_tokens":`...), input)
			body = number(append(body, `,"output_tokens":`...), output)
			body = append(number(append(body, `,"total_tokens":`...), input+output), '}')
		}
		return append(body, '}'), ""
	}
	if x.q.Counts {
		return append(strconv.AppendInt([]byte(`{"totalTokens":`), input, 10), '}'), ""
	}
	const vector = `{"values":[0.25,-0.5,0.75]}`
	body = []byte(`{"embedding":` + vector)
	if strings.HasSuffix(x.q.Path, geminiBatch) {
		list := slices.Repeat([]string{vector}, int(x.q.Messages))
		body = []byte(`{"embeddings":[` + strings.Join(list, ",") + "]")
	}
	if x.b.Usage != UsageNone {
		body = append(number(append(body, `,"usageMetadata":{"promptTokenCount":`...), input), '}')
	}
	return append(body, '}'), ""
}
