// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/gateway"
)

// listen opens a bounded TCP listener (STO-5).
func listen(ctx context.Context, address string, maxConnections int64) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return netutil.LimitListener(l, int(maxConnections)), nil
}

// httpServer applies the named bounds. There is no bound on a whole answer: a
// stream may take as long as its provider's time-outs let it. The time of a
// request's body is bounded by the gateway, because a server-wide read time-out
// would end long streams with it.
func httpServer(h http.Handler, b config.Bounds, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: micros(b.HeaderTimeoutMicros),
		IdleTimeout:       micros(b.IdleTimeoutMicros),
		MaxHeaderBytes:    int(b.MaxHeaderBytes),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// bounded gives requests of administration the time for their bodies that those
// of models have.
func bounded(h http.Handler, body time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gateway.BoundTimes(w, r, body)
		h.ServeHTTP(w, r)
	})
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// certificate serves a key pair from files and takes up renewed ones: the files
// are looked at again at most once a second, on a handshake (STO-5).
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	pair     *tls.Certificate
	modified time.Time
	looked   time.Time
}

const certificateEvery = time.Second

func newCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *certificate) load() error {
	info, err := os.Stat(c.certFile)
	if err != nil {
		return fmt.Errorf("read tls.cert: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read tls.cert and tls.key: %w", err)
	}
	c.pair, c.modified = &pair, info.ModTime()
	return nil
}

// get is tls.Config's GetCertificate. Files that cannot be read, or do not fit
// together while they are being replaced, leave the certificate that works.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= certificateEvery {
		c.looked = now
		if info, err := os.Stat(c.certFile); err == nil && !info.ModTime().Equal(c.modified) {
			if err := c.load(); err != nil {
				c.log.Error("renewed certificate could not be read; the old one stays", "error", err)
			} else {
				c.log.Info("certificate was renewed")
			}
		}
	}
	return c.pair, nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}
