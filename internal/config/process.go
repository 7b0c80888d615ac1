// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// Memory is the store that keeps nothing (SPEC BUD-6).
const Memory = "memory"

// The variables that override the file.
const (
	EnvListen      = "WEIR_LISTEN"
	EnvAdminListen = "WEIR_ADMIN_LISTEN"
	EnvStore       = "WEIR_STORE"
	EnvStateDir    = "WEIR_STATE_DIR"
	EnvAdminToken  = "WEIR_ADMIN_TOKEN"
	EnvLogLevel    = "WEIR_LOG_LEVEL"
	EnvHold        = "WEIR_RESERVATION_HOLD"
	EnvRetention   = "WEIR_RESERVATION_RETENTION"
)

// Process is what one process needs, and no object of the store.
type Process struct {
	Listen      string // host:port of the models, and of all else by default
	AdminListen string // host:port of the admin API and console; empty: Listen
	Store       string // "sqlite:PATH", "postgres://…" or Memory; it may hold a password
	StateDir    string // where this process keeps its own files beside a database; empty: StateFolder's
	AdminToken  string // empty: one is made at first start
	TLS         TLS
	LogLevel    string // debug, info, warn or error
	Bounds      Bounds
	Postgres    Postgres
	// HoldMicros is how long a reservation stands that is neither settled nor
	// renewed (SPEC RES-5).
	HoldMicros int64
	// RetentionMicros is how long the records of settled requests are kept (SPEC
	// RES-6). Usage events have a minimum of their own.
	RetentionMicros int64
	// LocalRateLimit is nil where there is none.
	LocalRateLimit *LocalRateLimit
}

// LocalRateLimit is a bucket of this process, in memory, over all keys (SPEC
// RAT-6). It is full at the start.
type LocalRateLimit struct {
	Metric         string // rule.Requests or rule.Tokens
	Capacity       int64  // what a full bucket holds
	PerFill        int64  // what is added each interval
	IntervalMicros int64
}

// TLS are the files of a certificate and its key; both are set, or none.
type TLS struct{ Cert, Key string }

// Bounds limit what clients may take of this process (SPEC STO-5).
type Bounds struct {
	MaxBodyBytes        int64 // of a request
	MaxHeaderBytes      int64 // of a request
	MaxSpoolBytes       int64 // of the file that settlements wait in while the store is down (SPEC RES-8)
	MaxConnections      int64 // open at one time, a listener
	HeaderTimeoutMicros int64 // for a request's headers to arrive
	BodyTimeoutMicros   int64 // for a request's body to arrive
	WriteTimeoutMicros  int64 // for a client to take a part of its answer
	IdleTimeoutMicros   int64 // of a connection between two requests
	LeaveMicros         int64 // after SIGTERM, for a load balancer to turn to others
	DrainMicros         int64 // for running requests to end after SIGTERM (SPEC STO-4)
}

