// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/child"
)

// balance runs the load balancer on its file. Where there is no HAProxy, a stand-in
// takes its place, which is said.
func balance(t *testing.T, file string, env map[string]string) {
	t.Helper()
	program, err := haproxy()
	if err != nil {
		t.Logf("a stand-in of the test's own takes the place of HAProxy: %v", err)
		standIn(t, env)
		return
	}
	c := exec.Command(program, "-db", "-f", file)
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	c.Stderr = os.Stderr
	process, err := child.Start(c, false, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.End(syscall.SIGTERM, patience); err != nil {
			t.Error(err)
		}
	})
}

// haproxy finds the program; Debian's package is installed for it when this process
// is root.
func haproxy() (string, error) {
	const place = "/usr/sbin/haproxy" // not in everybody's PATH
	find := func() (string, error) {
		if path, err := exec.LookPath("haproxy"); err == nil {
			return path, nil
		}
		return exec.LookPath(place)
	}
	path, err := find()
	if err == nil {
		return path, nil
	}
	apt, missing := exec.LookPath("apt-get")
	if missing != nil || os.Geteuid() != 0 {
		return "", errors.New("it is not installed, and only root can install Debian's package")
	}
	install := exec.Command(apt, "install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "haproxy")
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := install.CombinedOutput(); err != nil {
		return "", errors.New("it could not be installed: " + string(out))
	}
	return find()
}

// standIn balances as HAProxy's file says: the gateway with the fewest requests, and
// another one when a connection is refused.
func standIn(t *testing.T, env map[string]string) {
	t.Helper()
	var backends []*backend
	for name, address := range env {
		if strings.HasPrefix(name, "WEIR_") {
			backends = append(backends, &backend{address: address})
		}
	}
	slices.SortFunc(backends, func(a, b *backend) int { return strings.Compare(a.address, b.address) })
	b := &balancer{backends: backends}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", env["LISTEN"])
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "replicas"}) },
		Transport:     &http.Transport{DialContext: b.dial, DisableKeepAlives: true},
		FlushInterval: -1,
	}, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until Close
	t.Cleanup(func() { _ = server.Close() })
}

type backend struct {
	address string
	open    atomic.Int64
}

type balancer struct {
	mu       sync.Mutex
	backends []*backend
}

// dial connects to the gateway with the fewest connections that takes one.
func (b *balancer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := slices.Clone(b.backends)
	slices.SortStableFunc(order, func(x, y *backend) int { return int(x.open.Load() - y.open.Load()) })
	var failed error
	for _, one := range order {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", one.address)
		if err == nil {
			one.open.Add(1)
			return &countedConn{Conn: conn, open: &one.open}, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// countedConn takes a connection off its gateway's count when it is closed.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
