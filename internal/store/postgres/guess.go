// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

const (
	// clockSlackMicros is how far the guessed time may lie from the database's.
	clockSlackMicros = 50_000
	// maxPause bounds the batches that are not guessed after wrong guesses.
	maxPause = 1024
)

// gate keeps a book from guessing while others change the same counters.
type gate struct {
	mu          sync.Mutex // guards what follows
	pause, wait int
}

func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait > 0 {
		g.wait--
		return false
	}
	return true
}

func (g *gate) right() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pause /= 2
}

func (g *gate) wrong() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pause = min(max(1, 2*g.pause), maxPause)
	g.wait = g.pause
}

// guess is a batch in one round trip: it is decided here on the rows as they
// were last seen, and sent with them. The database locks the rows in the usual
// order and fails the whole round trip unless they, the generation and the time
// are as guessed; so what is committed is what two round trips would have
// decided. Then nothing has happened, and ok is false.
type guess struct {
	*Book
	conn      *pgconn.PgConn
	needs     *needs
	page      *ledger.Page
	clock, at int64
	rows      []row              // of needs.counters
	known     map[openKey]opened // what is claimed
}

func (b *Book) one(ctx context.Context, conn *pgconn.PgConn, n *needs, ops []*ledger.Op) (results []ledger.Result, wrote, ok bool, err error) {
	if len(n.lookups) > 0 || len(n.must) == 0 || !b.gate.open() {
		return nil, false, false, nil
	}
	g := &guess{Book: b, conn: conn, needs: n}
	if !g.load(ops) {
		return nil, false, false, nil
	}
	open := maps.Clone(shelf.Open(g.page.Open))
	results, changes := ledger.Batch(g.page, ops, g.at)
	rows, err := open.Rows(g.page, changes)
	if err != nil {
		return nil, false, true, err
	}
	w := &write{page: g.page, changes: changes, open: &rows, counters: changes.Counters, known: g.known}
	compare, err := g.compare(w)
	if err != nil {
		return nil, false, true, err
	}
	err = g.send(ctx, w, compare)
	switch {
	case recorded(err):
		return nil, false, false, nil
	case wrongGuess(err):
		b.gate.wrong()
		b.counters.forget(n.counters...)
		b.opened.forget(n.claims...)
		return nil, false, false, nil
	case err != nil && changes.Empty():
		return nil, false, true, fmt.Errorf("check a batch: %w", notStarted(err))
	case err != nil:
		if err = fate(err); errors.Is(err, store.ErrUnknownOutcome) {
			_ = conn.Close(ctx)
		}
		return nil, false, true, fmt.Errorf("store a batch: %w", err)
	}
	b.gate.right()
	b.guessed.Add(1)
	w.keep(b)
	b.instant.take(g.at)
	b.refused(changes.Refused, g.at)
	return results, !changes.Empty(), true, nil
}

// load fills the page from memory; false: it knows too little.
func (g *guess) load(ops []*ledger.Op) bool {
	g.page = &ledger.Page{
		Generations: make(map[string]int64, len(g.needs.workspaces)), Counters: make(map[ledger.Counter]*ledger.State, len(g.needs.counters)),
		Open: make(map[ledger.ID]*ledger.Reservation, len(ops)),
	}
	for _, workspace := range g.needs.workspaces {
		generation, ok := g.generations.get(workspace)
		if !ok {
			return false
		}
		g.page.Generations[workspace] = generation
	}
	for _, c := range g.needs.counters {
		r, ok := g.counters.get(c)
		if !ok {
			return false
		}
		g.rows = append(g.rows, r)
		if r.state != nil {
			g.page.Counters[c] = r.state.Clone()
		}
	}
	g.known = make(map[openKey]opened, len(g.needs.claims))
	for _, key := range g.needs.claims {
		r, ok := g.opened.get(key)
		if !ok {
			return false
		}
		g.known[key], g.page.Open[key.id] = r, r.Reservation
	}
	g.clock = g.instant.estimate()
	g.at = g.instant.floor(g.clock, g.page.Counters)
	rebuilds := false
	for _, op := range ops {
		op.Needs(func(c ledger.Counter, check *ledger.Check) {
			if s := g.page.Counters[c]; s != nil {
				_, ok := shelf.Rebuilds(op, check, s)
				rebuilds = rebuilds || ok
			}
		}, func(ledger.ID) {})
	}
	return !rebuilds
}

