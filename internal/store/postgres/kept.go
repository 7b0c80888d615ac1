// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

const (
	keptColumns = `workspace, hash, provider, kind, expires_at`
	sqlKeep     = `INSERT INTO kept AS k (` + keptColumns + `)
SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::bigint[])
ON CONFLICT (workspace, hash, provider) DO UPDATE SET expires_at = excluded.expires_at WHERE excluded.expires_at > k.expires_at`
	sqlKept     = `SELECT ` + keptColumns + ` FROM kept WHERE workspace = $1 AND hash = ANY ($2::bytea[])`
	sqlAllKept  = `SELECT ` + keptColumns + ` FROM kept ORDER BY workspace, hash, provider`
	sqlDropKept = `DELETE FROM kept WHERE (workspace, hash, provider) IN
(SELECT workspace, hash, provider FROM kept WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)`
)

var _ store.Keeper = (*Book)(nil)

// Keep is store.Keeper's.
func (b *Book) Keep(ctx context.Context, list []route.Kept) error {
	if len(list) > store.MaxKept {
		return fmt.Errorf("keep %d ids: at most %d", len(list), store.MaxKept)
	}
	list = shelf.Kept(list) // of two processes that write the same rows none waits for the other in a ring
	var workspaces, providers, kinds []string
	var hashes [][]byte
	var ends []int64
	for i := range list {
		k := &list[i]
		workspaces, providers, kinds = append(workspaces, escape(k.Workspace)), append(providers, escape(k.Provider)), append(kinds, escape(k.Kind))
		hashes, ends = append(hashes, k.Hash[:]), append(ends, k.ExpiresAt)
	}
	if b.behind.Load() {
		return errors.Join(store.ErrUnavailable, store.ErrNewerSchema)
	}
	// A statement alone is a transaction, in one round trip.
	if _, err := b.reports.Exec(ctx, sqlKeep, workspaces, hashes, providers, kinds, ends); err != nil {
		return fmt.Errorf("record what providers keep: %w", known(err))
	}
	return nil
}

// Kept is store.Keeper's.
func (b *Book) Kept(ctx context.Context, workspace string, hashes []route.KeptHash) ([]route.Kept, error) {
	if len(hashes) > store.MaxKept {
		return nil, fmt.Errorf("look for %d ids: at most %d", len(hashes), store.MaxKept)
	}
	wanted := make([][]byte, len(hashes))
	for i := range hashes {
		wanted[i] = hashes[i][:]
	}
	list, err := queryAll(ctx, b.reports, scanKept, sqlKept, escape(workspace), wanted)
	if err != nil {
		return nil, fmt.Errorf("look for what providers keep: %w", err)
	}
	return list, nil
}

func scanKept(r scanner) (k route.Kept, err error) {
	var hash []byte
	if err := r.Scan(&k.Workspace, &hash, &k.Provider, &k.Kind, &k.ExpiresAt); err != nil {
		return k, known(err)
	}
	plain(&k.Workspace, &k.Provider, &k.Kind)
	copy(k.Hash[:], hash)
	return k, nil
}

// AllKept is store.Rest's.
func (r *reader) AllKept(fn func(*route.Kept) error) error {
	return walk(r, scanKept, sqlAllKept, fn)
}

func (p *pruner) kept() (more bool, err error) {
	tag, err := p.tx.Exec(p.ctx, sqlDropKept, p.at.cut.Kept, p.limit)
	p.step.Kept = tag.RowsAffected()
	return p.step.Kept > 0, err
}

func (f *filling) kept(rest store.Rest) error {
	return f.table("kept", []string{"workspace", "hash", "provider", "kind", "expires_at"}, func(put putter) error {
		return rest.AllKept(func(k *route.Kept) error {
			hash := k.Hash
			return put(escape(k.Workspace), hash[:], escape(k.Provider), escape(k.Kind), k.ExpiresAt)
		})
	})
}
