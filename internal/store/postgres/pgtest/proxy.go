// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is what befalls one round trip, from a client's messages to the server's
// ReadyForQuery. In all but FaultNone and FaultDelay the client's connection is
// lost with it.
type Fault string

// The faults.
const (
	FaultNone       Fault = ""
	FaultDelay      Fault = "delayed"        // the answer comes later
	FaultUnsent     Fault = "unsent"         // reset; the server has seen nothing of it
	FaultHalfSent   Fault = "half sent"      // reset; the server has seen a part of it
	FaultCut        Fault = "cut"            // sent, and reset at once
	FaultUnanswered Fault = "answer lost"    // sent and done; reset before any answer
	FaultTruncated  Fault = "answer cut off" // sent and done; reset within the answer
	FaultLate       Fault = "late"           // reset; the server sees it afterwards
	FaultSilent     Fault = "silent"         // sent; no answer, and no end of the connection
	FaultDeaf       Fault = "half-open"      // not sent; no answer, and no end of the connection
)

// Faults are all that end or delay a round trip.
var Faults = []Fault{
	FaultDelay, FaultUnsent, FaultHalfSent, FaultCut, FaultUnanswered, FaultTruncated, FaultLate, FaultSilent, FaultDeaf,
}

const (
	// longestDelay bounds FaultDelay and FaultLate.
	longestDelay = 60 * time.Millisecond
	// maxMessage bounds a message that the proxy keeps.
	maxMessage = 1 << 26
)

// Proxy stands between clients and a server as a network does, which it can do
// badly: at seeded round trips, and when it is told to.
type Proxy struct {
	listener net.Listener
	work     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	target  string
	random  *rand.Rand
	percent int // of round trips that a fault befalls
	kinds   []Fault
	links   map[*link]bool
	closed  bool
	deaf    bool
	counts  map[Fault]int
}

// NewProxy stands before the server of a database's URL.
func NewProxy(database string) (*Proxy, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: u.Host, links: map[*link]bool{}, counts: map[Fault]int{}}
	p.work.Go(p.accept)
	return p, nil
}

// URL is a database's by way of the proxy.
func (p *Proxy) URL(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return database
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// Misbehave lets a fault of the kinds befall so many of a hundred round trips, as
// the seed has it. 0: none any more.
func (p *Proxy) Misbehave(seed uint64, percent int, kinds ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.random, p.percent, p.kinds = rand.New(rand.NewPCG(seed, 0)), percent, kinds
}

// Lead has new connections led to the server of a database's URL, and cuts those
// that there are: what a virtual address does when another server takes over.
func (p *Proxy) Lead(database string) error {
	u, err := url.Parse(database)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.target = u.Host
	p.mu.Unlock()
	p.Cut()
	return nil
}

// Cut resets every connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
}

// Hang lets nothing through any more, in either direction, and ends nothing:
// neither those that are connected nor those that connect find out. False: those
// that come are served again; the others are forgotten, as a firewall forgets
// connections.
func (p *Proxy) Hang(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = on
	for l := range p.links {
		l.hangs.Store(on || l.hangs.Load())
	}
}

// Happened counts the faults.
func (p *Proxy) Happened() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

func (p *Proxy) String() string {
	var parts []string
	counts := p.Happened()
	for _, f := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", f, counts[f]))
	}
	return strings.Join(parts, ", ")
}

// Close ends every connection and waits for that.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.work.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		l := &link{proxy: p, client: client, ended: make(chan struct{})}
		p.mu.Lock()
		closed, target := p.closed, p.target
		l.hangs.Store(p.deaf)
		if !closed {
			p.links[l] = true
		}
		p.mu.Unlock()
		if closed {
			_ = client.Close()
			return
		}
		p.work.Go(func() { l.run(target) })
	}
}

// chance is what befalls the next round trip, and a number to go with it.
func (p *Proxy) chance() (Fault, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.percent == 0 || len(p.kinds) == 0 || p.random.IntN(100) >= p.percent {
		return FaultNone, 0
	}
	f := p.kinds[p.random.IntN(len(p.kinds))]
	p.counts[f]++
	return f, p.random.Uint64()
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	once           sync.Once
	ended          chan struct{}
	hangs          atomic.Bool

	mu     sync.Mutex // guards what follows
	fault  Fault      // of the round trip under way
	number uint64
}