const (
	second = int64(1_000_000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	minHold, maxHold           = minute, day
	minRetention, maxRetention = day, 3650 * day
	minFill, maxFill           = second / 1000, day
)

func defaultProcess() Process {
	return Process{
		Listen: "127.0.0.1:8787", Store: "sqlite:weir.db", LogLevel: "info",
		Bounds: Bounds{
			MaxBodyBytes: 32 << 20, MaxHeaderBytes: 64 << 10, MaxSpoolBytes: 256 << 20, MaxConnections: 10_000,
			HeaderTimeoutMicros: 10 * second, BodyTimeoutMicros: 2 * minute,
			WriteTimeoutMicros: minute, IdleTimeoutMicros: 2 * minute, DrainMicros: 30 * second,
		},
		Postgres:   defaultPostgres(),
		HoldMicros: 30 * minute, RetentionMicros: 90 * day,
	}
}

// AdminAddress is where the admin API listens.
func (p *Process) AdminAddress() string {
	if p.AdminListen == "" {
		return p.Listen
	}
	return p.AdminListen
}

// read reads the fields of the process, all of them at the top level.
func (p *Process) read(r *document.Reader) {
	r.Text("listen", keep(&p.Listen, validAddress), func() { r.Fail("listen", "must be host:port") })
	r.Text("admin_listen", keep(&p.AdminListen, validAddress), func() { p.AdminListen = "" })
	r.Text("store", keep(&p.Store, validStore), func() { r.Fail("store", "must be sqlite:PATH, postgres://… or memory") })
	r.Text("state_dir", keep(&p.StateDir, validFolder), func() { p.StateDir = "" })
	r.Text("admin_token", keep(&p.AdminToken, tenant.ValidSecret), func() { p.AdminToken = "" })
	r.Choice("log_level", &p.LogLevel, "debug", "info", "warn", "error")
	r.Duration("reservation_hold", &p.HoldMicros, minHold, maxHold)
	r.Duration("reservation_retention", &p.RetentionMicros, minRetention, maxRetention)
	r.Object("local_rate_limit", func(r *document.Reader) {
		l := LocalRateLimit{Metric: rule.Requests}
		l.read(r)
		p.LocalRateLimit = &l
	})
	r.Object("tls", func(r *document.Reader) {
		r.Need("cert", "key")
		r.String("cert", &p.TLS.Cert)
		r.String("key", &p.TLS.Key)
	})
	r.Object("bounds", p.Bounds.read)
	r.Object("postgres", p.Postgres.read)
}

func (b *Bounds) read(r *document.Reader) {
	r.Int("max_body_bytes", &b.MaxBodyBytes, 1<<10, 1<<30)
	r.Int("max_header_bytes", &b.MaxHeaderBytes, 4<<10, 1<<20)
	r.Int("max_spool_bytes", &b.MaxSpoolBytes, 1<<20, 1<<40)
	r.Int("max_connections", &b.MaxConnections, 1, 1_000_000)
	r.Duration("header_timeout", &b.HeaderTimeoutMicros, second, 10*minute)
	r.Duration("body_timeout", &b.BodyTimeoutMicros, second, hour)
	r.Duration("write_timeout", &b.WriteTimeoutMicros, second, hour)
	r.Duration("idle_timeout", &b.IdleTimeoutMicros, second, hour)
	r.Duration("leave_time", &b.LeaveMicros, 0, hour)
	r.Duration("drain_timeout", &b.DrainMicros, second, hour)
}

func (l *LocalRateLimit) read(r *document.Reader) {
	r.Need("max_tokens", "tokens_per_fill", "fill_interval")
	r.Choice("type", &l.Metric, rule.Requests, rule.Tokens)
	r.Int("max_tokens", &l.Capacity, 1, tenant.MaxRate)
	r.Int("tokens_per_fill", &l.PerFill, 1, tenant.MaxRate)
	r.Duration("fill_interval", &l.IntervalMicros, minFill, maxFill)
}

// keep keeps a text that check accepts.
func keep(into *string, check func(string) error) func(string) error {
	return func(s string) error {
		err := check(s)
		if err == nil {
			*into = s
		}
		return err
	}
}

// override lets the environment have the last word. A variable that is empty
// counts as unset.
func (p *Process) override(env Lookup) Problems {
	var problems Problems
	for _, v := range []struct {
		name string
		set  func(string) error
	}{
		{EnvListen, keep(&p.Listen, validAddress)},
		{EnvAdminListen, keep(&p.AdminListen, validAddress)},
		{EnvStore, keep(&p.Store, validStore)},
		{EnvStateDir, keep(&p.StateDir, validFolder)},
		{EnvAdminToken, keep(&p.AdminToken, tenant.ValidSecret)},
		{EnvLogLevel, keep(&p.LogLevel, validLevel)},
		{EnvHold, setDuration(&p.HoldMicros, minHold, maxHold)},
		{EnvRetention, setDuration(&p.RetentionMicros, minRetention, maxRetention)},
	} {
		value, ok := env(v.name)
		if !ok || value == "" {
			continue
		}
		if err := v.set(value); err != nil {
			problems = append(problems, Problem{Path: v.name, Text: err.Error()})
		}
	}
	return problems
}

func setDuration(into *int64, least, most int64) func(string) error {
	return func(s string) error {
		micros, err := document.ParseDuration(s, least, most)
		if err == nil {
			*into = micros
		}
		return err
	}
}

func validLevel(s string) error {
	switch s {
	case "debug", "info", "warn", "error":
		return nil
	default:
		return errors.New("must be debug, info, warn or error")
	}
}

func validAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(host, " /") {
		return fmt.Errorf("must be host:port such as 127.0.0.1:8787, is %s", document.Quote(s))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("has no port from 0 to 65535: %s", document.Quote(s))
	}
	return nil
}
