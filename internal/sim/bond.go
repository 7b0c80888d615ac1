// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/weirhq/weir/internal/ledger"
)

// bond is the audit's own record of an admitted request: what it holds, and
// which counters must be charged at its end. It is made from the checks of the
// operation, never from the reservation that the ledger made of them.
type bond struct {
	at              int64 // of the admission
	worst           ledger.Amounts
	model, provider string
	dues            []due
	ended           int64 // the instant of its end; 0: it runs
	swept           bool
}

// due is one counter of a bond.
type due struct {
	counter        ledger.Counter
	kind           ledger.Kind
	wants, charges ledger.Metric
	// model and provider are a candidate's whose own limit it is.
	model, provider string
	// skip: no charge for a usage that nobody reported; skipped: so it happened.
	skip, skipped bool
	// warns: at so many percents of the amount, or past it when soft (BUD-5).
	warns    bool
	amount   int64
	percents []uint8
	soft     bool

	held, taken, limit, length int64
}

// once: requests and slots are counted once, whichever candidate is tried.
func (d *due) once() bool { return d.wants == ledger.Requests || d.wants == ledger.Slots }

func (d *due) bears(model, provider string) bool {
	return d.model == "" && d.provider == "" || d.model == model && d.provider == provider
}

// usage is what one attempt came to.
type usage struct {
	model, provider string
	amounts         ledger.Amounts
	estimated       bool
}

// of is what the due's counter gets of a usage.
func (d *due) of(u usage) int64 {
	if d.skip && u.estimated || !d.bears(u.model, u.provider) {
		return 0
	}
	return u.amounts.Of(d.charges)
}

// books tells whether charges of the due are in the counter's settled sum.
func (d *due) books() bool {
	return d.kind == ledger.KindFixed || d.kind == ledger.KindFunds || d.kind == ledger.KindDays
}

// bind adds what a candidate's checks hold and will charge.
func (b *bond) bind(op *ledger.Op, c *ledger.Candidate) {
	b.model, b.provider, b.worst = c.Model, c.Provider, c.Worst
	for i := range op.Checks {
		b.add(&op.Checks[i], c, "", "")
	}
	for i := range c.Checks {
		b.add(&c.Checks[i], c, c.Model, c.Provider)
	}
}

func (b *bond) add(check *ledger.Check, c *ledger.Candidate, model, provider string) {
	if check.Kind == ledger.KindPolicy || check.Kind == ledger.KindRoster {
		return
	}
	at := slices.IndexFunc(b.dues, func(d due) bool {
		return d.counter == check.Counter && (d.once() || d.bears(model, provider))
	})
	if at < 0 {
		at = len(b.dues)
		b.dues = append(b.dues, due{
			counter: check.Counter, kind: check.Kind, wants: check.Wants, charges: check.Charges, model: model, provider: provider,
			skip: check.SkipMissing,
		})
	}
	d := &b.dues[at]
	if soft := check.Mode == ledger.Track; check.Kind == ledger.KindFixed && !d.warns && (soft || len(check.WarnPercent) > 0) {
		d.warns, d.amount, d.percents, d.soft = true, check.Amount, check.WarnPercent, soft
	}
	want := c.Wants.Of(check.Wants)
	switch {
	case check.Kind == ledger.KindBucket || check.Kind == ledger.KindSliding:
		d.limit = check.Amount
		if d.taken == 0 {
			d.taken, d.length = want, check.Window.Length
		}
	case check.Kind == ledger.KindGauge || check.Mode == ledger.Reserve:
		if d.held == 0 {
			d.held = want
		}
	default:
	}
}

// unbind gives back what a request holds that moves on: all but what is counted
// once.
func (b *bond) unbind() {
	for i := range b.dues {
		if d := &b.dues[i]; !d.once() {
			d.held, d.taken = 0, 0
		}
	}
}

// clone is a bond that can be changed without the other.
func (b *bond) clone() *bond {
	c := *b
	c.dues = slices.Clone(b.dues)
	return &c
}

func (a *audit) hold(b *bond, sign int64) {
	for i := range b.dues {
		if d := &b.dues[i]; d.held != 0 {
			a.held[d.counter] += sign * d.held
		}
	}
}

// forgives: what was charged to a counter until its last reset is not given back
// any more (BUD-9).
func (a *audit) forgives(c ledger.Counter, ended int64) bool {
	at, reset := a.resets[c]
	return reset && ended <= at
}

