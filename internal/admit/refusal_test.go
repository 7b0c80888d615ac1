// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

// answer is what a refusal must say and advise.
type answer struct {
	name    string
	prepare func(w *world) *call.Call
	code    fault.Code
	status  int
	says    []string // whose, amount, use, reset
	details fault.Details
	retry   int // Retry-After
	noRetry bool
	reset   int64 // X-Weir-Reset
}

func answers() []answer {
	return []answer{
		{
			"key status", func(w *world) *call.Call { w.key.Disabled = true; return chat("big") }, fault.APIKeyInactive, 403,
			[]string{`key "ci"`, "disabled"},
			fault.Details{LimitID: "key status", Scope: "key", Subject: "ci"},
			0, true, 0,
		},
		{
			"funds", func(w *world) *call.Call {
				w.fund(topUp, 2*money.Dollar)
				w.spend(5)
				w.ws.Funds = tenant.Prepaid
				return chat("big")
			},
			fault.InsufficientBalance, 402,
			[]string{`workspace "acme"`, "-3 USD", "top it up"},
			fault.Details{LimitID: "funds", Scope: "workspace", Subject: "acme", Metric: "spend", Amount: "-3", Held: "0", Wanted: "0.010103"},
			0, true, 0,
		},
		{
			"funds held", func(w *world) *call.Call {
				w.ws.Funds = tenant.PrepaidHold
				w.fund(topUp, 15_000_000)
				w.admit(chat("big"))
				return chat("big")
			},
			fault.InsufficientBalance, 402,
			[]string{`workspace "acme"`, "0.015 USD available", "0.010103 USD of them held", "up to 0.010103 USD"},
			fault.Details{
				LimitID: "funds", Scope: "workspace", Subject: "acme", Metric: "spend", Amount: "0.015", Held: "0.010103", Wanted: "0.010103",
				Reason: "held", Retryable: true,
			},
			5, false, 0,
		},
		{
			"day cap", func(w *world) *call.Call {
				w.spend(7)
				w.key.Caps = tenant.Caps{Day: at(5 * money.Dollar), SevenDay: at(6 * money.Dollar)}
				return chat("big")
			},
			fault.DayLimitReached, 402,
			[]string{`key "ci"`, "day cap", "5 USD", "7 USD", "2026-03-03T00:00:00Z"},
			fault.Details{
				LimitID: "key.day:key_1", Scope: "key", Subject: "ci", Metric: "spend", Window: "day", Amount: "5", Used: "7", Held: "0",
				Wanted: "0.010103", ResetsAt: "2026-03-03T00:00:00Z",
			},
			0, true, 12 * 3600,
		},
		{
			"30-day cap", func(w *world) *call.Call {
				w.spend(7)
				w.key.Caps.ThirtyDay = at(6 * money.Dollar)
				return chat("big")
			},
			fault.ThirtyDayLimitReached, 402,
			[]string{"30-day cap", "6 USD", "7 USD", "2026-04-01T00:00:00Z"},
			fault.Details{
				LimitID: "key.thirty_day:key_1", Scope: "key", Subject: "ci", Metric: "spend", Window: "thirty_day", Amount: "6", Used: "7",
				Held: "0", Wanted: "0.010103", ResetsAt: "2026-04-01T00:00:00Z",
			},
			0, true, 29*86_400 + 12*3600,
		},
		{
			"rpm", func(w *world) *call.Call {
				w.key.Limits.RPM = at(int64(4))
				for range 4 {
					w.admit(chat("big"))
				}
				return chat("big")
			},
			fault.APIKeyRPMExceeded, 429,
			[]string{`key "ci"`, "rpm", "4 requests a minute", "4 requests used", "needs 1 request;", "in 15 s"},
			fault.Details{
				LimitID: "key.rpm:key_1", Scope: "key", Subject: "ci", Metric: "requests", Window: "minute", Amount: "4", Used: "4", Held: "0",
				Wanted: "1", ResetsAt: "2026-03-02T12:01:00Z", Retryable: true,
			},
			15, false, 0,
		},
		{
			"tpm", func(w *world) *call.Call {
				w.ws.Limits.TPM = at(int64(6000))
				p, r := w.admit(chat("big"))
				w.settle(p, r, 103, 12_000)
				return chat("big")
			},
			fault.WorkspaceTPMExceeded, 429,
			[]string{`workspace "acme"`, "tpm", "6000 tokens a minute", "12103 tokens used", "needs 103 tokens", "in 63 s"},
			fault.Details{
				LimitID: "workspace.tpm", Scope: "workspace", Subject: "acme", Metric: "tokens", Window: "minute", Amount: "6000", Used: "12103",
				Held: "0", Wanted: "103", ResetsAt: "2026-03-02T12:02:01Z",
			},
			63, true, 0, // waiting cures it, but not within a minute (ERR-3)
		},
		{
			"tpm, alone", func(w *world) *call.Call { w.key.Limits.TPM = at(int64(102)); return chat("big") }, fault.APIKeyTPMExceeded, 429,
			[]string{`key "ci"`, "tpm", "102 tokens in all", "needs 103 tokens", "never"},
			fault.Details{
				LimitID: "key.tpm:key_1", Scope: "key", Subject: "ci", Metric: "tokens", Window: "minute", Amount: "102", Used: "0", Held: "0",
				Wanted: "103", ResetsAt: "2026-03-02T12:00:00Z", Reason: "larger_than_limit",
			},
			0, true, 0, // RUN-2
		},
		{
			"concurrency", func(w *world) *call.Call {
				w.ws.Limits.Concurrency = at(int64(2))
				w.admit(chat("big"))
				w.admit(chat("free"))
				return chat("big")
			},
			fault.WorkspaceConcurrencyExceeded, 429,
			[]string{`workspace "acme"`, "2 requests in flight", "2 requests at once"},
			fault.Details{
				LimitID: "workspace.concurrency", Scope: "workspace", Subject: "acme", Metric: "concurrency", Window: "in_flight", Amount: "2",
				Used: "0", Held: "2", Wanted: "1", Retryable: true,
			},
			1, false, 0,
		},
	}
}

