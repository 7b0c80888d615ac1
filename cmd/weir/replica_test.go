// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

// A request of it is estimated at 9 input tokens and 100 of output, 1,009 µ$, and
// costs 320 µ$.
const replicaConfig = `listen: 127.0.0.1:0
store: %s
state_dir: %s
providers:
  - {name: sim, protocol: openai, base_url: "%s/v1", auth: none}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", context_tokens: 8192, max_output_tokens: 100, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: %s, limits: {concurrency: 3}}
`

// fleet is a database, a provider, and a file for each replica.
type fleet struct {
	t        *testing.T
	binary   string
	folder   string
	store    string
	provider *simulator.Server
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	var server pgtest.Server
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	f := &fleet{t: t, binary: buildWeir(t), folder: t.TempDir(), store: server.Empty(t), provider: simulated(t)}
	return f
}

// file is the configuration of a replica, with a folder of its own.
func (f *fleet) file(name string) string {
	f.t.Helper()
	path := filepath.Join(f.folder, name+".yaml")
	text := fmt.Sprintf(replicaConfig, f.store, filepath.Join(f.folder, name), f.provider.URL(), killKey)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// fails runs a command that has to fail, and returns what it says.
func (f *fleet) fails(args ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, f.binary, args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err == nil || ctx.Err() != nil {
		f.t.Errorf("weir %s ended with %v: %s", strings.Join(args, " "), err, said.String())
	}
	return said.String()
}

// ask is the status of a request; 0 when its process was killed.
func (f *fleet) ask(p *weirProcess) int {
	body := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+p.address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+killKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// shownReplica is one of `weir replicas list --json`.
type shownReplica struct {
	ID, Name, State string
	Open            int64
	FileInForce     bool `json:"file_in_force"`
}

func (f *fleet) replicas(p *weirProcess) (list []shownReplica) {
	f.t.Helper()
	var shown struct{ Replicas []shownReplica }
	p.json(f.t, &shown, "replicas", "list", "--json")
	return shown.Replicas
}

// TestAKilledReplicasFolderIsTakenOverAtOnce: ENGINE 9, RES-1, RES-5, STO-1, BR-151.
// While it runs, its folder is its own. After kill -9 the next process in it charges
// what was left open before it admits anything, and the slots are free on all.
func TestAKilledReplicasFolderIsTakenOverAtOnce(t *testing.T) {
	f := newFleet(t)
	one, two := startWeir(t, f.binary, f.file("one")), startWeir(t, f.binary, f.file("two"))
	f.provider.Hold()
	for range 3 {
		go f.ask(one)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := f.provider.Await(ctx, func(n simulator.Totals) bool { return n.Held == 3 }); err != nil {
		t.Fatal(err)
	}
	if got := f.ask(two); got != http.StatusTooManyRequests {
		t.Errorf("a fourth request got %d", got)
	}
	if said := f.fails("serve", "-c", one.config); !strings.Contains(said, "another process's") || !strings.Contains(said, "state_dir") {
		t.Errorf("a second process in the folder of the first says %q", said)
	}
	list := f.replicas(two)
	if len(list) != 2 || list[0].State != "running" || list[0].Open != 3 || list[1].State != "running" || !list[0].FileInForce {
		t.Fatalf("listed are %+v", list)
	}
	table, err := exec.Command(two.binary, "replicas", "list", "-c", two.config).Output()
	if lines := strings.Split(strings.TrimSpace(string(table)), "\n"); err != nil || len(lines) != 3 ||
		!regexp.MustCompile(`(?i)^id +name +version +state +open +clock +file +started +last seen$`).MatchString(strings.TrimSpace(lines[0])) ||
		!regexp.MustCompile(`^p_\S+ +\S+ +\S+ +running +3 +[+-]\d+ ms +[0-9a-f]{12} +\S+ +\S+$`).MatchString(strings.TrimSpace(lines[1])) {
		t.Errorf("the table says (%v)\n%s", err, table)
	}
	if said := f.fails("replicas", "forget", list[0].ID, "-c", two.config); !strings.Contains(said, "stop it first") {
		t.Errorf("forgetting one that runs says %q", said)
	}
	if said := f.fails("replicas", "forget", "p_none", "-c", two.config); !strings.Contains(said, `there is no replica "p_none"`) {
		t.Errorf("forgetting one that is not there says %q", said)
	}

	if err := one.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.command.Wait() // killed
	again := startWeir(t, f.binary, one.config)
	f.provider.Release()
	for range 3 {
		if got := f.ask(two); got != http.StatusOK {
			t.Errorf("a request after the take-over got %d", got)
		}
	}
	two.settle(t)
	var usage struct {
		Total struct {
			Spend    string
			Requests int64
		}
	}
	again.json(t, &usage, "usage", "--json")
	if usage.Total.Requests != 6 || usage.Total.Spend != "0.003987" { // 3 × 1,009 and 3 × 320 µ$
		t.Errorf("charged are %d requests, %s USD", usage.Total.Requests, usage.Total.Spend)
	}
	now := f.replicas(again)
	for _, r := range now {
		if r.State != "running" && r.Open != 0 {
			t.Errorf("left is %+v", r)
		}
	}
	var verify struct{ Balanced bool }
	again.json(t, &verify, "verify", "--json")
	if !verify.Balanced {
		t.Error("the books do not balance")
	}
	again.interrupt(t)
	two.interrupt(t)
}

var heldSomewhere = regexp.MustCompile(`"held":"[^0]`)

// settle waits until nothing is held: another replica's settlements are on their
// way for a moment.
func (p *weirProcess) settle(t *testing.T) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for heldSomewhere.Match(get(t, p.address, "/v1/key")) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("something is held for too long")
		}
	}
}
