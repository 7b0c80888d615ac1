// SPDX-License-Identifier: Apache-2.0

// Package gateway is the data plane: it takes a client's request through every
// check to a provider and settles what it cost. serve.go is the whole way.
//
// It knows no protocol (wire/...), no store and no limit: it is given what it
// needs as small interfaces, and what it hands on are calls, operations, faults.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// Protocol is a wire protocol's side of one door.
type Protocol interface {
	// Decode reads what admission, routing and accounting need.
	Decode(r Request) (*call.Call, *fault.Fault)
	// Path is where a provider serves this, after its base URL, query included.
	Path(c *call.Call, model string) string
	// Rewrite changes the named fields and leaves every other byte alone.
	Rewrite(body []byte, r Rewrite) ([]byte, error)
	// Whole reads the usage of a complete answer; counts above maxTokens are not
	// believed (USE-1).
	Whole(body []byte, maxTokens int64) call.Observed
	// NewStream starts reading a streamed answer.
	NewStream(o StreamOptions) Stream
	// Fault renders one of our faults.
	Fault(f *fault.Fault, requestID string) (status int, contentType string, body []byte)
}

// Door is one governed endpoint: where it is and what is spoken there.
type Door struct {
	Name call.Door
	// Path may have {model} in the place of a model's name.
	Path     string
	Protocol Protocol
	// IDHeader, if any, is where the protocol's clients read a request's id besides
	// X-Request-Id (ERR-4).
	IDHeader string
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

// Rewrite is what the gateway changes in a request; zero values change nothing.
type Rewrite struct {
	Model          string // the provider's own name
	OutputBound    int64  // most output tokens of one completion
	OutputField    string // where to write it if the body has no bound
	AskStreamUsage bool
	ContentType    string // of a body that is a form
	// Version, if any, is that of the protocol, to be written in the body of a
	// request whose model stands in the path alone (Vertex AI).
	Version string
}

// StreamOptions are what a stream is read with.
type StreamOptions struct {
	// HideUsage keeps usage from a client that did not ask for it (DIS-6).
	HideUsage     bool
	MaxEventBytes int
	MaxTokens     int64
	// Call is the request that is answered.
	Call *call.Call
}

// Stream follows one streamed answer.
type Stream interface {
	// Feed takes bytes as they arrive and appends to dst what to forward now:
	// whole events. Its one error is that an event is too large.
	Feed(dst, p []byte) ([]byte, error)
	// Close appends what is left of a stream that has ended.
	Close(dst []byte) []byte
	Observed() call.Observed
	// Events counts the events so far that are no pings.
	Events() int64
	// Fault is one of our faults as the events that end a stream which has started
	// (ERR-6).
	Fault(f *fault.Fault, requestID string) []byte
}

// Directory knows whose request it is.
type Directory interface {
	Identify(ctx context.Context, secret string) (*tenant.Key, *admit.Snapshot, error)
	Refresh(ctx context.Context, workspace string) (*admit.Snapshot, error)
	// Refuse turns an error of Identify into what the client sees.
	Refuse(err error) *fault.Fault
}

// Teller decides operations durably.
type Teller interface {
	Submit(ctx context.Context, op *ledger.Op) (ledger.Result, error)
	// Post returns once op is queued: an admission submitted later is decided
	// after it (RES-11). then, if any, hears of the outcome.
	Post(op *ledger.Op, then func(ledger.Result, error)) error
	Healthy() bool
}

// Upstream sends a request to a provider.
type Upstream interface {
	RoundTrip(p *route.Provider, r *http.Request) (*http.Response, error)
}

// Observer is told what happened, for metrics and logs. It must not block.
type Observer interface {
	Refused(f *fault.Fault, workspace string)
	Ended(r *ledger.Reservation, c *admit.Charged, took time.Duration)
}

// Options are what a gateway is made of. Bounds of zero take the default.
type Options struct {
	Clock     clock.Clock
	Directory Directory
	Teller    Teller
	Upstream  Upstream
	Keeper    Keeper
	Tokens    *Tokens // of service accounts
	Observer  Observer
	Log       *slog.Logger
	// Doors are the governed endpoints. The first one's protocol is spoken where
	// no path says which.
	Doors []Door
	// Process names this process in reservations; HoldMicros is how long a
	// reservation lives without renewal (WEIR_RESERVATION_HOLD).
	Process    string
	HoldMicros int64
	// Local is this process's own rate limit; nil: none (RAT-6).
	Local *LocalLimit
	// Remarks are what /readyz says of a process that is ready all the same; nil:
	// never any.
	Remarks func() []string
	// MaxBodyBytes bounds a request's body, BodyTimeout the time it may take,
	// WriteTimeout the time in which a client must take a part of its answer.
	MaxBodyBytes int64
	BodyTimeout  time.Duration
	WriteTimeout time.Duration
}

// Default bounds.
const (
	DefaultHoldMicros   = int64(30 * time.Minute / time.Microsecond)
	DefaultMaxBodyBytes = 32 << 20
	DefaultBodyTimeout  = time.Minute
	DefaultWriteTimeout = time.Minute
	// decisionTries: so often is an admission built, on old snapshots or with more
	// output than fits.
	decisionTries = 5
)

// Gateway serves the doors of SPEC section 9.
type Gateway struct {
	Options
	routes []Route
	// doorList is every door, for who has missed them all.
	doorList string
	running  *running
	local    *localBucket // nil: none
	// stop ends what running requests wait for.
	base context.Context
	stop context.CancelCauseFunc
	// noUsage are base URLs of providers that refused to be asked for usage: as
	// many as there are providers.
	noUsage sync.Map
}

// New builds a gateway.
func New(o Options) *Gateway {
	if o.HoldMicros == 0 {
		o.HoldMicros = DefaultHoldMicros
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = DefaultMaxBodyBytes
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = DefaultBodyTimeout
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	g := &Gateway{Options: o, running: newRunning()}
	g.base, g.stop = context.WithCancelCause(context.Background())
	g.local = newLocalBucket(o.Local, o.Clock.Now())
	g.routes = g.table()
	g.doorList = g.doorNames()
	return g
}
