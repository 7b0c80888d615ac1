// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/store"
)

const (
	// rollEvery is how old an event is, or a little more, when reports find it in
	// roll-ups; until then they read it beside them.
	rollEvery = 5 * time.Second
	// rollStep is how many events one step rolls up; the batches then have the store
	// for themselves for as long, and for rollRest at the least.
	rollStep = 1000
	rollRest = 20 * time.Millisecond
)

// roll rolls usage up, where the store does not do so with its batches
// (ENGINE 11). Every process of a shared store does it; one at a time finds work.
func (s *Server) roll(ctx context.Context) {
	book, ok := s.core.book.(store.Rollable)
	if !ok {
		return
	}
	timer := time.NewTimer(rollEvery)
	defer timer.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		_, done, err := book.Roll(ctx, rollStep)
		if err != nil && !failed && ctx.Err() == nil {
			s.log.Warn("usage could not be rolled up: reports read more events until it can; it is tried again", "error", err)
		}
		failed = err != nil
		if done || failed {
			timer.Reset(rollEvery)
		} else {
			timer.Reset(max(rollRest, time.Since(began)))
		}
	}
}
