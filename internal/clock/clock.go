// SPDX-License-Identifier: Apache-2.0

// Package clock is where the program reads the time: the system's clock, or
// one that a test moves by hand. It keeps no timers.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock tells the present instant. Implementations are safe for concurrent use.
type Clock interface {
	// Now is the instant in Unix microseconds.
	Now() int64
}

// System is the clock of the machine.
func System() Clock { return system{} }

type system struct{}

func (system) Now() int64 { return time.Now().UnixMicro() }

// Manual is a clock that stands still until it is moved. It may be moved
// backwards.
type Manual struct{ micros atomic.Int64 }

// NewManual is a manual clock that shows at, in Unix microseconds.
func NewManual(at int64) *Manual {
	m := &Manual{}
	m.micros.Store(at)
	return m
}

// Now is the instant that the clock was last moved to.
func (m *Manual) Now() int64 { return m.micros.Load() }

// Set moves the clock to at, in Unix microseconds.
func (m *Manual) Set(at int64) { m.micros.Store(at) }

// Advance moves the clock by d, in whole microseconds; less is cut off.
func (m *Manual) Advance(d time.Duration) { m.micros.Add(d.Microseconds()) }
