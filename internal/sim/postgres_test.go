// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/sim"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

// simulated is the instant at which every play begins, in Unix microseconds.
const simulated = int64(1_772_938_800_000_000)

// database is this test process's PostgreSQL; it starts with the first test that
// needs it.
var database = pgtest.Server{Prepare: func(url string) error {
	book, err := postgres.Open(context.Background(), postgres.Options{URL: url, Clock: clock.NewManual(simulated)})
	if err != nil {
		return err
	}
	return book.Close()
}}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := database.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// replica is one process on a PostgreSQL book as sim.Peer, with a clock that stands
// where it is put.
type replica struct {
	ctx      context.Context
	options  postgres.Options
	clock    *clock.Manual
	book     *postgres.Book
	versions map[string]int64
}

func openReplica(ctx context.Context, url string, cache int) (sim.Peer, error) {
	r := &replica{ctx: ctx, clock: clock.NewManual(simulated), versions: map[string]int64{}}
	r.options = postgres.Options{URL: url, Clock: r.clock, AcceptClock: true, CounterCache: cache, Connections: 1, Reporting: 2}
	return r, r.open()
}

func (r *replica) open() (err error) {
	r.book, err = postgres.Open(r.ctx, r.options)
	return err
}

func (r *replica) Apply(clock int64, ops []*ledger.Op) ([]ledger.Result, error) {
	r.clock.Set(clock)
	return r.book.Apply(r.ctx, ops)
}

func (r *replica) Configure(clock int64, workspace string) (int64, error) {
	return configure(r.ctx, r.book, r.versions, clock, workspace)
}

func (r *replica) Expired(clock int64) ([]*ledger.Reservation, error) {
	r.clock.Set(clock)
	return r.book.Expired(r.ctx, store.MaxBatch)
}

// Crash ends the process without a goodbye. The next one charges what it left open,
// as `weir replicas forget` does.
func (r *replica) Crash(clock int64) (int64, error) {
	r.clock.Set(clock)
	if err := r.book.Beat(r.ctx); err != nil { // the others know when it was last alive
		return 0, err
	}
	if err := errors.Join(r.book.Close(), r.open()); err != nil {
		return 0, err
	}
	left, err := contents(r.ctx, r.book)
	if err != nil || len(left.Open) == 0 {
		return r.book.Recovery().LastAt, err
	}
	var sweeps []*ledger.Op
	for _, open := range left.Open {
		sweeps = append(sweeps, &ledger.Op{Verb: ledger.Sweep, Workspace: open.Workspace, Reservation: open})
	}
	_, err = r.book.Apply(r.ctx, sweeps)
	return r.book.Recovery().LastAt, err
}

func (r *replica) Contents() (*sim.Contents, error) { return contents(r.ctx, r.book) }

func (r *replica) Close() error { return r.book.Close() }

const (
	// postgresSeedsEnv raises the number of seeds that drive PostgreSQL; `make soak`
	// sets it.
	postgresSeedsEnv     = "WEIR_SIM_POSTGRES_SEEDS"
	defaultPostgresSeeds = 8
)

// ENGINE 3, 5, 6, 7, RES-1, RES-5, RES-7, STO-1: the PostgreSQL book answers every
// batch of the same scripts as the model and SQLite do, has the same rows, and has
// them still after a crash.
func TestPostgreSQLDoesAsTheModel(t *testing.T) {
	var all sim.Tally
	most := seeds(t, postgresSeedsEnv, defaultPostgresSeeds)
	for seed := range most {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			tally, err := sim.RunBeside(seed, besideSteps, true, func() (sim.Peer, error) {
				return openReplica(t.Context(), database.Reused(t), []int{0, 3, 20}[seed%3])
			})
			if err != nil {
				t.Fatal(err)
			}
			all.Add(&tally)
		})
	}
	t.Log(all.String())
	if most >= defaultPostgresSeeds && (all.Admitted < 100 || all.Crashes == 0 || all.Swept == 0 || all.Moved == 0) {
		t.Error("too little happened")
	}
}
