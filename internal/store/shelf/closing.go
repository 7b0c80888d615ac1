// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// DayMicros is a day of UTC.
const DayMicros = int64(24 * time.Hour / time.Microsecond)

// Closable tells whether the events of one request, all of them, may be closed
// into daily sums: a request is dropped whole, for how it ended and how often it
// was corrected is read off its events.
func Closable(request []ledger.Event, before int64) bool {
	for i := range request {
		e := &request[i]
		if e.AdmittedAt >= before || e.At >= before || e.Kind >= ledger.EventTopUp {
			return false
		}
	}
	return len(request) > 0
}

// ClosableOf are those events of a list, in the order of their requests, whose
// requests may be closed, but for some.
func ClosableOf(list []ledger.Event, before int64, but []ledger.ID) (gone []ledger.Event) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(e ledger.Event) bool { return e.ID != list[0].ID })
		if n < 0 {
			n = len(list)
		}
		if Closable(list[:n], before) && !slices.Contains(but, list[0].ID) {
			gone = append(gone, list[:n]...)
		}
		list = list[n:]
	}
	return gone
}

// Closings sums what events charged, by counter and day of admission, in key
// order. A sum that would overflow is cut, as its counter's is (section 1).
func Closings(events []ledger.Event) []store.Closing {
	sums := make(map[store.Closing]int64)
	for i := range events {
		e := &events[i]
		for _, c := range e.Charges {
			key := store.Closing{
				Counter: c.Counter, Kind: c.Kind, Credit: c.Credit, Day: int32(window.DayAt(e.AdmittedAt, time.UTC)),
			}
			sums[key] = Saturate(sums[key], c.Amount)
		}
	}
	list := make([]store.Closing, 0, len(sums))
	for c, amount := range sums {
		c.Amount = amount
		list = append(list, c)
	}
	slices.SortFunc(list, CompareClosings)
	return list
}

// CompareClosings orders closings by their keys.
func CompareClosings(a, b store.Closing) int {
	switch {
	case a.Counter.Less(b.Counter):
		return -1
	case b.Counter.Less(a.Counter):
		return 1
	case a.Day != b.Day || a.Credit == b.Credit:
		return cmp.Compare(a.Day, b.Day)
	case b.Credit:
		return -1
	default:
		return 1
	}
}

// WholeDays sums quarters into the days of UTC that they lie in; those that begin
// a day are that day already and stay out.
func WholeDays(quarters []ledger.QuarterSum) (days, gone []ledger.QuarterSum) {
	for _, q := range quarters {
		day := q
		day.Quarter -= q.Quarter % DayMicros
		if day.Quarter != q.Quarter {
			days, gone = append(days, day), append(gone, q)
		}
	}
	return Quarters(days), gone
}
