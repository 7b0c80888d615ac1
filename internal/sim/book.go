// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
)

// What a book answers instead of results.
var (
	errDown     = errors.New("the book is locked")                 // nothing happened
	errConflict = errors.New("an id is used already")              // nothing happened
	errUnknown  = errors.New("the connection to the book is lost") // nobody can tell
)

func outcomeUnknown(err error) bool { return errors.Is(err, errUnknown) }

// standsStill is how far back time stands still (ENGINE 7).
const standsStill = 10 * second

// flaw damages a book, for the tests of the checks: what an operation asks for,
// what a batch is given to decide on, and what of its changes is stored. The zero
// flaw does not.
type flaw struct {
	Build func(op *ledger.Op)
	Load  func(page *ledger.Page)
	Store func(ops []*ledger.Op, page *ledger.Page, changes *ledger.Changes)
}

// book is the model of a durable book that any number of replicas share. A batch
// is one step: all of it is there or nothing. Rows are kept as their encoded
// form gives them back, so nothing lives on by being pointed at.
//
// An id is admitted once, ever: a book on which a late commit can arrive has to
// hold that by a key (ENGINE 6). A tombstone may be laid again after its sweep.
type book struct {
	counters       map[ledger.Counter]*ledger.State
	open           map[ledger.ID]*ledger.Reservation
	opened         map[ledger.ID]bool
	ended          map[ledger.ID]ledger.Ending
	calls          map[ledger.ID]*ledger.Call
	events         []ledger.Event
	quarters       map[quarterOf]ledger.QuarterSum
	configurations [workspaces]*configuration
	generations    map[string]int64

	last        int64 // the last batch's instant
	offset      int64 // of its clock to virtual time
	shared      bool  // the rows of a batch know the last instant, too
	lockedUntil int64 // virtual time
	spoil       flaw
}

type quarterOf struct {
	workspace, key string
	quarter        int64
}

func newBook(s *script, spoil flaw) *book {
	b := &book{
		counters: map[ledger.Counter]*ledger.State{}, open: map[ledger.ID]*ledger.Reservation{}, opened: map[ledger.ID]bool{},
		ended: map[ledger.ID]ledger.Ending{}, calls: map[ledger.ID]*ledger.Call{}, quarters: map[quarterOf]ledger.QuarterSum{}, generations: map[string]int64{}, spoil: spoil, shared: s.shared,
	}
	for n := range b.configurations {
		b.configure(n, begin(s.shape, n))
	}
	return b
}

// configure puts a configuration in force, from the next batch on.
func (b *book) configure(workspace int, c *configuration) {
	b.configurations[workspace] = c
	b.generations[c.workspace().ID] = c.snapshot.Generation
}

// clock is the book's instant at a virtual time (ENGINE 7).
func (b *book) clock(now int64) int64 { return b.standing(now + b.offset) }

func (b *book) standing(at int64) int64 {
	if at < b.last && b.last-at <= standsStill {
		return b.last
	}
	return at
}

// instant is that of a batch on these rows. One of a shared book is not before
// what the rows have seen, which may be another process's doing.
func (b *book) instant(now int64, rows map[ledger.Counter]*ledger.State) int64 {
	clock := now + b.offset
	at := clock
	for _, s := range rows {
		if b.shared && s.At > at && s.At-clock <= standsStill {
			at = s.At
		}
	}
	return b.standing(at)
}

// decision is one committed batch, for the audit.
type decision struct {
	at      int64
	ops     []*ledger.Op
	results []ledger.Result
	changes *ledger.Changes
	// generations in force when it was decided.
	generations map[string]int64
}

// apply decides a batch and keeps what it changed, or fails and keeps nothing.
func (b *book) apply(now int64, ops []*ledger.Op) (*decision, error) {
	if now < b.lockedUntil {
		return nil, errDown
	}
	page := b.load(ops)
	at := b.instant(now, page.Counters)
	b.rebuild(page, ops, at)
	if b.spoil.Load != nil {
		b.spoil.Load(page)
	}
	results, changes := ledger.Batch(page, ops, at)
	for _, r := range changes.Opened {
		if b.opened[r.ID] && (!r.Tombstone || b.open[r.ID] != nil) {
			return nil, fmt.Errorf("%s: %w", r.ID, errConflict)
		}
	}
	if b.spoil.Store != nil {
		b.spoil.Store(ops, page, changes)
	}
	d := &decision{at: at, ops: ops, results: results, changes: changes, generations: b.generations}
	b.last = at
	return d, b.keep(page, changes)
}

func (b *book) load(ops []*ledger.Op) *ledger.Page {
	page := &ledger.Page{
		Generations: b.generations, Counters: make(map[ledger.Counter]*ledger.State),
		Open: make(map[ledger.ID]*ledger.Reservation), Ended: make(map[ledger.ID]ledger.Ending),
	}
	for _, op := range ops {
		op.Needs(func(c ledger.Counter, _ *ledger.Check) {
			s := b.counters[c]
			if s == nil {
				return
			}
			if page.Counters[c] == nil {
				page.Counters[c] = s.Clone()
			}
		}, func(id ledger.ID) {
			if r := b.open[id]; r != nil && r.Workspace == op.Workspace {
				page.Open[id] = r
			} else if ending, ok := b.ended[id]; ok {
				if c := b.calls[id]; c != nil && ending.Kind == ledger.EventSwept {
					ending.Swept = c.Reservation()
				}
				page.Ended[id] = ending
			}
		})
	}
	return page
}

