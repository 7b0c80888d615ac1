// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/sim"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
)

// shelf is the SQLite book as sim.Peer, with a clock that stands where it is put.
type shelf struct {
	ctx      context.Context
	place    string // a folder for each life of the book
	lives    int
	clock    *clock.Manual
	book     *sqlite.Book
	versions map[string]int64
	cache    int
}

func openShelf(ctx context.Context, place string, cache int) (sim.Peer, error) {
	s := &shelf{ctx: ctx, place: place, clock: clock.NewManual(0), versions: map[string]int64{}, cache: cache}
	return s, s.open()
}

func (s *shelf) path() string { return filepath.Join(s.place, fmt.Sprint(s.lives), "weir.db") }

func (s *shelf) open() (err error) {
	if err := os.MkdirAll(filepath.Dir(s.path()), 0o700); err != nil {
		return err
	}
	s.book, err = sqlite.Open(s.ctx, sqlite.Options{Path: s.path(), Clock: s.clock, AcceptClock: true, CounterCache: s.cache})
	return err
}

func (s *shelf) Apply(clock int64, ops []*ledger.Op) ([]ledger.Result, error) {
	s.clock.Set(clock)
	return s.book.Apply(s.ctx, ops)
}

func (s *shelf) Configure(clock int64, workspace string) (int64, error) {
	return configure(s.ctx, s.book, s.versions, clock, workspace)
}

// configure changes a workspace and returns its generation.
func configure(ctx context.Context, book store.Objects, versions map[string]int64, clock int64, workspace string) (int64, error) {
	versions[workspace]++
	err := book.Change(ctx, clock, []store.Edit{{Expect: versions[workspace] - 1, Object: store.Object{
		Workspace: workspace, Kind: "workspace", ID: workspace, Name: workspace, Body: []byte("{}"), Source: "api",
	}}})
	if err != nil {
		return 0, err
	}
	_, generation, err := book.Since(ctx, workspace, math.MaxInt64)
	return generation, err
}

func (s *shelf) Expired(clock int64) ([]*ledger.Reservation, error) {
	s.clock.Set(clock)
	return s.book.Expired(s.ctx, store.MaxBatch)
}

// Crash opens a copy of the files as they are: nothing was written back into the
// database, and nobody said goodbye.
func (s *shelf) Crash(clock int64) (int64, error) {
	s.clock.Set(clock)
	before, old := s.book, s.path()
	s.lives++
	if err := os.MkdirAll(filepath.Dir(s.path()), 0o700); err != nil {
		return 0, err
	}
	for _, suffix := range []string{"", "-wal", ".journal0", ".journal1"} {
		if err := copyFile(s.path()+suffix, old+suffix); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(before.Close(), os.RemoveAll(filepath.Dir(old)), s.open()); err != nil {
		return 0, err
	}
	return s.book.Recovery().LastAt, nil
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (s *shelf) Contents() (*sim.Contents, error) { return contents(s.ctx, s.book) }

func contents(ctx context.Context, book store.Verifiable) (*sim.Contents, error) {
	c := &sim.Contents{Counters: map[ledger.Counter]*ledger.State{}}
	err := book.View(ctx, func(r store.Reader) error {
		return errors.Join(
			r.Counters(func(at ledger.Counter, s *ledger.State) error { c.Counters[at] = s.Clone(); return nil }),
			r.Reservations(func(r *ledger.Reservation) error { c.Open = append(c.Open, r); return nil }),
			r.Events(func(e *ledger.Event) error { c.Events = append(c.Events, *e); return nil }),
			r.Quarters(func(q ledger.QuarterSum) error { c.Quarters = append(c.Quarters, q); return nil }),
			r.Calls(func(call *store.Call) error {
				if call.Outcome != "refused" {
					ended := call.Call
					c.Calls = append(c.Calls, &ended)
				}
				return nil
			}),
		)
	})
	return c, err
}

func (s *shelf) Close() error { return errors.Join(s.book.Close(), os.RemoveAll(s.place)) }

const (
	// sqliteSeedsEnv raises the number of seeds that drive SQLite; `make soak` sets it.
	sqliteSeedsEnv     = "WEIR_SIM_SQLITE_SEEDS"
	defaultSQLiteSeeds = 60
	besideSteps        = 700
	// lanes run beside each other: most of their time they wait for the disk.
	lanes = 4
)

// ENGINE 6, 10, RES-1, RES-5, RES-7, STO-1: the SQLite book answers every batch of
// the same scripts as the model does, has the same rows, and has them still after
// a crash.
func TestSQLiteDoesAsTheModel(t *testing.T) {
	t.Parallel()
	most := seeds(t, sqliteSeedsEnv, defaultSQLiteSeeds)
	tallies := make([]sim.Tally, lanes)
	t.Run("Lanes", func(t *testing.T) {
		for lane := range uint64(lanes) {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for seed := lane; seed < most; seed += lanes {
					tally, err := sim.RunBeside(seed, besideSteps, false, func() (sim.Peer, error) {
						return openShelf(t.Context(), filepath.Join(t.TempDir(), "book"), []int{0, 3, 20}[seed%3])
					})
					if err != nil {
						t.Fatal(err)
					}
					tallies[lane].Add(&tally)
				}
			})
		}
	})
	var all sim.Tally
	for i := range tallies {
		all.Add(&tallies[i])
	}
	t.Log(all.String())
	if most >= defaultSQLiteSeeds && (all.Crashes < 10 || all.Swept < 10 || all.Moved < 10 || all.Corrected == 0 || all.Amended[1] < 10) {
		t.Error("too little happened")
	}
}

