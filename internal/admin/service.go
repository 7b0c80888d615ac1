// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"io"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/store"
)

// Decider submits one operation to the book and waits for its result.
type Decider interface {
	Submit(ctx context.Context, op *ledger.Op) (ledger.Result, error)
}

// Snapshots is the configuration that admissions are built from. Refresh reads
// what has changed in the store, so that a change holds at once (SPEC ADM-4).
type Snapshots interface {
	Refresh(ctx context.Context, workspace string) (*admit.Snapshot, error)
	RefreshAll(ctx context.Context) error
}

// Options are what a Service works with.
type Options struct {
	Objects    store.Objects
	Secrets    store.Secrets
	Log        store.Log
	Verifiable store.Verifiable
	Decider    Decider
	Snapshots  Snapshots
	Prices     *price.Catalogue
	Clock      clock.Clock
	// Random makes secrets and ids; nil is crypto/rand's.
	Random io.Reader
	// Durable is false for a store that keeps nothing (SPEC BUD-6).
	Durable bool
	// Store names the kind of store, Version the program.
	Store, Version string
}

// Service is the operations. It is safe for concurrent use.
type Service struct {
	Options
	startedAt int64
}
