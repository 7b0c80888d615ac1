// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json/jsontext"
	"slices"
	"strconv"
)

// object writes a JSON object: three are written for each request, and reflection
// would take a fortieth of its processor time. What is zero is left out.
type object []byte

func (o *object) name(name string) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(append(append(*o, '"'), name...), '"', ':')
}

func (o *object) number(name string, v int64) {
	if v != 0 {
		o.always(name, v)
	}
}

// always writes a number that is never left out.
func (o *object) always(name string, v int64) {
	o.name(name)
	*o = strconv.AppendInt(*o, v, 10)
}

func (o *object) text(name, v string) {
	if v != "" {
		o.name(name)
		o.quote(v)
	}
}

// quote writes U+FFFD for what is no UTF-8.
func (o *object) quote(v string) {
	*o, _ = jsontext.AppendQuote(*o, v)
}

func (o *object) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	o.name(name)
	for i, v := range list {
		*o = append(*o, "[,"[min(i, 1)])
		o.quote(v)
	}
	*o = append(*o, ']')
}

func (o *object) flag(name string, v bool) {
	if v {
		o.name(name)
		*o = append(*o, "true"...)
	}
}

// json writes what is JSON already.
func (o *object) json(name string, v []byte) {
	if len(v) > 0 {
		o.name(name)
		*o = append(*o, v...)
	}
}

func (o *object) end() []byte {
	if len(*o) == 0 {
		*o = append(*o, '{')
	}
	return append(*o, '}')
}

const (
	noteBytes = 640
	endBytes  = 384
)

// Encode is what package encoding/json reads as a Note.
func (n *Note) Encode() []byte {
	o := make(object, 0, noteBytes)
	o.name("door")
	o.quote(n.Door)
	o.name("model")
	o.quote(n.Model)
	o.flag("stream", n.Stream)
	o.text("user", n.User)
	o.text("key_user", n.KeyUser)
	o.always("text_bytes", n.TextBytes)
	o.number("messages", n.Messages)
	o.number("tools", n.Tools)
	o.number("images", n.Images)
	o.always("input_tokens", n.InputTokens)
	o.always("output_bound", n.OutputBound)
	o.always("completions", n.Completions)
	o.always("worst_nanos", n.WorstNanos)
	o.json("price", n.Price)
	o.text("message", n.Message)
	return o.end()
}

// Encode is what package encoding/json reads as an End; usage is the end's, as
// Usage.Encode has written it.
func (e *End) Encode(usage []byte) []byte {
	o := make(object, 0, endBytes)
	o.name("outcome")
	o.quote(e.Outcome)
	o.number("status", int64(e.Status))
	o.text("answered_model", e.Answered)
	o.texts("marks", e.Marks)
	o.always("charge_nanos", e.ChargeNanos)
	o.json("usage", usage)
	o.number("output_bytes", e.OutputBytes)
	if n := e.Named; n != nil {
		var named object
		named.always("nanos", n.Nanos)
		named.always("own_nanos", n.OwnNanos)
		named.flag("charged", n.Charged)
		o.json("named_cost", named.end())
	}
	o.number("sent_at", e.SentAt)
	o.number("first_byte_at", e.FirstByteAt)
	o.number("ended_at", e.EndedAt)
	return o.end()
}

// Encode is what package encoding/json reads as a Usage.
func (u *Usage) Encode() []byte {
	var o object
	o.always("input", u.Input)
	o.number("cached_input", u.CachedInput)
	o.number("cache_write", u.CacheWrite)
	o.number("audio_input", u.AudioInput)
	o.always("output", u.Output)
	o.number("reasoning", u.Reasoning)
	o.number("audio_output", u.AudioOutput)
	o.text("service_tier", u.ServiceTier)
	o.flag("estimated", u.Estimated)
	o.number("audio_input_micros", u.AudioInputMicros)
	o.number("audio_output_micros", u.AudioOutputMicros)
	o.number("images", u.Images)
	if len(u.ToolCalls) > 0 {
		o.json("tool_calls", encodeCalls(u.ToolCalls))
	}
	return o.end()
}

// encodeCalls writes them by name, so that equal ones are written alike.
func encodeCalls(calls map[string]int64) []byte {
	names := make([]string, 0, len(calls))
	for name := range calls {
		names = append(names, name)
	}
	slices.Sort(names)
	o := object{'{'}
	for i, name := range names {
		if i > 0 {
			o = append(o, ',')
		}
		o.quote(name)
		o = strconv.AppendInt(append(o, ':'), calls[name], 10)
	}
	return append(o, '}')
}
