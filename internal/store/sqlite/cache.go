// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"container/list"

	"github.com/weirhq/weir/internal/ledger"
)

// cache keeps the rows of counters that were used last. A cached state is never
// changed, only replaced, and only after its commit (ENGINE 10).
type cache struct {
	size  int
	rows  map[ledger.Counter]*list.Element
	order *list.List // of cached, the last used in front
}

// absent stands for a row that is not there.
var absent = &ledger.State{}

type cached struct {
	counter ledger.Counter
	state   *ledger.State
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

func (c *cache) put(counter ledger.Counter, s *ledger.State) {
	if e := c.rows[counter]; e != nil {
		e.Value.(*cached).state = s
		c.order.MoveToFront(e)
		return
	}
	c.rows[counter] = c.order.PushFront(&cached{counter, s})
	if len(c.rows) > c.size {
		last := c.order.Back()
		delete(c.rows, last.Value.(*cached).counter)
		c.order.Remove(last)
	}
}
