// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"
	"math"
	"time"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/rule"
)

// patienceMicros: a refusal that this much waiting will not cure tells clients
// not to retry (ERR-3).
const patienceMicros = 60 * microsPerSecond

const microsPerSecond = 1_000_000

// heldRetrySeconds: only held amounts are in the way, so trying again soon is
// sensible (ERR-2).
const heldRetrySeconds = 5

// Refuse turns a refused result into what the client sees: which limit, whose,
// its amount, use and reset time (ERR-1 to ERR-3, ERR-7).
func (p *Plan) Refuse(result *ledger.Result) *fault.Fault {
	refusal := result.Refusal
	check := refusal.Check
	if check.Kind == ledger.KindPolicy && p.policy != nil && check.Code == p.policy.Code {
		return p.policy
	}
	if check.Kind == ledger.KindPolicy && check.Name == ProcessLimit && p.throttled != nil {
		return p.throttled
	}
	f := fault.New(check.Code, "%s", p.sentence(refusal))
	if never := larger(result); never != nil && never.Check != check {
		f.Message += "; besides, it needs more than the whole " + title(never.Check) + " of " + p.whose(never.Check) + ", so waiting does not help"
	}
	if refusal.Reading.Reason == ledger.ReasonLarger && !p.Snapshot.Workspace.HideAmounts {
		f.Message += p.smaller(result)
	}
	f.Details = details(check, &refusal.Reading)
	f.Details.Subject = p.subject(check)
	p.retryAdvice(f, result)
	if f.Code == fault.BudgetExceeded && p.Snapshot.Workspace.BudgetRefusal == 402 {
		f.Status = 402
	}
	if p.Snapshot.Workspace.HideAmounts {
		hideAmounts(f)
	}
	return f
}

// smaller tells with which output bound a request that is larger than a whole
// hard budget would fit now (RUN-2).
func (p *Plan) smaller(result *ledger.Result) string {
	bound := p.fits(result, func(c *ledger.Check) bool { return c.Kind == ledger.KindFixed })
	if bound < 1 {
		return ""
	}
	return fmt.Sprintf("; asking for at most %s of output, it would fit now", counted(bound, "token"))
}

// retryAdvice sets Retry-After, x-should-retry and X-Weir-Reset.
func (p *Plan) retryAdvice(f *fault.Fault, result *ledger.Result) {
	refusal := result.Refusal
	f.NoRetry = true
	switch check := refusal.Check; {
	case check.Kind == ledger.KindPolicy:
	case check.Mode == ledger.Take:
		// The ledger's wait is that of every runtime limit and rule that stands
		// against the request, the soonest of its candidates; below 0: RUN-2.
		if refusal.WaitMicros >= 0 {
			f.RetryAfterSeconds = int(max(1, ceilSeconds(refusal.WaitMicros)))
			f.NoRetry = refusal.WaitMicros > patienceMicros
		}
	default:
		if wait := heldWait(result); wait > 0 {
			f.RetryAfterSeconds = int(max(heldRetrySeconds, ceilSeconds(wait)))
			f.NoRetry = wait > patienceMicros
		}
		if resets := refusal.Reading.ResetsAt; resets > 0 && refusal.Reading.Reason != ledger.ReasonLarger {
			f.ResetSeconds = max(1, ceilSeconds(resets-result.At))
		}
	}
	f.Details.Retryable = !f.NoRetry
}

// heldWait is how long to wait, in microseconds, where nothing but held amounts
// (and runtime limits) are in the way of a request; 0 where something else is.
func heldWait(result *ledger.Result) int64 {
	wait := int64(heldRetrySeconds * microsPerSecond)
	for i := range result.Readings {
		r := &result.Readings[i]
		switch {
		case r.Pass || r.Reason == ledger.ReasonHeld:
		case r.Check.Mode == ledger.Take && r.WaitMicros >= 0:
			wait = max(wait, r.WaitMicros)
		default:
			return 0
		}
	}
	return wait
}

// larger finds a limit that the request alone exceeds (RUN-2); nil: none.
func larger(result *ledger.Result) *ledger.Reading {
	for i := range result.Readings {
		if r := &result.Readings[i]; !r.Pass && r.Reason == ledger.ReasonLarger {
			return r
		}
	}
	return nil
}

func ceilSeconds(micros int64) int64 {
	seconds := micros / microsPerSecond
	if micros%microsPerSecond > 0 {
		seconds++
	}
	return seconds
}

