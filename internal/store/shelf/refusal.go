// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// Bounds on refusal records (ENGINE 3).
const (
	// fullPerSecond are written in full for each workspace and second.
	fullPerSecond = 200
	// maxPending bounds the full records that wait to be written.
	maxPending = 8192
	// maxSums bounds the counting records of the present minute; past it, one
	// record for each workspace and code counts.
	maxSums = 4096
	// MaxRefusals bounds what waits to be written, but for a minute's end.
	MaxRefusals = maxPending + maxSums
)

// Refusals collects refusal records until the book writes them: the first of
// each second in full, of the rest one for each key, code and minute, with a
// count. Losing them loses no charge.
type Refusals struct {
	second, minute int64
	full           map[string]int
	pending        []store.Call
	sums           map[sumKey]*sum
}

type sumKey struct{ workspace, key, code string }

// sum counts under the id of its first call; fresh is what is not yet written.
type sum struct {
	call  ledger.Call
	fresh int64
}

// Add takes the refusals that one batch decided at one instant.
func (r *Refusals) Add(calls []ledger.Call, at int64) {
	if len(calls) == 0 {
		return
	}
	if s := at / int64(time.Second/time.Microsecond); s != r.second || r.full == nil {
		r.second, r.full = s, make(map[string]int)
	}
	if m := at / int64(time.Minute/time.Microsecond); m != r.minute || r.sums == nil {
		r.turnMinute(m)
	}
	for i := range calls {
		c := &calls[i]
		if r.full[c.Workspace] < fullPerSecond && len(r.pending) < maxPending {
			r.full[c.Workspace]++
			r.pending = append(r.pending, store.Call{Call: *c, Count: 1})
			continue
		}
		r.count(c)
	}
}

// turnMinute begins a minute; what the last one has not written stays pending,
// past maxPending too: it is bounded by maxSums and comes once a minute.
func (r *Refusals) turnMinute(minute int64) {
	for _, s := range r.sums {
		if s.fresh > 0 {
			r.pending = append(r.pending, store.Call{Call: s.call, Count: s.fresh})
		}
	}
	r.minute, r.sums = minute, make(map[sumKey]*sum)
}

func (r *Refusals) count(c *ledger.Call) {
	key := sumKey{c.Workspace, c.Key, c.Code}
	s := r.sums[key]
	if s == nil && len(r.sums) >= maxSums {
		key.key = ""
		s = r.sums[key]
	}
	if s == nil {
		s = &sum{call: *c}
		s.call.Key = key.key
		r.sums[key] = s
	}
	s.fresh++
}

// Waiting tells whether there is something to write.
func (r *Refusals) Waiting() bool {
	if len(r.pending) > 0 {
		return true
	}
	for _, s := range r.sums {
		if s.fresh > 0 {
			return true
		}
	}
	return false
}

// Take hands over at most limit records to be written. A record whose id is
// there already adds its Count to that one's. Put gives back what could not be
// written.
func (r *Refusals) Take(limit int) []store.Call {
	n := min(limit, len(r.pending))
	out := append([]store.Call(nil), r.pending[:n]...)
	r.pending = r.pending[n:]
	for _, s := range r.sums {
		if s.fresh > 0 && len(out) < limit {
			out = append(out, store.Call{Call: s.call, Count: s.fresh})
			s.fresh = 0
		}
	}
	return out
}

// Put gives back records that could not be written, as far as there is room.
func (r *Refusals) Put(calls []store.Call) {
	room := max(0, maxPending-len(r.pending))
	r.pending = append(r.pending, calls[:min(room, len(calls))]...)
}
