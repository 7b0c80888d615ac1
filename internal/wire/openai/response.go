// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// response is what an answer of /v1/responses amounts to, so far.
type response struct {
	tally
	id     string
	status string
	tools  call.ToolCalls // that the provider ran
	kept   kept
}

// Whole is wire.Door's. One that breaks off, or is broken, shows the output up
// to there and nothing else.
func (Responses) Whole(body []byte, maxTokens int64) call.Observed {
	var r response
	s := wire.NewScanner(body)
	r.object(&s, wire.CountLimit(maxTokens), true)
	s.End()
	if s.Err != nil {
		return call.Observed{OutputBytes: r.outputBytes, OutputSeen: r.output, Invalid: true}
	}
	r.finished = !r.failed && r.status != ""
	return r.observed()
}

func (r *response) observed() call.Observed {
	o := r.tally.observed()
	if o.Reported {
		searches := max(r.tools.Of(call.WebSearch), o.Usage.Units.Tools.Of(call.WebSearch))
		if o.Usage.Units.Tools = r.tools; searches > 0 {
			o.Usage.Units.Tools.Set(call.WebSearch, searches)
		}
	}
	switch r.status {
	case "completed", "incomplete", "failed":
		o.Kept = r.kept.list
	}
	return o
}

// object reads a response. Its output counts in a whole answer; the events of a
// stream have brought it by the time that the response repeats it.
func (r *response) object(s *wire.Scanner, limit int64, output bool) {
	var tools call.ToolCalls
	r.kept = kept{}
	s.Object(func(key []byte) {
		switch string(key) {
		case "id":
			r.id = string(s.StringOrSkip())
			r.kept.add(call.KeptResponse, r.id)
		case "store":
			r.kept.stored(s)
		case "conversation":
			r.kept.conversation(s)
		case "status":
			r.status = string(s.StringOrSkip())
		case "model":
			r.model = string(s.StringOrSkip())
		case "service_tier":
			if tier := s.StringOrSkip(); len(tier) > 0 {
				r.tier = string(tier)
			}
		case "usage":
			r.report.read(s, limit)
		case "error":
			r.failed = s.Present() || r.failed
		case "output":
			s.ArrayOrSkip(func() { r.item(s, output, &tools) })
		default:
			s.Skip()
		}
	})
	r.kept.settle()
	if tools != (call.ToolCalls{}) {
		r.tools = tools
	}
	r.failed = r.failed || r.status == "failed"
}

// item reads an item of the output, and counts calls of the provider's own tools.
func (r *response) item(s *wire.Scanner, output bool, tools *call.ToolCalls) {
	var kind string
	var bytes int64
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(s.StringOrSkip())
		case "id":
			r.kept.add(call.KeptItem, string(s.StringOrSkip()))
		case "container_id":
			r.kept.add(call.KeptContainer, string(s.StringOrSkip()))
		case "content", "summary":
			s.ArrayOrSkip(func() {
				s.ObjectOrSkip(func(key []byte) {
					switch string(key) {
					case "text", "refusal", "transcript":
						bytes += s.Text()
					case "annotations":
						s.ArrayOrSkip(func() { r.kept.annotation(s) })
					default:
						s.Skip()
					}
				})
			})
		case "name", "arguments", "input", "code":
			bytes += s.Text()
		default:
			s.Skip()
		}
	})
	if tool, called := strings.CutSuffix(kind, "_call"); called {
		if name := ownTool(tool); name != "" && name != unbilled {
			tools.Set(name, tools.Of(name)+1)
		}
	}
	if output {
		r.wrote(bytes)
	}
}

func (t *tally) wrote(bytes int64) {
	t.outputBytes += bytes
	t.output = t.output || bytes > 0
}

// responseStream reads the events of a response.
type responseStream struct {
	*wire.Feeder
	limit    int64
	response response
	sequence int64
}

// NewStream is wire.Door's.
func (Responses) NewStream(o wire.StreamOptions) wire.Stream {
	s := &responseStream{limit: wire.CountLimit(o.MaxTokens)}
	s.Feeder = wire.NewFeeder(o.MaxEventBytes, s.take)
	return s
}

// Observed is wire.Stream's.
func (s *responseStream) Observed() call.Observed { return s.response.observed() }

func (s *responseStream) take(dst []byte, e *wire.Event) []byte {
	in := wire.NewScanner(e.Data)
	before := s.response
	kind := s.event(&in)
	in.End()
	switch {
	case in.Err != nil:
		s.response = before // no event of the protocol: it shows nothing
	case kind == "error" || string(e.Name) == "error":
		s.response.failed = true
	case kind == "response.completed", kind == "response.incomplete":
		s.response.finished = !s.response.failed
	case kind == "response.failed":
		s.response.failed = true
	}
	e.Ping = kind == "keepalive" || kind == "ping"
	return append(dst, e.Raw...)
}

// event reads one event and returns its type. The text of a stream comes in
// deltas alone: what the events after them repeat is not counted again.
func (s *responseStream) event(in *wire.Scanner) (kind string) {
	var bytes int64
	in.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(in.StringOrSkip())
		case "sequence_number":
			if n, ok := wire.Whole([]byte(number(in))); ok {
				s.sequence = n
			}
		case "delta":
			bytes = in.Text()
		case "response":
			if in.Peek() == '{' {
				s.response.object(in, s.limit, false)
			} else {
				in.Skip()
			}
		case "error":
			s.response.failed = in.Present() || s.response.failed
		default:
			in.Skip()
		}
	})
	if strings.HasSuffix(kind, ".delta") && kind != "response.audio.delta" {
		s.response.wrote(bytes)
	}
	return kind
}

// Fault is f as the events that end a stream which has started (ERR-6): clients
// raise on response.failed alone, and others read error.
func (s *responseStream) Fault(f *fault.Fault, requestID string) []byte {
	message := f.Message
	if requestID != "" {
		message += " (request " + requestID + ")"
	}
	type reason struct {
		Code    fault.Code `json:"code"`
		Message string     `json:"message"`
	}
	failed := struct {
		Type     string `json:"type"`
		Sequence int64  `json:"sequence_number"`
		Response any    `json:"response"`
	}{"response.failed", s.sequence + 1, struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Status string `json:"status"`
		Model  string `json:"model,omitempty"`
		Output []int  `json:"output"`
		Error  reason `json:"error"`
	}{s.response.id, "response", "failed", s.response.model, []int{}, reason{f.Code, message}}}
	problem := struct {
		Type     string     `json:"type"`
		Sequence int64      `json:"sequence_number"`
		Code     fault.Code `json:"code"`
		Message  string     `json:"message"`
		Param    *string    `json:"param"`
	}{"error", s.sequence + 2, f.Code, message, nil}
	return append(named("response.failed", failed), named("error", problem)...)
}

// named is a server-sent event with a name.
func named(name string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil { // strings and numbers always marshal
		text = []byte(`{"type":"error","code":"internal_error","message":"internal error"}`)
	}
	return []byte("event: " + name + "\ndata: " + string(text) + "\n\n")
}
