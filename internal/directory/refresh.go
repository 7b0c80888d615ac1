// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

// The kinds of object that a snapshot is made of.
const (
	KindWorkspace = "workspace"
	KindProvider  = "provider"
	KindModel     = "model"
)

// Snapshot returns the workspace's configuration as last loaded, loading it on
// first use.
func (d *Directory) Snapshot(ctx context.Context, workspace string) (*admit.Snapshot, error) {
	if e, ok := d.workspaces.Load(workspace); ok {
		return e.(*entry).snapshot, nil
	}
	return d.Refresh(ctx, workspace)
}

// Refresh loads what has changed in the store since the snapshot in memory.
func (d *Directory) Refresh(ctx context.Context, workspace string) (*admit.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := &entry{objects: map[objectKey]store.Object{}}
	since := int64(0)
	if e, ok := d.workspaces.Load(workspace); ok {
		old = e.(*entry)
		since = old.snapshot.Generation
	}
	changed, generation, err := d.store.Since(ctx, workspace, since)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of workspace %s: %w", workspace, err)
	}
	next, err := d.apply(ctx, old, workspace, changed, generation)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of workspace %s: %w", workspace, err)
	}
	d.workspaces.Store(workspace, next)
	return next.snapshot, nil
}

// RefreshAll brings every workspace in memory up to date.
func (d *Directory) RefreshAll(ctx context.Context) error {
	var failed error
	d.workspaces.Range(func(workspace, _ any) bool {
		_, failed = d.Refresh(ctx, workspace.(string))
		return failed == nil
	})
	return failed
}

// apply makes a new entry of an old one and what changed. Changed keys are only
// dropped from the caches: they are read again when somebody uses them.
func (d *Directory) apply(ctx context.Context, old *entry, workspace string, changed []store.Object, generation int64) (*entry, error) {
	next := &entry{objects: maps.Clone(old.objects)}
	onlyKeys := old.snapshot != nil
	for _, o := range changed {
		if o.Kind == store.KindKey {
			d.forget(o.Workspace, o.ID)
			continue
		}
		onlyKeys = false
		k := objectKey{o.Workspace, o.Kind, o.ID}
		if o.RetiredAt > 0 {
			delete(next.objects, k)
		} else {
			next.objects[k] = o
		}
	}
	if onlyKeys {
		s := *old.snapshot
		s.Generation = generation
		next.snapshot = &s
		return next, nil
	}
	var err error
	next.snapshot, err = d.build(ctx, workspace, next.objects, generation)
	return next, err
}

// forget drops a key and its secrets; secrets are few a key, but not indexed by
// it, so the secret cache is emptied of what belongs to the key by a sweep.
func (d *Directory) forget(workspace, id string) {
	d.keys.Invalidate(keyID{workspace, id})
	for hash, s := range d.secrets.All() {
		if s.Workspace == workspace && s.KeyID == id {
			d.secrets.Invalidate(hash)
		}
	}
	d.unknown.InvalidateAll()
}

// build decodes a workspace's objects into a snapshot. The workspace's own
// provider or model of a name takes the place of the shared one (SPEC 14).
func (d *Directory) build(ctx context.Context, workspace string, objects map[objectKey]store.Object, generation int64) (*admit.Snapshot, error) {
	w := tenant.NewWorkspace(workspace, workspace)
	if o, ok := objects[objectKey{workspace, KindWorkspace, workspace}]; ok {
		decoded, err := tenant.DecodeWorkspace(o.Body)
		if err != nil {
			return nil, fmt.Errorf("workspace: %w", err)
		}
		w = decoded
		w.ID, w.Name, w.ZoneEpoch = o.ID, o.Name, max(w.ZoneEpoch, o.Epoch)
	}
	zone, err := window.Zone(w.Zone)
	if err != nil {
		return nil, err
	}
	parts := parts{providers: map[string]*provider{}, models: map[string]*route.Model{}}
	for _, o := range ordered(objects, w) {
		if err := d.decode(ctx, o, &parts); err != nil {
			return nil, err
		}
	}
	var targets []*admit.Target
	for _, m := range parts.models {
		p := parts.providers[m.Provider]
		if p == nil {
			return nil, fmt.Errorf("model %s: there is no provider %s", m.Name, m.Provider)
		}
		targets = append(targets, &admit.Target{
			Model: m, Provider: p.Provider, Price: d.priceOf(m, p.Provider), Credential: p.credential,
		})
	}
	return admit.NewSnapshot(generation, w, zone, targets), nil
}

// provider is a provider with the credential that is kept apart from it.
type provider struct {
	*route.Provider
	credential string
}

type parts struct {
	providers map[string]*provider
	models    map[string]*route.Model
}

// ordered puts shared objects before the workspace's own, each by kind and name.
func ordered(objects map[objectKey]store.Object, w *tenant.Workspace) []store.Object {
	var list []store.Object
	for _, o := range objects {
		if o.Workspace == "" && !w.Inherit {
			continue
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b store.Object) int {
		return strings.Compare(a.Workspace+"\x00"+a.Kind+"\x00"+a.Name, b.Workspace+"\x00"+b.Kind+"\x00"+b.Name)
	})
	return list
}

func (d *Directory) decode(ctx context.Context, o store.Object, into *parts) error {
	switch o.Kind {
	case KindProvider:
		p, err := route.DecodeProvider(o.Body)
		if err != nil {
			return fmt.Errorf("provider %s: %w", o.Name, err)
		}
		p.ID, p.Name = o.ID, o.Name
		credential, err := d.store.Credential(ctx, o.Workspace, o.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read the credential of provider %s: %w", o.Name, err)
		}
		into.providers[o.Name] = &provider{p, credential}
	case KindModel:
		m, err := route.DecodeModel(o.Body)
		if err != nil {
			return fmt.Errorf("model %s: %w", o.Name, err)
		}
		m.ID, m.Name = o.ID, o.Name
		into.models[o.Name] = m
	}
	return nil
}

// priceOf: the model's own row over the catalogue's (PRC-2); a part that the
// own row leaves out comes from the catalogue (PRC-1, BR-031).
func (d *Directory) priceOf(m *route.Model, p *route.Provider) *price.Row {
	if m.Free {
		row := &price.Row{Model: m.Name, Source: price.SourceOverride, Free: true}
		row.Seal()
		return row
	}
	builtIn := d.builtIn(m, p)
	if m.Price == nil || m.Price.IsEmpty() {
		return builtIn
	}
	return m.Price.Over(builtIn)
}

// builtIn looks a model up by the provider that its address belongs to, else by
// the provider's own name.
func (d *Directory) builtIn(m *route.Model, p *route.Provider) *price.Row {
	name, ok := d.prices.ProviderAt(p.BaseURL)
	if !ok {
		name = p.Name
	}
	row, _ := d.prices.Find(name, m.Upstream)
	return row
}
