// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package local runs a PostgreSQL server of this process's own, from the programs
// that are installed: on loopback, with durable defaults, in a folder that goes
// with it. It ends with this process, on Linux after a kill too.
//
// It is for demonstrations and tests. Nobody's data belongs there.
package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/child"
)

const (
	superuser = "weir"
	// patience bounds the start and the stop of a server.
	patience = 60 * time.Second
)

// Options of a server.
type Options struct {
	// Bin is the folder of its programs, as Find gives it.
	Bin string
	// Settings are name=value, as in postgresql.conf.
	Settings []string
	// Apart: a signal to this process's group, as Ctrl-C is, does not reach it.
	Apart bool
}

// Server is one PostgreSQL cluster. It is safe for concurrent use.
type Server struct {
	options Options
	dir     string
	port    int
	owner   *syscall.Credential // nil: this process's

	mu      sync.Mutex // guards process
	process *child.Process
}

// Create makes a cluster and starts it. Remove ends it; after an error there is
// nothing to remove.
func Create(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{options: o}
	if s.dir, err = os.MkdirTemp("", "weir-postgres-"); err != nil {
		return nil, fmt.Errorf("make a folder for postgres: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Remove())
		}
	}()
	if os.Geteuid() == 0 {
		if s.owner, err = unprivileged(); err != nil {
			return nil, err
		}
		if err = os.Chown(s.dir, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return nil, fmt.Errorf("give postgres its folder: %w", err)
		}
	}
	initdb := s.command(ctx, "initdb", "--pgdata="+s.data(), "--username="+superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if s.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// Follow makes a standby that streams from s and starts it. It is known to s by the
// name that is given. Remove ends it.
func (s *Server) Follow(ctx context.Context, name string) (_ *Server, err error) {
	f := &Server{options: s.options, owner: s.owner}
	if f.dir, err = os.MkdirTemp("", "weir-postgres-"); err != nil {
		return nil, fmt.Errorf("make a folder for postgres: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Remove())
		}
	}()
	if f.owner != nil {
		if err = os.Chown(f.dir, int(f.owner.Uid), int(f.owner.Gid)); err != nil {
			return nil, fmt.Errorf("give postgres its folder: %w", err)
		}
	}
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=%s application_name=%s", s.port, superuser, name)
	copying := f.command(ctx, "pg_basebackup", "--pgdata="+f.data(), "--dbname="+from, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	if out, err := copying.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	if f.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	return f, f.Start(ctx)
}

// URL is the address of a database of this server, as its superuser.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", superuser, s.port, database)
}

// Log is what the server has logged so far.
func (s *Server) Log() (string, error) {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return "", fmt.Errorf("read the log of postgres: %w", err)
	}
	return string(text), nil
}

// Pid is the server's first process, 0 when it does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.Pid()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(s.options.Bin, name), args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	return c
}

// Start begins to serve, and returns when connections are taken.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of postgres: %w", err)
	}
	defer func() { _ = log.Close() }()
	args := []string{"-D", s.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", ""}
	for _, setting := range s.options.Settings {
		args = append(args, "-c", setting)
	}
	c := s.command(context.WithoutCancel(ctx), "postgres", args...)
	c.Stdout, c.Stderr = log, log
	process, err := child.Start(c, s.options.Apart, syscall.SIGQUIT)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = process
	s.mu.Unlock()
	return s.await(ctx, process)
}

// await returns when the server takes connections.
func (s *Server) await(ctx context.Context, process *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-process.Ended():
			text, _ := s.Log() // the reason, where it can be read
			return fmt.Errorf("postgres ended: %s", text)
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		case <-again.C:
		}
	}
}

// Crash stops the server at once, without a checkpoint: Start recovers it.
func (s *Server) Crash() error { return s.end(syscall.SIGQUIT) }

// Remove ends the server and removes what it had.
func (s *Server) Remove() error {
	return errors.Join(s.end(syscall.SIGINT), os.RemoveAll(s.dir))
}

func (s *Server) end(signal os.Signal) error {
	s.mu.Lock()
	process := s.process
	s.process = nil
	s.mu.Unlock()
	if process == nil {
		return nil
	}
	return process.End(signal, patience)
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port for postgres: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
