// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// The kinds of object that a snapshot is made of.
const (
	KindWorkspace = tenant.KindWorkspace
	KindProvider  = route.KindProvider
	KindModel     = route.KindModel
)

// errNoWorkspace: there is no such workspace, or none any more. Without its
// object nobody knows its limits, so nothing of it is let through.
var errNoWorkspace = fmt.Errorf("no such workspace: %w", store.ErrNotFound)

// place is where one workspace's snapshot is kept.
type place struct {
	entry   atomic.Pointer[entry]
	started atomic.Int64 // counts the refreshes that have begun
	mu      sync.Mutex   // one refresh at a time; guards the rest
	done    int64        // which of them ended last, and how
	err     error
}

// entry is one workspace's objects and the snapshot made of them.
type entry struct {
	generation int64
	parts      map[objectKey]*part
	snapshot   *admit.Snapshot // nil: there is no such workspace
	problems   []string
	// until is the instant, in Unix microseconds, from which other prices may be
	// in force, 0 for never (SPEC PRC-1).
	until int64
}

func (d *Directory) place(workspace string) *place {
	if p, ok := d.workspaces.Load(workspace); ok {
		return p.(*place)
	}
	p, _ := d.workspaces.LoadOrStore(workspace, &place{})
	return p.(*place)
}

// loaded tells whether a workspace's snapshot is in memory.
func (d *Directory) loaded(workspace string) bool {
	p, ok := d.workspaces.Load(workspace)
	return ok && p.(*place).entry.Load() != nil
}

// Snapshot returns the workspace's configuration as last loaded, loading it on
// first use.
func (d *Directory) Snapshot(ctx context.Context, workspace string) (*admit.Snapshot, error) {
	p := d.place(workspace)
	if e := p.entry.Load(); e != nil && !d.outdated(e) {
		return e.usable()
	}
	arrived := p.started.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entry.Load() == nil && p.done <= arrived {
		d.run(ctx, p, workspace)
	}
	if e := p.entry.Load(); e != nil {
		return d.reprice(p, workspace).usable()
	}
	return p.result(workspace)
}

// outdated tells whether other prices may have come into force since.
func (d *Directory) outdated(e *entry) bool { return e.until > 0 && d.clock.Now() >= e.until }

// reprice gives the entry in memory the prices that are in force now. The caller
// has p.mu.
func (d *Directory) reprice(p *place, workspace string) *entry {
	e := p.entry.Load()
	if !d.outdated(e) {
		return e
	}
	next := *e
	if err := d.build(&next, workspace); err != nil {
		return e // it was built of the same parts before
	}
	p.entry.Store(&next)
	return &next
}

func (e *entry) usable() (*admit.Snapshot, error) {
	if e.snapshot == nil {
		return nil, errNoWorkspace
	}
	return e.snapshot, nil
}

// Problems lists what of a workspace's configuration in memory can't be used,
// and why: models and providers that were left out of its snapshot.
func (d *Directory) Problems(workspace string) []string {
	p, ok := d.workspaces.Load(workspace)
	if !ok {
		return nil
	}
	if e := p.(*place).entry.Load(); e != nil {
		return e.problems
	}
	return nil
}

// Refresh loads what has changed in the store since the snapshot in memory.
// Callers that come while one runs share the next one.
func (d *Directory) Refresh(ctx context.Context, workspace string) (*admit.Snapshot, error) {
	p := d.place(workspace)
	arrived := p.started.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done <= arrived {
		d.run(ctx, p, workspace)
	}
	return p.result(workspace)
}

// run is one refresh. Others wait for it, so it is not given up with the
// caller's request. The caller has p.mu.
func (d *Directory) run(ctx context.Context, p *place, workspace string) {
	number := p.started.Add(1)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	p.err = d.refresh(bounded, p, workspace)
	p.done = number
}