// reset ends both sides without a farewell.
func (l *link) reset() {
	l.once.Do(func() {
		l.proxy.mu.Lock()
		delete(l.proxy.links, l)
		server := l.server
		l.proxy.mu.Unlock()
		close(l.ended)
		abort(l.client)
		if server != nil {
			abort(server)
		}
	})
}

func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the other side sees a reset
	}
	_ = c.Close()
}

func (l *link) run(target string) {
	defer l.reset()
	if l.hangs.Load() {
		<-l.ended
		return
	}
	server, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	l.proxy.mu.Lock()
	l.server = server
	l.proxy.mu.Unlock()
	select {
	case <-l.ended: // meanwhile
		abort(server)
		return
	default:
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		l.backward()
	}()
	l.forward()
	l.reset()
	<-back
}

// forward hands a client's messages on, round trip by round trip.
func (l *link) forward() {
	in := bufio.NewReader(l.client)
	first, err := message(in, false)
	if err != nil || l.pass(l.server, first) != nil {
		return
	}
	var trip [][]byte
	for {
		m, err := message(in, true)
		if err != nil {
			return
		}
		trip = append(trip, m)
		switch m[0] {
		case 'S', 'Q': // Sync, Query
			if !l.send(trip) {
				return
			}
			trip = nil
		case 'P', 'B', 'D', 'E', 'C', 'H': // more of it follows
		default: // a password, the end
			if l.pass(l.server, trip...) != nil {
				return
			}
			trip = nil
		}
	}
}

// send hands on one round trip; false: the connection is lost by it.
func (l *link) send(trip [][]byte) bool {
	fault, number := l.proxy.chance()
	l.mu.Lock()
	l.fault, l.number = fault, number
	l.mu.Unlock()
	switch fault {
	case FaultUnsent:
		return false
	case FaultHalfSent:
		_ = l.pass(l.server, trip[:number%uint64(len(trip))]...)
		return false
	case FaultCut:
		_ = l.pass(l.server, trip...)
		return false
	case FaultLate:
		abort(l.client)
		l.wait(number)
		_ = l.pass(l.server, trip...)
		l.drain()
		return false
	case FaultDeaf:
		l.linger()
		return false
	case FaultNone, FaultDelay, FaultUnanswered, FaultTruncated, FaultSilent:
	}
	return l.pass(l.server, trip...) == nil
}

// drain waits until the server has done what it was sent, or gives up.
func (l *link) drain() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-l.ended:
	case <-timer.C:
	}
}

// linger waits until the client has gone. Its end does not reach the server at
// once, which keeps for a while what it had locked.
func (l *link) linger() {
	_, _ = io.Copy(io.Discard, l.client)
	l.wait(uint64(longestDelay))
}

func (l *link) wait(number uint64) {
	timer := time.NewTimer(time.Duration(number % uint64(longestDelay+1)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ended:
	}
}

// pass writes, unless the proxy hangs.
func (l *link) pass(to io.Writer, messages ...[]byte) error {
	if l.hangs.Load() {
		<-l.ended
		return errors.New("the connection hangs")
	}
	_, err := to.Write(slices.Concat(messages...))
	return err
}

// backward hands a server's messages on.
func (l *link) backward() {
	defer l.reset()
	in := bufio.NewReader(l.server)
	for {
		m, err := message(in, true)
		if err != nil {
			return
		}
		l.mu.Lock()
		fault, number := l.fault, l.number
		ready := m[0] == 'Z'
		if ready {
			l.fault = FaultNone
		} else if fault == FaultDelay {
			l.fault = FaultNone // once
		}
		l.mu.Unlock()
		switch fault {
		case FaultDelay:
			l.wait(number)
		case FaultUnanswered, FaultLate:
			if ready {
				return
			}
			continue
		case FaultTruncated:
			if ready || number%4 == 0 { // within the answer, else before its last message
				_ = l.pass(l.client, m[:number%uint64(len(m))])
				return
			}
		case FaultSilent:
			if ready {
				<-l.ended
				return
			}
			continue
		case FaultNone, FaultUnsent, FaultHalfSent, FaultCut, FaultDeaf:
		}
		if l.pass(l.client, m) != nil {
			return
		}
	}
}

// message reads one message, with its type or, as a connection's first one,
// without.
func message(in *bufio.Reader, typed bool) ([]byte, error) {
	head := 4
	if typed {
		head = 5
	}
	start, err := in.Peek(head)
	if err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(start[head-4:])) + head - 4
	if size < head || size > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	m := make([]byte, size)
	_, err = io.ReadFull(in, m)
	return m, err
}
