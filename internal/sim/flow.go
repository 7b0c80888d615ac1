// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
)

// flow is everything that a bucket ever gave, for the rule that needs no
// bucket to be said: of any interval of t seconds, no more than the limit and
// what refills in t may be taken (RUN-1).
type flow struct {
	takes []taking
}

// taking is one admission's units, or, negative, what was given back at an
// instant. Instants are the forward way of the book's clock.
type taking struct {
	id           ledger.ID
	units, limit int64
	at           int64
}

// maxBack bounds how far back a check looks.
const maxBack = 400

func (a *audit) flow(c ledger.Counter) *flow {
	f := a.buckets[c]
	if f == nil {
		f = &flow{}
		a.buckets[c] = f
	}
	return f
}

func (f *flow) take(id ledger.ID, units, limit, at int64) {
	f.takes = append(f.takes, taking{id, units, limit, at})
}

// correct makes an admission count for what it used in the end, or for nothing
// if no provider saw it: a charge belongs to its admission (RES-10).
func (f *flow) correct(id ledger.ID, units int64) {
	for i := len(f.takes) - 1; i >= 0; i-- {
		if f.takes[i].id == id && f.takes[i].units > 0 {
			f.takes[i].units = min(f.takes[i].units, units)
			return
		}
	}
}

// excess finds an interval, ending now, in which more was taken than the limit
// and the refill of the time between. A limit that changed meanwhile counts as
// its greatest; a millisecond is the bucket's own grain.
func (f *flow) excess(now int64) string {
	total, most := int64(0), int64(0)
	for i := len(f.takes) - 1; i >= 0 && i >= len(f.takes)-maxBack; i-- {
		t := &f.takes[i]
		total += t.units
		most = max(most, t.limit)
		millis := (now-t.at)/1000 + 1
		if total*60_000 > most*60_000+most*millis {
			return fmt.Sprintf("%d units in %d ms, limit %d a minute", total, millis, most)
		}
	}
	return ""
}

// used makes a request count, in its buckets and windows, for what it used in the
// end; of one that no provider saw, the request too comes back (RES-10). More debt
// of a bucket is never too little: only what comes back has to be known.
func (a *audit) used(id ledger.ID, d *due, units int64, undone bool) {
	if d.kind != ledger.KindBucket && d.kind != ledger.KindSliding || d.charges == ledger.MetricNone && !undone {
		return
	}
	if undone {
		units = 0
	}
	if d.kind == ledger.KindBucket {
		a.flow(d.counter).correct(id, units)
	} else if e := a.pane(d.counter).of[id]; e != nil {
		e.end(units)
	}
}

// returned gives back what a request that moves on has taken.
func (a *audit) returned(id ledger.ID, b *bond) {
	for i := range b.dues {
		if d := &b.dues[i]; !d.once() {
			a.used(id, d, 0, false)
		}
	}
}

// revised corrects what a request has in its buckets and windows.
func (a *audit) revised(id ledger.ID, b *bond, d *due, delta int64) {
	switch {
	case d.charges == ledger.MetricNone || delta == 0:
	case d.kind == ledger.KindBucket && delta < 0:
		a.flow(d.counter).correct(id, max(0, b.worst.Tokens+delta)) // what the sweep took, and less
	case d.kind == ledger.KindSliding:
		if e := a.pane(d.counter).of[id]; e != nil {
			e.revise(delta)
		}
	default:
	}
}
