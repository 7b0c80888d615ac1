// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

const (
	maxLines     = 4_096
	overflowName = "(other)" // account and model of the line that takes what has no line
)

// AccountOf is the name under which a credential is billed: a fingerprint, so
// that no bill shows a key. No credential is "none".
func AccountOf(key string) string {
	if key == "" {
		return "none"
	}
	sum := sha256.Sum256([]byte(key))
	return "key-" + hex.EncodeToString(sum[:6])
}

// Totals are the simulator's counts since its start or the last Reset; those of
// the present (InFlight, Held, OpenConnections) know no reset.
type Totals struct {
	Requests           int64 `json:"requests"` // accepted completions
	Refused            int64 `json:"refused"`  // requests that were never accepted: no key, bad body
	Input              int64 `json:"input_tokens"`
	Output             int64 `json:"output_tokens"`
	Gone               int64 `json:"gone"` // clients seen to leave before their answer's end
	InFlight           int64 `json:"in_flight"`
	MaxInFlight        int64 `json:"max_in_flight"`
	Held               int64 `json:"held"` // waiting at a gate
	OpenConnections    int64 `json:"open_connections"`
	MaxOpenConnections int64 `json:"max_open_connections"`
	Parts

	handlers int64
}

// Line is what one account owes for one model, named as it was asked for, with
// its settings.
type Line struct {
	Account  string `json:"account"`
	Model    string `json:"model"`
	Requests int64  `json:"requests"`
	Billed   int64  `json:"billed"` // requests that cost anything
	Input    int64  `json:"input_tokens"`
	Output   int64  `json:"output_tokens"`
	Errors   int64  `json:"errors"` // answered with an error status
	Broken   int64  `json:"broken"` // broken off by the simulator
	Gone     int64  `json:"gone"`
	Parts
}

// Outcome is how a request ended.
type Outcome string

// Outcomes.
const (
	Served Outcome = "served"
	Failed Outcome = "failed" // answered with an error status
	Broken Outcome = "broken" // broken off by the simulator
	Gone   Outcome = "gone"   // the client left
)

// Entry is one ended request. Instants are Unix microseconds.
type Entry struct {
	Number  int64   `json:"number"` // counts from 1; the answer's X-Request-Id is sim-NUMBER
	Account string  `json:"account"`
	Model   string  `json:"model"`
	Agent   string  `json:"agent,omitempty"` // User-Agent, which gateways hand on: a client finds its request by it
	Stream  bool    `json:"stream"`
	Outcome Outcome `json:"outcome"`
	Status  int     `json:"status"` // 0 when no headers were sent
	Input   int64   `json:"input_tokens"`
	Output  int64   `json:"output_tokens"`
	Parts
	ArrivedMicros int64 `json:"arrived_micros"`
	GoneMicros    int64 `json:"gone_micros,omitempty"` // when the client was seen to have left, 0 if never
	EndedMicros   int64 `json:"ended_micros"`
}

// SawCloseAfter is how long after closedMicros, the instant at which the client
// closed, the simulator saw it; ok is false when it never did.
func (e Entry) SawCloseAfter(closedMicros int64) (d time.Duration, ok bool) {
	return time.Duration(e.GoneMicros-closedMicros) * time.Microsecond, e.GoneMicros != 0
}

// Bill is what has been served, at one instant.
type Bill struct {
	Totals
	Lines   []Line  `json:"lines"`   // by account and model
	Log     []Entry `json:"log"`     // the latest ended requests, in the order of their end
	Dropped int64   `json:"dropped"` // older entries, no longer kept
}

// Line is the line of a credential and a model, empty when there is none.
func (b Bill) Line(key, model string) Line {
	account := AccountOf(key)
	for _, l := range b.Lines {
		if l.Account == account && l.Model == model {
			return l
		}
	}
	return Line{Account: account, Model: model}
}

type lineKey struct{ key, model string }

// meter keeps the bill. Its lock is a leaf: nothing is called under it.
type meter struct {
	now  func() int64
	kept int

	mu       sync.Mutex
	totals   Totals
	numbers  int64
	lines    map[lineKey]*Line
	log      []Entry // a ring once it is full; next is the oldest
	next     int
	dropped  int64
	watchers int
	changed  chan struct{}
}

func newMeter(now func() int64, kept int) *meter {
	return &meter{now: now, kept: kept, lines: make(map[lineKey]*Line), changed: make(chan struct{})}
}

// lock returns the unlocking, which tells the watchers.
func (m *meter) lock() (unlock func()) {
	m.mu.Lock()
	return m.unlock
}

