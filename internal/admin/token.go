// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// tokenMark begins an admin token that is made here. It is not how an API key
// begins: neither opens what the other does (SPEC ADM-2, BR-195).
const tokenMark = "weiradmin_"

const (
	minToken = 16
	maxToken = 256
)

// ValidToken tells what is wrong with an admin token that somebody brings.
func ValidToken(token string) error {
	if strings.HasPrefix(token, tenant.SecretMark) {
		return fmt.Errorf("begins with %s, as API keys do: choose another", tenant.SecretMark)
	}
	if len(token) < minToken || len(token) > maxToken || !printable(token) || strings.Contains(token, " ") {
		return fmt.Errorf("must have %d to %d printable ASCII characters without spaces", minToken, maxToken)
	}
	return nil
}

// SetToken makes a token the system's admin token, in the place of any other.
// Only its hash is stored.
func (s *Service) SetToken(ctx context.Context, token string) error {
	if err := ValidToken(token); err != nil {
		return refuse("admin_token", "%v", err)
	}
	return answer(s.Secrets.SetAdminTokenHash(ctx, sha256.Sum256([]byte(token))))
}

// EnsureToken makes an admin token when there is none: it is shown once. The
// answer is "" when there was one.
func (s *Service) EnsureToken(ctx context.Context) (token string, err error) {
	_, err = s.Secrets.AdminTokenHash(ctx)
	if !errors.Is(err, store.ErrNotFound) {
		return "", answer(err)
	}
	var random [20]byte
	if _, err := io.ReadFull(s.Random, random[:]); err != nil {
		return "", fmt.Errorf("make an admin token: %w", err)
	}
	token = tokenMark + idAlphabet.EncodeToString(random[:])
	return token, s.SetToken(ctx, token)
}

// Authenticate finds out who sends a request.
type Authenticate func(r *http.Request) (Actor, error)

// ByToken accepts the admin token as a bearer. Its workspace is System's to
// name. Hashes are compared in constant time.
func (s *Service) ByToken() Authenticate {
	return func(r *http.Request) (Actor, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.HasPrefix(token, tenant.SecretMark) {
			return Actor{}, fault.New(fault.Unauthorized, "send the admin token as Authorization: Bearer; an API key opens nothing here")
		}
		want, err := s.Secrets.AdminTokenHash(r.Context())
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return Actor{}, answer(err)
		}
		if err != nil || !tenant.SameHash(want, sha256.Sum256([]byte(token))) {
			return Actor{}, fault.New(fault.Unauthorized, "this admin token is unknown")
		}
		return Actor{Name: "admin token", Role: System}, nil
	}
}

// BySocket accepts everybody: who can open the socket beside the store could
// open the store.
func BySocket() Authenticate {
	return func(*http.Request) (Actor, error) { return Actor{Name: "socket", Role: System}, nil }
}
