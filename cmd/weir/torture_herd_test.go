// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/simulator"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

const (
	herdSize = 4
	// herdSlack is how long a database may take to do what a process sent before it
	// was killed.
	herdSlack = 3_000_000
)

// herd is a round of several programs on one PostgreSQL, with a network between.
type herd struct {
	*tortured
	server  *pgtest.Server
	proxy   *pgtest.Proxy
	members []*member
	turn    atomic.Int64
}

// member is one of the programs. Its folder outlives it.
type member struct {
	state   string
	where   atomic.Pointer[string] // nil: no balancer sends anybody there
	process *weirProcess
	gone    chan error
}

// TestManyProgramsOnOnePostgreSQLUnderTorture: four programs share one PostgreSQL,
// under the crowd that the single one has. Two of the four are killed and the
// database is stopped at once, the network cuts, delays, loses and hangs, programs
// are stopped and started again one by one, and the file changes. Then the
// provider's bill against the ledger: nothing acknowledged is lost, each request
// that reached the provider is charged once, nothing is held at rest, the database
// has broken no deadlock and nobody helped. RES-1 to RES-5, RES-7, RES-8, STO-4,
// ENGINE 4 to 6 and 9, BR-023, BR-151, BR-160, BR-164. `make torture` runs more
// rounds.
func TestManyProgramsOnOnePostgreSQLUnderTorture(t *testing.T) {
	rounds, seed := number(t, roundsVariable, 1), number(t, seedVariable, 1)
	var server pgtest.Server
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	weir := buildWeir(t)
	for i := range rounds {
		t.Run(fmt.Sprintf("round %d", i+1), func(t *testing.T) {
			h := newHerd(t, weir, &server, seed+i)
			defer func() {
				if t.Failed() {
					t.Logf("run it again: make torture SEED=%d ROUNDS=1", h.seed)
				}
			}()
			h.round()
			if i == 0 && rounds > 1 {
				h.abandoned()
			}
		})
		if t.Failed() {
			return
		}
	}
}