func TestARefusalNamesItsLimitAndWhenToComeBack(t *testing.T) { // ERR-1, ERR-2, ERR-3, RUN-2, BR-138, BR-211
	for _, c := range answers() {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			f := w.refuse(c.prepare(w), c.code)
			if f.HTTPStatus() != c.status || f.RetryAfterSeconds != c.retry || f.NoRetry != c.noRetry || f.ResetSeconds != c.reset {
				t.Errorf("status %d, Retry-After %d, no retry %v, reset %d", f.HTTPStatus(), f.RetryAfterSeconds, f.NoRetry, f.ResetSeconds)
			}
			if *f.Details != c.details {
				t.Errorf("details\n%+v, want\n%+v", *f.Details, c.details)
			}
			for _, word := range c.says {
				if !strings.Contains(f.Message, word) {
					t.Errorf("%q does not say %q", f.Message, word)
				}
			}
		})
	}
}

func TestAWorkspaceCanHideTheAmounts(t *testing.T) { // ERR-1, BR-211
	for _, c := range answers() {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			request := c.prepare(w)
			open := w.refuse(request, c.code)
			w.ws.HideAmounts = true
			f := w.refuse(request, c.code)
			d, shown := f.Details, open.Details
			if d.Amount+d.Used+d.Held+d.Wanted != "" {
				t.Errorf("details show amounts: %+v", d)
			}
			figures := strings.NewReplacer(d.ResetsAt, "", "30-day", "", "7-day", "", " in 15 s", "", " in 63 s", "").Replace(f.Message)
			if strings.ContainsAny(figures, "0123456789") {
				t.Errorf("the message shows amounts: %q", f.Message)
			}
			if !strings.Contains(f.Message, c.says[0]) && !strings.Contains(f.Message, "ci") {
				t.Errorf("%q does not say whose", f.Message)
			}
			if d.LimitID != shown.LimitID || d.ResetsAt != shown.ResetsAt || f.RetryAfterSeconds != open.RetryAfterSeconds || f.NoRetry != open.NoRetry || f.ResetSeconds != open.ResetSeconds {
				t.Errorf("the advice differs: %+v", f)
			}
		})
	}
}

