// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// outbox is the role of a book whose notices can be listed, the first first.
type outbox interface {
	Outbox(ctx context.Context) ([]ledger.Notice, error)
}

// amend is one entry over the shop's budget, its days and its buckets.
func (s *shop) amend(d *desk, kind ledger.EventKind, amount int64) *ledger.Op {
	op := &ledger.Op{
		Verb: ledger.Amend, ID: d.newID(), Workspace: s.workspace, Checks: []ledger.Check{s.budgetCheck("budget", ledger.Spend, s.budget)},
		Entry: &ledger.Entry{Kind: kind, Amounts: ledger.Amounts{Spend: amount}, Reason: "asked for", Actor: "ada"},
	}
	if kind == ledger.EventReset {
		for _, c := range s.checks() {
			if c.Kind == ledger.KindDays || c.Kind == ledger.KindBucket {
				op.Checks = append(op.Checks, c)
			}
		}
	}
	// A seed's window is the one that its caller has counted: nobody names it anew.
	budget := &op.Checks[0]
	budget.Counter.Window, _ = budget.Window.Bounds(d.store.Now())
	return op
}

// amendTwice: an entry is booked once by its id, whoever sends it how often and
// whatever became of the first answer (BUD-9, ENGINE 6).
func amendTwice(t *testing.T, d *desk) {
	for _, c := range []struct {
		kind            ledger.EventKind
		settled, raised int64
	}{
		{ledger.EventRaise, 3 * dollar, 2 * dollar},
		{ledger.EventReset, 0, 0},
		{ledger.EventSeed, 5 * dollar, 0},
	} {
		s := newShop("acme-" + c.kind.String())
		d.do(t, s.settle(s.open(t, d, 3*dollar), 3*dollar))
		op := s.amend(d, c.kind, 2*dollar)
		var done atomic.Int64
		together(callers, func(int) {
			switch v := d.do(t, op).Verdict; v {
			case ledger.Done:
				done.Add(1)
			case ledger.Already:
			default:
				t.Errorf("%s: verdict %d", c.kind, v)
			}
		})
		if n := done.Load(); n > 1 || n == 0 && !d.faulty {
			t.Errorf("%s: done %d times", c.kind, n)
		}
		for counter, state := range d.balanced(t).Counters {
			if counter.Workspace == s.workspace && counter.Limit == "budget" && (state.Settled != c.settled || state.Raised != c.raised) {
				t.Errorf("%s: settled %d, raised %d", c.kind, state.Settled, state.Raised)
			}
		}
		entries, err := d.store.FundEntries(t.Context(), s.workspace, ledger.ID{}, 10)
		if err != nil || len(entries) != 0 {
			t.Errorf("%s: %d entries of the funds, %v", c.kind, len(entries), err)
		}
	}
}

// resetWhileOthersWrite: requests run, settle and are swept around resets and
// raises; the books balance, nothing is below zero, and reports keep what was
// spent (BUD-9, RES-7).
func resetWhileOthersWrite(t *testing.T, d *desk) {
	s := newShop("acme")
	s.budget = 1000 * dollar
	var spent atomic.Int64
	together(callers, func(i int) {
		for range rounds {
			switch i {
			case 0:
				d.do(t, s.amend(d, ledger.EventReset, 0))
				continue
			case 1:
				d.do(t, s.amend(d, ledger.EventRaise, dollar))
				continue
			}
			r := d.do(t, s.admit(d, "m1", 2*dollar)).Reservation
			if r == nil {
				t.Error("not admitted")
				continue
			}
			if i%2 == 0 {
				d.do(t, s.end(ledger.Sweep, r))
			}
			d.do(t, s.settle(r, dollar))
			spent.Add(dollar)
		}
	})
	books := d.balanced(t)
	for c, state := range books.Counters {
		if state.Settled < 0 || state.Held != 0 || state.Deficit < 0 {
			t.Errorf("%+v: settled %d, held %d, deficit %d", c, state.Settled, state.Held, state.Deficit)
		}
		if c.Limit == "budget" && state.Raised != rounds*dollar {
			t.Errorf("raised %d", state.Raised)
		}
	}
	var quarters int64
	for _, q := range books.Quarters {
		quarters += q.Spend
	}
	rows, err := d.store.Usage(t.Context(), store.UsageQuery{Workspace: s.workspace, To: math.MaxInt64})
	if err != nil || len(rows) != 1 {
		t.Fatalf("usage: %d rows, %v", len(rows), err)
	}
	if quarters != spent.Load() || rows[0].Spend != spent.Load() {
		t.Errorf("quarters have %d, reports %d, %d was spent", quarters, rows[0].Spend, spent.Load())
	}
}

