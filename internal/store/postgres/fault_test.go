// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
	"github.com/weirhq/weir/internal/store/storetest"
)

const (
	// tortureVariable says how many rounds the tests of faults run, seedVariable the
	// seed of the first.
	tortureVariable = "WEIR_TORTURE_ROUNDS"
	seedVariable    = "WEIR_TORTURE_SEED"
)

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// between puts a network that misbehaves between a test and a database.
func between(t *testing.T, database string) *pgtest.Proxy {
	t.Helper()
	proxy, err := pgtest.NewProxy(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy
}

// impatient gives up soon what the network has swallowed.
func impatient(o postgres.Options) postgres.Options {
	o.LockTimeout, o.BatchTimeout = 100*time.Millisecond, 300*time.Millisecond
	return o
}

// TestTheBookIsTheModelsWhateverTheNetworkDoesUnderTorture drives thousands of operations
// through a network that resets connections before, within and after a commit,
// loses, delays and cuts off answers, delivers what was given up, and says nothing:
// answers and books are those of a book that was asked once (ENGINE 6). A failure
// names its seed; `make torture` runs more of them.
func TestTheBookIsTheModelsWhateverTheNetworkDoesUnderTorture(t *testing.T) {
	const batches = 250
	rounds, seed := number(t, tortureVariable, 1), number(t, seedVariable, 1)
	for i := range rounds {
		for name, o := range map[string]postgres.Options{"Direct": {}, "Pooled": {Pooling: true}, "LocksReleasedEarly": {EarlyRelease: true}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := clock.NewManual(storetest.Noon)
				direct := server.Database(t)
				proxy := between(t, direct)
				o.URL, o.Clock = proxy.URL(direct), c
				book := open(t, impatient(o))
				proxy.Misbehave(seed+i, 12, pgtest.Faults...)
				ops, again := storetest.ThroughLosses(t, book, c, seed+i, batches, func() { proxy.Misbehave(0, 0) })
				t.Logf("seed %d: %d operations, %d batches sent again; %s", seed+i, ops, again, proxy)
				if again == 0 {
					t.Error("nothing was sent again")
				}
			})
		}
	}
}

// TestAStormThroughABadNetworkIsChargedOnceUnderTorture: several books and many callers at
// once, in the time of the database itself (ENGINE 6).
func TestAStormThroughABadNetworkIsChargedOnceUnderTorture(t *testing.T) {
	rounds, seed := number(t, tortureVariable, 1), number(t, seedVariable, 1)
	for i := range rounds {
		direct := server.Database(t)
		proxy := between(t, direct)
		s := newStorm(t, impatient(postgres.Options{URL: proxy.URL(direct), EarlyRelease: (seed+i)%2 == 0}), 3)
		proxy.Misbehave(seed+i, 3, pgtest.Faults...)
		admitted := s.run(t, 12, 60)
		proxy.Misbehave(0, 0)
		t.Logf("seed %d: %d admitted; %s", seed+i, admitted, proxy)
		s.exact(t, admitted)
	}
}

// TestConnectionsThatHangKeepNoPlace: while nothing answers, every connection is
// given up, those that are being made too; once something does, the pool is free
// within a few tries, not after the driver's own 15 s (RES-8, BR-165).
func TestConnectionsThatHangKeepNoPlace(t *testing.T) {
	direct := server.Database(t)
	proxy := between(t, direct)
	book := open(t, impatient(postgres.Options{URL: proxy.URL(direct), Connections: 4}))
	admit := func() error {
		_, err := book.Apply(t.Context(), []*ledger.Op{cycle(newID(book.Now()), "acme", "", book.Now())})
		return err
	}
	for range 2 {
		proxy.Hang(true)
		var hanging sync.WaitGroup
		for range 8 {
			hanging.Go(func() {
				for range 4 {
					if err := admit(); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
						t.Errorf("while nothing answers: %v", err)
					}
				}
			})
		}
		hanging.Wait()
		proxy.Hang(false)
		tries := 1
		for admit() != nil && tries < 50 {
			tries++
		}
		if tries > 30 {
			t.Errorf("it took %d tries", tries)
		}
	}
}
