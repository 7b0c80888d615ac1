// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strconv"
)

// MaxCount bounds a reported count when the caller knows no context.
const MaxCount = 1_000_000_000

// CountLimit is the largest count to believe, given ten times the model's context
// (USE-1); below 1 means MaxCount.
func CountLimit(limit int64) int64 {
	if limit < 1 || limit > 1000*MaxCount {
		return MaxCount
	}
	return limit
}

// Figure is one count of a usage report. Counts are cumulative: the last value
// given stands, and one left out or null changes nothing (USE-1).
type Figure struct {
	n     int64
	state figureState
}

type figureState uint8

const (
	absent figureState = iota
	given
	unfit // negative, not whole, no number, or beyond the bound
)

// Read takes the value that stands next in s; limit bounds it.
func (f *Figure) Read(s *Scanner, limit int64) {
	c := s.Peek()
	if c == 'n' {
		s.Literal()
		return
	}
	if c != '-' && (c < '0' || c > '9') {
		s.Skip()
		f.state = unfit
		return
	}
	n, ok := Whole(s.Number())
	if f.state = unfit; ok && n >= 0 && n <= limit {
		f.state, f.n = given, n
	}
}

// Spoil makes it unfit: what it belongs to is not the protocol's.
func (f *Figure) Spoil() { f.state = unfit }

// Given tells whether a fit value was reported.
func (f *Figure) Given() bool { return f.state == given }

// Unfit tells whether a value was reported that cannot be charged.
func (f *Figure) Unfit() bool { return f.state == unfit }

// Value is the count, 0 unless it is given.
func (f *Figure) Value() int64 {
	if f.state != given {
		return 0
	}
	return f.n
}

// Whole is a number's value when it is a whole one; 12.0 is, 12.5 and 1e3 are
// not.
func Whole(spelling []byte) (int64, bool) {
	if point := bytes.IndexByte(spelling, '.'); point >= 0 && len(bytes.Trim(spelling[point+1:], "0")) == 0 {
		spelling = spelling[:point]
	}
	n, err := strconv.ParseInt(string(spelling), 10, 64)
	return n, err == nil
}
