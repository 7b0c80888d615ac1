// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/config"
)

// readyPatience bounds one question.
const readyPatience = 4 * time.Second

// Ready asks a server whether admissions can be decided: nil says yes. The address
// is the configuration's, unless base names another.
func Ready(ctx context.Context, o Options, base string) error {
	if base == "" {
		file, err := load(o)
		if err != nil {
			return err
		}
		if base, err = ownAddress(&file.Process); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/readyz", http.NoBody)
	if err != nil {
		return fmt.Errorf("ask whether it is ready: %w", err)
	}
	// The question and its answer hold nothing to protect, and the certificate names
	// another host than the one that asks itself.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("ask whether it is ready: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // its status was all
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: status %d", base, response.StatusCode)
	}
	return nil
}

// ownAddress is where this machine reaches a server that listens on every address.
func ownAddress(p *config.Process) (string, error) {
	host, port, err := net.SplitHostPort(p.Listen)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	if port == "0" {
		return "", errors.New("listen takes a free port: name the server with --server")
	}
	// By number: a container may know no names.
	switch ip := net.ParseIP(host); {
	case host == "", ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	scheme := "http"
	if p.TLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}
