// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/observe"
	"github.com/weirhq/weir/internal/simulator"
)

// The gateway's benchmark. The gateway is in this process; the provider and the
// clients are in a second one, so that this process's CPU time is the gateway's.
// Every figure is taken in pairs: the gateway, and the same proxy without
// enforcement (it inspects bodies, but its teller admits at once and keeps
// nothing), in turn, so that ratios hold when the machine's speed drifts.

const (
	benchChild   = "WEIR_BENCH_CHILD"
	benchKey     = "the-secret-of-the-bench-key"
	benchPairs   = 5
	benchMillis  = 1000
	benchWarming = 300
)

// ServedLoad is true in a process that was started to send a benchmark's load, when
// that has ended; failed tells how.
func ServedLoad() (served bool, failed error) {
	if os.Getenv(benchChild) == "" {
		return false, nil
	}
	return true, serveLoad(os.Stdin, os.Stdout)
}

// greeting is what the child says first: where its providers are.
type greeting struct {
	Simulator, Paced string
	Certificate      string // of Paced
}

// order is one of these.
type order struct {
	Burst *burst
	Crowd *crowd
}

// burst is what the child is asked to send; measured is what it saw.
type burst struct {
	URL         string
	Connections int
	Stream      bool
	Millis      int
}

type measured struct {
	Requests, Failed     int64
	P50Micros, P99Micros int64
	Micros               int64
}

func serveLoad(in io.Reader, out io.Writer) error {
	provider := simulator.New(simulator.Options{KeptRequests: 1})
	if err := provider.Start(); err != nil {
		return err
	}
	streams := newPaced()
	defer streams.server.Close()
	encoder := json.NewEncoder(out)
	hello := greeting{Simulator: provider.URL(), Paced: streams.server.URL, Certificate: streams.certificate()}
	if err := encoder.Encode(hello); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		answer, err := o.run(streams, lines, encoder)
		if err == nil {
			err = encoder.Encode(answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *order) run(streams *paced, lines *bufio.Scanner, encoder *json.Encoder) (any, error) {
	if o.Crowd != nil {
		return o.Crowd.run(streams, lines, encoder)
	}
	return o.Burst.run(), nil
}

// run sends requests over so many connections for so long.
func (l burst) run() measured {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.Connections, DisableCompression: true}}
	defer client.CloseIdleConnections()
	body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"system","content":%q},{"role":"user","content":"What is a weir?"}]}`,
		l.Stream, strings.Repeat("You are a helpful assistant. ", 20))
	until := time.Now().Add(time.Duration(l.Millis) * time.Millisecond)
	var failed atomic.Int64
	took := make([][]int64, l.Connections)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range l.Connections {
		wg.Go(func() {
			for time.Now().Before(until) {
				start := time.Now()
				if !send(client, l.URL, body) {
					failed.Add(1)
				}
				took[i] = append(took[i], time.Since(start).Microseconds())
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	m := measured{Requests: int64(len(all)), Failed: failed.Load(), Micros: time.Since(began).Microseconds()}
	if len(all) > 0 {
		m.P50Micros, m.P99Micros = all[len(all)/2], all[len(all)*99/100]
	}
	return m
}

func send(client *http.Client, url, body string) bool {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+benchKey)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// generator is the child process.
type generator struct {
	b        *testing.B
	in       io.WriteCloser
	lines    *bufio.Scanner
	greeting greeting
}

func newGenerator(b *testing.B) *generator {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), benchChild+"=1")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait() // ends with its input
	})
	g := &generator{b: b, in: in, lines: bufio.NewScanner(out)}
	g.read(&g.greeting)
	return g
}

func (g *generator) read(into any) {
	g.b.Helper()
	if !g.lines.Scan() {
		g.b.Fatalf("the load generator ended: %v", g.lines.Err())
	}
	if err := json.Unmarshal(g.lines.Bytes(), into); err != nil {
		g.b.Fatal(err)
	}
}

// drive has one load sent and returns what it saw, and this process's CPU time.
func (g *generator) drive(l burst) (m measured, cpuMicros int64) {
	g.b.Helper()
	before := cpuTime()
	if err := json.NewEncoder(g.in).Encode(order{Burst: &l}); err != nil {
		g.b.Fatal(err)
	}
	g.read(&m)
	if m.Failed > 0 || m.Requests == 0 {
		g.b.Fatalf("%d of %d requests failed", m.Failed, m.Requests)
	}
	return m, cpuTime() - before
}

func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return (u.Utime.Sec+u.Stime.Sec)*1_000_000 + u.Utime.Usec + u.Stime.Usec
}

// openTeller is the proxy without enforcement.
type openTeller struct{}

func (openTeller) Submit(_ context.Context, op *ledger.Op) (ledger.Result, error) {
	c := &op.Candidates[0]
	return ledger.Result{Verdict: ledger.Admitted, Reservation: &ledger.Reservation{
		ID: op.ID, Workspace: op.Workspace, Model: c.Model, Provider: c.Provider, Price: c.Price, Worst: c.Wants,
	}}, nil
}
func (openTeller) Post(*ledger.Op, func(ledger.Result, error)) error { return nil }
func (openTeller) Healthy() bool                                     { return true }

// benchServers starts the gateway and, over the same configuration, the proxy
// without enforcement, and returns their addresses.
func benchServers(b *testing.B, g *generator) (governed, open string) {
	b.Helper()
	dir := b.TempDir()
	path := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf(`listen: 127.0.0.1:0
