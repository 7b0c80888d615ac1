// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// Retain makes one run of the retention, without a rest between its steps.
func (s *Server) Retain(ctx context.Context) error {
	return s.core.prune(ctx, s.file.Process.RetentionMicros, 0)
}

// RetainSome makes at most so many steps of a run, as one that a stop cuts short.
func (s *Server) RetainSome(ctx context.Context, steps int) error {
	cut, err := s.core.cut(ctx, s.file.Process.RetentionMicros)
	for range steps {
		if err == nil {
			_, _, err = s.core.book.Prune(ctx, cut, 3)
		}
	}
	return err
}

// Rows counts what a retention drops.
type Rows struct{ Calls, Events, Closings, Quarters int }

// Rows counts what is in the store.
func (s *Server) Rows(ctx context.Context) (n Rows, err error) {
	err = s.core.book.View(ctx, func(r store.Reader) error {
		return errors.Join(
			r.Calls(func(*store.Call) error { n.Calls++; return nil }),
			r.Events(func(*ledger.Event) error { n.Events++; return nil }),
			r.Closings(func(store.Closing) error { n.Closings++; return nil }),
			r.Quarters(func(ledger.QuarterSum) error { n.Quarters++; return nil }),
		)
	})
	return n, err
}
