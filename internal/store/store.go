// SPDX-License-Identifier: Apache-2.0

// Package store says what Weir needs of a database: small roles that its
// drivers fill (store/memory, store/sqlite). The contract behind the words is
// store/storetest, run whole against every driver.
//
// No transaction handle leaves a driver, and no driver decides anything: that
// is ledger's. Instants are Unix microseconds.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// What every driver's errors wrap. Any other error of a book means "could not
// tell" and refuses.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the store cannot be reached or is not open. Nothing happened.
	ErrUnavailable = errors.New("store unavailable")
	// ErrConflict: the object has another version, or its name is taken.
	ErrConflict = errors.New("conflict")
	// ErrUnknownOutcome: the transaction may or may not have happened. The
	// operations are sent again, marked Again (ENGINE 6).
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrNewerSchema: a newer Weir has migrated the store (STO-3).
	ErrNewerSchema = errors.New("store has a newer schema than this program")
	// ErrLocked: another process has the file open (STO-1).
	ErrLocked = errors.New("store is in use by another process")
	// ErrClock: the clock is more than an hour behind the store's last instant
	// (ENGINE 7).
	ErrClock = errors.New("clock is behind the store")
	// ErrDamaged: the books do not balance: held amounts differ from what the
	// open reservations hold (ENGINE 10).
	ErrDamaged = errors.New("books do not balance")
)

// MaxBatch bounds the operations of one Apply.
const MaxBatch = 4096

// Book keeps the counters. It is safe for concurrent use.
type Book interface {
	// Apply decides ops in order at one instant of the book's own clock, in one
	// durable transaction, and returns one result for each. When it fails, none
	// of them happened, unless errors.Is(err, ErrUnknownOutcome). ctx is the
	// teller's: a caller that goes away cancels nothing. The ops, and what they
	// point to, are not changed after the call: a book may keep them.
	Apply(ctx context.Context, ops []*ledger.Op) ([]ledger.Result, error)
	// Now estimates the book's clock, for naming windows.
	Now() int64
}

// Sweepable lists what nobody settled in time.
type Sweepable interface {
	// Expired returns at most limit open reservations, tombstones included,
	// whose hold ended before the book's now, the oldest first (RES-5). The
	// caller submits a Sweep for each.
	Expired(ctx context.Context, limit int) ([]*ledger.Reservation, error)
}

// Replica is a process that shares a store. Instants are the store's clock's.
type Replica struct {
	ID string
	// Name says where it runs, Version what.
	Name, Version     string
	StartedAt, SeenAt int64
	// Stopped: it ended in order.
	Stopped bool
	// Open are its open reservations.
	Open int64
	// File tells the configuration file that it has applied from others, "": none.
	// Of several the one with the greatest AppliedAt is in force (STO-2).
	File      string
	AppliedAt int64
	// OffsetMicros is the store's clock less its own, as it last measured it.
	OffsetMicros int64
}

// Replicas are the processes that share a store, the first started first, as of
// Now. Steady is since when this process has told without a gap that it lives, 0:
// it never did. One that was cut off until a moment ago cannot tell who else was.
// OffsetMicros is the store's clock less this process's.
type Replicas struct {
	Now, Steady, OffsetMicros int64
	List                      []Replica
}

// Shared is a store that several processes use at once (STO-1).
type Shared interface {
	// Changed names the workspaces whose configuration changed after a generation,
	// "" for what all share, and the newest generation.
	Changed(ctx context.Context, since int64) (workspaces []string, now int64, err error)
	// Listen calls changed soon after configuration may have changed, until ctx
	// ends. It may miss changes: ask, too.
	Listen(ctx context.Context, changed func())
	// Beat tells the others that this process lives, Applied besides that it has
	// applied a configuration file: what tells it from others.
	Beat(ctx context.Context) error
	Applied(ctx context.Context, file string) error
	Replicas(ctx context.Context) (Replicas, error)
	// Left pages through the open reservations of a process.
	Left(ctx context.Context, process string, after *ledger.Reservation, limit int) ([]*ledger.Reservation, error)
	// Forget removes a process from the list, or makes it a stopped one where
	// something rests on it. ErrNotFound: it is not there. The audit is stored in the
	// same transaction; none when its Action is "".
	Forget(ctx context.Context, process string, audit Audit) error
}

