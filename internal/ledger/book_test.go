// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/window"
)

const (
	second = int64(time.Second / time.Microsecond)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	dollar = int64(money.Dollar)
	cent   = dollar / 100

	// start is 2026-03-02 12:00 UTC, a Monday.
	start = int64(1_772_452_800) * second

	workspace = "ws_a"
	holdFor   = 30 * minute
)

// book is the simplest home of a ledger: maps, and everything that was written.
type book struct {
	generations map[string]int64
	counters    map[ledger.Counter]*ledger.State
	open        map[ledger.ID]*ledger.Reservation
	ended       map[ledger.ID]ledger.Ending
	quarters    []ledger.QuarterSum
	events      []ledger.Event
	calls       []ledger.Call
	refused     []ledger.Call
	outbox      []ledger.Notice
	dropped     int64 // calls before it may be gone from the log
}

func newBook() *book {
	return &book{
		generations: map[string]int64{},
		counters:    map[ledger.Counter]*ledger.State{},
		open:        map[ledger.ID]*ledger.Reservation{},
		ended:       map[ledger.ID]ledger.Ending{},
	}
}

// page loads exactly what the operations name.
func (b *book) page(ops []*ledger.Op) *ledger.Page {
	p := &ledger.Page{
		Generations: b.generations,
		Counters:    map[ledger.Counter]*ledger.State{},
		Open:        map[ledger.ID]*ledger.Reservation{},
		Ended:       map[ledger.ID]ledger.Ending{},
	}
	for _, op := range ops {
		op.Needs(func(c ledger.Counter, check *ledger.Check) {
			s := b.counters[c]
			if s == nil {
				return
			}
			if p.Counters[c] == nil {
				p.Counters[c] = s.Clone()
			}
			if check != nil && check.NeedsRebuild(p.Counters[c]) {
				check.Rebuild(p.Counters[c], b.quarters)
			}
		}, func(id ledger.ID) {
			if r := b.open[id]; r != nil {
				p.Open[id] = r
			} else if e, ok := b.ended[id]; ok {
				p.Ended[id] = e
			}
		})
	}
	return p
}

// apply decides one batch and keeps what it changed.
func (b *book) apply(at int64, ops ...*ledger.Op) []ledger.Result {
	p := b.page(ops)
	results, changes := ledger.Batch(p, ops, at)
	for _, c := range changes.Counters {
		b.counters[c] = p.Counters[c]
		if p.Counters[c].IsZero() {
			delete(b.counters, c)
		}
	}
	for _, r := range changes.Opened {
		b.open[r.ID] = r
	}
	for _, r := range changes.Replaced {
		b.open[r.ID] = r
	}
	for _, r := range changes.Closed {
		delete(b.open, r.ID)
	}
	for i := range changes.Events {
		e := changes.Events[i]
		ending := b.ended[e.ID]
		if e.Kind == ledger.EventCorrection {
			ending.Corrections++
		} else {
			ending.Kind = e.Kind
		}
		b.ended[e.ID] = ending
	}
	for i := range changes.Calls {
		c := &changes.Calls[i]
		if ending := b.ended[c.ID]; ending.Kind == ledger.EventSwept {
			ending.Swept = c.Reservation()
			b.ended[c.ID] = ending
		}
	}
	b.events = append(b.events, changes.Events...)
	b.calls = append(b.calls, changes.Calls...)
	b.refused = append(b.refused, changes.Refused...)
	b.outbox = append(b.outbox, changes.Outbox...)
	b.quarters = append(b.quarters, changes.Quarters...)
	return results
}

// one decides one operation.
func (b *book) one(at int64, op *ledger.Op) ledger.Result { return b.apply(at, op)[0] }

// verify feeds everything to a Verifier.
func (b *book) verify(at int64) []ledger.Difference {
	v := ledger.NewVerifier(at)
	if b.dropped != 0 {
		v.Dropped(b.dropped)
	}
	for c, s := range b.counters {
		v.Counter(c, s)
	}
	for _, r := range b.open {
		v.Reservation(r)
	}
	for i := range b.events {
		v.Event(&b.events[i])
	}
	for i := range b.calls {
		v.Call(&b.calls[i])
	}
	list := v.Differences()
	if n := v.Counts().Partial; n > 0 && len(list) == 0 && b.dropped == 0 {
		list = append(list, ledger.Difference{Figure: "not compared", Have: n})
	}
	return list
}

// state is a counter's row; the zero row when there is none.
func (b *book) state(c ledger.Counter) ledger.State {
	if s := b.counters[c]; s != nil {
		return *s
	}
	return ledger.State{}
}

func id(n int) ledger.ID {
	return ledger.NewID(start, [10]byte{8: byte(n >> 8), 9: byte(n)})
}

func counter(limit string) ledger.Counter {
	return ledger.Counter{Workspace: workspace, Limit: limit, Epoch: 1, Subject: "key_1"}
}

// rpm, tpm and slots are runtime limits (RUN-1).
func rpm(amount int64) ledger.Check {
	return ledger.Check{
		Counter: counter("rpm"), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Requests,
		Amount: amount, Code: "api_key_rpm_exceeded", Name: "rpm",
	}
}

