// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // a copy is damaged with plain SQL

	"github.com/weirhq/weir/internal/simulator"
)

// run runs a command of the program and returns its exit code and what it says.
func run(t *testing.T, binary string, args ...string) (code int, said string) {
	t.Helper()
	out, err := exec.Command(binary, args...).CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if failed != nil {
		code = failed.ExitCode()
	}
	return code, string(out)
}

// TestABackupOfARunningStoreIsWholeAndComesBack copies the store while 32 clients
// send, three times, and proves each copy without the configuration; one that was
// tampered with is found. Restored, the program goes on with it. RES-7, STO-1.
func TestABackupOfARunningStoreIsWholeAndComesBack(t *testing.T) {
	weir := buildWeir(t)
	provider := simulated(t)
	dir := t.TempDir()
	config, db := filepath.Join(dir, "weir.yaml"), filepath.Join(dir, "weir.db")
	if err := os.WriteFile(config, []byte(fmt.Sprintf(killConfig, db, provider.URL(), killKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startWeir(t, weir, config)
	stop := make(chan struct{})
	volley := keepSending(p.address, stop)
	copies := make([]string, 3)
	for i := range copies {
		seen := provider.Bill().Requests
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := provider.Await(ctx, func(totals simulator.Totals) bool { return totals.Requests >= seen+100 }); err != nil {
			t.Fatal(err)
		}
		cancel()
		copies[i] = filepath.Join(dir, fmt.Sprintf("copy%d.db", i))
		if code, said := run(t, weir, "backup", copies[i], "-c", config); code != 0 || !strings.Contains(said, copies[i]) {
			t.Fatalf("backup: exit %d: %s", code, said)
		}
		if code, said := run(t, weir, "verify", "--file", copies[i]); code != 0 || !strings.Contains(said, "the books balance") {
			t.Fatalf("verify of copy %d under load: exit %d: %s", i, code, said)
		}
		if info, err := os.Stat(copies[i]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if code, said := run(t, weir, "backup", copies[0], "-c", config); code != 1 || !strings.Contains(said, "overwrites nothing") {
		t.Errorf("over a copy: exit %d: %s", code, said)
	}
	if code, said := run(t, weir, "verify", "--file", db); code != 1 {
		t.Errorf("--file of the running store: exit %d: %s", code, said)
	}
	close(stop)
	volley.Wait()
	p.interrupt(t)
	if code, said := run(t, weir, "backup", filepath.Join(dir, "stopped.db"), "-c", config); code != 0 {
		t.Errorf("of a store that nobody has open: exit %d: %s", code, said)
	}
	if code, said := run(t, weir, "verify", "--file", tampered(t, copies[1])); code != 1 || !strings.Contains(said, "7 differences") {
		t.Errorf("a tampered copy: exit %d: %s", code, said)
	}
	restore(t, copies[2], db)
	back := startWeir(t, weir, config)
	if body := get(t, back.address, "/v1/key"); !strings.Contains(string(body), "limits") {
		t.Errorf("/v1/key of the restored store: %s", body)
	}
	var verify struct {
		Balanced bool `json:"balanced"`
	}
	if back.json(t, &verify, "verify", "--json"); !verify.Balanced {
		t.Error("the restored books do not balance")
	}
	back.interrupt(t)
}

// restore is what docs/operations.md says: the store is stopped, its file, the
// journal's and SQLite's own go, the copy takes the file's place.
func restore(t *testing.T, from, db string) {
	t.Helper()
	for _, name := range []string{db, db + "-wal", db + "-shm", db + ".journal0", db + ".journal1"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(from, db); err != nil {
		t.Fatal(err)
	}
}

// tampered loses an event of a copy.
func tampered(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `DELETE FROM events WHERE id = (SELECT id FROM events WHERE kind = 1 LIMIT 1)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
