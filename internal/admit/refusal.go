// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/money"
)

// patienceMicros: a refusal that this much waiting will not cure tells clients
// not to retry (ERR-3).
const patienceMicros = 60 * 1_000_000

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
	f := fault.New(check.Code, "%s", p.sentence(&refusal.Reading, result.At))
	f.Details = details(check, &refusal.Reading)
	f.Details.Subject = p.subject(check)
	p.retryAdvice(f, refusal, result.At)
	if f.Code == fault.BudgetExceeded && p.Snapshot.Workspace.BudgetRefusal == 402 {
		f.Status = 402
	}
	if p.Snapshot.Workspace.HideAmounts {
		hideAmounts(f)
	}
	return f
}

// retryAdvice sets Retry-After, x-should-retry and X-Weir-Reset.
func (p *Plan) retryAdvice(f *fault.Fault, refusal *ledger.Refusal, at int64) {
	check := refusal.Check
	switch {
	case check.Kind == ledger.KindPolicy:
		f.NoRetry = true
	case check.Mode == ledger.Take && refusal.WaitMicros >= 0:
		f.RetryAfterSeconds = max(1, int(ceilSeconds(refusal.WaitMicros)))
		f.Details.Retryable = true
		f.NoRetry = refusal.WaitMicros > patienceMicros
	case refusal.Reading.Reason == "held":
		f.RetryAfterSeconds, f.NoRetry = heldRetrySeconds, false
		f.Details.Retryable = true
	default:
		f.NoRetry = true
		if refusal.Reading.ResetsAt > 0 && refusal.Reading.Reason != "larger_than_limit" {
			f.ResetSeconds = max(1, ceilSeconds(refusal.Reading.ResetsAt-at))
		}
	}
}

func ceilSeconds(micros int64) int64 { return (micros + 999_999) / 1_000_000 }

// subject names whose limit it is, in the caller's words.
func (p *Plan) subject(c *ledger.Check) string {
	if c.Scope == "key" {
		return p.Key.Name
	}
	return p.Snapshot.Workspace.Name
}

func (p *Plan) sentence(r *ledger.Reading, at int64) string {
	c := r.Check
	whose := fmt.Sprintf("%s %q", c.Scope, p.subject(c))
	if p.Snapshot.Workspace.HideAmounts {
		return fmt.Sprintf("the %s limit of %s is reached", c.Name, whose)
	}
	switch {
	case c.Kind == ledger.KindPolicy:
		return fmt.Sprintf("%s is disabled or has expired; ask whoever runs this gateway", whose)
	case c.Kind == ledger.KindFunds:
		return fmt.Sprintf("%s has no funds left: %s USD available; top it up", whose, available(r))
	case r.Reason == "larger_than_limit":
		return fmt.Sprintf("this request needs %s, the %s limit of %s is %s in all: it can never be admitted; send less or raise the limit",
			figure(c, r.Wanted), c.Name, whose, figure(c, c.Amount))
	case c.Kind == ledger.KindGauge:
		return fmt.Sprintf("%s has %d requests in flight, its limit is %d at once", whose, r.Held, c.Amount)
	case c.Kind == ledger.KindBucket:
		return fmt.Sprintf("the %s limit of %s is %s a minute, %s are used and this request needs %d",
			c.Name, whose, figure(c, c.Amount), figure(c, r.Used), r.Wanted)
	default:
		return fmt.Sprintf("the %s of %s is %s and %s are spent; it has room again at %s",
			c.Name, whose, figure(c, c.Amount), figure(c, r.Used), instant(r.ResetsAt, c.Zone))
	}
}

func available(r *ledger.Reading) string {
	return money.Nanos(r.Check.Credit - r.Used - r.Held).String()
}

// figure is an amount with its unit.
func figure(c *ledger.Check, v int64) string {
	switch c.Wants {
	case ledger.Spend:
		return money.Nanos(v).String() + " USD"
	case ledger.Tokens, ledger.Input:
		return strconv.FormatInt(v, 10) + " tokens"
	case ledger.Requests, ledger.Slots:
		return strconv.FormatInt(v, 10) + " requests"
	default:
		return strconv.FormatInt(v, 10)
	}
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

// details is ERR-1's object. Money is a decimal string of US dollars.
func details(c *ledger.Check, r *ledger.Reading) *fault.Details {
	plain := func(v int64) string {
		if c.Wants == ledger.Spend {
			return money.Nanos(v).String()
		}
		return strconv.FormatInt(v, 10)
	}
	d := &fault.Details{
		LimitID: LimitID(c), Scope: c.Scope, Metric: c.Wants.String(), Window: windowWord(c),
		ResetsAt: instant(r.ResetsAt, c.Zone), Reason: r.Reason,
	}
	if c.Kind == ledger.KindPolicy {
		return d
	}
	d.Amount, d.Used, d.Held, d.Wanted = plain(c.Amount), plain(r.Used), plain(r.Held), plain(r.Wanted)
	if c.Kind == ledger.KindFunds {
		d.Amount, d.Used = plain(c.Credit), plain(r.Used)
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
	default:
		return ""
	}
}

func hideAmounts(f *fault.Fault) {
	f.Details.Amount, f.Details.Used, f.Details.Held, f.Details.Wanted = "", "", "", ""
}
