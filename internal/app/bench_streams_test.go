// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Many streams at once. The provider and the clients are in the second process; an
// event carries the instant at which it left the provider, by that process's own
// clock, so that what is measured is the way through the gateway and nothing else.

const (
	pacedEvery  = 20 * time.Millisecond // of a stream among few
	pacedSlow   = 5 * time.Second       // of one among thousands
	pacedSpell  = 5 * time.Second       // how long events are timed
	pacedAtOnce = 64                    // how many clients open streams together
	pacedMark   = `"content":"t`
)

// crowd is what the child is asked to open; crowded is what its clients saw.
type crowd struct {
	URL         string
	Streams     int
	EveryMicros int64
}

type crowded struct {
	Streams, Failed, Events         int64
	FirstP50, FirstP99              int64 // from the provider's first event to the client
	EventP50, EventP99, EventLatest int64
}

// paced is a provider whose streams last until they are let go.
type paced struct {
	server *httptest.Server
	began  time.Time
	every  atomic.Int64
	stop   atomic.Pointer[chan struct{}]
}

func newPaced() *paced {
	p := &paced{began: time.Now()}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.StartTLS()
	return p
}

func (p *paced) certificate() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}))
}

func (p *paced) now() int64 { return time.Since(p.began).Microseconds() }

// ServeHTTP streams events at the pace that was asked for, then the usage.
func (p *paced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	flush, stop := http.NewResponseController(w), *p.stop.Load()
	tick := time.NewTicker(time.Duration(p.every.Load()) * time.Microsecond)
	defer tick.Stop()
	for going := true; going; {
		_, _ = fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"t%d"}}]}`+"\n\n", p.now())
		if flush.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-stop:
			going = false
		case <-r.Context().Done():
			return
		}
	}
	_, _ = io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
		`data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`+"\n\n"+
		"data: [DONE]\n\n")
}

// clients open a crowd of streams and time what comes.
type clients struct {
	paced  *paced
	http   *http.Client
	steady atomic.Bool // every stream is open
	failed atomic.Int64
	mu     sync.Mutex
	first  []int64
	events []int64
}

// run opens every stream, says so with a line, waits for one, and then times events.
func (c crowd) run(p *paced, lines *bufio.Scanner, encoder *json.Encoder) (crowded, error) {
	stop := make(chan struct{})
	p.stop.Store(&stop)
	p.every.Store(c.EveryMicros)
	transport := &http.Transport{MaxIdleConnsPerHost: c.Streams, DisableCompression: true, ReadBufferSize: 2048, WriteBufferSize: 2048}
	all := &clients{paced: p, http: &http.Client{Transport: transport}}
	defer transport.CloseIdleConnections()
	var opened, ended sync.WaitGroup
	turns := make(chan struct{}, pacedAtOnce)
	opened.Add(c.Streams)
	for range c.Streams {
		turns <- struct{}{}
		ended.Go(func() {
			all.read(c.URL, sync.OnceFunc(func() { <-turns; opened.Done() }))
		})
	}
	opened.Wait()
	if err := encoder.Encode("opened"); err != nil {
		return crowded{}, err
	}
	if !lines.Scan() {
		return crowded{}, io.ErrUnexpectedEOF
	}
	all.steady.Store(true)
	<-time.After(pacedSpell) // the spell that is measured
	all.steady.Store(false)
	close(stop)
	ended.Wait()
	return all.result(c.Streams), nil
}

// read is one client's stream; opened is called at its first event, or its end.
func (c *clients) read(url string, opened func()) {
	defer opened()
	body := `{"model":"paced","stream":true,"messages":[{"role":"user","content":"What is a weir?"}]}`
	request, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		c.failed.Add(1)
		return
	}
	request.Header.Set("Authorization", "Bearer "+benchKey)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		c.failed.Add(1)
		return
	}
	defer response.Body.Close()
	var first int64
	var events []int64
	done := false
	lines := bufio.NewReaderSize(response.Body, 1024)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			break
		}
		done = done || bytes.HasPrefix(line, []byte("data: [DONE]"))
		at, ok := sentAt(line)
		if !ok {
			continue
		}
		took := c.paced.now() - at
		if first == 0 {
			first = took
			opened()
		} else if c.steady.Load() {
			events = append(events, took)
		}
	}
	if !done || first == 0 {
		c.failed.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first, c.events = append(c.first, first), append(c.events, events...)
}

func sentAt(line []byte) (int64, bool) {
	_, rest, ok := bytes.Cut(line, []byte(pacedMark))
	if !ok {
		return 0, false
	}
	digits, _, _ := bytes.Cut(rest, []byte(`"`))
	at, err := strconv.ParseInt(string(digits), 10, 64)
	return at, err == nil
}

