// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/teller"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

// Decider submits one operation to the book and waits for its result.
type Decider interface {
	Submit(ctx context.Context, op *ledger.Op) (ledger.Result, error)
}

// Snapshots is the configuration that admissions are built from. Refresh reads
// what has changed in the store.
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
	// Copyable is nil for a store that cannot be copied to a file.
	Copyable store.Copyable
	// Shared is nil for a store that is one process's alone.
	Shared    store.Shared
	Decider   Decider
	Snapshots Snapshots
	Prices    *price.Catalogue
	Clock     clock.Clock
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

// New makes a service.
func New(o Options) *Service {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return &Service{Options: o, startedAt: o.Clock.Now()}
}

// maxAttempts bounds how often a change is made again because another one came
// between its reading and its writing.
const maxAttempts = 4

// scope is one operation under way: who asks, and about which workspace.
type scope struct {
	actor     Actor
	op        Op
	at        int64
	object    store.Object // the workspace's
	workspace *tenant.Workspace
	zone      *time.Location
	guard     []store.Edit // of a change that relies on other objects (protect)
}

// enter is the way into every operation: it checks the permission and finds the
// workspace.
func (s *Service) enter(ctx context.Context, a Actor, op Op) (*scope, error) {
	if err := permit(a, op); err != nil {
		return nil, err
	}
	name := a.Workspace
	if name == "" {
		name = tenant.DefaultWorkspace
	}
	object, err := s.workspaceNamed(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "there is no workspace %s", document.Quote(name))
	}
	if err != nil {
		return nil, answer(err)
	}
	// Whoever has read the end of an answer finds it settled (SPEC RES-11): a
	// read is decided after every settlement that was queued before it. A store
	// that cannot decide now can still be asked for what it holds.
	_, _ = s.Decider.Submit(ctx, &ledger.Op{Verb: ledger.Read, Workspace: object.ID})
	return s.scopeOf(a, op, object)
}

func (s *Service) scopeOf(a Actor, op Op, object store.Object) (*scope, error) {
	w, err := decodeWorkspace(object)
	if err != nil {
		return nil, answer(err)
	}
	zone, err := window.Zone(w.Zone)
	if err != nil {
		return nil, answer(fmt.Errorf("workspace %s: %w", w.Name, err))
	}
	return &scope{actor: a, op: op, at: s.Clock.Now(), object: object, workspace: w, zone: zone}, nil
}

// audit is the entry of a change that this operation makes.
func (c *scope) audit(o *store.Object, before, after []byte) store.Audit {
	return store.Audit{
		At: c.at, Workspace: o.Workspace, Actor: c.actor.Name, Action: string(c.op),
		Kind: o.Kind, ID: o.ID, Name: o.Name, Before: before, After: after,
	}
}

// change makes the edits and lets the configuration in memory follow.
func (s *Service) change(ctx context.Context, at int64, edits []store.Edit) error {
	if err := s.Objects.Change(ctx, at, edits); err != nil {
		return err
	}
	s.follow(ctx, edits)
	return nil
}

// follow refreshes what is in memory. The change is made: when that fails, the
// ledger answers the next operation that it is stale, and it is read then.
func (s *Service) follow(ctx context.Context, edits []store.Edit) {
	seen := map[string]bool{}
	for i := range edits {
		seen[edits[i].Object.Workspace] = true
	}
	if seen[""] {
		_ = s.Snapshots.RefreshAll(ctx)
		return
	}
	for workspace := range seen {
		_, _ = s.Snapshots.Refresh(ctx, workspace)
	}
}

// repeat makes a change again while others come between.
func repeat[T any](change func() (T, error)) (T, error) {
	var out T
	var err error
	for range maxAttempts {
		if out, err = change(); !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	return out, answer(err)
}

// answer turns an error into what the caller sees: a Fault stays, the store's
// kinds have their codes, and anything else is our own failure.
func answer(err error) error {
	var known *fault.Fault
	var problems document.Problems
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &problems):
		return invalid(err)
	case errors.Is(err, store.ErrConflict):
		return fault.New(fault.Conflict, "%v", err)
	case errors.Is(err, store.ErrNotFound):
		return fault.New(fault.NotFound, "%v", err)
	case errors.Is(err, store.ErrUnknownOutcome):
		return fault.New(fault.ServiceUnavailable, "the change may or may not have been made: read it before you send it again")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, teller.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.ServiceUnavailable, "the store cannot be asked now: %v", err)
	default:
		return fault.New(fault.InternalError, "%v", err)
	}
}

// invalid is a request that cannot be accepted; it names the first field.
func invalid(err error) error {
	f := fault.New(fault.InvalidRequest, "%v", err)
	var problems document.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		f.Param = problems[0].Path
	}
	return f
}

// refuse is invalid for one field.
func refuse(field, format string, args ...any) error {
	var problems document.Problems
	problems.Add(field, format, args...)
	return invalid(problems)
}

var idAlphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID makes an object's id: the prefix and 80 random bits.
func (s *Service) newID(prefix string) (string, error) {
	var random [10]byte
	if _, err := io.ReadFull(s.Random, random[:]); err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return prefix + idAlphabet.EncodeToString(random[:]), nil
}

// instant writes an instant; "" for 0.
func instant(at int64) string {
	if at == 0 {
		return ""
	}
	return time.UnixMicro(at).UTC().Format(time.RFC3339Nano)
}
