// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/memory"
)

// mix draws operations and applies the same batches to two books.
type mix struct {
	desk  *desk
	other *memory.Book
	shop  *shop
	known []*ledger.Reservation
	draw  func(what string, below int64) int64
}

// randomMixes: a driver and the plain book in memory give the same results for
// the same batches, and both balance after each (RES-7).
func randomMixes(t *testing.T, driver Driver) {
	c := clock.NewManual(Noon)
	d := newDesk(t, driver.open(t, Options{Clock: c}), c, 1, false)
	other := memory.New(memory.Options{Clock: c})
	check := 0
	rapid.Check(t, func(t *rapid.T) {
		check++
		s := newShop(fmt.Sprintf("w%d", check))
		s.budget, s.slots, s.rpm, s.tpm = 20*dollar, 6, 20, 2000
		m := &mix{desk: d, other: other, shop: s, draw: func(what string, below int64) int64 { return rapid.Int64Range(0, below-1).Draw(t, what) }}
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			m.batch(t)
		}
	})
	if err := sameBooks(t, d.store, other); err != nil {
		t.Error(err)
	}
}

func sameBooks(t *testing.T, s Store, other *memory.Book) error {
	t.Helper()
	have, err := Take(t.Context(), s)
	if err != nil {
		return err
	}
	want, err := Take(t.Context(), other)
	if err != nil {
		return err
	}
	return have.same(want)
}

func (b *Books) same(want *Books) error {
	if err := firstError(b.Balance(), want.Balance()); err != nil {
		return err
	}
	for c, state := range want.Counters {
		if !reflect.DeepEqual(b.Counters[c], state) {
			return fmt.Errorf("%+v is %+v, in memory %+v", c, b.Counters[c], state)
		}
	}
	if len(b.Counters) != len(want.Counters) {
		return fmt.Errorf("%d counters, in memory %d", len(b.Counters), len(want.Counters))
	}
	// Which events are rolled up is each book's own affair.
	return firstError(
		sameList("reservations", b.Reservations, want.Reservations), sameList("events", b.Events, want.Events),
		sameList("quarters", b.Quarters, want.Quarters), sameList("calls", b.Calls, want.Calls),
		sameList("closings", b.Closings, want.Closings), sameList("dropped", []int64{b.Dropped}, []int64{want.Dropped}),
	)
}

func sameList[T any](what string, have, want []T) error {
	for i := range min(len(have), len(want)) {
		if !reflect.DeepEqual(have[i], want[i]) {
			return fmt.Errorf("%s: number %d is\n%+v, in memory\n%+v", what, i, have[i], want[i])
		}
	}
	if len(have) != len(want) {
		return fmt.Errorf("%d %s, in memory %d", len(have), what, len(want))
	}
	return nil
}

func (m *mix) batch(t *rapid.T) {
	m.by(t)
	m.apply(t, m.ops())
}

// by lets rapid draw.
func (m *mix) by(t *rapid.T) {
	m.draw = func(what string, below int64) int64 { return rapid.Int64Range(0, below-1).Draw(t, what) }
}

// apply hands the same batch to both books.
func (m *mix) apply(t *rapid.T, ops []*ledger.Op) {
	want, errWant := m.other.Apply(t.Context(), ops)
	have, err := m.desk.store.Apply(t.Context(), ops)
	if (err == nil) != (errWant == nil) || !reflect.DeepEqual(have, want) {
		t.Fatalf("results are\n%+v, %v; in memory\n%+v, %v", have, err, want, errWant)
	}
	for i := range have {
		if have[i].Verdict == ledger.Admitted {
			m.known = append(m.known, have[i].Reservation)
		}
	}
}

// ops are a batch's, at an instant after the last one's.
func (m *mix) ops() []*ledger.Op {
	ops := make([]*ledger.Op, 1+m.draw("size", 6))
	for i := range ops {
		ops[i] = m.op()
	}
	m.desk.clock.Advance(time.Duration(m.draw("passed", 2_000_001)) * 100 * time.Microsecond)
	return ops
}

func (m *mix) op() *ledger.Op {
	model := []string{"m1", "m2"}[m.draw("model", 2)]
	spend := m.draw("spend", 8*dollar+1)
	verb := ledger.Admit + ledger.Verb(m.draw("verb", int64(ledger.Amend-ledger.Admit)+1))
	if len(m.known) == 0 && verb != ledger.Fund && verb != ledger.Read && verb != ledger.Amend {
		verb = ledger.Admit
	}
	switch verb {
	case ledger.Admit:
		op := m.shop.admit(m.desk, model, spend)
		op.Again = m.draw("again", 2) == 1
		return op
	case ledger.Fund:
		entry := &ledger.Entry{Kind: ledger.EventAdjustment, Amounts: ledger.Amounts{Spend: spend - 4*dollar}}
		return &ledger.Op{Verb: verb, ID: m.desk.newID(), Workspace: m.shop.workspace, Checks: m.shop.checks()[:1], Entry: entry}
	case ledger.Amend:
		kind := []ledger.EventKind{ledger.EventRaise, ledger.EventReset, ledger.EventSeed}[m.draw("kind", 3)]
		return m.shop.amend(m.desk, kind, spend+1)
	case ledger.Read:
		return &ledger.Op{Verb: verb, Workspace: m.shop.workspace, Checks: m.shop.checks()}
	default:
	}
	r := m.known[m.draw("reservation", int64(len(m.known)))]
	switch verb {
	case ledger.Move:
		op := m.shop.admit(m.desk, model, spend)
		op.Verb, op.Reservation = verb, r
		op.Name(m.desk.store.Now())
		return op
	case ledger.Settle:
		return m.shop.settle(r, spend)
	case ledger.Adjust:
		op := m.shop.end(verb, r)
		op.Entry = &ledger.Entry{Kind: ledger.EventCorrection, Amounts: ledger.Amounts{Spend: spend - 4*dollar}}
		op.Entry.Number = int32(m.draw("number", 3))
		return op
	default:
		return m.shop.end(verb, r)
	}
}
