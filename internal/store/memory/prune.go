// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// Prune is store.Retainable's.
func (b *Book) Prune(ctx context.Context, cut store.Cut, limit int) (step store.Pruned, done bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return step, false, err
	}
	switch limit = max(1, limit); {
	case b.dropCalls(cut.Calls, limit, &step):
	case b.closeEvents(cut.Events, limit, &step):
	case b.closeQuarters(cut.Quarters, limit, &step):
	case b.dropNotices(cut.Notices, limit, &step):
	case b.dropKept(cut.Kept, limit, &step):
	default:
		return step, true, nil
	}
	return step, false, nil
}

func (b *Book) dropCalls(before int64, limit int, step *store.Pruned) bool {
	for key, c := range b.calls {
		if c.EndedAt < before && step.Calls < int64(limit) {
			delete(b.calls, key)
			b.dropped = max(b.dropped, before)
			step.Calls++
		}
	}
	return step.Calls > 0
}

func (b *Book) closeEvents(before int64, limit int, step *store.Pruned) bool {
	before -= before % shelf.DayMicros
	b.whole = max(b.whole, before)
	requests := make(map[callKey][]ledger.Event)
	if !slices.ContainsFunc(b.events, func(e ledger.Event) bool { return shelf.Closable([]ledger.Event{e}, before) }) {
		return false
	}
	for i := range b.events {
		key := callKey{b.events[i].Workspace, b.events[i].ID}
		requests[key] = append(requests[key], b.events[i])
	}
	var gone []ledger.Event
	for key, request := range requests {
		if shelf.Closable(request, before) && len(gone) < limit {
			gone = append(gone, request...)
			delete(b.ended, key)
		} else {
			delete(requests, key)
		}
	}
	if len(gone) == 0 {
		return false
	}
	b.events = slices.DeleteFunc(b.events, func(e ledger.Event) bool {
		return requests[callKey{e.Workspace, e.ID}] != nil
	})
	for _, c := range shelf.Closings(gone) {
		amount := c.Amount
		c.Amount = 0
		b.closings[c] = shelf.Saturate(b.closings[c], amount)
		step.Closings++
	}
	b.roll(gone)
	b.dropped = max(b.dropped, before)
	step.Events = int64(len(gone))
	return true
}

// roll keeps what reports say of events that go.
func (b *Book) roll(gone []ledger.Event) {
	rolled := shelf.NewRollups(b.whole)
	for i := range b.rolled {
		rolled.Add(&b.rolled[i])
	}
	for i := range gone {
		rolled.Event(&gone[i])
	}
	b.rolled = b.rolled[:0]
	for _, r := range rolled.Rows() {
		b.rolled = append(b.rolled, r.Rollup)
	}
}

func (b *Book) closeQuarters(before int64, limit int, step *store.Pruned) bool {
	before -= before % shelf.DayMicros
	var old []ledger.QuarterSum
	for _, q := range b.quarters {
		if q.Quarter < before && q.Quarter%shelf.DayMicros != 0 && len(old) < limit {
			old = append(old, q)
		}
	}
	days, gone := shelf.WholeDays(old)
	for _, q := range days {
		b.addQuarter(q)
	}
	for _, q := range gone {
		delete(b.quarters, quarterKey{q.Workspace, q.Key, q.Quarter})
	}
	step.Quarters = int64(len(gone))
	return len(gone) > 0
}

func (b *Book) addQuarter(q ledger.QuarterSum) {
	key := quarterKey{q.Workspace, q.Key, q.Quarter}
	b.quarters[key] = shelf.Quarters([]ledger.QuarterSum{q, b.quarters[key]})[0]
}

func (b *Book) dropNotices(before int64, limit int, step *store.Pruned) bool {
	b.outbox = slices.DeleteFunc(b.outbox, func(n ledger.Notice) bool {
		old := n.At < before && step.Notices < int64(limit)
		if old {
			step.Notices++
		}
		return old
	})
	return step.Notices > 0
}
