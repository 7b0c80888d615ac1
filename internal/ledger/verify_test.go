// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/ledger"
)

// spent is a book with one settled and one open request and a top-up.
func spent(t *testing.T) *book {
	t.Helper()
	b := newBook()
	expect(t, b.one(start, fund(100, dollar, funds(ledger.Reserve, 0))), ledger.Done)
	r := expect(t, b.one(start, admit(1, wants(2*cent, 10, 10), everything()...)), ledger.Admitted).Reservation
	expect(t, b.one(start, settle(r, used(cent, 12))), ledger.Done)
	expect(t, b.one(start, admit(2, wants(2*cent, 10, 10), everything()...)), ledger.Admitted)
	expectBalanced(t, b, start)
	return b
}

func TestVerifyNamesEveryFigureThatIsOff(t *testing.T) {
	// RES-7.
	for _, c := range []struct {
		name   string
		damage func(*book)
		want   []ledger.Difference
	}{
		{
			"settled", func(b *book) { b.counters[budget("hard", 1, 0).Counter].Settled++ },
			[]ledger.Difference{{Counter: budget("hard", 1, 0).Counter, Kind: ledger.KindFixed, Figure: "settled", Have: cent + 1, Want: cent}},
		},
		{
			"credits", func(b *book) { b.counters[funds(1, 0).Counter].Credits -= cent },
			[]ledger.Difference{{Counter: funds(1, 0).Counter, Kind: ledger.KindFunds, Figure: "credits", Have: dollar - cent, Want: dollar}},
		},
		{
			"held", func(b *book) { b.counters[budget("hard", 1, 0).Counter].Held = 0 },
			[]ledger.Difference{{Counter: budget("hard", 1, 0).Counter, Kind: ledger.KindFixed, Figure: "held", Have: 0, Want: 2 * cent}},
		},
		{
			"a gauge", func(b *book) { b.counters[counter("slots")].Held = 5 },
			[]ledger.Difference{{Counter: counter("slots"), Kind: ledger.KindGauge, Figure: "held", Have: 5, Want: 1}},
		},
		{
			"a day", func(b *book) {
				b.counters[counter("days")].Days.Sums[0] = 0
				b.counters[counter("days")].Days.Sums[1] = cent
			},
			[]ledger.Difference{
				{Counter: counter("days"), Kind: ledger.KindDays, Figure: "2026-03-01", Have: cent, Want: 0},
				{Counter: counter("days"), Kind: ledger.KindDays, Figure: "2026-03-02", Have: 0, Want: cent},
			},
		},
		{
			"a lost row", func(b *book) { delete(b.counters, counter("days")) },
			[]ledger.Difference{{Counter: counter("days"), Kind: ledger.KindDays, Figure: "settled", Have: 0, Want: cent}},
		},
		{"a lost event", func(b *book) { b.events = b.events[:1] }, []ledger.Difference{
			{Counter: counter("days"), Kind: ledger.KindDays, Figure: "2026-03-02", Have: cent},
			{Counter: counter("days"), Kind: ledger.KindDays, Figure: "settled", Have: cent},
			{Counter: funds(1, 0).Counter, Kind: ledger.KindFunds, Figure: "settled", Have: cent},
			{Counter: budget("hard", 1, 0).Counter, Kind: ledger.KindFixed, Figure: "settled", Have: cent},
			{Counter: budget("soft", 1, 0).Counter, Kind: ledger.KindFixed, Figure: "settled", Have: cent},
		}},
		{"an ending of what is open", func(b *book) {
			b.events = append(b.events, ledger.Event{ID: id(2), Workspace: workspace, Kind: ledger.EventVoided})
		}, []ledger.Difference{{Counter: ledger.Counter{Workspace: workspace}, Figure: "ending", Have: 1, ID: id(2)}}},
		{"nor is a sum that was cut", func(b *book) {
			s := b.counters[budget("hard", 1, 0).Counter]
			s.Settled, s.Saturated = 1<<63-1, true
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := spent(t)
			c.damage(b)
			if diff := cmp.Diff(c.want, b.verify(start)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestVerifyCountsClosingsForTheEventsTheyStandFor(t *testing.T) {
	// RES-6: a day of events is dropped, its sums stay.
	b := spent(t)
	v := ledger.NewVerifier(start + 100*day)
	for c, s := range b.counters {
		v.Counter(c, s)
	}
	for _, r := range b.open {
		v.Reservation(r)
	}
	v.Reservation(&ledger.Reservation{ID: id(9), Tombstone: true})
	v.Dropped(start + day)
	for _, e := range b.events {
		for _, c := range e.Charges {
			v.Closing(c.Counter, c.Kind, c.Credit, c.Amount)
		}
	}
	if d := v.Differences(); len(d) != 0 {
		t.Fatalf("differences %+v", d)
	}
	want := ledger.VerifyCounts{Counters: int64(len(b.counters)), Reservations: 1, Tombstones: 1, Closings: 5}
	if diff := cmp.Diff(want, v.Counts()); diff != "" {
		t.Fatal(diff)
	}
}
