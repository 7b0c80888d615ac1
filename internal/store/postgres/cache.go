// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"container/list"
	"sync"

	"github.com/weirhq/weir/internal/ledger"
)

// row is a counter's row as the database was seen to have it. state is nil for a
// row that means nothing; raw is its state column. Neither is ever changed.
type row struct {
	state *ledger.State
	raw   []byte
}

// cache remembers the rows of counters that were used last: that they are there,
// and how they were. Both are guesses, which the database confirms or not.
type cache struct {
	mu    sync.Mutex // guards what follows
	size  int
	rows  map[ledger.Counter]*list.Element
	order *list.List // of *cached, the last used in front
	// generations by workspace, as last read.
	generations map[string]int64
}

type cached struct {
	counter ledger.Counter
	row     row
}

// maxGenerations bounds the workspaces whose generation is remembered.
const maxGenerations = 50_000

func newCache(size int) *cache {
	return &cache{
		size: size, rows: make(map[ledger.Counter]*list.Element), order: list.New(), generations: make(map[string]int64),
	}
}

func (c *cache) get(counter ledger.Counter) (row, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.rows[counter]
	if e == nil {
		return row{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).row, true
}

// unknown are those of a list that are not remembered.
func (c *cache) unknown(counters []ledger.Counter) []ledger.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []ledger.Counter
	for _, counter := range counters {
		if c.rows[counter] == nil {
			out = append(out, counter)
		}
	}
	return out
}

func (c *cache) put(counter ledger.Counter, r row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.rows[counter]; e != nil {
		e.Value.(*cached).row = r
		c.order.MoveToFront(e)
		return
	}
	c.rows[counter] = c.order.PushFront(&cached{counter, r})
	if len(c.rows) > c.size {
		last := c.order.Back()
		delete(c.rows, last.Value.(*cached).counter)
		c.order.Remove(last)
	}
}

func (c *cache) forget(counters []ledger.Counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, counter := range counters {
		if e := c.rows[counter]; e != nil {
			delete(c.rows, counter)
			c.order.Remove(e)
		}
	}
}

func (c *cache) generation(workspace string) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.generations[workspace]
	return g, ok
}

func (c *cache) putGenerations(list map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.generations)+len(list) > maxGenerations {
		clear(c.generations)
	}
	for workspace, g := range list {
		c.generations[workspace] = g
	}
}
