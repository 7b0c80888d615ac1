// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
)

const (
	topUp      = ledger.EventTopUp
	credit     = ledger.EventCredit
	adjustment = ledger.EventAdjustment
)

func TestFundsAdmitWhileMoreThanNothingIsAvailable(t *testing.T) { // BAL-1, BAL-2, BAL-4
	for _, c := range []struct {
		name, kind, funds string
		line, paid        money.Nanos
		admitted          bool
	}{
		{"open needs none", tenant.Enterprise, tenant.Open, 0, 0, true},
		{"prepaid without money", tenant.Personal, tenant.Prepaid, 0, 0, false},
		{"prepaid with the least there is", tenant.Personal, tenant.Prepaid, 0, 1, true},
		{"a credit line counts for an enterprise", tenant.Enterprise, tenant.Prepaid, 1, 0, true},
		{"and for nobody else", tenant.Personal, tenant.Prepaid, 1, 0, false},
		{"a hold needs the worst case", tenant.Enterprise, tenant.PrepaidHold, 0, 10_102_999, false},
		{"which may take all", tenant.Enterprise, tenant.PrepaidHold, 0, 10_103_000, true},
		{"with the credit line", tenant.Enterprise, tenant.PrepaidHold, 10_103_000, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.ws.Type, w.ws.Funds, w.ws.CreditLine = c.kind, c.funds, c.line
			if c.paid > 0 {
				w.fund(topUp, c.paid)
			}
			if c.admitted {
				w.admit(chat("big"))
				return
			}
			w.refused(chat("big"), fault.InsufficientBalance)
		})
	}
}

func TestARunningRequestMaySettleBelowZeroAndLaterOnesAreRefused(t *testing.T) { // BAL-2, BAL-4
	w := newWorld(t)
	w.ws.Funds = tenant.Prepaid
	w.fund(topUp, money.Dollar)
	p1, r1 := w.admit(chat("big"))
	p2, r2 := w.admit(chat("big")) // nothing is held in advance
	w.settle(p1, r1, 0, 100_000)
	f := w.refuse(chat("big"), fault.InsufficientBalance)
	if f.HTTPStatus() != 402 || f.Details.Amount != "0" || f.RetryAfterSeconds != 0 || !f.NoRetry {
		t.Errorf("got %+v, %+v", f, f.Details)
	}
	w.settle(p2, r2, 0, 50_000)
	if f = w.refuse(chat("big"), fault.InsufficientBalance); f.Details.Amount != "-0.5" {
		t.Errorf("available %s, want -0.5", f.Details.Amount)
	}
	w.fund(credit, money.Dollar/2)
	w.refused(chat("big"), fault.InsufficientBalance) // exactly zero
	w.fund(topUp, 1)
	w.admit(chat("big"))
}

func TestATopUpIsPositiveAndAnAdjustmentSigned(t *testing.T) { // BAL-5
	w := newWorld(t)
	for _, c := range []struct {
		kind   ledger.EventKind
		amount money.Nanos
		want   ledger.Verdict
	}{
		{topUp, 0, ledger.Invalid},
		{topUp, -1, ledger.Invalid},
		{credit, -1, ledger.Invalid},
		{adjustment, -1, ledger.Done},
		{adjustment, 0, ledger.Invalid},
		{topUp, 1, ledger.Done},
	} {
		if got := w.fund(c.kind, c.amount); got.Verdict != c.want {
			t.Errorf("%s of %s: verdict %d, want %d", c.kind, c.amount, got.Verdict, c.want)
		}
	}
}

func TestHeldFundsAreGivenBackAtTheEnd(t *testing.T) { // BAL-6, ERR-2
	w := newWorld(t)
	w.ws.Funds = tenant.PrepaidHold
	w.fund(topUp, 15_000_000) // one worst case of 10,103,000
	p, r := w.admit(chat("big"))
	f := w.refuse(chat("big"), fault.InsufficientBalance)
	if f.RetryAfterSeconds != 5 || f.NoRetry || f.Details.Reason != "held" || !f.Details.Retryable || f.Details.Held != "0.010103" {
		t.Errorf("only held amounts are in the way: %+v, %+v", f, f.Details)
	}
	w.settle(p, r, 103, 10)
	w.admit(chat("big"))
}

func TestGoingPrepaidSeesWhatWasPaidAndSpentBefore(t *testing.T) { // BUD-8
	w := newWorld(t)
	w.fund(topUp, 3*money.Dollar)
	w.spend(2)
	w.ws.Funds = tenant.Prepaid
	w.admit(chat("big"))
	w.ws.Funds = tenant.Open
	w.spend(1)
	w.ws.Funds = tenant.Prepaid
	w.refused(chat("big"), fault.InsufficientBalance)
}

func TestFreeModelsPassSpentCapsButNotFunds(t *testing.T) { // PRC-4, BR-011
	w := newWorld(t)
	w.spend(1)
	w.key.Caps.Day = at(money.Dollar)
	w.refused(chat("big"), fault.DayLimitReached)
	w.admit(chat("free"))
	for _, funds := range []string{tenant.Prepaid, tenant.PrepaidHold} {
		w.ws.Funds = funds
		w.refused(chat("free"), fault.InsufficientBalance)
	}
	w.fund(topUp, 2*money.Dollar)
	w.admit(chat("free"))
}

func TestACapAdmitsUntilSpendReachesIt(t *testing.T) { // CAP-1, BR-133
	w := newWorld(t)
	w.key.Caps.Day = at(money.Dollar * 3 / 10)
	for range 3 {
		p, r := w.admit(chat("big"))
		w.settle(p, r, 100_000, 0) // exactly ten cents
	}
	f := w.refuse(chat("big"), fault.DayLimitReached)
	if f.Details.Used != "0.3" || f.Details.Amount != "0.3" || f.HTTPStatus() != 402 {
		t.Errorf("details %+v", f.Details)
	}
	w.key.Caps.Day = at(money.Dollar)
	w.admit(chat("big")) // raising takes effect at once (CAP-2)
	w.key.Caps.Day = nil
	w.admit(chat("big"))
	w.key.Caps.Day = at(money.Dollar * 3 / 10)
	w.refused(chat("big"), fault.DayLimitReached) // and forgets no spend
}
