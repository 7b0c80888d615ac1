// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
)

// Chat is the door POST /v1/chat/completions. It has no state.
type Chat struct{}

// Bounds on what enters.
const (
	maxModelBytes  = 200           // KEY-5
	maxCompletions = 128           // the protocol's own bound on n
	maxOutput      = 1_000_000_000 // tokens a request (SPEC section 1)
)

// chatMembers are the members of a request that decide something here. Each
// stands at most once and in exactly this spelling: some servers take another
// letter case for the same member, so a second one could ask the provider for
// something else than what was checked (ERR-5).
var chatMembers = [...]string{
	"model", "messages", "tools", "functions", "response_format", "prediction",
	"max_tokens", "max_completion_tokens", "n", "best_of",
	"stream", "stream_options", "service_tier", "user", "metadata",
}

// refusedMembers name an address, a credential or further models, none of which
// is ever taken from a request (ERR-5): a provider that honours "models" or
// "fallbacks" would answer with one that was neither allowed nor priced.
var refusedMembers = [...]string{"api_base", "base_url", "api_key", "models", "fallbacks"}

// chatSettings are the protocol's members that no model reads as text. Any
// other member counts as prompt text, because servers of this protocol have
// members of their own that do reach the model ("documents", "chat_template").
var chatSettings = [...]string{
	"audio", "frequency_penalty", "function_call", "logit_bias", "logprobs", "modalities",
	"parallel_tool_calls", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning",
	"reasoning_effort", "safety_identifier", "seed", "stop", "store", "temperature", "tool_choice",
	"top_logprobs", "top_p", "verbosity", "web_search_options",
}

// memberError is a member that is JSON but not the protocol's.
type memberError struct{ param, what string }

func (e *memberError) Error() string { return e.what }

// Decode reads a request of this door strictly (ERR-5) and measures its prompt
// (EST-1). Everything that it refuses is a 400 that names the member.
//
// When both output bounds are given, the least is the call's, and Rewrite
// clamps both. Audio and files in the body count as text of their decoded size:
// no codec or format in use gives more than a token for three of its bytes.
func (Chat) Decode(body []byte) (*call.Call, *fault.Fault) {
	d := chatDecoder{
		scanner: scanner{b: body},
		call:    call.Call{Door: call.OpenAIChat, OutputBound: call.NoBound, Completions: 1},
	}
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidRequest, "the body is not UTF-8")
	}
	if d.peek() != '{' {
		return nil, fault.New(fault.InvalidRequest, "the body is not a JSON object")
	}
	d.object(d.member)
	d.end()
	if d.err == nil && d.call.Model == "" {
		d.refuse("model", "model is required")
	}
	if d.err == nil && d.call.Prompt.Messages == 0 {
		d.refuse("messages", "messages is required and not empty")
	}
	if d.err != nil {
		return nil, invalid(d.err)
	}
	c := d.call
	return &c, nil
}

// invalid is the 400 for a decoding error.
func invalid(err error) *fault.Fault {
	var member *memberError
	if errors.As(err, &member) {
		f := fault.New(fault.InvalidRequest, "%s", member.what)
		f.Param = member.param
		return f
	}
	return fault.New(fault.InvalidRequest, "the body is not valid JSON: %s", err)
}

type chatDecoder struct {
	scanner
	call call.Call
	seen uint32 // bits by index into chatMembers
}

func (d *chatDecoder) refuse(param, format string, args ...any) {
	if d.err == nil {
		d.err = &memberError{param, fmt.Sprintf(format, args...)}
	}
}

func (d *chatDecoder) member(key []byte) {
	i := d.find(key)
	if d.err != nil {
		return
	}
	if i < 0 {
		d.other(key)
		return
	}
	name := chatMembers[i]
	if d.seen&(1<<i) != 0 {
		d.refuse(name, "%s stands twice", name)
		return
	}
	d.seen |= 1 << i
	if name != "model" && name != "messages" && d.null() {
		return
	}
	switch name {
	case "model":
		d.call.Model = d.model()
	case "messages":
		d.messages()
	case "tools", "functions":
		d.tools(name)
	case "response_format":
		d.definition()
	case "prediction":
		d.prediction()
	case "max_tokens", "max_completion_tokens":
		d.outputBound(name)
	case "n", "best_of":
		d.call.Completions = max(d.call.Completions, d.integer(name, maxCompletions))
	case "stream":
		d.call.Stream = d.boolean(name)
	case "stream_options":
		d.streamOptions()
	case "service_tier":
		d.call.ServiceTier = d.stringMember(name)
	case "user":
		d.call.User = d.stringMember(name)
	case "metadata":
		d.metadata()
	}
}

