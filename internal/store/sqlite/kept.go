// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

const (
	keptColumns = `workspace, hash, provider, kind, expires_at`
	sqlKeep     = `INSERT INTO kept (` + keptColumns + `) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (workspace, hash, provider) DO UPDATE SET expires_at = excluded.expires_at WHERE excluded.expires_at > expires_at`
	sqlKept     = `SELECT ` + keptColumns + ` FROM kept WHERE workspace = ? AND hash = ?`
	sqlAllKept  = `SELECT ` + keptColumns + ` FROM kept ORDER BY workspace, hash, provider`
	sqlOldKept  = `SELECT ` + keptColumns + ` FROM kept WHERE expires_at < ? ORDER BY expires_at LIMIT ?`
	sqlDropKept = `DELETE FROM kept WHERE workspace = ? AND hash = ? AND provider = ? AND expires_at < ?`
)

var _ store.Keeper = (*Book)(nil)

// Keep is store.Keeper's. It goes into the tables at once, beside the journal: a
// fold that is writing is waited for, no other one.
func (b *Book) Keep(ctx context.Context, list []route.Kept) error {
	if len(list) > store.MaxKept {
		return fmt.Errorf("keep %d ids: at most %d", len(list), store.MaxKept)
	}
	b.mu.Lock()
	err := b.ready(ctx)
	w := b.writer
	b.mu.Unlock()
	if err != nil {
		return err
	}
	err = w.transact(func() error {
		for _, k := range shelf.Kept(list) {
			if err := w.exec(sqlKeep, k.Workspace, k.Hash[:], k.Provider, k.Kind, k.ExpiresAt); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record what providers keep: %w", err)
	}
	return nil
}

// Kept is store.Keeper's.
func (b *Book) Kept(ctx context.Context, workspace string, hashes []route.KeptHash) (all []route.Kept, err error) {
	if len(hashes) > store.MaxKept {
		return nil, fmt.Errorf("look for %d ids: at most %d", len(hashes), store.MaxKept)
	}
	err = b.snapshot(ctx, func(tx *sql.Tx) error {
		for _, hash := range hashes {
			list, err := queryAll(ctx, tx, scanKept, sqlKept, workspace, hash[:])
			if err != nil {
				return err
			}
			all = append(all, list...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for what providers keep: %w", err)
	}
	return all, nil
}

func scanKept(r row) (k route.Kept, err error) {
	var hash []byte
	if err := r.Scan(&k.Workspace, &hash, &k.Provider, &k.Kind, &k.ExpiresAt); err != nil {
		return k, known(err)
	}
	copy(k.Hash[:], hash)
	return k, nil
}

// AllKept is store.Rest's.
func (r *reader) AllKept(fn func(*route.Kept) error) error {
	return walk(r, scanKept, sqlAllKept, fn)
}

// oldKept finds what has expired.
func (b *Book) oldKept(ctx context.Context, p *pruning, limit int) (out part, err error) {
	before := p.cut.Kept
	list, err := queryAll(ctx, b.aside, scanKept, sqlOldKept, before, limit)
	if err != nil || len(list) == 0 {
		return out, err
	}
	out.Kept, out.more = int64(len(list)), len(list) == limit
	out.write = func(w *writer) error {
		for _, k := range list {
			if err := w.exec(sqlDropKept, k.Workspace, k.Hash[:], k.Provider, before); err != nil {
				return err
			}
		}
		return nil
	}
	return out, nil
}
