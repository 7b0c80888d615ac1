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
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "weir"
	template  = "prepared"
	// patience bounds the start and the stop of a server.
	patience = 60 * time.Second
	// oldest is the first major version that Weir works with.
	oldest = 14
)

// ErrNone means that there is no PostgreSQL on this machine.
var ErrNone = errors.New("no PostgreSQL 14 or later was found in PATH or under /usr/lib/postgresql; " +
	"install Debian's package postgresql, or run the tests as root and it is installed")

// Server is one PostgreSQL cluster. Its zero value is one that has not started.
type Server struct {
	// Prepare, if set, is run once on a database that the tests' are copies of.
	Prepare func(url string) error

	once      sync.Once
	failed    error
	bin, dir  string
	port      int
	owner     *syscall.Credential // nil: this process's
	databases atomic.Int64

	mu      sync.Mutex // guards what follows
	process *os.Process
	ended   chan struct{}
	free    []string // names of databases that tests have left
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

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", superuser, s.port, database)
}

// Log is what the server has logged so far.
func (s *Server) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatalf("read the server's log: %v", err)
	}
	return string(text)
}

// create makes the cluster and starts it.
func (s *Server) create() (err error) {
	if s.bin, err = find(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "weir-postgres-"); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if s.owner, err = unprivileged(); err != nil {
			return err
		}
		if err = os.Chown(s.dir, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return err
		}
	}
	initdb := s.command("initdb", "--pgdata="+s.data(), "--username="+superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.Start(); err != nil {
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

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(context.Background(), filepath.Join(s.bin, name), args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	return c
}

// Start begins to serve, and returns when connections are taken.
func (s *Server) Start() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	c := s.command("postgres", "-D", s.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", "",
		"-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "max_wal_size=512MB", "-c", "log_line_prefix=%m [%p] %e ")
	c.Stdout, c.Stderr = log, log
	dieWithParent(c.SysProcAttr)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The kernel ends the server with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.mu.Lock()
	s.process, s.ended = c.Process, ended
	s.mu.Unlock()
	return s.await(ended)
}

// await returns when the server takes connections.
func (s *Server) await(ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres ended: %s", text)
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		case <-again.C:
		}
	}
}

// Crash stops the server at once, without a checkpoint: Start recovers it.
func (s *Server) Crash() error { return s.end(syscall.SIGQUIT) }

// Stop ends the server and removes what it had.
func (s *Server) Stop() error {
	if s.dir == "" {
		return nil
	}
	return errors.Join(s.end(syscall.SIGINT), os.RemoveAll(s.dir))
}

func (s *Server) end(signal os.Signal) error {
	s.mu.Lock()
	process, ended := s.process, s.ended
	s.process = nil
	s.mu.Unlock()
	if process == nil {
		return nil
	}
	if err := process.Signal(signal); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return errors.Join(errors.New("postgres does not stop"), process.Kill())
	}
}

func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// find is the folder of the newest server's programs; Debian's package is
// installed for them when this process is root.
func find() (string, error) {
	if bin := installed(); bin != "" {
		return bin, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", ErrNone
	}
	install := exec.CommandContext(context.Background(), apt, "install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "postgresql")
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w; installing it failed: %w: %s", ErrNone, err, out)
	}
	if bin := installed(); bin != "" {
		return bin, nil
	}
	return "", ErrNone
}

func installed() string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	dirs = append(dirs, "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql/bin")
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	best, newest := "", oldest-1
	for _, dir := range dirs {
		if major := version(dir); major > newest {
			best, newest = dir, major
		}
	}
	return best
}

// version is the major version of a folder's server, 0 where it is not whole.
func version(dir string) int {
	out, err := exec.CommandContext(context.Background(), filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	fields := strings.Fields(string(out))
	at := slices.IndexFunc(fields, func(f string) bool { return f[0] >= '0' && f[0] <= '9' })
	if at < 0 {
		return 0
	}
	text, _, _ := strings.Cut(fields[at], ".")
	major, _ := strconv.Atoi(text)
	return major
}
