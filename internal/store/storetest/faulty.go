// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// Faulty is a book that answers late, loses answers and locks up, as its seed
// has it. A lost answer may belong to a batch that happened or to one that did
// not: both are ErrUnknownOutcome.
type Faulty struct {
	store.Book

	mu     sync.Mutex // guards what follows
	random *rand.Rand
	locked int // how many more calls find it locked
}

// NewFaulty wraps a book.
func NewFaulty(book store.Book, seed uint64) *Faulty {
	return &Faulty{Book: book, random: rand.New(rand.NewPCG(seed, 0))}
}

type mishap uint8

const (
	faultNone mishap = iota
	faultDelay
	faultLocked
	faultLostAnswer
	faultLostBatch
)

func (f *Faulty) draw() mishap {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locked > 0 {
		f.locked--
		return faultLocked
	}
	switch n := f.random.IntN(100); {
	case n < 15:
		return faultLostAnswer
	case n < 25:
		return faultLostBatch
	case n < 30:
		f.locked = f.random.IntN(4)
		return faultLocked
	case n < 50:
		return faultDelay
	default:
		return faultNone
	}
}

// maxYields bounds a delay: others get to run so often.
const maxYields = 200

// Apply is store.Book's, with faults.
func (f *Faulty) Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	switch f.draw() {
	case faultLocked:
		return nil, fmt.Errorf("locked: %w", store.ErrUnavailable)
	case faultLostBatch:
		return nil, fmt.Errorf("connection lost before the commit: %w", store.ErrUnknownOutcome)
	case faultLostAnswer:
		if _, err := f.Book.Apply(ctx, ops); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("connection lost after the commit: %w", store.ErrUnknownOutcome)
	case faultDelay:
		for range maxYields {
			runtime.Gosched()
		}
	case faultNone:
	}
	return f.Book.Apply(ctx, ops)
}
