// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/child"
	"github.com/weirhq/weir/internal/simulator"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

// deployed is the composition as processes of this machine: what is in the compose
// file but for the addresses, which are free ones of loopback.
type deployed struct {
	t        *testing.T
	binary   string
	replicas map[string]*deployedReplica
	balancer string // its address
	cut      atomic.Int64
	provider *simulator.Server
	killed   chan struct{}
}

type deployedReplica struct {
	folder, address string
	env             []string
	process         *child.Process
}

// TestTheCompositionServesThroughItsBalancer: STO-1, STO-4, RES-1, RES-5. A volley
// goes through the load balancer while one gateway is killed, another one is stopped
// in order, and both come back; streams arrive as they are sent; nobody but whoever
// was cut sends anything again, and the books balance.
func TestTheCompositionServesThroughItsBalancer(t *testing.T) {
	gate := simulator.NewGate()
	provider := simulator.New(simulator.Options{Keys: []string{composedKey}, Script: func(r simulator.Request) simulator.Behaviour {
		b := r.Scripted
		b.Output = simulator.Exactly(40)
		b.Gates = []simulator.GateAt{{At: simulator.AfterEvents(2), Gate: gate}}
		return b
	}})
	if err := provider.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := provider.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	d := deploy(t, provider)
	key := strings.TrimSpace(secret.FindString(d.weir("weir-1", "key", "create", "ci")))

	t.Log("a stream's first events arrive while the provider holds the others back")
	if status, body, err := d.post(key, true, gate.Open); err != nil || status != http.StatusOK || !strings.Contains(body, "[DONE]") {
		t.Fatalf("answered %d %q, %v", status, body, err)
	}

	t.Log("one is killed under a volley")
	provider.Hold()
	wait := d.begin(key, 12)
	d.running(12)
	d.kill("weir-2")
	close(d.killed)
	provider.Release()
	wait()
	if cut := d.cut.Swap(0); cut < 1 || cut > 8 {
		t.Errorf("%d of 12 requests were cut", cut)
	}
	d.begin(key, 12)()
	d.start("weir-2")

	t.Log("another one is stopped in order under a volley")
	provider.Hold()
	wait = d.begin(key, 12)
	d.running(12)
	d.stopping("weir-3")
	more := d.begin(key, 6)
	d.running(18)
	provider.Release()
	wait()
	more()
	d.ended("weir-3", func() { d.begin(key, 6)() })
	d.start("weir-3")
	d.begin(key, 12)()
	if cut := d.cut.Load(); cut != 0 {
		t.Errorf("%d requests were cut while nobody was killed", cut)
	}

	if out := d.weir("weir-1", "verify"); !strings.Contains(out, "the books balance") {
		t.Errorf("verify: %s", out)
	}
	if out := d.weir("weir-1", "replicas", "list"); strings.Count(out, " running ") != len(replicaNames) {
		t.Errorf("replicas: %s", out)
	}
	for _, name := range replicaNames {
		d.stopping(name)
	}
	for _, name := range replicaNames {
		d.ended(name, nil)
	}
}

// deploy brings everything up.
func deploy(t *testing.T, provider *simulator.Server) *deployed {
	t.Helper()
	c := compose(t, "OPENAI_BASE_URL="+provider.URL()+"/v1\n")
	var server pgtest.Server
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	there, err := url.Parse(server.Empty(t)) // it starts the server
	if err != nil {
		t.Fatal(err)
	}
	server.Admin(t, "CREATE DATABASE "+c.Services["postgres"].Environment["POSTGRES_DB"])
	d := &deployed{t: t, binary: buildWeir(t), replicas: map[string]*deployedReplica{}, provider: provider, killed: make(chan struct{})}
	balancer := c.Services["balancer"]
	env := map[string]string{}
	for name, value := range balancer.Environment {
		env[name] = value
	}
	var starting sync.WaitGroup
	for _, name := range replicaNames {
		s := c.Services[name]
		r := &deployedReplica{folder: t.TempDir(), address: freeAddress(t)}
		_, file := s.mounted(instructions(t)["WORKDIR"] + "/weir.yaml")
		if err := os.Symlink(file, filepath.Join(r.folder, "weir.yaml")); err != nil {
			t.Fatal(err)
		}
		for variable, value := range s.Environment {
			r.env = append(r.env, variable+"="+strings.ReplaceAll(value, "@postgres:5432/", "@"+there.Host+"/"))
		}
		// Of the image, and of the file: every address of every host, here.
		r.env = append(r.env, "WEIR_LISTEN="+r.address, "WEIR_ADMIN_LISTEN=127.0.0.1:0")
		for variable, value := range env {
			if strings.HasPrefix(value, name+":") {
				env[variable] = r.address
			}
		}
		d.replicas[name] = r
		starting.Go(func() { d.start(name) })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	d.balancer = freeAddress(t)
	env["LISTEN"] = d.balancer
	_, file := balancer.mounted(balancerFile)
	balance(t, file, env)
	d.await("http://" + d.balancer + "/readyz")
	return d
}

// command is one in a gateway's container.
func (d *deployed) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(d.binary, args...)
	c.Dir, c.Env = d.replicas[name].folder, d.replicas[name].env
	return c
}

