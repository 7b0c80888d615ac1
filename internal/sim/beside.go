// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
)

// Peer is a real book of one process that is driven beside the model: it must
// answer each batch as the model does, and hold the same rows. clock is what its
// clock says, in Unix microseconds.
type Peer interface {
	Apply(clock int64, ops []*ledger.Op) ([]ledger.Result, error)
	// Configure changes something in a workspace and returns its new generation.
	Configure(clock int64, workspace string) (int64, error)
	Expired(clock int64) ([]*ledger.Reservation, error)
	// Crash loses what is not on the disk, and opens the book again. It returns the
	// instant that the book goes on from: the last one that its rows know.
	Crash(clock int64) (last int64, err error)
	Contents() (*Contents, error)
	Close() error
}

// Contents are all rows of a book. Calls are those of ended requests.
type Contents struct {
	Counters map[ledger.Counter]*ledger.State
	Open     []*ledger.Reservation
	Events   []ledger.Event
	Calls    []*ledger.Call
	Quarters []ledger.QuarterSum
}

// RunBeside is Run with one process and one book beside the model, opened anew
// for each play. Its crashes are the process's: the book is opened again, and what
// was open is swept. A shared book is one that other processes may use: its rows
// remember what any of them has seen of the time.
func RunBeside(seed uint64, steps int, shared bool, open func() (Peer, error)) (Tally, error) {
	s := draw(seed, steps)
	s.replicas, s.shared, s.open = 1, shared, open
	tally, f := play(s, flaw{})
	if f == nil {
		return tally, nil
	}
	return tally, shrink(s, f, flaw{})
}

// differs is the rule of all that a peer does otherwise.
const differs = "the real book does as the model"

// join opens the run's peer, if it has one.
func (w *world) join() {
	if w.script.open == nil {
		return
	}
	peer, err := w.script.open()
	if err != nil {
		w.fail(differs, "open: %v", err)
		return
	}
	w.peer = peer
	for n, c := range w.book.configurations {
		w.book.configure(n, c.changed(&Event{Change: changeKinds}, w.generation(c)))
	}
}

// part ends it.
func (w *world) part() {
	if w.peer == nil {
		return
	}
	if w.failed == nil { // all of it is on the disk
		w.recover()
		w.alike()
	}
	if err := w.peer.Close(); err != nil {
		w.fail(differs, "close: %v", err)
	}
}

func (w *world) peerClock() int64 { return w.now + w.book.offset }

// generation is that of a change to come: the peer's, if there is one.
func (w *world) generation(c *configuration) int64 {
	if w.peer == nil {
		return c.snapshot.Generation + 1
	}
	generation, err := w.peer.Configure(w.peerClock(), c.workspace().ID)
	if err != nil {
		w.fail(differs, "configure: %v", err)
	}
	return generation
}

// follow has the peer decide a batch that the model has decided.
func (w *world) follow(ops []*ledger.Op, d *decision, failed error) {
	if w.peer == nil || errors.Is(failed, errDown) {
		return
	}
	results, err := w.peer.Apply(w.peerClock(), ops)
	if failed != nil || err != nil {
		if (failed == nil) != (err == nil) {
			w.fail(differs, "the model says %v, the book %v", failed, err)
		}
		return
	}
	for i := range results {
		if why := unlike(&d.results[i], &results[i]); why != "" {
			w.fail(differs, "operation %d, verb %d: %s", i, ops[i].Verb, why)
			return
		}
	}
	d.results = results
	if w.tally.Batches%verifyEvery == verifyEvery/2 {
		w.alike()
	}
}

// unlike tells how two results differ.
func unlike(want, have *ledger.Result) string {
	switch {
	case want.Verdict != have.Verdict || want.At != have.At || want.Place != have.Place || want.Candidate != have.Candidate:
		return fmt.Sprintf("verdict %d at %d/%d, want %d at %d/%d", have.Verdict, have.At, have.Place, want.Verdict, want.At, want.Place)
	case !reflect.DeepEqual(want.Refusal, have.Refusal):
		return fmt.Sprintf("refusal %+v, want %+v", have.Refusal, want.Refusal)
	case !slices.Equal(want.Readings, have.Readings):
		return fmt.Sprintf("readings %+v, want %+v", have.Readings, want.Readings)
	case (want.Reservation == nil) != (have.Reservation == nil):
		return fmt.Sprintf("reservation %+v, want %+v", have.Reservation, want.Reservation)
	case want.Reservation != nil && !bytes.Equal(reserved(want.Reservation), reserved(have.Reservation)):
		return fmt.Sprintf("reservation %+v, want %+v", have.Reservation, want.Reservation)
	default:
		return ""
	}
}

