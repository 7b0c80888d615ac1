// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"

	"github.com/weirhq/weir/internal/clock"
)

// wordEvery is how often an outage is told of while it lasts (BR-159): whoever
// knocks at a store that does not answer would fill the log.
const wordEvery = 10_000_000 // microseconds

// sometimes tells of what happens again and again.
type sometimes struct {
	clock clock.Clock

	mu    sync.Mutex // guards what follows
	told  int64      // when, 0: never
	count int        // of what happened since
}

// tell is 0 where it is too soon for another word, else how often it has happened
// since the last one.
func (s *sometimes) tell() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	s.count++
	if age := now - s.told; s.told != 0 && age >= 0 && age < wordEvery {
		return 0
	}
	n := s.count
	s.told, s.count = now, 0
	return n
}
