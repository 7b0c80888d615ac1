// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weirhq/weir/internal/ledger"
)

const (
	keepEvery   = time.Second
	sweepMicros = 5_000_000
	sweepBatch  = 256
	// settleDown: editors write a file in several steps; it is read when it has
	// been quiet so long.
	settleDown = 200 * time.Millisecond
)

// keep renews the reservations of running requests, sweeps those that nobody
// settled within their hold (RES-5), and looks at what memory is taken.
func (s *Server) keep(ctx context.Context) {
	every := s.options.hooks.every
	if every <= 0 {
		every = keepEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	swept := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.core.clock.Now()
		s.gateway.Renew(ctx)
		s.collector.adapt()
		if now-swept >= sweepMicros {
			s.sweep(ctx, now)
			swept = now
		}
	}
}

// sweep leaves alone what has expired after now: its own process may have slept,
// and renews it before the next sweep.
func (s *Server) sweep(ctx context.Context, now int64) {
	expired, err := s.core.book.Expired(ctx, sweepBatch)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("expired reservations could not be read", "error", err)
		}
		return
	}
	for _, r := range expired {
		if r.ExpiresAt > now {
			continue
		}
		op := &ledger.Op{Verb: ledger.Sweep, Workspace: r.Workspace, Reservation: r}
		err := s.core.teller.Post(op, func(result ledger.Result, err error) {
			if err == nil && result.Verdict == ledger.Done && !r.Tombstone { // else another process was first
				s.log.Warn("a reservation was neither settled nor renewed; its worst case is charged", "request_id", r.ID.String())
			}
		})
		if err != nil {
			return // the teller has stopped; the next start sweeps
		}
	}
}

// watch applies the configuration file again on SIGHUP and when it changes
// (STO-2). The folder is watched, because editors replace files.
func (s *Server) watch() (run func(context.Context)) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	watched, closeWatcher := s.watchFile()
	return func(ctx context.Context) {
		defer signal.Stop(hangup)
		defer closeWatcher()
		quiet := time.NewTimer(settleDown)
		quiet.Stop()
		defer quiet.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				quiet.Reset(0)
			case e := <-watched.Events:
				if watched.concerns(e) {
					quiet.Reset(settleDown)
				}
			case err := <-watched.Errors:
				s.log.Warn("changes of the configuration file may have been missed; it is read again", "error", err)
				quiet.Reset(settleDown)
			case <-quiet.C:
				if s.reload(ctx) {
					quiet.Reset(applyAgain)
				}
			}
		}
	}
}

// watched is the configuration file that is watched; without a watcher its
// channels never speak.
type watched struct {
	*fsnotify.Watcher
	name, target string
}

// concerns tells whether an event may have changed the file: itself, or what a
// link on its path leads to, which is how a mounted ConfigMap changes.
func (w *watched) concerns(e fsnotify.Event) bool {
	if filepath.Clean(e.Name) == w.name {
		return !e.Has(fsnotify.Chmod)
	}
	if !e.Has(fsnotify.Create) && !e.Has(fsnotify.Rename) {
		return false
	}
	target, err := filepath.EvalSymlinks(w.name)
	if err != nil || target == w.target {
		return false
	}
	w.target = target
	return true
}

func (s *Server) watchFile() (*watched, func()) {
	none := &watched{Watcher: &fsnotify.Watcher{}}
	if s.file.Name == "" {
		return none, func() {}
	}
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		err = watcher.Add(filepath.Dir(s.file.Name))
	}
	if err != nil {
		s.log.Warn("the configuration file is not watched; send SIGHUP after changing it", "error", err)
		return none, func() {}
	}
	w := &watched{Watcher: watcher, name: filepath.Clean(s.file.Name)}
	w.target, _ = filepath.EvalSymlinks(w.name) // it was read a moment ago
	return w, func() { _ = watcher.Close() }
}

// applyAgain is when a file is applied again that a store without an answer could
// not take.
const applyAgain = 2 * time.Second

// reload reads and applies the file; a broken one never replaces what works.
// again: nothing is known to be wrong with it, the store could not take it.
func (s *Server) reload(ctx context.Context) (again bool) {
	file, err := load(s.options)
	if err == nil {
		if err = s.apply(ctx, file); err != nil {
			again = !refusedFile(err)
		}
	}
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			s.log.Error("the configuration was not applied; the one before stays in force", "error", err, "applied_again", again)
		}
		return again
	}
	if !reflect.DeepEqual(file.Process, s.file.Process) {
		s.log.Warn("a setting of the process (listen, store, tls, bounds …) has changed; it takes effect at the next start")
	}
	return false
}