func TestRetryAfterIsTheLongestOfAllThatStandsInTheWay(t *testing.T) { // ERR-2
	for _, c := range []struct {
		name    string
		limit   func(w *world)
		code    fault.Code
		retry   int
		noRetry bool
	}{
		{"one alone", func(w *world) { w.key.Limits.Concurrency = at(int64(1)) }, fault.APIKeyConcurrencyExceeded, 1, false},
		{"a later one takes longer", func(w *world) {
			w.key.Limits.Concurrency, w.ws.Limits.RPM = at(int64(1)), at(int64(1))
		}, fault.APIKeyConcurrencyExceeded, 60, false},
		{"the first takes longest", func(w *world) {
			w.key.Limits.TPM, w.key.Limits.Concurrency, w.ws.Limits.TPM = at(int64(103)), at(int64(1)), at(int64(150))
		}, fault.APIKeyTPMExceeded, 60, false},
		{"of both layers", func(w *world) { w.key.Limits.TPM, w.ws.Limits.TPM = at(int64(150)), at(int64(110)) }, fault.APIKeyTPMExceeded, 53, false},
		{"the first is never passed", func(w *world) { w.key.Limits.TPM, w.ws.Limits.RPM = at(int64(50)), at(int64(1)) }, fault.APIKeyTPMExceeded, 0, true},
		{"a later one is never passed", func(w *world) { w.key.Limits.RPM, w.ws.Limits.TPM = at(int64(1)), at(int64(50)) }, fault.APIKeyRPMExceeded, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			wide := tenant.RuntimeLimits{RPM: at(int64(1000)), TPM: at(int64(100_000)), Concurrency: at(int64(10))}
			w.key.Limits, w.ws.Limits = wide, wide
			w.admit(chat("big"))
			w.key.Limits, w.ws.Limits = tenant.RuntimeLimits{}, tenant.RuntimeLimits{}
			c.limit(w)
			f := w.refuse(chat("big"), c.code)
			if f.RetryAfterSeconds != c.retry || f.NoRetry != c.noRetry {
				t.Errorf("Retry-After %d, no retry %v", f.RetryAfterSeconds, f.NoRetry)
			}
		})
	}
}

func TestALimitThatNeverPassesIsNamedBesideTheFirst(t *testing.T) { // ERR-2, RUN-2
	w := newWorld(t)
	w.key.Limits.RPM = at(int64(1))
	w.admit(chat("big"))
	w.ws.Limits.TPM = at(int64(50))
	f := w.refuse(chat("big"), fault.APIKeyRPMExceeded)
	if f.RetryAfterSeconds != 0 || !f.NoRetry || f.ResetSeconds != 0 || f.Details.Retryable {
		t.Errorf("got %+v, %+v", f, f.Details)
	}
	if !strings.Contains(f.Message, `whole tpm limit of workspace "acme"`) || strings.Contains(f.Message, "50") {
		t.Errorf("message %q", f.Message)
	}
}

func TestWaitingForHeldAmountsIsAdvisedOnlyWhereItHelps(t *testing.T) { // ERR-2
	for _, c := range []struct {
		name    string
		also    func(w *world)
		retry   int
		noRetry bool
	}{
		{"nothing else", func(*world) {}, 5, false},
		{"a slot", func(w *world) { w.key.Limits.Concurrency = at(int64(1)) }, 5, false},
		{"a bucket that takes longer", func(w *world) { w.key.Limits.TPM = at(int64(110)) }, 53, false},
		{"a cap that is spent", func(w *world) { w.key.Caps.Day = at(money.Nanos(1)) }, 0, true},
		{"a request that never fits", func(w *world) { w.ws.Limits.TPM = at(int64(5)) }, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p, r := w.admit(chat("big"))
			w.settle(p, r, 103, 1)
			w.ws.Funds = tenant.PrepaidHold
			w.fund(topUp, 16_000_000)
			w.key.Limits = tenant.RuntimeLimits{TPM: at(int64(1000)), Concurrency: at(int64(5))}
			w.admit(chat("big"))
			w.key.Limits.Concurrency = nil
			c.also(w)
			f := w.refuse(chat("big"), fault.InsufficientBalance)
			if f.RetryAfterSeconds != c.retry || f.NoRetry != c.noRetry {
				t.Errorf("Retry-After %d, no retry %v", f.RetryAfterSeconds, f.NoRetry)
			}
		})
	}
}

// refuseBy makes a plan refuse by one check, as the ledger answers it.
func refuseBy(w *world, c ledger.Check, r ledger.Reading) *fault.Fault {
	p := w.build(chat("big"))
	r.Check = &c
	return p.Refuse(&ledger.Result{
		Verdict: ledger.Refused, At: start, Readings: []ledger.Reading{r},
		Refusal: &ledger.Refusal{Check: &c, Reading: r, WaitMicros: r.WaitMicros},
	})
}

