// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/sqlite"
)

// Schema says how the schema of a store stands to this program.
type Schema struct {
	Store string `json:"store"`
	// Have is the last migration that the store has had, Want the last that this
	// program knows, Compatible the least that a program has to know to use it.
	Have       int64       `json:"have"`
	Want       int64       `json:"want"`
	Compatible int64       `json:"compatible_since"`
	Pending    []Migration `json:"pending"`
	// Older are running processes that Pending would leave behind.
	Older []Older `json:"left_behind"`
}

// Migration is one step of a schema; programs that know at least the schema
// CompatibleSince go on over it.
type Migration struct {
	Version         int64  `json:"version"`
	Name            string `json:"name"`
	CompatibleSince int64  `json:"compatible_since"`
}

// Older is a running process of an older program.
type Older struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ReadSchema tells how the store's schema stands to this program, and changes
// nothing.
func ReadSchema(ctx context.Context, o Options) (*Schema, error) {
	return schemaOf(ctx, o, sqlite.ReadSchema, postgres.ReadSchema)
}

// Migrate brings the store's schema up to date and returns it as it was before. In
// a database it makes the tables of so many days ahead, too. step hears of each
// migration before it runs.
func Migrate(ctx context.Context, o Options, days int, step func(Migration)) (*Schema, error) {
	return schemaOf(ctx, o, func(ctx context.Context, path string) (store.Schema, error) {
		before, err := sqlite.Migrate(ctx, path)
		if errors.Is(err, store.ErrLocked) {
			err = fmt.Errorf("a server or a command has the store open: stop it first: %w", err)
		}
		return before, err
	}, func(ctx context.Context, p postgres.Options) (store.Schema, error) {
		return postgres.Migrate(ctx, p, days, func(m store.Migration) {
			if step != nil {
				step(Migration(m))
			}
		})
	})
}

func schemaOf(ctx context.Context, o Options, file func(context.Context, string) (store.Schema, error),
	database func(context.Context, postgres.Options) (store.Schema, error),
) (*Schema, error) {
	f, err := load(o)
	if err != nil {
		return nil, err
	}
	var s store.Schema
	name := f.Process.StoreName()
	if path, ok := f.Process.StorePath(); ok {
		s, err = file(ctx, path)
	} else if _, ok := f.Process.StoreURL(); ok {
		s, err = database(ctx, postgresOptions(f, o))
	} else {
		err = errors.New("it keeps nothing")
	}
	if err != nil {
		return nil, fmt.Errorf("migrate the store %s: %w", name, err)
	}
	out := &Schema{Store: name, Have: s.Have, Want: s.Want, Compatible: s.Compatible, Pending: []Migration{}, Older: []Older{}}
	for _, m := range s.Pending {
		out.Pending = append(out.Pending, Migration(m))
	}
	for i := range s.Older {
		out.Older = append(out.Older, Older{s.Older[i].ID, s.Older[i].Name, s.Older[i].Version})
	}
	return out, nil
}

// postgresOptions are those that a configuration gives for its database.
func postgresOptions(file *config.File, o Options) postgres.Options {
	p := &file.Process
	address, _ := p.StoreURL()
	return postgres.Options{
		URL: address, ListenURL: p.Postgres.ListenURL, Version: Version(), Name: processName(),
		Connections: int(p.Postgres.Connections), Reporting: int(p.Postgres.ReportingConnections),
		LockTimeout: micros(p.Postgres.LockTimeoutMicros), BatchTimeout: micros(p.Postgres.BatchTimeoutMicros),
		EarlyRelease: p.Postgres.EarlyRelease, MigrateByHand: p.Postgres.Migrate == config.MigrateManual,
		Migrations: o.hooks.migrations, Clock: o.databaseClock(), Local: o.Clock, AcceptClock: o.AcceptClock,
	}
}
