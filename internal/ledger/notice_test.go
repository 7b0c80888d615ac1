// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

// warned is a budget with thresholds, in the window of start.
func warned(mode ledger.Mode, amount int64, percents ...uint8) ledger.Check {
	c := budget("b", mode, amount)
	c.WarnPercent, c.Scope = percents, "org"
	return c
}

// charge admits and settles one request.
func (b *book) charge(t *testing.T, n int, spend int64, checks ...ledger.Check) {
	t.Helper()
	r := expect(t, b.one(start, admit(n, ledger.Amounts{Spend: spend}, checks...)), ledger.Admitted)
	expect(t, b.one(start, settle(r.Reservation, used(spend, 1))), ledger.Done)
}

// announced are the levels that the outbox tells, in order.
func (b *book) announced() []string {
	var list []string
	for i := range b.outbox {
		list = append(list, fmt.Sprintf("%s %d", b.outbox[i].Level, b.outbox[i].Percent))
	}
	return list
}

func TestAThresholdIsAnnouncedOnceWhenSettledUseReachesIt(t *testing.T) {
	// BUD-5.
	for _, c := range []struct {
		name    string
		check   ledger.Check
		charges []int64
		want    []string
	}{
		{"below", warned(ledger.Reserve, 100, 50), []int64{49}, nil},
		{"exactly", warned(ledger.Reserve, 100, 50), []int64{49, 1, 1}, []string{"threshold 50"}},
		{"one after the other", warned(ledger.Observe, 100, 50, 80, 100), []int64{50, 30, 19, 1, 5}, []string{"threshold 50", "threshold 80", "threshold 100"}},
		{"several at once: the highest, the lower ones never", warned(ledger.Observe, 100, 50, 80, 100), []int64{99, 1}, []string{"threshold 80", "threshold 100"}},
		{"a soft limit has a level of its own", warned(ledger.Track, 100, 100), []int64{99, 1, 1}, []string{"threshold 100", "soft 100"}},
		{"a soft limit needs no thresholds", warned(ledger.Track, 100), []int64{99, 1, 1}, []string{"soft 100"}},
		{"a counter without a limit never warns", warned(ledger.Track, 0), []int64{99, 1}, nil},
		{"a hard limit has no soft level", warned(ledger.Reserve, 100), []int64{100}, nil},
		{"a percentage is not rounded", warned(ledger.Track, 3, 33, 34), []int64{1, 1}, []string{"threshold 33", "threshold 34"}},
		{"no overflow", warned(ledger.Reserve, math.MaxInt64, 99, 100), []int64{math.MaxInt64 - 1, 1}, []string{"threshold 99", "threshold 100"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			for i, spend := range c.charges {
				if c.check.Mode == ledger.Observe && i == len(c.charges)-1 && b.state(c.check.Counter).Settled >= c.check.Amount {
					break // spent
				}
				b.charge(t, i+1, spend, c.check)
			}
			if got := b.announced(); !slices.Equal(got, c.want) {
				t.Fatalf("announced %v, want %v", got, c.want)
			}
		})
	}
}

func TestANoticeSaysWhatWasReached(t *testing.T) {
	b := newBook()
	check := warned(ledger.Reserve, dollar, 80)
	b.charge(t, 1, 90*cent, check)
	want := ledger.Notice{
		At: start, Workspace: workspace, Kind: "models.budget.warning", Counter: check.Counter, Name: "b", Scope: "org",
		Metric: ledger.Spend, Level: "threshold", Percent: 80, Amount: dollar, Used: 90 * cent,
	}
	if len(b.outbox) != 1 || b.outbox[0] != want {
		t.Fatalf("notices %+v, want %+v", b.outbox, want)
	}
	got, err := ledger.DecodeNotice(ledger.AppendNotice([]byte("x"), &want)[1:])
	if err != nil || got != want {
		t.Fatalf("read %+v, %v", got, err)
	}
}

func TestEveryChargeOfAWindowAnnounces(t *testing.T) {
	// BUD-5: several attempts are one settlement; sweeps, corrections and seeds
	// charge like one; a moved request's own checks keep their thresholds.
	check := warned(ledger.Track, 100, 50, 80)
	admitted := func(t *testing.T, b *book) *ledger.Reservation {
		t.Helper()
		return expect(t, b.one(start, admit(1, ledger.Amounts{Spend: 85}, check)), ledger.Admitted).Reservation
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *book)
		want []string
	}{
		{"attempts", func(t *testing.T, b *book) {
			b.one(start, settle(admitted(t, b), used(60, 1), used(25, 1)))
		}, []string{"threshold 80"}},
		{"sweep", func(t *testing.T, b *book) { b.one(start, end(ledger.Sweep, admitted(t, b))) }, []string{"threshold 80"}},
		{"sweep and a lower use", func(t *testing.T, b *book) {
			r := admitted(t, b)
			b.one(start, end(ledger.Sweep, r))
			b.one(start, settle(r, used(10, 1)))
			b.charge(t, 2, 75, check)
		}, []string{"threshold 80"}},
		{"correction", func(t *testing.T, b *book) {
			r := admitted(t, b)
			b.one(start, settle(r, used(10, 1)))
			op := end(ledger.Adjust, r)
			op.Entry = &ledger.Entry{Amounts: ledger.Amounts{Spend: 90}}
			b.one(start, op)
		}, []string{"threshold 80", "soft 100"}},
		{"void", func(t *testing.T, b *book) { b.one(start, end(ledger.Void, admitted(t, b))) }, nil},
		{"seed", func(_ *testing.T, b *book) { b.one(start, amend(9, ledger.EventSeed, 60, check)) }, []string{"threshold 50"}},
		{"a candidate's own, after a move", func(t *testing.T, b *book) {
			op := admit(1, ledger.Amounts{})
			op.Candidates = []ledger.Candidate{candidate("m", ledger.Amounts{Spend: 1}, check)}
			r := expect(t, b.one(start, op), ledger.Admitted).Reservation
			next := end(ledger.Move, r)
			next.Candidates = []ledger.Candidate{candidate("n", ledger.Amounts{Spend: 1})}
			r = expect(t, b.one(start, next), ledger.Admitted).Reservation
			b.one(start, settle(r, attempt("m", 70, 1), attempt("n", 70, 1)))
		}, []string{"threshold 50"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			c.run(t, b)
			if got := b.announced(); !slices.Equal(got, c.want) {
				t.Fatalf("announced %v, want %v", got, c.want)
			}
			expectBalanced(t, b, start)
		})
	}
}