// find returns key's index in chatMembers, -1 for a member that decides nothing.
func (d *chatDecoder) find(key []byte) int {
	for i, name := range chatMembers {
		if string(key) == name {
			return i
		}
	}
	for _, name := range chatMembers {
		if bytes.EqualFold(key, []byte(name)) {
			d.refuse(name, "%q is written %q", key, name)
		}
	}
	for _, name := range refusedMembers {
		if bytes.EqualFold(key, []byte(name)) {
			d.refuse(name, "%s is not taken from a request", name)
		}
	}
	return -1
}

func (d *chatDecoder) other(key []byte) {
	for _, name := range chatSettings {
		if string(key) == name {
			d.skip()
			return
		}
	}
	switch d.peek() {
	case '"', '{', '[':
		d.call.Prompt.TextBytes += d.text()
	default:
		d.skip()
	}
}

func (d *chatDecoder) model() string {
	name := d.stringMember("model")
	if d.err == nil && (len(name) < 1 || len(name) > maxModelBytes) {
		d.refuse("model", "model has 1 to %d bytes", maxModelBytes)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			d.refuse("model", "model has a byte that no name has: %q", name[i])
		}
	}
	return name
}

// nameByte says whether c may stand in a name (KEY-5).
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		bytes.IndexByte([]byte("._:/@+-"), c) >= 0
}

func (d *chatDecoder) stringMember(name string) string {
	if d.peek() != '"' {
		d.wrongType(name, "a string")
		return ""
	}
	raw, _ := d.str()
	return string(unquote(raw))
}

func (d *chatDecoder) boolean(name string) bool {
	if c := d.peek(); c != 't' && c != 'f' {
		d.wrongType(name, "true or false")
		return false
	}
	return d.literal() == "true"
}

// integer reads a whole number from 1 to limit, written as one.
func (d *chatDecoder) integer(name string, limit int64) int64 {
	if c := d.peek(); c != '-' && (c < '0' || c > '9') {
		d.wrongType(name, "a whole number")
		return 1
	}
	n, err := strconv.ParseInt(string(d.number()), 10, 64)
	if d.err == nil && (err != nil || n < 1 || n > limit) {
		d.refuse(name, "%s is a whole number from 1 to %d", name, limit)
	}
	return n
}

// wrongType refuses a value of another type, unless it is no JSON at all.
func (d *chatDecoder) wrongType(name, want string) {
	if d.skip(); d.err == nil {
		d.refuse(name, "%s is %s", name, want)
	}
}

func (d *chatDecoder) outputBound(name string) {
	n := d.integer(name, maxOutput)
	if d.call.OutputBound == call.NoBound || n < d.call.OutputBound {
		d.call.OutputBound, d.call.OutputField = n, name
	}
}

func (d *chatDecoder) streamOptions() {
	if d.peek() != '{' {
		d.wrongType("stream_options", "an object")
		return
	}
	const param = "stream_options.include_usage"
	seen := false
	d.object(func(key []byte) {
		switch {
		case !bytes.EqualFold(key, []byte("include_usage")):
			d.skip()
		case string(key) != "include_usage":
			d.refuse(param, "%q is written %q", key, "include_usage")
		case seen:
			d.refuse(param, "%s stands twice", param)
		default:
			seen = true
			d.call.WantsStreamUsage = !d.null() && d.boolean(param)
		}
	})
}

// metadata is read for its user_id alone (KEY-7).
func (d *chatDecoder) metadata() {
	if d.peek() != '{' {
		d.wrongType("metadata", "an object")
		return
	}
	const param = "metadata.user_id"
	seen := false
	d.object(func(key []byte) {
		switch {
		case string(key) != "user_id":
			d.skip()
		case seen:
			d.refuse(param, "%s stands twice", param)
		default:
			seen = true
			if !d.null() {
				d.call.MetadataUser = d.stringMember(param)
			}
		}
	})
}
