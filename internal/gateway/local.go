// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// LocalLimit is this process's own bucket, over all keys (RAT-6,
// local_rate_limit): PerFill units are added each IntervalMicros, up to Capacity.
type LocalLimit struct {
	Tokens                            bool // else requests
	Capacity, PerFill, IntervalMicros int64
}

// localBucket holds it, in memory: it is full again after a restart, and each
// process has its own.
type localBucket struct {
	LocalLimit
	mu      sync.Mutex // guards what follows
	level   int64      // below zero: debt, which must refill first
	step    int64      // of the last fill, in intervals since the epoch of the clock
	aside   int64      // of level: for requests that the step decides now
	decided chan struct{}
}

// newLocalBucket is nil without a limit.
func newLocalBucket(l *LocalLimit, now int64) *localBucket {
	if l == nil {
		return nil
	}
	return &localBucket{LocalLimit: *l, level: l.Capacity, step: now / l.IntervalMicros}
}

// fill adds what is due. A clock that goes back adds nothing and takes nothing.
func (b *localBucket) fill(now int64) {
	step := now / b.IntervalMicros
	due := step - b.step
	b.step = step
	if due <= 0 {
		return
	}
	missing := b.Capacity - b.level
	if due >= (missing+b.PerFill-1)/b.PerFill {
		b.level = b.Capacity
		return
	}
	b.level += due * b.PerFill
}

// reserve puts units aside while the step decides. What others have put aside is
// not taken: where that alone is in the way, decided is closed when one of them is
// through, and the caller asks again. Where the units are not there, wait is the
// time in microseconds until they would be; -1: the bucket never holds so many.
func (b *localBucket) reserve(units, now int64) (ok bool, decided <-chan struct{}, level, wait int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	switch {
	case units > b.Capacity:
		return false, nil, b.level, -1
	case units <= b.level-b.aside:
		b.aside += units
		return true, nil, b.level, 0
	case units <= b.level:
		if b.decided == nil {
			b.decided = make(chan struct{})
		}
		return false, b.decided, b.level, 0
	}
	fills := (units - b.level + b.PerFill - 1) / b.PerFill
	return false, nil, b.level, (b.step+fills)*b.IntervalMicros - now
}

// decide takes what was put aside, or leaves it.
func (b *localBucket) decide(units int64, take bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aside -= units
	if take {
		b.level -= units
	}
	if b.decided != nil {
		close(b.decided)
		b.decided = nil
	}
}

// correct adds units back, or takes more when they are below zero.
func (b *localBucket) correct(units, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	b.level = min(b.Capacity, b.level+units)
}

func (b *localBucket) metric() string {
	if b.Tokens {
		return "tokens"
	}
	return "requests"
}

// throttle asks the process's own bucket before the step, for a refusal of it has
// its place in the step: last of check 5, so that all others answer first and
// nothing is written (RAT-6). It is false when the client has gone.
func (x *exchange) throttle() bool {
	b := x.g.local
	if b == nil {
		return true
	}
	x.leaveLocal()
	units, takes := x.plan.Asked()
	if !takes {
		return true
	}
	if !b.Tokens {
		units = 1
	}
	for {
		ok, decided, level, wait := b.reserve(units, x.g.Clock.Now())
		switch {
		case ok:
			x.asked = units
			return true
		case decided == nil:
			x.plan.Throttle(b.refusal(units, level, wait, x.snapshot.Workspace.HideAmounts))
			return true
		}
		select {
		case <-decided:
		case <-x.r.Context().Done():
			x.refuse(unavailable())
			return false
		}
	}
}

// takeLocal is for an admitted request, leaveLocal for any other.
func (x *exchange) takeLocal() {
	if x.asked > 0 {
		x.g.local.decide(x.asked, true)
		x.throttled, x.asked = x.asked, 0
	}
}

func (x *exchange) leaveLocal() {
	if x.asked > 0 {
		x.g.local.decide(x.asked, false)
		x.asked = 0
	}
}

// refusal says that it is this process's limit, and nobody's in particular.
func (b *localBucket) refusal(units, level, wait int64, hide bool) *fault.Fault {
	f := fault.New(fault.RateLimited, "the rate limit of this gateway process, over all keys, has no room for this request: it holds %d %s at most, %d are left, and this request needs %d",
		b.Capacity, b.metric(), max(0, level), units)
	f.Details = &fault.Details{
		LimitID: "local_rate_limit", Scope: "process", Metric: b.metric(), Window: b.window(),
		Amount: strconv.FormatInt(b.Capacity, 10), Used: strconv.FormatInt(b.Capacity-level, 10), Wanted: strconv.FormatInt(units, 10),
	}
	if hide {
		f.Message = "the rate limit of this gateway process, over all keys, has no room for this request"
		f.Details.Amount, f.Details.Used, f.Details.Wanted = "", "", ""
	}
	const second = 1_000_000
	if wait < 0 {
		f.NoRetry = true
		f.Details.Reason = ledger.ReasonLarger
	} else {
		f.RetryAfterSeconds = int(max(1, (wait+second-1)/second))
		f.NoRetry = wait > 60*second
	}
	f.Details.Retryable = !f.NoRetry
	return f
}

func (b *localBucket) window() string {
	return fmt.Sprintf("%d per %d ms", b.PerFill, b.IntervalMicros/1000)
}

// correctLocal puts what a request used in the place of what it took.
func (x *exchange) correctLocal() {
	b := x.g.local
	if b == nil || x.throttled == 0 {
		return
	}
	taken := x.throttled
	x.throttled = 0
	switch {
	case x.charged.Op.Verb == ledger.Undo:
		b.correct(taken, x.g.Clock.Now())
	case b.Tokens:
		b.correct(taken-x.charged.Tokens, x.g.Clock.Now())
	}
}

// view lists the bucket beside a key's limits (EFF-1).
func (b *localBucket) view(now int64) admit.LimitView {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	return admit.LimitView{
		ID: "local_rate_limit", Name: "local rate limit", Scope: "process", Metric: b.metric(), Window: b.window(), Admission: "take",
		Origin: "this process's memory, over all keys", Amount: strconv.FormatInt(b.Capacity, 10),
		Used: strconv.FormatInt(b.Capacity-b.level, 10), Held: "0", Remaining: strconv.FormatInt(max(0, b.level), 10),
	}
}