// subject names whose limit it is, in the caller's words.
func (p *Plan) subject(c *ledger.Check) string {
	switch c.Scope {
	case string(budget.ScopeKey), string(rule.SubjectKey):
		return p.Key.Name
	case string(budget.ScopePlan):
		return p.Key.Plan
	case string(budget.ScopeUser), string(budget.ScopeProject), string(budget.ScopeTeam), string(rule.SubjectTag):
		return c.Counter.Subject
	default:
		return p.Snapshot.Workspace.Name
	}
}

func (p *Plan) whose(c *ledger.Check) string {
	switch c.Scope {
	case string(rule.SubjectKey):
		return fmt.Sprintf("key %q", p.subject(c))
	case string(budget.ScopePlan):
		return fmt.Sprintf("plan %q, which counts key %q by itself,", p.subject(c), p.Key.Name)
	default:
		return fmt.Sprintf("%s %q", c.Scope, p.subject(c))
	}
}

// title is a limit's name in a sentence: those that somebody named are quoted.
func title(c *ledger.Check) string {
	switch c.Kind {
	case ledger.KindFixed:
		return fmt.Sprintf("budget %q", c.Name)
	case ledger.KindSliding:
		return fmt.Sprintf("rate rule %q", c.Name)
	case ledger.KindBucket, ledger.KindGauge:
		return c.Name + " limit"
	default:
		return c.Name
	}
}

// sentence is the message: what is in the way, and what helps.
func (p *Plan) sentence(refusal *ledger.Refusal) string {
	r, whose := &refusal.Reading, p.whose(refusal.Check)
	c := r.Check
	if c.Kind == ledger.KindPolicy {
		return whose + " is disabled or has expired; ask whoever runs this gateway"
	}
	if p.Snapshot.Workspace.HideAmounts {
		return bareSentence(refusal, whose)
	}
	switch {
	case c.Kind == ledger.KindFunds && c.Mode == ledger.Observe:
		return fmt.Sprintf("%s has no funds left: %s USD available; top it up", whose, available(r))
	case c.Kind == ledger.KindFunds:
		return fmt.Sprintf("%s has not the funds for this request: %s USD available, %s of them held by running requests, and it may cost up to %s; top it up, or ask for fewer output tokens",
			whose, funds(r), figure(c, r.Held), figure(c, r.Wanted))
	case c.Kind == ledger.KindRoster:
		return fmt.Sprintf("%s has had requests of %d users, which is all that it may have; name one of them, or have max_users raised", whose, r.Used)
	case r.Reason == ledger.ReasonLarger:
		return fmt.Sprintf("this request needs %s, the %s of %s is %s in all (%s used): it can never be admitted; send less or have the limit raised",
			figure(c, r.Wanted), title(c), whose, figure(c, r.Amount), figure(c, r.Used))
	case c.Kind == ledger.KindGauge:
		return fmt.Sprintf("%s has %s in flight, its limit is %s at once; try again when one has ended", whose, figure(c, r.Held), figure(c, r.Amount))
	case c.Kind == ledger.KindBucket || c.Kind == ledger.KindSliding:
		return fmt.Sprintf("the %s of %s is %s %s (%s used) and this request needs %s; there is room for it in %d s",
			title(c), whose, figure(c, r.Amount), windowPhrase(c), figure(c, r.Used), figure(c, r.Wanted), ceilSeconds(r.WaitMicros))
	case c.Mode == ledger.Reserve:
		return fmt.Sprintf("the %s of %s is %s: %s are spent, %s are held by running requests, and this request needs up to %s%s",
			title(c), whose, figure(c, r.Amount), figure(c, r.Used), figure(c, r.Held), figure(c, r.Wanted), again(r))
	default:
		return fmt.Sprintf("the %s of %s is %s and %s are spent%s", title(c), whose, figure(c, r.Amount), figure(c, r.Used), again(r))
	}
}

// windowPhrase is the length of a rate limit's window in a sentence.
func windowPhrase(c *ledger.Check) string {
	if c.Kind == ledger.KindBucket {
		return "a minute"
	}
	return "in " + counted(c.Window.Length/microsPerSecond, "second")
}

// bareSentence names no amounts (ERR-1). When there is room again is none.
func bareSentence(refusal *ledger.Refusal, whose string) string {
	r := &refusal.Reading
	c := r.Check
	switch {
	case c.Kind == ledger.KindFunds && c.Mode == ledger.Observe:
		return whose + " has no funds left; top it up"
	case c.Kind == ledger.KindFunds:
		return whose + " has not the funds for this request; top it up, or ask for fewer output tokens"
	case r.Reason == ledger.ReasonLarger:
		return fmt.Sprintf("this request needs more than the whole %s of %s: it can never be admitted; send less or have the limit raised", title(c), whose)
	case c.Kind == ledger.KindGauge:
		return whose + " has as many requests in flight as it may; try again when one has ended"
	case c.Kind == ledger.KindRoster:
		return whose + " has as many users as it may have; name one of them, or have max_users raised"
	case c.Kind == ledger.KindBucket || c.Kind == ledger.KindSliding:
		return fmt.Sprintf("the %s of %s is used up; there is room for this request in %d s", title(c), whose, ceilSeconds(r.WaitMicros))
	case c.Mode == ledger.Reserve:
		return fmt.Sprintf("the %s of %s has no room for this request%s", title(c), whose, again(r))
	default:
		return fmt.Sprintf("the %s of %s is spent%s", title(c), whose, again(r))
	}
}

