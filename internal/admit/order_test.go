// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
)

// obstacle makes one check fail.
type obstacle struct {
	code fault.Code
	make func(w *world, c *call.Call)
}

func obstacles() []obstacle {
	limits := func(f func(w *world) *tenant.RuntimeLimits, set func(*tenant.RuntimeLimits)) func(*world, *call.Call) {
		return func(w *world, _ *call.Call) { set(f(w)) }
	}
	key := func(w *world) *tenant.RuntimeLimits { return &w.key.Limits }
	top := func(w *world) *tenant.RuntimeLimits { return &w.ws.Limits }
	rpm := func(l *tenant.RuntimeLimits) { l.RPM = at(int64(2)) }
	tpm := func(l *tenant.RuntimeLimits) { l.TPM = at(int64(206)) }
	concurrency := func(l *tenant.RuntimeLimits) { l.Concurrency = at(int64(1)) }
	return []obstacle{
		{fault.APIKeyInactive, func(w *world, _ *call.Call) { w.key.Disabled = true }},
		{fault.InsufficientBalance, func(w *world, _ *call.Call) { w.ws.Funds = tenant.Prepaid }},
		{fault.ModelNotFound, func(_ *world, c *call.Call) { c.Model = "ghost" }},
		{fault.ModelNotAllowed, func(w *world, _ *call.Call) { w.key.AllowedModels = &[]string{"other"} }},
		{fault.ModelUnpriced, func(w *world, c *call.Call) {
			if c.Model == "big" {
				c.Model = "unpriced"
			}
			if w.ws.Funds == tenant.Open && !w.key.Caps.Any() {
				w.key.Caps.ThirtyDay = at(1000 * money.Dollar)
			}
		}},
		{fault.MaxOutputTokensExceeded, func(w *world, c *call.Call) {
			w.key.MaxOutputTokens, c.OutputBound, c.OutputField = at(int64(10)), 11, "max_completion_tokens"
		}},
		{fault.DayLimitReached, func(w *world, _ *call.Call) { w.key.Caps.Day = at(money.Dollar) }},
		{fault.SevenDayLimitReached, func(w *world, _ *call.Call) { w.key.Caps.SevenDay = at(money.Dollar) }},
		{fault.ThirtyDayLimitReached, func(w *world, _ *call.Call) { w.key.Caps.ThirtyDay = at(money.Dollar) }},
		{fault.APIKeyRPMExceeded, limits(key, rpm)},
		{fault.APIKeyTPMExceeded, limits(key, tpm)},
		{fault.APIKeyConcurrencyExceeded, limits(key, concurrency)},
		{fault.WorkspaceRPMExceeded, limits(top, rpm)},
		{fault.WorkspaceTPMExceeded, limits(top, tpm)},
		{fault.WorkspaceConcurrencyExceeded, limits(top, concurrency)},
	}
}

// spent is a world in which two dollars are spent and every runtime limit of the
// obstacles is full: one request has ended, one is in flight.
func spent(t *testing.T) *world {
	w := newWorld(t)
	wide := tenant.RuntimeLimits{RPM: at(int64(2)), TPM: at(int64(206)), Concurrency: at(int64(1))}
	w.spend(2) // before any limit was set
	w.key.Limits, w.ws.Limits = wide, wide
	p, r := w.admit(chat("big"))
	w.settle(p, r, 103, 0)
	w.admit(chat("big"))
	w.key.Limits, w.ws.Limits = tenant.RuntimeLimits{}, tenant.RuntimeLimits{}
	return w
}

// expected is the first of two codes that the same request can get. A name that
// does not exist is not allowed where the key has a list, so that nobody learns
// names by trying (KEY-5).
func expected(first, second fault.Code) fault.Code {
	if first == fault.ModelNotFound && second == fault.ModelNotAllowed {
		return fault.ModelNotAllowed
	}
	return first
}

func TestOfTwoChecksThatFailTheFirstInThePublishedOrderAnswers(t *testing.T) { // ORD-1, ORD-2
	list := obstacles()
	for i, first := range list {
		for _, other := range list[i:] {
			t.Run(string(first.code)+" before "+string(other.code), func(t *testing.T) {
				w, c := spent(t), chat("big")
				other.make(w, c)
				first.make(w, c)
				w.refused(c, expected(first.code, other.code))
			})
		}
	}
}

func TestOfAllChecksThatFailTheFirstInThePublishedOrderAnswers(t *testing.T) { // ORD-1
	list := obstacles()
	for i := range list {
		w, c := spent(t), chat("big")
		for _, o := range slices.Backward(list[i:]) {
			o.make(w, c)
		}
		want := list[i].code
		if want == fault.ModelNotFound {
			want = fault.ModelNotAllowed
		}
		w.refused(c, want)
	}
}

func TestTheObstaclesAreTheRegistrysRefusalsInOrder(t *testing.T) { // ORD-1
	var got, want []fault.Code
	for _, o := range obstacles() {
		got = append(got, o.code)
	}
	for _, info := range fault.All() {
		if slices.Contains(got, info.Code) {
			want = append(want, info.Code)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFundsThatDoNotCoverTheWorstCaseAnswerBeforeThePolicy(t *testing.T) { // ORD-1, BAL-6
	w, c := newWorld(t), chat("big")
	w.ws.Funds = tenant.PrepaidHold
	w.fund(topUp, 1_000_000)
	w.key.MaxOutputTokens, c.OutputBound = at(int64(900)), 901
	w.refused(c, fault.InsufficientBalance)
	w.fund(topUp, money.Dollar)
	w.refused(c, fault.MaxOutputTokensExceeded)
	// A name that may not be called shows nothing of its price.
	w.fund(adjustment, -money.Dollar)
	w.key.AllowedModels = &[]string{"other"}
	w.refused(c, fault.ModelNotAllowed)
}

func TestARequestThatConcurrencyRefusesConsumesNoRPM(t *testing.T) { // BR-134, ORD-2
	w := newWorld(t)
	w.key.Limits = tenant.RuntimeLimits{RPM: at(int64(2)), Concurrency: at(int64(1))}
	a, ra := w.admit(chat("big"))
	w.refused(chat("big"), fault.APIKeyConcurrencyExceeded)
	w.settle(a, ra, 103, 5)
	w.admit(chat("big"))
	w.refused(chat("big"), fault.APIKeyRPMExceeded)
}
