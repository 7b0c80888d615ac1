// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/shelf"
)

// write is what one batch changes, as statements.
type write struct {
	page     *ledger.Page
	changes  *ledger.Changes
	open     *shelf.Rows
	known    map[openKey]opened // the rows that were open before
	replaces bool               // calls that are there already
	counters []ledger.Counter
	// Of counters, as stored.
	states []*ledger.State
	raw    [][]byte
}

// steps are all of it.
func (w *write) steps() []step {
	if len(w.counters) == 0 {
		return w.records()
	}
	w.encode()
	return append([]step{{statement: stUpdate, args: counterArgs(w.counters, stateArgs(w.states, w.raw)...)}}, w.records()...)
}

// records are what comes after the counters.
func (w *write) records() []step {
	steps := make([]step, 0, 10)
	add := func(n int, s *statement, args func() [][]byte) {
		if n > 0 {
			steps = append(steps, step{statement: s, args: args()})
		}
	}
	c := w.changes
	if len(w.open.Insert) == 1 {
		r := w.open.Insert[0]
		steps = append(steps, step{statement: stReserveOne, args: [][]byte{
			[]byte(escape(r.Workspace)), r.ID[:], integerArg(r.ExpiresAt), []byte(escape(r.Process)), r.Encode(),
		}})
	} else {
		add(len(w.open.Insert), stReserve, func() [][]byte { return reserveArgs(w.open.Insert) })
	}
	add(len(w.open.Update), stReplace, func() [][]byte { return replaceArgs(w.open.Update) })
	whole, ends := w.calls()
	forEnds, forCalls := stEnd, stCalls
	if w.replaces {
		forEnds, forCalls = stReplaceEnd, stReplaceCalls
	}
	add(len(ends), forEnds, func() [][]byte { return callArgs(ends) })
	add(len(whole), forCalls, func() [][]byte { return callArgs(whole) })
	add(len(w.open.Delete), stRemove, func() [][]byte { return openArgs(keysOf(w.open.Delete)) })
	add(len(c.Events), stEvents, func() [][]byte { return eventArgs(c.Events) })
	add(len(c.Quarters), stAddQuarters, func() [][]byte { return quarterArgs(c.Quarters) })
	add(len(c.Outbox), stNotices, func() [][]byte { return noticeArgs(c.Outbox) })
	return steps
}

// calls are those that travel whole, and those whose reservations ended as their
// rows have them.
func (w *write) calls() (whole, ends []countedCall) {
	closed := w.changes.Closed
	for i := range w.changes.Calls {
		c := countedCall{Call: &w.changes.Calls[i], count: 1}
		for closed[0].Tombstone {
			closed = closed[1:] // they leave no call
		}
		r := closed[0]
		closed = closed[1:]
		if w.known[openKey{c.Workspace, c.ID}].Reservation == r {
			c.row = r
			ends = append(ends, c)
		} else {
			whole = append(whole, c)
		}
	}
	return whole, ends
}

// keep remembers the rows as the batch, which is committed, has left them.
func (w *write) keep(b *Book) {
	for i, c := range w.counters {
		b.counters.put(c, row{w.states[i], w.raw[i]})
	}
	for _, r := range w.open.Insert {
		b.opened.put(openKey{r.Workspace, r.ID}, opened{r, 1})
	}
	for _, r := range w.open.Update {
		key := openKey{r.Workspace, r.ID}
		b.opened.put(key, opened{r, w.known[key].version + 1})
	}
	for _, r := range w.open.Delete {
		b.opened.forget(openKey{r.Workspace, r.ID})
	}
}

func keysOf(list []*ledger.Reservation) []openKey {
	keys := make([]openKey, len(list))
	for i, r := range list {
		keys[i] = openKey{r.Workspace, r.ID}
	}
	return unique(keys, compareOpen)
}

func (w *write) encode() {
	w.states, w.raw = make([]*ledger.State, len(w.counters)), make([][]byte, len(w.counters))
	for i, c := range w.counters {
		w.states[i] = w.page.Counters[c]
		w.raw[i] = w.states[i].Encode()
	}
}

// stateArgs are the columns of counters beside their keys; a nil state is of a
// row that means nothing.
func stateArgs(states []*ledger.State, raw [][]byte) [][]byte {
	n := len(states)
	column := func(of func(s *ledger.State) int64) []byte {
		return ints(n, func(i int) int64 {
			if states[i] == nil {
				return 0
			}
			return of(states[i])
		})
	}
	return [][]byte{
		column(func(s *ledger.State) int64 { return int64(s.Kind) }),
		column(func(s *ledger.State) int64 { return s.Settled }),
		column(func(s *ledger.State) int64 { return s.Held }),
		column(func(s *ledger.State) int64 { return int64(s.Warned) }),
		column(func(s *ledger.State) int64 { return s.At }),
		blobs(n, func(to []byte, i int) []byte { return append(to, raw[i]...) }),
	}
}

