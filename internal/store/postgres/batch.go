// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// maxRepeats bounds how often a batch is begun anew because rows that it knew
// to be there were gone when it came to lock them.
const maxRepeats = 3

var errGone = errors.New("rows of counters went away while they were being locked")

// batch is one transaction in two round trips: the first locks and reads, the
// second writes and commits (ENGINE 3).
type batch struct {
	*Book
	conn  *pgconn.PgConn
	needs *needs
	page  *ledger.Page
	// replaces: calls that are there already are written anew.
	replaces bool
	// rows are the counters as they are in the database, inserted those of them
	// that this transaction has made.
	rows     map[ledger.Counter]row
	inserted []ledger.Counter
	known    map[openKey]opened // what was claimed or looked up
	rebuilt  map[ledger.Counter]bool
	wrote    bool
	read     int64 // the database's clock, when everything was locked
}

// two decides ops in two round trips; wrote tells that something was committed.
func (b *Book) two(ctx context.Context, conn *pgconn.PgConn, n *needs, ops []*ledger.Op) (results []ledger.Result, wrote bool, err error) {
	replaces := false
	for range maxRepeats {
		t := &batch{Book: b, conn: conn, needs: n, replaces: replaces}
		results, err := t.run(ctx, ops)
		switch {
		case errors.Is(err, errGone):
			b.counters.forget(n.counters...)
		case !replaces && recorded(err):
			replaces = true
		default:
			return results, t.wrote, err
		}
	}
	return nil, false, errors.Join(store.ErrUnavailable, errGone)
}

func (t *batch) run(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error) {
	if err := t.load(ctx, ops); err != nil {
		t.rollback(ctx)
		return nil, err
	}
	at := t.instant.floor(t.instant.reading(t.read), t.page.Counters)
	if err := t.rebuild(ctx, ops, at); err != nil {
		t.rollback(ctx)
		return nil, err
	}
	loaded := make(shelf.Open, len(t.page.Open))
	for id, r := range t.page.Open {
		loaded[id] = r
	}
	results, changes := ledger.Batch(t.page, ops, at)
	if changes.Empty() {
		t.keepRead(false)
		t.instant.take(at)
		t.refused(changes.Refused, at)
		t.rollback(ctx)
		return results, nil
	}
	open, err := loaded.Rows(t.page, changes)
	if err != nil {
		t.rollback(ctx)
		return nil, err
	}
	w := &write{page: t.page, changes: changes, open: &open, known: t.known, replaces: t.replaces}
	w.counters = append(w.counters, changes.Counters...)
	if err := t.locked(w.counters); err != nil {
		t.rollback(ctx)
		return nil, err
	}
	if err := t.round(ctx, t.conn, append(append(t.release(), w.steps()...), step{statement: stCommit})); err != nil {
		return nil, t.notWritten(ctx, err)
	}
	t.wrote = true
	t.keepRead(true)
	w.keep(t.Book)
	t.instant.take(at)
	t.refused(changes.Refused, at)
	return results, nil
}

// load is the first round trip, and a second one for those that have ended.
func (t *batch) load(ctx context.Context, ops []*ledger.Op) error {
	n := t.needs
	t.page = &ledger.Page{
		Generations: make(map[string]int64, 1), Counters: make(map[ledger.Counter]*ledger.State, len(n.counters)),
		Open: make(map[ledger.ID]*ledger.Reservation, len(ops)), Ended: make(map[ledger.ID]ledger.Ending),
	}
	t.rows, t.known = make(map[ledger.Counter]row, len(n.counters)), make(map[openKey]opened, len(n.claims))
	steps := t.begin()
	if len(n.claims) > 0 {
		for _, key := range n.claims {
			if r, ok := t.opened.get(key); ok {
				t.known[key] = r
			}
		}
		steps = append(steps, step{stClaim, claimArgs(n.claims, t.known), t.readOpen})
	}
	if t.inserted = t.counters.unknown(n.must); len(t.inserted) > 0 {
		steps = append(steps, step{stMissing, counterArgs(t.inserted), nil})
	}
	if len(n.counters) > 0 {
		lock := stLock
		if len(n.must) == 0 {
			lock = stLook // nothing can be changed
		}
		steps = append(steps, step{lock, counterArgs(n.counters), t.readCounter})
	}
	if len(n.lookups) > 0 {
		steps = append(steps, step{stOpen, openArgs(n.lookups), t.readOpen})
	}
	workspaces := texts(len(n.workspaces), func(i int) string { return n.workspaces[i] })
	steps = append(steps, step{stInstant, [][]byte{workspaces}, t.readInstant})
	if err := t.round(ctx, t.conn, steps); err != nil {
		return fmt.Errorf("load a batch: %w", notStarted(err))
	}
	for _, c := range n.must {
		if _, ok := t.rows[c]; !ok {
			return errGone
		}
	}
	for workspace, g := range t.page.Generations {
		t.generations.put(workspace, g)
	}
	return t.loadEndings(ctx)
}

// begin starts a transaction; settings travel with it where the session is not
// this book's own.
func (b *Book) begin() []step {
	steps := []step{{statement: stBegin}}
	if b.options.Pooling {
		steps = append(steps, step{statement: b.head})
	}
	return steps
}

func (t *batch) readOpen(v [][]byte) error {
	key := openKey{workspace: text(v[0])}
	copy(key.id[:], v[1])
	if v[4] == nil {
		t.page.Open[key.id] = t.known[key].Reservation
		return nil
	}
	r, err := ledger.DecodeReservation(key.id, key.workspace, integer(v[2]), v[4])
	if err != nil {
		return err
	}
	t.page.Open[r.ID], t.known[key] = r, opened{r, integer(v[3])}
	return nil
}

