// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/spool"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/teller"
)

const (
	// spoolSuffix names the spool beside the store (RES-8).
	spoolSuffix = ".spool"
	// spoolBatch is how many spooled operations one batch applies at a start;
	// spoolTries how often one is carried; spoolFailures how many that fail on
	// their own, one after another, say that it is the store.
	spoolBatch    = 512
	spoolTries    = 5
	spoolFailures = 3
)

// spoolBeside is the path of the spool of a store's file. One store has one spool,
// by whichever link its path leads there.
func spoolBeside(storePath string) (string, error) {
	path, err := filepath.EvalSymlinks(storePath)
	if err != nil {
		return "", fmt.Errorf("find the spool beside the store: %w", err)
	}
	return path + spoolSuffix, nil
}

// openSpool opens the spool of a store, or a folder, that this process has locked:
// two processes must never have it open.
func openSpool(path string, maxBytes int64, log *slog.Logger) (*spool.Spool, error) {
	s, err := spool.Open(path, maxBytes)
	if err != nil {
		return nil, err
	}
	if f := s.Found(); f.DamagedBytes > 0 {
		log.Error("parts of the spool are damaged; settlements in them are lost unless read by hand", "bytes", f.DamagedBytes, "kept_in", path+spool.AsideSuffix)
	} else if f.TornBytes > 0 {
		log.Warn("the spool ended in a record that was never written whole", "bytes", f.TornBytes)
	}
	return s, nil
}

// replay applies what the last process left in its spool, once (ENGINE 9).
type replay struct {
	book   teller.Book
	spool  *spool.Spool
	log    *slog.Logger
	failed int // on their own, one after another
	counts map[ledger.Verdict]int
}

func applySpool(ctx context.Context, b teller.Book, s *spool.Spool, log *slog.Logger) error {
	left := s.Left()
	if len(left) == 0 {
		return nil
	}
	r := &replay{book: b, spool: s, log: log, counts: make(map[ledger.Verdict]int)}
	for len(left) > 0 {
		n := min(spoolBatch, len(left))
		if err := r.apply(ctx, left[:n]); err != nil {
			return fmt.Errorf("apply the spool: %w", err)
		}
		left = left[n:]
	}
	log.Warn("settlements that the store could not take before are booked",
		"applied", r.counts[ledger.Done], "known_already", r.counts[ledger.Already], "kept", s.Len())
	return nil
}

// apply books a batch; one that fails is run singly, so that one bad operation
// does not refuse the others.
func (r *replay) apply(ctx context.Context, batch []spool.Kept) error {
	for range spoolTries {
		if len(batch) == 0 {
			return nil
		}
		ops := make([]*ledger.Op, len(batch))
		for i := range batch {
			ops[i] = batch[i].Op
		}
		results, err := r.book.Apply(ctx, ops)
		if err != nil {
			return r.singly(ctx, batch, err)
		}
		r.failed = 0
		if batch, err = r.take(batch, results); err != nil {
			return err
		}
	}
	return nil // what is carried for ever stays in the spool
}

func (r *replay) singly(ctx context.Context, batch []spool.Kept, err error) error {
	if len(batch) > 1 {
		for i := range batch {
			if err := r.apply(ctx, batch[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	if r.failed++; r.failed >= spoolFailures || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	r.log.Error("a spooled settlement could not be booked; it stays in the spool", "request_id", requestOf(batch[0].Op), "error", err)
	return nil
}

// take forgets what has been decided and returns what is to be carried.
func (r *replay) take(batch []spool.Kept, results []ledger.Result) (carried []spool.Kept, err error) {
	var booked, dead []uint64
	for i := range results {
		k := batch[i]
		switch v := results[i].Verdict; v {
		case ledger.Done, ledger.Already:
			r.counts[v]++
			booked = append(booked, k.Key)
		case ledger.Carry:
			carried = append(carried, spool.Kept{Key: k.Key, Op: k.Op.Carried(&results[i])})
		default:
			dead = append(dead, k.Key)
			r.log.Error("a spooled settlement found no reservation and was not booked", "request_id", requestOf(k.Op),
				"workspace", k.Op.Workspace, "nanos", spendOf(k.Op), "verdict", int(v))
		}
	}
	return carried, errors.Join(r.spool.SetAside(dead), r.spool.Drop(booked))
}

// requestOf is the request that an ending is of.
func requestOf(op *ledger.Op) string {
	if op.Reservation != nil {
		return op.Reservation.ID.String()
	}
	return op.ID.String()
}

// spendOf is what a settlement charges, in nano-dollars.
func spendOf(op *ledger.Op) (nanos int64) {
	if op.Settlement != nil {
		for i := range op.Settlement.Attempts {
			nanos += op.Settlement.Attempts[i].Spend
		}
	}
	return nanos
}

// spooled logs the first settlement of an outage, and every failure to keep one.
func (c *core) spooled(kept, others int, err error) {
	if err != nil {
		c.unspooled.Add(int64(others))
		c.log.Error("the spool cannot take settlements; they wait in memory alone", "kept", kept, "waiting", others, "error", err)
	}
	if kept > 0 && c.spool.Len() == kept {
		c.log.Warn("the store takes no settlements; they are kept in the spool until it does")
	}
}

// inSpool is how many settlements wait there.
func (c *core) inSpool() int {
	if c.spool == nil {
		return 0
	}
	return c.spool.Len()
}

// stopTeller settles what is queued. What a store that takes no settlements
// leaves after a while stays in the spool (STO-4).
func (c *core) stopTeller(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.settlePatience)
	defer cancel()
	return c.teller.Stop(ctx)
}

// closeStore closes the spool while the store, or the folder, is still this
// process's.
func (c *core) closeStore() error {
	var err error
	if c.spool != nil {
		err = c.spool.Close()
	}
	err = errors.Join(err, c.book.Close())
	if c.shared != nil {
		err = errors.Join(err, c.shared.state.release())
	}
	return err
}