// weir is `docker compose exec NAME /weir ARGS`.
func (d *deployed) weir(name string, args ...string) string {
	d.t.Helper()
	out, err := d.command(name, args...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("weir %q: %v: %s", args, err, out)
	}
	return string(out)
}

// start starts a gateway and waits until its health check passes.
func (d *deployed) start(name string) {
	c := d.command(name, "serve", "--log-level", "error")
	c.Stderr = os.Stderr
	process, err := child.Start(c, false, syscall.SIGKILL)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.replicas[name].process = process
	d.t.Cleanup(func() { _ = process.End(syscall.SIGKILL, patience) }) // after a failure
	d.await("http://" + d.replicas[name].address + "/readyz")
	if out, err := d.command(name, "ready").CombinedOutput(); err != nil {
		d.t.Errorf("the health check of %s: %v: %s", name, err, out)
	}
}

func (d *deployed) kill(name string) {
	d.t.Helper()
	if err := d.replicas[name].process.End(syscall.SIGKILL, patience); err != nil {
		d.t.Error(err)
	}
}

// stopping tells a gateway to stop in order; ended waits until it has, and does
// something again and again meanwhile.
func (d *deployed) stopping(name string) {
	d.t.Helper()
	if err := syscall.Kill(d.replicas[name].process.Pid(), syscall.SIGTERM); err != nil {
		d.t.Error(err)
	}
}

func (d *deployed) ended(name string, meanwhile func()) {
	d.t.Helper()
	process := d.replicas[name].process
	deadline := time.After(2 * patience)
	for meanwhile != nil {
		select {
		case <-process.Ended():
			meanwhile = nil
		case <-deadline:
			d.t.Errorf("%s does not stop", name)
			return
		default:
			meanwhile()
		}
	}
	select {
	case <-process.Ended():
	case <-deadline:
		d.t.Errorf("%s does not stop", name)
		return
	}
	if err := process.Err(); err != nil {
		d.t.Errorf("%s ended with %v", name, err)
	}
}

func (d *deployed) await(address string) {
	if code := readyMain([]string{address}, os.Stderr); code != 0 {
		d.t.Errorf("%s is not ready", address)
	}
}

// begin sends requests at once, every second one streamed; wait waits for their
// answers.
func (d *deployed) begin(key string, n int) (wait func()) {
	var sending sync.WaitGroup
	for i := range n {
		sending.Go(func() {
			if err := d.send(key, i%2 == 0); err != nil {
				d.t.Error(err)
			}
		})
	}
	return sending.Wait
}

// running waits until the provider holds so many requests.
func (d *deployed) running(n int64) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := d.provider.Await(ctx, func(t simulator.Totals) bool { return t.Held == n }); err != nil {
		d.t.Errorf("%d requests do not run at once but %d: %v", n, d.provider.Bill().Held, err)
	}
}

// send sends a request, and sends it again when its gateway was killed under it.
func (d *deployed) send(key string, stream bool) error {
	const tries = 3
	for try := 1; ; try++ {
		status, body, err := d.post(key, stream, nil)
		whole := err == nil && status == http.StatusOK && (!stream || strings.HasSuffix(strings.TrimSpace(body), "data: [DONE]"))
		switch {
		case whole:
			return nil
		case err == nil && status != http.StatusOK && status != http.StatusBadGateway:
			return fmt.Errorf("answered %d: %s", status, body)
		case try == tries:
			return fmt.Errorf("answered %d after %d tries: %q, %w", status, tries, body, err)
		}
		d.cut.Add(1)
		d.t.Logf("cut: %d %q, %v", status, body, err)
		<-d.killed // a process that is killed takes connections until it has ended
	}
}

// post sends one request through the balancer. begun, if set, is called once the
// answer's first bytes are there.
func (d *deployed) post(key string, stream bool, begun func()) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	text := fmt.Sprintf(`{"model":"gpt-4o-mini","max_tokens":50,"stream":%t,"messages":[{"role":"user","content":"Hello"}]}`, stream)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.balancer+"/v1/chat/completions", strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	var all bytes.Buffer
	if begun != nil {
		if _, err := io.CopyN(&all, response.Body, int64(len("data: {"))); err != nil {
			return response.StatusCode, "", err
		}
		begun()
	}
	_, err = io.Copy(&all, response.Body)
	return response.StatusCode, all.String(), err
}