func TestThresholdsThatCannotBeAreInvalid(t *testing.T) {
	days := capOf(1, dollar, nil, 1)
	days.WarnPercent = []uint8{50}
	for _, c := range []ledger.Check{
		warned(ledger.Reserve, 100, 0), warned(ledger.Reserve, 100, 101), warned(ledger.Reserve, 100, 50, 50),
		warned(ledger.Reserve, 100, 80, 50), days,
	} {
		expect(t, newBook().one(start, admit(1, ledger.Amounts{Spend: 1}, c)), ledger.Invalid)
	}
}

// levels is what was announced on one budget, kept apart from the ledger.
type levels struct {
	percent uint8
	soft    bool
}

// expected are the notices that settled use brings about.
func (l *levels) expected(settled int64, c *ledger.Check, raised int64) (want []string) {
	amount := c.Amount + raised
	for _, p := range slices.Backward(c.WarnPercent) {
		if settled*100 >= amount*int64(p) {
			if p > l.percent {
				l.percent = p
				want = append(want, fmt.Sprintf("threshold %d", p))
			}
			break
		}
	}
	if c.Mode == ledger.Track && settled >= amount && !l.soft {
		l.soft = true
		want = append(want, "soft 100")
	}
	return want
}

func TestALevelIsAnnouncedOnceWhateverHappens(t *testing.T) {
	// BUD-5, BUD-9: amounts and thresholds change, windows are raised and reset,
	// requests are settled, swept and corrected in any order.
	rapid.Check(t, func(t *rapid.T) {
		b, told := newBook(), levels{}
		counter := budget("b", ledger.Track, 1).Counter
		type running struct {
			r     *ledger.Reservation
			check ledger.Check
		}
		var open []running
		for n := range rapid.IntRange(1, 40).Draw(t, "steps") {
			check := warned(
				rapid.SampledFrom([]ledger.Mode{ledger.Track, ledger.Observe}).Draw(t, "mode"), rapid.Int64Range(50, 200).Draw(t, "amount"),
				slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.Uint8Range(1, 100), 0, 4).Draw(t, "percents"))))...,
			)
			before := b.state(counter)
			var op *ledger.Op
			at := start + int64(n)
			switch action := rapid.IntRange(0, 9).Draw(t, "action"); {
			case action == 0:
				op = amend(1000+n, ledger.EventRaise, rapid.Int64Range(1, 50).Draw(t, "raise"), check)
			case action == 1:
				op, told = amend(1000+n, ledger.EventReset, 0, check), levels{}
			case action == 2:
				op = amend(1000+n, ledger.EventSeed, rapid.Int64Range(0, 20).Draw(t, "seed"), check)
			case action < 6 || len(open) == 0:
				op = admit(n+1, ledger.Amounts{Spend: rapid.Int64Range(0, 60).Draw(t, "wants")}, check)
			default:
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				check = open[i].check
				op = end(ledger.Sweep, open[i].r)
				if rapid.Bool().Draw(t, "settle") {
					op = settle(open[i].r, used(rapid.Int64Range(0, 60).Draw(t, "used"), 1))
				}
			}
			notices := len(b.outbox)
			result := b.one(at, op)
			if result.Verdict == ledger.Admitted {
				open = append(open, running{result.Reservation, check})
			}
			var want []string
			if after := b.state(counter); after.Settled > before.Settled {
				want = told.expected(after.Settled, &check, after.Raised)
			}
			if got := b.announced()[notices:]; !slices.Equal(got, want) {
				t.Fatalf("announced %v, want %v: %+v", got, want, b.state(counter))
			}
			for _, d := range b.verify(at) {
				t.Fatalf("%s of %s: have %d, want %d", d.Figure, d.Counter.Limit, d.Have, d.Want)
			}
		}
	})
}

func FuzzReadNotice(f *testing.F) {
	f.Add(ledger.AppendNotice(nil, &ledger.Notice{At: start, Workspace: workspace, Counter: counter("b"), Level: "soft", Percent: 100}))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ledger.DecodeNotice(b)
		if err != nil {
			return
		}
		if again, err := ledger.DecodeNotice(ledger.AppendNotice(nil, &n)); err != nil || again != n {
			t.Fatalf("%+v became %+v, %v", n, again, err)
		}
	})
}
