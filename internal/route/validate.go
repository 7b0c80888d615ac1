// SPDX-License-Identifier: Apache-2.0

package route

import (
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/tenant"
)

const (
	maxProviderName = 64
	maxURL          = 2048
	maxText         = 1024
)

// reserved headers are the gateway's own, or belong to one connection.
var reserved = []string{
	"Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Expect", "Host", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ValidProviderName tells what is wrong with the name of a provider. It travels
// in a header.
func ValidProviderName(name string) error {
	if len(name) > maxProviderName {
		return fmt.Errorf("must have 1 to %d characters", maxProviderName)
	}
	return tenant.ValidWorkspaceName(name)
}

// maxVersion bounds an API version, in bytes.
const maxVersion = 40

// maxTier bounds the name of a service tier, as prices have it.
const maxTier = 32

// Validate tells everything that is wrong with a provider, as
// document.Problems whose paths are those of its JSON form. Header names are
// put into canonical form.
func (p *Provider) Validate() error {
	var problems document.Problems
	if p.Name != "" {
		if err := ValidProviderName(p.Name); err != nil {
			problems.Add("name", "%v", err)
		}
	}
	if p.Protocol != OpenAI && p.Protocol != Anthropic && p.Protocol != Gemini {
		problems.Add("protocol", "must be %s, %s or %s", OpenAI, Anthropic, Gemini)
	}
	if p.Dialect != "" && tenant.ValidWorkspaceName(p.Dialect) != nil {
		problems.Add("dialect", "must be a word such as ollama")
	}
	if err := validURL(p.BaseURL, "http", "https"); err != nil {
		problems.Add("base_url", "%v", err)
	}
	if p.APIVersion != "" && (p.Protocol != OpenAI || len(p.APIVersion) > maxVersion || tenant.ValidWorkspaceName(p.APIVersion) != nil) {
		problems.Add("api_version", "must be a version of Azure's OpenAI service such as 2024-10-21, with protocol: openai")
	}
	if p.ProxyURL != "" {
		if err := validProxy(p.ProxyURL); err != nil {
			problems.Add("proxy_url", "%v", err)
		}
	}
	if len(p.DefaultTier) > maxTier || strings.Trim(p.DefaultTier, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		problems.Add("default_tier", "must be the name of a service tier such as priority")
	}
	if len(p.CAFile) > maxText {
		problems.Add("ca_file", "is longer than %d bytes", maxText)
	}
	p.checkVertex(&problems)
	p.checkAuth(&problems)
	p.checkHeaders(&problems)
	return problems.Err()
}

func (p *Provider) checkAuth(problems *document.Problems) {
	named := p.Auth == AuthHeader || p.Auth == AuthQuery
	switch {
	case p.Auth != AuthBearer && p.Auth != AuthNone && p.Auth != AuthServiceAccount && !named:
		problems.Add("auth", "must be %s, %s, %s, %s or %s", AuthBearer, AuthHeader, AuthQuery, AuthServiceAccount, AuthNone)
	case named && p.AuthName == "":
		problems.Add("auth_name", "is required: the name of the %s that carries the credential", p.Auth)
	case named && !token(p.AuthName):
		problems.Add("auth_name", "%s cannot name a %s", document.Quote(p.AuthName), p.Auth)
	case p.Auth == AuthHeader && slices.Contains(reserved[1:], textproto.CanonicalMIMEHeaderKey(p.AuthName)):
		problems.Add("auth_name", "%s is not for credentials", document.Quote(p.AuthName))
	case !named && p.AuthName != "":
		problems.Add("auth_name", "has no use with auth: %s: leave it out", p.Auth)
	}
}

func (p *Provider) checkHeaders(problems *document.Problems) {
	if len(p.Headers) > MaxHeaders {
		problems.Add("headers", "has %d fields, more than %d", len(p.Headers), MaxHeaders)
		return
	}
	names := make([]string, 0, len(p.Headers))
	for name := range p.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	seen := map[string]string{}
	for _, name := range names {
		path := document.Join("headers", name)
		same := textproto.CanonicalMIMEHeaderKey(name)
		if other, ok := seen[same]; ok {
			problems.Add(path, "is the same header as %s", other)
		}
		seen[same] = name
		switch {
		case !token(name):
			problems.Add(path, "cannot name a header")
		case slices.Contains(reserved, same):
			problems.Add(path, "is set by the gateway itself: leave it out")
		case p.Auth == AuthHeader && same == textproto.CanonicalMIMEHeaderKey(p.AuthName):
			problems.Add(path, "carries the credential (auth_name): leave it out")
		case len(p.Headers[name]) > maxText || !printable(p.Headers[name]):
			problems.Add(path, "must have at most %d printable ASCII characters", maxText)
		}
	}
	if len(seen) == len(p.Headers) {
		p.Headers = canonical(p.Headers)
	}
}

// Validate tells everything that is wrong with a model, as document.Problems
// whose paths are those of its JSON form (SPEC KEY-5, EST-1).
func (m *Model) Validate() error {
	var problems document.Problems
	if m.Name != "" {
		if err := tenant.ValidModelName(m.Name); err != nil {
			problems.Add("name", "%v", err)
		}
	}
	if m.Provider == "" {
		problems.Add("provider", "is required: the name of a provider")
	} else if err := ValidProviderName(m.Provider); err != nil {
		problems.Add("provider", "%v", err)
	}
	if m.Upstream == "" && m.Name != "" || len(m.Upstream) > maxText || !printable(m.Upstream) {
		problems.Add("upstream", "must have 1 to %d printable ASCII characters", maxText)
	}
	m.checkCounts(&problems)
	m.checkAliases(&problems)
	return problems.Err()
}

func (m *Model) checkCounts(problems *document.Problems) {
	for _, count := range []struct {
		path        string
		value, most int64
	}{
		{"context_tokens", m.ContextTokens, MaxTokens},
		{"max_output_tokens", m.MaxOutputTokens, MaxTokens},
		{"default_output_tokens", m.DefaultOutputTokens, MaxTokens},
		{"image_tokens", m.ImageTokens, MaxTokens},
		{"bytes_per_token", m.BytesPerToken, 4},
	} {
		if count.value < 0 || count.value > count.most {
			problems.Add(count.path, "must be from 0 to %d", count.most)
		}
	}
	if m.MaxOutputTokens > 0 && m.DefaultOutputTokens > m.MaxOutputTokens {
		problems.Add("default_output_tokens", "%d is above max_output_tokens of %d: lower it", m.DefaultOutputTokens, m.MaxOutputTokens)
	}
	if m.ContextTokens > 0 && m.MaxOutputTokens > m.ContextTokens {
		problems.Add("max_output_tokens", "%d is above context_tokens of %d: lower it", m.MaxOutputTokens, m.ContextTokens)
	}
	if m.OutputField != "" && m.OutputField != MaxTokensField && m.OutputField != MaxCompletionTokensField {
		problems.Add("output_field", "must be %s or %s", MaxTokensField, MaxCompletionTokensField)
	}
}

func (m *Model) checkAliases(problems *document.Problems) {
	if len(m.Aliases) > MaxAliases {
		problems.Add("aliases", "has %d items, more than %d", len(m.Aliases), MaxAliases)
		return
	}
	seen := map[string]bool{}
	if m.Name != "" {
		seen[strings.ToLower(m.Name)] = true
	}
	for i, alias := range m.Aliases {
		path := fmt.Sprintf("aliases[%d]", i)
		if err := tenant.ValidModelName(alias); err != nil {
			problems.Add(path, "%v", err)
		}
		if seen[strings.ToLower(alias)] {
			problems.Add(path, "%s is named already, but for the case of letters at most", document.Quote(alias))
		}
		seen[strings.ToLower(alias)] = true
	}
}

// validURL never shows the address: it may hold a credential where none
// belongs.
func validURL(text string, schemes ...string) error {
	if text == "" {
		return errors.New("is required")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL || !printable(text):
		return errors.New("is not an address such as https://api.example.com/v1")
	case !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("must begin with %s://", strings.Join(schemes, ":// or "))
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("has no host")
	case u.User != nil:
		return errors.New("must not hold a user or password: the credential is a field of its own")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return errors.New("must have neither query nor fragment")
	}
	return nil
}

func validProxy(text string) error {
	if err := validURL(text, "http", "https", "socks5"); err != nil {
		return err
	}
	if u, err := url.Parse(text); err != nil || u.Path != "" && u.Path != "/" {
		return errors.New("must have no path")
	}
	return nil
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// token reports whether text can name a header or parameter (RFC 9110 token).
func token(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != "" && len(text) <= maxText
}
