// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// field is one figure of a usage object.
type field uint8

const (
	inputTokens field = iota
	outputTokens
	cacheRead
	cacheWrite   // all of it
	cacheWrite5m // of which for five minutes
	cacheWrite1h // and for one hour
	thinking     // of outputTokens
	fieldCount
)

// report is the usage as the provider spells it. Counts are cumulative: the
// last value of each figure stands, and one left out or null changes nothing
// (USE-1).
type report struct {
	seen    bool
	figures [fieldCount]wire.Figure
	tools   call.ToolCalls
	beside  call.Usage // what the top-level figures leave out
	tier    string
	spoiled bool
	other   bool // some of it ran on another model
}

// read takes in a usage object; limit bounds each count.
func (r *report) read(s *wire.Scanner, limit int64) {
	if s.Null() {
		return
	}
	r.seen = true
	if s.Peek() != '{' {
		s.Skip()
		r.spoiled = true
		return
	}
	s.Object(func(key []byte) {
		switch string(key) {
		case "service_tier":
			if tier := s.StringOrSkip(); len(tier) > 0 {
				r.tier = string(tier)
			}
		case "server_tool_use":
			s.ObjectOrSkip(func(key []byte) { r.tool(s, key, limit) })
		case "iterations":
			r.iterations(s, limit)
		default:
			r.figure(s, key, limit)
		}
	})
}

// figure reads a member that is a count, or holds counts.
func (r *report) figure(s *wire.Scanner, key []byte, limit int64) {
	switch string(key) {
	case "input_tokens":
		r.figures[inputTokens].Read(s, limit)
	case "output_tokens":
		r.figures[outputTokens].Read(s, limit)
	case "cache_read_input_tokens":
		r.figures[cacheRead].Read(s, limit)
	case "cache_creation_input_tokens":
		r.figures[cacheWrite].Read(s, limit)
	case "cache_creation":
		r.details(s, inputTokens, func(key []byte) {
			switch string(key) {
			case "ephemeral_5m_input_tokens":
				r.figures[cacheWrite5m].Read(s, limit)
			case "ephemeral_1h_input_tokens":
				r.figures[cacheWrite1h].Read(s, limit)
			default:
				s.Skip()
			}
		})
	case "output_tokens_details":
		r.details(s, outputTokens, func(key []byte) {
			if string(key) == "thinking_tokens" {
				r.figures[thinking].Read(s, limit)
			} else {
				s.Skip()
			}
		})
	default:
		s.Skip()
	}
}

// details reads an object of parts; anything else makes the figure that they
// belong to unfit.
func (r *report) details(s *wire.Scanner, of field, member func(key []byte)) {
	switch s.Peek() {
	case 'n':
		s.Literal()
	case '{':
		s.Object(member)
	default:
		s.Skip()
		r.figures[of].Spoil()
	}
}

// tool reads how often one of the provider's own tools ran.
func (r *report) tool(s *wire.Scanner, key []byte, limit int64) {
	var name string
	switch string(key) {
	case "web_search_requests":
		name = call.WebSearch
	case "web_fetch_requests":
		name = call.WebFetch
	case "code_execution_requests":
		name = call.CodeExecution
	default:
		s.Skip()
		return
	}
	var f wire.Figure
	if f.Read(s, limit); f.Value() > 0 {
		r.tools.Set(name, f.Value())
	}
	r.spoiled = r.spoiled || f.Unfit()
}

// iterations reads the steps that an answer was made in. The top-level figures
// are the sum of its messages; compactions and other models' advice stand here
// alone, and are billed as well.
func (r *report) iterations(s *wire.Scanner, limit int64) {
	beside := call.Usage{}
	s.ArrayOrSkip(func() {
		var step report
		var kind string
		s.ObjectOrSkip(func(key []byte) {
			switch string(key) {
			case "type":
				kind = string(s.StringOrSkip())
			case "model":
				r.other = len(s.StringOrSkip()) > 0 || r.other
			default:
				step.figure(s, key, limit)
			}
		})
		if kind == "message" || kind == "" {
			return
		}
		if !step.fit() {
			r.spoiled = true
			return
		}
		u, _ := step.own()
		beside.Input += u.Input
		beside.CachedInput += u.CachedInput
		beside.CacheWrite5m += u.CacheWrite5m
		beside.CacheWrite1h += u.CacheWrite1h
		beside.Output += u.Output
		beside.Reasoning += u.Reasoning
	})
	r.beside = beside
}

func (r *report) get(f field) int64 { return r.figures[f].Value() }

// fit says whether the report can be charged: no figure unfit, input and output
// there (USE-1).
func (r *report) fit() bool {
	for i := range r.figures {
		if r.figures[i].Unfit() {
			return false
		}
	}
	return !r.spoiled && r.figures[inputTokens].Given() && r.figures[outputTokens].Given()
}

// own normalises the top-level figures, which are disjoint already but for the
// two kinds of cache writes: what their total has beyond them was written for
// five minutes, the protocol's default.
func (r *report) own() (u call.Usage, consistent bool) {
	u = call.Usage{
		Input: r.get(inputTokens), CachedInput: r.get(cacheRead), CacheWrite1h: r.get(cacheWrite1h),
		Output: r.get(outputTokens), Reasoning: r.get(thinking), Requests: 1, ServiceTier: r.tier,
	}
	five := r.get(cacheWrite5m)
	rest, ok := call.Remainder(r.get(cacheWrite), five, u.CacheWrite1h)
	if !r.figures[cacheWrite].Given() {
		rest, ok = 0, true
	}
	u.CacheWrite5m = five + rest
	if u.Reasoning > u.Output {
		u.Output, ok = u.Reasoning, false
	}
	return u, ok
}

// usage is all of a fit report.
func (r *report) usage() (u call.Usage, consistent bool) {
	u, consistent = r.own()
	u.Input += r.beside.Input
	u.CachedInput += r.beside.CachedInput
	u.CacheWrite5m += r.beside.CacheWrite5m
	u.CacheWrite1h += r.beside.CacheWrite1h
	u.Output += r.beside.Output
	u.Reasoning += r.beside.Reasoning
	u.Units.Tools = r.tools
	return u, consistent
}
