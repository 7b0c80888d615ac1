// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
	"github.com/weirhq/weir/internal/store/storetest"
)

// server is this test process's. Its databases have their schema already.
var server = pgtest.Server{Prepare: func(url string) error {
	b, err := postgres.Open(context.Background(), postgres.Options{URL: url, Clock: clock.NewManual(storetest.Noon)})
	if err != nil {
		return err
	}
	return b.Close()
}}

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// TestThePostgresBookKeepsTheContract runs on sessions of its own and behind
// PgBouncer in transaction mode. Where there is none, sessions are discarded before
// each use instead.
func TestThePostgresBookKeepsTheContract(t *testing.T) {
	for name, pooling := range map[string]bool{"Direct": false, "Pooled": true} {
		t.Run(name, func(t *testing.T) { storetest.Run(t, driver(t, pooling)) })
	}
}

// patience is for tests that are not about outages: a disk that everybody uses may
// take longer over a batch than a gateway would wait.
const patience = 20 * time.Second

// driver opens a database for each place.
func driver(t *testing.T, pooling bool) storetest.Driver {
	var mu sync.Mutex
	places := make(map[string]string)
	var ways []string
	var bounced func(string) string
	var bounces bool
	if pooling {
		bounced, bounces = server.Bounced(t)
		ways = []string{"OneTeller", "TwoFaultyStores"}
	}
	return storetest.Driver{
		Keeps: true, Shared: true, Ways: ways,
		Open: func(ctx context.Context, place string, o storetest.Options) (storetest.Store, error) {
			mu.Lock()
			defer mu.Unlock()
			if places[place] == "" {
				places[place] = server.Database(t)
			}
			options := postgres.Options{
				URL: places[place], Pooling: pooling, Clock: o.Clock, AcceptClock: o.AcceptClock, OnClockStep: o.OnClockStep,
				BatchTimeout: patience, // a busy disk is no outage
			}
			switch {
			case bounces:
				options.URL = bounced(places[place])
			case pooling:
				options.DiscardSessions()
			}
			b, err := postgres.Open(ctx, options)
			if err != nil {
				return nil, err
			}
			b.Start()
			return b, nil
		},
	}
}
