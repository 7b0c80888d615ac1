// SPDX-License-Identifier: Apache-2.0

package call

import (
	"slices"
	"strings"
)

// The names of tools that providers run themselves, as price rows spell them.
// An adapter translates its protocol's own; a tool that isn't here keeps the
// provider's name, in lower case.
const (
	WebSearch     = "web_search"
	WebFetch      = "web_fetch"
	FileSearch    = "file_search"
	CodeExecution = "code_execution" // code interpreters too
	MapsSearch    = "maps_search"
)

// DefaultToolCalls is how often a provider's own tool is taken to run, at most,
// when neither the request nor the tool has a bound (EST-4).
const DefaultToolCalls int64 = 10

// Units is what is priced by the unit and is no token (PRC-1): of a usage what
// was used, of a request the most that it may use. All counts are at least 0,
// and none of them is part of another or of any count of tokens.
type Units struct {
	// AudioInputMicros and AudioOutputMicros are microseconds of audio that were
	// heard and spoken, by providers that bill its length instead of tokens.
	AudioInputMicros  int64
	AudioOutputMicros int64
	// Images counts the images that were made.
	Images int64
	// Tools counts the calls of the provider's own tools. In a request, a tool
	// with 0 calls may run DefaultToolCalls times.
	Tools ToolCalls
}

// MaxTools bounds how many different tools one request is told to have used.
const MaxTools = 8

// ToolCall is how often one of the provider's own tools ran.
type ToolCall struct {
	Name  string
	Calls int64
}

// ToolCalls are counts by the tool's name, sorted, each name once; unused places
// come last. Equal ones are ==.
type ToolCalls [MaxTools]ToolCall

// Set gives a tool its count; the last one given wins (USE-1). ok is false when
// the name is empty or there is no place left for it: mark the usage.
func (t *ToolCalls) Set(name string, calls int64) (ok bool) {
	used := t.used()
	at, found := slices.BinarySearchFunc(t[:used], name, func(c ToolCall, name string) int { return strings.Compare(c.Name, name) })
	switch {
	case found:
		t[at].Calls = calls
		return true
	case name == "" || used == MaxTools:
		return false
	}
	copy(t[at+1:used+1], t[at:used])
	t[at] = ToolCall{name, calls}
	return true
}

// Of is the count of a tool, 0 when it isn't there.
func (t *ToolCalls) Of(name string) int64 {
	for i := range t {
		if t[i].Name == name {
			return t[i].Calls
		}
	}
	return 0
}

// List is the tools that are there, in the order of their names. It is a part
// of t: don't change it.
func (t *ToolCalls) List() []ToolCall { return t[:t.used()] }

func (t *ToolCalls) used() int {
	for i := range t {
		if t[i].Name == "" {
			return i
		}
	}
	return MaxTools
}