// again says when a limit of time has room again.
func again(r *ledger.Reading) string {
	if r.ResetsAt == 0 {
		return ""
	}
	return "; it has room again at " + instant(r.ResetsAt, zoneOf(r.Check))
}

// funds are what a workspace may spend, before what is held; available, after.
func funds(r *ledger.Reading) money.Nanos {
	return money.Nanos(less(r.Check.Credit, r.Used))
}

func available(r *ledger.Reading) money.Nanos { return money.Nanos(less(int64(funds(r)), r.Held)) }

// less is a - b; it saturates.
func less(a, b int64) int64 {
	if b == math.MinInt64 {
		return math.MaxInt64
	}
	n, _ := money.SaturatingAdd(a, -b)
	return n
}

// figure is an amount with its unit.
func figure(c *ledger.Check, v int64) string {
	switch c.Wants {
	case ledger.Spend:
		return money.Nanos(v).String() + " USD"
	case ledger.Tokens, ledger.Input:
		return counted(v, "token")
	case ledger.Requests, ledger.Slots:
		return counted(v, "request")
	default:
		return figureOf(v)
	}
}

func counted(v int64, unit string) string {
	if v == 1 {
		return "1 " + unit
	}
	return figureOf(v) + " " + unit + "s"
}

func instant(at int64, zone *time.Location) string {
	if at == 0 {
		return ""
	}
	if zone == nil {
		zone = time.UTC
	}
	return time.UnixMicro(at).In(zone).Format(time.RFC3339)
}

// zoneOf is the zone that a limit's own calendar is in; nil is UTC.
func zoneOf(c *ledger.Check) *time.Location {
	if c.Kind == ledger.KindFixed {
		return c.Window.Zone
	}
	return c.Zone
}

// details is ERR-1's object. Money is a decimal string of US dollars. The
// amount of funds is what there is to spend, credit line included.
func details(c *ledger.Check, r *ledger.Reading) *fault.Details {
	plain := func(v int64) string {
		if c.Wants == ledger.Spend {
			return money.Nanos(v).String()
		}
		return figureOf(v)
	}
	d := &fault.Details{
		LimitID: LimitID(c), Scope: c.Scope, Metric: c.Wants.String(), Window: windowWord(c),
		ResetsAt: instant(r.ResetsAt, zoneOf(c)), Reason: r.Reason,
	}
	switch c.Kind {
	case ledger.KindPolicy:
		d.Metric = ""
	case ledger.KindFunds:
		d.Amount, d.Held, d.Wanted = plain(int64(funds(r))), plain(r.Held), plain(r.Wanted)
	default:
		d.Amount, d.Used, d.Held, d.Wanted = plain(r.Amount), plain(r.Used), plain(r.Held), plain(r.Wanted)
	}
	return d
}

// LimitID names a limit in answers and reports: its counter's limit, its own
// word where several limits share a counter, and its subject.
func LimitID(c *ledger.Check) string {
	id := c.Counter.Limit
	if c.Kind == ledger.KindDays {
		id = "key." + windowWord(c)
	}
	if c.Kind == ledger.KindPolicy {
		id = c.Name
	}
	if c.Counter.Subject != "" {
		id += ":" + c.Counter.Subject
	}
	return id
}

func windowWord(c *ledger.Check) string {
	switch {
	case c.Kind == ledger.KindDays && c.Span == 1:
		return "day"
	case c.Kind == ledger.KindDays && c.Span == 7:
		return "seven_day"
	case c.Kind == ledger.KindDays:
		return "thirty_day"
	case c.Kind == ledger.KindBucket:
		return "minute"
	case c.Kind == ledger.KindGauge:
		return "in_flight"
	case c.Kind == ledger.KindFixed || c.Kind == ledger.KindSliding:
		return c.Window.String()
	default:
		return ""
	}
}

func hideAmounts(f *fault.Fault) {
	f.Details.Amount, f.Details.Used, f.Details.Held, f.Details.Wanted = "", "", "", ""
}