// KindKey is the kind of objects that are API keys: Since leaves them out of a
// first load, because there may be any number of them (KEY-2).
const KindKey = tenant.KindKey

// Object is one piece of configuration. Body is JSON, strictly decoded by the
// domain package that owns the kind.
type Object struct {
	// Workspace "" is shared by all: providers, models, prices, routes.
	Workspace, Kind, ID, Name string
	// Version counts this object's changes from 1. Generation is the value that
	// the workspace's generation took with the last of them.
	Version, Generation int64
	// Epoch is the owner's: a limit's grows when what it counts changes (ENGINE 8).
	Epoch uint32
	Body  []byte
	// Source is "api" or "file", Origin then file:line.
	Source, Origin string
	// CreatedAt, UpdatedAt and RetiredAt (0: live) are set by the store.
	CreatedAt, UpdatedAt, RetiredAt int64
}

// Edit is one change of one object with everything that belongs to it. An
// object is known by (Workspace, Kind, ID); among live ones (Workspace, Kind,
// Name) is unique too.
type Edit struct {
	// Object's Generation, Version and instants are set by the store.
	Object Object
	// Expect is the version that the object must have now; 0: it must not exist.
	Expect int64
	// Retire makes it a retired one. An edit without it, of a retired object,
	// brings that back (STO-2).
	Retire bool
	// AddSecret adds a key's secret. It has this object's workspace and id.
	AddSecret *KeySecret
	// ExpireSecrets gives every earlier secret of this key that end, unless it
	// ends sooner: a rotation with its grace (KEY-3). A past instant: at once.
	ExpireSecrets *int64
	// Credential replaces a provider's credential, kept apart from Body, audit
	// and Since; "" removes it.
	Credential *string
	// Audit is stored in the same transaction; none when its Action is "".
	Audit Audit
}

// KeySecret is one secret of a key: its hash alone. NotAfter 0 is no end.
type KeySecret struct {
	Hash             [32]byte
	Workspace, KeyID string
	NotAfter         int64
}

// Audit is one entry of the audit: who, what, before, after; never a secret
// (ADM-3). Seq is set by the store and grows with every entry.
type Audit struct {
	Seq, At                                  int64
	Workspace, Actor, Action, Kind, ID, Name string
	Before, After                            []byte
}

// Objects keeps configuration.
type Objects interface {
	Object(ctx context.Context, workspace, kind, id string) (Object, error)
	// ByName finds the live object of that name, else the one retired last.
	ByName(ctx context.Context, workspace, kind, name string) (Object, error)
	// List returns live objects by name (byte order), from after afterName on.
	List(ctx context.Context, workspace, kind, afterName string, limit int) ([]Object, error)
	// Since returns every object of the workspace and of "" that changed after
	// the generation, retired ones and keys included, and the generation now.
	// With generation 0: everything live but keys. Order: kind, name, id.
	Since(ctx context.Context, workspace string, generation int64) ([]Object, int64, error)
	// Change makes the edits in order in one transaction, or none of them, and
	// bumps the generation of each workspace named, in force from the next batch
	// on; an edit of "" bumps every workspace's. ErrConflict names the object.
	Change(ctx context.Context, at int64, edits []Edit) error
}

// Secrets keeps what must not be shown: hashes of key secrets, provider
// credentials, and the store's own secret.
type Secrets interface {
	// KeyBySecret finds a key by its secret's hash. The caller compares NotAfter
	// with its instant: an ended one is still found.
	KeyBySecret(ctx context.Context, hash [32]byte) (KeySecret, error)
	Credential(ctx context.Context, workspace, providerID string) (string, error)
	// StoreSecret is 32 random bytes that were made with the store.
	StoreSecret(ctx context.Context) ([]byte, error)
	AdminTokenHash(ctx context.Context) ([32]byte, error)
	SetAdminTokenHash(ctx context.Context, hash [32]byte) error
}

