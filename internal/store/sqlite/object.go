// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/store"
)

// Object is store.Objects'.
func (b *Book) Object(ctx context.Context, workspace, kind, id string) (store.Object, error) {
	o, err := scanObject(b.read.QueryRowContext(ctx, sqlObject, workspace, kind, id))
	if err != nil {
		return o, fmt.Errorf("read %s %q: %w", kind, id, err)
	}
	return o, nil
}

// ByName is store.Objects'.
func (b *Book) ByName(ctx context.Context, workspace, kind, name string) (store.Object, error) {
	o, err := scanObject(b.read.QueryRowContext(ctx, sqlByName, workspace, kind, name))
	if err != nil {
		return o, fmt.Errorf("read %s named %q: %w", kind, name, err)
	}
	return o, nil
}

// List is store.Objects'.
func (b *Book) List(ctx context.Context, workspace, kind, afterName string, limit int) ([]store.Object, error) {
	list, err := queryAll(ctx, b.read, scanObject, sqlListObjects, workspace, kind, afterName, max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	return list, nil
}

// Since is store.Objects'. Both answers come from one snapshot.
func (b *Book) Since(ctx context.Context, workspace string, generation int64) (list []store.Object, now int64, err error) {
	err = b.snapshot(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, sqlGeneration, workspace).Scan(&now); err != nil {
			return err
		}
		list, err = queryAll(ctx, tx, scanObject, sqlSinceObjects, workspace, generation, store.KindKey)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read changes since generation %d: %w", generation, err)
	}
	return list, now, nil
}

