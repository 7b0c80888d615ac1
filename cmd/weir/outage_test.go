// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // another process that holds the store's file

	"github.com/weirhq/weir/internal/simulator"
)

// holdStore makes the store refuse every write until the returned function is
// called.
func holdStore(t *testing.T, path string) (release func()) {
	t.Helper()
	other, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := other.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	release = func() {
		once.Do(func() {
			_ = conn.Close() // with it goes the lock
			_ = other.Close()
		})
	}
	t.Cleanup(release)
	return release
}

// ask sends one request of the killed key and returns its status and body.
func ask(address, method, path, body string) (int, string, http.Header) {
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error(), nil
	}
	request.Header.Set("Authorization", "Bearer "+killKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return response.StatusCode, string(text), response.Header
}

// waitFor asks again until the answer is the wanted one.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s did not come", what)
		}
	}
}

// TestAKillInAnOutageOfTheStoreChargesWhatWasUsed: RES-1, RES-8, RES-11. The
// store refuses writes while requests run; they are answered, the process is
// killed, and the next one charges their real usage: 320 µ$ each, where the
// worst case is 1,011.
func TestAKillInAnOutageOfTheStoreChargesWhatWasUsed(t *testing.T) {
	const rounds, running = 5, 16
	weir := buildWeir(t)
	provider := simulated(t)
	dir := t.TempDir()
	config, db := filepath.Join(dir, "weir.yaml"), filepath.Join(dir, "weir.db")
	if err := os.WriteFile(config, fmt.Appendf(nil, killConfig, db, provider.URL(), killKey), 0o600); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		killInOutage(t, startWeir(t, weir, config), provider, db, running)
	}
	p := startWeir(t, weir, config)
	var usage struct {
		Total struct {
			Spend    string `json:"spend"`
			Requests int64  `json:"requests"`
		} `json:"total"`
	}
	p.json(t, &usage, "usage", "--json")
	if want := "0.0256"; usage.Total.Spend != want || usage.Total.Requests != rounds*running {
		t.Errorf("%d requests were charged %s USD, want %d and %s", usage.Total.Requests, usage.Total.Spend, rounds*running, want)
	}
	var verify struct {
		Balanced bool `json:"balanced"`
	}
	p.json(t, &verify, "verify", "--json")
	if !verify.Balanced {
		t.Error("the books do not balance")
	}
	p.interrupt(t)
}

func killInOutage(t *testing.T, p *weirProcess, provider *simulator.Server, db string, running int) {
	t.Helper()
	const body = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	provider.Hold()
	var volley sync.WaitGroup
	for i := range running {
		volley.Go(func() {
			body := body
			if i%2 == 0 {
				body = `{"stream":true,` + body[1:]
			}
			if status, text, _ := ask(p.address, http.MethodPost, "/v1/chat/completions", body); status != 200 || strings.Contains(text, `"error"`) {
				t.Errorf("a running request: %d %s", status, text)
			}
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := provider.Await(ctx, func(n simulator.Totals) bool { return n.Held == int64(running) }); err != nil {
		t.Fatal(err)
	}
	release := holdStore(t, db)
	waitFor(t, "a red /readyz", func() bool { status, _, _ := ask(p.address, http.MethodGet, "/readyz", ""); return status == 503 })
	provider.Release()
	volley.Wait()
	reached := provider.Bill().Requests
	status, text, header := ask(p.address, http.MethodPost, "/v1/chat/completions", body)
	if status != 503 || header.Get("Retry-After") != "2" || provider.Bill().Requests != reached {
		t.Errorf("a request meanwhile: %d %s", status, text)
	}
	if status, _, _ := ask(p.address, http.MethodGet, "/healthz", ""); status != 200 {
		t.Errorf("/healthz is %d", status)
	}
	// The answers have ended; the spool has them a moment later.
	var size int64
	waitFor(t, "the spool", func() bool {
		before := size
		info, err := os.Stat(db + ".spool")
		if err == nil {
			size = info.Size()
		}
		return size > 500*int64(running) && size == before
	})
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.command.Wait() // killed
	release()
}
