// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/weirhq/weir/internal/ledger"

// pane is everything that a rule's window ever took, request by request, each
// with what it came to in the end: no interval of the window's length may hold
// more than the limit of its last admission (RAT-1).
type pane struct {
	order []*entry
	of    map[ledger.ID]*entry
}

// entry is what one request has in a window since an instant, which is the
// forward way of the book's clock.
type entry struct {
	at, taken, units int64
	// forgiven: the window was reset since, or may have been: then nothing is given
	// back, and only what is used beyond what was taken counts.
	forgiven bool
}

func (a *audit) pane(c ledger.Counter) *pane {
	p := a.rules[c]
	if p == nil {
		p = &pane{of: map[ledger.ID]*entry{}}
		a.rules[c] = p
	}
	return p
}

// sum adds what was taken in the window of a length that ends now.
func (p *pane) sum(now, length int64) (total int64) {
	for i := len(p.order) - 1; i >= 0 && p.order[i].at > now-length; i-- {
		total += p.order[i].units
	}
	return total
}

// enter books what a request has taken that was just admitted or moved: requests
// once, tokens at the instant of each move (ORD-4).
func (a *audit) enter(id ledger.ID, d *due) {
	p := a.pane(d.counter)
	before := p.of[id]
	if before != nil && d.once() {
		return
	}
	e := &entry{at: a.passed, taken: d.taken, units: d.taken, forgiven: a.forgives(d.counter, a.d.at)}
	p.order, p.of[id] = append(p.order, e), e
}

// empty resets a window.
func (p *pane) empty() {
	for _, e := range p.order {
		e.units, e.forgiven = 0, true
	}
}

// end makes a request count for what it used.
func (e *entry) end(units int64) {
	if !e.forgiven {
		e.units = units
		return
	}
	e.units += max(0, units-e.taken)
}

// revise is end for what is corrected later.
func (e *entry) revise(delta int64) {
	if delta > 0 || !e.forgiven {
		e.units += delta
	}
}

// slides holds what a window is read to hold against what is in it: an exact one
// frees at once, sums at most a sixtieth late.
func (a *audit) slides(r *ledger.Reading, moved *bond) {
	length := r.Check.Window.Length
	p := a.pane(r.Check.Counter)
	least, most := p.sum(a.passed, length), p.sum(a.passed, length+length/60+1000)
	if moved == nil && !a.stepped && (r.Used < least || r.Used > most) {
		a.fail("a decision sees what was used", "%s of %q: %d in the window, want %d to %d", r.Check.Name, r.Check.Counter.Subject, r.Used, least, most)
	}
}

// slack judges a refusal by a rule. A window frees at most a sixtieth of itself
// late (ENGINE 8), and after the clock was set back nobody can tell.
func (a *audit) slack(check *ledger.Check, c *ledger.Candidate) {
	length := check.Window.Length
	used, want := a.pane(check.Counter).sum(a.passed, length+length/60+1000), c.Wants.Of(check.Wants)
	if !a.stepped && used+want <= check.Amount {
		a.fail("nobody is refused without a reason", "%s of %s: used %d, wanted %d, amount %d", check.Name, check.Scope, used, want, check.Amount)
	}
}
