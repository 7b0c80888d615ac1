// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/window"
)

// sliding is a rate rule of requests or tokens; with estimate: input it asks for the
// input alone (RAT-1).
func sliding(wants ledger.Metric, amount, length int64) ledger.Check {
	c := ledger.Check{
		Counter: counter("rule"), Kind: ledger.KindSliding, Mode: ledger.Take, Wants: wants, Amount: amount,
		Window: window.Spec{Length: length}, Code: "rate_limited", Name: "rule",
	}
	if wants != ledger.Requests {
		c.Charges = ledger.Tokens
	}
	return c
}

func look(b *book, at int64, c ledger.Check) ledger.Reading {
	op := &ledger.Op{Verb: ledger.Read, Workspace: workspace, Checks: []ledger.Check{c}}
	return b.one(at, op).Readings[0]
}

func TestASlidingWindowHasNoEdge(t *testing.T) {
	t.Log("BR-144, RAT-1: 100 in 60 s: 100 calls at second 59, 100 at second 61")
	b, c := newBook(), sliding(ledger.Requests, 100, minute)
	n := 0
	burst := func(at int64) (admitted int) {
		for range 100 {
			n++
			if b.one(at, admit(n, wants(0, 0, 0), c)).Verdict == ledger.Admitted {
				admitted++
			}
		}
		return admitted
	}
	for _, want := range []struct{ at, admitted int64 }{
		{59 * second, 100}, {61 * second, 0}, {119*second - 1, 0}, {119 * second, 100}, {179*second - 1, 0},
	} {
		if got := burst(start + want.at); int64(got) != want.admitted {
			t.Errorf("at %d s: %d of 100 admitted, want %d", want.at/second, got, want.admitted)
		}
	}
	if r := look(b, start+120*second, c); r.Used != 100 || r.Remaining() != 0 || r.ResetsAt != start+179*second {
		t.Errorf("reading %+v", r)
	}
	expectBalanced(t, b, start+180*second)
}

func TestARequestAboveTheWholeWindowNeverPasses(t *testing.T) {
	// RUN-2.
	for _, c := range []ledger.Check{sliding(ledger.Tokens, 100, minute), sliding(ledger.Input, 100, minute)} {
		b := newBook()
		r := expectRefusal(t, b.one(start, admit(1, wants(0, 101, 0), c)), "rate_limited")
		if r.WaitMicros != -1 || r.Reading.Reason != ledger.ReasonLarger {
			t.Fatalf("wait %d, reason %q", r.WaitMicros, r.Reading.Reason)
		}
		expect(t, b.one(start, admit(1, wants(0, 100, 0), c)), ledger.Admitted)
	}
}

func TestASlidingCheckOutOfBoundsIsInvalid(t *testing.T) {
	// RAT-7.
	for name, damage := range map[string]func(*ledger.Check){
		"limit 0":       func(c *ledger.Check) { c.Amount = 0 },
		"window 0":      func(c *ledger.Check) { c.Window.Length = 0 },
		"under 1 s":     func(c *ledger.Check) { c.Window.Length = second - 1000 },
		"over a day":    func(c *ledger.Check) { c.Window.Length = day + second },
		"no whole ms":   func(c *ledger.Check) { c.Window.Length = minute + 1 },
		"spend":         func(c *ledger.Check) { c.Wants = ledger.Spend },
		"reserving":     func(c *ledger.Check) { c.Mode = ledger.Reserve },
		"wrong charges": func(c *ledger.Check) { c.Charges = ledger.Spend },
	} {
		c := sliding(ledger.Tokens, 1, minute)
		damage(&c)
		if got := newBook().one(start, admit(1, wants(0, 1, 0), c)); got.Verdict != ledger.Invalid {
			t.Errorf("%s: verdict %d", name, got.Verdict)
		}
	}
	for _, length := range []int64{second, day} {
		expect(t, newBook().one(start, admit(1, wants(0, 1, 0), sliding(ledger.Requests, 1, length))), ledger.Admitted)
	}
}

