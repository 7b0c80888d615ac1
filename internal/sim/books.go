// SPDX-License-Identifier: Apache-2.0

package sim

import "fmt"

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
	for _, id := range sortedIDs(a.open) {
		a.fail("nothing stays open", "%s", id)
	}
	for _, c := range w.book.held() {
		a.fail("at rest nothing is held", "%s of %q holds %d", c.Limit, c.Subject, w.book.counters[c].Held)
	}
	for _, id := range sortedIDs(a.bonds) {
		if a.endings[id] != 1 {
			a.fail("a reservation ends once", "%s has %d endings", id, a.endings[id])
		}
	}
	for _, q := range w.requests {
		if what := q.judge(a); what != "" {
			a.fail("what is sent is charged, what is not is not", "#%d %s", q.number, what)
		}
	}
	for _, p := range w.postings {
		if !p.booked || a.booked[p.id] != 1 || p.Kind == Pay && a.net[p.id] != p.Amount {
			a.fail("an entry is booked once", "%s: %d, booked %d times as %d", p.id, p.Amount, a.booked[p.id], a.net[p.id])
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
	net, b := a.net[q.id]-a.adjusted[q.id], a.bonds[q.id]
	figures := fmt.Sprintf("charged %d, owes %d", net, q.owed)
	worst := b != nil && net == b.worst.Spend
	// An operator who corrects a sweep before its usage arrives has the last word.
	corrected := b != nil && b.swept && a.corrections[q.id] > 0
	switch {
	case net == q.owed, worst && (q.lost || q.Ending == EndsNever || corrected):
		return ""
	case q.settled:
		return figures + " although its settlement was booked"
	default:
		return figures
	}
}