// Keeper remembers what providers keep for workspaces (DIS-8).
type Keeper interface {
	// Keep adds to what is remembered, in one transaction, which is durable when it
	// returns. What is there already stays until the later of both ends.
	Keep(ctx context.Context, list []route.Kept) error
	// Kept finds what a workspace has under some hashes, with every provider that
	// keeps it, in any order. What has expired may still be found.
	Kept(ctx context.Context, workspace string, hashes []route.KeptHash) ([]route.Kept, error)
}

// MaxKept bounds what one Keep takes and the hashes of one Kept.
const MaxKept = 4096

// OutcomeRunning is the outcome of a call whose reservation is open.
const OutcomeRunning = "running"

// Call is one record of the call log. Count is above 1 for a record that stands
// for several refusals of one key, code and minute (ENGINE 3).
type Call struct {
	ledger.Call
	Count int64
}

// Running is the call record of an open reservation.
func Running(r *ledger.Reservation) Call {
	return Call{Count: 1, Call: ledger.Call{
		ID: r.ID, Workspace: r.Workspace, Key: r.Subjects.Key, Outcome: OutcomeRunning, At: r.At, Place: r.Place,
		Generation: r.Generation, Model: r.Model, Provider: r.Provider, Price: r.Price, Subjects: r.Subjects,
		Worst: r.Worst, Checks: r.Checks, Holds: r.Holds, ClientID: r.ClientID, Note: r.Note,
	}}
}

// CallQuery selects calls of a workspace. Empty fields select all; Before is
// exclusive, zero means from the newest on.
type CallQuery struct {
	Key, Outcome string
	Before       ledger.ID
	Limit        int
}

// By names what usage can be grouped by.
type By string

// The groups of usage reports.
const (
	ByKey      By = "key"
	ByModel    By = "model"
	ByProvider By = "provider"
	ByUser     By = "user"
	ByTeam     By = "team"
	ByProject  By = "project"
	ByDay      By = "day"
)

// UsageQuery asks for the usage of requests admitted in [From, To). ByDay is the
// local date in Zone (nil: UTC), as 2006-01-02. No By: one row for all. A request
// of before Sums.Whole counts as if it had been admitted at noon of its day of UTC.
type UsageQuery struct {
	Workspace string
	From, To  int64
	By        []By
	Zone      *time.Location
}

// UsageRow is one group's usage: Spend in nano-dollars, corrections included.
type UsageRow struct {
	Group                           map[By]string
	Spend, Tokens, Requests, Events int64
}

// Log reads what happened. What Apply answered is in it, refusals too.
type Log interface {
	// Call finds one request, running ones too, with its events in order.
	Call(ctx context.Context, workspace string, id ledger.ID) (Call, []ledger.Event, error)
	// CallsByClientID returns the newest ended or refused calls of a label that
	// clients chose and may have repeated (ERR-4).
	CallsByClientID(ctx context.Context, workspace, clientID string, limit int) ([]Call, error)
	// Calls returns ended and refused calls, the newest id first.
	Calls(ctx context.Context, workspace string, q CallQuery) ([]Call, error)
	// Usage returns its rows ordered by group values, in the order of q.By.
	Usage(ctx context.Context, q UsageQuery) ([]UsageRow, error)
	// AuditList returns entries with Seq below before (0: from the newest on),
	// the newest first.
	AuditList(ctx context.Context, workspace string, before int64, limit int) ([]Audit, error)
	// FundEntries returns top-ups, credits and adjustments, the newest id first;
	// before zero: from the newest on.
	FundEntries(ctx context.Context, workspace string, before ledger.ID, limit int) ([]ledger.Event, error)
}

