// SPDX-License-Identifier: Apache-2.0

package route

import (
	"encoding/json"
	"fmt"
	"net/textproto"

	"github.com/weirhq/weir/internal/document"
)

// Bounds of values where they enter.
const (
	MaxAliases = 100
	MaxHeaders = 32
	MaxTokens  = 1_000_000_000 // of one request (SPEC 1)

	millisecond     = 1000
	day             = 86_400 * second
	maxConnections  = 1_000_000
	maxMessageBytes = 1 << 30
	minMessageBytes = 1 << 10
)

// Read reads a provider as somebody declares it, over the values that p has: a
// field that is left out stays. It validates the result and returns the paths
// that were given. Errors are document.Problems.
func (p *Provider) Read(n *document.Node) (given map[string]bool, err error) {
	return document.Read(n, p.Fields)
}

// Fields reads the fields of a provider out of a document that may have more,
// and validates them.
func (p *Provider) Fields(r *document.Reader) {
	protocol := p.Protocol
	r.Choice("protocol", &p.Protocol, OpenAI, Anthropic, Gemini)
	r.String("dialect", &p.Dialect)
	r.String("base_url", &p.BaseURL)
	azure, vertex, public := p.APIVersion != "", p.Vertex(), p.vertexURL()
	r.String("api_version", &p.APIVersion)
	r.String("project", &p.Project)
	r.String("location", &p.Location)
	if r.Node("base_url") == nil && p.BaseURL == public {
		p.BaseURL = p.vertexURL()
	}
	if r.Node("auth") == nil && (p.Protocol != protocol || azure != (p.APIVersion != "") || vertex != p.Vertex()) {
		p.Auth, p.AuthName = p.defaultAuth()
	}
	r.Choice("auth", &p.Auth, AuthBearer, AuthHeader, AuthQuery, AuthServiceAccount, AuthNone)
	r.String("auth_name", &p.AuthName)
	r.Map("headers", &p.Headers, MaxHeaders)
	r.String("proxy_url", &p.ProxyURL)
	r.String("ca_file", &p.CAFile)
	r.Object("timeouts", func(r *document.Reader) {
		r.Duration("connect", &p.Timeouts.Connect, millisecond, day)
		r.Duration("first_byte", &p.Timeouts.FirstByte, millisecond, day)
		r.Duration("idle", &p.Timeouts.Idle, millisecond, day)
		r.Duration("total", &p.Timeouts.Total, millisecond, day)
	})
	r.Choice("client_gone", &p.ClientGone, Cancel, Drain)
	if n := r.Node("charge_partial_on_upstream_failure"); n != nil && n.Kind == document.Null {
		p.ChargePartialOnUpstreamFailure = nil
	} else if n != nil {
		charge := p.ChargesPartial()
		r.Bool("charge_partial_on_upstream_failure", &charge)
		p.ChargePartialOnUpstreamFailure = &charge
	}
	r.Choice("stream_usage", &p.StreamUsage, StreamUsageAuto, StreamUsageOn, StreamUsageOff)
	r.Object("bounds", func(r *document.Reader) {
		r.Int("max_connections", &p.Bounds.MaxConnections, 0, maxConnections)
		r.Int("max_idle_connections", &p.Bounds.MaxIdleConnections, 1, maxConnections)
		r.Int("max_answer_bytes", &p.Bounds.MaxAnswerBytes, minMessageBytes, maxMessageBytes)
		r.Int("max_event_bytes", &p.Bounds.MaxEventBytes, minMessageBytes, maxMessageBytes)
	})
	r.Bool("trust_provider_cost", &p.TrustProviderCost)
	r.Bool("shared_state", &p.SharedState)
	r.String("default_tier", &p.DefaultTier)
	r.Later("own_key")
	r.Add(p.Validate())
}

// defaultAuth is where the protocol's own service reads a credential.
func (p *Provider) defaultAuth() (auth, name string) {
	switch {
	case p.Vertex():
		return AuthServiceAccount, ""
	case p.Protocol == Anthropic:
		return AuthHeader, "X-Api-Key"
	case p.Protocol == Gemini:
		return AuthHeader, "X-Goog-Api-Key"
	case p.APIVersion != "":
		return AuthHeader, "Api-Key"
	default:
		return AuthBearer, ""
	}
}

// Read reads a model as somebody declares it, over the values that m has: a
// field that is left out stays. It validates the result and returns the paths
// that were given. Errors are document.Problems.
func (m *Model) Read(n *document.Node) (given map[string]bool, err error) {
	return document.Read(n, m.Fields)
}

// Fields reads the fields of a model out of a document that may have more, and
// validates them.
func (m *Model) Fields(r *document.Reader) {
	r.String("provider", &m.Provider)
	r.String("upstream", &m.Upstream)
	if m.Upstream == "" {
		m.Upstream = m.Name
	}
	r.Int("context_tokens", &m.ContextTokens, 0, MaxTokens)
	r.Int("max_output_tokens", &m.MaxOutputTokens, 0, MaxTokens)
	r.Int("default_output_tokens", &m.DefaultOutputTokens, 0, MaxTokens)
	r.Int("image_tokens", &m.ImageTokens, 0, MaxTokens)
	r.Int("bytes_per_token", &m.BytesPerToken, 0, 4)
	if n := r.Node("output_field"); n != nil && n.Kind == document.Null {
		m.OutputField = ""
	} else {
		r.Choice("output_field", &m.OutputField, MaxTokensField, MaxCompletionTokensField)
	}
	m.readPrice(r)
	r.Strings("aliases", &m.Aliases, MaxAliases)
	r.Add(m.Validate())
}

