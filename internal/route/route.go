// SPDX-License-Identifier: Apache-2.0

// Package route says where a request can go: the providers, and the models that
// are bound to them, with their strict JSON form.
//
// It is not for talking to a provider (gateway) or for what a request costs
// (price).
package route

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/price"
)

// KindProvider and KindModel name the kinds of object that this package owns.
const (
	KindProvider = "provider"
	KindModel    = "model"
)

// The protocols that a provider can speak: its requests come in by the doors of
// the same (SPEC section 9).
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Gemini    = "gemini"
)

// How a provider's credential is sent.
const (
	AuthBearer = "bearer" // Authorization: Bearer CREDENTIAL
	AuthHeader = "header" // the header AuthName
	AuthQuery  = "query"  // the query parameter AuthName
	AuthNone   = "none"
)

// What becomes of a request whose client has gone (SPEC DIS-7). Empty is the
// rule's own choice.
const (
	Cancel = "cancel"
	Drain  = "drain"
)

// Whether a stream's usage is asked for (SPEC USE-1).
const (
	StreamUsageAuto = "auto"
	StreamUsageOn   = "on"
	StreamUsageOff  = "off"
)

// Provider is an upstream account: how to reach it, and how it is spoken to.
// Its credential is kept apart, never here.
//
// The zero value is not valid; NewProvider has the defaults. ID and Name stand
// beside its JSON form, not in it.
type Provider struct {
	ID, Name string
	Protocol string // OpenAI, Anthropic or Gemini
	// Dialect is the provider's own way with the protocol, "ollama" for instance;
	// empty: Speaks tells it by the address.
	Dialect string
	// BaseURL is http or https with a host and no user, query or fragment; a
	// door's path after the version is added to it (Address).
	BaseURL string
	// APIVersion makes it Azure's OpenAI service: a model is a deployment in the path
	// after BaseURL, which ends with /openai, and this the query's api-version.
	APIVersion string
	// Project and Location make it Google's Vertex AI: models are published there
	// under BaseURL.
	Project, Location string
	Auth              string // AuthBearer, AuthHeader, AuthQuery, AuthServiceAccount or AuthNone
	AuthName          string // the header or query parameter; empty for the others
	// Headers are added to every request to it; names in canonical form.
	Headers  map[string]string
	ProxyURL string // http, https or socks5; empty: none
	CAFile   string // PEM roots that replace the system's; empty: the system's
	Timeouts Timeouts
	// ClientGone is "", Cancel or Drain.
	ClientGone string
	// ChargePartialOnUpstreamFailure is false when a stream that the provider
	// broke costs nothing (SPEC RES-4); nil is true.
	ChargePartialOnUpstreamFailure *bool
	StreamUsage                    string // StreamUsageAuto, On or Off
	// TrustProviderCost lets the cost that an answer names replace our own (SPEC
	// USE-4).
	TrustProviderCost bool
	// SharedState: one workspace alone uses the account, so ids of what the provider
	// keeps need not have been made through this gateway (SPEC DIS-8).
	SharedState bool
	// DefaultTier is the service tier of a request that asks for none; "": the
	// standard one (SPEC EST-3).
	DefaultTier string
	Bounds      Bounds
}

// Address is where the provider serves a door's path for a model, by the name that
// it has there.
func (p *Provider) Address(path, model string, stream bool) string {
	base := strings.TrimSuffix(p.BaseURL, "/") + p.impliedVersion()
	switch {
	case p.Vertex():
		return base + p.published(path, model, stream)
	case p.APIVersion == "":
		return base + path
	case path == "/responses": // the one that has its model in the body there, too
		return base + path + "?api-version=" + url.QueryEscape(p.APIVersion)
	default:
		return base + "/deployments/" + url.PathEscape(model) + path + "?api-version=" + url.QueryEscape(p.APIVersion)
	}
}

// impliedVersion is the part of the path that clients of Anthropic and Gemini add to
// a base URL themselves, where this one was written as those take it.
func (p *Provider) impliedVersion() string {
	version := ""
	switch {
	case p.Protocol == Anthropic, p.Vertex():
		version = "/v1"
	case p.Protocol == Gemini:
		version = "/v1beta"
	}
	_, rest, _ := strings.Cut(p.BaseURL, "://")
	for i, part := range strings.Split(rest, "/") {
		if i > 0 && len(part) > 1 && part[0] == 'v' && part[1] >= '0' && part[1] <= '9' {
			return ""
		}
	}
	return version
}

// Timeouts bound one exchange with a provider, each in microseconds.
type Timeouts struct {
	Connect   int64 // dial and TLS handshake
	FirstByte int64 // from the request sent to the answer's first byte
	Idle      int64 // between events of a stream that are not pings
	Total     int64 // the whole exchange
}

// Bounds limit what one provider may take of this process.
type Bounds struct {
	MaxConnections     int64 // to one host; 0 is no bound
	MaxIdleConnections int64 // kept open for the next request
	MaxAnswerBytes     int64 // of an answer that is no stream
	MaxEventBytes      int64 // of one event of a stream
}

// The defaults of a provider.
const (
	DefaultConnectMicros   = 10 * second
	DefaultFirstByteMicros = 300 * second
	DefaultIdleMicros      = 120 * second
	DefaultTotalMicros     = 1800 * second

	DefaultMaxIdleConnections = 1024
	DefaultMaxAnswerBytes     = 64 << 20
	DefaultMaxEventBytes      = 8 << 20

	second = 1_000_000
)

// NewProvider returns a provider with every default.
func NewProvider(id, name string) *Provider {
	return &Provider{
		ID: id, Name: name, Protocol: OpenAI, Auth: AuthBearer, StreamUsage: StreamUsageAuto,
		Timeouts: Timeouts{
			Connect: DefaultConnectMicros, FirstByte: DefaultFirstByteMicros,
			Idle: DefaultIdleMicros, Total: DefaultTotalMicros,
		},
		Bounds: Bounds{
			MaxIdleConnections: DefaultMaxIdleConnections,
			MaxAnswerBytes:     DefaultMaxAnswerBytes, MaxEventBytes: DefaultMaxEventBytes,
		},
	}
}

// ChargesPartial reports whether a stream that the provider broke is charged
// for what had arrived (SPEC RES-4).
func (p *Provider) ChargesPartial() bool {
	return p.ChargePartialOnUpstreamFailure == nil || *p.ChargePartialOnUpstreamFailure
}

// The fields in which an output bound can be written into a request (SPEC
// EST-2).
const (
	MaxTokensField           = "max_tokens"
	MaxCompletionTokensField = "max_completion_tokens"
)

// Model is a public model name bound to a provider, an upstream name and a
// price. Counts of 0 are not set.
//
// ID and Name stand beside its JSON form, not in it.
type Model struct {
	ID, Name            string
	Provider            string // the provider's name
	Upstream            string // the model's name there; never empty
	ContextTokens       int64  // what it reads and writes together
	MaxOutputTokens     int64  // clamps a request's bound (SPEC KEY-6)
	DefaultOutputTokens int64  // the bound of a client that sends none (SPEC EST-2)
	ImageTokens         int64  // replaces 1,600 in the estimate (SPEC EST-1)
	BytesPerToken       int64  // 1 to 4, replaces 3 in the estimate
	OutputField         string // MaxTokensField or MaxCompletionTokensField; empty: the protocol's
	// Prices override what is imported and the catalogue, from their starts on;
	// none leaves the price to those (SPEC PRC-2).
	Prices  price.Schedule
	Free    bool     // price: free, an explicit zero (SPEC PRC-1)
	Aliases []string // further names that lead here
}
