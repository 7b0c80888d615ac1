// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"container/list"

	"github.com/weirhq/weir/internal/ledger"
)

// cache keeps the rows of counters that were used last. A cached state is never
// changed, only replaced, and only after its commit (ENGINE 10).
type cache struct {
	size int
	// folded is the newest row of the journal that the tables have in them: what
	// changed later is not in its row yet, and stays.
	folded int64
	rows   map[ledger.Counter]*list.Element
	order  *list.List // of cached, the last used in front
}

// evictions is how many rows one new row may send away: more than one, so that
// the cache shrinks again to its size when what had to stay is folded.
const evictions = 2

// absent stands for a row that is not there.
var absent = &ledger.State{}

type cached struct {
	counter ledger.Counter
	state   *ledger.State
	changed int64 // by the row of the journal
}

func newCache(size int) *cache {
	return &cache{size: size, rows: make(map[ledger.Counter]*list.Element), order: list.New()}
}

func (c *cache) get(counter ledger.Counter) *ledger.State {
	e := c.rows[counter]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).state
}

// put keeps a state; changed is the row of the journal that changed it, 0 for
// what a table says.
func (c *cache) put(counter ledger.Counter, s *ledger.State, changed int64) {
	if e := c.rows[counter]; e != nil {
		row := e.Value.(*cached)
		row.state, row.changed = s, max(row.changed, changed)
		c.order.MoveToFront(e)
		return
	}
	c.rows[counter] = c.order.PushFront(&cached{counter, s, changed})
	for range evictions {
		if len(c.rows) <= c.size {
			return
		}
		last := c.order.Back()
		if row := last.Value.(*cached); row.changed > c.folded {
			c.order.MoveToFront(last)
		} else {
			delete(c.rows, row.counter)
			c.order.Remove(last)
		}
	}
}
