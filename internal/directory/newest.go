// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// newestEvery is how often, at the most, the store is asked for its newest
	// generation on behalf of secrets that are remembered as unknown.
	newestEvery = 50 * time.Millisecond
	// newestTimeout bounds one answer.
	newestTimeout = 500 * time.Millisecond
)

// newest tells the newest generation of a store that others change too, so that a
// secret that is remembered as unknown is valid from the moment on that another
// process has made it a key's (ADM-4). All who wait share one question, and
// between two questions lies newestEvery: made-up secrets cost the store so many
// small reads a second, however many come.
type newest struct {
	read func(ctx context.Context, since int64) (int64, error)

	mu      sync.Mutex // guards what follows
	known   int64      // the last answer
	waiting *question  // not asked yet; nil: nobody waits
	asking  bool
}

type question struct {
	done       chan struct{}
	generation int64
	err        error
}

// last is the newest generation that was told of, 0 at first: a lower bound.
func (n *newest) last() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known
}

// ask returns the newest generation as of an instant after the call.
func (n *newest) ask(ctx context.Context) (int64, error) {
	n.mu.Lock()
	if n.waiting == nil {
		n.waiting = &question{done: make(chan struct{})}
	}
	q := n.waiting
	if !n.asking {
		n.asking = true
		go n.answer()
	}
	n.mu.Unlock()
	select {
	case <-q.done:
		return q.generation, q.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// answer runs while anybody waits.
func (n *newest) answer() {
	pause := time.NewTimer(newestEvery)
	defer pause.Stop()
	for {
		n.mu.Lock()
		q := n.waiting
		n.waiting = nil
		if q == nil {
			n.asking = false
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		n.tell(q)
		pause.Reset(newestEvery)
		<-pause.C
	}
}

func (n *newest) tell(q *question) {
	ctx, cancel := context.WithTimeout(context.Background(), newestTimeout)
	defer cancel()
	defer close(q.done)
	q.generation, q.err = n.read(ctx, n.last())
	if q.err != nil {
		q.err = fmt.Errorf("look for changes since an API key was unknown: %w", q.err)
		return
	}
	n.hear(q.generation)
}

func (n *newest) hear(generation int64) {
	n.mu.Lock()
	n.known = max(n.known, generation)
	n.mu.Unlock()
}

// Among makes the directory one of several on a store: read tells the store's
// newest generation, which is since or later. It is called before the first
// Identify.
func (d *Directory) Among(read func(ctx context.Context, since int64) (int64, error)) {
	d.newest = &newest{read: read}
}

// generation bounds from below what a look-up that begins now can see.
func (d *Directory) generation() int64 {
	if d.newest == nil {
		return 0
	}
	return d.newest.last()
}

// stillUnknown tells whether nothing has changed since a secret was unknown.
func (d *Directory) stillUnknown(ctx context.Context, u unknown) (bool, error) {
	if d.newest == nil {
		return true, nil
	}
	if d.newest.last() > u.generation {
		return false, nil
	}
	now, err := d.newest.ask(ctx)
	return now == u.generation, err
}
