// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

func TestWhatHasRefilledIsNotGivenBackOnceMore(t *testing.T) {
	// RUN-1, RES-10: found by internal/sim. Ten requests that never reached a
	// provider are undone a minute later; ten others have the bucket meanwhile.
	b := newBook()
	var first []*ledger.Reservation
	for n := range 10 {
		first = append(first, expect(t, b.one(start, admit(n+1, wants(0, 0, 0), rpm(10))), ledger.Admitted).Reservation)
	}
	for n := range 10 {
		expect(t, b.one(start+minute, admit(n+11, wants(0, 0, 0), rpm(10))), ledger.Admitted)
	}
	for _, r := range first {
		expect(t, b.one(start+minute, end(ledger.Undo, r)), ledger.Done)
	}
	expectRefusal(t, b.one(start+minute, admit(21, wants(0, 0, 0), rpm(10))), "api_key_rpm_exceeded")
}

func TestWhatIsUndoneAtOnceComesBackWhole(t *testing.T) {
	// RES-10: a full bucket's requests are all undone 50 ms later, in their order.
	b := newBook()
	var all []*ledger.Reservation
	for n := range 10 {
		all = append(all, expect(t, b.one(start, admit(n+1, wants(0, 10, 0), rpm(10), tpm(100))), ledger.Admitted).Reservation)
	}
	for _, r := range all {
		expect(t, b.one(start+50_000, end(ledger.Undo, r)), ledger.Done)
	}
	for n := range 10 {
		expect(t, b.one(start+50_000, admit(n+11, wants(0, 10, 0), rpm(10), tpm(100))), ledger.Admitted)
	}
}

func TestNoMinuteEverUsesMoreThanItsLimitAndBurst(t *testing.T) {
	// RUN-1: the same bound as for admissions, counted by what was used in the
	// end, when requests use less than they took and end whenever they like.
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1000).Draw(t, "limit")
		b, at := newBook(), start
		type request struct {
			at, used int64
			open     *ledger.Reservation
		}
		var all []*request
		for n := range rapid.IntRange(1, 40).Draw(t, "n") {
			at += rapid.Int64Range(0, 40*second).Draw(t, "pause")
			if r := b.one(at, admit(n+1, wants(0, rapid.Int64Range(1, limit).Draw(t, "estimate"), 0), tpm(limit))); r.Verdict == ledger.Admitted {
				all = append(all, &request{at, r.Reservation.Holds[0].Taken, r.Reservation})
			}
			if len(all) == 0 {
				continue
			}
			if r := rapid.SampledFrom(all).Draw(t, "ends"); r.open != nil {
				r.used = rapid.Int64Range(0, r.used).Draw(t, "used")
				if got := b.one(at, settle(r.open, used(0, r.used))); got.Verdict != ledger.Done {
					t.Fatalf("settle: verdict %d", got.Verdict)
				}
				r.open = nil
			}
		}
		for i := range all {
			var sum int64
			for _, r := range all[i:] {
				sum += r.used
				if most := limit*60_000 + ((r.at-all[i].at)/1000+1)*limit; sum*60_000 > most {
					t.Fatalf("used %d between %d and %d", sum, all[i].at-start, r.at-start)
				}
			}
		}
	})
}
