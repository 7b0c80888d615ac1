// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

func TestABucketRefillsExactly(t *testing.T) {
	t.Log("BR-137: TPM 6,000 burned at 0; 500 more pass at 5.0 s")
	b := newBook()
	expect(t, b.one(start, admit(1, wants(0, 6000, 0), tpm(6000))), ledger.Admitted)
	refusal := expectRefusal(t, b.one(start, admit(2, wants(0, 500, 0), tpm(6000))), "api_key_tpm_exceeded")
	if refusal.WaitMicros != 5*second {
		t.Fatalf("wait %d", refusal.WaitMicros)
	}
	early := b.one(start+5*second-1000, admit(2, wants(0, 500, 0), tpm(6000)))
	if got := expectRefusal(t, early, "api_key_tpm_exceeded"); got.WaitMicros != 1000 {
		t.Fatalf("a millisecond early: wait %d", got.WaitMicros)
	}
	expect(t, b.one(start+5*second, admit(2, wants(0, 500, 0), tpm(6000))), ledger.Admitted)
	expectRefusal(t, b.one(start+5*second, admit(3, wants(0, 1, 0), tpm(6000))), "api_key_tpm_exceeded")
}

func TestARefusedRequestConsumesNoRPM(t *testing.T) {
	t.Log("BR-134: RPM 2, concurrency 1: B is refused by concurrency, C passes, D is refused by RPM")
	b := newBook()
	checks := []ledger.Check{rpm(2), slots(1)}
	w := ledger.Amounts{Requests: 1, Slots: 1}
	a := expect(t, b.one(start, admit(1, w, checks...)), ledger.Admitted)
	expectRefusal(t, b.one(start, admit(2, w, checks...)), "api_key_concurrency_exceeded")
	expect(t, b.one(start, settle(a.Reservation)), ledger.Done)
	expect(t, b.one(start, admit(3, w, checks...)), ledger.Admitted)
	expectRefusal(t, b.one(start, admit(4, w, checks...)), "api_key_rpm_exceeded")
}

func TestTPMIsCorrectedToInputPlusOutput(t *testing.T) {
	t.Log("BR-146: TPM 15, calls of 7 in and 5 out")
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(0, 7, 5), tpm(15))), ledger.Admitted)
	expect(t, b.one(start, settle(r.Reservation, used(0, 12))), ledger.Done)
	got := b.one(start, admit(2, wants(0, 7, 5), tpm(15)))
	if refusal := expectRefusal(t, got, "api_key_tpm_exceeded"); refusal.Reading.Used != 12 || refusal.Reading.Remaining() != 3 {
		t.Fatalf("reading %+v", refusal.Reading)
	}
}

func TestOneOfFiveParallelCallsFitsTheBucket(t *testing.T) {
	t.Log("BR-024: TPM 100, five at once of 60; then debt, which must refill first")
	b := newBook()
	ops := make([]*ledger.Op, 5)
	for i := range ops {
		ops[i] = admit(i+1, wants(0, 60, 0), tpm(100))
	}
	results := b.apply(start, ops...)
	expect(t, results[0], ledger.Admitted)
	for _, r := range results[1:] {
		expectRefusal(t, r, "api_key_tpm_exceeded")
	}
	expect(t, b.one(start, settle(results[0].Reservation, used(0, 663))), ledger.Done)
	r := expectRefusal(t, b.one(start, admit(9, wants(0, 1, 0), tpm(100))), "api_key_tpm_exceeded")
	// 564 of debt and cost, less 100 of burst, at 100 a minute.
	if want := int64(564) * minute / 100; r.WaitMicros != want || r.Reading.Remaining() != 0 {
		t.Fatalf("wait %d, want %d", r.WaitMicros, want)
	}
}

func TestARequestAboveTheWholeBucketNeverPasses(t *testing.T) {
	// RUN-2.
	r := expectRefusal(t, newBook().one(start, admit(1, wants(0, 101, 0), tpm(100))), "api_key_tpm_exceeded")
	if r.WaitMicros != -1 || r.Reading.Reason != "larger_than_limit" {
		t.Fatalf("wait %d, reason %q", r.WaitMicros, r.Reading.Reason)
	}
	expect(t, newBook().one(start, admit(1, wants(0, 100, 0), tpm(100))), ledger.Admitted)
}

