// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

// uncached counts tokens without cache reads (USE-3).
func uncached(c ledger.Check) ledger.Check {
	c.Charges = ledger.Uncached
	if c.Wants == ledger.Spend {
		c.Wants = ledger.Tokens
	}
	return c
}

// usage is an attempt with so many tokens, of them so many not from a cache.
func usage(tokens, uncached int64) ledger.Attempt {
	a := used(0, tokens)
	a.Uncached = uncached
	return a
}

func TestCacheReadsAreLeftOutWhereALimitSaysSo(t *testing.T) {
	// USE-3, BR-145: a budget holds the whole estimate and is charged what was not
	// read from a cache; a sweep knows of no cache.
	fixed, bucket, sliding := uncached(budget("u", ledger.Reserve, 1000)), uncached(tpm(1000)), uncached(rule(1000))
	whole := uncached(budget("w", ledger.Reserve, 1000))
	whole.Charges = ledger.Tokens
	for _, c := range []struct {
		name string
		ops  func(r *ledger.Reservation) []*ledger.Op
		want [4]int64 // uncached budget, bucket, rule; whole budget
	}{
		{"settled", func(r *ledger.Reservation) []*ledger.Op { return []*ledger.Op{settle(r, usage(180, 50))} }, [4]int64{50, 50, 50, 180}},
		{"two attempts", func(r *ledger.Reservation) []*ledger.Op {
			return []*ledger.Op{settle(r, usage(180, 50), usage(30, 30))}
		}, [4]int64{80, 80, 80, 210}},
		{"all cached", func(r *ledger.Reservation) []*ledger.Op { return []*ledger.Op{settle(r, usage(180, 0))} }, [4]int64{0, 0, 0, 180}},
		{"swept", func(r *ledger.Reservation) []*ledger.Op { return []*ledger.Op{end(ledger.Sweep, r)} }, [4]int64{200, 200, 200, 200}},
		{"swept, then settled", func(r *ledger.Reservation) []*ledger.Op {
			return []*ledger.Op{end(ledger.Sweep, r), settle(r, usage(180, 50))}
		}, [4]int64{50, 50, 50, 180}},
		{"adjusted", func(r *ledger.Reservation) []*ledger.Op {
			op := end(ledger.Adjust, r)
			op.Entry = &ledger.Entry{Amounts: ledger.Amounts{Tokens: -10, Uncached: -5}}
			return []*ledger.Op{settle(r, usage(180, 50)), op}
		}, [4]int64{45, 50, 45, 170}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			checks := []ledger.Check{fixed, bucket, sliding, whole}
			r := expect(t, b.one(start, admit(1, wants(1, 100, 100), checks...)), ledger.Admitted).Reservation
			for _, op := range c.ops(r) {
				expect(t, b.one(start, op), ledger.Done)
			}
			read := b.one(start, &ledger.Op{Verb: ledger.Read, Workspace: workspace, Checks: checks})
			for i, want := range c.want {
				if got := read.Readings[i].Used; got != want {
					t.Errorf("%s: used %d, want %d", checks[i].Name, got, want)
				}
			}
			expectBalanced(t, b, start)
		})
	}
	expect(t, newBook().one(start, settle(&ledger.Reservation{ID: id(1), Workspace: workspace}, usage(1, -1))), ledger.Invalid)
}

