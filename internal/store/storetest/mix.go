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
		m := &mix{desk: d, other: other, shop: s}
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
	b.Counters, want.Counters = nil, nil
	// Which events are rolled up is each book's own affair.
	b.Rollups, b.Unrolled, want.Rollups, want.Unrolled = nil, nil, nil, nil
	if !reflect.DeepEqual(b, want) {
		return fmt.Errorf("books are\n%+v, in memory\n%+v", b, want)
	}
	return nil
}

func (m *mix) batch(t *rapid.T) {
	ops := make([]*ledger.Op, rapid.IntRange(1, 6).Draw(t, "size"))
	for i := range ops {
		ops[i] = m.op(t)
	}
	m.apply(t, ops)
}

// apply hands the same batch to both books.
func (m *mix) apply(t *rapid.T, ops []*ledger.Op) {
	m.desk.clock.Advance(time.Duration(rapid.IntRange(0, 2_000_000).Draw(t, "passed")) * 100 * time.Microsecond)
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

func (m *mix) op(t *rapid.T) *ledger.Op {
	model := rapid.SampledFrom([]string{"m1", "m2"}).Draw(t, "model")
	spend := rapid.Int64Range(0, 8*dollar).Draw(t, "spend")
	verb := ledger.Verb(rapid.IntRange(int(ledger.Admit), int(ledger.Amend)).Draw(t, "verb"))
	if len(m.known) == 0 && verb != ledger.Fund && verb != ledger.Read && verb != ledger.Amend {
		verb = ledger.Admit
	}
	switch verb {
	case ledger.Admit:
		op := m.shop.admit(m.desk, model, spend)
		op.Again = rapid.Bool().Draw(t, "again")
		return op
	case ledger.Fund:
		entry := &ledger.Entry{Kind: ledger.EventAdjustment, Amounts: ledger.Amounts{Spend: spend - 4*dollar}}
		return &ledger.Op{Verb: verb, ID: m.desk.newID(), Workspace: m.shop.workspace, Checks: m.shop.checks()[:1], Entry: entry}
	case ledger.Amend:
		kind := rapid.SampledFrom([]ledger.EventKind{ledger.EventRaise, ledger.EventReset, ledger.EventSeed}).Draw(t, "kind")
		return m.shop.amend(m.desk, kind, spend+1)
	case ledger.Read:
		return &ledger.Op{Verb: verb, Workspace: m.shop.workspace, Checks: m.shop.checks()}
	default:
	}
	r := rapid.SampledFrom(m.known).Draw(t, "reservation")
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
		op.Entry.Number = int32(rapid.IntRange(0, 2).Draw(t, "number"))
		return op
	default:
		return m.shop.end(verb, r)
	}
}
