// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
)

// readsFollow: every way of reading has what was answered before it was asked,
// while others write (STO-1, ENGINE 14).
func readsFollow(t *testing.T, driver Driver) {
	d := driver.desk(t)
	const workspaces = 4
	together(2*workspaces, func(i int) {
		s := newShop(fmt.Sprint("w", i%workspaces, i/workspaces))
		for n := range int64(rounds) {
			r := s.open(t, d, dollar)
			if i >= workspaces { // these only write
				d.do(t, s.settle(r, dollar))
				continue
			}
			if err := s.follow(t.Context(), d, r, n); err != nil {
				t.Error(err)
				return
			}
		}
	})
	d.balanced(t)
}

// follow reads in every way after each step of the n-th request.
func (s *shop) follow(ctx context.Context, d *desk, r *ledger.Reservation, n int64) error {
	call, _, err := d.store.Call(ctx, s.workspace, r.ID)
	if err != nil || call.Outcome != store.OutcomeRunning {
		return fmt.Errorf("%s runs, the log says %q, %w", r.ID, call.Outcome, err)
	}
	top := &ledger.Op{
		Verb: ledger.Fund, ID: d.newID(), Workspace: s.workspace, Checks: s.checks()[:1],
		Entry: &ledger.Entry{Kind: ledger.EventTopUp, Amounts: ledger.Amounts{Spend: n + 1}},
	}
	for _, op := range []*ledger.Op{s.settle(r, n), top} {
		if _, err := d.try(op); err != nil {
			return err
		}
	}
	call, events, err := d.store.Call(ctx, s.workspace, r.ID)
	if err != nil || call.Outcome != "settled" || call.Spend != n || len(events) != 1 || events[0].Spend != n {
		return fmt.Errorf("%s was settled at %d, the log says %q at %d, %d events, %w", r.ID, n, call.Outcome, call.Spend, len(events), err)
	}
	calls, err := d.store.Calls(ctx, s.workspace, store.CallQuery{Key: s.key, Limit: 1})
	if err != nil || len(calls) != 1 || calls[0].ID != r.ID {
		return fmt.Errorf("the newest call is not %s: %w", r.ID, err)
	}
	if calls, err = d.store.CallsByClientID(ctx, s.workspace, r.ClientID, rounds); err != nil || int64(len(calls)) != n+1 {
		return fmt.Errorf("%d calls of the client's id after %d: %w", len(calls), n+1, err)
	}
	rows, err := d.store.Usage(ctx, store.UsageQuery{Workspace: s.workspace, To: r.At + 1})
	if err != nil || len(rows) != 1 || rows[0].Requests != n+1 || rows[0].Spend != n*(n+1)/2 {
		return fmt.Errorf("usage %+v after %d requests: %w", rows, n+1, err)
	}
	if entries, err := d.store.FundEntries(ctx, s.workspace, ledger.ID{}, 1); err != nil || len(entries) != 1 || entries[0].Spend != n+1 {
		return fmt.Errorf("fund entries %+v after %d: %w", entries, n+1, err)
	}
	return nil
}

// errSame ends a start that has found the books as they should be.
var errSame = errors.New("the same books")

// killedAnywhere: whatever was done before, what a kill leaves is what the plain
// book in memory has (RES-1, RES-7).
func killedAnywhere(t *testing.T, driver Driver) {
	c, place := clock.NewManual(Noon), t.TempDir()
	d := newDesk(t, driver.openAt(t, place, Options{Clock: c}), c, 1, false)
	other := memory.New(memory.Options{Clock: c})
	check := 0
	rapid.Check(t, func(rt *rapid.T) {
		check++
		s := newShop(fmt.Sprintf("w%d", check))
		s.budget, s.slots, s.rpm, s.tpm = 20*dollar, 6, 20, 2000
		m := &mix{desk: d, other: other, shop: s}
		for range rapid.IntRange(1, 8).Draw(rt, "batches") {
			m.batch(rt)
		}
		left := t.TempDir()
		if err := driver.Killed(place, left); err != nil {
			rt.Fatal(err)
		}
		_, err := driver.Open(t.Context(), left, Options{Clock: c, BeforeSweep: func(s Store) error {
			return charged(t.Context(), s, other)
		}})
		if !errors.Is(err, errSame) {
			rt.Fatalf("after the kill: %v", err)
		}
	})
}

// charged answers errSame if both have the same but for records of refusals: a
// kill may lose those, for no charge depends on them (ENGINE 3).
func charged(ctx context.Context, s Store, other *memory.Book) error {
	have, err := Take(ctx, s)
	if err != nil {
		return err
	}
	want, err := Take(ctx, other)
	if err != nil {
		return err
	}
	for _, b := range []*Books{have, want} {
		b.Calls = slices.DeleteFunc(b.Calls, func(c store.Call) bool { return c.Outcome == "refused" })
	}
	if err := have.same(want); err != nil {
		return err
	}
	return errSame
}
