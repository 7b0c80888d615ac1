// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
)

// lossyTries bounds how often one batch is sent.
const lossyTries = 200

// batchesAShop is after how many batches another workspace takes over.
const batchesAShop = 25

// ThroughLosses holds a store whose connections get lost against the book in
// memory: batches of random operations, each sent until it is answered, as
// operations that are sent again are marked. Every answer, and in the end the
// books, are those of the book that was asked once (ENGINE 6). end ends the losses
// before the books are read. It tells how many operations there were and how often
// a batch was sent again.
func ThroughLosses(t *testing.T, s Store, c *clock.Manual, seed uint64, batches int, end func()) (ops, again int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	l := &lossy{mix: mix{
		desk: newDesk(t, s, c, 1, false), other: memory.New(memory.Options{Clock: c}),
		draw: func(_ string, below int64) int64 { return random.Int64N(below) },
	}}
	for n := range batches {
		if n%batchesAShop == 0 {
			l.shop, l.known = newShop(fmt.Sprintf("w%d", n)), nil
			l.shop.budget, l.shop.slots, l.shop.rpm, l.shop.tpm = 20*dollar, 6, 20, 2000
		}
		if err := l.batch(t); err != nil {
			t.Fatalf("batch %d: %v", n, err)
		}
	}
	end()
	if err := sameWhole(t, s, l.other); err != nil {
		t.Error(err)
	}
	return l.sent, l.again
}

func sameWhole(t *testing.T, s Store, other *memory.Book) error {
	t.Helper()
	have, err := Take(t.Context(), s)
	if err != nil {
		return err
	}
	want, err := Take(t.Context(), other)
	if err != nil {
		return err
	}
	for _, b := range []*Books{have, want} {
		// Those of operations that were sent again. A record of a refusal is written by
		// itself, and nobody sees to it that it is written exactly once.
		b.Reservations = slices.DeleteFunc(b.Reservations, func(r ledger.Reservation) bool { return r.Tombstone })
		b.Calls = slices.DeleteFunc(b.Calls, func(c store.Call) bool { return c.Outcome == "refused" })
	}
	return have.same(want)
}

// lossy is a mix whose one book loses answers.
type lossy struct {
	mix
	sent, again int
}

func (l *lossy) batch(t *testing.T) error {
	ops := slices.DeleteFunc(l.ops(), func(op *ledger.Op) bool { return op.Verb == ledger.Move }) // a move is not sent again
	// What changed nothing is decided anew when its batch is sent again, after all
	// that the batch did: nothing in it turns that into something that it does.
	slices.SortStableFunc(ops, func(x, y *ledger.Op) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(number(x), number(y)))
	})
	want, err := l.other.Apply(t.Context(), ops)
	if err != nil {
		return err
	}
	have, repeated, err := l.send(t, ops)
	if err != nil {
		return err
	}
	for i := range have {
		if !same(&have[i], &want[i], repeated) {
			return fmt.Errorf("operation %d (verb %d), sent again %t, is answered\n%+v, in memory\n%+v", i, ops[i].Verb, repeated, have[i], want[i])
		}
		if want[i].Verdict == ledger.Admitted {
			l.known = append(l.known, want[i].Reservation)
		}
	}
	return nil
}

// rank: a correction wants an end, an admission room.
func rank(op *ledger.Op) int {
	switch op.Verb {
	case ledger.Admit:
		return 2
	case ledger.Adjust:
		return 1
	default:
		return 0
	}
}

// number: a correction wants those before it.
func number(op *ledger.Op) int32 {
	if op.Verb != ledger.Adjust {
		return 0
	}
	return op.Entry.Number
}

// send sends a batch until it is answered; repeated: it may have happened before.
func (l *lossy) send(t *testing.T, ops []*ledger.Op) (results []ledger.Result, repeated bool, err error) {
	l.sent += len(ops)
	for range lossyTries {
		results, err = l.desk.store.Apply(t.Context(), ops)
		switch {
		case err == nil:
			return results, repeated, nil
		case errors.Is(err, store.ErrUnknownOutcome):
			repeated = true
			for i := range ops {
				again := *ops[i]
				again.Again = true
				ops[i] = &again
			}
		case !errors.Is(err, store.ErrUnavailable):
			return nil, repeated, err
		}
		l.again++
	}
	return nil, repeated, err
}

// same compares an answer with the model's. What had happened when it was sent
// again is answered as done before; so is what was refused when it was sent again
// and then once more; and what an operation after it in the batch has ended is gone.
func same(have, want *ledger.Result, repeated bool) bool {
	switch {
	case !repeated:
	case have.Verdict == ledger.Already && (want.Verdict == ledger.Done || want.Verdict == ledger.Refused),
		have.Verdict == ledger.Missing && want.Verdict == ledger.Done:
		return true
	}
	if repeated {
		return have.Verdict == want.Verdict && have.At == want.At
	}
	return reflect.DeepEqual(have, want)
}
