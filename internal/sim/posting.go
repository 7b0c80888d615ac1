// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/teller"
	"github.com/weirhq/weir/internal/tenant"
)

// posting is one entry of an operator: a top-up (BAL-3), or a raise, a reset or a
// seed of a limit (BUD-8, BUD-9). It is sent under its id until it is booked.
type posting struct {
	*Event
	id      ledger.ID
	booked  bool
	replica *replica // that it was sent to
	planned bool
}

func (w *world) post(r *replica, e *Event) {
	p := &posting{Event: e, id: r.newID(), replica: r}
	w.postings = append(w.postings, p)
	w.submitPosting(r, p)
}

func (w *world) submitPosting(r *replica, p *posting) {
	if p.booked {
		return
	}
	r = w.upFrom(r)
	if r == nil {
		w.postLater(p)
		return
	}
	op := w.posted(p)
	op.Name(w.book.clock(w.now) + r.drift)
	p.replica = r
	_, err := r.submit(op, func(done teller.Completion) {
		if done.Err != nil {
			w.postLater(p)
			return
		}
		p.booked = true
	})
	if err != nil {
		w.postLater(p)
	}
}

// postLater sends a posting once more, under its id.
func (w *world) postLater(p *posting) {
	if p.planned || p.booked {
		return
	}
	p.planned = true
	w.after(second, func() {
		p.planned = false
		w.submitPosting(p.replica, p)
	})
}

// postAgain has others send what died with a replica.
func (w *world) postAgain(r *replica) {
	for _, p := range w.postings {
		if p.replica == r {
			w.postLater(p)
		}
	}
}

// posted is the operation of a posting, by the configuration of now.
func (w *world) posted(p *posting) *ledger.Op {
	c := w.book.configurations[p.Workspace]
	op := &ledger.Op{
		Verb: ledger.Amend, ID: p.id, Workspace: c.workspace().ID, Entry: &ledger.Entry{Kind: p.Entry, Reason: "script", Actor: "operator"},
	}
	amount := 1 + p.Amount
	op.Entry.Amounts = ledger.Amounts{Spend: amount * 1_000_000, Tokens: amount, Uncached: amount}
	switch {
	case p.Kind == Pay:
		op.Verb, op.Entry.Kind, op.Entry.Amounts = ledger.Fund, ledger.EventTopUp, ledger.Amounts{Spend: p.Amount}
		op.Checks = limit.Compile(limit.Subject{Workspace: c.workspace(), Key: &tenant.Key{}, Zone: c.snapshot.Zone}).Before
	case p.Entry == ledger.EventReset && p.Count == 0:
		op.Checks = c.ofKey(c.keys[p.Key])
	case p.Entry == ledger.EventReset && p.Count == 1:
		r := &c.rules[p.Amount%ruleCount]
		op.Checks = []ledger.Check{limit.RuleCheck(op.Workspace, &r.Rule, amendedSubject(string(r.SubjectKind), r.SubjectID, p))}
	default:
		b := &c.budgets[p.Amount%budgetCount]
		check, err := limit.BudgetCheck(op.Workspace, &b.Budget, amendedSubject(string(b.Scope), b.Subject, p))
		if err != nil {
			w.fail("operations are valid", "budget %s: %v", b.ID, err)
		}
		// A seed's window is the one that its caller has counted.
		check.Counter.Window, _ = check.Window.Bounds(w.book.clock(w.now))
		op.Checks = []ledger.Check{check}
	}
	return op
}

// ofKey are a key's own limits, each of which can be reset.
func (c *configuration) ofKey(k *tenant.Key) (list []ledger.Check) {
	compiled := limit.Compile(limit.Subject{Workspace: c.workspace(), Key: k, Zone: c.snapshot.Zone, Set: c.snapshot.Limits})
	for i := range compiled.After {
		if check := &compiled.After[i]; check.Counter.Subject == k.ID && check.Kind != ledger.KindGauge {
			list = append(list, *check)
		}
	}
	return list
}

// amendedSubject is whose counter of a limit is amended: its one subject's, else
// the one that the event names.
func amendedSubject(scope, subject string, p *posting) string {
	n := 1 + int(p.Amount)%2
	switch {
	case scope == string(budget.ScopePlan):
		return keyID(p.Key)
	case subject != "" || scope == string(budget.ScopeOrg):
		return subject
	case scope == string(budget.ScopeKey) || scope == string(rule.SubjectKey):
		return keyID(p.Key)
	case scope == string(budget.ScopeTeam):
		return teams()[n]
	case scope == string(budget.ScopeProject):
		return projects()[n]
	default:
		return userName(n)
	}
}