// broken is a SQLite book that does one thing wrong.
type broken struct {
	*shelf
	results func([]*ledger.Op, []ledger.Result)
	crash   func(*shelf) error
	expired bool
}

func (b *broken) Apply(clock int64, ops []*ledger.Op) ([]ledger.Result, error) {
	results, err := b.shelf.Apply(clock, ops)
	if b.results != nil {
		b.results(ops, results)
	}
	return results, err
}

func (b *broken) Crash(clock int64) (int64, error) {
	if b.crash != nil {
		if err := b.crash(b.shelf); err != nil {
			return 0, err
		}
	}
	return b.shelf.Crash(clock)
}

func (b *broken) Expired(clock int64) ([]*ledger.Reservation, error) {
	if b.expired {
		return nil, nil
	}
	return b.shelf.Expired(clock)
}

// loseLast takes the last batch out of a segment of the journal, if it has one.
func loseLast(path string) error {
	file, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if last := bytes.LastIndex(file, []byte("wSpR")); last > 0 {
		file = file[:last]
	}
	return errors.Join(err, os.WriteFile(path, file, 0o600))
}

func TestABookThatDiffersFromTheModelIsFound(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]broken{
		"what was committed is lost": {crash: func(s *shelf) error { return loseLast(s.path() + ".journal0") }},
		"an answer is another": {results: func(_ []*ledger.Op, results []ledger.Result) {
			for i := range results {
				results[i].Place++
			}
		}},
		"a reading is another": {results: func(_ []*ledger.Op, results []ledger.Result) {
			for i := range results {
				for j := range results[i].Readings {
					results[i].Readings[j].Used++
				}
			}
		}},
		"nothing expires": {expired: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				_, err := sim.RunBeside(seed, 300, false, func() (sim.Peer, error) {
					peer, err := openShelf(t.Context(), filepath.Join(t.TempDir(), "book"), 0)
					mine := b
					mine.shelf, _ = peer.(*shelf)
					return &mine, err
				})
				var f *sim.Failure
				if errors.As(err, &f) {
					if f.Rule != "the real book does as the model" || len(f.Script) > 16 {
						t.Errorf("the report is of no use: %v", err)
					}
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}