store: sqlite:%s
log_level: error
limits: {rpm: 100000000, tpm: 1000000000, concurrency: 20000}
providers:
  - {name: sim, protocol: openai, base_url: "%s/v1", auth: none}
  - {name: paced, protocol: openai, base_url: "%s/v1", auth: none, ca_file: %s}
models:
  - {name: m, provider: sim, upstream: sim-gpt, context_tokens: 128000, max_output_tokens: 4096, price: {input: "0.15", output: "0.60"}}
  - {name: paced, provider: paced, upstream: m, context_tokens: 128000, max_output_tokens: 4096, price: {input: "0.15", output: "0.60"}}
keys:
  - {name: k, secret: %s, caps: {day: "1000000"}, limits: {rpm: 100000000, tpm: 1000000000, concurrency: 20000}}
`, filepath.Join(dir, "weir.db"), g.greeting.Simulator, g.greeting.Paced, g.trusted(dir), benchKey)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	o := Options{ConfigPath: path, Env: func(string) (string, bool) { return "", false }, Stderr: io.Discard}
	s, err := Start(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	proxy := gateway.New(gateway.Options{
		Clock: s.core.clock, Directory: s.core.directory, Teller: openTeller{}, Upstream: s.transports,
		Observer: s.core.metrics, Log: observe.NewLog(io.Discard, "error"), Doors: doors(), Process: "p",
	})
	l, err := listen(b.Context(), "127.0.0.1:0", 100_000)
	if err != nil {
		b.Fatal(err)
	}
	server := httpServer(proxy, config.Bounds{HeaderTimeoutMicros: 10_000_000, IdleTimeoutMicros: 60_000_000, MaxHeaderBytes: 1 << 16}, s.log)
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	return "http://" + s.Addr(), "http://" + l.Addr().String()
}

// fdatasync is the median time of appending 4 KiB and flushing it.
func fdatasync(b *testing.B) int64 {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "flush"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it is thrown away
	block := make([]byte, 4096)
	var took []int64
	for range 500 {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start).Microseconds())
	}
	return median(took)
}

func median(list []int64) int64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkGateway measures added latency at one connection and throughput at
// 64, whole and streamed. Goals (ENGINE): added p50 at most twice the fdatasync
// p50 plus 50 µs; at 64 connections at least half of the proxy without
// enforcement, at most 120 µs CPU a request, for streams 60 µs more than the proxy
// without enforcement (ADR 17).
func BenchmarkGateway(b *testing.B) {
	flush := fdatasync(b)
	g := newGenerator(b)
	governed, open := benchServers(b, g)
	for _, stream := range []bool{false, true} {
		for _, connections := range []int{1, 64} {
			kind := "whole"
			if stream {
				kind = "streamed"
			}
			b.Run(fmt.Sprintf("%s/connections=%d", kind, connections), func(b *testing.B) {
				g.b = b
				l := burst{Connections: connections, Stream: stream, Millis: benchWarming}
				for _, url := range []string{governed, open} {
					l.URL = url
					g.drive(l)
				}
				l.Millis = benchMillis
				for b.Loop() {
					pairs(b, g, l, governed, open, flush)
				}
			})
		}
	}
}

// pairs runs gateway and proxy in turn and reports the medians.
func pairs(b *testing.B, g *generator, l burst, governed, open string, flush int64) {
	var p50, p99, openP50, rate, openRate, ratio, cpu, openCPU []int64
	for range benchPairs {
		l.URL = governed
		m, used := g.drive(l)
		l.URL = open
		o, openUsed := g.drive(l)
		p50, p99, openP50 = append(p50, m.P50Micros), append(p99, m.P99Micros), append(openP50, o.P50Micros)
		perSecond, openPerSecond := m.Requests*1_000_000/m.Micros, o.Requests*1_000_000/o.Micros
		rate, openRate = append(rate, perSecond), append(openRate, openPerSecond)
		ratio = append(ratio, perSecond*1000/openPerSecond)
		cpu, openCPU = append(cpu, used/m.Requests), append(openCPU, openUsed/o.Requests)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(rate)), "requests/s")
	b.ReportMetric(float64(median(openRate)), "open-requests/s")
	b.ReportMetric(float64(median(ratio))/1000, "of-open")
	b.ReportMetric(float64(median(p50)), "p50-µs")
	b.ReportMetric(float64(median(p99)), "p99-µs")
	b.ReportMetric(float64(median(p50)-median(openP50)), "added-p50-µs")
	b.ReportMetric(float64(flush), "fdatasync-p50-µs")
	b.ReportMetric(float64(median(cpu)), "cpu-µs/request")
	b.ReportMetric(float64(median(openCPU)), "open-cpu-µs/request")
}
