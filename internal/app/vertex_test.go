// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// cloud is Google's: a token endpoint, and Vertex AI with the simulated provider
// behind it.
type cloud struct {
	t        *testing.T
	key      *rsa.PrivateKey
	token    *httptest.Server
	platform *httptest.Server
	provider *url.URL

	mu     sync.Mutex // guards what follows
	down   bool
	issued []string
	seen   []string // paths, with their queries
	bodies []string
	echo   bool // the platform refuses, and repeats the token
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{t: t, key: key}
	c.token = httptest.NewServer(http.HandlerFunc(c.exchange))
	c.platform = httptest.NewServer(http.HandlerFunc(c.predict))
	t.Cleanup(func() { c.token.Close(); c.platform.Close() })
	return c
}

// keyFile is the account's key as Google hands it out.
func (c *cloud) keyFile() string {
	raw, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p-1", "private_key_id": "key-1", "client_email": "weir@p-1.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), "token_uri": c.token.URL + "/token",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// exchange gives a token for an assertion that the account's key has signed.
func (c *cloud) exchange(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	parts := strings.Split(r.FormValue("assertion"), ".")
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(parts) != 3 {
		http.Error(w, "no assertion", http.StatusBadRequest)
		return
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err == nil {
		err = rsa.VerifyPKCS1v15(&c.key.PublicKey, crypto.SHA256, digest[:], signature)
	}
	if err != nil {
		http.Error(w, "not signed by the account", http.StatusUnauthorized)
		return
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Scope    string `json:"scope"`
		Audience string `json:"aud"`
		From     int64  `json:"iat"`
		Until    int64  `json:"exp"`
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1]) // it was signed
	_ = json.Unmarshal(payload, &claims)
	if claims.Issuer != "weir@p-1.iam.gserviceaccount.com" || claims.Scope != "https://www.googleapis.com/auth/cloud-platform" ||
		claims.Audience != c.token.URL+"/token" || claims.Until-claims.From != 3600 {
		http.Error(w, "other claims", http.StatusBadRequest)
		return
	}
	token := fmt.Sprint("ya29.token-", len(c.issued))
	c.issued = append(c.issued, token)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
}

