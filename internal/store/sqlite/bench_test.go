// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

// percentiles reports p50 and p99 of durations, in microseconds.
func percentiles(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, name+"-p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, name+"-p99-µs")
}

// BenchmarkCycle is reserve and settle on eight counters of one hot workspace.
// A cycle is one operation; reserve-p50 is what a request waits for.
func BenchmarkCycle(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			book := open(b, sqlite.Options{Path: filepath.Join(b.TempDir(), "weir.db")})
			book.Start()
			counted := &counting{Book: book}
			g := storetest.NewGatherer(counted)
			took := make([][]time.Duration, callers)
			var left atomic.Int64
			left.Store(int64(b.N))
			var wait sync.WaitGroup
			before := measureProcess(b)
			b.ResetTimer()
			for i := range callers {
				wait.Go(func() {
					for left.Add(-1) >= 0 {
						op := cycle(newID(book.Now()), "acme", fmt.Sprint("key", i%8), book.Now())
						start := time.Now()
						result, err := g.Do(op)
						took[i] = append(took[i], time.Since(start))
						if err != nil || result.Verdict != ledger.Admitted {
							b.Errorf("admit: %+v, %v", result, err)
							return
						}
						if result, err = g.Do(settle(result.Reservation, 1_000_000)); err != nil || result.Verdict != ledger.Done {
							b.Errorf("settle: %+v, %v", result, err)
							return
						}
					}
				})
			}
			wait.Wait()
			b.StopTimer()
			g.Close()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
			b.ReportMetric(float64(2*b.N)/float64(counted.batches), "ops/batch")
			percentiles(b, "reserve", slices.Concat(took...))
			measureProcess(b).report(b, before)
		})
	}
}

// BenchmarkBatch is the same without a gatherer: batches of so many admissions
// and of so many settlements.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			book := open(b, sqlite.Options{Path: filepath.Join(b.TempDir(), "weir.db")})
			book.Start()
			before := measureProcess(b)
			b.ResetTimer()
			ops := make([]*ledger.Op, size)
			for done := 0; done < b.N; done += size {
				for i := range ops {
					ops[i] = cycle(newID(book.Now()), "acme", fmt.Sprint("key", i%8), book.Now())
				}
				results, err := book.Apply(b.Context(), ops)
				if err != nil {
					b.Fatal(err)
				}
				for i := range ops {
					ops[i] = settle(results[i].Reservation, 1_000_000)
				}
				if _, err := book.Apply(b.Context(), ops); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
			measureProcess(b).report(b, before)
		})
	}
}

// process is what this process has used: figures that hold on a busy machine.
type process struct{ cpuMicros, written float64 }

func measureProcess(b *testing.B) (p process) {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	p.cpuMicros = float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e3
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	var read int64
	if _, err := fmt.Sscanf(string(io), "rchar: %d\nwchar: %f", &read, &p.written); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p process) report(b *testing.B, before process) {
	b.Helper()
	b.ReportMetric((p.cpuMicros-before.cpuMicros)/float64(b.N), "cpu-µs/cycle")
	b.ReportMetric((p.written-before.written)/1024/float64(b.N), "written-KiB/cycle")
}

// counting counts batches; one gatherer calls it.
type counting struct {
	store.Book
	batches int
}

func (c *counting) Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	c.batches++
	return c.Book.Apply(ctx, ops)
}

// BenchmarkFdatasync is the floor: append so many bytes and flush them.
func BenchmarkFdatasync(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("append=%dKiB", size>>10), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			data := make([]byte, size)
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				start := time.Now()
				if _, err := f.Write(data); err != nil {
					b.Fatal(err)
				}
				if err := unix.Fdatasync(int(f.Fd())); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			percentiles(b, "flush", took)
		})
	}
}

// BenchmarkAppend is a raw log under the same gatherer: each cycle appends two
// records of a reservation's size, each batch is flushed once. The engine's goal
// is 0.4 of its rate at 64 callers.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			g := storetest.NewGatherer(&appending{file: f})
			op := &ledger.Op{}
			var left atomic.Int64
			left.Store(int64(b.N))
			var wait sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wait.Go(func() {
					for left.Add(-1) >= 0 {
						for range 2 {
							if _, err := g.Do(op); err != nil {
								b.Error(err)
								return
							}
						}
					}
				})
			}
			wait.Wait()
			b.StopTimer()
			g.Close()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
		})
	}
}

// appending is a book that only writes.
type appending struct {
	file *os.File
	data []byte
}

const recordBytes = 1024

func (a *appending) Apply(_ context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	a.data = append(a.data[:0], make([]byte, recordBytes*len(ops))...)
	if _, err := a.file.Write(a.data); err != nil {
		return nil, err
	}
	return make([]ledger.Result, len(ops)), unix.Fdatasync(int(a.file.Fd()))
}

func (a *appending) Now() int64 { return 0 }