func TestABudgetsRefusalMovesTo402Alone(t *testing.T) { // ERR-7, ERR-2
	budget := ledger.Check{
		Counter: ledger.Counter{Workspace: "ws_a", Limit: "b_1"}, Kind: ledger.KindFixed, Mode: ledger.Reserve, Wants: ledger.Spend,
		Amount: int64(5 * money.Dollar), Code: fault.BudgetExceeded, Name: "org month", Scope: "org", Window: window.Spec{Period: window.PeriodMonth},
	}
	spent := ledger.Reading{Used: int64(5 * money.Dollar), Wanted: 1, WaitMicros: -1, ResetsAt: start + 30*second}
	w := newWorld(t)
	for _, status := range []int{429, 402} {
		w.ws.BudgetRefusal = status
		f := refuseBy(w, budget, spent)
		if f.HTTPStatus() != status || f.RetryAfterSeconds != 0 || !f.NoRetry || f.ResetSeconds != 30 {
			t.Errorf("%d: got %+v", status, f)
		}
		if f := w.refuseRPM(); f.HTTPStatus() != 429 {
			t.Errorf("%d: a runtime limit answers %d", status, f.HTTPStatus())
		}
	}
	held := spent
	held.Used, held.Held, held.Reason = 0, spent.Used, ledger.ReasonHeld
	if f := refuseBy(w, budget, held); f.RetryAfterSeconds != 5 || f.NoRetry || f.Details.Reason != "held" || !strings.Contains(f.Message, "held by running requests") {
		t.Errorf("held: %+v", f)
	}
	large := spent
	large.Wanted, large.Reason = int64(6*money.Dollar), ledger.ReasonLarger
	if f := refuseBy(w, budget, large); f.RetryAfterSeconds != 0 || !f.NoRetry || f.ResetSeconds != 0 || !strings.Contains(f.Message, "6 USD") {
		t.Errorf("larger: %+v", f)
	}
}

func (w *world) refuseRPM() *fault.Fault {
	return refuseBy(w, ledger.Check{
		Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Requests, Amount: 1, Code: fault.APIKeyRPMExceeded, Name: "rpm", Scope: "key",
	}, ledger.Reading{Used: 1, Wanted: 1, WaitMicros: 1})
}

func TestAWaitOfSixtySecondsIsStillWaitedFor(t *testing.T) { // ERR-3
	bucket := ledger.Check{Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Input, Amount: 10, Code: fault.APIKeyTPMExceeded, Scope: "key"}
	for _, c := range []struct {
		wait    int64
		retry   int
		noRetry bool
	}{
		{0, 1, false},
		{1, 1, false},
		{second, 1, false},
		{second + 1, 2, false},
		{60 * second, 60, false},
		{60*second + 1, 61, true},
		{math.MaxInt64, 9_223_372_036_855, true},
	} {
		f := refuseBy(newWorld(t), bucket, ledger.Reading{Wanted: 1, WaitMicros: c.wait})
		if f.RetryAfterSeconds != c.retry || f.NoRetry != c.noRetry || f.Details.Retryable == c.noRetry {
			t.Errorf("%d µs: Retry-After %d, no retry %v, retryable %v", c.wait, f.RetryAfterSeconds, f.NoRetry, f.Details.Retryable)
		}
	}
}

