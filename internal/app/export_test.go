// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
)

// WithChat lets a test put something between the gateway and the protocol.
func (o *Options) WithChat(wrap func(gateway.Protocol) gateway.Protocol) { o.hooks.chat = wrap }

// WithWriteTimeout shortens the time that a client has for a part of an answer.
func (o *Options) WithWriteTimeout(d time.Duration) { o.hooks.writeTimeout = d }

// Eagerly makes the background work look often.
func (o *Options) Eagerly() { o.hooks.every = 2 * time.Millisecond }

// AsOfSchema makes it another version of the program, one with these migrations.
func (o *Options) AsOfSchema(migrations fs.FS) { o.hooks.migrations = migrations }

// Compare compares all that two stores hold.
func Compare(ctx context.Context, source store.Whole, target *postgres.Book) ([]MovedRows, error) {
	m := &move{target: target, told: func(Moving) {}}
	return m.compare(ctx, source)
}

// Routes lists the routes of the running program's data plane.
func (s *Server) Routes() []gateway.Route { return s.gateway.Routes() }

// SettleWithin bounds how long a stop waits for the store.
func (o *Options) SettleWithin(d time.Duration) { o.hooks.settle = d }

// WithDatabaseClock gives a shared store another clock than the process's.
func (o *Options) WithDatabaseClock(c clock.Clock) { o.hooks.database = c }

// Idly keeps the background work from doing anything by itself.
func (o *Options) Idly() { o.hooks.every = time.Hour }

// Sweep settles what nobody settled in time, now.
func (s *Server) Sweep(ctx context.Context) { s.sweep(ctx, s.core.clock.Now()) }

// OpenUntil lists when the open reservations end, in Unix microseconds.
func (s *Server) OpenUntil(ctx context.Context) (ends []int64, err error) {
	err = s.core.book.View(ctx, func(r store.Reader) error {
		return r.Reservations(func(r *ledger.Reservation) error {
			ends = append(ends, r.ExpiresAt)
			return nil
		})
	})
	return ends, err
}

// Outbox lists the notices that the book has written, the first first.
func (s *Server) Outbox(ctx context.Context) ([]ledger.Notice, error) {
	book, ok := any(s.core.book).(interface {
		Outbox(ctx context.Context) ([]ledger.Notice, error)
	})
	if !ok {
		return nil, errors.New("the book cannot list its notices")
	}
	return book.Outbox(ctx)
}

// InSpool is how many settlements wait in the spool.
func (s *Server) InSpool() int { return s.core.inSpool() }

// Retain makes one run of the retention, without a rest between its steps.
func (s *Server) Retain(ctx context.Context) error {
	if err := s.Roll(ctx); err != nil {
		return err
	}
	return s.core.prune(ctx, s.file.Process.RetentionMicros, 0)
}

// Roll rolls up what usage there is, which the program does by itself every few
// seconds: what no report reads any more from its event may be dropped.
func (s *Server) Roll(ctx context.Context) error {
	book, ok := s.core.book.(store.Rollable)
	for ok {
		if _, done, err := book.Roll(ctx, rollStep); err != nil || done {
			return err
		}
	}
	return nil
}

// RetainSome makes at most so many steps of a run, as one that a stop cuts short.
func (s *Server) RetainSome(ctx context.Context, steps int) error {
	cut, err := s.core.cut(ctx, s.file.Process.RetentionMicros)
	for range steps {
		if err == nil {
			_, _, err = s.core.book.Prune(ctx, cut, 3)
		}
	}
	return err
}

// Rows counts what a retention drops.
type Rows struct{ Calls, Events, Closings, Quarters int }

// Rows counts what is in the store.
func (s *Server) Rows(ctx context.Context) (n Rows, err error) {
	err = s.core.book.View(ctx, func(r store.Reader) error {
		return errors.Join(
			r.Calls(func(*store.Call) error { n.Calls++; return nil }),
			r.Events(func(*ledger.Event) error { n.Events++; return nil }),
			r.Closings(func(store.Closing) error { n.Closings++; return nil }),
			r.Quarters(func(ledger.QuarterSum) error { n.Quarters++; return nil }),
		)
	})
	return n, err
}

// Beat says that the program lives, as it does by itself every ten seconds.
func (s *Server) Beat(ctx context.Context) error { return s.core.shared.book.Beat(ctx) }

// Silence ends the program's signs of life, as a process that hangs gives none.
func (s *Server) Silence() {
	if book, ok := s.core.book.(interface{ Stop() }); ok {
		book.Stop()
	}
}

// Look looks at the other processes now.
func (s *Server) Look(ctx context.Context) error { return s.core.look(ctx) }

// Process is the program's name among those that share its store.
func (s *Server) Process() string { return s.core.process }

// Settle returns when every settlement of a key's workspace that is queued is in
// the books. Programs on the same store count it from then on, which they may do
// 100 ms after it was queued (RES-11).
func (s *Server) Settle(ctx context.Context, secret string) error {
	_, snapshot, err := s.core.directory.Identify(ctx, secret)
	if err != nil {
		return err
	}
	_, err = s.core.teller.Submit(ctx, &ledger.Op{Verb: ledger.Read, Workspace: snapshot.Workspace.ID})
	return err
}

// FollowWithin bounds how long a change of the configuration that no admission asks
// for, and that no notice told of, can stay unseen.
const FollowWithin = followEvery + followPatience

// Follow looks for changes once, as the program does by itself.
func (s *Server) Follow(ctx context.Context) { s.core.refresh(ctx, 0) }

// Leaving replaces the wait for a load balancer.
func (o *Options) Leaving(wait func(context.Context, time.Duration)) { o.hooks.leave = wait }

// PercentFor is what the garbage collector is set to beside so many live bytes.
func PercentFor(live uint64) int { return percentFor(live) }
