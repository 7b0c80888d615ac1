// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/teller"
	"github.com/weirhq/weir/internal/tenant"
)

// payment is one top-up, sent under its id until it is booked (BAL-3).
type payment struct {
	id        ledger.ID
	workspace int
	amount    int64
	booked    bool
	replica   *replica // that it was sent to
	planned   bool
}

func (w *world) pay(r *replica, e *Event) {
	p := &payment{id: r.newID(), workspace: e.Workspace, amount: e.Amount, replica: r}
	w.payments = append(w.payments, p)
	w.submitPayment(r, p)
}

func (w *world) submitPayment(r *replica, p *payment) {
	if p.booked {
		return
	}
	r = w.upFrom(r)
	if r == nil {
		w.payLater(p)
		return
	}
	c := w.book.configurations[p.workspace]
	checks := limit.Compile(limit.Subject{Workspace: c.workspace(), Key: &tenant.Key{}, Zone: c.snapshot.Zone}).Before
	op := &ledger.Op{
		Verb: ledger.Fund, ID: p.id, Workspace: c.workspace().ID, Checks: checks,
		Entry: &ledger.Entry{Kind: ledger.EventTopUp, Amounts: ledger.Amounts{Spend: p.amount}, Reason: "script"},
	}
	p.replica = r
	_, err := r.submit(op, func(done teller.Completion) {
		if done.Err != nil {
			w.payLater(p)
			return
		}
		p.booked = true
	})
	if err != nil {
		w.payLater(p)
	}
}

// payLater sends a payment once more, under its id.
func (w *world) payLater(p *payment) {
	if p.planned || p.booked {
		return
	}
	p.planned = true
	w.after(second, func() {
		p.planned = false
		w.submitPayment(p.replica, p)
	})
}

// payAgain has others send what died with a replica.
func (w *world) payAgain(r *replica) {
	for _, p := range w.payments {
		if p.replica == r {
			w.payLater(p)
		}
	}
}

// verify holds the whole book against its records (RES-7).
func (a *audit) verify(b *book) {
	differences, counts := b.verify()
	if counts.Partial > 0 {
		a.fail("every counter is compared", "%d were not", counts.Partial)
	}
	for _, d := range differences {
		a.fail("the books balance", "%s of %s %q, window %d: %d, the records say %d", d.Figure, d.Counter.Limit, d.Counter.Subject, d.Counter.Window, d.Have, d.Want)
		return
	}
}

// settleUp judges the run once everything has ended and been swept.
func (w *world) settleUp() {
	a := w.audit
	a.verify(w.book)
	for _, id := range sortedIDs(a.rows) {
		a.fail("nothing stays open", "%s", id)
	}
	for c, s := range w.book.counters {
		if s.Held != 0 {
			a.fail("at rest nothing is held", "%s of %q holds %d", c.Limit, c.Subject, s.Held)
		}
	}
	for id := range a.admitted {
		if a.endings[id] != 1 {
			a.fail("a reservation ends once", "%s has %d endings", id, a.endings[id])
		}
	}
	for _, q := range w.requests {
		if what := q.judge(a); what != "" {
			a.fail("what is sent is charged, what is not is not", "#%d %s", q.number, what)
		}
	}
	for _, p := range w.payments {
		if !p.booked || a.net[p.id] != p.amount {
			a.fail("a payment is booked once", "%s: paid %d, booked %d", p.id, p.amount, a.net[p.id])
		}
	}
	if a.rule != "" {
		w.fail(a.rule, "%s", a.what)
	}
}

// judge compares what a request was charged, all events together, with what it
// owes. Its worst case stands for what nobody can know: it was lost with its
// replica, or nobody ever ended it (RES-5).
func (q *request) judge(a *audit) string {
	net, row := a.net[q.id], a.admitted[q.id]
	figures := fmt.Sprintf("charged %d, owes %d", net, q.owed)
	unknown := row != nil && net == row.Worst.Spend && (q.lost || q.Ending == EndsNever)
	switch {
	case q.settled && net != q.owed:
		return figures + " although its settlement was booked"
	case net == q.owed || unknown:
		return ""
	default:
		return figures
	}
}
