// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/frame"
	"github.com/weirhq/weir/internal/store/postgres"
)

const (
	pairs = 5
	spell = time.Second // of each side of a pair
)

// measured is one spell of load.
type measured struct {
	perSecond float64
	took      []time.Duration
}

// loadFor runs one by so many callers for a spell.
func loadFor(b *testing.B, callers int, one func(caller int) (time.Duration, error)) measured {
	b.Helper()
	took := make([][]time.Duration, callers)
	var wait sync.WaitGroup
	begun := time.Now()
	for i := range callers {
		wait.Go(func() {
			for time.Since(begun) < spell {
				t, err := one(i)
				if err != nil {
					b.Errorf("caller %d: %v", i, err)
					return
				}
				took[i] = append(took[i], t)
			}
		})
	}
	wait.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return measured{float64(len(all)) / time.Since(begun).Seconds(), all}
}

// slowFlush makes each flush of the server's log wait so many microseconds first:
// a thousand, as a disk in a cloud does, or, where files are in memory
// (TMPDIR=/dev/shm), a hundred, as a disk does that nobody else uses.
func slowFlush(b *testing.B, micros int) {
	b.Helper()
	_ = server.Database(b) // it starts the server
	set := func(delay, siblings string) {
		server.Admin(b, "ALTER SYSTEM SET commit_delay = "+delay)
		server.Admin(b, "ALTER SYSTEM SET commit_siblings = "+siblings)
		server.Admin(b, "SELECT pg_reload_conf()")
	}
	b.Cleanup(func() { set("DEFAULT", "DEFAULT") })
	set(strconv.Itoa(micros), "0")
}

// logFiles is how many files of its log a server that has run for a while has at
// hand. A new one makes each while a commit waits: it fills 16 MiB with zeroes. The
// load of one benchmark writes twenty to thirty.
const logFiles = 40

// collectorPercent is the target that the program gives the collector of so small a
// heap (package app).
const collectorPercent = 1600

// seasoned gives the server files for its log as it has after some time of such a
// load, and this process the collector's target that the program gives itself.
func seasoned(tb testing.TB) {
	tb.Helper()
	_ = server.Database(tb) // it starts the server
	server.Admin(tb, "ALTER SYSTEM SET min_wal_size = '800MB'")
	server.Admin(tb, "SELECT pg_reload_conf()")
	for range logFiles {
		server.Admin(tb, "SELECT pg_logical_emit_message(false, 'weir', ''), pg_switch_wal()")
	}
	server.Admin(tb, "CHECKPOINT")
	before := debug.SetGCPercent(collectorPercent)
	tb.Cleanup(func() { debug.SetGCPercent(before) })
}

// BenchmarkOfOneTransactionEach takes turns at the books of so many replicas and at
// one transaction per request, 64 callers each, on the same server. Goals
// (ENGINE): 25 times with one replica and a p99 of 5 ms at most, 10 times with
// four, 20 times with four and flushes that are a millisecond longer. The tenants are
// one, all of whose requests meet in the same rows, or a hundred.
func BenchmarkOfOneTransactionEach(b *testing.B) {
	for _, flush := range []int{0, 100, 1000} {
		for _, replicas := range []int{1, 2, 4} {
			for _, early := range []bool{false, true} {
				name := fmt.Sprintf("flush=+%dµs/replicas=%d/early=%t", flush, replicas, early)
				b.Run(name, func(b *testing.B) {
					if flush > 0 {
						slowFlush(b, flush)
					}
					turns(b, replicas, early, 1)
				})
			}
		}
	}
	for _, replicas := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("tenants=100/replicas=%d", replicas), func(b *testing.B) { turns(b, replicas, false, 100) })
	}
}

func turns(b *testing.B, replicas int, early bool, tenants int) {
	b.Helper()
	seasoned(b)
	url := server.Database(b)
	books := make([]*postgres.Book, replicas)
	for i := range books {
		books[i] = open(b, postgres.Options{URL: url, EarlyRelease: early})
	}
	one, stop := shares(b, books...)
	names := make([]string, tenants)
	for i := range names {
		names[i] = fmt.Sprint("tenant", i)
	}
	somebody := func() string { return names[rand.IntN(tenants)] }
	ours := func(caller int) (time.Duration, error) { return one(somebody(), caller) }
	pool := plain(b, 16, names...)
	theirs := func(int) (time.Duration, error) { return plainCycle(context.Background(), pool, somebody()) }
	var rates, plainRates, ratios, tails []float64
	var took, plainTook, flushes []time.Duration
	for b.Loop() {
		for range pairs {
			m, p := loadFor(b, 64, ours), loadFor(b, 64, theirs)
			rates, plainRates = append(rates, m.perSecond), append(plainRates, p.perSecond)
			ratios, tails = append(ratios, m.perSecond/p.perSecond), append(tails, float64(m.took[len(m.took)*99/100].Microseconds()))
			took, plainTook, flushes = append(took, m.took...), append(plainTook, p.took...), append(flushes, bare(b)...)
		}
	}
	stop()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(slices.Min(tails), "least-p99-of-a-spell-µs")
	percentiles(b, "plain", plainTook)
	percentiles(b, "flush", flushes)
	b.ReportMetric(middle(rates), "cycles/s")
	b.ReportMetric(middle(plainRates), "plain-cycles/s")
	b.ReportMetric(middle(ratios), "ratio")
	percentiles(b, "reserve", took)
}

// bare is what the disk alone takes for the writes of batches, beside which the
// slowest of them are to be seen: 128 KiB in a file that keeps its length, and
// their flush, a millisecond apart.
func bare(b *testing.B) []time.Duration {
	b.Helper()
	const size, count = 128 << 10, 500
	f, err := os.Create(filepath.Join(b.TempDir(), "flush"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it is thrown away
	block := make([]byte, size)
	put := func(i int) time.Duration {
		start := time.Now()
		if _, err := f.WriteAt(block, int64(i%64*size)); err != nil {
			b.Fatal(err)
		}
		if err := frame.Flush(f); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	for i := range 64 {
		put(i)
	}
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	took := make([]time.Duration, 0, count)
	for i := range count {
		<-pause.C
		took = append(took, put(i))
	}
	return took
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
