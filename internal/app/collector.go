// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime/debug"
	"runtime/metrics"
)

// The garbage collector trades memory for time. The live heap is some tens of
// megabytes, and collecting it at every doubling costs a fifth of the CPU time under
// load; with thousands of streams open it is hundreds, and four times that is not
// ours to take. A heap of a few megabytes may hold smallHeap of garbage: four times
// its size would be collected thirty times a second, each time on all processors.
const (
	leastPercent, mostPercent = 100, 400
	smallHeap                 = 64 << 20  // bytes of garbage that are always allowed
	spareHeap                 = 256 << 20 // bytes of garbage from which on a larger heap gets less for its size
	leastLive                 = 4 << 20   // bytes that the runtime takes a smaller heap for
	liveHeap                  = "/gc/heap/live:bytes"
)

// collector sets how much garbage is left lying, unless GOGC says it.
type collector struct {
	percent int
}

// newCollector begins with a small heap.
func newCollector(env func(string) (string, bool)) *collector {
	if _, said := env("GOGC"); said {
		return &collector{}
	}
	percent := percentFor(0)
	debug.SetGCPercent(percent)
	return &collector{percent: percent}
}

// adapt follows what the last collection has left.
func (c *collector) adapt() {
	if c.percent == 0 {
		return
	}
	sample := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(sample)
	percent := percentFor(sample[0].Value.Uint64())
	if percent/10 != c.percent/10 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor is the garbage allowed beside so many live bytes, in percent of them.
func percentFor(live uint64) int {
	live = max(live, leastLive)
	return int(max(smallHeap*100/live, min(max(spareHeap*100/live, leastPercent), mostPercent)))
}
