// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// behave says what the request with a tag meets at the provider: always the
// same in a round of the same seed, so that the audit knows it afterwards.
func behave(seed uint64, tag string) simulator.Behaviour {
	if tag == probeTag {
		return simulator.Behaviour{}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(tag)) // never fails
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	b := simulator.Behaviour{
		Output:  simulator.Exactly(1 + r.Int64N(outputBound)),
		Latency: time.Duration(r.IntN(30)) * time.Millisecond,
		Gap:     time.Duration(r.IntN(4)) * time.Millisecond,
		Cached:  r.Int64N(2) * r.Int64N(20), Reasoning: r.Int64N(2) * r.Int64N(20),
		CRLF: r.IntN(8) == 0, Ping: r.IntN(8) == 0, Gzip: r.IntN(8) == 0,
	}
	switch {
	case r.IntN(8) == 0:
		b.Split = 1 + r.Int64N(5)
	case r.IntN(8) == 0:
		b.Join = 1 + r.Int64N(5)
	}
	switch n := r.IntN(100); {
	case n < 50: // whole and truthful
	case n < 68:
		lie(r, &b)
	case n < 88:
		breakOff(r, &b)
	case n < 94:
		statuses := []int{400, 401, 404, 408, 429, 500, 502, 503, 529}
		b.Status = statuses[r.IntN(len(statuses))]
		if r.IntN(3) == 0 {
			b.Usage = simulator.UsageAlways
		}
	case n < 96:
		b.Invalid = true
	case n < 98:
		b.Unbounded, b.Output = true, simulator.Exactly(outputBound+r.Int64N(outputBound))
	default: // slow chunks
		b.Gap = time.Duration(20+r.IntN(40)) * time.Millisecond
	}
	return b
}

// lie reports usage in some way that is not the protocol's.
func lie(r *rand.Rand, b *simulator.Behaviour) {
	modes := []simulator.UsageMode{
		simulator.UsageAlways, simulator.UsageNone, simulator.UsageNull, simulator.UsageEach, simulator.UsageFinish,
		simulator.UsagePartial, simulator.UsageInconsistent, simulator.UsageZero, simulator.UsageNegative, simulator.UsageHuge,
		simulator.UsageOverflow, simulator.UsageString, simulator.UsageFraction,
	}
	b.Usage = modes[r.IntN(len(modes))]
}

// breakOff ends or stops the answer somewhere, before its first byte too.
func breakOff(r *rand.Rand, b *simulator.Behaviour) {
	manners := []simulator.Manner{
		simulator.BreakCut, simulator.BreakClose, simulator.BreakHang, simulator.BreakError, simulator.BreakEnd, simulator.BreakEnd,
	}
	b.Break.Manner = manners[r.IntN(len(manners))]
	points := []simulator.Point{
		simulator.BeforeHeaders(), simulator.AfterEvents(0), simulator.AfterEvents(1 + r.Int64N(6)), simulator.AfterEvents(1 + r.Int64N(40)),
		simulator.BeforeUsage(), simulator.BeforeDone(),
	}
	first := 0
	if b.Break.Manner == simulator.BreakError {
		first = 1 // an error before the headers is a status
	}
	b.Break.At = points[first+r.IntN(len(points)-first)]
}

// truthful tells whether a complete answer of this behaviour reports what is
// billed, so that the ledger must equal the bill.
func truthful(b *simulator.Behaviour) bool {
	if b.Break.Manner != "" || b.Status != 0 || b.Invalid {
		return false
	}
	switch b.Usage {
	case simulator.UsageAsked, simulator.UsageAlways, simulator.UsageEach, simulator.UsageFinish:
		return true
	default:
		return false
	}
}
