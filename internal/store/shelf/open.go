// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// Open is the set of open reservations.
type Open map[ledger.ID]*ledger.Reservation

// Rows says what one batch did to the rows of open reservations.
type Rows struct {
	Insert, Update, Delete []*ledger.Reservation
}

// Rows compares the set with the page that a batch left behind. It refuses a
// batch that opened an id that is open already: no request is held twice
// (ENGINE 6).
func (o Open) Rows(page *ledger.Page, changes *ledger.Changes) (Rows, error) {
	var rows Rows
	seen := make(map[ledger.ID]int, len(changes.Opened)+len(changes.Replaced)+len(changes.Closed))
	for _, r := range changes.Opened {
		seen[r.ID]++
	}
	for _, r := range changes.Closed {
		seen[r.ID]--
	}
	for _, r := range changes.Replaced {
		seen[r.ID] += 0
	}
	for id, opened := range seen {
		before, after := o[id], page.Open[id]
		if held(before)+opened != held(after) {
			return Rows{}, fmt.Errorf("open reservation %s: it is open already: %w", id, store.ErrConflict)
		}
		switch {
		case before == nil && after != nil:
			rows.Insert = append(rows.Insert, after)
		case before != nil && after == nil:
			rows.Delete = append(rows.Delete, before)
		case before != nil:
			rows.Update = append(rows.Update, after)
		}
	}
	return rows, nil
}

func held(r *ledger.Reservation) int {
	if r == nil {
		return 0
	}
	return 1
}

// Keep puts what a committed batch did into the set.
func (o Open) Keep(rows *Rows) {
	for _, list := range [2][]*ledger.Reservation{rows.Insert, rows.Update} {
		for _, r := range list {
			o[r.ID] = r
		}
	}
	for _, r := range rows.Delete {
		delete(o, r.ID)
	}
}

// Expired are at most limit reservations whose hold ended before at, the oldest
// first.
func (o Open) Expired(at int64, limit int) []*ledger.Reservation {
	var out []*ledger.Reservation
	for _, r := range o {
		if r.ExpiresAt < at {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *ledger.Reservation) int {
		return cmp.Or(cmp.Compare(a.ExpiresAt, b.ExpiresAt), a.ID.Compare(b.ID))
	})
	return out[:min(max(0, limit), len(out))]
}

// Held sums what the open reservations hold on each counter (RES-7).
func (o Open) Held() map[ledger.Counter]int64 {
	sums := make(map[ledger.Counter]int64)
	for _, r := range o {
		for i := range r.Holds {
			h := &r.Holds[i]
			if h.Held != 0 && (h.Kind != ledger.KindGauge || !r.SlotsFreed) {
				sums[h.Counter] = Saturate(sums[h.Counter], h.Held)
			}
		}
	}
	return sums
}

// maxNamed bounds the counters that an error names.
const maxNamed = 5

// Balance compares the held amounts of the counters with those of the open
// reservations, and names the counters that differ (ENGINE 10).
func Balance(counters, reservations map[ledger.Counter]int64) error {
	var wrong []ledger.Counter
	for c, held := range counters {
		if reservations[c] != held {
			wrong = append(wrong, c)
		}
	}
	for c, held := range reservations {
		if _, known := counters[c]; !known && held != 0 {
			wrong = append(wrong, c)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.SortFunc(wrong, func(a, b ledger.Counter) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	var text strings.Builder
	for _, c := range wrong[:min(maxNamed, len(wrong))] {
		fmt.Fprintf(&text, "; workspace %q, limit %q, epoch %d, subject %q, window %d: counter holds %d, open reservations %d",
			c.Workspace, c.Limit, c.Epoch, c.Subject, c.Window, counters[c], reservations[c])
	}
	return fmt.Errorf("%d counters%s: %w", len(wrong), text.String(), store.ErrDamaged)
}