// send is the round trip. Reservations come before counters, as always.
func (g *guess) send(ctx context.Context, w *write, compare step) error {
	if err := g.ready(ctx, g.conn, compare.statement); err != nil {
		return err
	}
	var steps []step
	if g.options.Pooling {
		steps = append(steps, step{statement: g.head})
	}
	if !w.changes.Empty() || len(g.needs.claims) > 0 {
		steps = append(steps, g.release()...)
	}
	if len(g.needs.claims) > 0 {
		steps = append(steps, step{statement: stExpectOpen, args: claimArgs(g.needs.claims, g.known)})
	}
	return g.round(ctx, g.conn, append(append(steps, compare), w.records()...))
}

// compare is the statement that fails where something is not as it was guessed.
// It locks the counters, and changes them if any changes.
func (g *guess) compare(w *write) (step, error) {
	n := len(g.needs.counters)
	one := g.shapes[0]
	args, tail := rowArgs, g.manyArgs
	if n <= maxShaped && len(g.needs.workspaces) == 1 {
		one, args, tail = g.shapes[n], valueArgs, g.oneArgs
	}
	read := func(v [][]byte) error {
		g.instant.reading(integer(v[0]))
		return nil
	}
	states, raw := make([]*ledger.State, n), make([][]byte, n)
	for i, r := range g.rows {
		states[i], raw[i] = r.state, r.raw
	}
	switch {
	case len(w.counters) > 0:
		if err := g.changeAll(w); err != nil {
			return step{}, err
		}
		return step{one.change, append(args(g.needs.counters, states, raw, w), tail()...), read}, nil
	case w.changes.Empty() && len(g.needs.claims) == 0:
		return step{one.expectRead, append(args(g.needs.counters, states, raw, nil), tail()...), read}, nil
	default:
		return step{one.expect, append(args(g.needs.counters, states, raw, nil), tail()...), read}, nil
	}
}

// changeAll lets w write every counter that the batch has named: one that stays as
// it is has to be locked all the same, and a row that is written needs no other lock.
func (g *guess) changeAll(w *write) error {
	changed := make(map[ledger.Counter]bool, len(w.counters))
	for _, c := range w.counters {
		changed[c] = true
	}
	w.counters = g.needs.counters
	w.states, w.raw = make([]*ledger.State, len(g.rows)), make([][]byte, len(g.rows))
	for i, c := range w.counters {
		w.states[i], w.raw[i] = g.rows[i].state, g.rows[i].raw
		if changed[c] {
			w.states[i] = w.page.Counters[c]
			w.raw[i] = w.states[i].Encode()
			delete(changed, c)
		}
	}
	for c := range changed {
		return unnamed(c)
	}
	return nil
}

// clocks are the time as guessed, and by how much it may be wrong.
func (g *guess) clocks() [][]byte {
	slack := int64(clockSlackMicros)
	if g.instant.test != nil {
		slack = math.MaxInt64
	}
	return [][]byte{integerArg(g.clock), integerArg(slack)}
}

// oneArgs are what a statement of one workspace gets beside its counters.
func (g *guess) oneArgs() [][]byte {
	workspace := g.needs.workspaces[0]
	return append(g.clocks(), []byte(escape(workspace)), integerArg(g.page.Generations[workspace]))
}

// manyArgs are the same for any number of them.
func (g *guess) manyArgs() [][]byte {
	list := g.needs.workspaces
	return append(g.clocks(), texts(len(list), func(i int) string { return list[i] }),
		ints(len(list), func(i int) int64 { return g.page.Generations[list[i]] }))
}