func TestRateHeadersDescribeTheTightestBucket(t *testing.T) { // RAT-3
	bucket := func(limit, used, wanted, resets int64) ledger.Reading {
		return ledger.Reading{
			Check: &ledger.Check{Kind: ledger.KindBucket, Mode: ledger.Take, Amount: limit}, Used: used, Wanted: wanted, ResetsAt: start + resets,
		}
	}
	gauge := ledger.Reading{Check: &ledger.Check{Kind: ledger.KindGauge, Mode: ledger.Take, Amount: 1}, Held: 1}
	days := ledger.Reading{Check: &ledger.Check{Kind: ledger.KindDays, Mode: ledger.Observe, Amount: 1}, Used: 1}
	for _, c := range []struct {
		name     string
		readings []ledger.Reading
		admitted bool
		want     admit.RateHeaders
		ok       bool
	}{
		{"nothing applies", nil, true, admit.RateHeaders{}, false},
		{"concurrency and money never", []ledger.Reading{gauge, days}, true, admit.RateHeaders{}, false},
		{"a full bucket", []ledger.Reading{bucket(60, 0, 1, 0)}, true, admit.RateHeaders{Limit: 60, Remaining: 59, ResetSeconds: 1}, true},
		{"refused: nothing was taken", []ledger.Reading{bucket(60, 60, 1, 60*second)}, false, admit.RateHeaders{Limit: 60, ResetSeconds: 60}, true},
		{"the smaller share", []ledger.Reading{bucket(60, 10, 1, 10*second), bucket(1000, 500, 100, 30*second)}, true, admit.RateHeaders{Limit: 1000, Remaining: 400, ResetSeconds: 36}, true},
		{"among equals the first", []ledger.Reading{bucket(10, 4, 1, 24*second), bucket(20, 9, 1, 27*second)}, true, admit.RateHeaders{Limit: 10, Remaining: 5, ResetSeconds: 30}, true},
		{"debt shows as nothing left", []ledger.Reading{bucket(10, 25, 1, 150*second)}, false, admit.RateHeaders{Limit: 10, ResetSeconds: 150}, true},
		{"a third of a second is a second", []ledger.Reading{bucket(180, 0, 1, 0)}, true, admit.RateHeaders{Limit: 180, Remaining: 179, ResetSeconds: 1}, true},
		{"the largest limit", []ledger.Reading{bucket(1_000_000_000_000, 0, 1_000_000_000_000, 0)}, true, admit.RateHeaders{Limit: 1_000_000_000_000, ResetSeconds: 60}, true},
		{"past every bound", []ledger.Reading{bucket(1, math.MaxInt64, math.MaxInt64, math.MaxInt64-start)}, true, admit.RateHeaders{Limit: 1, ResetSeconds: 9_223_372_036_855}, true},
		{"a limit of zero is none", []ledger.Reading{bucket(0, 0, 1, 0)}, true, admit.RateHeaders{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := admit.Rate(c.readings, c.admitted, start); got != c.want || ok != c.ok {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
}

// What the headers promise after an admission is what the next reading says.
func TestRateHeadersAgreeWithTheNextReading(t *testing.T) { // RAT-3, BR-140
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		limit := rapid.Int64Range(103, 1_000_000).Draw(rt, "tpm")
		w.key.Limits.TPM = &limit
		for range rapid.IntRange(1, 4).Draw(rt, "requests") {
			w.clock.Advance(time.Duration(rapid.IntRange(0, 30_000).Draw(rt, "pause")) * time.Millisecond)
			p := w.build(chat("big"))
			result := w.submit(p.Op)
			admitted := result.Verdict == ledger.Admitted
			got, ok := admit.Rate(result.Readings, admitted, result.At)
			next, _ := admit.Rate(w.read(), false, result.At)
			if !ok || got.Limit != next.Limit || abs(got.Remaining-next.Remaining) > 1 || abs(got.ResetSeconds-next.ResetSeconds) > 1 {
				rt.Fatalf("promised %+v, then read %+v", got, next)
			}
		}
	})
}

func abs(n int64) int64 { return max(n, -n) }

func TestAKeySeesEachOfItsLimits(t *testing.T) { // KEY-8, EFF-1
	w := newWorld(t)
	w.fund(topUp, 10*money.Dollar)
	w.spend(4)
	w.ws.Funds, w.ws.Limits.RPM = tenant.Prepaid, at(int64(60))
	w.key.Caps.Day, w.key.Team, w.key.ExpiresAt = at(5*money.Dollar), "red", start+3600*second
	w.key.FromTemplate = map[string]string{"caps.day": "2026-03-01"}
	w.admit(chat("big"))
	v := admit.Describe(w.snapshot(), w.key, w.who, w.read())
	want := []admit.LimitView{
		{ID: "funds", Name: "balance", Scope: "workspace", Metric: "spend", Admission: "observe", Origin: "workspace", Used: "0", Held: "0", Remaining: "6"},
		{
			ID: "key.day:key_1", Name: "day cap", Scope: "key", Metric: "spend", Window: "day", Admission: "observe",
			Origin: "from template, 2026-03-01", Amount: "5", Used: "4", Held: "0", Remaining: "1", ResetsAt: "2026-03-03T00:00:00Z",
		},
		{
			ID: "workspace.rpm", Name: "rpm", Scope: "workspace", Metric: "requests", Window: "minute", Admission: "take", Origin: "workspace",
			Amount: "60", Used: "1", Held: "0", Remaining: "59", ResetsAt: "2026-03-02T12:00:01Z",
		},
	}
	got, _ := json.Marshal(v.Limits)
	wanted, _ := json.Marshal(want)
	if string(got) != string(wanted) {
		t.Errorf("got\n%s, want\n%s", got, wanted)
	}
	if v.Status != "active" || v.Team != "red" || v.ExpiresAt != "2026-03-02T13:00:00Z" || v.Workspace != "acme" {
		t.Errorf("got %+v", v)
	}
	w.clock.Advance(time.Hour)
	if v = admit.Describe(w.snapshot(), w.key, w.who, w.read()); v.Status != "expired" {
		t.Errorf("status %q", v.Status)
	}
	w.key.Disabled = true
	if v = admit.Describe(w.snapshot(), w.key, w.who, w.read()); v.Status != "disabled" {
		t.Errorf("status %q", v.Status)
	}
}
