// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
)

func readProvider(t *testing.T, text string) (*route.Provider, error) {
	t.Helper()
	n, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := route.NewProvider("", "")
	_, err = p.Read(n)
	return p, err
}

// TestVertexIsKnownByItsProject: SPEC section 9 (Vertex).
func TestVertexIsKnownByItsProject(t *testing.T) {
	for _, c := range []struct{ text, address string }{
		{`{"protocol":"gemini","project":"p","location":"us-central1"}`, "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google/models/m:generateContent"},
		{`{"protocol":"gemini","project":"p","location":"global"}`, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/m:generateContent"},
		{`{"protocol":"gemini","project":"p","location":"eu","base_url":"http://127.0.0.1:1"}`, "http://127.0.0.1:1/v1/projects/p/locations/eu/publishers/google/models/m:generateContent"},
	} {
		p, err := readProvider(t, c.text)
		if err != nil || p.Auth != route.AuthServiceAccount || p.Address("/models/m:generateContent", "m", false) != c.address {
			t.Errorf("%s: %v, %+v", c.text, err, p)
			continue
		}
		body, err := route.EncodeProvider(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := route.DecodeProvider(body); err != nil || again.Project != p.Project || again.Location != p.Location || again.BaseURL != p.BaseURL || again.Auth != p.Auth {
			t.Errorf("%s: read again %+v, %v", body, again, err)
		}
	}
	p, err := readProvider(t, `{"protocol":"gemini","project":"p","location":"eu"}`)
	if err != nil || p.Address("/endpoints/1:generateContent", "endpoints/1", false) != "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/endpoints/1:generateContent" {
		t.Errorf("an endpoint of one's own: %+v, %v", p, err)
	}
	for text, path := range map[string]string{
		`{"protocol":"gemini","project":"p","base_url":"https://x.example"}`:                           "location",
		`{"protocol":"gemini","location":"eu","base_url":"https://x.example"}`:                         "project",
		`{"project":"p","location":"eu"}`:                                                              "project",
		`{"protocol":"gemini","project":"a/b","location":"eu"}`:                                        "project",
		`{"protocol":"gemini","project":"p","location":"eu.example/"}`:                                 "location",
		`{"protocol":"gemini","base_url":"https://x.example","auth":"service_account"}`:                "auth",
		`{"protocol":"gemini","project":"p","location":"eu","auth":"service_account","auth_name":"x"}`: "auth_name",
	} {
		if _, err := readProvider(t, text); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %s refused", text, err, path)
		}
	}
}

// TestAServiceKeyIsReadStrictly: what is wrong is named, and nothing of the key.
func TestAServiceKeyIsReadStrictly(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pemOf := func(key any) string {
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	}
	file := func(change func(f map[string]string)) string {
		f := map[string]string{
			"type": "service_account", "client_email": "a@b", "private_key_id": "1", "private_key": pemOf(key), "token_uri": "https://oauth2.googleapis.com/token",
		}
		change(f)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	got, err := route.ReadServiceKey(file(func(map[string]string) {}))
	if err != nil || got.Email != "a@b" || got.KeyID != "1" || got.TokenURI != "https://oauth2.googleapis.com/token" {
		t.Fatalf("%+v, %v", got, err)
	}
	for what, text := range map[string]string{
		"JSON key":    "/etc/weir/key-of-mine.json",
		"JSON key ":   file(func(f map[string]string) { f["type"] = "authorized_user" }),
		"email":       file(func(f map[string]string) { delete(f, "client_email") }),
		"token_uri":   file(func(f map[string]string) { f["token_uri"] = "http://mine.example/token" }),
		"token_uri ":  file(func(f map[string]string) { f["token_uri"] = "https://mine:x@example.com" }),
		"private_key": file(func(f map[string]string) { f["private_key"] = "mine" }),
		"RSA":         file(func(f map[string]string) { f["private_key"] = pemOf(curve) }),
		"longer":      strings.Repeat("mine", 5000),
	} {
		if _, err := route.ReadServiceKey(text); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(what)) || strings.Contains(err.Error(), "mine") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestADefaultTierIsATiersName: EST-3.
func TestADefaultTierIsATiersName(t *testing.T) {
	p, err := readProvider(t, `{"base_url":"https://x.example","default_tier":"priority"}`)
	if err != nil || p.DefaultTier != "priority" {
		t.Fatalf("%+v, %v", p, err)
	}
	body, err := route.EncodeProvider(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := route.DecodeProvider(body); err != nil || again.DefaultTier != "priority" {
		t.Errorf("read again: %+v, %v", again, err)
	}
	for _, tier := range []string{"Priority", "a b", strings.Repeat("x", 33), "a\u00e9"} {
		if _, err := readProvider(t, `{"base_url":"https://x.example","default_tier":"`+tier+`"}`); err == nil || !strings.Contains(err.Error(), "default_tier") {
			t.Errorf("%q: %v", tier, err)
		}
	}
}
