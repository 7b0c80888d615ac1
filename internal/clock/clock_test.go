// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
)

func TestTheSystemClockCountsUnixMicroseconds(t *testing.T) {
	before := time.Now().UnixMicro()
	now := clock.System().Now()
	if after := time.Now().UnixMicro(); now < before || now > after {
		t.Errorf("now %d is outside [%d, %d]", now, before, after)
	}
}

func TestAManualClockMovesOnlyByHand(t *testing.T) {
	m := clock.NewManual(1_000)
	var c clock.Clock = m
	for _, step := range []struct {
		move func()
		want int64
	}{
		{func() {}, 1_000},
		{func() { m.Advance(time.Second) }, 1_001_000},
		{func() { m.Advance(-2 * time.Second) }, -999_000},
		{func() { m.Advance(999 * time.Nanosecond) }, -999_000},
		{func() { m.Set(42) }, 42},
	} {
		step.move()
		if got := c.Now(); got != step.want {
			t.Fatalf("now %d, want %d", got, step.want)
		}
	}
}

func TestAManualClockIsSafeForConcurrentUse(t *testing.T) {
	m := clock.NewManual(0)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				m.Advance(time.Microsecond)
				m.Now()
			}
		})
	}
	all.Wait()
	if got := m.Now(); got != 800 {
		t.Errorf("now %d, want 800", got)
	}
}
