// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// Call is store.Log's.
func (b *Book) Call(ctx context.Context, workspace string, id ledger.ID) (store.Call, []ledger.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return store.Call{}, nil, err
	}
	events := b.eventsOf(func(e *ledger.Event) bool { return e.Workspace == workspace && e.ID == id })
	slices.SortFunc(events, func(x, y ledger.Event) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Attempt, y.Attempt))
	})
	if r := b.open[id]; r != nil && r.Workspace == workspace && !r.Tombstone {
		return store.Running(r), events, nil
	}
	call, ok := b.calls[callKey{workspace, id}]
	if !ok {
		return store.Call{}, nil, fmt.Errorf("read call %s: %w", id, store.ErrNotFound)
	}
	return call, events, nil
}

func (b *Book) eventsOf(want func(*ledger.Event) bool) []ledger.Event {
	var out []ledger.Event
	for i := range b.events {
		if want(&b.events[i]) {
			out = append(out, b.events[i])
		}
	}
	return out
}

// CallsByClientID is store.Log's.
func (b *Book) CallsByClientID(ctx context.Context, workspace, clientID string, limit int) ([]store.Call, error) {
	return b.newest(ctx, limit, func(c *store.Call) bool {
		return c.Workspace == workspace && clientID != "" && c.ClientID == clientID
	})
}

// Calls is store.Log's.
func (b *Book) Calls(ctx context.Context, workspace string, q store.CallQuery) ([]store.Call, error) {
	return b.newest(ctx, q.Limit, func(c *store.Call) bool {
		return c.Workspace == workspace && (q.Before.IsZero() || c.ID.Compare(q.Before) < 0) &&
			(q.Key == "" || c.Key == q.Key) && (q.Outcome == "" || c.Outcome == q.Outcome)
	})
}

func (b *Book) newest(ctx context.Context, limit int, want func(*store.Call) bool) ([]store.Call, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	var list []store.Call
	for _, c := range b.calls {
		if want(&c) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(x, y store.Call) int { return y.ID.Compare(x.ID) })
	return first(list, limit), nil
}

func first[T any](list []T, limit int) []T { return list[:min(max(0, limit), len(list))] }

// Usage is store.Log's.
func (b *Book) Usage(ctx context.Context, q store.UsageQuery) ([]store.UsageRow, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	usage := shelf.NewUsage(&q, b.whole)
	for i := range b.rolled {
		if b.rolled[i].Workspace == q.Workspace {
			usage.AddDay(&b.rolled[i])
		}
	}
	for i := range b.events {
		if b.events[i].Workspace == q.Workspace {
			usage.Add(&b.events[i])
		}
	}
	return usage.Rows(), nil
}

// AuditList is store.Log's.
func (b *Book) AuditList(ctx context.Context, workspace string, before int64, limit int) ([]store.Audit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	var list []store.Audit
	for _, a := range slices.Backward(b.audit) {
		if a.Workspace == workspace && (before <= 0 || a.Seq < before) {
			list = append(list, a)
		}
	}
	return first(list, limit), nil
}

// FundEntries is store.Log's.
func (b *Book) FundEntries(ctx context.Context, workspace string, before ledger.ID, limit int) ([]ledger.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	list := b.eventsOf(func(e *ledger.Event) bool {
		return e.Workspace == workspace && e.Kind >= ledger.EventTopUp && e.Kind <= ledger.EventAdjustment &&
			(before.IsZero() || e.ID.Compare(before) < 0)
	})
	slices.SortFunc(list, func(x, y ledger.Event) int { return y.ID.Compare(x.ID) })
	return first(list, limit), nil
}
