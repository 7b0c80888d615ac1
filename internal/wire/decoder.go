// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
)

const (
	// MaxOutput bounds a client's own output bound, in tokens (SPEC section 1).
	MaxOutput = 1_000_000_000
	// MaxCompletions bounds the completions of one request.
	MaxCompletions = 128

	maxModelBytes = 200 // KEY-5
)

// Rules say what the members of one object mean.
type Rules struct {
	// Decides are the members that decide something here. Each stands at most once
	// and in exactly this spelling: some servers take another letter case for the
	// same member, so a second one could ask the provider for something else than
	// what was checked (ERR-5). At most 64.
	Decides []string
	// Required are those of them that may not be null.
	Required []string
	// Snake: a member may also be written with underscores between its words, as
	// protocol buffers' JSON has it; both are one member.
	Snake bool
	// Refused name an address, a credential or further models, none of which is
	// ever taken from a request (ERR-5).
	Refused []string
	// Unread are members that no model reads as text. Any other member counts as
	// prompt text, because servers have members of their own that do reach the
	// model.
	Unread []string
}

// RefusedMembers is what no protocol's request may bring: a provider that honours
// "models" or "fallbacks" would answer with one that was neither allowed nor
// priced.
func RefusedMembers() []string {
	return []string{"api_base", "base_url", "api_key", "models", "fallbacks"}
}

// memberError is a member that is JSON but not the protocol's.
type memberError struct{ param, what string }

func (e *memberError) Error() string { return e.what }

// Decoder reads one request into Call.
type Decoder struct {
	Scanner
	Call call.Call
}

// NewDecoder begins a request that came in by a door.
func NewDecoder(door call.Door, text []byte) *Decoder {
	return &Decoder{Scanner: NewScanner(text), Call: call.Call{Door: door, OutputBound: call.NoBound, Completions: 1}}
}