func TestABudgetMaySkipWhatNobodyReported(t *testing.T) {
	// RES-3: that one budget is not charged; everything else is.
	skips := budget("skips", ledger.Reserve, dollar)
	skips.SkipMissing = true
	estimated := used(30*cent, 9)
	estimated.Estimated = true
	adjust := func(r *ledger.Reservation) *ledger.Op {
		op := end(ledger.Adjust, r)
		op.Entry = &ledger.Entry{Amounts: ledger.Amounts{Spend: -5 * cent}}
		return op
	}
	for _, c := range []struct {
		name        string
		ops         func(r *ledger.Reservation) []*ledger.Op
		skips, rest int64
	}{
		{"estimated", func(r *ledger.Reservation) []*ledger.Op { return []*ledger.Op{settle(r, estimated)} }, 0, 30 * cent},
		{"reported", func(r *ledger.Reservation) []*ledger.Op { return []*ledger.Op{settle(r, used(20*cent, 9))} }, 20 * cent, 20 * cent},
		{"one of two", func(r *ledger.Reservation) []*ledger.Op { return []*ledger.Op{settle(r, used(20*cent, 9), estimated)} }, 20 * cent, 50 * cent},
		{"swept", func(r *ledger.Reservation) []*ledger.Op { return []*ledger.Op{end(ledger.Sweep, r)} }, 40 * cent, 40 * cent},
		{"swept, then estimated", func(r *ledger.Reservation) []*ledger.Op {
			return []*ledger.Op{end(ledger.Sweep, r), settle(r, estimated)}
		}, 0, 30 * cent},
		{"swept, then reported", func(r *ledger.Reservation) []*ledger.Op {
			return []*ledger.Op{end(ledger.Sweep, r), settle(r, used(20*cent, 9))}
		}, 20 * cent, 20 * cent},
		{"estimated, then adjusted", func(r *ledger.Reservation) []*ledger.Op {
			return []*ledger.Op{settle(r, estimated), adjust(r)}
		}, 0, 25 * cent},
		{"reported, then adjusted", func(r *ledger.Reservation) []*ledger.Op {
			return []*ledger.Op{settle(r, used(20*cent, 9)), adjust(r)}
		}, 15 * cent, 15 * cent},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			rest := budget("rest", ledger.Reserve, dollar)
			r := expect(t, b.one(start, admit(1, wants(40*cent, 1, 1), skips, rest)), ledger.Admitted).Reservation
			for _, op := range c.ops(r) {
				if op.Verb == ledger.Adjust {
					op.Reservation = b.calls[0].Reservation()
				}
				expect(t, b.one(start, op), ledger.Done)
			}
			for check, want := range map[*ledger.Check]int64{&skips: c.skips, &rest: c.rest} {
				if s := b.state(check.Counter); s.Settled != want || s.Held != 0 {
					t.Errorf("%s: settled %d, held %d, want %d", check.Name, s.Settled, s.Held, want)
				}
			}
			expectBalanced(t, b, start)
		})
	}
}

func TestUncachedIsNeverMoreThanTokensWhateverHappens(t *testing.T) {
	// USE-3, RES-2: two budgets on the same requests, with and without cache reads.
	rapid.Check(t, func(t *rapid.T) {
		b := newBook()
		without := uncached(budget("without", ledger.Track, 0))
		with := without
		with.Counter, with.Charges = budget("with", ledger.Track, 0).Counter, ledger.Tokens
		var known []*ledger.Reservation
		for n := range rapid.IntRange(1, 30).Draw(t, "steps") {
			at := start + int64(n)
			if len(known) == 0 || rapid.Bool().Draw(t, "admit") {
				op := admit(n+1, wants(0, rapid.Int64Range(0, 50).Draw(t, "in"), rapid.Int64Range(0, 50).Draw(t, "out")), without, with)
				known = append(known, b.one(at, op).Reservation)
				continue
			}
			r := rapid.SampledFrom(known).Draw(t, "which")
			op := end(ledger.Sweep, r)
			if rapid.Bool().Draw(t, "settle") {
				tokens := rapid.Int64Range(0, 100).Draw(t, "tokens")
				op = settle(r, usage(tokens, rapid.Int64Range(0, tokens).Draw(t, "uncached")))
			}
			b.one(at, op)
			if some, all := b.state(without.Counter).Settled, b.state(with.Counter).Settled; some < 0 || some > all {
				t.Fatalf("%d uncached of %d", some, all)
			}
			for _, d := range b.verify(at) {
				t.Fatalf("%s of %s: have %d, want %d", d.Figure, d.Counter.Limit, d.Have, d.Want)
			}
		}
	})
}
