// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/store"
)

// Guessed is how many batches took one round trip.
func (b *Book) Guessed() int64 { return b.guessed.Load() }

// DiscardSessions makes every use of a connection find a session as new.
func (o *Options) DiscardSessions() {
	o.onAcquire = func(ctx context.Context, conn *pgx.Conn) bool {
		_, err := conn.Exec(ctx, "DISCARD ALL", pgx.QueryExecModeSimpleProtocol)
		return err == nil
	}
}

// LoseWhatIsNotFlushed makes a book answer before what it wrote is on the disk.
func (o *Options) LoseWhatIsNotFlushed() { o.EarlyRelease, o.lossy = true, true }

// TurnDays does at an instant what is done every hour.
func (b *Book) TurnDays(ctx context.Context, at int64) error {
	return b.turnDays(ctx, at)
}

// Statements are the SQL of every statement that a batch may run, by name.
func Statements() map[string]string {
	out := make(map[string]string)
	for _, s := range statements() {
		out[s.name] = s.sql
	}
	return out
}

// ParameterTypes are how many parameters a statement has.
func Parameters(name string) int {
	for _, s := range statements() {
		if s.name == name {
			return len(s.types)
		}
	}
	return 0
}

// PlanSettings are those that plans are made under.
func PlanSettings() map[string]string {
	out := make(map[string]string)
	for _, s := range planSettings {
		out[s.name] = s.value
	}
	return out
}

// UsageBetween reads a report between two calls of fn in its transaction.
func (b *Book) UsageBetween(ctx context.Context, q store.UsageQuery, fn func(pgx.Tx) error) error {
	return b.snapshot(ctx, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if _, err := readUsage(ctx, tx, &q); err != nil {
			return err
		}
		return fn(tx)
	})
}
