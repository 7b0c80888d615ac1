// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
)

// process opens a book as one of several processes, and says that it lives.
func process(t *testing.T, o postgres.Options, name string) *postgres.Book {
	t.Helper()
	o.Process, o.Name, o.Version = name, name+" at home", "v1"
	b, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func others(t *testing.T, b *postgres.Book) map[string]store.Replica {
	t.Helper()
	list, err := b.Replicas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]store.Replica{}
	for _, r := range list.List {
		out[r.ID] = r
	}
	return out
}

// TestTheFileThatWasAppliedLastStays: STO-2. Also while time stands still, over
// further signs of life, and when its process is forgotten.
func TestTheFileThatWasAppliedLastStays(t *testing.T) {
	now := clock.NewManual(1_784_548_800_000_000)
	o := postgres.Options{URL: server.Database(t), Clock: now}
	one, two, three := process(t, o, "one"), process(t, o, "two"), process(t, o, "three")
	last := int64(0)
	for i, apply := range []func() error{
		func() error { return one.Applied(t.Context(), "a") },
		func() error { return two.Applied(t.Context(), "b") },
		func() error { return one.Applied(t.Context(), "a") },
		func() error { return two.Applied(t.Context(), "c") },
	} {
		if err := apply(); err != nil {
			t.Fatal(err)
		}
		at := others(t, three)[[]string{"one", "two"}[i%2]].AppliedAt
		if at <= last {
			t.Errorf("file %d was applied at %d, the one before at %d", i, at, last)
		}
		last = at
	}
	now.Advance(time.Second)
	for _, b := range []*postgres.Book{one, two, three} {
		if err := b.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := others(t, three); got["two"].AppliedAt != last || got["two"].File != "c" || got["one"].File != "a" || got["three"].File != "" || got["three"].AppliedAt != 0 {
		t.Errorf("listed are %+v", got)
	}

	audit := func(id string) store.Audit {
		return store.Audit{At: now.Now(), Actor: "a test", Action: "replicas.forget", Kind: "replica", ID: id, Name: id}
	}
	for _, id := range []string{"one", "two"} {
		if err := three.Forget(t.Context(), id, audit(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := three.Forget(t.Context(), "none", audit("none")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("forgetting one that is not there: %v", err)
	}
	got := others(t, three)
	if _, left := got["one"]; left || !got["two"].Stopped || got["two"].File != "c" || len(got) != 2 {
		t.Errorf("left are %+v", got)
	}
	entries, err := three.AuditList(t.Context(), "", 0, 10)
	if err != nil || len(entries) != 2 || entries[0].ID != "two" || entries[1].ID != "one" {
		t.Errorf("the audit says %+v (%v)", entries, err)
	}
}

// TestAProcessKnowsHowFarItsClockIsOff: ENGINE 7. What the way to the database takes
// is no difference.
func TestAProcessKnowsHowFarItsClockIsOff(t *testing.T) {
	const at = int64(1_784_548_800_000_000)
	for _, off := range []time.Duration{0, 1500 * time.Millisecond, -time.Hour} {
		b := process(t, postgres.Options{URL: server.Database(t), Clock: clock.NewManual(at), Local: clock.NewManual(at + off.Microseconds())}, "one")
		list, err := b.Replicas(t.Context())
		if err != nil || list.OffsetMicros != -off.Microseconds() || list.List[0].OffsetMicros != -off.Microseconds() {
			t.Errorf("with a clock that is off by %s: %+v (%v)", off, list, err)
		}
	}
	b := process(t, postgres.Options{URL: server.Database(t)}, "one")
	if list, err := b.Replicas(t.Context()); err != nil || list.OffsetMicros < -60_000_000 || list.OffsetMicros > 60_000_000 {
		t.Errorf("on one machine the clocks differ by %d µs (%v)", list.OffsetMicros, err)
	}
}