func (c *clients) result(streams int) crowded {
	slices.Sort(c.first)
	slices.Sort(c.events)
	m := crowded{Streams: int64(streams), Failed: c.failed.Load(), Events: int64(len(c.events))}
	if n := len(c.first); n > 0 {
		m.FirstP50, m.FirstP99 = c.first[n/2], c.first[n*99/100]
	}
	if n := len(c.events); n > 0 {
		m.EventP50, m.EventP99, m.EventLatest = c.events[n/2], c.events[n*99/100], c.events[n-1]
	}
	return m
}

// BenchmarkStreams measures how long an event takes from the provider to the client,
// and what memory an open stream takes. The goal: every event within 20 ms. The
// provider speaks HTTP/2: a stream takes one file of the gateway, not two.
func BenchmarkStreams(b *testing.B) {
	g := newGenerator(b)
	governed, _ := benchServers(b, g)
	for _, c := range []crowd{
		{Streams: 1, EveryMicros: pacedEvery.Microseconds()},
		{Streams: 64, EveryMicros: pacedEvery.Microseconds()},
		{Streams: 1000, EveryMicros: pacedSlow.Microseconds()},
		{Streams: 10_000, EveryMicros: pacedSlow.Microseconds()},
	} {
		b.Run(fmt.Sprintf("open=%d/every=%s", c.Streams, time.Duration(c.EveryMicros)*time.Microsecond), func(b *testing.B) {
			g.b = b
			c.URL = governed
			for b.Loop() {
				g.crowd(b, c)
			}
		})
	}
}

// crowd has streams opened, looks at this process's memory, and reports.
func (g *generator) crowd(b *testing.B, c crowd) {
	debug.FreeOSMemory()
	before := resident(b)
	encoder := json.NewEncoder(g.in)
	if err := encoder.Encode(order{Crowd: &c}); err != nil {
		b.Fatal(err)
	}
	var opened string
	g.read(&opened)
	during := resident(b)
	if err := encoder.Encode("go on"); err != nil {
		b.Fatal(err)
	}
	var m crowded
	g.read(&m)
	if m.Failed > 0 || m.Events == 0 {
		b.Fatalf("%d of %d streams failed, %d events", m.Failed, m.Streams, m.Events)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(m.FirstP50), "first-p50-µs")
	b.ReportMetric(float64(m.FirstP99), "first-p99-µs")
	b.ReportMetric(float64(m.EventP50), "event-p50-µs")
	b.ReportMetric(float64(m.EventP99), "event-p99-µs")
	b.ReportMetric(float64(m.EventLatest), "event-max-µs")
	b.ReportMetric(float64(m.Events*int64(time.Second)/int64(pacedSpell)), "events/s")
	b.ReportMetric(float64(during)/1024, "resident-MiB")
	b.ReportMetric(float64(during-before)/float64(c.Streams), "KiB/stream")
}

// resident is the memory of this process in KiB.
func resident(b *testing.B) int64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "VmRSS:")
	if !ok {
		b.Fatal("/proc/self/status has no VmRSS")
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// trusted writes the certificate of the child's provider where a gateway finds it.
func (g *generator) trusted(dir string) string {
	path := filepath.Join(dir, "paced.pem")
	if err := os.WriteFile(path, []byte(g.greeting.Certificate), 0o600); err != nil {
		g.b.Fatal(err)
	}
	return path
}
