// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// engine is a container runtime that answers, and what reads compose files for it.
type engine struct {
	program string
	compose []string
}

// findEngine finds one. Its error says of each why it is none: a client without an
// engine is none.
func findEngine() (*engine, error) {
	var failed error
	for _, e := range []engine{
		{"docker", []string{"docker", "compose"}},
		{"docker", []string{"docker-compose"}},
		{"podman", []string{"podman-compose"}},
		{"podman", []string{"podman", "compose"}},
	} {
		_, err := briefly(e.program, "info")
		if err == nil {
			_, err = briefly(e.compose[0], append(e.compose[1:], "version")...)
		}
		if err == nil {
			return &e, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", strings.Join(e.compose, " "), err))
	}
	return nil, failed
}

func briefly(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// fetch has an image at hand: the one that a variable names, else the compose file's.
func (e *engine) fetch(variable, image string) (string, error) {
	if named := os.Getenv(variable); named != "" {
		image = named
	}
	if _, err := briefly(e.program, "image", "inspect", image); err == nil {
		return image, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), releasePatience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, e.program, "pull", image).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s, which %s may name, cannot be had: %w: %s", image, variable, err, strings.TrimSpace(string(out)))
	}
	return image, nil
}

// image builds Weir's: what the last stage of the Dockerfile says, with a program
// that is built here.
func (e *engine) image(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("WEIR_IMAGE"); named != "" {
		return named
	}
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "weir"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(folder, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(readDoc(t, "deploy/Dockerfile"), "\nFROM scratch\n")
	_, last, _ = strings.Cut(last, "\n") // what it copies
	text := "FROM scratch\nCOPY weir /weir\nCOPY --chown=65532:65532 data/ /data/\n" + last
	if err := os.WriteFile(filepath.Join(folder, "Dockerfile"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const name = "localhost/weir:composed"
	typedIn(t, folder, e.program, "build", "-t", name, ".")
	return name
}

// TestTheComposeFileComesUp: STO-1, STO-4, RES-1. Where a container runtime is, the
// composition itself: a key that one gateway makes works through the balancer, one
// gateway's end is not noticed, and the books balance. Where there is none, which is
// said, its processes alone are shown: TestTheCompositionServesThroughItsBalancer.
func TestTheComposeFileComesUp(t *testing.T) {
	e, err := findEngine()
	if err != nil {
		t.Logf("no container runtime answers here, so the composition is not brought up in containers:\n%v", err)
		return
	}
	postgres, errPostgres := e.fetch("POSTGRES_IMAGE", "postgres:17")
	haproxy, errHaproxy := e.fetch("HAPROXY_IMAGE", "haproxy:3.2")
	if err := errors.Join(errPostgres, errHaproxy); err != nil {
		t.Logf("%s is here, but the composition is not brought up in containers:\n%v", e.program, err)
		return
	}
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	folder := composed(t, "WEIR_IMAGE="+e.image(t), "POSTGRES_IMAGE="+postgres, "HAPROXY_IMAGE="+haproxy, "WEIR_PORT="+port, "")
	project := fmt.Sprintf("weir-test-%d", os.Getpid())
	typed := func(args ...string) string {
		t.Helper()
		all := append([]string{"-p", project, "-f", "compose.yaml"}, args...)
		return typedIn(t, folder, e.compose[0], append(e.compose[1:], all...)...)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(typed("logs"))
		}
		typed("down", "-v")
	})
	typed("up", "-d", "--no-build")
	comesTo(t, "http://"+address+"/readyz", "")
	key := strings.TrimSpace(secret.FindString(typed("exec", "-T", "weir-1", "/weir", "key", "create", "ci", "--day-cap", "5")))
	for range 2 * len(replicaNames) {
		comesTo(t, "http://"+address+"/v1/key", key)
	}
	typed("stop", "weir-2")
	for range 2 * len(replicaNames) {
		comesTo(t, "http://"+address+"/v1/key", key)
	}
	typed("start", "weir-2")
	if out := typed("exec", "-T", "weir-1", "/weir", "verify"); !strings.Contains(out, "the books balance") {
		t.Errorf("verify: %s", out)
	}
}

// comesTo asks until the answer is 200: containers begin one after the other.
func comesTo(t *testing.T, address, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), releasePatience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	client := &http.Client{Timeout: patience} // a port may take connections before its container does
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			request.Header.Set("Authorization", "Bearer "+key)
		}
		response, err := client.Do(request)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("answered %d: %s", response.StatusCode, body)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not come to 200: %v", address, err)
		case <-again.C:
		}
	}
}
