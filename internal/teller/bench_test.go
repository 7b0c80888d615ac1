// SPDX-License-Identifier: Apache-2.0

package teller_test

import (
	"context"
	"testing"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

// bench drives a machine over a book, one batch at a time.
type bench struct {
	t       fataler
	m       *teller.Machine
	b       *book
	now     int64
	last    teller.Ticket
	answers map[teller.Ticket]teller.Completion
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func newBench(t fataler, limits teller.Limits) *bench {
	return &bench{
		t: t, m: teller.NewMachine(limits, unknown), b: newBook(), now: start,
		answers: map[teller.Ticket]teller.Completion{},
	}
}

func (b *bench) enqueue(op *ledger.Op) teller.Ticket {
	b.t.Helper()
	b.last++
	if err := b.m.Enqueue(op, b.last, b.now); err != nil {
		b.t.Fatalf("enqueue: %v", err)
	}
	return b.last
}

// batch runs one batch if there is one to run now, and returns its operations.
func (b *bench) batch() []*ledger.Op {
	batch, _ := b.m.Next(b.now)
	if batch == nil {
		return nil
	}
	results, err := b.b.Apply(context.Background(), batch.Ops)
	b.keep(b.m.Done(batch, results, err, b.now))
	return batch.Ops
}

func (b *bench) keep(completions []teller.Completion) {
	for _, c := range completions {
		if _, twice := b.answers[c.Ticket]; twice && c.Ticket != 0 {
			b.t.Fatalf("ticket %d answered twice", c.Ticket)
		}
		b.answers[c.Ticket] = c
	}
}

// drain runs until nothing is left, moving the clock to what is waited for.
func (b *bench) drain() {
	b.t.Helper()
	for range 10_000 {
		batch, until := b.m.Next(b.now)
		switch {
		case batch != nil:
			results, err := b.b.Apply(context.Background(), batch.Ops)
			b.keep(b.m.Done(batch, results, err, b.now))
		case until == teller.Never:
			if !b.m.Idle() {
				b.t.Fatalf("nothing to wait for, and not idle")
			}
			return
		case until <= b.now:
			b.t.Fatalf("told to wait until %d at %d", until, b.now)
		default:
			b.now = until
		}
	}
	b.t.Fatalf("it never ends")
}

func verdict(t *testing.T, b *bench, ticket teller.Ticket, want ledger.Verdict) *ledger.Reservation {
	t.Helper()
	c, ok := b.answers[ticket]
	if !ok || c.Err != nil || c.Result.Verdict != want {
		t.Fatalf("ticket %d: answered %t, verdict %d, error %v", ticket, ok, c.Result.Verdict, c.Err)
	}
	return c.Result.Reservation
}

func verbs(ops []*ledger.Op) string {
	var out []byte
	for _, op := range ops {
		out = append(out, " AMSVUNWFJR"[op.Verb])
	}
	return string(out)
}