func newHerd(t *testing.T, binary string, server *pgtest.Server, seed uint64) *herd {
	t.Helper()
	h := &herd{
		tortured: &tortured{t: t, binary: binary, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), log: &programLog{}, counts: map[string]int{}},
		server:   server,
	}
	h.config, h.slack, h.pick = filepath.Join(h.dir, "weir.yaml"), herdSlack, h.next
	h.store = server.Database(t)
	var err error
	if h.proxy, err = pgtest.NewProxy(h.store); err != nil {
		t.Fatal(err)
	}
	h.storeLines = fmt.Sprintf("store: %s\npostgres: {early_release: %t}\nreservation_hold: 1m", h.proxy.URL(h.store), seed%2 == 0)
	h.provide()
	h.write(settings{zone: "UTC", hard: 20, rpm: 40, slots: 3})
	t.Cleanup(func() {
		h.each(func(m *member) {
			if m.process != nil {
				_ = h.endOne(m, syscall.SIGKILL) // it was killed
			}
		})
		if err := h.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range herdSize {
		h.members = append(h.members, &member{state: filepath.Join(h.dir, fmt.Sprint("m", i))})
	}
	h.each(h.startOne)
	h.env = map[string]string{config.EnvStateDir: h.members[0].state}
	h.fund()
	return h
}

// next is what a balancer does: one program after the other, of those that it knows
// to be ready.
func (h *herd) next() string {
	for range h.members {
		if where := h.members[int(h.turn.Add(1))%len(h.members)].where.Load(); where != nil {
			return *where
		}
	}
	return "127.0.0.1:1" // nobody is there
}

// each does something with all of them at once.
func (h *herd) each(do func(*member)) {
	var all sync.WaitGroup
	for _, m := range h.members {
		all.Go(func() { do(m) })
	}
	all.Wait()
}

func (h *herd) startOne(m *member) {
	command := exec.Command(h.binary, "serve", "-c", h.config)
	command.Env = append(os.Environ(), config.EnvStateDir+"="+m.state)
	timer := time.AfterFunc(startPatience, func() { _ = command.Process.Signal(syscall.SIGABRT) }) // it prints its goroutines
	defer timer.Stop()
	p, err := launch(command, h.log)
	if err != nil {
		h.t.Errorf("start: %v\n%s", err, h.log.tail())
		return
	}
	p.binary, p.config = h.binary, h.config
	m.process, m.gone = p, make(chan error, 1)
	go func() { m.gone <- command.Wait() }()
	m.where.Store(&p.address)
}

// endOne sends the signal and waits for the program to go.
func (h *herd) endOne(m *member, signal syscall.Signal) error {
	if m.process == nil {
		return errors.New("it does not run")
	}
	m.where.Store(nil)
	process := m.process.command.Process
	_ = process.Signal(signal) // one that has died is seen below
	m.process = nil
	select {
	case err := <-m.gone:
		return err
	case <-time.After(startPatience):
	}
	_ = process.Signal(syscall.SIGABRT) // it prints its goroutines
	return fmt.Errorf("it did not end within %s of %s: %w", startPatience, signal, <-m.gone)
}

func (h *herd) killOne(m *member) {
	_ = h.endOne(m, syscall.SIGKILL) // it was killed
	h.died("kills")
}

func (h *herd) stopOne(m *member) {
	if err := h.endOne(m, syscall.SIGTERM); err != nil {
		h.t.Errorf("after SIGTERM a program ended with %v\n%s", err, h.log.tail())
	}
}

// allAlive fails when one of them has ended by itself.
func (h *herd) allAlive() {
	h.t.Helper()
	for i, m := range h.members {
		select {
		case err := <-m.gone:
			m.process = nil
			h.t.Fatalf("program %d ended by itself: %v\n%s", i, err, h.log.tail())
		default:
		}
		if m.process == nil {
			h.t.Fatalf("program %d does not run\n%s", i, h.log.tail())
		}
	}
}

// round tortures, then audits.
func (h *herd) round() {
	began := time.Now()
	before := strings.Count(h.server.Log(h.t), "deadlock detected")
	crowd := h.gather()
	scenes := []func(){h.crashed, h.crashed, h.rolled, h.badNetwork, h.cutOff, h.reconfiguredAll, h.reconfiguredAll}
	h.random.Shuffle(len(scenes), func(i, j int) { scenes[i], scenes[j] = scenes[j], scenes[i] })
	for _, scene := range scenes {
		h.pause(200*time.Millisecond, 700*time.Millisecond)
		scene()
		h.allAlive()
		h.await("an admission by each", 20*time.Second, h.allAdmit)
	}
	h.pause(200*time.Millisecond, 700*time.Millisecond)
	crowd.leave()
	h.settle()
	a := h.audit(crowd)
	h.each(h.stopOne)
	h.judgeLog()
	if after := strings.Count(h.server.Log(h.t), "deadlock detected"); after != before {
		h.t.Errorf("the database broke %d deadlocks", after-before)
	}
	h.t.Logf("seed %d, early release %t, %s: %s", h.seed, h.seed%2 == 0, time.Since(began).Round(time.Millisecond), a)
	h.t.Logf("programs: %s; network: %s; log: %s", tally(h.counts), h.proxy, tally(h.log.counts))
}

// allAdmit tells whether each of them admits.
func (h *herd) allAdmit() bool {
	for range h.members {
		if h.probe() != http.StatusOK {
			return false
		}
	}
	return true
}

// crashed kills two of the four and stops the database at once, in any order, and
// starts all three again. Nobody does anything else.
func (h *herd) crashed() {
	victims := h.random.Perm(len(h.members))[:2]
	when, first := h.random.IntN(3), h.random.IntN(2) == 0
	for i, v := range victims {
		if i == when {
			h.crash()
		}
		h.killOne(h.members[v])
		h.pause(time.Millisecond, 150*time.Millisecond)
	}
	if when == 2 {
		h.crash()
	}
	var again sync.WaitGroup
	start := func() {
		for _, v := range victims {
			again.Go(func() { h.startOne(h.members[v]) })
		}
	}
	if first { // they wait for it
		start()
		h.pause(time.Millisecond, time.Second)
	}
	if err := h.server.Start(); err != nil {
		h.t.Fatalf("start PostgreSQL: %v", err)
	}
	if !first {
		start()
	}
	again.Wait()
}

func (h *herd) crash() {
	if err := h.server.Crash(); err != nil {
		h.t.Fatalf("stop PostgreSQL: %v", err)
	}
	h.counts["immediate stops of PostgreSQL"]++
	h.pause(time.Millisecond, 600*time.Millisecond)
}

// rolled stops and starts one after the other, as an update does.
func (h *herd) rolled() {
	for _, i := range h.random.Perm(len(h.members)) {
		h.stopOne(h.members[i])
		h.counts["terms"]++
		h.startOne(h.members[i])
	}
}

// badNetwork lets round trips fail in every manner.
func (h *herd) badNetwork() {
	h.proxy.Misbehave(h.seed, 2+h.random.IntN(4), pgtest.Faults...)
	h.pause(time.Second, 3*time.Second)
	h.proxy.Misbehave(0, 0)
}

// cutOff: nothing gets through for some time, or every connection is reset.
func (h *herd) cutOff() {
	for range 1 + h.random.IntN(3) {
		h.proxy.Cut()
		h.pause(time.Millisecond, 200*time.Millisecond)
	}
	h.proxy.Hang(true)
	h.pause(100*time.Millisecond, 2500*time.Millisecond)
	h.proxy.Hang(false)
	h.counts["networks that hang"]++
}

// reconfiguredAll changes the file that all of them watch.
func (h *herd) reconfiguredAll() {
	h.write(h.settings.change(h.random))
	h.counts["reconfigurations"]++
}

// abandoned: one is killed and never comes back. Within a minute its slots are free
// again; its money is when somebody says that it is gone for good (RES-5, ENGINE 9).
func (h *herd) abandoned() {
	const running = 3
	h.write(settings{zone: "UTC", hard: 20, rpm: 40, slots: running})
	h.each(h.startOne)
	lost := h.members[0]
	h.provider.Hold()
	var sent sync.WaitGroup
	for range running {
		sent.Go(func() { h.narrow(lost.process.address) })
	}
	h.await("the running requests", startPatience, func() bool { return h.heldBack() == running })
	h.env = map[string]string{config.EnvStateDir: h.members[1].state}
	h.killOne(lost)
	h.provider.Release()
	sent.Wait()
	if got := h.narrow(h.next()); got != http.StatusTooManyRequests {
		h.t.Errorf("while the slots of the dead are taken, a request got %d", got)
	}
	began := time.Now()
	h.await("the slots of the dead", 75*time.Second, func() bool { return h.narrow(h.next()) == http.StatusOK })
	h.t.Logf("the slots were free after %s", time.Since(began).Round(time.Second))

	for _, r := range h.replicas(h.members[1]) {
		if r.State == "dead" && r.Open > 0 {
			out, err := h.commandOf(h.members[1], "replicas", "forget", r.ID).CombinedOutput()
			if err != nil {
				h.t.Errorf("weir replicas forget: %v\n%s", err, out)
			}
		}
	}
	books := h.connect()
	defer books.close()
	h.await("what the dead had open", startPatience, func() bool { return books.held() == "" })
	if !books.verify().Balanced {
		h.t.Error("the books do not balance")
	}
	h.each(func(m *member) {
		if m.process != nil {
			h.stopOne(m)
		}
	})
}

// narrow sends one request of a key with few slots.
func (h *herd) narrow(address string) int {
	ctx, cancel := context.WithTimeout(context.Background(), clientPatience)
	defer cancel()
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		h.t.Error(err)
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+secretOf("narrow"))
	request.Header.Set("User-Agent", probeTag)
	return status(request)
}

// commandOf is a command at one of the programs.
func (h *herd) commandOf(m *member, args ...string) *exec.Cmd {
	c := exec.Command(h.binary, append(args, "-c", h.config)...)
	c.Env = append(os.Environ(), config.EnvStateDir+"="+m.state)
	return c
}

func (h *herd) replicas(m *member) []shownReplica {
	h.t.Helper()
	var shown struct{ Replicas []shownReplica }
	out, err := h.commandOf(m, "replicas", "list", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &shown)
	}
	if err != nil {
		h.t.Fatalf("weir replicas list: %v\n%s", err, out)
	}
	return shown.Replicas
}

// heldBack is how many requests the provider holds back.
func (h *herd) heldBack() (n int64) {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	_ = h.provider.Await(ctx, func(t simulator.Totals) bool { n = t.Held; return true }) // it is asked once
	return n
}
