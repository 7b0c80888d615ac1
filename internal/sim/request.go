// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/teller"
)

// decisionTries and the order of things are the gateway's (serve, admit, settle).
const decisionTries = 5

// request is one client's call on its way through a replica.
type request struct {
	*Event
	replica     *replica
	number      uint64
	id          ledger.ID
	tries       int
	ticket      teller.Ticket
	name        int // of the model that it asks for now
	outputCap   int64
	final       bool // it is not asked for less any more
	plan        *admit.Plan
	planned     *admit.Planned
	reservation *ledger.Reservation

	// What is true of it at the end. sent: a provider saw it. owed is its bill
	// by the provider's own reckoning, once it has ended.
	admitted, sent, ended bool
	gone, lost, settled   bool
	owed                  int64
	usage                 ledger.Amounts
	guessed               bool // nobody reported it
}

// arrive takes a client's call.
func (r *replica) arrive(e *Event) {
	q := &request{Event: e, replica: r, name: e.Model, id: r.newID()}
	q.number = r.world.serial
	r.world.requests = append(r.world.requests, q)
	r.world.note("#%d %s", q.number, e.String())
	r.running = append(r.running, q)
	if e.GoneMicros > 0 {
		r.later(e.GoneMicros, q.leave)
	}
	q.admit()
}

func (q *request) call() *call.Call {
	c := &call.Call{
		Door: call.OpenAIChat, Model: modelName(q.name), OutputBound: call.NoBound, Completions: 1,
		Prompt: call.Prompt{TextBytes: q.TextBytes, Messages: 1},
	}
	if q.OutputBound > 0 {
		c.OutputBound = q.OutputBound
	}
	return c
}

func (q *request) admit() {
	q.tries++
	q.plan = q.build(!q.final && q.tries < decisionTries)
	q.submit(q.plan.Op, q.decided)
}

func (q *request) submit(op *ledger.Op, then func(*ledger.Result, error)) {
	r := q.replica
	op.Name(r.world.book.clock(r.world.now) + r.drift)
	ticket, err := r.submit(op, func(c teller.Completion) {
		q.ticket = 0
		then(&c.Result, c.Err)
	})
	if err != nil {
		then(nil, err)
		return
	}
	if r.waiting[ticket] != nil {
		q.ticket = ticket
	}
}

// decided takes the answer to an admission.
func (q *request) decided(result *ledger.Result, err error) {
	w := q.replica.world
	switch {
	case err != nil:
		q.unavailable(err)
	case result.Verdict == ledger.Admitted:
		q.admitted = true
		q.reservation, q.planned = result.Reservation, &q.plan.Targets[result.Candidate]
		q.seen(nil, &w.tally.Combined)
		q.headed(result)
		q.renewLater()
		q.dispatch()
	case result.Verdict == ledger.Refused && q.plan.Op.Quiet:
		q.shrink(result)
	case result.Verdict == ledger.Refused:
		if f := q.plan.Refuse(result); f == nil || f.Code != result.Refusal.Check.Code {
			w.fail("a refusal names its limit", "#%d: %v, check %s", q.number, f, result.Refusal.Check.Code)
		}
		q.seen(result.Refusal.Check, &w.tally.Refusing)
		q.over()
	case result.Verdict == ledger.Stale && q.tries < decisionTries:
		if err := q.replica.refresh(q.Workspace); err != nil {
			q.unavailable(err)
			return
		}
		q.admit()
	default:
		q.unavailable(nil)
	}
}

// unavailable answers 503: nothing was sent.
func (q *request) unavailable(err error) {
	q.replica.world.tally.Unavailable++
	q.replica.world.note("#%d 503: %v", q.number, err)
	q.doubt()
}

// doubt: nobody waits for it any more, but its admission may have happened. That
// it is undone is queued in the lane, and lost with it.
func (q *request) doubt() {
	q.over()
	q.replica.doubtful = append(q.replica.doubtful, q)
}

// over: the replica has nothing more to do with it.
func (q *request) over() {
	if i := slices.Index(q.replica.running, q); i >= 0 {
		q.replica.running = slices.Delete(q.replica.running, i, i+1)
	}
}

// dispatch hands it to the provider. RES-1: what it holds is durable by now.
func (q *request) dispatch() {
	w := q.replica.world
	if w.audit.bonds[q.id] == nil {
		w.fail("nothing is sent before its reservation is durable", "#%d %s", q.number, q.id)
		return
	}
	if q.Ending == EndsUnsent || q.gone {
		// Late as well: the lane may have to wait for the book.
		q.replica.later(q.LatencyMicros, func() { q.settle(admit.Ending{Outcome: "not_sent"}) })
		return
	}
	if !q.sent {
		w.tally.Sent++
	}
	q.sent = true
	if q.Failover >= 0 && q.Ending != EndsNever && q.name == q.Model && q.Failover != q.Model {
		q.replica.later(q.LatencyMicros/2, q.failover)
		return
	}
	q.replica.later(q.LatencyMicros, q.finish)
}

// failover: the first provider failed, the next model is asked for.
func (q *request) failover() {
	if q.ended {
		return
	}
	q.name = q.Failover
	q.tries = 0
	q.move()
}

func (q *request) move() {
	q.tries++
	plan := q.build(false)
	op := plan.Op
	op.Verb, op.Reservation = ledger.Move, q.reservation
	if len(op.Candidates) == 0 { // no such model: the first error stands
		q.settle(admit.Ending{Sent: true, Failed: true, Outcome: "provider_error"})
		return
	}
	q.submit(op, func(result *ledger.Result, err error) { q.moved(plan, result, err) })
}

