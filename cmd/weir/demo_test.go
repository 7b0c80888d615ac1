// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

// demonstration is a run of `weir demo` as a user has it, in a folder for what is
// temporary.
type demonstration struct {
	t      *testing.T
	binary string
	folder string
}

func newDemonstration(t *testing.T, binary string) *demonstration {
	t.Helper()
	// A short path that others may enter: a socket's is bounded, and PostgreSQL runs
	// as somebody else when this is root.
	folder, err := os.MkdirTemp("", "d") //nolint:usetesting // its folders have long names
	if err == nil {
		err = os.Chmod(folder, 0o777) //nolint:gosec // see above
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return &demonstration{t: t, binary: binary, folder: folder}
}

// run gives the exit code and what was printed. interruptAt, if set, is a text at
// which Ctrl-C is pressed.
func (d *demonstration) run(interruptAt string, args ...string) (code int, out, failed string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	c := exec.CommandContext(ctx, d.binary, append([]string{"demo"}, args...)...)
	c.Env = append(os.Environ(), "TMPDIR="+d.folder, "WEIR_LISTEN=256.0.0.1:1") // it is nothing to a demonstration
	stdout := &watched{at: interruptAt, do: func() {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			d.t.Error(err)
		}
	}}
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = stdout, &stderr
	_ = c.Run() // the exit code says it
	d.leavesNothing()
	return c.ProcessState.ExitCode(), stdout.text(), stderr.String()
}

// leavesNothing looks for files and, where the system shows them, for processes.
func (d *demonstration) leavesNothing() {
	d.t.Helper()
	if left, err := os.ReadDir(d.folder); err != nil || len(left) > 0 {
		d.t.Errorf("left in its folder: %v %v", left, err)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(d.folder+"/")) {
			d.t.Errorf("it left a process: %q", text)
		}
	}
}

// watched does something once a text was written.
type watched struct {
	at string
	do func()

	mu   sync.Mutex
	all  bytes.Buffer
	done bool
}

func (w *watched) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.all.Write(text)
	if w.at != "" && !w.done && strings.Contains(w.all.String(), w.at) {
		w.done = true
		w.do()
	}
	return n, err
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// TestReplicasShareABudgetWhileOneOfThemIsKilled: BUD-2, RES-5. What `weir demo
// --replicas 3` shows, as a user runs it.
func TestReplicasShareABudgetWhileOneOfThemIsKilled(t *testing.T) {
	var server pgtest.Server
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	given, kept := server.Empty(t), server.Empty(t) // from here on PostgreSQL is installed
	keep(t, kept)
	binary := buildWeir(t)
	shown := []string{
		`(?m)^  weir-2 is killed: kill -9 \d+, with [1-9]\d* requests running$`, `held of \$0\.12`, `429 budget_exceeded`,
		`(?m)^  weir-2 +started again; [1-9]\d* charged their worst case, \$0\.0`,
		`(?m)^  difference +0 nano-dollars$`, `(?m)^  swept `, ` 0 differ`, `(?m)^The budget held and the books balance to the nano-dollar`,
	}
	for _, c := range []struct {
		name, interruptAt string
		args              []string
		code              int
		shown             []string
	}{
		{"on a server of its own", "", []string{"--replicas", "3", "--once"}, 0, append(shown, "PostgreSQL from /")},
		{"on a database that it is given", "", []string{"--replicas", "2", "--once", "--store", given}, 0, append(shown, "which is yours")},
		{"interrupted in the middle", "weir-2 is killed", []string{"--replicas", "3"}, 1, shown[:1]},
		{"interrupted when it stays up", "weir replicas list", []string{"--replicas", "3"}, 0, shown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, out, failed := newDemonstration(t, binary).run(c.interruptAt, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, pattern := range c.shown {
				if !regexp.MustCompile(pattern).MatchString(out) {
					t.Errorf("it does not show %s", pattern)
				}
			}
			if strings.Contains(out, "\x1b") {
				t.Error("it colours what is no terminal")
			}
			if t.Failed() {
				t.Logf("printed:\n%s\nand told: %s", out, failed)
			}
			if slices.Contains(c.args, given) {
				if err := postgres.CheckVacant(t.Context(), given); err != nil {
					t.Errorf("the database that it was given: %v", err)
				}
			}
		})
	}
	for _, c := range []struct{ name, store, want string }{
		{"on what somebody keeps", kept, "the database holds data already; a demonstration wants an empty one"},
		{"on SQLite", "sqlite:weir.db", "its address begins with postgres://"},
		{"on nothing", "postgres://127.0.0.1:1/none?sslmode=disable", "connect to the database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, failed := newDemonstration(t, binary).run("", "--replicas", "3", "--once", "--store", c.store)
			if code != 1 || !strings.Contains(failed, c.want) {
				t.Errorf("exit code %d: %s", code, failed)
			}
			if err := postgres.CheckVacant(t.Context(), kept); !errors.Is(err, postgres.ErrNotVacant) {
				t.Errorf("what somebody keeps was emptied: %v", err)
			}
		})
	}
}

// keep makes a database somebody's.
func keep(t *testing.T, address string) {
	t.Helper()
	b, err := postgres.Open(t.Context(), postgres.Options{URL: address})
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
