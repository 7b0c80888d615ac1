// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime/debug"
	"runtime/metrics"
)

// The garbage collector trades memory for time. The live heap is some tens of
// megabytes, and collecting it at every doubling costs a fifth of the CPU time under
// load; with thousands of streams open it is hundreds, and four times that is not
// ours to take.
const (
	leastPercent, mostPercent = 100, 400
	spareHeap                 = 256 << 20 // bytes of garbage that are always allowed
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
	debug.SetGCPercent(mostPercent)
	return &collector{percent: mostPercent}
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
	return int(min(max(spareHeap*100/max(live, 1), leastPercent), mostPercent))
}
