// SPDX-License-Identifier: Apache-2.0

package ledger

// nearby is how many counters are found without hashing a key of three strings: an
// operation asks for each of its counters several times, and that costs more than
// deciding about it.
const nearby = 32

// Near finds the working copies of a page's counters.
type Near struct {
	page *Page
	last [nearby]found
}

type found struct {
	counter Counter
	state   *State
}

// Nearby returns the page's working copies; while it is used, only its Put changes
// which they are.
func Nearby(p *Page) *Near { return &Near{page: p} }

// place of a counter among the nearby ones. Ids differ most at their ends.
func (c *Counter) place() int {
	h := uint(len(c.Limit))
	if n := len(c.Limit); n > 0 {
		h += 7*uint(c.Limit[n-1]) + 3*uint(c.Limit[n/2])
	}
	if n := len(c.Subject); n > 0 {
		h += 5 * uint(c.Subject[n-1])
	}
	return int(h % nearby)
}

// Find is the working copy of a counter; nil: it has no row.
func (n *Near) Find(c Counter) *State {
	last := &n.last[c.place()]
	if last.state != nil && last.counter == c {
		return last.state
	}
	s := n.page.Counters[c]
	if s != nil {
		last.counter, last.state = c, s
	}
	return s
}

// Put gives a counter its working copy.
func (n *Near) Put(c Counter, s *State) {
	n.last[c.place()] = found{c, s}
	n.page.Counters[c] = s
}
