// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/observe"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/sqlite"
)

// Moved is what a move did: rows by the name of what they are, all of them found
// again in the new store, whose books balance.
type Moved struct {
	From     string             `json:"from"`
	To       string             `json:"to"`
	Rows     []MovedRows        `json:"rows"`
	Verified admin.VerifyCounts `json:"verified"`
}

// MovedRows are rows of one sort.
type MovedRows struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

// Moving says how far a move is: in which step, at which sort of rows.
type Moving struct {
	Step, Name string
	Rows       int64
}

// Move copies everything that an embedded store holds to an empty database that
// another configuration names, compares both, and verifies the copy's books. Then
// the source is marked: it is not opened any more. A move that was cut short is
// repeated; until one has come to its end the database is not opened. told, if set,
// hears how far it is.
func Move(ctx context.Context, o Options, to string, told func(Moving)) (_ *Moved, err error) {
	if told == nil {
		told = func(Moving) {}
	}
	file, next, err := movable(o, to)
	if err != nil {
		return nil, err
	}
	told(Moving{Step: "opening"})
	source, err := openMoving(ctx, file, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.closeStore()) }()
	if n := source.inSpool(); n > 0 {
		return nil, fmt.Errorf("move from %s: %d settlements in its spool cannot be booked; the log says why", file.Process.StoreName(), n)
	}
	options := postgresOptions(next, o)
	options.Unfinished = true
	target, err := postgres.Open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", next.Process.StoreName(), err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	m := &move{from: file.Process.StoreName(), to: next.Process.StoreName(), source: source.book, target: target, told: told, acceptClock: o.AcceptClock}
	moved, err := m.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("move to %s: %w", m.to, err)
	}
	return moved, nil
}

// Unmove lets the source of a move be opened again.
func Unmove(ctx context.Context, o Options) (name string, err error) {
	file, err := load(o)
	if err != nil {
		return "", err
	}
	name = file.Process.StoreName()
	if _, ok := file.Process.StorePath(); !ok {
		return "", fmt.Errorf("take back the move of %s: it is no embedded store", name)
	}
	source, err := openMoving(ctx, file, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, source.closeStore()) }()
	marked, ok := source.book.(store.Movable)
	if !ok {
		return "", errNotMovable
	}
	return name, marked.SetMoved(ctx, "")
}

var errNotMovable = errors.New("this store cannot be moved")

// movable reads both configurations.
func movable(o Options, to string) (file, next *config.File, err error) {
	if file, err = load(o); err != nil {
		return nil, nil, err
	}
	o.ConfigPath = to
	if next, err = load(o); err != nil {
		return nil, nil, err
	}
	if _, ok := file.Process.StorePath(); !ok {
		return nil, nil, fmt.Errorf("move from %s: only an embedded store (store: sqlite:PATH) is moved", file.Process.StoreName())
	}
	if _, ok := next.Process.StoreURL(); !ok {
		return nil, nil, fmt.Errorf("move to %s: %s names no PostgreSQL store", next.Process.StoreName(), to)
	}
	return file, next, nil
}

// openMoving opens an embedded store as a start does: what is in its spool is
// booked, what a killed server left open is charged. No server has it meanwhile.
func openMoving(ctx context.Context, file *config.File, o Options) (*core, error) {
	path, _ := file.Process.StorePath()
	if s, err := sqlite.ReadSchema(ctx, path); err == nil && s.Have == 0 {
		return nil, fmt.Errorf("move from %s: there is no store", file.Process.StoreName())
	}
	c := &core{clock: o.Clock, log: observe.NewLog(o.Stderr, "warn"), moved: true}
	if c.clock == nil {
		c.clock = clock.System()
	}
	err := c.openStore(ctx, file, o, false)
	if errors.Is(err, store.ErrLocked) {
		err = fmt.Errorf("a server or a command has the store open: stop it first: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// move is one run of Move.
type move struct {
	from, to    string
	source      book
	target      *postgres.Book
	told        func(Moving)
	acceptClock bool
}

func (m *move) run(ctx context.Context) (*Moved, error) {
	source, ok := m.source.(store.Movable)
	if !ok {
		return nil, errNotMovable
	}
	last, err := m.lastInstant()
	if err != nil {
		return nil, err
	}
	err = m.target.Fill(ctx, source, m.from, last, func(table string, rows int64) { m.told(Moving{"copying", table, rows}) })
	if err != nil {
		if to, unread := source.MovedTo(ctx); unread == nil && to != "" {
			err = fmt.Errorf("%s was moved to %s before: %w", m.from, to, err)
		}
		return nil, err
	}
	moved := &Moved{From: m.from, To: m.to}
	if moved.Rows, err = m.compare(ctx, source); err != nil {
		return nil, err
	}
	m.told(Moving{Step: "verifying"})
	s := admin.New(admin.Options{Verifiable: m.target, Clock: clock.System()})
	verified, err := s.Verify(ctx, admin.Actor{Name: "move", Role: admin.System}, admin.VerifyRequest{})
	if err != nil {
		return nil, err
	}
	if !verified.Balanced {
		return nil, fmt.Errorf("the copy's books do not balance: %d figures differ, as they do in the source; see weir verify", len(verified.Differences))
	}
	moved.Verified = verified.Counts
	// In this order no instant has two stores that are opened.
	if err := source.SetMoved(ctx, m.to); err != nil {
		return nil, err
	}
	m.told(Moving{Step: "finishing"})
	return moved, m.target.Finish(ctx)
}

// lastInstant is the source's, which the target's clock must not be far behind
// (ENGINE 7).
func (m *move) lastInstant() (int64, error) {
	last, now := m.source.Now(), m.target.Now()
	if now >= last-farMicros {
		return last, nil
	}
	if !m.acceptClock {
		return 0, fmt.Errorf("the database's clock is %d s behind the store's last instant: %w", (last-now)/1_000_000, store.ErrClock)
	}
	return now, nil
}

// farMicros is how far clocks may be apart.
const farMicros = 3_600_000_000

// compare reads both stores again.
func (m *move) compare(ctx context.Context, source store.Whole) ([]MovedRows, error) {
	want := digest{told: func(name string, rows int64) { m.told(Moving{"reading the source's", name, rows}) }}
	got := digest{told: func(name string, rows int64) { m.told(Moving{"comparing", name, rows}) }}
	if err := source.Whole(ctx, want.all); err != nil {
		return nil, err
	}
	if err := m.target.Whole(ctx, got.all); err != nil {
		return nil, err
	}
	var rows []MovedRows
	for i, part := range want.parts {
		if part != got.parts[i] {
			return nil, fmt.Errorf("%s differ: %d rows with sum %016x became %d with sum %016x",
				part.name, part.rows, part.sum[0], got.parts[i].rows, got.parts[i].sum[0])
		}
		rows = append(rows, MovedRows{part.name, part.rows})
	}
	return rows, nil
}