func TestEachEndingLeavesInTheWindowWhatItShould(t *testing.T) {
	// RAT-1, RES-2, RES-5, RES-10: taken are 100 in and 50 out, used 120 at once,
	// in the same slot and when it has slid out.
	worst := wants(0, 100, 50)
	verb := func(v ledger.Verb) func(*ledger.Reservation) *ledger.Op {
		return func(r *ledger.Reservation) *ledger.Op {
			op := end(v, r)
			op.Settlement = &ledger.Settlement{}
			return op
		}
	}
	used120 := func(r *ledger.Reservation) *ledger.Op { return settle(r, used(0, 120)) }
	for _, c := range []struct {
		name                    string
		end                     func(*ledger.Reservation) *ledger.Op
		requests, tokens, input int64
	}{
		{"settled", used120, 1, 120, 120},
		{"settled without usage", verb(ledger.Settle), 1, 0, 0},
		{"void", verb(ledger.Void), 1, 0, 0},
		{"undone", verb(ledger.Undo), 0, 0, 0},
		{"swept", verb(ledger.Sweep), 1, 150, 150},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, kind := range []struct {
				wants ledger.Metric
				want  int64
			}{{ledger.Requests, c.requests}, {ledger.Tokens, c.tokens}, {ledger.Input, c.input}} {
				check := sliding(kind.wants, 1000, minute)
				b := newBook()
				r := expect(t, b.one(start, admit(1, worst, check)), ledger.Admitted).Reservation
				expect(t, b.one(start+30*second, c.end(r)), ledger.Done)
				if got := look(b, start+30*second, check).Used; got != kind.want {
					t.Errorf("%s: %d in the window, want %d", kind.wants, got, kind.want)
				}
				if got := look(b, start+61*second, check).Used; got != 0 {
					t.Errorf("%s: %d has not slid out with its admission", kind.wants, got)
				}
				expectBalanced(t, b, start+hour)
				// What has slid out is not brought back.
				b = newBook()
				r = expect(t, b.one(start, admit(1, worst, check)), ledger.Admitted).Reservation
				expect(t, b.one(start+2*minute, c.end(r)), ledger.Done)
				if got := look(b, start+2*minute, check).Used; got != 0 {
					t.Errorf("%s: %d came back", kind.wants, got)
				}
				expectBalanced(t, b, start+hour)
			}
		})
	}
}

func TestAnOverrunFillsTheWindowOfItsAdmission(t *testing.T) {
	// RAT-1: a correction may pass the limit, and then nothing is admitted until it
	// has slid out with the admission, whose instant it is charged to.
	b, c := newBook(), sliding(ledger.Tokens, 100, minute)
	r := expect(t, b.one(start, admit(1, wants(0, 20, 20), c)), ledger.Admitted).Reservation
	expect(t, b.one(start+59*second, settle(r, used(0, 700))), ledger.Done)
	refusal := expectRefusal(t, b.one(start+59*second, admit(2, wants(0, 1, 0), c)), "rate_limited")
	if refusal.Reading.Used != 700 || refusal.WaitMicros != 2*second {
		t.Fatalf("used %d, wait %d", refusal.Reading.Used, refusal.WaitMicros)
	}
	expectRefusal(t, b.one(start+61*second-1, admit(2, wants(0, 1, 0), c)), "rate_limited")
	expect(t, b.one(start+61*second, admit(2, wants(0, 100, 0), c)), ledger.Admitted)
}

func TestLateUsageAndAdjustmentsReachTheWindowOfTheirAdmission(t *testing.T) {
	// RES-2, RES-9.
	b, c := newBook(), sliding(ledger.Tokens, 1000, hour)
	r := expect(t, b.one(start, admit(1, wants(0, 100, 50), c)), ledger.Admitted).Reservation
	expect(t, b.one(start+40*minute, end(ledger.Sweep, r)), ledger.Done)
	expect(t, b.one(start+41*minute, settle(r, used(0, 30))), ledger.Done)
	adjust := func(number int32, tokens int64) *ledger.Op {
		op := end(ledger.Adjust, r)
		op.Entry = &ledger.Entry{Number: number, Amounts: ledger.Amounts{Tokens: tokens}, Reason: "bill"}
		return op
	}
	for i, want := range []int64{30, 80, 70, 0} {
		at := start + 42*minute
		if i > 0 {
			expect(t, b.one(at, adjust(int32(i), []int64{50, -10, -500}[i-1])), ledger.Done)
		}
		if got := look(b, at, c).Used; got != want {
			t.Errorf("after %d corrections: %d, want %d", i, got, want)
		}
	}
	expect(t, b.one(start+2*hour, adjust(4, 99)), ledger.Done)
	if got := look(b, start+2*hour, c).Used; got != 0 {
		t.Errorf("%d in a window that has slid out", got)
	}
	expectBalanced(t, b, start+2*hour)
}

