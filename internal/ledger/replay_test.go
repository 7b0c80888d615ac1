// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"math/rand"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

// river is a book whose buckets and windows all kinds of things befall: requests
// that move and end in any way, limits that change, and clocks that are set.
type river struct {
	*book
	at, passed int64
	steps      bool
	n          int
	limits     [4]int64
	admitted   []*ledger.Reservation
	corrected  map[ledger.ID]int32
	taken      []*drop
}

// drop is what one request has in the window of the rule of tokens, by the
// forward way of the clock.
type drop struct {
	id        ledger.ID
	at, units int64
}

func newRiver(t *rapid.T) *river {
	return &river{
		book: newBook(), at: start, steps: rapid.Bool().Draw(t, "clock steps"), limits: [4]int64{20, 1000, 10, 900},
		corrected: map[ledger.ID]int32{},
	}
}

const ruleWindow = 5 * minute

func (r *river) checks() []ledger.Check {
	requests, tokens := sliding(ledger.Requests, r.limits[2], minute), sliding(ledger.Tokens, r.limits[3], ruleWindow)
	requests.Counter, tokens.Counter = counter("rule of requests"), counter("rule of tokens")
	return []ledger.Check{rpm(r.limits[0]), tpm(r.limits[1]), requests, tokens}
}

func (r *river) candidate(t *rapid.T) ledger.Candidate {
	model := rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model")
	own := sliding(ledger.Input, 600, 10*second)
	own.Counter = counter("rule of " + model)
	w := wants(0, rapid.Int64Range(0, 200).Draw(t, "in"), rapid.Int64Range(0, 100).Draw(t, "out"))
	return candidate(model, w, own)
}

func (r *river) pass(t *rapid.T) {
	pause := rapid.SampledFrom([]int64{0, 0, 1, 1000, second, 20 * second, ruleWindow}).Draw(t, "pause")
	if pause > 0 {
		pause = rapid.Int64Range(0, pause).Draw(t, "of it")
	}
	r.at, r.passed = r.at+pause, r.passed+pause
	if r.steps && rapid.IntRange(0, 9).Draw(t, "clock") == 0 {
		step := rapid.Int64Range(-hour, hour).Draw(t, "step")
		r.at += step
		r.passed += max(0, step)
	}
	if rapid.IntRange(0, 19).Draw(t, "operator") == 0 {
		i := rapid.IntRange(0, 3).Draw(t, "which limit")
		r.limits[i] = rapid.SampledFrom([][]int64{{1, 20, 500}, {100, 1000, 9000}, {3, 10, 200}, {50, 900, 2000}}[i]).Draw(t, "limit")
	}
}

func (r *river) draw(t *rapid.T) *ledger.Op {
	verb := rapid.SampledFrom([]ledger.Verb{
		ledger.Admit, ledger.Admit, ledger.Admit, ledger.Admit, ledger.Move, ledger.Settle, ledger.Settle, ledger.Settle,
		ledger.Void, ledger.Undo, ledger.Sweep, ledger.Adjust,
	}).Draw(t, "verb")
	if verb == ledger.Admit || len(r.admitted) == 0 {
		r.n++
		op := admit(r.n, ledger.Amounts{}, r.checks()...)
		op.Candidates = []ledger.Candidate{r.candidate(t), r.candidate(t)}
		return op
	}
	of := rapid.SampledFrom(r.admitted).Draw(t, "reservation")
	op := end(verb, of)
	switch verb {
	case ledger.Move:
		op.Checks, op.Candidates = r.checks(), []ledger.Candidate{r.candidate(t)}
	case ledger.Settle:
		op.Settlement = &ledger.Settlement{}
		if rapid.Bool().Draw(t, "charged") {
			op.Settlement.Attempts = []ledger.Attempt{attempt(of.Model, 0, rapid.Int64Range(0, 700).Draw(t, "used"))}
		}
	case ledger.Adjust:
		if i := slices.IndexFunc(r.calls, func(c ledger.Call) bool { return c.ID == of.ID }); i >= 0 {
			op.Reservation = r.calls[i].Reservation()
		}
		op.Entry = &ledger.Entry{Number: r.corrected[of.ID], Amounts: ledger.Amounts{Tokens: rapid.Int64Range(-min(99, r.used(of.ID)), 99).Draw(t, "delta")}}
		if r.ended[of.ID].Corrections > op.Entry.Number {
			op.Entry.Number = r.ended[of.ID].Corrections
		}
	default:
	}
	return op
}

