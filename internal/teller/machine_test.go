// SPDX-License-Identifier: Apache-2.0

package teller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

func TestSettlementsGoFirst(t *testing.T) {
	// RES-11: the slot is free for whoever comes after the settlement.
	b := newBench(t, teller.Limits{})
	first := b.enqueue(admit(1, slots(1)))
	b.batch()
	r := verdict(t, b, first, ledger.Admitted)
	second := b.enqueue(admit(2, slots(1)))
	done := b.enqueue(settle(r))
	if got := verbs(b.batch()); got != "SA" {
		t.Fatalf("batch %q", got)
	}
	verdict(t, b, done, ledger.Done)
	verdict(t, b, second, ledger.Admitted)
}

func TestSettlementsAloneLingerForAnAdmission(t *testing.T) {
	b := newBench(t, teller.Limits{})
	admitted := b.enqueue(admit(1))
	b.batch()
	r := verdict(t, b, admitted, ledger.Admitted)
	b.enqueue(settle(r))
	if _, until := b.m.Next(b.now); until != start+teller.DefaultLingerMicros {
		t.Fatalf("until %d", until)
	}
	b.now++
	rides := b.enqueue(admit(2))
	if got := verbs(b.batch()); got != "SA" {
		t.Fatalf("batch %q", got)
	}
	b.enqueue(settle(verdict(t, b, rides, ledger.Admitted)))
	b.now += teller.DefaultLingerMicros
	if got := verbs(b.batch()); got != "S" {
		t.Fatalf("after the linger: %q", got)
	}
}

func TestAClockSetBackDoesNotHoldSettlements(t *testing.T) {
	b := newBench(t, teller.Limits{})
	admitted := b.enqueue(admit(1))
	b.batch()
	b.enqueue(settle(verdict(t, b, admitted, ledger.Admitted)))
	b.now -= hour
	if got := verbs(b.batch()); got != "S" {
		t.Fatalf("batch %q", got)
	}
}

func TestABatchIsFilledInTurn(t *testing.T) {
	// Round robin over workspaces, and over keys within one.
	b := newBench(t, teller.Limits{Batch: 6})
	n := 0
	for range 4 {
		for _, who := range []struct{ workspace, key string }{{"loud", "a"}, {"loud", "a"}, {"loud", "b"}} {
			n++
			b.enqueue(of(admit(n), who.workspace, who.key))
		}
	}
	for range 2 {
		n++
		b.enqueue(of(admit(n), "quiet", "c"))
	}
	var got []string
	for _, op := range b.batch() {
		got = append(got, op.Workspace+" "+op.Subjects.Key)
	}
	want := []string{"loud a", "quiet c", "loud b", "quiet c", "loud a", "loud b"}
	if !slices.Equal(got, want) {
		t.Fatalf("batch %q", got)
	}
}

func TestQueuesAreBounded(t *testing.T) {
	b := newBench(t, teller.Limits{Admissions: 8, Settlements: 2})
	fill := func(workspace string) (n int) {
		for {
			if err := b.m.Enqueue(of(admit(1), workspace, ""), 0, start); err != nil {
				if !errors.Is(err, teller.ErrBusy) || !errors.Is(err, teller.ErrUnavailable) {
					t.Fatal(err)
				}
				return n
			}
			n++
		}
	}
	if got := fill("alone"); got != 6 {
		t.Fatalf("alone: %d", got)
	}
	if got := fill("second"); got != 2 {
		t.Fatalf("second: %d", got)
	}
	if got := fill("third"); got != 0 {
		t.Fatalf("third: %d", got)
	}
	r := &ledger.Reservation{ID: id(1), Workspace: workspace}
	for i, want := range []error{nil, nil, teller.ErrFull} {
		if err := b.m.Enqueue(settle(r), 0, start); !errors.Is(err, want) {
			t.Fatalf("settlement %d: %v", i, err)
		}
	}
}

func TestAWorkspaceHasAQuarterWhileOthersWait(t *testing.T) {
	b := newBench(t, teller.Limits{Admissions: 40})
	b.enqueue(of(admit(1), "quiet", ""))
	for i := range 11 {
		err := b.m.Enqueue(of(admit(i+2), "loud", ""), 0, start)
		if busy := errors.Is(err, teller.ErrBusy); busy != (i == 10) {
			t.Fatalf("admission %d: %v", i, err)
		}
	}
}