func reserveArgs(list []*ledger.Reservation) [][]byte {
	n := len(list)
	return [][]byte{
		texts(n, func(i int) string { return list[i].Workspace }),
		uuids(n, func(i int) ledger.ID { return list[i].ID }),
		ints(n, func(i int) int64 { return list[i].ExpiresAt }),
		texts(n, func(i int) string { return list[i].Process }),
		blobs(n, func(to []byte, i int) []byte { return list[i].AppendTo(to) }),
	}
}

func replaceArgs(list []*ledger.Reservation) [][]byte {
	n := len(list)
	return [][]byte{
		texts(n, func(i int) string { return list[i].Workspace }),
		uuids(n, func(i int) ledger.ID { return list[i].ID }),
		ints(n, func(i int) int64 { return list[i].ExpiresAt }),
		blobs(n, func(to []byte, i int) []byte { return list[i].AppendTo(to) }),
	}
}

func eventArgs(list []ledger.Event) [][]byte {
	n := len(list)
	return [][]byte{
		texts(n, func(i int) string { return list[i].Workspace }),
		uuids(n, func(i int) ledger.ID { return list[i].ID }),
		ints(n, func(i int) int64 { return int64(list[i].Attempt) }),
		ints(n, func(i int) int64 { return int64(list[i].Kind) }),
		ints(n, func(i int) int64 { return list[i].At }),
		ints(n, func(i int) int64 { return list[i].AdmittedAt }),
		texts(n, func(i int) string { return list[i].Subjects.Key }),
		texts(n, func(i int) string { return list[i].Model }),
		ints(n, func(i int) int64 { return list[i].Spend }),
		ints(n, func(i int) int64 { return list[i].Tokens }),
		blobs(n, func(to []byte, i int) []byte { return list[i].AppendTo(to) }),
	}
}

// countedCall is a store.Call without its copy. row, if set, is the reservation
// whose row has the rest of its body.
type countedCall struct {
	*ledger.Call
	count int64
	row   *ledger.Reservation
}

func (c *countedCall) appendBody(to []byte) []byte {
	if c.row != nil {
		return c.AppendEnd(to, c.row)
	}
	return append(to, c.Encode()...)
}

// callArgs sorts list: whoever writes calls locks them in one order.
func callArgs(list []countedCall) [][]byte {
	slices.SortFunc(list, func(x, y countedCall) int {
		return cmp.Or(cmp.Compare(x.Workspace, y.Workspace), x.ID.Compare(y.ID))
	})
	n := len(list)
	return [][]byte{
		texts(n, func(i int) string { return list[i].Workspace }),
		uuids(n, func(i int) ledger.ID { return list[i].ID }),
		texts(n, func(i int) string { return list[i].Key }),
		texts(n, func(i int) string { return list[i].Outcome }),
		texts(n, func(i int) string { return list[i].Code }),
		ints(n, func(i int) int64 { return list[i].At }),
		ints(n, func(i int) int64 { return list[i].EndedAt }),
		texts(n, func(i int) string { return list[i].Model }),
		texts(n, func(i int) string { return list[i].ClientID }),
		ints(n, func(i int) int64 { return list[i].count }),
		blobs(n, func(to []byte, i int) []byte { return list[i].appendBody(to) }),
	}
}

func quarterArgs(sums []ledger.QuarterSum) [][]byte {
	list := shelf.Quarters(sums)
	slices.SortFunc(list, func(x, y ledger.QuarterSum) int {
		return cmp.Or(cmp.Compare(x.Workspace, y.Workspace), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Quarter, y.Quarter))
	})
	n := len(list)
	return [][]byte{
		texts(n, func(i int) string { return list[i].Workspace }),
		texts(n, func(i int) string { return list[i].Key }),
		ints(n, func(i int) int64 { return list[i].Quarter }),
		ints(n, func(i int) int64 { return list[i].Spend }),
		ints(n, func(i int) int64 { return list[i].Tokens }),
		ints(n, func(i int) int64 { return list[i].Requests }),
	}
}

func noticeArgs(list []ledger.Notice) [][]byte {
	n := len(list)
	return [][]byte{
		texts(n, func(i int) string { return list[i].Workspace }),
		texts(n, func(i int) string { return list[i].Kind }),
		ints(n, func(i int) int64 { return list[i].At }),
		blobs(n, func(to []byte, i int) []byte { return ledger.AppendNotice(to, &list[i]) }),
	}
}