// result is what the last refresh has left. The caller has p.mu.
func (p *place) result(workspace string) (*admit.Snapshot, error) {
	if p.err != nil {
		return nil, fmt.Errorf("read the configuration of workspace %s: %w", workspace, p.err)
	}
	return p.entry.Load().usable()
}

// RefreshAll brings every workspace in memory up to date. One that fails keeps
// no other from it.
func (d *Directory) RefreshAll(ctx context.Context) error {
	var failed []error
	d.workspaces.Range(func(workspace, _ any) bool {
		if _, err := d.Refresh(ctx, workspace.(string)); err != nil && !errors.Is(err, errNoWorkspace) {
			failed = append(failed, err)
		}
		return true
	})
	return errors.Join(failed...)
}

// Follow brings those of the named workspaces up to date that are in memory, ""
// names them all: what another process has changed. now is the store's generation
// since.
func (d *Directory) Follow(ctx context.Context, workspaces []string, now int64) error {
	if d.newest != nil {
		d.newest.hear(now)
	}
	if slices.Contains(workspaces, "") {
		return d.RefreshAll(ctx)
	}
	var failed []error
	for _, workspace := range workspaces {
		if !d.loaded(workspace) {
			continue
		}
		if _, err := d.Refresh(ctx, workspace); err != nil && !errors.Is(err, errNoWorkspace) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (d *Directory) refresh(ctx context.Context, p *place, workspace string) error {
	old := p.entry.Load()
	first := old == nil
	if first {
		old = &entry{}
	}
	changed, generation, err := d.store.Since(ctx, workspace, old.generation)
	if err != nil {
		return err
	}
	if !first && len(changed) == 0 && generation == old.generation {
		d.reprice(p, workspace)
		return nil
	}
	next, keys, err := d.apply(ctx, old, workspace, changed, generation)
	if err != nil {
		return err
	}
	d.cache.publish(keys, first, func() { p.entry.Store(next) })
	return nil
}

// apply makes a new entry of an old one and what changed. Changed keys are only
// named: they are read again when somebody uses them.
func (d *Directory) apply(ctx context.Context, old *entry, workspace string, changed []store.Object, generation int64) (*entry, map[keyID]bool, error) {
	next := &entry{generation: generation, parts: maps.Clone(old.parts), problems: old.problems, until: old.until}
	if next.parts == nil {
		next.parts = make(map[objectKey]*part)
	}
	keys, onlyKeys := make(map[keyID]bool), old.snapshot != nil
	for i := range changed {
		o := &changed[i]
		if o.Kind == store.KindKey {
			keys[keyID{o.Workspace, o.ID}] = true
			continue
		}
		if !concerns(o.Kind) {
			continue
		}
		onlyKeys = false
		if err := d.take(ctx, next.parts, o); err != nil {
			return nil, nil, err
		}
	}
	if onlyKeys {
		s := *old.snapshot
		s.Generation = generation
		next.snapshot = &s
		return next, keys, nil
	}
	return next, keys, d.build(next, workspace)
}

// concerns tells whether a kind of object is part of a snapshot.
func concerns(kind string) bool {
	switch kind {
	case KindWorkspace, KindProvider, KindModel, tenant.KindPlan, budget.KindBudget, rule.KindRule, price.KindImport:
		return true
	default:
		return false
	}
}

// take puts an object in its place among the parts, or removes it.
func (d *Directory) take(ctx context.Context, parts map[objectKey]*part, o *store.Object) error {
	k := objectKey{o.Workspace, o.Kind, o.ID}
	if o.RetiredAt > 0 {
		delete(parts, k)
		if o.Workspace == "" {
			d.shared.Delete(k)
		}
		return nil
	}
	if o.Workspace == "" {
		if p, ok := d.shared.Load(k); ok && p.(*part).version == o.Version {
			parts[k] = p.(*part)
			return nil
		}
	}
	p, err := d.decode(ctx, o)
	if err != nil {
		return err
	}
	parts[k] = p
	if o.Workspace == "" {
		d.shared.Store(k, p)
	}
	return nil
}