// noticesOnce: each level is announced once, whoever settles, by the mark that is
// stored with the charge (BUD-5).
func noticesOnce(t *testing.T, d *desk) {
	s := newShop("acme")
	s.budget = 1000 * dollar
	check := s.budgetCheck("warns", ledger.Spend, 100*dollar)
	check.Mode, check.WarnPercent, check.Name, check.Scope = ledger.Track, []uint8{25, 50, 75, 100}, "month", "org"
	together(callers, func(int) {
		for range rounds {
			op := s.admit(d, "m1", dollar)
			op.Checks = append(op.Checks, check)
			op.Name(d.store.Now())
			d.do(t, s.settle(d.do(t, op).Reservation, dollar))
		}
	})
	for c, state := range d.balanced(t).Counters {
		if c.Limit == "warns" && state.Warned != ledger.WarnedSoft|100 {
			t.Errorf("warned %d at %d", state.Warned, state.Settled)
		}
	}
	book, ok := d.store.(outbox)
	if !ok {
		return // its notices are read elsewhere
	}
	list, err := book.Outbox(t.Context())
	if err != nil {
		t.Fatalf("outbox: %v", err)
	}
	told := make(map[string]int)
	for i := range list {
		n := &list[i]
		told[fmt.Sprintf("%s %s %s %d", n.Kind, n.Name, n.Level, n.Percent)]++
		if n.Used*100 < n.Amount*int64(n.Percent) || n.Workspace != s.workspace || n.Counter.Limit != "warns" {
			t.Errorf("notice %+v", n)
		}
	}
	for _, level := range []string{"threshold 25", "threshold 50", "threshold 75", "threshold 100", "soft 100"} {
		if n := told["models.budget.warning month "+level]; n != 1 {
			t.Errorf("%s was announced %d times", level, n)
		}
	}
	if len(list) != 5 {
		t.Errorf("%d notices: %v", len(list), told)
	}
}

// rosterBounded: no order of first requests makes more members than there may be
// (KEY-7).
func rosterBounded(t *testing.T, d *desk) {
	const most = 5
	s := newShop("acme")
	var admitted [callers]atomic.Int64
	together(callers, func(i int) {
		for n := range rounds {
			user := (i + n) % callers
			op := s.admit(d, "m1", dollar)
			op.Checks = append(op.Checks, ledger.Check{
				Counter: ledger.Counter{Workspace: s.workspace, Limit: "users"},
				Marker:  ledger.Counter{Workspace: s.workspace, Limit: "user", Subject: fmt.Sprint(user)},
				Kind:    ledger.KindRoster, Mode: ledger.Take, Wants: ledger.Requests, Amount: most, Code: fault.UserLimitReached,
			})
			if result := d.do(t, op); result.Verdict == ledger.Admitted {
				admitted[user].Add(1)
				d.do(t, s.end(ledger.Undo, result.Reservation))
			}
		}
	})
	members := 0
	for i := range admitted {
		if admitted[i].Load() > 0 {
			members++
		}
	}
	count := d.balanced(t).Counters[ledger.Counter{Workspace: s.workspace, Limit: "users"}].Settled
	if count != most || members > most || members < most && !d.faulty {
		t.Errorf("%d are counted, %d were admitted, %d may be", count, members, most)
	}
}