func reserved(r *ledger.Reservation) []byte {
	return fmt.Appendf(r.Encode(), " %s %s %d", r.ID, r.Workspace, r.ExpiresAt)
}

// recover crashes the peer. What was open it has swept on its start, in an order
// of its own: the model sweeps in the same one.
func (w *world) recover() {
	if w.peer == nil || w.failed != nil {
		return
	}
	last, err := w.peer.Crash(w.peerClock())
	if err != nil {
		w.fail(differs, "open after a crash: %v", err)
		return
	}
	w.book.last, w.book.lockedUntil = last, 0
	c, err := w.peer.Contents()
	if err != nil {
		w.fail(differs, "read: %v", err)
		return
	}
	if ops := w.book.leftOpen(c.Events); len(ops) > 0 {
		d, err := w.book.apply(w.now, ops)
		if err != nil {
			w.fail(differs, "sweep at a start: %v", err)
			return
		}
		w.note("start: %s", outline(d))
		w.audited(d)
	}
	w.compare(c)
}

// leftOpen are the sweeps of all that is open, each at the place that its event
// has elsewhere. Tombstones have none: they take what is left.
func (b *book) leftOpen(events []ledger.Event) []*ledger.Op {
	ops := make([]*ledger.Op, len(b.open))
	placed := map[ledger.ID]bool{}
	for i := range events {
		e := &events[i]
		if r := b.open[e.ID]; r != nil && e.Kind == ledger.EventSwept && int(e.Place) < len(ops) {
			ops[e.Place], placed[e.ID] = &ledger.Op{Verb: ledger.Sweep, Workspace: r.Workspace, Reservation: r}, true
		}
	}
	for _, id := range sortedIDs(b.open) {
		if placed[id] {
			continue
		}
		r := b.open[id]
		if at := slices.Index(ops, nil); at >= 0 {
			ops[at] = &ledger.Op{Verb: ledger.Sweep, Workspace: r.Workspace, Reservation: r}
		}
	}
	return ops
}

// alsoExpired: both books find the same holds at their end.
func (w *world) alsoExpired(expired []*ledger.Reservation) {
	if w.peer == nil || w.failed != nil {
		return
	}
	list, err := w.peer.Expired(w.peerClock())
	ended := map[ledger.ID]bool{}
	for _, r := range list {
		ended[r.ID] = true
	}
	for _, r := range expired {
		if !ended[r.ID] {
			w.fail(differs, "%s has not expired", r.ID)
		}
	}
	if err != nil || len(list) != len(expired) {
		w.fail(differs, "%d have expired, want %d: %v", len(list), len(expired), err)
	}
}

// alike compares the rows of both books.
func (w *world) alike() {
	if w.peer == nil || w.failed != nil {
		return
	}
	c, err := w.peer.Contents()
	if err != nil {
		w.fail(differs, "read: %v", err)
		return
	}
	w.compare(c)
}

func (w *world) compare(have *Contents) {
	want, got := w.book.contents().lines(), have.lines()
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			w.fail(differs, "it lacks %s", want[i])
		case i >= len(want):
			w.fail(differs, "it has %s", got[i])
		case want[i] != got[i]:
			w.fail(differs, "it has %s, the model %s", got[i], want[i])
		default:
			continue
		}
		return
	}
}

func (b *book) contents() *Contents {
	c := &Contents{Counters: b.counters, Events: b.events}
	for _, r := range b.open {
		c.Open = append(c.Open, r)
	}
	for _, call := range b.calls {
		c.Calls = append(c.Calls, call)
	}
	for _, q := range b.quarters {
		c.Quarters = append(c.Quarters, q)
	}
	return c
}

// lines are the contents as words, in order. A row that means nothing is none.
func (c *Contents) lines() []string {
	var list []string
	for at, s := range c.Counters {
		if s.IsZero() {
			continue
		}
		state := s.Encode()
		if s.Kind == ledger.KindDays {
			state = nil // a zone that changed is taken over by some charge or other; readings show the days
		}
		list = append(list, fmt.Sprintf("counter %+v: %d %d %d %d %d %x", at, s.Kind, s.Settled, s.Held, s.Warned, s.At, state))
	}
	for _, r := range c.Open {
		list = append(list, fmt.Sprintf("reservation %s", reserved(r)))
	}
	for i := range c.Events {
		list = append(list, fmt.Sprintf("event %+v", c.Events[i]))
	}
	for _, r := range c.Calls {
		list = append(list, fmt.Sprintf("call %s %s %s %d %d %x", r.ID, r.Key, r.Outcome, r.At, r.EndedAt, r.Encode()))
	}
	for _, q := range c.Quarters {
		list = append(list, fmt.Sprintf("quarter %+v", q))
	}
	slices.Sort(list)
	return list
}
