// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// desk is where a test hands in operations.
type desk struct {
	store   Store
	clock   *clock.Manual
	tellers []*Gatherer
	faulty  bool
	turn    atomic.Int64
	serial  atomic.Uint64
}

func newDesk(t *testing.T, s Store, c *clock.Manual, tellers int, faulty bool) *desk {
	t.Helper()
	d := &desk{store: s, clock: c, faulty: faulty}
	d.add(t, s, tellers)
	return d
}

// add puts tellers in front of one more store.
func (d *desk) add(t *testing.T, s Store, tellers int) {
	t.Helper()
	for range tellers {
		var book store.Book = s
		if d.faulty {
			book = NewFaulty(s, uint64(len(d.tellers))+1)
		}
		g := NewGatherer(book)
		t.Cleanup(g.Close)
		d.tellers = append(d.tellers, g)
	}
}

// do hands an operation to the next teller and waits for its result.
func (d *desk) do(t *testing.T, op *ledger.Op) ledger.Result {
	t.Helper()
	result, err := d.try(op)
	if err != nil {
		t.Errorf("verb %d: %v", op.Verb, err)
	}
	return result
}

func (d *desk) try(op *ledger.Op) (ledger.Result, error) {
	return d.tellers[int(d.turn.Add(1))%len(d.tellers)].Do(op)
}

func (d *desk) newID() ledger.ID {
	var random [10]byte
	binary.BigEndian.PutUint64(random[:8], d.serial.Add(1))
	return ledger.NewID(d.clock.Now(), random)
}

// Gatherer is the least teller: while one batch commits the next one gathers.
// It sends again what has an unknown outcome, and runs a failed batch singly.
type Gatherer struct {
	book    store.Book
	queue   chan *request
	stopped sync.WaitGroup
}

type request struct {
	op      *ledger.Op
	carried int
	answer  chan answer
}

type answer struct {
	result ledger.Result
	err    error
}

const (
	gathered   = 256
	maxTries   = 1000
	maxCarries = 5
)

// NewGatherer starts one; Close ends it.
func NewGatherer(book store.Book) *Gatherer {
	g := &Gatherer{book: book, queue: make(chan *request, gathered)}
	g.stopped.Add(1)
	go g.run()
	return g
}

// Close ends it, when nobody waits any more.
func (g *Gatherer) Close() {
	close(g.queue)
	g.stopped.Wait()
}

// Do submits an operation and waits for its result.
func (g *Gatherer) Do(op *ledger.Op) (ledger.Result, error) {
	r := &request{op: op, answer: make(chan answer, 1)}
	g.queue <- r
	a := <-r.answer
	return a.result, a.err
}

func (g *Gatherer) run() {
	defer g.stopped.Done()
	for first := range g.queue {
		batch := []*request{first}
		runtime.Gosched() // whoever was just answered submits its next one
		for more := true; more && len(batch) < gathered; {
			select {
			case r, ok := <-g.queue:
				if ok {
					batch = append(batch, r)
				}
				more = ok
			default:
				more = false
			}
		}
		g.apply(batch)
	}
}

// reply answers, or submits anew what is carried.
func (g *Gatherer) reply(r *request, op *ledger.Op, result ledger.Result) {
	if result.Verdict != ledger.Carry || r.carried == maxCarries {
		r.answer <- answer{result: result}
		return
	}
	r.op = op.Carried(&result)
	r.carried++
	g.apply([]*request{r})
}

func (g *Gatherer) apply(batch []*request) {
	ops := make([]*ledger.Op, len(batch))
	for i, r := range batch {
		ops[i] = r.op
	}
	for range maxTries {
		results, err := g.book.Apply(context.Background(), ops)
		switch {
		case err == nil:
			for i, r := range batch {
				g.reply(r, ops[i], results[i])
			}
			return
		case errors.Is(err, store.ErrUnknownOutcome):
			for i := range ops {
				again := *ops[i]
				again.Again = true
				ops[i] = &again
			}
		case errors.Is(err, store.ErrUnavailable):
		case len(batch) == 1:
			batch[0].answer <- answer{err: err}
			return
		default:
			for i, r := range batch {
				r.op = ops[i]
				g.apply([]*request{r})
			}
			return
		}
	}
	for _, r := range batch {
		r.answer <- answer{err: store.ErrUnavailable}
	}
}