func TestAMoveTakesAtItsOwnInstantAndNotInItsOwnWay(t *testing.T) {
	// ORD-4, RAT-2: tokens follow the candidate, requests are counted once; the
	// rule of the next model counts the request when it is sent there.
	tokens, ofN := sliding(ledger.Tokens, 150, minute), sliding(ledger.Requests, 1, minute)
	ofN.Counter = counter("rule of n")
	b := newBook()
	r := expect(t, b.one(start, admit(1, wants(0, 100, 50), tokens, rpm(1))), ledger.Admitted).Reservation
	op := move(r, []ledger.Check{tokens, rpm(1)}, candidate("n", wants(0, 100, 30), ofN))
	moved := expect(t, b.one(start+30*second, op), ledger.Admitted).Reservation
	if got := look(b, start+30*second, tokens); got.Used != 130 || got.ResetsAt != start+91*second {
		t.Fatalf("reading %+v", got)
	}
	if got := look(b, start+89*second, ofN).Used; got != 1 {
		t.Fatalf("%d requests were sent to n", got)
	}
	larger := move(moved, []ledger.Check{tokens}, candidate("m", wants(0, 100, 51)))
	if got := expectRefusal(t, b.one(start+31*second, larger), "rate_limited"); got.WaitMicros != -1 {
		t.Fatalf("wait %d", got.WaitMicros)
	}
	expect(t, b.one(start+40*second, settle(moved, attempt("n", 0, 140))), ledger.Done)
	if got := look(b, start+40*second, tokens); got.Used != 140 || got.ResetsAt != start+91*second {
		t.Fatalf("reading %+v", got)
	}
	expectBalanced(t, b, start+minute)
}

func TestAWindowInTheFutureKeepsItsAmount(t *testing.T) {
	// ENGINE 7: the clock was set back by an hour. What was taken counts as taken
	// now, and what a request gives back can no longer be told apart.
	for _, c := range []ledger.Check{sliding(ledger.Requests, 2, minute), sliding(ledger.Tokens, 100, minute)} {
		b := newBook()
		w := wants(0, 50, 0)
		r := expect(t, b.one(start+hour-1, admit(1, w, c)), ledger.Admitted).Reservation
		expect(t, b.one(start+hour, admit(2, w, c)), ledger.Admitted)
		refusal := expectRefusal(t, b.one(start, admit(3, w, c)), "rate_limited")
		if wait := refusal.WaitMicros; wait < minute || wait > minute+second {
			t.Fatalf("wait %d", wait)
		}
		expect(t, b.one(start+second, end(ledger.Undo, r)), ledger.Done)
		expectRefusal(t, b.one(start+refusal.WaitMicros-1, admit(3, w, c)), "rate_limited")
		expect(t, b.one(start+refusal.WaitMicros, admit(3, w, c)), ledger.Admitted)
		expectBalanced(t, b, start+hour)
	}
}

func TestARuleKeepsInstantsUpTo128AndSumsAbove(t *testing.T) {
	// ENGINE 8: sums when the limit outgrows 128, instants again once empty.
	b := newBook()
	exact := func() bool { return b.counters[counter("rule")].Sliding.Exact }
	n := 0
	take := func(at, limit int64, want bool) {
		t.Helper()
		n++
		expect(t, b.one(at, admit(n, wants(0, 0, 0), sliding(ledger.Requests, limit, minute))), ledger.Admitted)
		if got := exact(); got != want {
			t.Errorf("limit %d: exact %v", limit, got)
		}
	}
	take(start, 128, true)
	take(start+second/2, 129, false)
	take(start+second, 5, false)
	if got := look(b, start+minute+second-1, sliding(ledger.Requests, 5, minute)).Used; got != 3 {
		t.Errorf("%d of 3 left", got)
	}
	take(start+61*second, 5, false) // the last one is there still
	take(start+122*second, 5, true)
	expectBalanced(t, b, start+hour)
}

func TestAWindowIsCompact(t *testing.T) {
	b := newBook()
	for n := range 1000 {
		c := sliding(ledger.Tokens, 1_000_000_000, day)
		expect(t, b.one(start+int64(n)*97*second, admit(n+1, wants(0, 2000, 0), c)), ledger.Admitted)
		s := b.counters[c.Counter]
		if len(s.Sliding.Marks) > 61 {
			t.Fatalf("%d sums", len(s.Sliding.Marks))
		}
		if size := len(s.Encode()); size > 400 {
			t.Fatalf("%d bytes", size)
		}
	}
}