// batch decides some operations at one instant, each in a batch of its own, so
// that only the counters know their order; what is carried is sent again.
func (r *river) batch(t *rapid.T) {
	r.pass(t)
	for range rapid.IntRange(1, 6).Draw(t, "operations") {
		op := r.draw(t)
		result := r.one(r.at, op)
		if result.Verdict == ledger.Carry {
			result = r.one(r.at, op.Carried(&result))
		}
		switch result.Verdict {
		case ledger.Admitted:
			r.admitted = append(r.admitted, result.Reservation)
			r.enter(t, result.Reservation)
		case ledger.Done:
			r.leave(result.Reservation)
		default:
		}
	}
}

// enter holds what the rule of tokens has taken against its limit (RAT-1).
func (r *river) enter(t *rapid.T, res *ledger.Reservation) {
	r.taken = slices.DeleteFunc(r.taken, func(d *drop) bool { return d.id == res.ID })
	r.taken = append(r.taken, &drop{res.ID, r.passed, res.Worst.Tokens})
	var sum int64
	for _, d := range r.taken {
		if d.at > r.passed-ruleWindow {
			sum += d.units
		}
	}
	if sum > r.limits[3] {
		t.Fatalf("%d tokens in the window, limit %d", sum, r.limits[3])
	}
}

// leave makes a request count for what its events say that it used.
func (r *river) leave(res *ledger.Reservation) {
	for _, d := range r.taken {
		if res == nil || d.id != res.ID || r.open[d.id] != nil {
			continue
		}
		d.units = r.used(d.id)
	}
}

func (r *river) used(id ledger.ID) (tokens int64) {
	for i := range r.events {
		if r.events[i].ID == id {
			tokens += r.events[i].Tokens
		}
	}
	return tokens
}

func (r *river) differences(t *rapid.T, what string) {
	t.Helper()
	for _, d := range r.verify(r.at) {
		t.Fatalf("%s: %s of %s: have %d, want %d (%s)", what, d.Figure, d.Counter.Limit, d.Have, d.Want, d.ID)
	}
}

func TestBucketsAndWindowsAreWhatTheCallLogSays(t *testing.T) {
	// RES-7, RAT-1, RUN-1, ENGINE 7: no schedule gives a false alarm, in whatever
	// order the log is read, and wherever it begins.
	rapid.Check(t, func(t *rapid.T) {
		r := newRiver(t)
		for range rapid.IntRange(1, 40).Draw(t, "batches") {
			r.batch(t)
		}
		r.differences(t, "in order")
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "order")))
		random.Shuffle(len(r.calls), func(i, j int) { r.calls[i], r.calls[j] = r.calls[j], r.calls[i] })
		r.differences(t, "in any order")
		first := id(rapid.IntRange(0, r.n).Draw(t, "dropped"))
		r.calls = slices.DeleteFunc(r.calls, func(c ledger.Call) bool { return c.ID.Compare(first) < 0 })
		r.dropped = start + day // later than anything that was dropped
		r.differences(t, "without its beginning")
	})
}

func TestABucketOrWindowThatIsOffByOneIsFound(t *testing.T) {
	// RES-7.
	rapid.Check(t, func(t *rapid.T) {
		r := newRiver(t)
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			r.batch(t)
		}
		var all []ledger.Counter
		for c, s := range r.counters {
			if s.Seq > 0 {
				all = append(all, c)
			}
		}
		if len(all) == 0 {
			return
		}
		slices.SortFunc(all, func(a, b ledger.Counter) int {
			if a.Less(b) {
				return -1
			}
			return 1
		})
		c := rapid.SampledFrom(all).Draw(t, "counter")
		damage(t, r, c)
		list := r.verify(r.at)
		if len(list) == 0 || slices.ContainsFunc(list, func(d ledger.Difference) bool { return d.Counter != c }) {
			t.Fatalf("%s: found %+v", c.Limit, list)
		}
	})
}

