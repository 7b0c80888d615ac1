// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/child"
)

// runImage runs an image without a container runtime: its files are all that there
// is, and its user is who runs, when this process may arrange that (as root).
func runImage(t *testing.T, layer []byte, c *imageConfig) {
	t.Helper()
	folder := spread(t, layer)
	if pem, err := os.ReadFile(filepath.Join(folder, "etc/ssl/certs/ca-certificates.crt")); err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) ||
		bytes.Count(pem, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Errorf("certificates: %d bytes, %v", len(pem), err)
	}
	env := append(c.Config.Env, "WEIR_LISTEN="+freeAddress(t)) // the image's own may be taken on this machine
	served := inImage(t, folder, c, env, c.Config.Cmd...)
	served.Stderr = os.Stderr
	out, err := served.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	process, err := child.Start(served, false, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	told := make([]byte, len("models"))
	if _, err := io.ReadFull(out, told); err != nil || string(told) != "models" {
		t.Fatalf("it said %q: %v", told, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the program
	if out, err := inImage(t, folder, c, env, c.Config.Healthcheck.Test[2:]...).CombinedOutput(); err != nil {
		t.Errorf("the health check: %v: %s", err, out)
	}
	if err := process.End(syscall.SIGTERM, patience); err != nil || process.Err() != nil {
		t.Errorf("it ended with %v, %v", err, process.Err())
	}
	if out, err := inImage(t, folder, c, env, c.Config.Healthcheck.Test[2:]...).CombinedOutput(); err == nil {
		t.Errorf("the health check of nothing: %s", out)
	}
	if _, err := os.Stat(filepath.Join(folder, c.Config.WorkingDir, "weir.db")); err != nil {
		t.Error(err)
	}
}

// inImage is the entry point with some arguments.
func inImage(t *testing.T, folder string, c *imageConfig, env []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, filepath.Join(folder, c.Config.Entrypoint[0]), args...)
	command.Dir, command.Env = filepath.Join(folder, c.Config.WorkingDir), env
	if os.Geteuid() != 0 {
		return command
	}
	user, group, _ := strings.Cut(c.Config.User, ":")
	uid, errUser := strconv.ParseUint(user, 10, 32)
	gid, errGroup := strconv.ParseUint(group, 10, 32)
	if errUser != nil || errGroup != nil {
		t.Fatalf("user %q", c.Config.User)
	}
	command.Path, command.Dir = c.Config.Entrypoint[0], c.Config.WorkingDir
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return command
}

// spread unpacks a layer into a folder.
func spread(t *testing.T, layer []byte) string {
	t.Helper()
	folder := t.TempDir()
	unpack(t, bytes.NewReader(layer), func(h *tar.Header, text []byte) {
		path := filepath.Join(folder, h.Name)
		var err error
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, text, 0o600)
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(path, h.Uid, h.Gid)
		}
		if err == nil {
			err = os.Chmod(path, h.FileInfo().Mode()&(fs.ModePerm|fs.ModeSticky))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // the image's user enters it
		t.Fatal(err)
	}
	return folder
}
