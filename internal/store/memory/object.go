// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir/internal/store"
)

// config is what Change changes, all of it or nothing: it works on a copy.
type config struct {
	objects     map[objectKey]store.Object
	secrets     map[[32]byte]store.KeySecret
	credentials map[credentialKey]string
	audit       []store.Audit
	secret      [32]byte
	adminToken  *[32]byte
}

type objectKey struct{ workspace, kind, id string }

type credentialKey struct{ workspace, provider string }

func newConfig(secret [32]byte) config {
	return config{
		objects: make(map[objectKey]store.Object), secrets: make(map[[32]byte]store.KeySecret),
		credentials: make(map[credentialKey]string), secret: secret,
	}
}

func (c *config) clone() config {
	out := *c
	out.objects, out.secrets = maps.Clone(c.objects), maps.Clone(c.secrets)
	out.credentials, out.audit = maps.Clone(c.credentials), slices.Clone(c.audit)
	return out
}

// Object is store.Objects'.
func (b *Book) Object(ctx context.Context, workspace, kind, id string) (store.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return store.Object{}, err
	}
	o, ok := b.objects[objectKey{workspace, kind, id}]
	if !ok {
		return o, fmt.Errorf("read %s %q: %w", kind, id, store.ErrNotFound)
	}
	return o, nil
}

// ByName is store.Objects'.
func (b *Book) ByName(ctx context.Context, workspace, kind, name string) (store.Object, error) {
	list, err := b.list(ctx, func(o *store.Object) bool {
		return o.Workspace == workspace && o.Kind == kind && o.Name == name
	})
	if err != nil {
		return store.Object{}, err
	}
	if len(list) == 0 {
		return store.Object{}, fmt.Errorf("read %s named %q: %w", kind, name, store.ErrNotFound)
	}
	return slices.MaxFunc(list, func(x, y store.Object) int {
		if live := cmp.Compare(y.RetiredAt, x.RetiredAt); (x.RetiredAt == 0) != (y.RetiredAt == 0) {
			return live
		}
		return cmp.Or(cmp.Compare(x.RetiredAt, y.RetiredAt), cmp.Compare(x.Generation, y.Generation))
	}), nil
}

// List is store.Objects'.
func (b *Book) List(ctx context.Context, workspace, kind, afterName string, limit int) ([]store.Object, error) {
	list, err := b.list(ctx, func(o *store.Object) bool {
		return o.Workspace == workspace && o.Kind == kind && o.RetiredAt == 0 && o.Name > afterName
	})
	slices.SortFunc(list, func(x, y store.Object) int { return cmp.Compare(x.Name, y.Name) })
	return first(list, limit), err
}

// Since is store.Objects'.
func (b *Book) Since(ctx context.Context, workspace string, generation int64) ([]store.Object, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, 0, err
	}
	list := b.find(func(o *store.Object) bool {
		return (o.Workspace == workspace || o.Workspace == "") && o.Generation > generation &&
			(generation > 0 || o.RetiredAt == 0 && o.Kind != store.KindKey)
	})
	slices.SortFunc(list, func(x, y store.Object) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID))
	})
	return list, b.generation(workspace), nil
}

func (b *Book) list(ctx context.Context, want func(*store.Object) bool) ([]store.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	return b.find(want), nil
}

func (b *Book) find(want func(*store.Object) bool) []store.Object {
	var list []store.Object
	for _, o := range b.objects {
		if want(&o) {
			list = append(list, o)
		}
	}
	return list
}

// Change is store.Objects'.
func (b *Book) Change(ctx context.Context, at int64, edits []store.Edit) error {
	if len(edits) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	next := int64(1)
	for _, g := range b.generations {
		next = max(next, g+1)
	}
	changed := b.clone()
	for i := range edits {
		if err := changed.edit(&edits[i], at, next); err != nil {
			return fmt.Errorf("change objects: %w", err)
		}
	}
	b.config = changed
	for i := range edits {
		b.generations[edits[i].Object.Workspace] = next
	}
	return nil
}

