// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/weirhq/weir/internal/route"
)

const (
	// tokenScope is what Vertex AI asks a service account's token for.
	tokenScope = "https://www.googleapis.com/auth/cloud-platform"
	// tokenTimeout bounds one exchange of a key for a token.
	tokenTimeout = 20 * time.Second
	// tokenMargin is how long before its end a token is renewed, while it is still
	// used; tokenLeast is what it must have left to be sent.
	tokenMargin = 5 * time.Minute
	tokenLeast  = 10 * time.Second
	// maxTokens bounds the accounts that are remembered.
	maxTokens = 1024
)

// Tokens exchanges keys of service accounts for tokens, and keeps those until
// shortly before they end. Of each account one exchange runs at a time.
type Tokens struct {
	transports *Transports

	mu       sync.Mutex // guards accounts
	accounts map[[32]byte]*account
}

// NewTokens returns one that has no token yet. It reaches token endpoints as their
// providers are reached: by the same proxy, with the same roots.
func NewTokens(t *Transports) *Tokens {
	return &Tokens{transports: t, accounts: make(map[[32]byte]*account)}
}

// account is a service account, by its key.
type account struct {
	mu       sync.Mutex // guards what follows
	token    *oauth2.Token
	exchange *exchanging // nil: none runs
}

// exchanging is one that runs; its outcome may be read once done is closed.
type exchanging struct {
	done  chan struct{}
	token *oauth2.Token
	err   error
}

// Token is what a provider's credential is good for now. It waits only where no
// token is there that can be sent. Errors show nothing of the credential.
func (t *Tokens) Token(ctx context.Context, p *route.Provider, credential string) (string, error) {
	a := t.account(p, credential)
	a.mu.Lock()
	left := time.Duration(0)
	if a.token != nil {
		left = time.Until(a.token.Expiry)
	}
	if left < tokenMargin && a.exchange == nil {
		a.exchange = &exchanging{done: make(chan struct{})}
		go a.renew(t.transports, p, credential, a.exchange)
	}
	token, running := a.token, a.exchange
	a.mu.Unlock()
	if left >= tokenLeast {
		return token.AccessToken, nil
	}
	select {
	case <-running.done:
	case <-ctx.Done():
		return "", fmt.Errorf("wait for a token: %w", context.Cause(ctx))
	}
	if running.err != nil {
		return "", running.err
	}
	return running.token.AccessToken, nil
}

func (t *Tokens) account(p *route.Provider, credential string) *account {
	key := sha256.Sum256([]byte(p.ProxyURL + "\x00" + p.CAFile + "\x00" + credential))
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.accounts[key]
	if a == nil {
		if len(t.accounts) >= maxTokens {
			for old := range t.accounts {
				delete(t.accounts, old)
				break
			}
		}
		a = &account{}
		t.accounts[key] = a
	}
	return a
}

// renew makes one exchange. One that fails leaves the token that is there, which
// is used to its end.
func (a *account) renew(t *Transports, p *route.Provider, credential string, e *exchanging) {
	e.token, e.err = exchangeKey(t, p, credential)
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.err == nil {
		a.token = e.token
	}
	a.exchange = nil
	close(e.done)
}

func exchangeKey(t *Transports, p *route.Provider, credential string) (*oauth2.Token, error) {
	key, err := route.ReadServiceKey(credential)
	if err != nil {
		return nil, fmt.Errorf("the credential %w", err)
	}
	transport, err := t.of(p)
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Transport: transport, Timeout: tokenTimeout,
		// The signed assertion goes to nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	config := jwt.Config{
		Email: key.Email, PrivateKey: []byte(key.PrivateKey), PrivateKeyID: key.KeyID,
		Scopes: []string{tokenScope}, TokenURL: key.TokenURI,
	}
	token, err := config.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client)).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil:
		return nil, fmt.Errorf("the token endpoint answered %d", refused.Response.StatusCode)
	case err != nil:
		return nil, fmt.Errorf("exchange a service account's key: %w", err)
	case token.AccessToken == "" || token.Expiry.IsZero():
		return nil, errors.New("the token endpoint gave no token with an end")
	}
	return token, nil
}
