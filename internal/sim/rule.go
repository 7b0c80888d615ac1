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
type entry struct{ at, units int64 }

func (a *audit) pane(c ledger.Counter) *pane {
	p := a.rules[c]
	if p == nil {
		p = &pane{of: map[ledger.ID]*entry{}}
		a.rules[c] = p
	}
	return p
}

func (p *pane) put(id ledger.ID, at, units int64) {
	e := &entry{at, units}
	p.order, p.of[id] = append(p.order, e), e
}

// sum adds what was taken in the window of a length that ends now.
func (p *pane) sum(now, length int64) (total int64) {
	for i := len(p.order) - 1; i >= 0 && p.order[i].at > now-length; i-- {
		total += p.order[i].units
	}
	return total
}

// enter books what a reservation has taken that was just admitted or moved:
// requests once, tokens at the instant of each move (ORD-4).
func (a *audit) enter(row *ledger.Reservation) {
	for i := range row.Holds {
		h := &row.Holds[i]
		if h.Kind != ledger.KindSliding || h.Taken == 0 {
			continue
		}
		p := a.pane(h.Counter)
		if h.Charges == ledger.MetricNone && p.of[row.ID] != nil {
			continue
		}
		if e := p.of[row.ID]; e != nil {
			e.units = 0
		}
		p.put(row.ID, a.passed, h.Taken)
	}
}

// leave makes a request count for what it used in the end, by the events of its
// end; of one that no provider saw, the request too comes back (RES-10). Without
// events it moves on: its tokens come back.
func (a *audit) leave(row *ledger.Reservation, events []ledger.Event) {
	undone := len(events) > 0 && events[0].Kind == ledger.EventUndone
	for i := range row.Holds {
		h := &row.Holds[i]
		e := a.pane(h.Counter).of[row.ID]
		switch {
		case h.Kind != ledger.KindSliding || e == nil:
		case h.Charges == ledger.MetricNone && undone:
			e.units = 0
		case h.Charges != ledger.MetricNone:
			e.units = borne(h, events)
		}
	}
}

// borne are the tokens of the attempts that a hold is charged for.
func borne(h *ledger.Hold, events []ledger.Event) (tokens int64) {
	for i := range events {
		if e := &events[i]; h.Model == "" || h.Model == e.Model && h.Provider == e.Provider {
			tokens += e.Tokens
		}
	}
	return tokens
}

// amend is leave for the usage that came after a sweep.
func (a *audit) amend(row *ledger.Reservation, events []ledger.Event) {
	for i := range row.Holds {
		h := &row.Holds[i]
		if e := a.pane(h.Counter).of[row.ID]; h.Kind == ledger.KindSliding && h.Charges != ledger.MetricNone && e != nil {
			e.units += borne(h, events)
		}
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