// damage changes a row by as little as possible.
func damage(t *rapid.T, r *river, c ledger.Counter) {
	s := r.counters[c].Clone()
	r.counters[c] = s
	by := rapid.SampledFrom([]int64{-1, 1}).Draw(t, "by")
	switch w := s.Sliding; rapid.IntRange(0, 4).Draw(t, "figure") {
	case 0:
		s.Seq += by
	case 1:
		s.At++
		if r.steps { // then its own instant may be an earlier one
			s.Seq += by
		}
	case 2:
		delete(r.counters, c)
		r.counters[c] = &ledger.State{Kind: s.Kind, At: s.At}
	default:
		switch {
		case w == nil && rapid.Bool().Draw(t, "deficit"):
			s.Deficit += by
		case w == nil && rapid.Bool().Draw(t, "rate"):
			s.Rate += by
		case w == nil:
			s.Returned += by
		case len(w.Marks) == 0:
			w.Marks = []ledger.Mark{{Slot: s.At, Units: 1}}
		default:
			m := &w.Marks[rapid.IntRange(0, len(w.Marks)-1).Draw(t, "mark")]
			if rapid.Bool().Draw(t, "slot") {
				m.Slot += by
			} else {
				m.Units += by
			}
		}
	}
}

func TestACallThatIsMissingFromTheLogIsFound(t *testing.T) {
	// RES-7: the last request, and one in the middle.
	for lost := 1; lost < 4; lost++ {
		b := newBook()
		tokens := sliding(ledger.Tokens, 1000, hour)
		for n := range 4 {
			r := expect(t, b.one(start, admit(n+1, wants(0, 10, 0), rpm(10), tokens)), ledger.Admitted).Reservation
			expect(t, b.one(start+second, settle(r, used(0, 20))), ledger.Done)
		}
		expectBalanced(t, b, start+second)
		b.calls = slices.Delete(b.calls, lost, lost+1)
		found := map[string]bool{}
		for _, d := range b.verify(start + second) {
			if d.Figure == "changes" {
				found[d.Counter.Limit] = true
			}
		}
		if !found["rpm"] || !found["rule"] {
			t.Errorf("call %d: found %v", lost+1, found)
		}
	}
}

func TestALostRowIsFoundWhileItWouldHoldSomething(t *testing.T) {
	// RES-7; a row may go once it means nothing.
	b := newBook()
	tokens := sliding(ledger.Tokens, 1000, hour)
	r := expect(t, b.one(start, admit(1, wants(0, 10, 0), rpm(10), tokens)), ledger.Admitted).Reservation
	expect(t, b.one(start, settle(r, used(0, 20))), ledger.Done)
	clear(b.counters)
	if got := b.verify(start); len(got) != 2 || got[0].Figure != "changes" || got[1].Figure != "changes" {
		t.Errorf("found %+v", got)
	}
	if got := b.verify(start + 3*hour); len(got) != 0 {
		t.Errorf("found %+v", got)
	}
}

func TestAnAlterationThatWasDecidedOnIsFound(t *testing.T) {
	// RES-7: somebody changes a row, the next request builds on it.
	b := newBook()
	tokens := sliding(ledger.Tokens, 1000, hour)
	for n := range 3 {
		if n == 2 {
			b.counters[counter("rpm")].Deficit -= 30_000
			b.counters[counter("rule")].Sliding.Marks[0].Units--
		}
		r := expect(t, b.one(start+int64(n)*second, admit(n+1, wants(0, 10, 0), rpm(10), tokens)), ledger.Admitted).Reservation
		expect(t, b.one(start+int64(n)*second, settle(r, used(0, 10))), ledger.Done)
	}
	got := b.verify(start + 3*second)
	if len(got) != 2 || got[0].Figure != "deficit" || got[0].ID != id(3) || got[1].Figure != "in the window" || got[1].ID != id(3) {
		t.Errorf("found %+v", got)
	}
}

func TestWhatWasDroppedLongBeforeTheNextRequestIsNotMissing(t *testing.T) {
	// RES-6, RES-7: the log begins in the middle of what a counter has seen; a call
	// that is gone from later than that is missing all the same.
	b := newBook()
	tokens := sliding(ledger.Tokens, 1000, hour)
	for n, at := range []int64{start, start + 95*day, start + 97*day, start + 99*day} {
		r := expect(t, b.one(at, admit(n+1, wants(0, 10, 0), rpm(10), tokens)), ledger.Admitted).Reservation
		expect(t, b.one(at+second, settle(r, used(0, 20))), ledger.Done)
	}
	b.dropped = start + 5*day
	b.calls = b.calls[1:]
	if list := b.verify(start + 99*day + second); len(list) != 0 {
		t.Errorf("found %+v", list)
	}
	b.calls = slices.Delete(b.calls, 1, 2)
	if list := b.verify(start + 99*day + second); len(list) != 2 || list[0].Figure != "changes" {
		t.Errorf("found %+v, want that a call of two days ago is missing", list)
	}
}