func TestOneBadOperationDoesNotRefuseTheOthers(t *testing.T) {
	b := newBench(t, teller.Limits{})
	bad := id(3)
	b.b.script = func(ops []*ledger.Op) (error, bool) {
		if slices.ContainsFunc(ops, func(op *ledger.Op) bool { return op.ID == bad }) {
			return errDown, false
		}
		return nil, true
	}
	tickets := make([]teller.Ticket, 6)
	for i := range tickets {
		tickets[i] = b.enqueue(admit(i))
	}
	b.drain()
	for i, ticket := range tickets {
		if i == 3 {
			if err := b.answers[ticket].Err; !errors.Is(err, teller.ErrUnavailable) || !errors.Is(err, errDown) {
				t.Fatalf("the bad one: %v", err)
			}
			continue
		}
		verdict(t, b, ticket, ledger.Admitted)
	}
	if !b.m.Healthy() {
		t.Fatal("one bad operation closed the lane")
	}
}

func TestAPoisonousSettlementIsSentAgainAndHoldsNobodyUp(t *testing.T) {
	b := newBench(t, teller.Limits{})
	first := b.enqueue(admit(1))
	b.batch()
	r := verdict(t, b, first, ledger.Admitted)
	poison := true
	b.b.script = func(ops []*ledger.Op) (error, bool) {
		if poison && slices.ContainsFunc(ops, func(op *ledger.Op) bool { return op.Verb == ledger.Settle && op.Reservation.ID == r.ID }) {
			return errDown, false
		}
		return nil, true
	}
	done := b.enqueue(settle(r))
	for n := range 200 {
		ticket := b.enqueue(admit(n + 10))
		for range 4 {
			b.batch()
		}
		verdict(t, b, ticket, ledger.Admitted)
		if !b.m.Healthy() {
			t.Fatal("the lane closed")
		}
		b.now += 100_000
	}
	poison = false
	b.drain()
	verdict(t, b, done, ledger.Done)
}

func TestACarriedAdmissionIsNamedAnewAndGoesFirst(t *testing.T) {
	// ENGINE 7.
	b := newBench(t, teller.Limits{})
	b.b.at = start + hour
	op := admit(1, hourly(100))
	ticket := b.enqueue(op)
	b.batch()
	if _, answered := b.answers[ticket]; answered {
		t.Fatal("a carried operation was answered")
	}
	b.enqueue(admit(2))
	if got := b.batch(); got[0].ID != op.ID || got[0].Checks[0].Counter.Window != start+hour {
		t.Fatalf("first is %s", got[0].ID)
	}
	verdict(t, b, ticket, ledger.Admitted)
	if op.Checks[0].Counter.Window != start {
		t.Fatal("an operation that the book saw was changed")
	}
	endless := b.enqueue(admit(3, hourly(100)))
	for range 100 {
		b.b.at += hour
		b.batch()
	}
	if err := b.answers[endless].Err; !errors.Is(err, teller.ErrUnavailable) {
		t.Fatalf("carried for ever: %v", err)
	}
}

func TestAnUnknownOutcomeIsAskedForAgain(t *testing.T) {
	// ENGINE 6: whether it had happened or not, it is decided once.
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("happened %t", happened), func(t *testing.T) {
			b := newBench(t, teller.Limits{})
			first := b.enqueue(admit(100))
			b.batch()
			r := verdict(t, b, first, ledger.Admitted)
			b.b.script = func([]*ledger.Op) (error, bool) {
				b.b.script = nil
				return errUnknown, happened
			}
			done := b.enqueue(settle(r))
			tickets := []teller.Ticket{b.enqueue(admit(1, slots(2))), b.enqueue(admit(2, slots(2))), b.enqueue(admit(3, slots(2)))}
			b.drain()
			verdict(t, b, tickets[0], ledger.Admitted)
			verdict(t, b, tickets[1], ledger.Admitted)
			verdict(t, b, tickets[2], ledger.Refused)
			want := ledger.Done
			if happened {
				want = ledger.Already
			}
			verdict(t, b, done, want)
			if b.b.running() != 2 || len(b.b.events) != 1 {
				t.Fatalf("%d run, %d events", b.b.running(), len(b.b.events))
			}
		})
	}
}