func (m *meter) unlock() {
	if m.watchers > 0 {
		close(m.changed)
		m.changed = make(chan struct{})
	}
	m.mu.Unlock()
}

// ticket is one request in flight.
type ticket struct {
	key   lineKey
	entry Entry
	ended bool
}

func (m *meter) arrive(q *Request) *ticket {
	at := m.now()
	t := &ticket{key: lineKey{q.Key, q.Model}}
	defer m.lock()()
	m.numbers++
	m.totals.Requests++
	m.totals.InFlight++
	m.totals.MaxInFlight = max(m.totals.MaxInFlight, m.totals.InFlight)
	l := m.line(t.key)
	l.Requests++
	t.entry = Entry{
		Number: m.numbers, Account: l.Account, Model: l.Model, Agent: q.Header.Get("User-Agent"), Stream: q.Stream, ArrivedMicros: at,
	}
	return t
}

func (m *meter) line(k lineKey) *Line {
	l := m.lines[k]
	if l != nil {
		return l
	}
	account := AccountOf(k.key)
	if len(m.lines) >= maxLines {
		k, account = lineKey{overflowName, overflowName}, overflowName
		if l = m.lines[k]; l != nil {
			return l
		}
	}
	l = &Line{Account: account, Model: k.model}
	m.lines[k] = l
	return l
}

// leave notes that the client was seen to have left.
func (m *meter) leave(t *ticket) {
	at := m.now()
	defer m.lock()()
	if t.ended || t.entry.GoneMicros != 0 {
		return
	}
	t.entry.GoneMicros = at
	m.totals.Gone++
}

// end books the request; only the first end counts.
func (m *meter) end(t *ticket, o Outcome, status int, input, output int64, parts Parts) {
	at := m.now()
	defer m.lock()()
	if t.ended {
		return
	}
	t.ended = true
	m.totals.InFlight--
	m.totals.Input += input
	m.totals.Output += output
	m.totals.add(parts)
	l := m.line(t.key)
	l.Input += input
	l.Output += output
	l.add(parts)
	if input+output > 0 {
		l.Billed++
	}
	switch o {
	case Failed:
		l.Errors++
	case Broken:
		l.Broken++
	case Gone:
		l.Gone++
	case Served:
	}
	t.entry.Outcome, t.entry.Status, t.entry.EndedMicros = o, status, at
	t.entry.Input, t.entry.Output, t.entry.Parts = input, output, parts
	m.keep(t.entry)
}

func (m *meter) keep(e Entry) {
	if len(m.log) < m.kept {
		m.log = append(m.log, e)
		return
	}
	m.dropped++
	if m.kept == 0 {
		return
	}
	m.log[m.next] = e
	m.next = (m.next + 1) % m.kept
}

func (m *meter) add(field *int64, delta int64) {
	defer m.lock()()
	*field += delta
}

func (m *meter) held(delta int64)     { m.add(&m.totals.Held, delta) }
func (m *meter) handlers(delta int64) { m.add(&m.totals.handlers, delta) }
func (m *meter) refuse()              { m.add(&m.totals.Refused, 1) }

func (m *meter) connections(delta int64) {
	defer m.lock()()
	m.totals.OpenConnections += delta
	m.totals.MaxOpenConnections = max(m.totals.MaxOpenConnections, m.totals.OpenConnections)
}

func (m *meter) snapshot() Bill {
	m.mu.Lock()
	b := Bill{Totals: m.totals, Dropped: m.dropped, Lines: make([]Line, 0, len(m.lines))}
	for _, l := range m.lines {
		b.Lines = append(b.Lines, *l)
	}
	b.Log = slices.Concat(m.log[m.next:], m.log[:m.next])
	m.mu.Unlock()
	slices.SortFunc(b.Lines, func(x, y Line) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Model, y.Model))
	})
	return b
}

func (m *meter) reset() {
	defer m.lock()()
	t := m.totals
	m.totals = Totals{
		InFlight: t.InFlight, MaxInFlight: t.InFlight, Held: t.Held, handlers: t.handlers,
		OpenConnections: t.OpenConnections, MaxOpenConnections: t.OpenConnections,
	}
	clear(m.lines)
	m.log, m.next, m.dropped = nil, 0, 0
}

// await returns when want holds for the totals; want is called without the lock.
func (m *meter) await(ctx context.Context, want func(Totals) bool) error {
	m.mu.Lock()
	m.watchers++
	for {
		totals, changed := m.totals, m.changed
		m.mu.Unlock()
		done := want(totals)
		if !done {
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		m.mu.Lock()
		if done || ctx.Err() != nil {
			m.watchers--
			m.mu.Unlock()
			if done {
				return nil
			}
			return ctx.Err()
		}
	}
}
