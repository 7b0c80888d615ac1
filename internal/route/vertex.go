// SPDX-License-Identifier: Apache-2.0

package route

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/tenant"
)

// Google's Vertex AI serves models of several publishers in a project and at a
// location, to service accounts.

// AuthServiceAccount sends, as a bearer, a token that the key of a service account
// is exchanged for.
const AuthServiceAccount = "service_account"

// VertexVersion is what Vertex AI takes for the version of Anthropic's API.
const VertexVersion = "vertex-2023-10-16"

const (
	// maxServiceKey bounds the JSON key of a service account, in bytes.
	maxServiceKey = 16 << 10
	maxPlace      = 64
)

// Vertex tells that it is Google's Vertex AI.
func (p *Provider) Vertex() bool { return p.Project != "" }

// BodyVersion is the version of Anthropic's API that stands in the body of each
// request where Vertex AI serves it; "": none does.
func (p *Provider) BodyVersion() string {
	if p.Vertex() && p.Protocol == Anthropic {
		return VertexVersion
	}
	return ""
}

// vertexURL is the public address of a location.
func (p *Provider) vertexURL() string {
	switch p.Location {
	case "":
		return ""
	case "global":
		return "https://aiplatform.googleapis.com/v1"
	default:
		return "https://" + p.Location + "-aiplatform.googleapis.com/v1"
	}
}

// published is where Vertex AI has a door's path for a model.
func (p *Provider) published(path, model string, stream bool) string {
	place := "/projects/" + url.PathEscape(p.Project) + "/locations/" + url.PathEscape(p.Location)
	switch {
	case path == "/messages/count_tokens":
		return place + "/publishers/anthropic/models/count-tokens:rawPredict"
	case p.Protocol == Anthropic && stream:
		return place + "/publishers/anthropic/models/" + url.PathEscape(model) + ":streamRawPredict"
	case p.Protocol == Anthropic:
		return place + "/publishers/anthropic/models/" + url.PathEscape(model) + ":rawPredict"
	case strings.HasPrefix(path, "/models/"):
		return place + "/publishers/google" + path
	default: // the model says itself what it is: "endpoints/123"
		return place + path
	}
}

func (p *Provider) checkVertex(problems *document.Problems) {
	for _, field := range []struct{ path, value string }{{"project", p.Project}, {"location", p.Location}} {
		if field.value != "" && (len(field.value) > maxPlace || tenant.ValidWorkspaceName(field.value) != nil) {
			problems.Add(field.path, "must have 1 to %d letters, digits, dots, hyphens and underscores", maxPlace)
		}
	}
	switch {
	case p.Project == "" && p.Location != "":
		problems.Add("project", "is required beside location: the project of Google's cloud")
	case p.Project != "" && p.Location == "":
		problems.Add("location", "is required beside project: where Vertex AI serves it, for example europe-west1 or global")
	case p.Vertex() && p.Protocol == OpenAI:
		problems.Add("project", "is for protocol: gemini or anthropic")
	case p.Auth == AuthServiceAccount && !p.Vertex():
		problems.Add("auth", "%s needs project and location", AuthServiceAccount)
	}
}

// ServiceKey is the JSON key of a service account.
type ServiceKey struct {
	Email      string `json:"client_email"`
	KeyID      string `json:"private_key_id"`
	PrivateKey string `json:"private_key"` // PEM
	TokenURI   string `json:"token_uri"`
}

// ReadServiceKey reads a service account's key as Google hands it out. Its errors
// show nothing of it.
func ReadServiceKey(text string) (*ServiceKey, error) {
	var key struct {
		Type string `json:"type"`
		ServiceKey
	}
	if len(text) > maxServiceKey {
		return nil, errors.New("is longer than a service account's key")
	}
	if err := json.Unmarshal([]byte(text), &key); err != nil || key.Type != "service_account" {
		return nil, errors.New("must be the JSON key of a service account: the content of its file, not the file's name")
	}
	if key.Email == "" {
		return nil, errors.New("has no client_email")
	}
	if !tokenURI(key.TokenURI) {
		return nil, errors.New("has no token_uri that begins with https://")
	}
	if !rsaKey(key.PrivateKey) {
		return nil, errors.New("has no private_key that can be read: an RSA key in PEM without a passphrase")
	}
	return &key.ServiceKey, nil
}

// tokenURI: a key is never shown to who listens on the way.
func tokenURI(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

func rsaKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		_, ok := parsed.(*rsa.PrivateKey)
		return ok
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}
