// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/money"
)

// use is one admission on one limit.
type use struct {
	*call
	check *admin.CheckView
}

// limits recomputes, from the call log alone, what every limit had room for at
// each admission: none was passed by what it admitted. Where an admission and
// an end have the same instant their order is not known, and the end is taken
// to have been first.
func (a *audit) limits() {
	uses := map[string][]use{}
	for _, c := range a.calls {
		for i := range c.Checks {
			check := &c.Checks[i]
			if check.Verdict != "pass" {
				a.fault("%s (%s) was admitted, and %s says %s", c.ClientID, c.ID, check.ID, check.Verdict)
			}
			group := check.ID + " " + workspaceOf(c.KeyName)
			if check.Metric != "requests" && check.Window != "minute" {
				group += " " + check.ResetsAt // of a window that does not slide
			}
			uses[group] = append(uses[group], use{c, check})
		}
	}
	for group, list := range uses {
		slices.SortFunc(list, func(x, y use) int { return cmp.Compare(x.at, y.at) })
		check := list[0].check
		switch {
		case check.Metric == "concurrency":
			a.slots(group, list)
		case check.Admission == "reserve", check.Admission == "observe":
			a.budget(group, list)
		case check.Metric == "requests" && check.Window == "minute":
			a.bucket(group, list)
		case check.Metric == "requests" && strings.HasSuffix(check.Window, "s"):
			a.sliding(group, list)
		default:
			continue // track, users, and tokens: `weir verify` recomputes those
		}
		a.found["limits"]++
		a.found["admissions on limits"] += len(list)
	}
}

// amount is the limit as the admission saw it, in nano-dollars, tokens or
// requests.
func (a *audit) amount(u use) int64 {
	a.w.t.Helper()
	if u.check.ID == "funds" {
		paid := map[string]string{"held": heldCredit, "paid": paidCredit}[u.KeyName]
		return a.figure("spend", paid)
	}
	return a.figure(u.check.Metric, u.check.Amount)
}

func (a *audit) figure(metric, text string) int64 {
	a.w.t.Helper()
	if metric == "spend" {
		n, err := money.ParseUSD(text)
		if err != nil {
			a.w.t.Fatalf("amount %q: %v", text, err)
		}
		return int64(n)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		a.w.t.Fatalf("amount %q: %v", text, err)
	}
	return n
}

// slots: never more in flight than the limit.
func (a *audit) slots(group string, list []use) {
	var ends []int64
	for i, u := range list {
		ends = slices.DeleteFunc(ends, func(ended int64) bool { return ended <= u.at })
		ends = append(ends, u.ended)
		if last := i+1 == len(list) || list[i+1].at > u.at; last && int64(len(ends)) > a.amount(u) {
			a.fault("%s: %d in flight after %s, the limit is %s", group, len(ends), u.ID, u.check.Amount)
		}
	}
}

// budget: settled use, holds and the wish are within a reserving limit; settled
// use is below one that only observes.
func (a *audit) budget(group string, list []use) {
	for i, u := range list {
		reserves := u.check.Admission == "reserve"
		metric := u.check.Metric
		if want := u.hold(metric); reserves && a.figure(metric, u.check.Wanted) != want {
			a.fault("%s wanted %s of %s, its worst case is %d", u.ID, u.check.Wanted, group, want)
		}
		sum := int64(0)
		for _, v := range list[:i] {
			switch {
			case v.ended < u.at:
				sum += v.charge(metric)
			case !reserves:
			case v.ended == u.at:
				sum += min(v.charge(metric), v.hold(metric))
			default:
				sum += v.hold(metric)
			}
		}
		if reserves && sum+u.hold(metric) > a.amount(u) || !reserves && sum >= a.amount(u) {
			a.fault("%s: %d used and held, %s (%s) wanted %d and was admitted by a limit of %s", group, sum, u.ID, u.At, u.hold(metric), u.check.Amount)
		}
	}
}

func (u use) charge(metric string) int64 {
	if metric == "spend" {
		return int64(u.spend)
	}
	return u.Tokens
}

func (u use) hold(metric string) int64 {
	if metric == "spend" {
		return int64(u.worst)
	}
	return u.Estimate.InputTokens + u.Estimate.OutputTokens
}

// counted leaves out those that gave everything back (RES-10).
func counted(list []use) []use {
	return slices.DeleteFunc(list, func(u use) bool { return u.Outcome == "undone" })
}

// largest is the highest amount that a limit had in the round.
func (a *audit) largest(list []use) (most int64) {
	for _, u := range list {
		most = max(most, a.amount(u))
	}
	return most
}

// bucket: a minute's worth at once, then what flows in; in 1/60,000,000 of a
// request, and a millisecond to spare.
func (a *audit) bucket(group string, list []use) {
	limit := a.largest(list)
	const one = 60_000_000
	level, last := int64(0), list[0].at
	for _, u := range counted(list) {
		level = max(0, level-(u.at-last)*limit) + one
		last = u.at
		if level > limit*(one+1000) {
			a.fault("%s: %s (%s) was more than %d a minute let in", group, u.ID, u.At, limit)
			return
		}
	}
}

// sliding: no window of the rule's length holds more than its limit (RAT-1).
func (a *audit) sliding(group string, list []use) {
	seconds, err := strconv.ParseInt(strings.TrimSuffix(list[0].check.Window, "s"), 10, 64)
	if err != nil {
		a.w.t.Fatalf("%s: %v", group, err)
	}
	limit, list := a.largest(list), counted(list)
	for i := int(limit); i < len(list); i++ {
		if first := list[i-int(limit)]; list[i].at-first.at < seconds*1_000_000 {
			a.fault("%s: more than %d between %s and %s, in less than %d s", group, limit, first.At, list[i].At, seconds)
			return
		}
	}
}
