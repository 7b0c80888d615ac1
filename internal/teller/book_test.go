// SPDX-License-Identifier: Apache-2.0

package teller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/window"
)

const (
	workspace = "ws_a"
	start     = int64(1_772_452_800_000_000) // 2026-03-02 12:00 UTC
	hour      = int64(3_600_000_000)
	holdFor   = hour / 2
)

var (
	errDown    = errors.New("down")
	errUnknown = errors.New("connection lost")
)

func unknown(err error) bool { return errors.Is(err, errUnknown) }

// book keeps a ledger in maps. script, if any, is asked before each batch: fail
// is the answer, commit whether the batch happens all the same.
type book struct {
	mu       sync.Mutex
	at       int64
	script   func(ops []*ledger.Op) (fail error, commit bool)
	sizes    []int
	counters map[ledger.Counter]*ledger.State
	open     map[ledger.ID]*ledger.Reservation
	ended    map[ledger.ID]ledger.Ending
	events   []ledger.Event
	versions map[string]int64
}

func newBook() *book {
	return &book{
		at: start, counters: map[ledger.Counter]*ledger.State{}, open: map[ledger.ID]*ledger.Reservation{},
		ended: map[ledger.ID]ledger.Ending{}, versions: map[string]int64{},
	}
}

func (b *book) Apply(_ context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sizes = append(b.sizes, len(ops))
	var fail error
	if b.script != nil {
		var commit bool
		if fail, commit = b.script(ops); fail != nil && !commit {
			return nil, fail
		}
	}
	p := &ledger.Page{
		Generations: b.versions, Counters: map[ledger.Counter]*ledger.State{},
		Open: map[ledger.ID]*ledger.Reservation{}, Ended: map[ledger.ID]ledger.Ending{},
	}
	for _, op := range ops {
		op.Needs(func(c ledger.Counter, _ *ledger.Check) {
			if s := b.counters[c]; s != nil && p.Counters[c] == nil {
				p.Counters[c] = s.Clone()
			}
		}, func(id ledger.ID) {
			if r := b.open[id]; r != nil {
				p.Open[id] = r
			} else if e, ok := b.ended[id]; ok {
				p.Ended[id] = e
			}
		})
	}
	results, changes := ledger.Batch(p, ops, b.at)
	for _, r := range changes.Opened {
		if _, ended := b.ended[r.ID]; b.open[r.ID] != nil || ended {
			return nil, fmt.Errorf("%s exists", r.ID)
		}
	}
	b.keep(p, changes)
	return results, fail
}

func (b *book) keep(p *ledger.Page, changes *ledger.Changes) {
	for _, c := range changes.Counters {
		b.counters[c] = p.Counters[c]
	}
	for _, r := range append(changes.Opened, changes.Replaced...) {
		b.open[r.ID] = r
	}
	for _, r := range changes.Closed {
		delete(b.open, r.ID)
	}
	for _, e := range changes.Events {
		b.ended[e.ID] = ledger.Ending{Kind: e.Kind}
	}
	b.events = append(b.events, changes.Events...)
}

// running counts open reservations; tombstones are none.
func (b *book) running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, r := range b.open {
		if !r.Tombstone {
			n++
		}
	}
	return n
}

// rows counts all of them, tombstones too.
func (b *book) rows() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

func (b *book) set(script func([]*ledger.Op) (error, bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.script = script
}

func (b *book) batches() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]int(nil), b.sizes...)
}

// always fails every batch.
func always(err error) func([]*ledger.Op) (error, bool) {
	return func([]*ledger.Op) (error, bool) { return err, false }
}

func id(n int) ledger.ID {
	return ledger.NewID(start, [10]byte{7: byte(n >> 16), 8: byte(n >> 8), 9: byte(n)})
}

func slots(amount int64) ledger.Check {
	return ledger.Check{
		Counter: ledger.Counter{Workspace: workspace, Limit: "slots"}, Kind: ledger.KindGauge, Mode: ledger.Take,
		Wants: ledger.Slots, Amount: amount, Code: "workspace_concurrency_exceeded",
	}
}

func hourly(amount int64) ledger.Check {
	c := ledger.Check{
		Counter: ledger.Counter{Workspace: workspace, Limit: "hourly"}, Kind: ledger.KindFixed, Mode: ledger.Reserve,
		Wants: ledger.Spend, Charges: ledger.Spend, Amount: amount, Window: window.Spec{Length: hour}, Code: "budget_exceeded",
	}
	c.Counter.Window, _ = c.Window.Bounds(start)
	return c
}

func admit(n int, checks ...ledger.Check) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Admit, ID: id(n), Workspace: workspace, HoldMicros: holdFor, Checks: checks,
		Candidates: []ledger.Candidate{{Model: "m", Wants: ledger.Amounts{Spend: 10, Requests: 1, Slots: 1}}},
	}
}

// of gives an admission another workspace and key.
func of(op *ledger.Op, workspace, key string) *ledger.Op {
	op.Workspace, op.Subjects.Key = workspace, key
	return op
}

func settle(r *ledger.Reservation) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Settle, Workspace: r.Workspace, Reservation: r,
		Settlement: &ledger.Settlement{Attempts: []ledger.Attempt{{Model: "m", Spend: 7}}},
	}
}
