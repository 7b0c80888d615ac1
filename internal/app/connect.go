// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/observe"
)

// socketSuffix names the socket beside the store: whoever may open it could
// open the store, so it asks for no token.
const socketSuffix = ".sock"

const dialPatience = 2 * time.Second

// maxSocketPath is what every Unix takes in a socket's address.
const maxSocketPath = 103

// socketPath is beside the store's file, or in the folder of a process on a shared
// store.
func socketPath(f *config.File) (string, bool) {
	if _, shared := f.Process.StoreURL(); shared {
		return filepath.Join(f.StateFolder(), stateName+socketSuffix), true
	}
	path, durable := f.Process.StorePath()
	return path + socketSuffix, durable
}

func isAdminPath(path string) bool {
	return path == "/metrics" || path == "/api/v1" || strings.HasPrefix(path, "/api/v1/")
}

// adminHandler serves administration to whoever has the token, and metrics.
func (c *core) adminHandler() (http.Handler, error) {
	api, err := admin.Handler(c.admin, c.admin.ByToken())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle("GET /metrics", c.metrics.Handler())
	return mux, nil
}

// listenSocket serves the same operations on the socket beside the store.
func (s *Server) listenSocket(ctx context.Context) error {
	path, durable := socketPath(s.file)
	if !durable {
		return nil
	}
	if len(path) > maxSocketPath {
		s.log.Warn("the store's path is too long for a socket beside it; reach this server with --server and the admin token", "path", path)
		return nil
	}
	// A dead process leaves its socket; the lock of the store, or of the folder, says
	// that it is dead.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("listen on the socket beside the store: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(fmt.Errorf("close the socket to others: %w", err), l.Close())
	}
	api, err := admin.Handler(s.core.admin, admin.BySocket())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	bounds := s.file.Process.Bounds
	server := httpServer(bounded(api, micros(bounds.BodyTimeoutMicros)), bounds, s.log)
	s.servers = append(s.servers, server)
	go s.run(func() error { return server.Serve(l) })
	return nil
}

// Connect is how a command reaches the operations: over the socket beside the
// store when a server runs there, else it opens the store and calls the same
// handler in this process. The returned function lets go of either.
func Connect(ctx context.Context, o Options) (http.RoundTripper, func() error, error) {
	file, err := load(o)
	if err != nil {
		return nil, nil, err
	}
	path, durable := socketPath(file)
	if !durable {
		return nil, nil, errors.New("store: memory keeps nothing; use --server with the address of the running server")
	}
	if transport, ok := dialSocket(ctx, path); ok {
		return transport, func() error { transport.CloseIdleConnections(); return nil }, nil
	}
	log := observe.NewLog(o.Stderr, "warn")
	c, err := openCore(ctx, file, o, log, false)
	if err != nil {
		return nil, nil, err
	}
	handler, err := admin.Handler(c.admin, admin.BySocket())
	if err != nil {
		return nil, nil, errors.Join(err, c.close(ctx))
	}
	return client.Direct(handler), func() error { return c.close(context.WithoutCancel(ctx)) }, nil
}

// dialSocket tells whether a server answers on the socket.
func dialSocket(ctx context.Context, path string) (*http.Transport, bool) {
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "unix", path)
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, false
	}
	_ = conn.Close() // it was only to see whether somebody listens
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}, true
}
