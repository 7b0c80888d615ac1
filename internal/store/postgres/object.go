// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/store"
)

// Object is store.Objects'.
func (b *Book) Object(ctx context.Context, workspace, kind, id string) (store.Object, error) {
	o, err := scanObject(b.reports.QueryRow(ctx, sqlObject, escape(workspace), escape(kind), escape(id)))
	if err != nil {
		return o, fmt.Errorf("read %s %q: %w", kind, id, err)
	}
	return o, nil
}

// ByName is store.Objects'.
func (b *Book) ByName(ctx context.Context, workspace, kind, name string) (store.Object, error) {
	o, err := scanObject(b.reports.QueryRow(ctx, sqlByName, escape(workspace), escape(kind), escape(name)))
	if err != nil {
		return o, fmt.Errorf("read %s named %q: %w", kind, name, err)
	}
	return o, nil
}

// List is store.Objects'.
func (b *Book) List(ctx context.Context, workspace, kind, afterName string, limit int) ([]store.Object, error) {
	list, err := queryAll(ctx, b.reports, scanObject, sqlListObjects, escape(workspace), escape(kind), escape(afterName), max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	return list, nil
}

// Since is store.Objects'. Both answers come from one snapshot.
func (b *Book) Since(ctx context.Context, workspace string, generation int64) (list []store.Object, now int64, err error) {
	err = b.snapshot(ctx, func(tx pgx.Tx) (err error) {
		if err := tx.QueryRow(ctx, sqlGeneration, escape(workspace)).Scan(&now); err != nil {
			return known(err)
		}
		list, err = queryAll(ctx, tx, scanObject, sqlSinceObjects, escape(workspace), generation, store.KindKey)
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
	wait := milliseconds(b.options.BatchTimeout)
	err := b.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockTimeout, wait); err != nil {
			return err
		}
		return change(ctx, tx, at, edits)
	})
	if err != nil {
		return fmt.Errorf("change objects: %w", err)
	}
	return nil
}

// transact runs fn in a transaction of its own.
func (b *Book) transact(ctx context.Context, fn func(pgx.Tx) error) error {
	if b.behind.Load() {
		return errors.Join(store.ErrUnavailable, store.ErrNewerSchema)
	}
	tx, err := b.reports.Begin(ctx)
	if err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if err := fn(tx); err != nil {
		return known(err)
	}
	if err := tx.Commit(ctx); err != nil {
		return fate(err)
	}
	return nil
}

func change(ctx context.Context, tx pgx.Tx, at int64, edits []store.Edit) error {
	if _, err := tx.Exec(ctx, sqlLockGenerations); err != nil {
		return err
	}
	var next int64
	if err := tx.QueryRow(ctx, sqlNextGeneration).Scan(&next); err != nil {
		return err
	}
	var workspaces []string
	for i := range edits {
		if w := edits[i].Object.Workspace; !slices.Contains(workspaces, w) {
			workspaces = append(workspaces, w)
		}
		if err := changeOne(ctx, tx, &edits[i], at, next); err != nil {
			return err
		}
	}
	for _, w := range workspaces {
		if _, err := tx.Exec(ctx, sqlPutGeneration, escape(w), next); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, sqlNotify)
	return err
}

func changeOne(ctx context.Context, tx pgx.Tx, e *store.Edit, at, generation int64) error {
	o := e.Object
	before, err := scanObject(tx.QueryRow(ctx, sqlObject, escape(o.Workspace), escape(o.Kind), escape(o.ID)))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
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
	} else if err := nameFree(ctx, tx, &o); err != nil {
		return err
	}
	if o.Body == nil {
		o.Body = []byte{}
	}
	_, err = tx.Exec(ctx, sqlPutObject, escape(o.Workspace), escape(o.Kind), escape(o.ID), escape(o.Name), o.Version, o.Generation,
		int64(o.Epoch), o.Body, escape(o.Source), escape(o.Origin), o.CreatedAt, o.UpdatedAt, o.RetiredAt)
	if err != nil {
		return err
	}
	if err := changeSecrets(ctx, tx, e); err != nil {
		return err
	}
	return addAudit(ctx, tx, &e.Audit)
}

func nameFree(ctx context.Context, tx pgx.Tx, o *store.Object) error {
	var other string
	err := tx.QueryRow(ctx, sqlNameTaken, escape(o.Workspace), escape(o.Kind), escape(o.Name), escape(o.ID)).Scan(&other)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s %q: the name is that of %s: %w", o.Kind, o.Name, text(other), store.ErrConflict)
}

func changeSecrets(ctx context.Context, tx pgx.Tx, e *store.Edit) error {
	o := &e.Object
	workspace, id := escape(o.Workspace), escape(o.ID)
	if e.ExpireSecrets != nil {
		// An end of 0 would mean none.
		if _, err := tx.Exec(ctx, sqlExpireSecrets, max(1, *e.ExpireSecrets), workspace, id); err != nil {
			return err
		}
	}
	if s := e.AddSecret; s != nil {
		var owner, key string
		var end int64
		err := tx.QueryRow(ctx, sqlKeySecret, s.Hash[:]).Scan(&owner, &key, &end)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return err
		case owner != workspace || key != id:
			return fmt.Errorf("%s %q: another key has this secret: %w", o.Kind, o.Name, store.ErrConflict)
		}
		if _, err := tx.Exec(ctx, sqlPutSecret, s.Hash[:], workspace, id, s.NotAfter); err != nil {
			return err
		}
	}
	if e.Credential == nil {
		return nil
	}
	if *e.Credential == "" {
		_, err := tx.Exec(ctx, sqlDeleteCredential, workspace, id)
		return err
	}
	_, err := tx.Exec(ctx, sqlPutCredential, workspace, id, escape(*e.Credential))
	return err
}

func addAudit(ctx context.Context, tx pgx.Tx, a *store.Audit) error {
	if a.Action == "" {
		return nil
	}
	_, err := tx.Exec(ctx, sqlAddAudit, escape(a.Workspace), a.At, escape(a.Actor), escape(a.Action), escape(a.Kind), escape(a.ID),
		escape(a.Name), a.Before, a.After)
	return err
}