// oracle keeps every taking by itself and adds them up anew for each question.
type oracle struct {
	length int64
	exact  bool
	taken  []*taking
}

type taking struct {
	at, units int64
	open      *ledger.Reservation
}

func (o *oracle) slot(at int64) int64 { return at / 1000 * 60 / (o.length / 1000) }

// used drops what has slid out and adds up the rest.
func (o *oracle) used(at int64) (sum int64) {
	o.taken = slices.DeleteFunc(o.taken, func(k *taking) bool {
		if o.exact {
			return at-k.at >= o.length
		}
		return o.slot(at)-o.slot(k.at) > 60
	})
	for _, k := range o.taken {
		sum += k.units
	}
	return sum
}

func (o *oracle) take(at, units int64, exact bool, r *ledger.Reservation) *taking {
	if o.used(at) == 0 {
		o.taken, o.exact = nil, exact
	}
	o.exact = o.exact && exact
	k := &taking{at: at, units: units, open: r}
	o.taken = append(o.taken, k)
	return k
}

func TestNoIntervalEverAdmitsMoreThanTheLimit(t *testing.T) {
	// RAT-1, BR-144: by every taking there ever was, in any schedule of takings,
	// corrections both ways and limits that change; the figures are the oracle's
	// to the unit, and the wait that a refusal names is exact (ERR-2).
	rapid.Check(t, func(t *rapid.T) {
		metric := rapid.SampledFrom([]ledger.Metric{ledger.Requests, ledger.Tokens, ledger.Input}).Draw(t, "metric")
		length := rapid.SampledFrom([]int64{second, 7 * second, minute, hour, day}).Draw(t, "length")
		s := &schedule{
			book: newBook(), oracle: oracle{length: length}, check: sliding(metric, 1, length),
			at: start + rapid.Int64Range(0, day).Draw(t, "start"),
		}
		s.check.Amount = rapid.Int64Range(1, 300).Draw(t, "limit")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s.step(t)
		}
		s.settled(t)
		for _, d := range s.verify(s.at) {
			t.Fatalf("%s: have %d, want %d", d.Figure, d.Have, d.Want)
		}
	})
}

type schedule struct {
	*book
	oracle
	check ledger.Check
	at    int64
	n     int
	all   []*taking
}

func (s *schedule) step(t *rapid.T) {
	s.at += rapid.SampledFrom([]int64{0, 1, 999, s.length / 61, s.length / 60, s.length / 10, s.length}).Draw(t, "pause")
	s.at += rapid.Int64Range(0, s.length/30).Draw(t, "more")
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		s.check.Amount = rapid.Int64Range(1, 300).Draw(t, "limit")
	case 1, 2, 3:
		s.end(t)
	default:
		for range rapid.IntRange(1, 40).Draw(t, "burst") {
			s.admit(t)
		}
	}
	if got := look(s.book, s.at, s.check).Used; got != s.used(s.at) {
		t.Fatalf("used %d, by the oracle %d", got, s.used(s.at))
	}
}

func (s *schedule) admit(t *rapid.T) {
	s.n++
	w := wants(0, rapid.Int64Range(1, 40).Draw(t, "in"), rapid.Int64Range(0, 20).Draw(t, "out"))
	want := w.Of(s.check.Wants)
	exact := s.check.Wants == ledger.Requests && s.check.Amount <= 128
	op := admit(s.n, w, s.check)
	fits := s.used(s.at)+want <= s.check.Amount
	r := s.one(s.at, op)
	if fits != (r.Verdict == ledger.Admitted) {
		t.Fatalf("used %d, wanted %d, limit %d: verdict %d", s.used(s.at), want, s.check.Amount, r.Verdict)
	}
	if r.Verdict == ledger.Refused {
		wait := r.Refusal.WaitMicros
		if (want > s.check.Amount) != (wait == -1) || wait == 0 {
			t.Fatalf("wanted %d, limit %d: wait %d", want, s.check.Amount, wait)
		}
		if wait < 0 || rapid.IntRange(0, 9).Draw(t, "patience") > 0 {
			return
		}
		if early := s.one(s.at+wait-1, op); early.Verdict != ledger.Refused {
			t.Fatalf("a wait of %d is too long", wait)
		}
		s.at += wait
		if r = s.one(s.at, op); r.Verdict != ledger.Admitted {
			t.Fatalf("refused after a wait of %d", wait)
		}
	}
	k := s.take(s.at, want, exact, r.Reservation)
	s.all = append(s.all, k)
	// Every interval that contains it, summed over all that ever was.
	var sum int64
	for _, other := range s.all {
		if other.at > s.at-s.length {
			sum += other.units
		}
	}
	if sum > s.check.Amount {
		t.Fatalf("%d in the window that ends at %d, limit %d", sum, s.at, s.check.Amount)
	}
}

