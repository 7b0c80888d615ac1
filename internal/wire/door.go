// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/url"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
)

// Door is a protocol's side of one endpoint. It has no state.
type Door interface {
	// Decode reads a request strictly (ERR-5) and measures its prompt (EST-1).
	// Everything that it refuses is a 400 that names the member.
	Decode(r Request) (*call.Call, *fault.Fault)
	// Path is where a provider of the protocol serves this, after its base URL,
	// query included.
	Path(c *call.Call, model string) string
	// Rewrite returns body with r applied. Only the values that r names change and
	// only members that are missing are added; every other byte stays as it came.
	// body is not modified, and returned itself when there is nothing to change.
	Rewrite(body []byte, r Rewrite) ([]byte, error)
	// Whole reads a complete answer. maxTokens is the largest count to believe, ten
	// times the model's context (USE-1); below 1 means MaxCount.
	Whole(body []byte, maxTokens int64) call.Observed
	// NewStream returns the reader of one streamed answer.
	NewStream(o StreamOptions) Stream
	// Fault gives f the protocol's shape. requestID is ours and ends the message,
	// where every client shows it (ERR-1).
	Fault(f *fault.Fault, requestID string) (status int, contentType string, body []byte)
}

// Counted reads the answer of a door that counts tokens: the figure is what was
// asked for, and no usage.
func Counted(body []byte) call.Observed {
	o := call.Observed{Reported: true, Usage: call.Usage{Requests: 1}}
	s := NewScanner(body)
	s.Object(func(key []byte) {
		o.ErrorSeen = o.ErrorSeen || string(key) == "error"
		s.Skip()
	})
	s.End()
	if s.Err != nil {
		return call.Observed{Invalid: true}
	}
	o.Finished = !o.ErrorSeen
	return o
}

// Request is what a door decodes.
type Request struct {
	Body []byte
	// Model is the name in the path, empty at a door that has it in the body.
	Model string
	Query url.Values
	// ContentType is the header's.
	ContentType string
}

// Rewrite is what the gateway changes in a request that Decode has accepted.
// The zero value changes nothing.
type Rewrite struct {
	// Model is the provider's own name of the model; empty leaves the client's.
	Model string
	// OutputBound, when above 0, is the most output tokens of one completion: a
	// larger value in the body is lowered to it, whichever member carries it.
	OutputBound int64
	// OutputField is the member to write OutputBound in when the body bounds
	// nothing (EST-2); empty means the protocol's own.
	OutputField string
	// AskStreamUsage asks the provider for the usage of its stream (DIS-6).
	AskStreamUsage bool
	// ContentType is the request's, for bodies that are forms.
	ContentType string
	// Version, if any, is that of the protocol, to be written in the body of a
	// request whose model stands in the path alone (Vertex AI).
	Version string
}

// StreamOptions say how a stream is read.
type StreamOptions struct {
	// HideUsage keeps from the client what only stands in the stream because the
	// gateway asked for usage (DIS-6).
	HideUsage bool
	// MaxEventBytes bounds one event; below 1 means DefaultMaxEventBytes. It
	// bounds the stream's memory as well.
	MaxEventBytes int
	// MaxTokens is the largest count to believe, ten times the model's context
	// (USE-1); below 1 means MaxCount.
	MaxTokens int64
	// Call is the request that is answered; nil: an ordinary one.
	Call *call.Call
}

// Stream reads one streamed answer on its way to the client. It is not safe for
// concurrent use.
type Stream interface {
	// Feed reads the provider's next bytes and appends to dst what the client gets
	// of the events that are complete with them. An error stays; dst then has the
	// events before.
	Feed(dst, p []byte) ([]byte, error)
	// Close appends what is left of a stream that has ended.
	Close(dst []byte) []byte
	// Observed is what the events so far have shown.
	Observed() call.Observed
	// Events is how many events with data have been read that are no pings (DIS-9).
	Events() int64
	// Fault is f as the events that end a stream which has started (ERR-6): never a
	// clean end.
	Fault(f *fault.Fault, requestID string) []byte
}
