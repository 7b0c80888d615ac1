// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/child"
)

// Bouncer is a PgBouncer in transaction mode before a server.
type Bouncer struct {
	dir     string
	port    int
	process *child.Process
}

// Bounce starts PgBouncer, from its program's path, before this server. Remove ends
// it.
func (s *Server) Bounce(ctx context.Context, program string) (_ *Bouncer, err error) {
	b := &Bouncer{}
	if b.dir, err = os.MkdirTemp("", "weir-pgbouncer-"); err != nil {
		return nil, fmt.Errorf("make a folder for pgbouncer: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Remove())
		}
	}()
	if b.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	settings, users := filepath.Join(b.dir, "pgbouncer.ini"), filepath.Join(b.dir, "users")
	text := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = 12
max_client_conn = 200
query_wait_timeout = 10
`, s.port, b.port, users)
	if err = errors.Join(os.WriteFile(settings, []byte(text), 0o600), os.WriteFile(users, []byte(`"`+superuser+`" ""`+"\n"), 0o600)); err != nil {
		return nil, fmt.Errorf("write the settings of pgbouncer: %w", err)
	}
	if s.owner != nil {
		for _, path := range []string{b.dir, settings, users} {
			if err = os.Chown(path, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
				return nil, fmt.Errorf("give pgbouncer its folder: %w", err)
			}
		}
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), program, "-q", settings)
	c.Dir, c.SysProcAttr = b.dir, &syscall.SysProcAttr{Credential: s.owner}
	if b.process, err = child.Start(c, s.options.Apart, syscall.SIGQUIT); err != nil {
		return nil, err
	}
	return b, b.await(ctx)
}

func (b *Bouncer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=exec", superuser, b.port))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-b.process.Ended():
			return fmt.Errorf("pgbouncer ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("pgbouncer does not answer: %w", err)
		case <-again.C:
		}
	}
}

// URL is a database's by way of it.
func (b *Bouncer) URL(database string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("read the URL: %w", err)
	}
	u.Host = "127.0.0.1:" + strconv.Itoa(b.port)
	return u.String() + "&pooling=transaction", nil
}

// Remove ends it and removes what it had.
func (b *Bouncer) Remove() error {
	var err error
	if b.process != nil {
		err = b.process.End(syscall.SIGINT, patience)
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}
