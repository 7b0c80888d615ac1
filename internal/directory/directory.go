// SPDX-License-Identifier: Apache-2.0

// Package directory answers whose request it is, from configuration that it
// keeps in memory: one immutable snapshot a workspace, stamped with its
// generation, and a bounded cache of keys that were seen.
//
// A snapshot may be behind the store. That is safe: an operation built from an
// old one is answered stale by the ledger, the caller refreshes and builds
// again (ENGINE 13). So a key must never be older than the snapshot that it is
// given out with; cache.go holds that.
//
// Memory grows with models and workspaces, not with keys.
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
	// storeTimeout bounds what the store may take of a request that waits for
	// it (RES-8).
	storeTimeout = 2 * time.Second
)

// ErrUnknownKey says that the secret belongs to no key: never made, deleted,
// rotated away, or of a workspace that is no more.
var ErrUnknownKey = errors.New("unknown API key")

// ErrTooManyLookUps says that the process has looked up as many unknown secrets
// this second as it will; the caller may try again.
var ErrTooManyLookUps = errors.New("too many unknown API keys are being tried")

// Store is what the directory reads.
type Store interface {
	Since(ctx context.Context, workspace string, generation int64) ([]store.Object, int64, error)
	Object(ctx context.Context, workspace, kind, id string) (store.Object, error)
	KeyBySecret(ctx context.Context, hash [32]byte) (store.KeySecret, error)
	StoreSecret(ctx context.Context) ([]byte, error)
	Credential(ctx context.Context, workspace, providerID string) (string, error)
}

// Directory is safe for concurrent use.
type Directory struct {
	store       Store
	clock       clock.Clock
	prices      *price.Catalogue
	storeSecret []byte

	cache      cache
	workspaces sync.Map // workspace id -> *place
	shared     sync.Map // objectKey -> *part, of what all workspaces share
	allowance  allowance
	newest     *newest // nil: nobody else changes the store

	secretLoads flights[loadOf[[32]byte], store.KeySecret]
	keyLoads    flights[loadOf[keyID], *tenant.Key]
}

