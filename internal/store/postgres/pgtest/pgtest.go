// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package pgtest gives a test process a PostgreSQL server of its own: on
// loopback, with durable defaults, one database for each test.
//
// It is for tests alone.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/store/postgres/local"
)

const (
	template = "prepared"
	// patience bounds one statement.
	patience = 60 * time.Second
)

// ErrNone means that there is no PostgreSQL on this machine.
var ErrNone = fmt.Errorf("%w; or run the tests as root and it is installed", local.ErrNone)

// Server is one PostgreSQL cluster. Its zero value is one that has not started.
type Server struct {
	// Prepare, if set, is run once on a database that the tests' are copies of.
	Prepare func(url string) error

	once      sync.Once
	failed    error
	server    *local.Server
	databases atomic.Int64

	mu   sync.Mutex // guards what follows
	free []string   // names of databases that tests have left
}

// Main runs a package's tests and ends the server after them, for TestMain.
// Where there is no PostgreSQL the tests are named and passed over, unless
// CI=true.
func (s *Server) Main(m *testing.M) int {
	_, err := find()
	if errors.Is(err, ErrNone) && os.Getenv("CI") != "true" {
		fmt.Fprintf(os.Stderr, "the tests on PostgreSQL are passed over: %v\n", err)
		return 0
	}
	code := m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Database makes a database, starting the server first if need be, and returns its
// URL. It is dropped at the test's end.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.copyOf(t, template)
}

// Empty is Database without what Prepare made.
func (s *Server) Empty(t testing.TB) string {
	t.Helper()
	return s.copyOf(t, "template0")
}

func (s *Server) copyOf(t testing.TB, from string) string {
	t.Helper()
	s.begin(t)
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	s.Admin(t, "CREATE DATABASE "+name+" TEMPLATE "+from)
	t.Cleanup(func() { s.Admin(t, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return s.url(name)
}

func (s *Server) begin(t testing.TB) {
	t.Helper()
	s.once.Do(func() { s.failed = s.create() })
	if s.failed != nil {
		t.Fatalf("start PostgreSQL: %v", s.failed)
	}
}

// Admin runs one statement as the superuser, outside of every test's database.
func (s *Server) Admin(t testing.TB, statement string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		t.Fatalf("connect as the superuser: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (s *Server) url(database string) string { return s.server.URL(database) }

// Log is what the server has logged so far.
func (s *Server) Log(t testing.TB) string {
	t.Helper()
	text, err := s.server.Log()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// create makes the cluster and starts it.
func (s *Server) create() error {
	bin, err := find()
	if err != nil {
		return err
	}
	s.server, err = local.Create(context.Background(), local.Options{Bin: bin, Settings: []string{
		"max_connections=200", "shared_buffers=64MB", "max_wal_size=512MB", "log_line_prefix=%m [%p] %e ",
	}})
	if err != nil {
		return err
	}
	return s.prepare()
}

// prepare makes the database that others are copies of.
func (s *Server) prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+template); err != nil || s.Prepare == nil {
		return err
	}
	return s.Prepare(s.url(template))
}

// Start begins to serve again after a crash, and returns when connections are taken.
func (s *Server) Start() error { return s.server.Start(context.Background()) }

// Standby makes a server that streams from this one, until the test's end.
func (s *Server) Standby(t testing.TB, name string) *Server {
	t.Helper()
	s.begin(t)
	follower, err := s.server.Follow(context.Background(), name)
	if err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	standby := &Server{server: follower}
	standby.once.Do(func() {})
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	return standby
}

// URL is the address of a database of this server.
func (s *Server) URL(database string) string { return s.url(database) }

// Until asks until a statement gives true.
func (s *Server) Until(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		t.Fatalf("connect as the superuser: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for so := false; !so; {
		if err := conn.QueryRow(ctx, statement+", pg_sleep(0.02)").Scan(&so, nil); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Crash stops the server at once, without a checkpoint: Start recovers it.
func (s *Server) Crash() error { return s.server.Crash() }

// Stop ends the server and removes what it had.
func (s *Server) Stop() error {
	if s.server == nil {
		return nil
	}
	return s.server.Remove()
}

// find is the folder of the newest server's programs; Debian's package is
// installed for them when this process is root.
func find() (string, error) {
	if bin, err := local.Find(); err == nil {
		return bin, nil
	}
	if err := install("postgresql"); err != nil {
		return "", fmt.Errorf("%w; %w", ErrNone, err)
	}
	return local.Find()
}

// install installs one of Debian's packages, if this process may.
func install(name string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("installing Debian's package %s takes apt-get and root", name)
	}
	c := exec.CommandContext(context.Background(), apt, "install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", name)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("installing %s failed: %w: %s", name, err, out)
	}
	return nil
}

// Bounced is a database's URL by way of a PgBouncer in transaction mode, which runs
// until the test's end. It is found, or installed as the server is; ok is false
// where there is none.
func (s *Server) Bounced(t testing.TB) (by func(database string) string, ok bool) {
	t.Helper()
	s.begin(t)
	const program = "/usr/sbin/pgbouncer"
	if _, err := os.Stat(program); err != nil {
		if err := install("pgbouncer"); err != nil {
			t.Logf("no PgBouncer: %v", err)
			return nil, false
		}
	}
	bouncer, err := s.server.Bounce(context.Background(), program)
	if err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	t.Cleanup(func() {
		if err := bouncer.Remove(); err != nil {
			t.Error(err)
		}
	})
	return func(database string) string {
		address, err := bouncer.URL(database)
		if err != nil {
			t.Fatal(err)
		}
		return address
	}, true
}
