// SPDX-License-Identifier: Apache-2.0

// Package app puts the program together: configuration in, running program out.
// It is the only package that may import every other one, and holds no logic of
// its own beyond starting, joining and stopping.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/keeper"
	"github.com/weirhq/weir/internal/observe"
	"github.com/weirhq/weir/internal/rule"
)

// Options are what a program is started with.
type Options struct {
	ConfigPath     string
	Env            func(string) (string, bool)
	Stdout, Stderr io.Writer
	LogLevel       string
	AcceptClock    bool
	// Clock is the system's when nil.
	Clock clock.Clock

	hooks hooks
}

// hooks are what this package's tests change; zero values change nothing.
type hooks struct {
	chat         func(gateway.Protocol) gateway.Protocol
	writeTimeout time.Duration
	// every is how often the background work looks for something to do.
	every time.Duration
	// leave replaces the wait for a load balancer.
	leave func(context.Context, time.Duration)
	// settle is how long a stop waits for a store that takes no settlements.
	settle time.Duration
	// migrations are those of another version of this program.
	migrations fs.FS
	// database is the clock of a shared store; nil: Options.Clock.
	database clock.Clock
}

func (o *Options) databaseClock() clock.Clock {
	if o.hooks.database != nil {
		return o.hooks.database
	}
	return o.Clock
}

// Server is a running program.
type Server struct {
	options    Options
	file       *config.File
	core       *core
	gateway    *gateway.Gateway
	transports *gateway.Transports
	keeper     *keeper.Keeper
	log        *slog.Logger
	adminToken string
	collector  *collector

	models         door
	administration door

	servers   []*http.Server
	addr      net.Addr
	adminAddr net.Addr

	ended      chan error
	background sync.WaitGroup
	quit       context.CancelFunc
	stopping   sync.Once
	stopped    error
}

// Addr is where the models are served, AdminAddr where the admin API is.
func (s *Server) Addr() string { return s.addr.String() }

// AdminAddr is where the admin API is served.
func (s *Server) AdminAddr() string { return s.adminAddr.String() }

// AdminToken is the admin token when this start has made it, else empty.
func (s *Server) AdminToken() string { return s.adminToken }

// Wait returns when the program has ended: nil after Stop.
func (s *Server) Wait() error { return <-s.ended }

// Start opens the store, applies the configuration, and serves. The program
// runs until Stop; ctx bounds the start alone.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	file, err := load(o)
	if err != nil {
		return nil, err
	}
	level := file.Process.LogLevel
	if o.LogLevel != "" && o.LogLevel != "info" {
		level = o.LogLevel
	}
	s := &Server{options: o, file: file, log: observe.NewLog(o.Stderr, level), ended: make(chan error, 1)}
	s.collector = newCollector(o.Env)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeServers())
		}
		if err != nil && s.core != nil {
			err = errors.Join(err, s.core.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.build()
	if err := s.serve(ctx); err != nil {
		return nil, err
	}
	var running context.Context
	running, s.quit = context.WithCancel(context.WithoutCancel(ctx))
	s.keeper.Start()
	s.background.Go(func() { s.keep(running) })
	s.background.Go(func() { s.retain(running) })
	s.background.Go(func() { s.roll(running) })
	s.share(running)
	watch := s.watch() // it listens before anybody is told that the program runs
	s.background.Go(func() { watch(running) })
	return s, nil
}

func load(o Options) (*config.File, error) {
	env := o.Env
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	return config.LoadWith(o.ConfigPath, env)
}

// build joins the data plane.
func (s *Server) build() {
	metrics := observe.NewMetrics(Version(), observe.Sources{
		StoreUp: s.core.teller.Healthy, Spooled: s.core.inSpool, Unspooled: s.core.unspooled.Load,
		RetainedFrom: s.core.retained.until.Load, Dropped: s.core.retained.rows.Load,
		ClockOffset: s.core.clockOffset, FileDiffers: s.core.fileDiffers,
	})
	s.core.metrics = metrics
	s.transports = gateway.NewTransports()
	s.keeper = s.core.newKeeper()
	doors := doors()
	if wrap := s.options.hooks.chat; wrap != nil {
		doors[0].Protocol = wrap(doors[0].Protocol)
	}
	s.gateway = gateway.New(gateway.Options{
		Clock: s.core.clock, Directory: s.core.directory, Teller: s.core.teller, Upstream: s.transports, Keeper: s.keeper,
		Tokens:   gateway.NewTokens(s.transports),
		Observer: metrics, Log: s.log, Doors: doors, Process: s.core.process,
		HoldMicros: s.file.Process.HoldMicros, MaxBodyBytes: s.file.Process.Bounds.MaxBodyBytes,
		BodyTimeout: micros(s.file.Process.Bounds.BodyTimeoutMicros), WriteTimeout: s.writeTimeout(),
		Local: localLimit(s.file.Process.LocalRateLimit), Remarks: s.core.remarks,
	})
}

func localLimit(l *config.LocalRateLimit) *gateway.LocalLimit {
	if l == nil {
		return nil
	}
	return &gateway.LocalLimit{
		Tokens: l.Metric == rule.Tokens, Capacity: l.Capacity, PerFill: l.PerFill, IntervalMicros: l.IntervalMicros,
	}
}

// writeTimeout is the configured one; a test may not want to wait for it.
func (s *Server) writeTimeout() time.Duration {
	if t := s.options.hooks.writeTimeout; t > 0 {
		return t
	}
	return micros(s.file.Process.Bounds.WriteTimeoutMicros)
}

// serve opens the listeners and the socket beside the store.
func (s *Server) serve(ctx context.Context) error {
	p := &s.file.Process
	admin, err := s.core.adminHandler()
	if err != nil {
		return err
	}
	admin = bounded(admin, micros(p.Bounds.BodyTimeoutMicros))
	models := http.Handler(s.gateway)
	if !s.apart() {
		models = joined(admin, s.gateway)
	}
	s.models.open(models)
	s.administration.open(admin)
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.listenSocket(ctx)
}

// joined serves administration and models at one address.
func joined(admin, models http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAdminPath(r.URL.Path) {
			admin.ServeHTTP(w, r)
			return
		}
		models.ServeHTTP(w, r)
	})
}