// predict is Vertex AI: each path leads to the simulated provider's own.
func (c *cloud) predict(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "cut", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	valid := slices.Contains(c.issued, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	c.seen, c.bodies = append(c.seen, r.URL.RequestURI()), append(c.bodies, string(body))
	echo := c.echo
	c.mu.Unlock()
	const place = "/v1/projects/p-1/locations/europe-west1/publishers/"
	if !valid || echo {
		http.Error(w, `{"error":{"code":403,"message":"`+r.Header.Get("Authorization")+`","status":"PERMISSION_DENIED"}}`, http.StatusForbidden)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, place)
	r.Header.Set("X-Goog-Api-Key", providerCredential)
	r.Header.Set("X-Api-Key", providerCredential)
	r.Header.Del("Authorization")
	switch {
	case strings.HasPrefix(path, "google/models/"):
		r.URL.Path = "/v1beta/" + strings.TrimPrefix(path, "google/")
	case path == "anthropic/models/count-tokens:rawPredict":
		r.URL.Path = "/v1/messages/count_tokens"
	case strings.HasPrefix(path, "anthropic/models/") && bytes.Contains(body, []byte(`"anthropic_version":"vertex-2023-10-16"`)):
		r.URL.Path = "/v1/messages"
		body = append([]byte(`{"model":"sim?in=20&out=30",`), body[1:]...)
	default:
		http.NotFound(w, r)
		return
	}
	r.URL.RawPath = ""
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	proxy := httputil.NewSingleHostReverseProxy(c.provider)
	proxy.FlushInterval = -1
	proxy.ServeHTTP(w, r)
}

// world is a gateway to it.
func (c *cloud) world() *world {
	text := strings.ReplaceAll(`providers:
  - {name: google, protocol: gemini, base_url: "%CLOUD%", project: p-1, location: europe-west1, api_key: '%KEY%'}
  - {name: claude, protocol: anthropic, base_url: "%CLOUD%/v1", project: p-1, location: europe-west1, api_key: '%KEYAGAIN%'}
models:
  - {name: g, provider: google, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: a, provider: claude, upstream: "claude@20250929", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+routesKey+`}
`, "%CLOUD%", c.platform.URL)
	key := c.keyFile()
	text = strings.ReplaceAll(strings.ReplaceAll(text, "%KEYAGAIN%", key), "%KEY%", key)
	w := newWorld(c.t, text)
	u, err := url.Parse(w.provider.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	c.provider = u
	return w
}

const (
	geminiAsk = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`
	claudeAsk = `{"model":"a","max_tokens":100,"messages":[{"role":"user","content":"hello"}]`
)

// TestVertexIsCalledWithAServiceAccountsToken: SPEC section 9 (Vertex), KEY-1.
// Every door of both protocols, charged as the provider bills; one exchange serves
// all.
func TestVertexIsCalledWithAServiceAccountsToken(t *testing.T) {
	c := newCloud(t)
	w := c.world()
	for _, ask := range []struct{ path, body string }{
		{"/v1beta/models/g:generateContent", geminiAsk},
		{"/v1beta/models/g:streamGenerateContent?alt=sse", geminiAsk},
		{"/v1beta/models/g:countTokens", geminiAsk},
		{"/v1/messages", claudeAsk + `}`},
		{"/v1/messages", claudeAsk + `,"stream":true}`},
		{"/v1/messages/count_tokens", `{"model":"a","messages":[{"role":"user","content":"hello"}]}`},
	} {
		if a := w.do(t.Context(), http.MethodPost, ask.path, routesKey, ask.body); a.status != 200 {
			t.Errorf("%s: %v", ask.path, a)
		}
	}
	const place = "/v1/projects/p-1/locations/europe-west1/publishers/"
	if want := []string{
		place + "google/models/sim%3Fin=20&out=30:generateContent",
		place + "google/models/sim%3Fin=20&out=30:streamGenerateContent?alt=sse",
		place + "google/models/sim%3Fin=20&out=30:countTokens",
		place + "anthropic/models/claude@20250929:rawPredict",
		place + "anthropic/models/claude@20250929:streamRawPredict",
		place + "anthropic/models/count-tokens:rawPredict",
	}; !slices.Equal(c.seen, want) {
		t.Errorf("asked for\n%q, want\n%q", c.seen, want)
	}
	if want := `{"anthropic_version":"vertex-2023-10-16","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`; c.bodies[3] != want {
		t.Errorf("sent %s, want %s", c.bodies[3], want)
	}
	if len(c.issued) != 1 {
		t.Errorf("%d tokens were issued", len(c.issued))
	}
	w.settled("1", "10")
}

// TestATokenEndpointThatFailsIsAProviderThatCannotBeReached: DIS-9, RES-4, RES-10.
// Nothing is sent and nothing charged; the next request asks again.
func TestATokenEndpointThatFailsIsAProviderThatCannotBeReached(t *testing.T) {
	c := newCloud(t)
	w := c.world()
	c.down = true
	for range 2 {
		w.must(w.do(t.Context(), http.MethodPost, "/v1/messages", routesKey, claudeAsk+`}`), 502, "upstream_unreachable")
	}
	if spent := w.spend("k"); len(c.seen) != 0 || spent != 0 {
		t.Errorf("the platform saw %q, %s was charged", c.seen, spent)
	}
	c.mu.Lock()
	c.down = false
	c.mu.Unlock()
	w.must(w.do(t.Context(), http.MethodPost, "/v1/messages", routesKey, claudeAsk+`}`), 200, "")
	w.settled("1", "10")
	// A token that is repeated in an error is no answer's (DIS-2).
	c.mu.Lock()
	c.echo = true
	c.mu.Unlock()
	a := w.do(t.Context(), http.MethodPost, "/v1beta/models/g:generateContent", routesKey, geminiAsk)
	if a.status != 403 || strings.Contains(a.body, "ya29") || !strings.Contains(a.body, "[credential]") {
		t.Errorf("%v", a)
	}
	w.balanced()
}