// usages are what an ending says that was used, by the operation itself.
func usages(op *ledger.Op, b *bond, kind ledger.EventKind) []usage {
	if kind == ledger.EventSwept {
		worst := b.worst
		worst.Uncached = worst.Tokens
		return []usage{{b.model, b.provider, worst, false}}
	}
	if op.Verb != ledger.Settle || op.Settlement == nil || len(op.Settlement.Attempts) == 0 {
		return []usage{{model: b.model, provider: b.provider}}
	}
	var list []usage
	for i := range op.Settlement.Attempts {
		t := &op.Settlement.Attempts[i]
		list = append(list, usage{
			t.Model, t.Provider, ledger.Amounts{Spend: t.Spend, Tokens: t.Tokens, Input: t.Input, Uncached: t.Uncached}, t.Estimated,
		})
	}
	return list
}

// charged holds the events of an end against what it owes: each counter that
// bears an attempt gets it whole, and no other gets anything.
func (a *audit) charged(op *ledger.Op, b *bond, events []ledger.Event) {
	used := usages(op, b, events[0].Kind)
	if len(used) != len(events) {
		a.fail("a charge reaches its counters", "%s: %d events of %d attempts", events[0].ID, len(events), len(used))
		return
	}
	for i := range events {
		e, u := &events[i], used[i]
		if e.Spend != u.amounts.Spend || e.Tokens != u.amounts.Tokens || e.Model != u.model || e.Provider != u.provider {
			a.fail("an event says what was used", "%s: %d, %d tokens of %s, want %d, %d of %s", e.ID, e.Spend, e.Tokens, e.Model, u.amounts.Spend, u.amounts.Tokens, u.model)
		}
		a.reaches(b, e, func(d *due) int64 { return d.of(u) })
	}
	for i := range b.dues {
		d := &b.dues[i]
		var total int64
		for _, u := range used {
			total += d.of(u)
			d.skipped = d.skipped || d.skip && u.estimated && d.bears(u.model, u.provider)
		}
		a.announce(d, total)
		a.used(events[0].ID, d, total, events[0].Kind == ledger.EventUndone)
	}
	b.ended, b.swept = a.d.at, events[0].Kind == ledger.EventSwept
}

// reaches compares the charges of an event with those that are due.
func (a *audit) reaches(b *bond, e *ledger.Event, of func(*due) int64) {
	want := map[ledger.Counter]int64{}
	for i := range b.dues {
		if d := &b.dues[i]; d.books() {
			want[d.counter] += of(d)
		}
	}
	for i := range e.Charges {
		c := &e.Charges[i]
		if want[c.Counter] != c.Amount {
			a.fail("a charge reaches its counters", "%s charged %d to %s of %q, not %d", e.ID, c.Amount, c.Counter.Limit, c.Counter.Subject, want[c.Counter])
		}
		delete(want, c.Counter)
	}
	for i := range b.dues {
		if c := b.dues[i].counter; want[c] != 0 {
			a.fail("a charge reaches its counters", "%s charged nothing to %s of %q, not %d", e.ID, c.Limit, c.Subject, want[c])
		}
	}
}

// corrected takes a difference that is booked after the end: the usage that came
// after a sweep (RES-2), or an operator's (RES-9).
func (a *audit) corrected(op *ledger.Op, b *bond, e *ledger.Event) {
	var delta func(*due) int64
	var total ledger.Amounts
	if op.Verb == ledger.Adjust {
		total = op.Entry.Amounts
		delta = func(d *due) int64 {
			if d.skipped || !d.bears(b.model, b.provider) || d.kind == ledger.KindBucket {
				return 0
			}
			return op.Entry.Amounts.Of(d.charges)
		}
		a.adjusted[e.ID] += total.Spend
		a.corrections[e.ID]++
	} else {
		swept := usages(op, b, ledger.EventSwept)[0]
		used := usages(op, b, ledger.EventSettled)
		for _, u := range used {
			total.Spend, total.Tokens = total.Spend+u.amounts.Spend, total.Tokens+u.amounts.Tokens
		}
		total.Spend, total.Tokens = total.Spend-swept.amounts.Spend, total.Tokens-swept.amounts.Tokens
		delta = func(d *due) int64 {
			n := -d.of(swept)
			for _, u := range used {
				n += d.of(u)
			}
			return n
		}
		b.swept = false
	}
	if e.Kind != ledger.EventCorrection || e.Spend != total.Spend || e.Tokens != total.Tokens {
		a.fail("an event says what was used", "%s is corrected by %d, %d tokens, want %d, %d", e.ID, e.Spend, e.Tokens, total.Spend, total.Tokens)
	}
	kept := func(d *due) int64 {
		n := delta(d)
		if n < 0 && a.forgives(d.counter, b.ended) {
			return 0
		}
		return n
	}
	a.reaches(b, e, kept)
	for i := range b.dues {
		d := &b.dues[i]
		a.announce(d, kept(d))
		a.revised(e.ID, b, d, delta(d))
	}
}