func (c *config) edit(e *store.Edit, at, generation int64) error {
	o := e.Object
	key := objectKey{o.Workspace, o.Kind, o.ID}
	before := c.objects[key]
	if before.Version != e.Expect {
		return fmt.Errorf("%s %q (%s) has version %d, not %d: %w", o.Kind, o.Name, o.ID, before.Version, e.Expect, store.ErrConflict)
	}
	o.Version, o.Generation = e.Expect+1, generation
	o.CreatedAt, o.UpdatedAt, o.RetiredAt = at, at, 0
	if e.Expect > 0 {
		o.CreatedAt = before.CreatedAt
	}
	o.Body = append([]byte{}, o.Body...)
	if e.Retire {
		o.RetiredAt = at
	}
	for _, other := range c.objects {
		same := other.Workspace == o.Workspace && other.Kind == o.Kind && other.Name == o.Name && other.ID != o.ID
		if same && !e.Retire && other.RetiredAt == 0 {
			return fmt.Errorf("%s %q: the name is that of %s: %w", o.Kind, o.Name, other.ID, store.ErrConflict)
		}
	}
	c.objects[key] = o
	if e.Audit.Action != "" {
		a := e.Audit
		a.Seq = int64(len(c.audit)) + 1
		c.audit = append(c.audit, a)
	}
	return c.editSecrets(e)
}

func (c *config) editSecrets(e *store.Edit) error {
	o := &e.Object
	if e.ExpireSecrets != nil {
		end := max(1, *e.ExpireSecrets)
		for hash, s := range c.secrets {
			if s.Workspace == o.Workspace && s.KeyID == o.ID && (s.NotAfter == 0 || s.NotAfter > end) {
				s.NotAfter = end
				c.secrets[hash] = s
			}
		}
	}
	if s := e.AddSecret; s != nil {
		if known, ok := c.secrets[s.Hash]; ok && (known.Workspace != o.Workspace || known.KeyID != o.ID) {
			return fmt.Errorf("%s %q: another key has this secret: %w", o.Kind, o.Name, store.ErrConflict)
		}
		c.secrets[s.Hash] = store.KeySecret{Hash: s.Hash, Workspace: o.Workspace, KeyID: o.ID, NotAfter: s.NotAfter}
	}
	if e.Credential != nil {
		key := credentialKey{o.Workspace, o.ID}
		if *e.Credential == "" {
			delete(c.credentials, key)
		} else {
			c.credentials[key] = *e.Credential
		}
	}
	return nil
}

// KeyBySecret is store.Secrets'.
func (b *Book) KeyBySecret(ctx context.Context, hash [32]byte) (store.KeySecret, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return store.KeySecret{}, err
	}
	s, ok := b.secrets[hash]
	if !ok {
		return s, fmt.Errorf("look up a key: %w", store.ErrNotFound)
	}
	return s, nil
}

// Credential is store.Secrets'.
func (b *Book) Credential(ctx context.Context, workspace, providerID string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return "", err
	}
	out, ok := b.credentials[credentialKey{workspace, providerID}]
	if !ok {
		return "", fmt.Errorf("read the credential of provider %q: %w", providerID, store.ErrNotFound)
	}
	return out, nil
}

// StoreSecret is store.Secrets'.
func (b *Book) StoreSecret(ctx context.Context) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(b.secret[:]), nil
}

// AdminTokenHash is store.Secrets'.
func (b *Book) AdminTokenHash(ctx context.Context) ([32]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return [32]byte{}, err
	}
	if b.adminToken == nil {
		return [32]byte{}, fmt.Errorf("read the admin token: %w", store.ErrNotFound)
	}
	return *b.adminToken, nil
}

// SetAdminTokenHash is store.Secrets'.
func (b *Book) SetAdminTokenHash(ctx context.Context, hash [32]byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	b.adminToken = &hash
	return nil
}
