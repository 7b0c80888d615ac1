// SPDX-License-Identifier: Apache-2.0

package teller

import "slices"

// fifo is a queue that can also be given something back at its front.
type fifo struct {
	head  []*entry // in reverse: what was given back
	items []*entry
	taken int // of items
}

func (q *fifo) len() int { return len(q.head) + len(q.items) - q.taken }

func (q *fifo) push(e *entry) { q.items = append(q.items, e) }

func (q *fifo) unpop(e *entry) { q.head = append(q.head, e) }

func (q *fifo) first() *entry {
	if n := len(q.head); n > 0 {
		return q.head[n-1]
	}
	return q.items[q.taken]
}

func (q *fifo) pop() *entry {
	if n := len(q.head); n > 0 {
		e := q.head[n-1]
		q.head[n-1] = nil
		q.head = q.head[:n-1]
		return e
	}
	e := q.items[q.taken]
	q.items[q.taken] = nil
	q.taken++
	// Moving what is left only when it is the smaller half costs O(1) a pop.
	if 2*q.taken >= len(q.items) {
		n := copy(q.items, q.items[q.taken:])
		clear(q.items[n:])
		q.items, q.taken = q.items[:n], 0
	}
	return e
}

func (q *fifo) all() []*entry {
	out := slices.Clone(q.head)
	slices.Reverse(out)
	return append(out, q.items[q.taken:]...)
}

// remove takes e out, wherever it stands.
func (q *fifo) remove(e *entry) bool {
	if remove(&q.head, e) {
		return true
	}
	i := slices.Index(q.items[q.taken:], e)
	if i < 0 {
		return false
	}
	q.items = slices.Delete(q.items, q.taken+i, q.taken+i+1)
	return true
}

func remove(list *[]*entry, e *entry) bool {
	i := slices.Index(*list, e)
	if i < 0 {
		return false
	}
	*list = slices.Delete(*list, i, i+1)
	return true
}

// turns hands out entries round robin over workspaces, and over the keys within
// one: whoever sends much waits behind himself (ENGINE 2).
type turns struct {
	n    int
	tops ring[*workspaceLine]
}

type workspaceLine struct {
	n    int
	keys ring[*fifo]
}

// ring is named lines of which each non-empty one has its turn. A line leaves
// with its last entry, so there are never more lines than entries.
type ring[T any] struct {
	named map[string]T
	order []string
	next  int
}

func (r *ring[T]) line(name string, fresh func() T) T {
	if line, ok := r.named[name]; ok {
		return line
	}
	if r.named == nil {
		r.named = make(map[string]T)
	}
	line := fresh()
	r.named[name] = line
	r.order = append(r.order, name)
	return line
}

// turn is the line whose turn it is.
func (r *ring[T]) turn() T {
	if r.next >= len(r.order) {
		r.next = 0
	}
	return r.named[r.order[r.next]]
}

// pass ends a turn; an empty line leaves.
func (r *ring[T]) pass(empty bool) {
	if empty {
		r.leave(r.next)
	} else {
		r.next++
	}
}

// leave puts the last line into the place of one that has become empty.
func (r *ring[T]) leave(i int) {
	last := len(r.order) - 1
	delete(r.named, r.order[i])
	r.order[i], r.order[last] = r.order[last], ""
	r.order = r.order[:last]
}

func (t *turns) push(e *entry, workspace, key string) {
	w := t.tops.line(workspace, func() *workspaceLine { return &workspaceLine{} })
	w.keys.line(key, func() *fifo { return &fifo{} }).push(e)
	w.n++
	t.n++
}

func (t *turns) pop() *entry {
	w := t.tops.turn()
	line := w.keys.turn()
	e := line.pop()
	w.n--
	t.n--
	w.keys.pass(line.len() == 0)
	t.tops.pass(w.n == 0)
	return e
}

func (t *turns) remove(e *entry, workspace, key string) bool {
	w, ok := t.tops.named[workspace]
	if !ok {
		return false
	}
	line, ok := w.keys.named[key]
	if !ok || !line.remove(e) {
		return false
	}
	w.n--
	t.n--
	if line.len() == 0 {
		w.keys.leave(slices.Index(w.keys.order, key))
	}
	if w.n == 0 {
		t.tops.leave(slices.Index(t.tops.order, workspace))
	}
	return true
}

func (t *turns) countOf(workspace string) int {
	if w, ok := t.tops.named[workspace]; ok {
		return w.n
	}
	return 0
}
