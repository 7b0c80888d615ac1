// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// oldest is the first major version that Weir works with.
const oldest = 14

// ErrNone means that there is no PostgreSQL on this machine.
var ErrNone = errors.New("no PostgreSQL 14 or later was found in PATH or under /usr/lib/postgresql; install Debian's package postgresql, or another system's")

// Find is the folder of the newest server's programs on this machine, or ErrNone.
func Find() (bin string, err error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	dirs = append(dirs, "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql/bin")
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	newest := oldest - 1
	for _, dir := range dirs {
		if major := version(dir); major > newest {
			bin, newest = dir, major
		}
	}
	if bin == "" {
		return "", ErrNone
	}
	return bin, nil
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
