// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

// users bounds how many different users there may be, and user is this one.
func users(amount int64, user string) ledger.Check {
	return ledger.Check{
		Counter: ledger.Counter{Workspace: workspace, Limit: "users"},
		Marker:  ledger.Counter{Workspace: workspace, Limit: "user", Subject: user},
		Kind:    ledger.KindRoster, Mode: ledger.Take, Wants: ledger.Requests, Amount: amount, Code: "user_limit_reached", Name: "users",
	}
}

func TestAMemberIsCountedAtItsFirstAdmission(t *testing.T) {
	// KEY-7.
	b := newBook()
	full := rpm(2)
	ask := func(n int, user string) ledger.Result {
		return b.one(start, admit(n, wants(1, 1, 1), users(2, user), full))
	}
	first := expect(t, ask(1, "ada"), ledger.Admitted)
	if len(first.Reservation.Holds) != 1 {
		t.Fatalf("holds %+v", first.Reservation.Holds)
	}
	expect(t, b.one(start, end(ledger.Undo, first.Reservation)), ledger.Done)
	expect(t, ask(2, "ada"), ledger.Admitted)
	expect(t, ask(3, "bob"), ledger.Admitted)
	refusal := expectRefusal(t, ask(4, "eve"), "user_limit_reached")
	if r := refusal.Reading; r.Used != 2 || r.Amount != 2 || r.Wanted != 1 || r.WaitMicros != -1 {
		t.Fatalf("reading %+v", r)
	}
	expectRefusal(t, ask(5, "bob"), "api_key_rpm_exceeded")
	full.Amount = 9
	expect(t, ask(6, "bob"), ledger.Admitted)
	if got := b.state(users(1, "").Counter).Settled; got != 2 {
		t.Fatalf("%d users", got)
	}
	expectBalanced(t, b, start)
	b.counters[users(1, "").Counter].Settled++
	if d := b.verify(start); len(d) != 1 || d[0].Figure != "members" || d[0].Have != 3 || d[0].Want != 2 {
		t.Fatalf("differences %+v", d)
	}
}

func TestARefusedRequestMakesNoMember(t *testing.T) {
	// ORD-2: a later check refuses.
	b := newBook()
	expectRefusal(t, b.one(start, admit(1, wants(dollar, 1, 1), users(2, "ada"), budget("b", ledger.Reserve, cent))), "budget_exceeded")
	if len(b.counters) != 0 {
		t.Fatalf("rows %+v", b.counters)
	}
}

func TestOneBatchCountsAMemberOnce(t *testing.T) {
	b := newBook()
	ops := []*ledger.Op{
		admit(1, wants(1, 1, 1), users(1, "ada")), admit(2, wants(1, 1, 1), users(1, "ada")), admit(3, wants(1, 1, 1), users(1, "bob")),
	}
	results := b.apply(start, ops...)
	expect(t, results[0], ledger.Admitted)
	expect(t, results[1], ledger.Admitted)
	expectRefusal(t, results[2], "user_limit_reached")
	expectBalanced(t, b, start)
}

func TestRostersThatNameNoMemberAreInvalid(t *testing.T) {
	other, counted, observed := users(1, "ada"), users(1, "ada"), users(1, "ada")
	other.Marker.Workspace, counted.Counter.Subject, observed.Mode = "ws_b", "ada", ledger.Observe
	for _, c := range []ledger.Check{users(1, ""), other, counted, observed} {
		expect(t, newBook().one(start, admit(1, wants(1, 1, 1), c)), ledger.Invalid)
	}
}

func TestARosterIsNeverPassedInAnyOrder(t *testing.T) {
	// KEY-7: requests are admitted, undone, voided, moved, swept and settled in any
	// order, and the amount changes.
	rapid.Check(t, func(t *rapid.T) {
		b := newBook()
		most := int64(0)
		seen := map[string]bool{}
		var known []*ledger.Reservation
		for n := range rapid.IntRange(1, 40).Draw(t, "steps") {
			user := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "user")
			check := users(rapid.Int64Range(0, 4).Draw(t, "amount"), user)
			count := b.state(check.Counter).Settled
			most = max(most, check.Amount)
			var op *ledger.Op
			verb := rapid.SampledFrom([]ledger.Verb{ledger.Admit, ledger.Admit, ledger.Move, ledger.Undo, ledger.Void, ledger.Sweep}).Draw(t, "verb")
			if verb == ledger.Admit || len(known) == 0 {
				op = admit(n+1, wants(1, 1, 1), check, rpm(20))
			} else {
				op = end(verb, rapid.SampledFrom(known).Draw(t, "which"))
				if verb == ledger.Move {
					op.Checks, op.Candidates = []ledger.Check{check, rpm(20)}, []ledger.Candidate{candidate("n", wants(1, 1, 1))}
				}
			}
			result := b.one(start+int64(n), op)
			switch result.Verdict {
			case ledger.Admitted:
				known = append(known, result.Reservation)
				if !seen[user] && count >= check.Amount {
					t.Fatalf("%s is one more than %d", user, check.Amount)
				}
				seen[user] = true
			case ledger.Refused:
				if result.Refusal.Check.Kind == ledger.KindRoster && (seen[user] || count < check.Amount) {
					t.Fatalf("%s was refused at %d of %d", user, count, check.Amount)
				}
			default:
			}
			if got := b.state(check.Counter).Settled; got != int64(len(seen)) || got > most {
				t.Fatalf("%d users are counted, %d were seen, %d may be", got, len(seen), most)
			}
			for _, d := range b.verify(start + int64(n)) {
				t.Fatalf("%s: have %d, want %d", d.Figure, d.Have, d.Want)
			}
		}
	})
}
