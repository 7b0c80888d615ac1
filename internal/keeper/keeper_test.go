// SPDX-License-Identifier: Apache-2.0

package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/keeper"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
)

const start = int64(1_784_548_800_000_000)

// shelf is a store in memory that can be down.
type shelf struct {
	mu     sync.Mutex
	down   error
	held   chan struct{} // a write waits for it; nil: none does
	writes int
	rows   map[route.Kept]bool
}

func (s *shelf) Keep(ctx context.Context, list []route.Kept) error {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	s.writes++
	for _, k := range list {
		s.rows[k] = true
	}
	return nil
}

func (s *shelf) Kept(_ context.Context, workspace string, hashes []route.KeptHash) (list []route.Kept, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	for k := range s.rows {
		for _, hash := range hashes {
			if k.Workspace == workspace && k.Hash == hash {
				list = append(list, k)
			}
		}
	}
	return list, nil
}

func (s *shelf) set(change func(s *shelf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func made(workspace, provider, id string) []route.Kept {
	return []route.Kept{{Workspace: workspace, Provider: provider, Kind: "response", Hash: route.HashKept(id)}}
}

func begin(t *testing.T, o keeper.Options) (*keeper.Keeper, *shelf, *clock.Manual) {
	t.Helper()
	s, c := &shelf{rows: make(map[route.Kept]bool)}, clock.NewManual(start)
	o.Store, o.Clock = s, c
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	k := keeper.New(o)
	k.Start()
	t.Cleanup(k.Stop)
	return k, s, c
}

func has(t *testing.T, k *keeper.Keeper, workspace, provider, id string) bool {
	t.Helper()
	held, err := k.Held(t.Context(), workspace, []string{id, id})
	if err != nil {
		t.Fatal(err)
	}
	return held.Has(provider, id)
}

// TestWhatIsKeptIsInTheStoreWhenKeepReturns: DIS-8.
func TestWhatIsKeptIsInTheStoreWhenKeepReturns(t *testing.T) {
	k, s, c := begin(t, keeper.Options{})
	k.Keep(nil)
	k.Keep(made("acme", "p", "resp_1"))
	want := made("acme", "p", "resp_1")[0]
	want.ExpiresAt = start + keeper.Lifetime.Microseconds()
	if !s.rows[want] || len(s.rows) != 1 {
		t.Errorf("the store has %+v", s.rows)
	}
	for _, c := range []struct {
		workspace, provider, id string
		want                    bool
	}{
		{"acme", "p", "resp_1", true},
		{"other", "p", "resp_1", false},
		{"acme", "q", "resp_1", false},
		{"acme", "p", "resp_2", false},
	} {
		if got := has(t, k, c.workspace, c.provider, c.id); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	c.Advance(keeper.Lifetime)
	if has(t, k, "acme", "p", "resp_1") {
		t.Error("it is remembered for ever")
	}
}

// TestWhoComesWhileTheStoreWritesIsWrittenTogether: one write takes all that wait.
func TestWhoComesWhileTheStoreWritesIsWrittenTogether(t *testing.T) {
	k, s, _ := begin(t, keeper.Options{})
	gate := make(chan struct{})
	s.set(func(s *shelf) { s.held = gate })
	var all sync.WaitGroup
	const callers = 100
	for i := range callers {
		all.Go(func() { k.Keep(made("acme", "p", fmt.Sprint(i))) })
	}
	for i := range callers {
		for !has(t, k, "acme", "p", fmt.Sprint(i)) { // all wait, and are found meanwhile
			continue
		}
	}
	close(gate)
	all.Wait()
	if len(s.rows) != callers || s.writes > 3 {
		t.Errorf("%d rows in %d writes", len(s.rows), s.writes)
	}
}

// TestAStoreThatIsDownDelaysNoAnswerAndLosesNothing: RES-8, RES-11. Nobody could
// tell meanwhile, which refuses; afterwards it is there.
func TestAStoreThatIsDownDelaysNoAnswerAndLosesNothing(t *testing.T) {
	failed := make(chan error, 100)
	k, s, _ := begin(t, keeper.Options{Patience: time.Millisecond, Failed: func(err error) {
		select {
		case failed <- err:
		default:
		}
	}})
	s.set(func(s *shelf) { s.down = store.ErrUnavailable })
	k.Keep(made("acme", "p", "resp_1")) // returns after its patience
	if err := <-failed; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("failed with %v", err)
	}
	k.Keep(made("acme", "p", "resp_2")) // and now at once
	if _, err := k.Held(t.Context(), "acme", []string{"resp_1"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("looked up: %v", err)
	}
	s.set(func(s *shelf) { s.down = nil })
	for _, id := range []string{"resp_1", "resp_2"} {
		if !has(t, k, "acme", "p", id) {
			t.Errorf("%s is not known before the store has it", id)
		}
	}
	k.Stop()
	if len(s.rows) != 2 {
		t.Errorf("the store has %+v after the stop", s.rows)
	}
}

// TestWhatTheStoreNeverTakesIsTold: the bound holds, and a stop ends.
func TestWhatTheStoreNeverTakesIsTold(t *testing.T) {
	var lost atomic.Int64
	k, s, _ := begin(t, keeper.Options{Patience: time.Nanosecond, Lost: func(n int) { lost.Add(int64(n)) }})
	s.set(func(s *shelf) { s.down = store.ErrUnavailable })
	const many = 60_000
	k.Keep(make([]route.Kept, many))
	k.Keep(make([]route.Kept, many))
	if n := lost.Load(); n != many {
		t.Errorf("%d lost beyond the bound", n)
	}
	k.Stop()
	k.Keep(made("acme", "p", "resp_1"))
	if n := lost.Load(); n != 2*many+1 {
		t.Errorf("%d lost in all", n)
	}
}
