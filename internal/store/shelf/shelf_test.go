// SPDX-License-Identifier: Apache-2.0

package shelf_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// ENGINE 7: within ten seconds time never goes back; every larger step is told.
func TestInstantsGoBackOnlyByToldSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clock.NewManual(1_000_000_000_000)
		var steps []store.ClockStep
		i, err := shelf.NewInstant(c, 0, false, func(s store.ClockStep) { steps = append(steps, s) })
		if err != nil {
			t.Fatal(err)
		}
		last := i.Next()
		for range 20 {
			c.Advance(time.Duration(rapid.Int64Range(-30e9, 30e9).Draw(t, "step")))
			told := len(steps)
			peek := i.Peek()
			at := i.Next()
			if at != peek {
				t.Fatalf("peeked %d, then %d", peek, at)
			}
			if at < last && (len(steps) != told+1 || steps[told] != (store.ClockStep{From: last, To: at})) {
				t.Fatalf("from %d to %d, told %v", last, at, steps[told:])
			}
			if at != c.Now() && (at != last || c.Now() < last-10_000_000) {
				t.Fatalf("instant %d, clock %d, last %d", at, c.Now(), last)
			}
			last = at
		}
	})
}

func TestTheStartsBoundIsAnHour(t *testing.T) {
	const last = int64(1_000_000_000_000)
	hour := time.Hour.Microseconds()
	for behind, want := range map[int64]error{0: nil, hour: nil, hour + 1: store.ErrClock} {
		_, err := shelf.NewInstant(clock.NewManual(last-behind), last, false, nil)
		if !errors.Is(err, want) {
			t.Errorf("%d µs behind: %v, want %v", behind, err, want)
		}
		if _, err := shelf.NewInstant(clock.NewManual(last-behind), last, true, nil); err != nil {
			t.Errorf("%d µs behind, accepted: %v", behind, err)
		}
	}
}

func TestBalanceNamesWhatDiffers(t *testing.T) {
	a, b := ledger.Counter{Workspace: "acme", Limit: "budget"}, ledger.Counter{Workspace: "acme", Limit: "slots"}
	for _, c := range []struct {
		counters, open map[ledger.Counter]int64
		named          string
	}{
		{map[ledger.Counter]int64{a: 5}, map[ledger.Counter]int64{a: 5}, ""},
		{nil, nil, ""},
		{map[ledger.Counter]int64{a: 5, b: 1}, map[ledger.Counter]int64{a: 5}, "slots"},
		{map[ledger.Counter]int64{a: 5}, map[ledger.Counter]int64{a: 5, b: 1}, "slots"},
		{map[ledger.Counter]int64{a: 5}, map[ledger.Counter]int64{a: 6}, "budget"},
	} {
		err := shelf.Balance(c.counters, c.open)
		if c.named == "" && err != nil || c.named != "" && (!errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), c.named)) {
			t.Errorf("%v against %v: %v, want an error that names %q", c.counters, c.open, err, c.named)
		}
	}
}

// ENGINE 3: no refusal goes uncounted, whatever is taken when, and no second of
// a workspace leaves more than 200 full records.
func TestEveryRefusalIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r shelf.Refusals
		var added, taken, serial int64
		records := make(map[ledger.ID]int64)
		take := func(limit int) {
			list := r.Take(limit)
			if len(list) > limit {
				t.Fatalf("took %d, at most %d", len(list), limit)
			}
			for _, c := range list {
				taken += c.Count
				records[c.ID] += c.Count
			}
		}
		at := int64(1_700_000_000_000_000)
		seconds := map[int64]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			at += rapid.Int64Range(0, 40_000_000).Draw(t, "passed")
			seconds[at/1_000_000] = true
			calls := make([]ledger.Call, rapid.IntRange(0, 150).Draw(t, "refused"))
			for i := range calls {
				serial++
				calls[i] = ledger.Call{ID: ledger.NewID(serial*1000, [10]byte{}), Workspace: "acme", Key: "k", Code: "c"}
			}
			added += int64(len(calls))
			r.Add(calls, at)
			if rapid.Bool().Draw(t, "take") {
				take(rapid.IntRange(1, 100).Draw(t, "limit"))
			}
		}
		for r.Waiting() {
			take(100)
		}
		if taken != added {
			t.Fatalf("%d added, %d counted", added, taken)
		}
		if bound := 202 * len(seconds); len(records) > bound {
			t.Fatalf("%d records of %d seconds", len(records), len(seconds))
		}
	})
}

func TestSumsStopAtTheEnds(t *testing.T) {
	for _, c := range []struct{ a, b, want int64 }{
		{1, 2, 3},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MinInt64, -1, math.MinInt64},
		{math.MaxInt64, math.MinInt64, -1},
	} {
		if got := shelf.Saturate(c.a, c.b); got != c.want {
			t.Errorf("%d + %d = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
