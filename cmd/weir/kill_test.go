// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

const (
	kills      = 20
	killKey    = "the-secret-of-the-killed-key"
	killConfig = `listen: 127.0.0.1:0
store: sqlite:%s
providers:
  - {name: sim, protocol: openai, base_url: "%s/v1", auth: none}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30&latency=5ms", context_tokens: 8192, max_output_tokens: 100, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: %s, limits: {concurrency: 64}, caps: {day: "1000"}}
`
)

// simulated is a provider that serves until the end of the test.
func simulated(t *testing.T) *simulator.Server {
	t.Helper()
	provider := simulator.New(simulator.Options{KeptRequests: 1})
	if err := provider.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		provider.Release()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := provider.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return provider
}

// TestNothingThatReachedTheProviderIsUnchargedAfterAKill kills the program with
// SIGKILL in the middle of a volley, twenty times at random moments, and starts
// it again. RES-1, RES-5, BR-151. A request costs 320 µ$ when it was settled and
// its worst case, 1,011 µ$, when the next start swept it.
func TestNothingThatReachedTheProviderIsUnchargedAfterAKill(t *testing.T) {
	weir := buildWeir(t)
	provider := simulated(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf(killConfig, filepath.Join(dir, "weir.db"), provider.URL(), killKey)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for range kills {
		p := startWeir(t, weir, config)
		stop := make(chan struct{})
		volley := keepSending(p.address, stop)
		timer := time.NewTimer(time.Duration(20+random.IntN(230)) * time.Millisecond)
		<-timer.C
		if err := p.command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.command.Wait() // killed
		close(stop)
		volley.Wait()
	}
	reached := provider.Bill().Requests
	p := startWeir(t, weir, config)
	var usage struct {
		Total struct {
			Spend    string `json:"spend"`
			Requests int64  `json:"requests"`
		} `json:"total"`
	}
	p.json(t, &usage, "usage", "--json")
	var verify struct {
		Balanced bool `json:"balanced"`
	}
	p.json(t, &verify, "verify", "--json")
	if !verify.Balanced {
		t.Error("the books do not balance")
	}
	if usage.Total.Requests < reached || reached == 0 {
		t.Errorf("%d requests reached the provider, %d were charged", reached, usage.Total.Requests)
	}
	t.Logf("%d requests reached the provider, %d were charged, %s USD in all", reached, usage.Total.Requests, usage.Total.Spend)
	var key struct {
		Limits []struct {
			ID   string `json:"limit_id"`
			Held string `json:"held"`
		} `json:"limits"`
	}
	body := get(t, p.address, "/v1/key")
	if err := json.Unmarshal(body, &key); err != nil || len(key.Limits) == 0 {
		t.Fatalf("/v1/key answered %s (%v)", body, err)
	}
	for _, l := range key.Limits {
		if l.Held != "0" {
			t.Errorf("%s still holds %s", l.ID, l.Held)
		}
	}
	p.interrupt(t)
}

func get(t *testing.T, address, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+killKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// keepSending keeps 32 requests in flight until stop; failures are expected,
// the other side is being killed.
func keepSending(address string, stop <-chan struct{}) *sync.WaitGroup {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			defer client.CloseIdleConnections()
			body := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
			if i%2 == 0 {
				body = `{"stream":true,` + body[1:]
			}
			for {
				select {
				case <-stop:
					return
				default:
				}
				request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					return
				}
				request.Header.Set("Authorization", "Bearer "+killKey)
				response, err := client.Do(request)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, response.Body) // cut by the kill
				_ = response.Body.Close()
			}
		})
	}
	return &wg
}

// weirProcess is a running `weir serve`.
type weirProcess struct {
	command *exec.Cmd
	binary  string
	config  string
	address string
}

func buildWeir(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func startWeir(t *testing.T, binary, config string) *weirProcess {
	t.Helper()
	p, err := launch(exec.Command(binary, "serve", "-c", config), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() }) // it may have ended already
	p.binary, p.config = binary, config
	return p
}

// launch starts a `weir serve` and waits until it says where it listens; one
// that ends before has been waited for.
func launch(command *exec.Cmd, stderr io.Writer) (*weirProcess, error) {
	p := &weirProcess{command: command}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = stderr
	if err := command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "models"); ok {
			p.address = strings.TrimPrefix(strings.TrimSpace(address), "http://")
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p, nil
		}
	}
	return nil, fmt.Errorf("weir serve ended before it said where it listens: %w", command.Wait())
}

// json runs a command against the same configuration and reads its answer.
func (p *weirProcess) json(t *testing.T, into any, args ...string) {
	t.Helper()
	out, err := exec.Command(p.binary, append(args, "-c", p.config)...).Output()
	if err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// interrupt ends the program in order: exit code 0 (STO-4).
func (p *weirProcess) interrupt(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("weir serve ended with %v", err)
	}
}