// Verifiable gives one consistent snapshot of the books (RES-7).
type Verifiable interface {
	// View calls fn with a reader that is valid until fn returns, on a running
	// store too: no change that commits meanwhile is seen.
	View(ctx context.Context, fn func(Reader) error) error
}

// Closing is what dropped events of one day's admissions, in UTC, added to one
// counter in all (RES-6).
type Closing struct {
	Counter ledger.Counter
	Kind    ledger.Kind
	Credit  bool
	Day     int32
	Amount  int64
}

// Reader walks a snapshot. Every walk stops at fn's first error and returns it.
type Reader interface {
	Counters(fn func(ledger.Counter, *ledger.State) error) error
	Reservations(fn func(*ledger.Reservation) error) error
	Events(fn func(*ledger.Event) error) error
	Closings(fn func(Closing) error) error
	Calls(fn func(*Call) error) error
	// Dropped is an instant: calls that ended before it may be gone; 0: none is.
	Dropped() (before int64, err error)
	Sums
}

// Sums are those of keys, and what usage reports are made of: roll-ups, and the
// events that are in none yet.
type Sums interface {
	Quarters(fn func(ledger.QuarterSum) error) error
	Rollups(fn func(*ledger.Rollup) error) error
	// Unrolled walks events that no roll-up holds, in any order.
	Unrolled(fn func(*ledger.Event) error) error
	// Whole is the start of a day of UTC: roll-ups of before it stand for days, and
	// events of requests that were admitted before it may be gone.
	Whole() (before int64, err error)
}

// Rollable is a store that rolls usage up behind its batches; others do it with
// them.
type Rollable interface {
	// Roll makes one step in one transaction: about limit events that no later one
	// can come before are added to roll-ups. done tells that nothing is left to do
	// now, or that another process does it.
	Roll(ctx context.Context, limit int) (events int64, done bool, err error)
}

// Cut says which records may go: those of before an instant each. 0 keeps all.
type Cut struct {
	// Calls that ended before it, refusals too.
	Calls int64
	// Events of requests that were admitted, and last charged or corrected, before
	// its day of UTC; their sums are closed into daily entries, and the roll-ups of
	// all requests of before that day become days. Entries of funds, raises, resets and
	// seeds stay. It lies 62 days back at the least: verify compares the single days
	// of the caps with events.
	Events int64
	// Quarters before it become days of UTC. No day of a zone's that is still
	// counted may begin before it.
	Quarters int64
	// Notices of before it, sent or not.
	Notices int64
	// Kept is what ends before it of what providers keep.
	Kept int64
}

// Pruned is what one step did, in rows: those that are gone, and the Closings
// that were written.
type Pruned struct{ Calls, Events, Closings, Quarters, Rollups, Notices, Kept int64 }

// Retainable drops what need not be kept (RES-6).
type Retainable interface {
	// Prune makes one step in one transaction: about limit rows, between the
	// batches, which go on. done tells that nothing is left to do for this cut. A
	// step that fails has changed nothing; one that is repeated loses nothing.
	Prune(ctx context.Context, cut Cut, limit int) (step Pruned, done bool, err error)
}

// Copyable copies a running store. A store that keeps nothing is none.
type Copyable interface {
	// Backup writes the whole store as of one instant to a new file with mode 0600,
	// which is on the disk when it returns, and tells its size. The batches go on.
	// fs.ErrExist: there is such a file already.
	Backup(ctx context.Context, path string) (bytes int64, err error)
}

// Recovery is what a start found and settled.
type Recovery struct {
	// Swept reservations were open: a dead process's. SpendNanos is their worst
	// case, which they were charged (RES-1, RES-5).
	Swept, Tombstones int
	SpendNanos        int64
	// LastAt is the store's last instant before this start.
	LastAt int64
}

// ClockStep tells that a book's clock moved by more than is normal: backwards by
// over 10 s, or forwards by over an hour between batches (ENGINE 7).
type ClockStep struct{ From, To int64 }