func TestAStaleAdmissionOfUnknownOutcomeIsCalledOff(t *testing.T) {
	b := newBench(t, teller.Limits{})
	b.b.script = func([]*ledger.Op) (error, bool) {
		b.b.script = nil
		b.b.versions[workspace] = 2
		return errUnknown, false
	}
	op := admit(1)
	op.Generation = 1
	ticket := b.enqueue(op)
	b.drain()
	if err := b.answers[ticket].Err; !errors.Is(err, teller.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if r := b.b.open[op.ID]; r == nil || !r.Tombstone {
		t.Fatal("a late commit could still admit it")
	}
}

func TestAfterThreeFailuresTheLaneRefusesAtOnceAndProbes(t *testing.T) {
	b := newBench(t, teller.Limits{})
	first := b.enqueue(admit(1))
	b.batch()
	r := verdict(t, b, first, ledger.Admitted)
	b.b.script = always(errDown)
	done := b.enqueue(settle(r))
	tickets := []teller.Ticket{b.enqueue(admit(2)), b.enqueue(admit(3)), b.enqueue(admit(4))}
	for range 3 {
		b.batch()
	}
	if b.m.Healthy() {
		t.Fatal("still open after three failures")
	}
	for _, ticket := range tickets {
		if err := b.answers[ticket].Err; !errors.Is(err, teller.ErrUnavailable) {
			t.Fatalf("ticket %d: %v", ticket, err)
		}
	}
	if err := b.m.Enqueue(admit(5), 0, b.now); !errors.Is(err, teller.ErrUnavailable) {
		t.Fatalf("closed, yet: %v", err)
	}
	var waits []int64
	for range 7 {
		batch, until := b.m.Next(b.now)
		if batch != nil {
			t.Fatalf("runs %s", verbs(batch.Ops))
		}
		waits = append(waits, (until-b.now)/1000)
		b.now = until
		if got := verbs(b.batch()); got != "U" { // it shows that the book can be written
			t.Fatalf("probe %q", got)
		}
	}
	if want := []int64{50, 100, 200, 400, 800, 1000, 1000}; !slices.Equal(waits, want) {
		t.Fatalf("waits %d ms", waits)
	}
	b.b.script = nil
	b.drain()
	verdict(t, b, done, ledger.Done)
	if !b.m.Healthy() || b.b.running() != 0 {
		t.Fatalf("healthy %t, %d run", b.m.Healthy(), b.b.running())
	}
}

func TestACancelledAdmissionLeavesNothingBehind(t *testing.T) {
	t.Run("queued", func(t *testing.T) {
		b := newBench(t, teller.Limits{})
		ticket := b.enqueue(admit(1))
		if removed, known := b.m.Cancel(ticket); !removed || !known {
			t.Fatal("not removed")
		}
		if batch, _ := b.m.Next(b.now); batch != nil || !b.m.Idle() {
			t.Fatal("it runs all the same")
		}
	})
	t.Run("in a batch", func(t *testing.T) {
		b := newBench(t, teller.Limits{})
		ticket := b.enqueue(admit(1, slots(1)))
		batch, _ := b.m.Next(b.now)
		if removed, known := b.m.Cancel(ticket); removed || !known {
			t.Fatal("removed from under the book")
		}
		results, err := b.b.Apply(context.Background(), batch.Ops)
		b.keep(b.m.Done(batch, results, err, b.now))
		if b.b.running() != 1 {
			t.Fatal("it was to be admitted")
		}
		b.drain()
		if b.b.running() != 0 || b.b.events[0].Kind != ledger.EventUndone {
			t.Fatalf("events %+v", b.b.events)
		}
	})
	t.Run("answered", func(t *testing.T) {
		b := newBench(t, teller.Limits{})
		ticket := b.enqueue(admit(1))
		b.drain()
		if _, known := b.m.Cancel(ticket); known {
			t.Fatal("known after its answer")
		}
	})
	t.Run("of unknown outcome", func(t *testing.T) {
		b := newBench(t, teller.Limits{})
		b.b.script = func([]*ledger.Op) (error, bool) { b.b.script = nil; return errUnknown, true }
		tickets := []teller.Ticket{b.enqueue(admit(1)), b.enqueue(admit(2))}
		b.batch()
		for _, ticket := range tickets {
			b.m.Cancel(ticket)
		}
		b.drain()
		if b.b.running() != 0 || len(b.b.events) != 2 {
			t.Fatalf("%d run, events %+v", b.b.running(), b.b.events)
		}
	})
}

func TestStopRefusesAdmissionsAndDrainsSettlements(t *testing.T) {
	b := newBench(t, teller.Limits{})
	first := b.enqueue(admit(1))
	b.batch()
	done := b.enqueue(settle(verdict(t, b, first, ledger.Admitted)))
	waits := b.enqueue(admit(2))
	b.keep(b.m.Stop())
	if err := b.answers[waits].Err; !errors.Is(err, teller.ErrStopped) {
		t.Fatalf("error %v", err)
	}
	if err := b.m.Enqueue(admit(3), 0, b.now); !errors.Is(err, teller.ErrStopped) {
		t.Fatalf("error %v", err)
	}
	if got := verbs(b.batch()); got != "S" {
		t.Fatalf("batch %q: it does not linger any more", got)
	}
	verdict(t, b, done, ledger.Done)
}
