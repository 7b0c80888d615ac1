// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// sqlitePrefix begins the name of an embedded store; the file's path follows.
const sqlitePrefix = "sqlite:"

// postgresPrefixes begin the address of a database that several processes share.
var postgresPrefixes = [...]string{"postgres://", "postgresql://"}

// Postgres are the settings of a database that several processes share (SPEC
// STO-1). Each process has connections of its own.
type Postgres struct {
	Connections          int64 // of admission
	ReportingConnections int64 // of configuration, key look-ups, administration and reports
	LockTimeoutMicros    int64 // that a batch waits for the locks of others'
	BatchTimeoutMicros   int64 // that a batch may take in all
	// Migrate is MigrateAuto, or MigrateManual: an older schema is then refused.
	Migrate      string
	EarlyRelease bool // a batch's locks go before it is on the disk; its answers wait for that
	// ListenURL leads past a pooler, which cannot pass notices on; empty: Store's.
	// It may hold a password.
	ListenURL string
}

// The values of Postgres.Migrate.
const (
	MigrateAuto   = "auto"
	MigrateManual = "manual"
)

func defaultPostgres() Postgres {
	return Postgres{
		Connections: 4, ReportingConnections: 3,
		LockTimeoutMicros: second / 2, BatchTimeoutMicros: 2 * second, Migrate: MigrateAuto,
	}
}

func (p *Postgres) read(r *document.Reader) {
	r.Int("connections", &p.Connections, 1, 1000)
	r.Int("reporting_connections", &p.ReportingConnections, 2, 1000)
	r.Duration("lock_timeout", &p.LockTimeoutMicros, second/20, 10*second)
	r.Duration("batch_timeout", &p.BatchTimeoutMicros, second/10, minute)
	r.Bool("early_release", &p.EarlyRelease)
	r.Choice("migrate", &p.Migrate, MigrateAuto, MigrateManual)
	r.Text("listen_url", keep(&p.ListenURL, validListenURL), func() { p.ListenURL = "" })
}

// StorePath is the file of an embedded store; ok is false for any other.
func (p *Process) StorePath() (path string, ok bool) { return strings.CutPrefix(p.Store, sqlitePrefix) }

// StoreURL is the address of a shared store; ok is false for any other. It may
// hold a password.
func (p *Process) StoreURL() (address string, ok bool) { return p.Store, isPostgres(p.Store) }

func isPostgres(s string) bool {
	for _, prefix := range postgresPrefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// StoreName is the store's name to show: without user, password and parameters.
func (p *Process) StoreName() string {
	if !isPostgres(p.Store) {
		return p.Store
	}
	_, rest, _ := strings.Cut(p.Store, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return "postgres://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// Durable tells whether the store keeps anything over a restart.
func (p *Process) Durable() bool { return p.Store != Memory }

// StateFolder is where a process on a shared store keeps its own files: the
// spool and the socket. Unless state_dir names one it is the configuration file's
// folder.
func (f *File) StateFolder() string {
	if f.Process.StateDir != "" {
		return f.Process.StateDir
	}
	return filepath.Dir(f.Name)
}

// validStore never shows a value that may hold a password.
func validStore(s string) error {
	if path, ok := strings.CutPrefix(s, sqlitePrefix); ok {
		if path == "" || strings.ContainsAny(path, "?\x00") {
			return errors.New("sqlite: must be followed by a file's path, without parameters")
		}
		return nil
	}
	switch {
	case s == Memory:
		return nil
	case isPostgres(s):
		return validURL(s)
	case strings.HasPrefix(s, "postgres:") || strings.HasPrefix(s, "postgresql:"):
		return errors.New("the address of a database begins with postgres://, as in postgres://user:password@host/name")
	default:
		return errors.New("must be sqlite:PATH, postgres://… or memory")
	}
}

// validURL tells no more of what is wrong than where: the rest may be a password.
// Several hosts, and what parameters mean, are the driver's to judge.
func validURL(s string) error {
	_, rest, _ := strings.Cut(s, "://")
	if strings.ContainsAny(s, " \t\r\n\x00#") {
		return errors.New("has a character that an address cannot have: write it as %XX, as %23 for #")
	}
	authority, _, _ := strings.Cut(rest, "?")
	authority, _, _ = strings.Cut(authority, "/")
	user := authority[:max(0, strings.LastIndexByte(authority, '@'))]
	if _, err := url.PathUnescape(user); err != nil || strings.Contains(user, "@") {
		return errors.New("has a user or password in which a special character is not written as %XX")
	}
	return nil
}

func validListenURL(s string) error {
	if !isPostgres(s) {
		return errors.New("must begin with postgres://")
	}
	return validURL(s)
}

func validFolder(s string) error {
	if s == "" || strings.ContainsRune(s, 0) {
		return errors.New("must be a folder's path")
	}
	return nil
}