// DecodeProvider reads what EncodeProvider wrote. ID and Name are the caller's
// to set.
func DecodeProvider(body []byte) (*Provider, error) {
	p := NewProvider("", "")
	if err := decode("a provider", body, p.Fields); err != nil {
		return nil, err
	}
	return p, nil
}

// DecodeModel reads what EncodeModel wrote. ID and Name are the caller's to
// set.
func DecodeModel(body []byte) (*Model, error) {
	m := &Model{}
	if err := decode("a model", body, m.Fields); err != nil {
		return nil, err
	}
	return m, nil
}

func decode(what string, body []byte, fields func(*document.Reader)) error {
	n, err := document.ParseJSON(body)
	if err == nil {
		_, err = document.Read(n, fields)
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", what, err)
	}
	return nil
}

type timeoutsForm struct {
	Connect   string `json:"connect"`
	FirstByte string `json:"first_byte"`
	Idle      string `json:"idle"`
	Total     string `json:"total"`
}

type boundsForm struct {
	MaxConnections     int64 `json:"max_connections"`
	MaxIdleConnections int64 `json:"max_idle_connections"`
	MaxAnswerBytes     int64 `json:"max_answer_bytes"`
	MaxEventBytes      int64 `json:"max_event_bytes"`
}

type providerForm struct {
	Protocol      string            `json:"protocol"`
	Dialect       string            `json:"dialect,omitempty"`
	BaseURL       string            `json:"base_url"`
	APIVersion    string            `json:"api_version,omitempty"`
	Project       string            `json:"project,omitempty"`
	Location      string            `json:"location,omitempty"`
	Auth          string            `json:"auth"`
	AuthName      string            `json:"auth_name,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	ProxyURL      string            `json:"proxy_url,omitempty"`
	CAFile        string            `json:"ca_file,omitempty"`
	Timeouts      timeoutsForm      `json:"timeouts"`
	ClientGone    string            `json:"client_gone,omitempty"`
	ChargePartial *bool             `json:"charge_partial_on_upstream_failure,omitempty"`
	StreamUsage   string            `json:"stream_usage"`
	TrustCost     bool              `json:"trust_provider_cost,omitempty"`
	SharedState   bool              `json:"shared_state,omitempty"`
	DefaultTier   string            `json:"default_tier,omitempty"`
	Bounds        boundsForm        `json:"bounds"`
}

type modelForm struct {
	Provider            string          `json:"provider"`
	Upstream            string          `json:"upstream"`
	ContextTokens       int64           `json:"context_tokens,omitempty"`
	MaxOutputTokens     int64           `json:"max_output_tokens,omitempty"`
	DefaultOutputTokens int64           `json:"default_output_tokens,omitempty"`
	ImageTokens         int64           `json:"image_tokens,omitempty"`
	BytesPerToken       int64           `json:"bytes_per_token,omitempty"`
	OutputField         string          `json:"output_field,omitempty"`
	Price               json.RawMessage `json:"price,omitempty"`
	Aliases             []string        `json:"aliases,omitempty"`
}

// EncodeProvider writes a provider's JSON form, the same for equal ones. The
// credential is not in it.
func EncodeProvider(p *Provider) ([]byte, error) {
	return encode("a provider", providerForm{
		Protocol: p.Protocol, Dialect: p.Dialect, BaseURL: p.BaseURL, APIVersion: p.APIVersion,
		Project: p.Project, Location: p.Location, Auth: p.Auth, AuthName: p.AuthName,
		Headers: p.Headers, ProxyURL: p.ProxyURL, CAFile: p.CAFile,
		Timeouts: timeoutsForm{
			Connect: document.FormatDuration(p.Timeouts.Connect), FirstByte: document.FormatDuration(p.Timeouts.FirstByte),
			Idle: document.FormatDuration(p.Timeouts.Idle), Total: document.FormatDuration(p.Timeouts.Total),
		},
		ClientGone: p.ClientGone, ChargePartial: p.ChargePartialOnUpstreamFailure, StreamUsage: p.StreamUsage,
		TrustCost: p.TrustProviderCost, SharedState: p.SharedState, DefaultTier: p.DefaultTier,
		Bounds: boundsForm(p.Bounds),
	})
}

// EncodeModel writes a model's JSON form, the same for equal ones.
func EncodeModel(m *Model) ([]byte, error) {
	form := modelForm{
		Provider: m.Provider, Upstream: m.Upstream, ContextTokens: m.ContextTokens, MaxOutputTokens: m.MaxOutputTokens,
		DefaultOutputTokens: m.DefaultOutputTokens, ImageTokens: m.ImageTokens, BytesPerToken: m.BytesPerToken,
		OutputField: m.OutputField, Aliases: m.Aliases,
	}
	var err error
	if form.Price, err = encodePrice(m); err != nil {
		return nil, err
	}
	return encode("a model", form)
}

func encode(what string, form any) ([]byte, error) {
	body, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", what, err)
	}
	return body, nil
}

// canonical gives headers the one spelling that they are compared in.
func canonical(headers map[string]string) map[string]string {
	if len(headers) == 0 {
		return nil
	}
	same := make(map[string]string, len(headers))
	for name, value := range headers {
		same[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	return same
}