func (t *batch) readCounter(v [][]byte) error {
	c := t.needs.counters[integer(v[0])-1]
	r, err := decodeState(v[1:])
	if err != nil {
		return err
	}
	t.rows[c] = r
	if r.state != nil {
		t.page.Counters[c] = r.state.Clone()
	}
	return nil
}

func (t *batch) readInstant(v [][]byte) error {
	t.read = integer(v[0])
	t.page.Generations[text(v[1])] = integer(v[2])
	return nil
}

// loadEndings finds out how those ended that are not open any more.
func (t *batch) loadEndings(ctx context.Context) error {
	var ended []openKey
	for _, list := range [2][]openKey{t.needs.claims, t.needs.lookups} {
		for _, key := range list {
			if r := t.page.Open[key.id]; r == nil || r.Workspace != key.workspace {
				ended = append(ended, key)
			}
		}
	}
	if len(ended) == 0 {
		return nil
	}
	args := openArgs(ended)
	err := t.round(ctx, t.conn, []step{
		{stEndings, args, t.readEnding},
		{stSwept, args, t.readSwept},
	})
	if err != nil {
		return fmt.Errorf("look up what has ended: %w", notStarted(err))
	}
	for id, ending := range t.page.Ended {
		if ending.Kind == 0 {
			delete(t.page.Ended, id)
		}
	}
	return nil
}

func (t *batch) readEnding(v [][]byte) error {
	var id ledger.ID
	copy(id[:], v[1])
	ending := t.page.Ended[id]
	if kind := ledger.EventKind(integer(v[2])); kind == ledger.EventCorrection {
		ending.Corrections = int32(integer(v[3]))
	} else {
		ending.Kind = kind
	}
	t.page.Ended[id] = ending
	return nil
}

func (t *batch) readSwept(v [][]byte) error {
	call, err := decodeCall(v)
	if err != nil {
		return err
	}
	if ending := t.page.Ended[call.ID]; ending.Kind == ledger.EventSwept {
		ending.Swept = call.Reservation()
		t.page.Ended[call.ID] = ending
	}
	return nil
}

// rebuild derives rows of trailing days anew whose zone has changed.
func (t *batch) rebuild(ctx context.Context, ops []*ledger.Op, at int64) error {
	var failed error
	for _, op := range ops {
		op.Needs(func(c ledger.Counter, check *ledger.Check) {
			s := t.page.Counters[c]
			if failed != nil || s == nil {
				return
			}
			if key, ok := shelf.Rebuilds(op, check, s); ok {
				failed = t.rebuildOne(ctx, c.Workspace, key, check, s, at)
				t.setRebuilt(c)
			}
		}, func(ledger.ID) {})
	}
	return failed
}

func (t *batch) setRebuilt(c ledger.Counter) {
	if t.rebuilt == nil {
		t.rebuilt = make(map[ledger.Counter]bool)
	}
	t.rebuilt[c] = true
}

func (t *batch) rebuildOne(ctx context.Context, workspace, key string, check *ledger.Check, s *ledger.State, at int64) error {
	var quarters []ledger.QuarterSum
	args := [][]byte{[]byte(escape(workspace)), []byte(escape(key)), integerArg(ledger.RebuildFrom(at))}
	err := t.round(ctx, t.conn, []step{{stQuarters, args, func(v [][]byte) error {
		quarters = append(quarters, ledger.QuarterSum{
			Workspace: workspace, Key: key, Quarter: integer(v[0]), Spend: integer(v[1]), Tokens: integer(v[2]), Requests: integer(v[3]),
		})
		return nil
	}}})
	if err != nil {
		return fmt.Errorf("read the quarters of a key: %w", notStarted(err))
	}
	check.Rebuild(s, quarters)
	return nil
}

// locked tells whether this transaction holds every counter that is to change:
// an update of a row that is not there would lose a charge.
func (t *batch) locked(counters []ledger.Counter) error {
	for _, c := range counters {
		if _, ok := t.rows[c]; !ok {
			return unnamed(c)
		}
	}
	return nil
}

func unnamed(c ledger.Counter) error {
	return fmt.Errorf("counter %+v changes, and no operation has named it", c)
}

// keepRead remembers the rows that are there: those that it made itself only if
// they were committed.
func (t *batch) keepRead(committed bool) {
	mine := make(map[ledger.Counter]bool, len(t.inserted))
	for _, c := range t.inserted {
		mine[c] = !committed && t.rows[c].state == nil
	}
	for c, r := range t.rows {
		if !mine[c] {
			t.counters.put(c, r)
		}
	}
}

// rollback ends a transaction that changes nothing. A connection that cannot do
// that is closed, which does it too.
func (t *batch) rollback(ctx context.Context) {
	if t.conn.IsClosed() {
		return
	}
	if err := t.round(ctx, t.conn, []step{{statement: stRollback}}); err != nil {
		_ = t.conn.Close(ctx)
	}
}

// notWritten names what became of a transaction whose second round trip failed.
func (t *batch) notWritten(ctx context.Context, err error) error {
	outcome := fate(err)
	if errors.Is(outcome, store.ErrUnknownOutcome) {
		_ = t.conn.Close(ctx)
	} else {
		t.rollback(ctx)
	}
	return fmt.Errorf("store a batch: %w", outcome)
}