func tpm(amount int64) ledger.Check {
	return ledger.Check{
		Counter: counter("tpm"), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Input, Charges: ledger.Tokens,
		Amount: amount, Code: "api_key_tpm_exceeded", Name: "tpm",
	}
}

func slots(amount int64) ledger.Check {
	return ledger.Check{
		Counter: counter("slots"), Kind: ledger.KindGauge, Mode: ledger.Take, Wants: ledger.Slots,
		Amount: amount, Code: "api_key_concurrency_exceeded", Name: "concurrency",
	}
}

// capOf is a spend cap: 1, 7 or 30 days, all on one counter.
func capOf(span int32, amount int64, zone *time.Location, epoch uint32) ledger.Check {
	code := map[int32]fault.Code{1: "day_limit_reached", 7: "seven_day_limit_reached", 30: "thirty_day_limit_reached"}[span]
	return ledger.Check{
		Counter: counter("days"), Kind: ledger.KindDays, Mode: ledger.Observe, Wants: ledger.Spend, Charges: ledger.Spend,
		Amount: amount, Span: span, Zone: zone, ZoneEpoch: epoch, Code: code, Name: "cap",
	}
}

// budget is one window of an hour.
func budget(limit string, mode ledger.Mode, amount int64) ledger.Check {
	c := ledger.Check{
		Counter: counter(limit), Kind: ledger.KindFixed, Mode: mode, Wants: ledger.Spend, Charges: ledger.Spend,
		Amount: amount, Window: window.Spec{Length: hour}, Code: "budget_exceeded", Name: limit,
	}
	c.Counter.Window, _ = c.Window.Bounds(start)
	return c
}

func funds(mode ledger.Mode, credit int64) ledger.Check {
	return ledger.Check{
		Counter: ledger.Counter{Workspace: workspace, Limit: "funds", Epoch: 1}, Kind: ledger.KindFunds, Mode: mode,
		Wants: ledger.Spend, Charges: ledger.Spend, Credit: credit, Code: "insufficient_balance", Name: "funds",
	}
}

func policy(code fault.Code, until int64) ledger.Check {
	return ledger.Check{Kind: ledger.KindPolicy, Mode: ledger.Reserve, Amount: until, Code: code, Name: string(code)}
}

// wants is one request of a cost, an input estimate and an output bound.
func wants(spend, input, output int64) ledger.Amounts {
	return ledger.Amounts{Spend: spend, Tokens: input + output, Input: input, Requests: 1, Slots: 1}
}

func candidate(model string, w ledger.Amounts, own ...ledger.Check) ledger.Candidate {
	return ledger.Candidate{Model: model, Provider: "p_" + model, Price: "price_" + model, Wants: w, Checks: own}
}

func admit(n int, w ledger.Amounts, checks ...ledger.Check) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Admit, ID: id(n), Workspace: workspace, HoldMicros: holdFor, Checks: checks,
		Subjects: ledger.Subjects{Key: "key_1"}, Candidates: []ledger.Candidate{candidate("m", w)},
	}
}

// used is what a provider reported of the model m.
func used(spend, tokens int64) ledger.Attempt {
	return ledger.Attempt{Model: "m", Provider: "p_m", Price: "price_m", Spend: spend, Tokens: tokens, Input: tokens}
}

func settle(r *ledger.Reservation, attempts ...ledger.Attempt) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Settle, Workspace: r.Workspace, Reservation: r, Settlement: &ledger.Settlement{Attempts: attempts},
	}
}

func end(verb ledger.Verb, r *ledger.Reservation) *ledger.Op {
	return &ledger.Op{Verb: verb, Workspace: r.Workspace, Reservation: r, HoldMicros: holdFor}
}

func fund(n int, amount int64, check ledger.Check) *ledger.Op {
	kind := ledger.EventTopUp
	if amount < 0 {
		kind = ledger.EventAdjustment
	}
	return &ledger.Op{
		Verb: ledger.Fund, ID: id(n), Workspace: workspace, Checks: []ledger.Check{check},
		Entry: &ledger.Entry{Kind: kind, Amounts: ledger.Amounts{Spend: amount}},
	}
}

func expect(t *testing.T, got ledger.Result, verdict ledger.Verdict) ledger.Result {
	t.Helper()
	if got.Verdict != verdict {
		t.Fatalf("verdict %d, want %d (refusal %+v)", got.Verdict, verdict, got.Refusal)
	}
	return got
}

func expectRefusal(t *testing.T, got ledger.Result, code fault.Code) *ledger.Refusal {
	t.Helper()
	expect(t, got, ledger.Refused)
	if got.Refusal.Check.Code != code {
		t.Fatalf("refused by %s, want %s", got.Refusal.Check.Code, code)
	}
	if got.Readings[got.Refusal.Index].Check != got.Refusal.Check {
		t.Fatalf("index %d is not the refusing check's", got.Refusal.Index)
	}
	return got.Refusal
}

func expectBalanced(t *testing.T, b *book, at int64) {
	t.Helper()
	for _, d := range b.verify(at) {
		t.Errorf("%s of %s: have %d, want %d", d.Figure, d.Counter.Limit, d.Have, d.Want)
	}
}