// rebuild derives days anew whose zone has changed (CAP-3).
func (b *book) rebuild(page *ledger.Page, ops []*ledger.Op, at int64) {
	for _, op := range ops {
		op.Needs(func(c ledger.Counter, check *ledger.Check) {
			if s := page.Counters[c]; s != nil && check != nil && check.NeedsRebuild(s) {
				check.Rebuild(s, b.quartersOf(c, ledger.RebuildFrom(at)))
			}
		}, func(ledger.ID) {})
	}
}

// quartersOf are a key's quarters from an instant on, the latest first: no book
// owes an order.
func (b *book) quartersOf(c ledger.Counter, from int64) []ledger.QuarterSum {
	var list []ledger.QuarterSum
	for at, q := range b.quarters {
		if at.workspace == c.Workspace && at.key == c.Subject && at.quarter >= from {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(x, y ledger.QuarterSum) int { return cmp.Compare(y.Quarter, x.Quarter) })
	return list
}

func (b *book) keep(page *ledger.Page, changes *ledger.Changes) error {
	for _, c := range changes.Counters {
		s, err := stored(page.Counters[c])
		if err != nil {
			return err
		}
		b.counters[c] = s
		if s.IsZero() {
			delete(b.counters, c) // a zero row may go at any time
		}
	}
	for _, list := range [2][]*ledger.Reservation{changes.Opened, changes.Replaced} {
		for _, r := range list {
			row, err := ledger.DecodeReservation(r.ID, r.Workspace, r.ExpiresAt, r.Encode())
			if err != nil {
				return fmt.Errorf("store reservation %s: %w", r.ID, err)
			}
			b.open[r.ID], b.opened[r.ID] = row, true
		}
	}
	for _, r := range changes.Closed {
		delete(b.open, r.ID)
	}
	for i := range changes.Events {
		e := &changes.Events[i]
		ending := b.ended[e.ID]
		if e.Kind == ledger.EventCorrection {
			ending.Corrections++
		} else {
			ending.Kind = e.Kind
		}
		b.ended[e.ID] = ending
	}
	b.events = append(b.events, changes.Events...)
	for i := range changes.Calls {
		c := &changes.Calls[i]
		row := &ledger.Call{ID: c.ID, Workspace: c.Workspace, Key: c.Key, Outcome: c.Outcome, At: c.At, EndedAt: c.EndedAt, Model: c.Model, ClientID: c.ClientID}
		if err := row.DecodeInto(c.Encode()); err != nil {
			return fmt.Errorf("store call %s: %w", c.ID, err)
		}
		b.calls[c.ID] = row
	}
	for _, q := range changes.Quarters {
		at := quarterOf{q.Workspace, q.Key, q.Quarter}
		sum := b.quarters[at]
		sum.Workspace, sum.Key, sum.Quarter = q.Workspace, q.Key, q.Quarter
		sum.Spend, sum.Tokens, sum.Requests = sum.Spend+q.Spend, sum.Tokens+q.Tokens, sum.Requests+q.Requests
		b.quarters[at] = sum
	}
	return nil
}

// expired lists the open reservations whose hold has ended.
func (b *book) expired(now int64) ([]*ledger.Reservation, error) {
	if now < b.lockedUntil {
		return nil, errDown
	}
	at := b.clock(now)
	var list []*ledger.Reservation
	for _, id := range sortedIDs(b.open) {
		if r := b.open[id]; r.ExpiresAt < at {
			list = append(list, r)
		}
	}
	return list, nil
}

// nextExpiry is the virtual time at which the first hold will have ended.
func (b *book) nextExpiry() int64 {
	first := int64(0)
	for _, r := range b.open {
		if first == 0 || r.ExpiresAt < first {
			first = r.ExpiresAt
		}
	}
	return first + 1 - b.offset
}

// verify recomputes the counters with the ledger's own verifier (RES-7).
func (b *book) verify() ([]ledger.Difference, ledger.VerifyCounts) {
	v := ledger.NewVerifier(b.last)
	for c, s := range b.counters {
		v.Counter(c, s)
	}
	for _, r := range b.open {
		v.Reservation(r)
	}
	for i := range b.events {
		v.Event(&b.events[i])
	}
	for _, c := range b.calls {
		v.Call(c)
	}
	list := v.Differences()
	return list, v.Counts()
}

// held lists the counters that hold something, in order.
func (b *book) held() (list []ledger.Counter) {
	for c, s := range b.counters {
		if s.Held != 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(x, y ledger.Counter) int {
		if x.Less(y) {
			return -1
		}
		return 1
	})
	return list
}

// stored is what comes back of a state that was written to a row.
func stored(s *ledger.State) (*ledger.State, error) {
	row := &ledger.State{Kind: s.Kind, Settled: s.Settled, Held: s.Held, Warned: s.Warned, At: s.At}
	if err := row.DecodeInto(s.Encode()); err != nil {
		return nil, fmt.Errorf("store a counter: %w", err)
	}
	return row, nil
}

func sortedIDs[V any](rows map[ledger.ID]V) []ledger.ID {
	return slices.SortedFunc(maps.Keys(rows), ledger.ID.Compare)
}