// Decode reads the request's object by rules; decide is called for each member
// that decides something and has a value, and reads exactly that. check, called
// when all was read, looks for what is missing.
func (d *Decoder) Decode(rules *Rules, decide func(name string), check func()) (*call.Call, *fault.Fault) {
	if !utf8.Valid(d.Slice(0, d.Len())) {
		return nil, fault.New(fault.InvalidRequest, "the body is not UTF-8")
	}
	if d.Peek() != '{' {
		return nil, fault.New(fault.InvalidRequest, "the body is not a JSON object")
	}
	d.Members("", rules, decide)
	d.End()
	if d.Err == nil {
		check()
	}
	if d.Err != nil {
		return nil, invalid(d.Err)
	}
	return &d.Call, nil
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

// Members reads an object by rules; prefix stands before the names of its
// members where an error names one. Members that are neither decided, refused
// nor unread count as prompt text.
func (d *Decoder) Members(prefix string, rules *Rules, decide func(name string)) {
	seen := uint64(0)
	d.Object(func(key []byte) {
		i := d.find(prefix, rules, key)
		if d.Err != nil {
			return
		}
		if i < 0 {
			d.other(rules, key)
			return
		}
		name := rules.Decides[i]
		if seen&(1<<i) != 0 {
			d.Refuse(prefix+name, "%s stands twice", prefix+name)
			return
		}
		seen |= 1 << i
		if !slices.Contains(rules.Required, name) && d.Null() {
			return
		}
		decide(name)
	})
}

// find returns key's index in rules.Decides, -1 for a member that decides nothing.
func (d *Decoder) find(prefix string, rules *Rules, key []byte) int {
	for i, name := range rules.Decides {
		if string(key) == name {
			return i
		}
	}
	for i, name := range rules.Decides {
		if rules.Snake && string(key) == snake(name) {
			return i
		}
		if bytes.EqualFold(key, []byte(name)) || rules.Snake && sameWords(key, name) {
			d.Refuse(prefix+name, "%q is written %q", key, name)
		}
	}
	for _, name := range rules.Refused {
		if bytes.EqualFold(key, []byte(name)) {
			d.Refuse(prefix+name, "%s is not taken from a request", name)
		}
	}
	return -1
}

// snake is a name of camel case with underscores between its words.
func snake(name string) string {
	out := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' {
			out = append(out, '_', c+'a'-'A')
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// sameWords: some readers of protocol buffers' JSON leave underscores and letter
// case out of the comparison.
func sameWords(key []byte, name string) bool {
	return bytes.EqualFold(bytes.ReplaceAll(key, []byte("_"), nil), []byte(name))
}

func (d *Decoder) other(rules *Rules, key []byte) {
	if slices.Contains(rules.Unread, string(key)) {
		d.Skip()
		return
	}
	switch d.Peek() {
	case '"', '{', '[':
		d.Count(d.Text())
	default:
		d.Skip()
	}
}

// Refuse ends the decoding with a 400 that names a member.
func (d *Decoder) Refuse(param, format string, args ...any) {
	if d.Err == nil {
		d.Err = &memberError{param, fmt.Sprintf(format, args...)}
	}
}

// WrongType refuses a value of another type, unless it is no JSON at all. want
// says what it should be, with its article.
func (d *Decoder) WrongType(name, want string) {
	if d.Skip(); d.Err == nil {
		d.Refuse(name, "%s is %s", name, want)
	}
}

// Objects reads an array of objects and calls element for each, which reads it.
func (d *Decoder) Objects(name string, element func()) {
	const want = "an array of objects"
	if d.Peek() != '[' {
		d.WrongType(name, want)
		return
	}
	d.Array(func() {
		if d.Peek() != '{' {
			d.WrongType(name, want)
			return
		}
		element()
	})
}

// Model reads the name of a model, alias or route.
func (d *Decoder) Model(name string) string {
	model := d.StringMember(name)
	if d.Err == nil {
		d.CheckModel(name, model)
	}
	return model
}

// CheckModel refuses what cannot be a name (KEY-5).
func (d *Decoder) CheckModel(param, model string) {
	if len(model) < 1 || len(model) > maxModelBytes {
		d.Refuse(param, "%s has 1 to %d bytes", param, maxModelBytes)
	}
	for i := range len(model) {
		if !nameByte(model[i]) {
			d.Refuse(param, "%s has a byte that no name has: %q", param, model[i])
		}
	}
}

// ValidName tells whether a text can be a model's name (KEY-5).
func ValidName(name string) bool {
	for i := range len(name) {
		if !nameByte(name[i]) {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= maxModelBytes
}

// nameByte says whether c may stand in a name (KEY-5).
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		bytes.IndexByte([]byte("._:/@+-"), c) >= 0
}

// StringMember reads a string.
func (d *Decoder) StringMember(name string) string {
	if d.Peek() != '"' {
		d.WrongType(name, "a string")
		return ""
	}
	raw, _ := d.String()
	return string(Unquote(raw))
}

// Boolean reads true or false.
func (d *Decoder) Boolean(name string) bool {
	if c := d.Peek(); c != 't' && c != 'f' {
		d.WrongType(name, "true or false")
		return false
	}
	return d.Literal() == "true"
}

// Integer reads a whole number from least to most, written as one.
func (d *Decoder) Integer(name string, least, most int64) int64 {
	if c := d.Peek(); c != '-' && (c < '0' || c > '9') {
		d.WrongType(name, "a whole number")
		return least
	}
	n, err := strconv.ParseInt(string(d.Number()), 10, 64)
	if d.Err == nil && (err != nil || n < least || n > most) {
		d.Refuse(name, "%s is a whole number from %d to %d", name, least, most)
	}
	return n
}

// OutputBound reads the client's bound on the tokens of one completion. Of
// several the least is the call's.
func (d *Decoder) OutputBound(name string) {
	n := d.Integer(name, 1, MaxOutput)
	if d.Call.OutputBound == call.NoBound || n < d.Call.OutputBound {
		d.Call.OutputBound, d.Call.OutputField = n, name
	}
}

// MetadataUser reads an object for its user_id alone (KEY-7).
func (d *Decoder) MetadataUser() {
	if d.Peek() != '{' {
		d.WrongType("metadata", "an object")
		return
	}
	const param = "metadata.user_id"
	seen := false
	d.Object(func(key []byte) {
		switch {
		case string(key) != "user_id":
			d.Skip()
		case seen:
			d.Refuse(param, "%s stands twice", param)
		default:
			seen = true
			if !d.Null() {
				d.Call.MetadataUser = d.StringMember(param)
			}
		}
	})
}

// State notes an id of something that the provider keeps (DIS-8): there is input
// that the gateway does not see. An empty one points at nothing.
func (d *Decoder) State(id string) {
	if len(d.Call.StateIDs) >= call.MaxStateIDs {
		d.Refuse("", "the request names more than %d things that a provider keeps", call.MaxStateIDs)
		return
	}
	if id != "" {
		d.Call.StateIDs = append(d.Call.StateIDs, id)
		d.Call.Prompt.Unseen = true
	}
}

// Count adds bytes of text to the prompt.
func (d *Decoder) Count(bytes int64) { d.Call.Prompt.TextBytes += bytes }

// Base64 reads base64, bare or as a data URL, and returns the size of what it
// encodes. A file by address is input that the gateway cannot see (EST-4).
func (d *Decoder) Base64() int64 {
	if d.Peek() != '"' {
		return d.Text()
	}
	raw, size := d.String()
	if bytes.HasPrefix(raw, []byte("http")) && bytes.Contains(raw[:min(len(raw), 8)], []byte(":")) {
		d.Call.Prompt.Unseen = true
		return size
	}
	if bytes.HasPrefix(raw, []byte("data:")) {
		comma := bytes.IndexByte(raw, ',')
		if comma < 0 || !bytes.HasSuffix(raw[:comma], []byte(";base64")) {
			return size
		}
		size -= int64(comma) + 1
	}
	return size/4*3 + size%4
}