// adjust corrects what some ended request was charged, once (RES-9). Nobody sends
// it again: what became of it stands in the book.
func (w *world) adjust(r *replica, e *Event) {
	r = w.upFrom(r)
	q := w.ended(e.Amount % 4)
	if r == nil || q == nil {
		return
	}
	call := w.book.calls[q.id]
	// Never below zero, in any metric: what was charged is net.
	spend := max(e.Amount*int64(e.Count), -w.audit.net[q.id])
	tokens := max(e.Amount%5000*int64(e.Count), -w.audit.tokens[q.id])
	if tokens < 0 && q.CachedPermille > 0 {
		tokens = 0 // how many of them were cached, nobody says
	}
	if spend == 0 && tokens == 0 {
		return
	}
	op := &ledger.Op{
		Verb: ledger.Adjust, Workspace: call.Workspace, Reservation: call.Reservation(), Entry: &ledger.Entry{
			Kind: ledger.EventCorrection, Number: w.book.ended[q.id].Corrections, Reason: "script", Actor: "operator",
			Amounts: ledger.Amounts{Spend: spend, Tokens: tokens, Uncached: tokens},
		},
	}
	if _, err := r.submit(op, nil); err != nil {
		w.note("adjust: %v", err)
	}
}

// ended is the request that ended, before so many others, last; nil: none did.
func (w *world) ended(before int64) *request {
	for i := len(w.requests) - 1; i >= 0; i-- {
		if w.book.calls[w.requests[i].id] == nil {
			continue
		}
		if before == 0 {
			return w.requests[i]
		}
		before--
	}
	return nil
}

// amended takes a raise, a reset or a seed that was booked.
func (a *audit) amended(op *ledger.Op, events []ledger.Event) {
	if len(events) != 1 || events[0].ID != op.ID || events[0].Kind != op.Entry.Kind {
		a.fail("an entry is one event", "%s: %d events", op.ID, len(events))
		return
	}
	a.tally.Amended[op.Entry.Kind-ledger.EventRaise]++
	e := &events[0]
	if op.Entry.Kind == ledger.EventReset {
		a.reset(op, e)
		return
	}
	check := &op.Checks[0]
	amount := op.Entry.Amounts.Of(check.Charges)
	raise := op.Entry.Kind == ledger.EventRaise
	if len(e.Charges) != 1 || e.Charges[0].Counter != check.Counter || e.Charges[0].Amount != amount || e.Charges[0].Raise != raise {
		a.fail("an entry changes what it names", "%s of %d: %+v", e.Kind, amount, e.Charges)
	}
	if raise {
		a.windowed(check, a.d.at)
		return
	}
	b := bond{}
	b.add(check, &ledger.Candidate{}, "", "")
	a.announce(&b.dues[0], amount)
}

// reset: what was used is zero, all of it and of these counters alone.
func (a *audit) reset(op *ledger.Op, e *ledger.Event) {
	named := map[ledger.Counter]bool{}
	for i := range op.Checks {
		check := &op.Checks[i]
		c := check.Counter
		named[c] = true
		switch check.Kind {
		case ledger.KindFixed:
			a.windowed(check, a.d.at)
			if a.settled[c] != 0 {
				a.fail("a reset leaves nothing", "%s of %q: %d are left", check.Name, c.Subject, a.settled[c])
			}
		case ledger.KindDays:
			if k := a.calendar(c); !a.stepped && !k.ahead && k.sum(check.Zone, a.d.at, 30) != 0 && a.charges(e, c) == 0 {
				a.fail("a reset leaves nothing", "the days of %q", c.Subject)
			}
			a.calendar(c).empty(a.d.at)
		case ledger.KindSliding:
			a.pane(c).empty()
		case ledger.KindBucket:
			a.flow(c).takes = nil
		default:
		}
		delete(a.told, c)
		a.resets[c] = a.d.at
	}
	for i := range e.Charges {
		if c := &e.Charges[i]; !named[c.Counter] || c.Raise || c.Credit {
			a.fail("an entry changes what it names", "%s of %q", c.Counter.Limit, c.Counter.Subject)
		}
	}
}

func (a *audit) charges(e *ledger.Event, c ledger.Counter) (total int64) {
	for i := range e.Charges {
		if e.Charges[i].Counter == c {
			total += e.Charges[i].Amount
		}
	}
	return total
}