// New builds a directory over a store; nothing is loaded yet.
func New(ctx context.Context, s Store, c clock.Clock, prices *price.Catalogue) (*Directory, error) {
	secret, err := s.StoreSecret(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	d := &Directory{store: &circuit{Store: s, patience: storeTimeout}, clock: c, prices: prices, storeSecret: secret}
	if d.cache.keys, err = otter.New(&otter.Options[keyID, *tenant.Key]{MaximumSize: maxKeys}); err != nil {
		return nil, fmt.Errorf("make the key cache: %w", err)
	}
	if d.cache.secrets, err = otter.New(&otter.Options[[32]byte, seen]{MaximumSize: maxKeys}); err != nil {
		return nil, fmt.Errorf("make the secret cache: %w", err)
	}
	if d.cache.unknown, err = otter.New(&otter.Options[[32]byte, unknown]{MaximumSize: maxUnknown}); err != nil {
		return nil, fmt.Errorf("make the cache of unknown secrets: %w", err)
	}
	return d, nil
}

// Identify finds the key that a secret belongs to, with a snapshot of its
// workspace that is no newer than the key. Errors: ErrUnknownKey,
// ErrTooManyLookUps; any other means that nobody could tell.
func (d *Directory) Identify(ctx context.Context, secret string) (*tenant.Key, *admit.Snapshot, error) {
	ours, valid := tenant.CheckTag(secret, d.storeSecret)
	if ours && !valid {
		return nil, nil, ErrUnknownKey
	}
	hash := tenant.HashSecret(secret)
	found, err := d.secret(ctx, hash, ours)
	if err != nil {
		return nil, nil, err
	}
	workspace := found.Workspace
	snapshot, err := d.Snapshot(ctx, workspace)
	if errors.Is(err, errNoWorkspace) {
		return nil, nil, ErrUnknownKey
	}
	if err != nil {
		return nil, nil, err
	}
	// Once more: only what is read after the snapshot is as new as it (ADM-4).
	if found, err = d.secret(ctx, hash, true); err != nil {
		return nil, nil, err
	}
	if found.Workspace != workspace || found.NotAfter > 0 && d.clock.Now() >= found.NotAfter {
		return nil, nil, ErrUnknownKey
	}
	key, err := d.key(ctx, keyID{workspace, found.KeyID})
	if err != nil {
		return nil, nil, err
	}
	return key, snapshot, nil
}

// loadOf is one thing to load, as of a state of the caches: a load that began
// before the last change is nobody's who has seen that change.
type loadOf[K comparable] struct {
	what  K
	epoch int64
}

// secret looks a hash up. vouched says that the secret is known to be a key's;
// without that it may be made up, so such look-ups are bounded. Failures are
// remembered (KEY-2).
func (d *Directory) secret(ctx context.Context, hash [32]byte, vouched bool) (store.KeySecret, error) {
	if found, err := d.recall(ctx, hash); !errors.Is(err, errNotSeen) {
		return found, err
	}
	began := false
	epoch := d.cache.epoch.Load()
	found, err := d.secretLoads.do(ctx, loadOf[[32]byte]{hash, epoch}, func(ctx context.Context) (store.KeySecret, error) {
		began = true
		// Another load may have ended since.
		if found, err := d.recall(ctx, hash); !errors.Is(err, errNotSeen) {
			return found, err
		}
		now := d.clock.Now()
		_, known := d.cache.secrets.GetIfPresent(hash)
		if !vouched && !known && !d.allowance.take(now) {
			return store.KeySecret{}, ErrTooManyLookUps
		}
		return d.readSecret(ctx, hash, now, epoch)
	})
	if errors.Is(err, ErrUnknownKey) && !began && d.newest != nil {
		return d.secret(ctx, hash, vouched) // another process may have made it since that load began
	}
	return found, err
}

// errNotSeen: the caches have no answer.
var errNotSeen = errors.New("not seen before")

// recall answers from memory: a secret, ErrUnknownKey or errNotSeen. Any other
// error means that nobody could tell whether what is remembered still holds.
func (d *Directory) recall(ctx context.Context, hash [32]byte) (store.KeySecret, error) {
	if cached, ok := d.cache.secrets.GetIfPresent(hash); ok && !cached.changed {
		return cached.KeySecret, nil
	}
	u, ok := d.cache.unknown.GetIfPresent(hash)
	if left := u.until - d.clock.Now(); !ok || left <= 0 || left > unknownRemembered.Microseconds() {
		return store.KeySecret{}, errNotSeen
	}
	still, err := d.stillUnknown(ctx, u)
	switch {
	case err != nil:
		return store.KeySecret{}, err
	case !still:
		return store.KeySecret{}, errNotSeen
	}
	return store.KeySecret{}, ErrUnknownKey
}

// readSecret reads a secret from the store. What may not be kept as it was read
// is still known to be a key's.
func (d *Directory) readSecret(ctx context.Context, hash [32]byte, now, epoch int64) (store.KeySecret, error) {
	generation := d.generation() // before it reads
	found, err := d.store.KeyBySecret(ctx, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		u := unknown{until: now + unknownRemembered.Microseconds(), generation: generation}
		d.cache.keep(epoch, func() { d.cache.unknown.Set(hash, u) })
		return store.KeySecret{}, ErrUnknownKey
	case err != nil:
		return store.KeySecret{}, fmt.Errorf("look up an API key: %w", err)
	}
	d.cache.secrets.SetIfAbsent(hash, seen{KeySecret: found, changed: true})
	if d.loaded(found.Workspace) {
		d.cache.keep(epoch, func() { d.cache.secrets.Set(hash, seen{KeySecret: found}) })
	}
	return found, nil
}

// key reads a key; one that was deleted is remembered too.
func (d *Directory) key(ctx context.Context, id keyID) (*tenant.Key, error) {
	k, ok := d.cache.keys.GetIfPresent(id)
	if !ok {
		epoch := d.cache.epoch.Load()
		var err error
		k, err = d.keyLoads.do(ctx, loadOf[keyID]{id, epoch}, func(ctx context.Context) (*tenant.Key, error) {
			k, err := d.readKey(ctx, id)
			if err == nil {
				d.cache.keep(epoch, func() { d.cache.keys.Set(id, k) })
			}
			return k, err
		})
		if err != nil {
			return nil, err
		}
	}
	if k == nil {
		return nil, ErrUnknownKey
	}
	return k, nil
}

// readKey is nil for a key that is no more.
func (d *Directory) readKey(ctx context.Context, id keyID) (*tenant.Key, error) {
	object, err := d.store.Object(ctx, id.workspace, store.KindKey, id.id)
	if errors.Is(err, store.ErrNotFound) || err == nil && object.RetiredAt > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", id.id, err)
	}
	k, err := tenant.DecodeKey(object.Body)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", id.id, err)
	}
	k.ID, k.Name = object.ID, object.Name
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