func TestAFailedRequestGivesBackTokensAndKeepsRPM(t *testing.T) {
	// RES-10, ORD-5: void keeps the request, undo gives it back too.
	for _, c := range []struct {
		verb     ledger.Verb
		requests int64
	}{{ledger.Void, 1}, {ledger.Settle, 1}, {ledger.Undo, 0}} {
		b := newBook()
		r := expect(t, b.one(start, admit(1, wants(0, 50, 0), rpm(10), tpm(100))), ledger.Admitted)
		op := end(c.verb, r.Reservation)
		op.Settlement = &ledger.Settlement{}
		expect(t, b.one(start, op), ledger.Done)
		if got := b.state(rpm(1).Counter).Deficit; got != c.requests*60_000 {
			t.Errorf("verb %d: RPM deficit %d", c.verb, got)
		}
		if got := b.state(tpm(1).Counter).Deficit; got != 0 {
			t.Errorf("verb %d: TPM deficit %d", c.verb, got)
		}
	}
}

func TestASettlementRefillsAtTheNewestLimit(t *testing.T) {
	b := newBook()
	expect(t, b.one(start, admit(1, wants(0, 6000, 0), tpm(6000))), ledger.Admitted)
	// The limit is lowered a hundredfold; the next admission brings that.
	lowered := expectRefusal(t, b.one(start, admit(2, wants(0, 1, 0), tpm(60))), "api_key_tpm_exceeded")
	if lowered.Reading.Used != 6000 {
		t.Fatalf("used %d", lowered.Reading.Used)
	}
	b = newBook()
	r := expect(t, b.one(start, admit(1, wants(0, 10, 0), tpm(6000))), ledger.Admitted)
	expect(t, b.one(start, admit(2, wants(0, 50, 0), tpm(60))), ledger.Admitted)
	expect(t, b.one(start+10*second, settle(r.Reservation, used(0, 10))), ledger.Done)
	got := b.one(start+10*second, &ledger.Op{Verb: ledger.Read, Workspace: workspace, Checks: []ledger.Check{tpm(60)}})
	if got.Readings[0].Used != 50 {
		t.Fatalf("after 10 s at 60 a minute 50 of 60 are out, got %d", got.Readings[0].Used)
	}
}

func TestABucketInTheFutureKeepsItsAmount(t *testing.T) {
	// ENGINE 7: the clock was set back by an hour.
	b := newBook()
	expect(t, b.one(start+hour, admit(1, wants(0, 100, 0), tpm(100))), ledger.Admitted)
	r := expectRefusal(t, b.one(start, admit(2, wants(0, 50, 0), tpm(100))), "api_key_tpm_exceeded")
	if r.WaitMicros != 30*second {
		t.Fatalf("wait %d", r.WaitMicros)
	}
	expect(t, b.one(start+30*second, admit(4, wants(0, 50, 0), tpm(100))), ledger.Admitted)
}

func TestNoMinuteEverAdmitsMoreThanItsLimitAndBurst(t *testing.T) {
	// RUN-1: in any span of T, at most burst + T × rate; and the wait that a
	// refusal names is exact.
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 100_000).Draw(t, "limit")
		b, at := newBook(), start
		type admission struct{ at, cost int64 }
		var all []admission
		for n := range rapid.IntRange(1, 30).Draw(t, "n") {
			at += rapid.Int64Range(0, 40*second).Draw(t, "pause")
			cost := rapid.Int64Range(1, limit).Draw(t, "cost")
			op := admit(n+1, wants(0, cost, 0), tpm(limit))
			r := b.one(at, op)
			if r.Verdict == ledger.Refused {
				wait := r.Refusal.WaitMicros
				if wait <= 0 || b.one(at+wait-1000, op).Verdict != ledger.Refused {
					t.Fatalf("wait %d is too long", wait)
				}
				at += wait
				if r = b.one(at, op); r.Verdict != ledger.Admitted {
					t.Fatalf("refused after the wait of %d", wait)
				}
			}
			all = append(all, admission{at, cost})
		}
		for i := range all {
			var sum int64
			for _, a := range all[i:] {
				sum += a.cost
				// +1 ms: instants are cut to whole milliseconds.
				if most := limit*60_000 + ((a.at-all[i].at)/1000+1)*limit; sum*60_000 > most {
					t.Fatalf("admitted %d between %d and %d", sum, all[i].at, a.at)
				}
			}
		}
	})
}
