// SPDX-License-Identifier: Apache-2.0

package teller

import (
	"sync"

	"github.com/weirhq/weir/internal/ledger"
)

// Spool keeps endings that the book could not take, over a restart (RES-8). It
// is safe for concurrent use.
type Spool interface {
	// Put keeps operations: those that it returns keys for, the first ones,
	// survive this process. When it cannot keep all, the error says why.
	Put(ops []*ledger.Op) ([]uint64, error)
	// Drop forgets operations that have been applied.
	Drop(keys []uint64) error
}

// keeping says how far an ending is on its way to the spool.
type keeping uint8

const (
	keepNot    keeping = iota
	keepWanted         // the book could not take it
	keepTaken          // it is being written to the spool
	keepDone           // it is in the spool, under entry.key
)

// keep is a machine's side of the spool.
type keep struct {
	on      bool
	wanted  []*entry
	kept    int // in the spool and not yet applied
	applied []uint64
}

// want marks an ending that a restart must not lose.
func (k *keep) want(list ...*entry) {
	for _, e := range list {
		if k.on && e.keeping == keepNot && e.op.Verb.Keeps() {
			e.keeping = keepWanted
			k.wanted = append(k.wanted, e)
		}
	}
}

// forgo is for a book that works again: it will take them itself.
func (k *keep) forgo() {
	for _, e := range k.wanted {
		e.keeping = keepNot
	}
	k.wanted = nil
}

// take returns what is to be written to the spool now. Its end is told to put.
func (k *keep) take() []*entry {
	list := k.wanted
	k.wanted = nil
	for _, e := range list {
		e.keeping = keepTaken
	}
	return list
}

// put tells which of what was taken are in the spool: as many, from the first
// on, as there are keys. The others are wanted still. One that the book has taken
// meanwhile is to be dropped.
func (k *keep) put(list []*entry, keys []uint64) {
	again := k.wanted
	k.wanted = nil
	for i, e := range list {
		switch {
		case i < len(keys) && e.applied:
			k.applied = append(k.applied, keys[i])
		case i < len(keys):
			e.keeping, e.key = keepDone, keys[i]
			k.kept++
		case !e.applied:
			e.keeping = keepWanted
			k.wanted = append(k.wanted, e)
		}
	}
	k.wanted = append(k.wanted, again...)
}

// end is told of every operation that is answered: by the book, or not at all.
func (k *keep) end(e *entry, byBook bool) {
	e.applied = true
	switch e.keeping {
	case keepDone:
		k.kept--
		if byBook {
			k.applied = append(k.applied, e.key)
		}
	case keepWanted:
		remove(&k.wanted, e)
	case keepNot, keepTaken: // put looks
	}
}

// drops returns what the spool is to forget.
func (k *keep) drops() []uint64 {
	keys := k.applied
	k.applied = nil
	return keys
}

// wantAll marks everything that waits.
func (m *Machine) wantAll() {
	if !m.keep.on {
		return
	}
	m.keep.want(m.settlements.all()...)
	m.keep.want(m.delayed...)
	m.keep.want(m.singles...)
}

// spooler writes to the spool what is posted while a lane is closed: the lane
// itself may be waiting for its book.
type spooler struct {
	wake chan struct{}
	work sync.WaitGroup
}

func (t *Teller) startSpooler() {
	if t.options.Spool == nil {
		return
	}
	t.spooler.work.Go(func() {
		for {
			select {
			case <-t.spooler.wake:
			case <-t.ctx.Done():
				return
			}
			for _, l := range t.lanes {
				l.mu.Lock()
				var taken []*entry
				if !l.spoolFailed {
					taken = l.machine.keep.take()
				}
				l.mu.Unlock()
				t.keep(l, taken)
			}
		}
	})
}

// wakeSpooler is called with the lane's lock.
func (t *Teller) wakeSpooler(l *lane) {
	if len(l.machine.keep.wanted) == 0 || l.spoolFailed {
		return
	}
	select {
	case t.spooler.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// keep writes to the spool. After a failure it is the lane's next failed batch
// that tries again, not every post.
func (t *Teller) keep(l *lane, taken []*entry) {
	if len(taken) == 0 {
		return
	}
	ops := make([]*ledger.Op, len(taken))
	for i, e := range taken {
		ops[i] = e.op
	}
	keys, err := t.options.Spool.Put(ops)
	l.mu.Lock()
	l.machine.keep.put(taken, keys)
	l.spoolFailed = err != nil
	drops := l.machine.keep.drops()
	t.wakeSpooler(l)
	l.room.Broadcast()
	l.mu.Unlock()
	t.drop(drops)
	if told := t.options.Hooks.Spooled; told != nil {
		told(len(keys), len(ops)-len(keys), err)
	}
}

func (t *Teller) drop(keys []uint64) {
	if len(keys) == 0 {
		return
	}
	err := t.options.Spool.Drop(keys)
	if failed := t.options.Hooks.Undropped; failed != nil && err != nil {
		failed(len(keys), err)
	}
}
