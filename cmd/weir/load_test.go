// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The load's defaults are its short edition; make load has the long one.
const (
	loadSeconds = 10
	loadRate    = 100
	loadLatency = 50 * time.Millisecond // of the provider
	loadConfig  = `listen: 127.0.0.1:0
store: sqlite:%s
log_level: warn
providers:
  - {name: sim, protocol: openai, base_url: "%s/v1", auth: none}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30&latency=50ms", context_tokens: 8192, max_output_tokens: 100, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: %s, limits: {rpm: 1000000, tpm: 1000000000, concurrency: 10000}, caps: {day: "1000000"}}
budgets:
  - {name: org, scope: org, metric: spend, limit: "1000000", period: month, enforcement: hard}
`
)

// TestAConstantLoadNeitherSlowsNorGrows: BR-168. Requests come at a steady rate,
// whether or not earlier ones have been answered, and the time is cut into ten
// spells: what each adds to the provider's time and the process's memory are for
// people to read; that memory stays, nothing is refused and the books balance is
// held.
func TestAConstantLoadNeitherSlowsNorGrows(t *testing.T) {
	seconds, rate := number(t, "WEIR_LOAD_SECONDS", loadSeconds), number(t, "WEIR_LOAD_RATE", loadRate)
	weir := buildWeir(t)
	provider := simulated(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf(loadConfig, filepath.Join(dir, "weir.db"), provider.URL(), killKey)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startWeir(t, weir, config)
	const spells = 10
	var memory []int64
	for spell := range spells {
		took := p.load(t, int(rate), time.Duration(seconds)*time.Second/spells)
		slices.Sort(took)
		memory = append(memory, residentKiB(t, p.command.Process.Pid))
		t.Logf("spell %d: %d requests, added p50 %s, p99 %s; resident %d MiB", spell+1, len(took),
			took[len(took)/2]-loadLatency, took[len(took)*99/100]-loadLatency, memory[spell]/1024)
	}
	// Caches fill in the first spells.
	if early, late := slices.Max(memory[:4]), slices.Min(memory[7:]); early > 0 && late > early+early/5+16*1024 {
		t.Errorf("memory grew from %d to %d MiB", early/1024, late/1024)
	}
	var verify struct {
		Balanced bool `json:"balanced"`
	}
	if p.json(t, &verify, "verify", "--json"); !verify.Balanced {
		t.Error("the books do not balance")
	}
	p.interrupt(t)
}

// load sends so many requests a second for a spell and returns what each took.
func (p *weirProcess) load(t *testing.T, rate int, spell time.Duration) []time.Duration {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var wait sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for range int(spell.Seconds() * float64(rate)) {
		<-ticker.C
		wait.Go(func() {
			begun := time.Now()
			err := p.ask(client)
			mu.Lock()
			defer mu.Unlock()
			if took = append(took, time.Since(begun)); err != nil {
				failed = err
			}
		})
	}
	wait.Wait()
	if failed != nil || len(took) == 0 {
		t.Fatalf("%d requests: %v", len(took), failed)
	}
	return took
}

func (p *weirProcess) ask(client *http.Client) error {
	body := strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+p.address+"/v1/chat/completions", body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+killKey)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", response.StatusCode, text)
	}
	return err
}

// residentKiB is the memory of a process in KiB, 0 where the system has no /proc.
func residentKiB(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}
