// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"math"
	"testing"

	"github.com/weirhq/weir/internal/app"
)

// TestGarbageIsBoundedByWhatLives: a heap may hold four times its live bytes in
// garbage, or 64 MiB if that is more, a large one no more than another heap.
func TestGarbageIsBoundedByWhatLives(t *testing.T) {
	const mebibyte = 1 << 20
	for live, want := range map[uint64]int{
		0: 1600, 2 * mebibyte: 1600, 8 * mebibyte: 800, 16 * mebibyte: 400, 30 * mebibyte: 400, 64 * mebibyte: 400, 128 * mebibyte: 200, 256 * mebibyte: 100, 4096 * mebibyte: 100, math.MaxUint64: 100,
	} {
		if have := app.PercentFor(live); have != want {
			t.Errorf("beside %d live bytes: %d %%, want %d", live, have, want)
		}
	}
}