// end ends a request that runs, whichever way.
func (s *schedule) end(t *rapid.T) {
	open := slices.DeleteFunc(slices.Clone(s.all), func(k *taking) bool { return k.open == nil })
	if len(open) == 0 {
		return
	}
	k := rapid.SampledFrom(open).Draw(t, "which")
	s.used(s.at)
	verb := rapid.SampledFrom([]ledger.Verb{ledger.Settle, ledger.Settle, ledger.Void, ledger.Undo, ledger.Sweep}).Draw(t, "verb")
	op, after := end(verb, k.open), int64(0)
	switch verb {
	case ledger.Settle:
		after = rapid.Int64Range(0, 100).Draw(t, "used")
		op = settle(k.open, used(0, after))
	case ledger.Sweep:
		after = k.open.Worst.Tokens
	default:
	}
	if got := s.one(s.at, op); got.Verdict != ledger.Done {
		t.Fatalf("verdict %d", got.Verdict)
	}
	k.open = nil
	if s.check.Wants == ledger.Requests {
		after = 1
		if verb == ledger.Undo {
			after = 0
		}
	}
	if slices.Contains(s.taken, k) { // else it has slid out
		k.units = after
	}
}

// settled: nothing is left once all has slid out.
func (s *schedule) settled(t *rapid.T) {
	if r := look(s.book, s.at, s.check); r.ResetsAt > s.at {
		if look(s.book, r.ResetsAt-1, s.check).Used == 0 || look(s.book, r.ResetsAt, s.check).Used != 0 {
			t.Fatalf("it is not full again at %d", r.ResetsAt)
		}
	} else if r.Used != 0 {
		t.Fatalf("used %d, and full at once", r.Used)
	}
}

func TestWhatWasNotEstimatedIsChargedToItsAdmission(t *testing.T) {
	// RAT-1: an estimate of nothing, and use all the same.
	b, c := newBook(), sliding(ledger.Tokens, 100, minute)
	r := expect(t, b.one(start, admit(1, wants(0, 0, 0), c)), ledger.Admitted).Reservation
	expect(t, b.one(start+second, settle(r, used(0, 70))), ledger.Done)
	if got := look(b, start+second, c); got.Used != 70 || got.ResetsAt != start+61*second {
		t.Fatalf("reading %+v", got)
	}
	expectBalanced(t, b, start+second)
}

func TestAfterAClockWasSetBackNobodyElsesUnitsAreGivenBack(t *testing.T) {
	// RAT-1, ENGINE 7: the first request's units were moved to an earlier instant;
	// when the clock comes to its admission again, others have that slot.
	for _, c := range []ledger.Check{rule1(ledger.Requests), rule1(ledger.Tokens)} {
		b, w := newBook(), wants(0, 50, 0)
		first := expect(t, b.one(start+hour, admit(1, w, c)), ledger.Admitted).Reservation
		look(b, start, c)
		expect(t, b.one(start+hour, admit(2, w, c)), ledger.Admitted)
		expect(t, b.one(start+hour, end(ledger.Undo, first)), ledger.Done)
		expectRefusal(t, b.one(start+hour, admit(3, w, c)), "rate_limited")
		expectBalanced(t, b, start+hour)
	}
}

// rule1 is a rule that one request of 50 tokens fills.
func rule1(metric ledger.Metric) ledger.Check {
	if metric == ledger.Requests {
		return sliding(metric, 1, minute)
	}
	return sliding(metric, 60, minute)
}

func TestFullAgainIsWhereTheReadingAfterATakingEnds(t *testing.T) {
	// RAT-3.
	for _, c := range []ledger.Check{rule1(ledger.Requests), rule1(ledger.Tokens), sliding(ledger.Input, 60, day)} {
		b, at := newBook(), start+12_345_678
		expect(t, b.one(at, admit(1, wants(0, 50, 0), c)), ledger.Admitted)
		if have, want := look(b, at, c).ResetsAt, c.FullAgain(at); have != want {
			t.Errorf("%s: full again at %d, said %d", c.Wants, have, want)
		}
	}
}
