// SPDX-License-Identifier: Apache-2.0

// Package directory answers whose request it is, from configuration that it
// keeps in memory: one immutable snapshot a workspace, stamped with its
// generation, and a bounded cache of keys that were seen.
//
// A snapshot may be behind the store. That is safe: an operation built from an
// old one is answered stale by the ledger, the caller refreshes and builds
// again (ENGINE 13). Memory grows with models and workspaces, not with keys.
package directory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// Bounds of the caches, and of look-ups of secrets that nothing vouches for
// (KEY-2).
const (
	maxKeys           = 100_000
	maxUnknown        = 10_000
	lookUpsPerSecond  = 100
	unknownRemembered = 5 * time.Second
)

// ErrUnknownKey: the secret belongs to no key: never made, deleted, or rotated
// away.
var ErrUnknownKey = errors.New("unknown API key")

// ErrTooManyLookUps: the process has looked up as many unknown secrets this
// second as it will; the caller may try again.
var ErrTooManyLookUps = errors.New("too many unknown API keys are being tried")

// Store is what the directory reads.
type Store interface {
	Since(ctx context.Context, workspace string, generation int64) ([]store.Object, int64, error)
	Object(ctx context.Context, workspace, kind, id string) (store.Object, error)
	KeyBySecret(ctx context.Context, hash [32]byte) (store.KeySecret, error)
	StoreSecret(ctx context.Context) ([]byte, error)
	Credential(ctx context.Context, workspace, providerID string) (string, error)
}

type keyID struct{ workspace, id string }

// Directory is safe for concurrent use.
type Directory struct {
	store       Store
	clock       clock.Clock
	prices      *price.Catalogue
	storeSecret []byte

	keys    *otter.Cache[keyID, *tenant.Key]
	secrets *otter.Cache[[32]byte, store.KeySecret]
	unknown *otter.Cache[[32]byte, int64] // until when, Unix microseconds

	mu         sync.Mutex // serialises refreshes and the look-up allowance
	workspaces sync.Map   // workspace id -> *entry
	allowance  allowance
}

// entry is one workspace's objects and the snapshot made of them.
type entry struct {
	objects  map[objectKey]store.Object
	snapshot *admit.Snapshot
}

type objectKey struct{ workspace, kind, id string }

// New builds a directory over a store; nothing is loaded yet.
func New(ctx context.Context, s Store, c clock.Clock, prices *price.Catalogue) (*Directory, error) {
	secret, err := s.StoreSecret(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	d := &Directory{store: s, clock: c, prices: prices, storeSecret: secret}
	if d.keys, err = otter.New(&otter.Options[keyID, *tenant.Key]{MaximumSize: maxKeys}); err != nil {
		return nil, fmt.Errorf("make the key cache: %w", err)
	}
	if d.secrets, err = otter.New(&otter.Options[[32]byte, store.KeySecret]{MaximumSize: maxKeys}); err != nil {
		return nil, fmt.Errorf("make the secret cache: %w", err)
	}
	if d.unknown, err = otter.New(&otter.Options[[32]byte, int64]{MaximumSize: maxUnknown}); err != nil {
		return nil, fmt.Errorf("make the cache of unknown secrets: %w", err)
	}
	return d, nil
}

// Identify finds the key that a secret belongs to. Errors: ErrUnknownKey,
// ErrTooManyLookUps; any other means that nobody could tell.
func (d *Directory) Identify(ctx context.Context, secret string) (*tenant.Key, *admit.Snapshot, error) {
	ours, valid := tenant.CheckTag(secret, d.storeSecret)
	if ours && !valid {
		return nil, nil, ErrUnknownKey
	}
	now := d.clock.Now()
	hash := tenant.HashSecret(secret)
	found, err := d.secret(ctx, hash, ours, now)
	if err != nil {
		return nil, nil, err
	}
	if found.NotAfter > 0 && now > found.NotAfter {
		return nil, nil, ErrUnknownKey
	}
	snapshot, err := d.Snapshot(ctx, found.Workspace)
	if err != nil {
		return nil, nil, err
	}
	key, err := d.key(ctx, found.Workspace, found.KeyID)
	if err != nil {
		return nil, nil, err
	}
	return key, snapshot, nil
}

// secret looks a hash up. A secret without a valid tag may be made up, so such
// look-ups are bounded and their failures remembered.
func (d *Directory) secret(ctx context.Context, hash [32]byte, tagged bool, now int64) (store.KeySecret, error) {
	if found, ok := d.secrets.GetIfPresent(hash); ok {
		return found, nil
	}
	if !tagged {
		if until, ok := d.unknown.GetIfPresent(hash); ok && now < until {
			return store.KeySecret{}, ErrUnknownKey
		}
		if !d.mayLookUp(now) {
			return store.KeySecret{}, ErrTooManyLookUps
		}
	}
	found, err := d.store.KeyBySecret(ctx, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		d.unknown.Set(hash, now+unknownRemembered.Microseconds())
		return store.KeySecret{}, ErrUnknownKey
	case err != nil:
		return store.KeySecret{}, fmt.Errorf("look up an API key: %w", err)
	}
	d.secrets.Set(hash, found)
	return found, nil
}

func (d *Directory) mayLookUp(now int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.allowance.take(now)
}

// allowance is a second's number of look-ups.
type allowance struct {
	second int64
	used   int
}

func (a *allowance) take(now int64) bool {
	if s := now / 1_000_000; s != a.second {
		a.second, a.used = s, 0
	}
	a.used++
	return a.used <= lookUpsPerSecond
}

func (d *Directory) key(ctx context.Context, workspace, id string) (*tenant.Key, error) {
	if k, ok := d.keys.GetIfPresent(keyID{workspace, id}); ok {
		return k, nil
	}
	object, err := d.store.Object(ctx, workspace, store.KindKey, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && object.RetiredAt > 0 {
		return nil, ErrUnknownKey
	}
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", id, err)
	}
	k, err := tenant.DecodeKey(object.Body)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", id, err)
	}
	k.ID, k.Name = object.ID, object.Name
	d.keys.Set(keyID{workspace, id}, k)
	return k, nil
}

// Refuse turns an error of Identify into what the client sees. What is neither
// an unknown key nor a flood of them means that nobody could tell: 503.
func (d *Directory) Refuse(err error) *fault.Fault {
	if errors.Is(err, ErrUnknownKey) {
		return fault.New(fault.InvalidAPIKey, "the API key is not valid: it was never made here, or it was deleted or rotated away")
	}
	if errors.Is(err, ErrTooManyLookUps) {
		return fault.New(fault.ServiceUnavailable, "too many unknown API keys are being tried at this gateway; try again shortly")
	}
	return fault.New(fault.ServiceUnavailable, "the gateway cannot tell whose key this is because its store does not answer; nothing was sent")
}
