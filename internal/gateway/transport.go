// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/route"
)

// maxTransports bounds how many differently configured connection pools there
// are: a pool for each distinct setting, not for each provider.
const maxTransports = 256

// Transports are the connection pools to providers. The default of two idle
// connections a host is the largest single mistake a proxy can make: it costs
// 2.6 times (ENGINE).
type Transports struct {
	mu   sync.Mutex
	made map[settings]*http.Transport
}

// settings is what makes one pool differ from another.
type settings struct {
	proxy, caFile           string
	connectMicros           int64
	maxConnections, maxIdle int64
}

// NewTransports returns an empty set of pools.
func NewTransports() *Transports { return &Transports{made: map[settings]*http.Transport{}} }

// RoundTrip sends a request by the provider's pool. Redirects are not followed.
func (t *Transports) RoundTrip(p *route.Provider, r *http.Request) (*http.Response, error) {
	transport, err := t.of(p)
	if err != nil {
		return nil, err
	}
	return transport.RoundTrip(r)
}

func (t *Transports) of(p *route.Provider) (*http.Transport, error) {
	s := settings{
		proxy: p.ProxyURL, caFile: p.CAFile, connectMicros: p.Timeouts.Connect,
		maxConnections: p.Bounds.MaxConnections, maxIdle: p.Bounds.MaxIdleConnections,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.made[s]; made != nil {
		return made, nil
	}
	made, err := s.transport()
	if err != nil {
		return nil, err
	}
	if len(t.made) >= maxTransports {
		for old, pool := range t.made {
			pool.CloseIdleConnections()
			delete(t.made, old)
			break
		}
	}
	t.made[s] = made
	return made, nil
}

func (s settings) transport() (*http.Transport, error) {
	connect := time.Duration(s.connectMicros) * time.Microsecond
	idle := int(s.maxIdle)
	if idle <= 0 {
		idle = route.DefaultMaxIdleConnections
	}
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: connect,
		MaxIdleConns:        idle,
		MaxIdleConnsPerHost: idle,
		MaxConnsPerHost:     int(s.maxConnections),
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
		// An answer that was packed on the way would delay a stream's events.
		DisableCompression: true,
		// Held by every open connection; what is larger is read and written without them.
		WriteBufferSize: 4 << 10,
		ReadBufferSize:  8 << 10,
	}
	if s.proxy != "" {
		proxy, err := url.Parse(s.proxy)
		if err != nil {
			return nil, fmt.Errorf("parse proxy_url: %w", err)
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	if s.caFile != "" {
		pem, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file %s holds no certificate", s.caFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return t, nil
}

// Close ends the idle connections of every pool.
func (t *Transports) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pool := range t.made {
		pool.CloseIdleConnections()
	}
}
