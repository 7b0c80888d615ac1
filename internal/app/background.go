// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weirhq/weir/internal/ledger"
)

const (
	sweepEvery = 5 * time.Second
	sweepBatch = 256
	// settleDown: editors write a file in several steps; it is read when it has
	// been quiet so long.
	settleDown = 200 * time.Millisecond
)

// sweep settles reservations that nobody settled within their hold (RES-5).
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		expired, err := s.core.book.Expired(ctx, sweepBatch)
		if err != nil {
			s.log.Warn("expired reservations could not be read", "error", err)
			continue
		}
		for _, r := range expired {
			s.log.Warn("a reservation was neither settled nor renewed; its worst case is charged", "request_id", r.ID.String())
			op := &ledger.Op{Verb: ledger.Sweep, Workspace: r.Workspace, Reservation: r}
			if err := s.core.teller.Post(op, nil); err != nil {
				return // the teller has stopped; the next start sweeps
			}
		}
	}
}

// watch applies the configuration file again on SIGHUP and when it changes
// (STO-2). The folder is watched, because editors replace files.
func (s *Server) watch(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	events, closeWatcher := s.watchFile()
	defer closeWatcher()
	quiet := time.NewTimer(settleDown)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			s.reload(ctx)
		case e := <-events:
			if filepath.Clean(e.Name) == filepath.Clean(s.file.Name) && !e.Has(fsnotify.Chmod) {
				quiet.Reset(settleDown)
			}
		case <-quiet.C:
			s.reload(ctx)
		}
	}
}

func (s *Server) watchFile() (<-chan fsnotify.Event, func()) {
	if s.file.Name == "" {
		return nil, func() {}
	}
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		err = watcher.Add(filepath.Dir(s.file.Name))
	}
	if err != nil {
		s.log.Warn("the configuration file is not watched; send SIGHUP after changing it", "error", err)
		return nil, func() {}
	}
	return watcher.Events, func() { _ = watcher.Close() }
}

// reload reads and applies the file; a broken one never replaces what works.
func (s *Server) reload(ctx context.Context) {
	file, err := load(s.options)
	if err == nil {
		err = s.apply(ctx, file)
	}
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			s.log.Error("the configuration was not applied; the one before stays in force", "error", err)
		}
		return
	}
	if file.Process != s.file.Process {
		s.log.Warn("a setting of the process (listen, store, tls, bounds …) has changed; it takes effect at the next start")
	}
}
