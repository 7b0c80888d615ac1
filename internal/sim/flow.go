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

// returned books what the end of a reservation, or a move, gives back to its
// buckets. The estimate of tokens is corrected both ways (RUN-1): only what
// comes back has to be known here, more debt is never too little.
func (a *audit) returned(row *ledger.Reservation, events []ledger.Event) {
	a.leave(row, events)
	undone := len(events) > 0 && events[0].Kind == ledger.EventUndone
	tokens := int64(0)
	for i := range events {
		tokens += events[i].Tokens
	}
	for i := range row.Holds {
		h := &row.Holds[i]
		if h.Kind != ledger.KindBucket || h.Taken == 0 {
			continue
		}
		switch {
		case h.Charges == ledger.MetricNone && undone:
			a.flow(h.Counter).correct(row.ID, 0)
		case h.Charges != ledger.MetricNone:
			a.flow(h.Counter).correct(row.ID, tokens)
		}
	}
}

// corrected is returned for the usage that came after a sweep.
func (a *audit) corrected(row *ledger.Reservation, events []ledger.Event) {
	a.amend(row, events)
	for i := range row.Holds {
		h := &row.Holds[i]
		if h.Kind == ledger.KindBucket && h.Charges != ledger.MetricNone && events[0].Tokens < 0 {
			a.flow(h.Counter).correct(row.ID, a.tokens[row.ID])
		}
	}
}
