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

// opened is an open reservation as this book has written it. Its row counts its
// changes: who finds version has the same reservation.
type opened struct {
	*ledger.Reservation
	version int64
}

// recent remembers what was used last. It holds guesses, which the database
// confirms or not.
type recent[K comparable, V any] struct {
	mu    sync.Mutex // guards what follows
	size  int
	rows  map[K]*list.Element
	order *list.List // of *remembered, the last used in front
}

type remembered[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](size int) *recent[K, V] {
	return &recent[K, V]{size: size, rows: make(map[K]*list.Element), order: list.New()}
}

func (c *recent[K, V]) get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.rows[key]
	if e == nil {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*remembered[K, V]).value, true
}

// unknown are those of a list that are not remembered.
func (c *recent[K, V]) unknown(keys []K) []K {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []K
	for _, key := range keys {
		if c.rows[key] == nil {
			out = append(out, key)
		}
	}
	return out
}

func (c *recent[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.rows[key]; e != nil {
		e.Value.(*remembered[K, V]).value = value
		c.order.MoveToFront(e)
		return
	}
	c.rows[key] = c.order.PushFront(&remembered[K, V]{key, value})
	if len(c.rows) > c.size {
		last := c.order.Back()
		delete(c.rows, last.Value.(*remembered[K, V]).key)
		c.order.Remove(last)
	}
}

func (c *recent[K, V]) forget(keys ...K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if e := c.rows[key]; e != nil {
			delete(c.rows, key)
			c.order.Remove(e)
		}
	}
}

// Bounds on what a book remembers beside counters.
const (
	maxGenerations = 50_000
	maxOpened      = 20_000
)