func (s *Server) listen(ctx context.Context, address string, h http.Handler) (net.Addr, error) {
	p := &s.file.Process
	l, err := listen(ctx, address, p.Bounds.MaxConnections)
	if err != nil {
		return nil, err
	}
	server := httpServer(h, p.Bounds, s.log)
	s.servers = append(s.servers, server)
	if p.TLS.Cert == "" {
		go s.run(func() error { return server.Serve(l) })
		return l.Addr(), nil
	}
	pair, err := newCertificate(p.TLS.Cert, p.TLS.Key, s.log)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	server.TLSConfig = pair.config()
	go s.run(func() error { return server.ServeTLS(l, "", "") })
	return l.Addr(), nil
}

// run serves; a listener that fails ends the program.
func (s *Server) run(serve func() error) {
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		select {
		case s.ended <- fmt.Errorf("serve: %w", err):
		default:
		}
	}
}

// Stop ends the program in order (STO-4): after bounds.leave_time no new request, what runs finishes
// within the drain time-out or is cut and charged, everything is settled. ctx
// bounds the whole of it.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Do(func() { s.stopped = s.stop(ctx) })
	return s.stopped
}

// leave gives a load balancer the time that it needs to see that this server is not
// ready, while it still admits.
func (s *Server) leave(ctx context.Context) {
	wait := micros(s.file.Process.Bounds.LeaveMicros)
	if wait == 0 {
		return
	}
	s.log.Info("leaving: not ready any more, requests are still admitted", "for", wait.String())
	s.gateway.Leave()
	if s.options.hooks.leave != nil {
		s.options.hooks.leave(ctx, wait)
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (s *Server) stop(ctx context.Context) error {
	s.leave(ctx)
	s.log.Info("stopping: running requests finish, new ones are refused")
	drain, cancel := context.WithTimeout(ctx, micros(s.file.Process.Bounds.DrainMicros))
	defer cancel()
	var shutting sync.WaitGroup
	for _, server := range s.servers {
		shutting.Go(func() {
			if err := server.Shutdown(drain); err != nil {
				s.log.Warn("requests were cut at the end of the drain time-out")
			}
		})
	}
	ended := s.gateway.Drain(drain)
	shutting.Wait()
	failed := s.closeServers()
	if !ended && !s.gateway.Drain(ctx) {
		s.log.Error("requests did not end with their connections; the next start charges their worst case")
	}
	s.quit() // reservations of running requests were kept until here
	failed = errors.Join(failed, s.core.stopTeller(ctx))
	s.keeper.Stop()
	s.background.Wait() // a post of its own could wait for the teller until now
	s.transports.Close()
	failed = errors.Join(failed, s.core.closeStore())
	select {
	case s.ended <- failed:
	default:
	}
	return failed
}

func (s *Server) closeServers() error {
	var failed error
	for _, server := range s.servers {
		failed = errors.Join(failed, server.Close())
	}
	return failed
}