func (q *request) moved(plan *admit.Plan, result *ledger.Result, err error) {
	switch {
	case q.ended:
	case err == nil && result.Verdict == ledger.Admitted:
		q.plan, q.reservation, q.planned = plan, result.Reservation, &plan.Targets[result.Candidate]
		q.dispatch()
	case err == nil && result.Verdict == ledger.Stale && q.tries < decisionTries && q.replica.refresh(q.Workspace) == nil:
		q.move()
	default:
		q.settle(admit.Ending{Sent: true, Failed: true, Outcome: "provider_error"})
	}
}

// leave: the client goes away.
func (q *request) leave() {
	q.gone = true
	r := q.replica
	switch {
	case q.ended:
	case !q.admitted && q.ticket != 0:
		_, known := r.machine.Cancel(q.ticket)
		if known {
			delete(r.waiting, q.ticket)
			r.world.note("#%d leaves", q.number)
			q.ended = true
			q.doubt()
			r.pump()
		}
	case q.admitted && q.sent && q.ticket == 0 && q.Ending != EndsNever:
		// Streaming: what came so far is charged (RES-4).
		q.settle(q.estimated(admit.Ending{Sent: true, Outcome: "client_gone"}))
	default:
	}
}

// finish is the provider's answer.
func (q *request) finish() {
	if q.ended {
		return
	}
	switch q.Ending {
	case EndsFailed:
		q.settle(admit.Ending{Sent: true, Failed: true, Outcome: "provider_error"})
	case EndsCut:
		q.settle(q.estimated(admit.Ending{Sent: true, Failed: true, Outcome: "cut"}))
	case EndsUnreported:
		q.settle(q.estimated(admit.Ending{Sent: true, Outcome: "ok"}))
	case EndsNever:
		q.replica.world.note("#%d is forgotten", q.number)
		q.ended = true
		q.over()
	default:
		input := q.planned.InputTokens * q.InputPermille / 1000
		output := q.planned.OutputTokens * q.OutputPermille / 1000
		cached := input * q.CachedPermille / 1000
		q.bill(input-cached, cached, output)
		q.settle(admit.Ending{Sent: true, Outcome: "ok", Observed: call.Observed{
			Reported: true, Finished: true, Usage: call.Usage{Input: input - cached, CachedInput: cached, Output: output, Requests: 1},
		}})
	}
}

// estimated is an ending without a report, after some output.
func (q *request) estimated(e admit.Ending) admit.Ending {
	tokens := q.planned.OutputTokens * q.OutputPermille / 1000
	e.Observed.OutputBytes, e.Observed.OutputSeen = 3*tokens+1, true
	q.guessed = true
	q.bill(q.planned.InputTokens, 0, min(tokens+1, q.planned.OutputTokens))
	return e
}

// bill is what the provider asks for, reckoned apart from package price.
func (q *request) bill(input, cached, output int64) {
	in, ofCached, out := rates(modelOf(q.name))
	q.owed = input*in + cached*ofCached + output*out
	q.usage = ledger.Amounts{Spend: q.owed, Tokens: input + cached + output, Uncached: input + output}
}

// settle ends it, as the gateway does: the operation is queued, nobody waits.
func (q *request) settle(e admit.Ending) {
	r := q.replica
	q.ended = true
	charged := admit.Settle(q.reservation, q.planned, e)
	if int64(charged.Cost) != q.owed {
		r.world.fail("a request costs what it used", "#%d: %d, the provider's bill is %d", q.number, charged.Cost, q.owed)
	}
	if q.InputPermille <= 1000 && q.OutputPermille <= 1000 && q.owed > q.planned.Worst.Spend {
		r.world.fail("a charge is within its hold when the use was", "#%d: %d of %d", q.number, q.owed, q.planned.Worst.Spend)
	}
	if attempts := charged.Op.Settlement.Attempts; len(attempts) > 0 {
		have := ledger.Amounts{Spend: attempts[0].Spend, Tokens: attempts[0].Tokens, Uncached: attempts[0].Uncached}
		if have != q.usage || attempts[0].Estimated != q.guessed {
			r.world.fail("a request costs what it used", "#%d: %+v, the provider says %+v", q.number, have, q.usage)
		}
	}
	r.world.note("#%d ends: %s, owes %d", q.number, e.Outcome, q.owed)
	if _, err := r.submit(charged.Op, q.booked); err != nil {
		r.world.fail("a settlement is never refused", "#%d: %v", q.number, err)
	}
}

// booked: the settlement is in the book.
func (q *request) booked(c teller.Completion) {
	switch {
	case c.Err != nil:
		q.replica.world.fail("a settlement is sent until it is applied", "#%d: %v", q.number, c.Err)
	case c.Result.Verdict == ledger.Done || c.Result.Verdict == ledger.Already:
		q.settled = true
	default:
		q.replica.world.fail("a settlement finds its reservation", "#%d: verdict %d", q.number, c.Result.Verdict)
	}
	q.over()
}

// renewLater prolongs the reservation every third of the hold (RES-5).
func (q *request) renewLater() {
	q.replica.later(holdMicros/3, func() {
		if q.ended {
			return
		}
		op := &ledger.Op{Verb: ledger.Renew, Workspace: q.reservation.Workspace, Reservation: q.reservation, HoldMicros: holdMicros}
		if _, err := q.replica.submit(op, nil); err != nil {
			q.replica.world.note("#%d renew: %v", q.number, err)
		}
		q.renewLater()
	})
}
