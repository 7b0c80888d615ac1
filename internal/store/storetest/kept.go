// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
)

func keptRow(workspace, id, provider string, end int64) route.Kept {
	return route.Kept{Workspace: workspace, Hash: route.HashKept(id), Provider: provider, Kind: "response", ExpiresAt: end}
}

func keep(t *testing.T, s Store, list ...route.Kept) {
	t.Helper()
	if err := s.Keep(t.Context(), list); err != nil {
		t.Fatalf("keep: %v", err)
	}
}

// finds holds what a store finds of a workspace's ids against a list.
func finds(t *testing.T, s Store, workspace string, ids []string, want ...route.Kept) {
	t.Helper()
	hashes := make([]route.KeptHash, len(ids))
	for i, id := range ids {
		hashes[i] = route.HashKept(id)
	}
	got, err := s.Kept(t.Context(), workspace, hashes)
	order := func(a, b route.Kept) int { return slices.Compare(words(a), words(b)) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%s has of %q\n%+v, %v, want\n%+v", workspace, ids, got, err, want)
	}
}

func words(k route.Kept) []string {
	return []string{k.Workspace, k.Provider, string(k.Hash[:]), k.Kind}
}

// keptApart: an id is its workspace's and its provider's alone (DIS-8).
func keptApart(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	ours, there, theirs := keptRow("acme", "resp_1", "p1", 900), keptRow("acme", "resp_1", "p2", 800), keptRow("other", "resp_2", "p1", 700)
	keep(t, s)
	keep(t, s, ours, there, theirs, keptRow("acme", "resp_1", "p1", 300))
	finds(t, s, "acme", []string{"resp_1", "resp_2", "resp_3"}, ours, there)
	finds(t, s, "other", []string{"resp_1", "resp_2"}, theirs)
	finds(t, s, "nobody", []string{"resp_1"})
	finds(t, s, "acme", nil)
	// Of two ends the later holds, in whatever order they come.
	keep(t, s, keptRow("acme", "resp_1", "p1", 100), keptRow("acme", "resp_1", "p2", 850))
	there.ExpiresAt = 850
	finds(t, s, "acme", []string{"resp_1"}, ours, there)
	odd := keptRow("a\x00b", "résp", "p\xff", 5)
	keep(t, s, odd)
	finds(t, s, odd.Workspace, []string{"résp"}, odd)
	if err := s.Keep(t.Context(), make([]route.Kept, store.MaxKept+1)); driver.Keeps && err == nil {
		t.Error("it keeps without a bound")
	}
}

// keptAtOnce: many write the same rows at once, in any order, and each finds what
// it wrote as soon as that is answered, wherever it asks.
func keptAtOnce(t *testing.T, driver Driver) {
	place := t.TempDir()
	stores := []Store{driver.openAt(t, place, Options{})}
	if driver.Shared {
		stores = append(stores, driver.openAt(t, place, Options{}))
	}
	const writers, rows = 8, 40
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			var list []route.Kept
			for i := range rows {
				list = append(list, keptRow("acme", fmt.Sprint("shared_", (i*7+n*11)%rows), "p", int64(1000+n)))
			}
			mine := keptRow("acme", fmt.Sprint("mine_", n), "p", 1000)
			if err := stores[n%len(stores)].Keep(t.Context(), append(list, mine)); err != nil {
				t.Errorf("writer %d: %v", n, err)
			}
			for _, s := range stores {
				finds(t, s, "acme", []string{fmt.Sprint("mine_", n)}, mine)
			}
		})
	}
	all.Wait()
	for i := range rows {
		id := fmt.Sprint("shared_", i)
		finds(t, stores[0], "acme", []string{id}, keptRow("acme", id, "p", 1000+writers-1))
	}
}

// keptUntil: what has expired goes in small steps, and nothing else (RES-6).
func keptUntil(t *testing.T, driver Driver) {
	for _, limit := range []int{2, 1000} {
		s := driver.open(t, Options{Clock: clock.NewManual(Noon)})
		for i := range int64(9) {
			keep(t, s, keptRow("acme", fmt.Sprint(i), "p", Noon+i))
		}
		sum := int64(0)
		for done := false; !done; {
			var step store.Pruned
			var err error
			if step, done, err = s.Prune(t.Context(), store.Cut{Kept: Noon + 5}, limit); err != nil || step.Kept > int64(limit) {
				t.Fatalf("a step of %d: %+v, %v", limit, step, err)
			}
			sum += step.Kept
		}
		if sum != 5 {
			t.Errorf("limit %d: %d have gone, want 5", limit, sum)
		}
		finds(t, s, "acme", []string{"0", "4", "5"}, keptRow("acme", "5", "p", Noon+5))
	}
}

// keptThroughKills: what was answered is there after a kill and after a restart.
func keptThroughKills(t *testing.T, driver Driver) {
	place, into := t.TempDir(), t.TempDir()
	s := driver.openAt(t, place, Options{})
	want := keptRow("acme", "resp_1", "p", 900)
	keep(t, s, want)
	if driver.Killed != nil {
		if err := driver.Killed(place, into); err != nil {
			t.Fatal(err)
		}
		finds(t, driver.openAt(t, into, Options{}), "acme", []string{"resp_1"}, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context(), []route.Kept{want}); err == nil {
		t.Error("a closed store keeps")
	}
	finds(t, driver.openAt(t, place, Options{}), "acme", []string{"resp_1"}, want)
}
