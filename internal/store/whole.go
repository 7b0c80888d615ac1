// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
)

var (
	// ErrMoved means that what a store holds has been moved to another one.
	ErrMoved = errors.New("store has been moved")
	// ErrUnfinished means that a move into this store was not finished.
	ErrUnfinished = errors.New("store is not whole")
)

// Whole gives everything that a store holds, as of one instant.
type Whole interface {
	Whole(ctx context.Context, fn func(Reader, Rest) error) error
}

// Rest walks what a store holds beside its books. Every walk stops at fn's first
// error and returns it.
type Rest interface {
	Settings
	Audits(fn func(*Audit) error) error
	Outgoing(fn func(*Outgoing) error) error
	// AllKept walks what providers keep for workspaces.
	AllKept(fn func(*route.Kept) error) error
}

// Settings are configuration, and what is kept apart from it.
type Settings interface {
	// Configuration walks every object, keys and retired ones too.
	Configuration(fn func(*Object) error) error
	Generations(fn func(*Generation) error) error
	KeySecrets(fn func(*KeySecret) error) error
	Credentials(fn func(*Credential) error) error
	// Meta walks the store's own secret, the admin token's hash, and the like, but
	// not what is said of this one copy of it.
	Meta(fn func(*Meta) error) error
}

// Generation is that of a workspace.
type Generation struct {
	Workspace  string
	Generation int64
}

// Credential is a provider's.
type Credential struct{ Workspace, Provider, Credential string }

// Meta is a value that a store has once.
type Meta struct {
	Name  string
	Value []byte
}

// Outgoing is a notice on its way: how often it was tried, and when it is next.
type Outgoing struct {
	Seq, Attempts, NextAt int64
	Notice                ledger.Notice
}

// Fillable is a store that takes everything that another one holds.
type Fillable interface {
	// Fill does it in one transaction. From before that until Finish, Open refuses
	// the store with ErrUnfinished. What an earlier Fill has left goes first. name is
	// the source's, at its last instant; told, if set, hears of the rows so far.
	// ErrConflict: the store holds something else, or is in use.
	Fill(ctx context.Context, from Whole, name string, at int64, told func(table string, rows int64)) error
	// Finish makes the store one that is opened.
	Finish(ctx context.Context) error
}

// Movable is a store that remembers that it has been moved: Open refuses it from
// then on with ErrMoved.
type Movable interface {
	Whole
	// SetMoved says where to; "": nowhere, it is opened again.
	SetMoved(ctx context.Context, to string) error
	// MovedTo is what SetMoved said last.
	MovedTo(ctx context.Context) (string, error)
}
