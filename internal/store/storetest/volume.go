// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// Volume is how many events a test of many has: WEIR_SOAK_EVENTS, or 50,000.
func Volume(t testing.TB) int {
	t.Helper()
	text := os.Getenv("WEIR_SOAK_EVENTS")
	if text == "" {
		return 50_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("WEIR_SOAK_EVENTS=%s is no number of events", text)
	}
	return n
}

// Soaks tells whether figures are asked for, which take their time.
func Soaks() bool { return os.Getenv("WEIR_SOAK_EVENTS") != "" }

// VolumeDays is how far back the events of Event reach from Noon.
const VolumeDays = 30

// Event is one of n of a workspace over VolumeDays up to Noon, in order: 100 keys
// that are not used alike, each of one user; 10 teams, 20 projects, 4 models.
func Event(i, n int, random *rand.Rand) ledger.Event {
	const days = int64(VolumeDays) * aDay
	key := min(random.IntN(100), random.IntN(100), random.IntN(100))
	e := ledger.Event{
		Workspace: "acme", Kind: ledger.EventSettled, AdmittedAt: Noon - days + int64(i)*(days/int64(n)),
		Subjects: ledger.Subjects{
			Key: fmt.Sprint("key_", key), User: fmt.Sprint("user ", key), Team: fmt.Sprint("team ", key%10), Project: fmt.Sprint("project ", key%20),
		},
		Model: fmt.Sprint("model-", random.IntN(4)), Provider: "acme", Price: "price_1",
		Spend: 1000 + random.Int64N(1_000_000), Tokens: 100 + random.Int64N(5000), Detail: make([]byte, 60),
	}
	e.At = e.AdmittedAt + 1_500_000
	var tail [10]byte
	for j := range tail {
		tail[j] = byte(random.Uint32())
	}
	e.ID = ledger.NewID(e.AdmittedAt, tail)
	return e
}

// VolumeQueries are reports as people ask for them, over all of Event's days.
func VolumeQueries(t testing.TB) map[string]store.UsageQuery {
	t.Helper()
	zone, err := window.Zone("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	day := window.DayAt(Noon, zone)
	q := store.UsageQuery{Workspace: "acme", From: (day - VolumeDays + 1).Start(zone), To: (day + 1).Start(zone), Zone: zone}
	list := make(map[string]store.UsageQuery)
	for name, by := range map[string][]store.By{
		"total": nil, "key": {store.ByKey}, "day": {store.ByDay}, "day and model": {store.ByDay, store.ByModel}, "day and user": {store.ByDay, store.ByUser},
	} {
		q.By = by
		list[name] = q
	}
	return list
}

// SameUsage asks for every report and compares it with the events.
func SameUsage(t testing.TB, s store.Log, events []ledger.Event) {
	t.Helper()
	for name, q := range VolumeQueries(t) {
		watch := stopwatch()
		rows, err := s.Usage(t.Context(), q)
		took := watch()
		if want := bruteUsage(events, &q, 0); err != nil || !reflect.DeepEqual(rows, want) {
			t.Errorf("by %s: %d rows, %v, events say %d rows", name, len(rows), err, len(want))
		}
		t.Logf("report by %s of %d events: %v, %d rows", name, len(events), took.Round(time.Millisecond), len(rows))
	}
}

// stopwatch tells how long ago it was made.
func stopwatch() func() time.Duration {
	system := clock.System()
	began := system.Now()
	return func() time.Duration { return time.Duration(system.Now()-began) * time.Microsecond }
}

// Percentiles of what something took.
func Percentiles(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	slices.Sort(took)
	at := func(share int) time.Duration {
		return took[min(len(took)-1, len(took)*share/1000)].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%d, p50 %v, p99 %v, p99.9 %v", len(took), at(500), at(990), at(999))
}

// Beside measures what 4 callers' admissions take while work runs.
func Beside(t testing.TB, book store.Book, work func()) string {
	t.Helper()
	g := NewGatherer(book)
	var mu sync.Mutex
	var took []time.Duration
	var callers sync.WaitGroup
	stop := make(chan struct{})
	for caller := range 4 {
		s := newShop("beside")
		s.key, s.budget = fmt.Sprint("k", caller), 1_000_000*dollar
		random := rand.New(rand.NewPCG(uint64(caller), rand.Uint64()))
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				watch := stopwatch()
				result, err := g.Do(s.admitNow(book.Now(), random))
				mu.Lock()
				took = append(took, watch())
				mu.Unlock()
				if err == nil {
					_, err = g.Do(s.settle(result.Reservation, 1))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work()
	close(stop)
	callers.Wait()
	g.Close()
	return Percentiles(took)
}

func (s *shop) admitNow(at int64, random *rand.Rand) *ledger.Op {
	var tail [10]byte
	for j := range tail {
		tail[j] = byte(random.Uint32())
	}
	op := s.admission("m1", 1000, ledger.NewID(at, tail))
	op.Name(at)
	return op
}

// PruneUntil makes large steps until one did what is asked for, or all is done.
func PruneUntil(ctx context.Context, t testing.TB, s store.Retainable, cut store.Cut, did func(store.Pruned) bool) {
	t.Helper()
	for {
		step, done, err := s.Prune(ctx, cut, 2000)
		if err != nil {
			t.Fatal(err)
		}
		if done || did(step) {
			return
		}
	}
}

// PruneAll drops what is older than a cut, with rests as the program has them, and
// says what the steps took. It makes at most so many; 0: all.
func PruneAll(ctx context.Context, t testing.TB, s store.Retainable, cut store.Cut, most, limit int) {
	t.Helper()
	var took []time.Duration
	var sum store.Pruned
	for done := false; !done && (most == 0 || len(took) < most); {
		watch := stopwatch()
		var step store.Pruned
		var err error
		if step, done, err = s.Prune(ctx, cut, limit); err != nil {
			t.Fatal(err)
		}
		took = append(took, watch())
		sum.Calls, sum.Events, sum.Rollups, sum.Quarters = sum.Calls+step.Calls, sum.Events+step.Events, sum.Rollups+step.Rollups, sum.Quarters+step.Quarters
		<-time.After(10 * time.Millisecond)
	}
	t.Logf("retention: %+v; steps: %s", sum, Percentiles(took))
}

// CutAt is the cut that the program makes at an instant.
func CutAt(now int64) store.Cut { return cutAt(now) }

// Random draws the same from the same seed.
func Random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
