// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirhq/weir/internal/store"
)

// barrier makes what was committed without waiting for the disk durable. One
// flush serves all who came before it began: whatever a flushed transaction
// follows in the log is on the disk with it (ENGINE 4).
type barrier struct {
	mu      sync.Mutex // guards what follows
	running bool
	next    *flush // has not begun; nil: nobody waits for one
}

type flush struct {
	done chan struct{}
	err  error
}

// flushed returns when everything that was committed before the call is durable.
// An error leaves that unknown.
func (b *Book) flushed(ctx context.Context) error {
	if !b.options.EarlyRelease || b.options.lossy {
		return nil
	}
	w := &b.barrier
	w.mu.Lock()
	if w.next == nil {
		w.next = &flush{done: make(chan struct{})}
	}
	mine, leads := w.next, !w.running
	w.running = true
	w.mu.Unlock()
	if leads {
		b.lead()
	}
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return errors.Join(store.ErrUnknownOutcome, ctx.Err())
	}
}

// lead runs one flush for those who wait, and hands the next one to somebody
// else, so that nobody leads for longer than he waits.
func (b *Book) lead() {
	w := &b.barrier
	w.mu.Lock()
	now := w.next
	w.next = nil
	w.mu.Unlock()
	now.err = b.flush()
	close(now.done)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.running = false
		return
	}
	go b.lead()
}

func (b *Book) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), b.options.BatchTimeout)
	defer cancel()
	held, err := b.batches.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("flush: %w", errors.Join(store.ErrUnknownOutcome, err))
	}
	defer held.Release()
	if err := b.round(ctx, held.Conn().PgConn(), []step{{statement: stFlush}}); err != nil {
		return fmt.Errorf("flush: %w", errors.Join(store.ErrUnknownOutcome, err))
	}
	return nil
}

// release lets a transaction's locks go before it is on the disk.
func (b *Book) release() []step {
	if !b.options.EarlyRelease {
		return nil
	}
	return []step{{statement: stRelease}}
}
