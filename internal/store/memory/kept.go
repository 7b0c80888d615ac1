// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
)

type keptKey struct {
	workspace string
	hash      route.KeptHash
	provider  string
}

// Keep is store.Keeper's.
func (b *Book) Keep(ctx context.Context, list []route.Kept) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	for _, k := range list {
		key := keptKey{k.Workspace, k.Hash, k.Provider}
		if had, ok := b.kept[key]; !ok || had.ExpiresAt < k.ExpiresAt {
			b.kept[key] = k
		}
	}
	return nil
}

// Kept is store.Keeper's.
func (b *Book) Kept(ctx context.Context, workspace string, hashes []route.KeptHash) (list []route.Kept, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	for key, k := range b.kept {
		if key.workspace == workspace && slices.Contains(hashes, key.hash) {
			list = append(list, k)
		}
	}
	return list, nil
}

func (b *Book) dropKept(before int64, limit int, step *store.Pruned) bool {
	for key, k := range b.kept {
		if k.ExpiresAt < before && step.Kept < int64(limit) {
			delete(b.kept, key)
			step.Kept++
		}
	}
	return step.Kept > 0
}
