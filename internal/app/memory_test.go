// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// level is what is in memory, and how many goroutines run, when nothing is under way
// and everything that is garbage is gone.
func (w *world) level() (heap int64, goroutines int) {
	w.t.Helper()
	w.await("the provider at rest", func(n simulator.Totals) bool { return n.InFlight == 0 })
	w.atRest()
	w.http.CloseIdleConnections()
	var stats runtime.MemStats
	for range 3 { // pools are emptied by the second
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc), runtime.NumGoroutine()
}

// streamsWanted is how many streams there are, and half as many keys at the most:
// WEIR_STREAMS, or what a machine does in some seconds.
func streamsWanted() (streams, keys int) {
	streams = 5000
	if n, err := strconv.Atoi(os.Getenv("WEIR_STREAMS")); err == nil {
		streams = n
	}
	return streams, min(streams/25, 2000)
}

// TestStreamsLeaveNoMemoryAndNoGoroutineBehind: BR-166, RES-10. Three in ten are
// aborted. Gateway, provider and clients are one process here. A tenth of the
// streams gives the level that all of them may pass by a fifth.
func TestStreamsLeaveNoMemoryAndNoGoroutineBehind(t *testing.T) {
	const parallel = 32
	streams, keys := streamsWanted()
	secret := func(i int) string { return fmt.Sprintf("the-secret-of-the-streaming-key-%d", i%keys) }
	var text strings.Builder
	text.WriteString(`
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=200&gap=100us", context_tokens: 128000, max_output_tokens: 200, price: {input: "1", output: "10"}}
keys:
`)
	for i := range keys {
		fmt.Fprintf(&text, "  - {name: k%d, secret: %s, user: u%d, limits: {concurrency: 100, rpm: 100000}, caps: {day: \"100\"}}\n", i, secret(i), i%50)
	}
	w := newWorld(t, text.String())
	send := func(from, to int) {
		volley(to-from, parallel, func(i int) answer {
			random := rand.New(rand.NewPCG(uint64(from+i), 166))
			if random.IntN(10) < 3 {
				w.leave(secret(from+i), chatBody("m", `"stream":true`), int64(random.IntN(2000)), time.Duration(1+random.IntN(50))*time.Millisecond)
				return answer{}
			}
			return w.stream(secret(from+i), "m", "")
		})
	}
	_, idle := w.level()
	first := int64(0)
	for done := 0; done < streams; done += streams / 10 {
		send(done, done+streams/10)
		heap, goroutines := w.level()
		t.Logf("after %d streams: %d KiB, %d goroutines, %d when idle", done+streams/10, heap>>10, goroutines, idle)
		if first == 0 {
			first = heap
		}
		if heap > first+first/5 {
			t.Errorf("after %d streams %d KiB are in memory, %d after the first tenth", done+streams/10, heap>>10, first>>10)
		}
		if most := idle + 5*parallel; goroutines > most { // those of connections that are kept
			t.Errorf("after %d streams %d goroutines run, want at most %d", done+streams/10, goroutines, most)
		}
	}
	w.balanced()
}
