// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/route"
)

// endpoint hands out numbered tokens.
type endpoint struct {
	mu      sync.Mutex // guards what follows
	answers []string   // the next ones' lifetimes in seconds, or else; the last holds on
	asked   int
	gate    chan struct{} // an exchange waits for it; nil: none does
	arrived chan struct{}
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	e.asked++
	n, answer, gate := e.asked, e.answers[0], e.gate
	if len(e.answers) > 1 {
		e.answers = e.answers[1:]
	}
	e.mu.Unlock()
	e.arrived <- struct{}{}
	if gate != nil {
		<-gate
	}
	switch answer {
	case "down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "away":
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":%s}`, n, answer)
	}
}

func newEndpoint(t *testing.T, answers ...string) (e *endpoint, credential string) {
	t.Helper()
	e = &endpoint{answers: answers, arrived: make(chan struct{}, 1000)}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "weir@example.com", "token_uri": server.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, string(text)
}

func wantToken(t *testing.T, tokens *gateway.Tokens, credential, want string) {
	t.Helper()
	got, err := tokens.Token(t.Context(), route.NewProvider("", ""), credential)
	if err != nil || got != want {
		t.Errorf("token %q, %v, want %q", got, err, want)
	}
}

// TestOneExchangeServesAllThatWaitForIt: many requests of one account at once.
func TestOneExchangeServesAllThatWaitForIt(t *testing.T) {
	e, credential := newEndpoint(t, "3600")
	e.gate = make(chan struct{})
	tokens := gateway.NewTokens(gateway.NewTransports())
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { wantToken(t, tokens, credential, "token-1") })
	}
	<-e.arrived
	// Who does not want to wait leaves; the exchange goes on.
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := tokens.Token(gone, route.NewProvider("", ""), credential); err == nil {
		t.Error("it waited for nobody")
	}
	close(e.gate)
	all.Wait()
	wantToken(t, tokens, credential, "token-1")
	if e.asked != 1 {
		t.Errorf("%d exchanges", e.asked)
	}
}

// TestATokenIsRenewedBeforeItEnds: meanwhile the old one is used, and a failure
// leaves it in use.
func TestATokenIsRenewedBeforeItEnds(t *testing.T) {
	e, credential := newEndpoint(t, "200", "down", "3600")
	tokens := gateway.NewTokens(gateway.NewTransports())
	wantToken(t, tokens, credential, "token-1")
	<-e.arrived
	wantToken(t, tokens, credential, "token-1") // begins the one that fails
	<-e.arrived
	for got := ""; got != "token-3"; { // the next one begins when that has failed
		var err error
		if got, err = tokens.Token(t.Context(), route.NewProvider("", ""), credential); err != nil || got != "token-1" && got != "token-3" {
			t.Fatalf("token %q, %v", got, err)
		}
	}
	if n := e.count(); n != 3 {
		t.Errorf("%d exchanges", n)
	}
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// TestATokenThatCannotBeSentIsNotSent: at its end another one is asked for; what
// fails shows nothing of the key, and follows nobody elsewhere (DIS-11).
func TestATokenThatCannotBeSentIsNotSent(t *testing.T) {
	_, credential := newEndpoint(t, "1", "3600")
	tokens := gateway.NewTokens(gateway.NewTransports())
	wantToken(t, tokens, credential, "token-1") // all that there is
	wantToken(t, tokens, credential, "token-2")
	for _, answer := range []string{"down", "away", "0"} {
		_, credential := newEndpoint(t, answer)
		got, err := tokens.Token(t.Context(), route.NewProvider("", ""), credential)
		if err == nil || strings.Contains(err.Error(), "PRIVATE") || strings.Contains(err.Error(), "assertion") {
			t.Errorf("%s: token %q, %v", answer, got, err)
		}
	}
	if got, err := tokens.Token(t.Context(), route.NewProvider("", ""), `{"type":"secret-of-mine"}`); err == nil || strings.Contains(err.Error(), "mine") {
		t.Errorf("token %q, %v", got, err)
	}
}
