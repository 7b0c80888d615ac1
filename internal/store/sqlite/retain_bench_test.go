// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
)

const storedCalls = 100_000

// stored opens a book with that many calls of 200 days ago, of 200 keys.
func stored(b *testing.B) (*sqlite.Book, *clock.Manual) {
	b.Helper()
	c := clock.NewManual(time.Now().Add(-200 * 24 * time.Hour).UnixMicro())
	book := open(b, sqlite.Options{Path: filepath.Join(b.TempDir(), "weir.db"), Clock: c})
	book.Start()
	const together = 250
	for n := 0; n < storedCalls; n += together {
		var admits, settles []*ledger.Op
		for i := range together {
			admits = append(admits, cycle(newID(c.Now()), "acme", fmt.Sprint("key", (n+i)%200), c.Now()))
		}
		results, err := book.Apply(b.Context(), admits)
		if err != nil {
			b.Fatal(err)
		}
		for i := range results {
			settles = append(settles, settle(results[i].Reservation, 1000))
		}
		if _, err := book.Apply(b.Context(), settles); err != nil {
			b.Fatal(err)
		}
		c.Advance(8 * time.Minute)
	}
	c.Set(time.Now().UnixMicro())
	return book, c
}

// admitting measures what lone admissions wait for until the returned function
// is called.
func admitting(b *testing.B, book *sqlite.Book, name string) (end func()) {
	b.Helper()
	var took []time.Duration
	var work sync.WaitGroup
	stop := make(chan struct{})
	work.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			op := cycle(newID(book.Now()), "acme", "key1", book.Now())
			began := time.Now()
			results, err := book.Apply(context.Background(), []*ledger.Op{op})
			took = append(took, time.Since(began))
			if err == nil {
				_, err = book.Apply(context.Background(), []*ledger.Op{settle(results[0].Reservation, 1)})
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	return func() {
		close(stop)
		work.Wait()
		percentiles(b, name, took)
		if n := len(took); n > 0 {
			b.ReportMetric(float64(took[n-1].Microseconds()), name+"-max-µs") // percentiles sorted them
		}
	}
}

// BenchmarkPrune drops 100,000 calls and closes their events, in steps of 64 rows
// with the program's rest between them, while one caller admits.
func BenchmarkPrune(b *testing.B) {
	for _, limit := range []int{64, 256} {
		b.Run(fmt.Sprintf("rows=%d", limit), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				book, c := stored(b)
				alone := admitting(b, book, "alone")
				<-time.After(2 * time.Second)
				alone()
				old := c.Now() - int64(90*24*time.Hour/time.Microsecond)
				cut := store.Cut{Calls: old, Events: old, Quarters: old, Notices: old}
				var steps []time.Duration
				end := admitting(b, book, "beside")
				b.StartTimer()
				for done := false; !done; {
					began := time.Now()
					var err error
					if _, done, err = book.Prune(b.Context(), cut, limit); err != nil {
						b.Fatal(err)
					}
					steps = append(steps, time.Since(began))
					<-time.After(10 * time.Millisecond)
				}
				b.StopTimer()
				end()
				percentiles(b, "step", steps)
				b.ReportMetric(float64(steps[len(steps)-1].Microseconds()), "step-max-µs")
				b.ReportMetric(float64(len(steps)), "steps")
			}
		})
	}
}

// BenchmarkBackup copies a store of 100,000 calls while one caller admits.
func BenchmarkBackup(b *testing.B) {
	b.StopTimer()
	book, _ := stored(b)
	alone := admitting(b, book, "alone")
	<-time.After(2 * time.Second)
	alone()
	end := admitting(b, book, "beside")
	b.StartTimer()
	for n := range b.N {
		size, err := book.Backup(b.Context(), filepath.Join(b.TempDir(), fmt.Sprint(n)))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/(1<<20), "MiB")
	}
	b.StopTimer()
	end()
}