// Change is store.Objects'.
func (b *Book) Change(ctx context.Context, at int64, edits []store.Edit) error {
	if len(edits) == 0 {
		return nil
	}
	b.foldMu.Lock() // a batch waits for the change, but not for a fold
	defer b.foldMu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	next := int64(1)
	for _, g := range b.generations {
		next = max(next, g+1)
	}
	var workspaces []string
	for i := range edits {
		if w := edits[i].Object.Workspace; !slices.Contains(workspaces, w) {
			workspaces = append(workspaces, w)
		}
	}
	err := b.writer.transact(func() error {
		for i := range edits {
			if err := b.writer.edit(&edits[i], at, next); err != nil {
				return err
			}
		}
		for _, w := range workspaces {
			if err := b.writer.exec(sqlPutGeneration, w, next); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("change objects: %w", err)
	}
	for _, w := range workspaces {
		b.generations[w] = next
	}
	return nil
}

func (w *writer) edit(e *store.Edit, at, generation int64) error {
	o := e.Object
	before, err := w.object(o.Workspace, o.Kind, o.ID)
	if err != nil {
		return err
	}
	if before.Version != e.Expect {
		return fmt.Errorf("%s %q (%s) has version %d, not %d: %w", o.Kind, o.Name, o.ID, before.Version, e.Expect, store.ErrConflict)
	}
	o.Version, o.Generation = e.Expect+1, generation
	o.CreatedAt, o.UpdatedAt, o.RetiredAt = at, at, 0
	if e.Expect > 0 {
		o.CreatedAt = before.CreatedAt
	}
	if e.Retire {
		o.RetiredAt = at
	} else if err := w.nameFree(&o); err != nil {
		return err
	}
	if o.Body == nil {
		o.Body = []byte{}
	}
	err = w.exec(sqlPutObject, o.Workspace, o.Kind, o.ID, o.Name, o.Version, o.Generation, int64(o.Epoch), o.Body,
		o.Source, o.Origin, o.CreatedAt, o.UpdatedAt, o.RetiredAt)
	if err != nil {
		return err
	}
	if err := w.editSecrets(e); err != nil {
		return err
	}
	return w.addAudit(&e.Audit)
}

func (w *writer) nameFree(o *store.Object) error {
	return w.query(sqlNameTaken, func(v []driver.Value) error {
		return fmt.Errorf("%s %q: the name is that of %s: %w", o.Kind, o.Name, text(v[0]), store.ErrConflict)
	}, o.Workspace, o.Kind, o.Name, o.ID)
}

// object reads what an edit needs of the object that it changes.
func (w *writer) object(workspace, kind, id string) (o store.Object, err error) {
	err = w.query(sqlObject, func(v []driver.Value) error {
		o.Version, o.CreatedAt = integer(v[4]), integer(v[10])
		return nil
	}, workspace, kind, id)
	return o, err
}

func (w *writer) editSecrets(e *store.Edit) error {
	o := &e.Object
	if e.ExpireSecrets != nil {
		// An end of 0 would mean none.
		if err := w.exec(sqlExpireSecrets, max(1, *e.ExpireSecrets), o.Workspace, o.ID); err != nil {
			return err
		}
	}
	if s := e.AddSecret; s != nil {
		err := w.query(sqlKeySecret, func(v []driver.Value) error {
			if text(v[0]) != o.Workspace || text(v[1]) != o.ID {
				return fmt.Errorf("%s %q: another key has this secret: %w", o.Kind, o.Name, store.ErrConflict)
			}
			return nil
		}, s.Hash[:])
		if err != nil {
			return err
		}
		if err := w.exec(sqlPutSecret, s.Hash[:], o.Workspace, o.ID, s.NotAfter); err != nil {
			return err
		}
	}
	switch {
	case e.Credential == nil:
		return nil
	case *e.Credential == "":
		return w.exec(sqlDeleteCredential, o.Workspace, o.ID)
	default:
		return w.exec(sqlPutCredential, o.Workspace, o.ID, *e.Credential)
	}
}

func (w *writer) addAudit(a *store.Audit) error {
	if a.Action == "" {
		return nil
	}
	return w.exec(sqlAddAudit, a.Workspace, a.At, a.Actor, a.Action, a.Kind, a.ID, a.Name, blob(a.Before), blob(a.After))
}

// blob keeps nothing apart from an empty value.
func blob(b []byte) driver.Value {
	if b == nil {
		return nil
	}
	return b
}

// KeyBySecret is store.Secrets'.
func (b *Book) KeyBySecret(ctx context.Context, hash [32]byte) (store.KeySecret, error) {
	s := store.KeySecret{Hash: hash}
	err := b.read.QueryRowContext(ctx, sqlKeySecret, hash[:]).Scan(&s.Workspace, &s.KeyID, &s.NotAfter)
	if err != nil {
		return store.KeySecret{}, fmt.Errorf("look up a key: %w", known(err))
	}
	return s, nil
}

// Credential is store.Secrets'.
func (b *Book) Credential(ctx context.Context, workspace, providerID string) (string, error) {
	var out string
	err := b.read.QueryRowContext(ctx, sqlCredential, workspace, providerID).Scan(&out)
	if err != nil {
		return "", fmt.Errorf("read the credential of provider %q: %w", providerID, known(err))
	}
	return out, nil
}

// The names in table meta.
const (
	metaSecret     = "store_secret"
	metaAdminToken = "admin_token_hash"
)

// StoreSecret is store.Secrets'.
func (b *Book) StoreSecret(ctx context.Context) ([]byte, error) { return b.meta(ctx, metaSecret) }

// AdminTokenHash is store.Secrets'.
func (b *Book) AdminTokenHash(ctx context.Context) (hash [32]byte, err error) {
	value, err := b.meta(ctx, metaAdminToken)
	copy(hash[:], value)
	return hash, err
}

func (b *Book) meta(ctx context.Context, name string) (value []byte, err error) {
	err = b.read.QueryRowContext(ctx, sqlMeta, name).Scan(&value)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, known(err))
	}
	return value, nil
}

// SetAdminTokenHash is store.Secrets'.
func (b *Book) SetAdminTokenHash(ctx context.Context, hash [32]byte) error {
	b.foldMu.Lock()
	defer b.foldMu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	return b.writer.transact(func() error { return b.writer.exec(sqlPutMeta, metaAdminToken, hash[:]) })
}

// known names the errors that callers tell apart.
func known(err error) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.ErrNotFound
	default:
		return errors.Join(store.ErrUnavailable, err)
	}
}
