// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/store"
)

// KeyBySecret is store.Secrets'.
func (b *Book) KeyBySecret(ctx context.Context, hash [32]byte) (store.KeySecret, error) {
	s := store.KeySecret{Hash: hash}
	err := b.reports.QueryRow(ctx, sqlKeySecret, hash[:]).Scan(&s.Workspace, &s.KeyID, &s.NotAfter)
	if err != nil {
		return store.KeySecret{}, fmt.Errorf("look up a key: %w", known(err))
	}
	plain(&s.Workspace, &s.KeyID)
	return s, nil
}

// Credential is store.Secrets'.
func (b *Book) Credential(ctx context.Context, workspace, providerID string) (string, error) {
	var out string
	err := b.reports.QueryRow(ctx, sqlCredential, escape(workspace), escape(providerID)).Scan(&out)
	if err != nil {
		return "", fmt.Errorf("read the credential of provider %q: %w", providerID, known(err))
	}
	return text(out), nil
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
	if err := b.reports.QueryRow(ctx, sqlMeta, name).Scan(&value); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, known(err))
	}
	return value, nil
}

// SetAdminTokenHash is store.Secrets'.
func (b *Book) SetAdminTokenHash(ctx context.Context, hash [32]byte) error {
	if _, err := b.reports.Exec(ctx, sqlPutMeta, metaAdminToken, hash[:]); err != nil {
		return fmt.Errorf("store %s: %w", metaAdminToken, known(err))
	}
	return nil
}
