// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// metaMoved names in meta where the store's content has gone.
const metaMoved = "moved_to"

const (
	sqlAllObjects     = `SELECT ` + objectColumns + ` FROM objects ORDER BY workspace, kind, id`
	sqlAllSecrets     = `SELECT hash, workspace, key_id, not_after FROM key_secrets ORDER BY hash`
	sqlAllCredentials = `SELECT workspace, provider_id, credential FROM credentials ORDER BY workspace, provider_id`
	sqlAllMeta        = `SELECT name, value FROM meta WHERE name <> 'moved_to' ORDER BY name`
	sqlAllAudit       = `SELECT seq, workspace, at, actor, action, kind, id, name, before, after FROM audit ORDER BY seq`
	sqlAllOutgoing    = `SELECT seq, attempts, next_at, body FROM outbox ORDER BY seq`
	sqlDropMeta       = `DELETE FROM meta WHERE name = ?`
)

// Whole is store.Whole's.
func (b *Book) Whole(ctx context.Context, fn func(store.Reader, store.Rest) error) error {
	if err := b.catchUp(ctx); err != nil {
		return err
	}
	return b.snapshot(ctx, func(tx *sql.Tx) error {
		r := &reader{ctx: ctx, tx: tx}
		return fn(r, r)
	})
}

// MovedTo is store.Movable's.
func (b *Book) MovedTo(ctx context.Context) (string, error) {
	value, err := b.meta(ctx, metaMoved)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return string(value), err
}

// SetMoved is store.Movable's.
func (b *Book) SetMoved(ctx context.Context, to string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	err := b.writer.transact(func() error {
		if to == "" {
			return b.writer.exec(sqlDropMeta, metaMoved)
		}
		return b.writer.exec(sqlPutMeta, metaMoved, []byte(to))
	})
	if err != nil {
		return fmt.Errorf("write where the store has gone: %w", err)
	}
	return nil
}

// stays refuses a store whose content has gone elsewhere.
func (b *Book) stays(ctx context.Context) error {
	if b.options.Moved {
		return nil
	}
	to, err := b.MovedTo(ctx)
	if err == nil && to != "" {
		err = fmt.Errorf("its content went to %s, which has gone on since: %w", to, store.ErrMoved)
	}
	return err
}

// Configuration is store.Rest's.
func (r *reader) Configuration(fn func(*store.Object) error) error {
	return walk(r, scanObject, sqlAllObjects, fn)
}

// Generations is store.Rest's.
func (r *reader) Generations(fn func(*store.Generation) error) error {
	return walk(r, func(v row) (g store.Generation, err error) {
		err = v.Scan(&g.Workspace, &g.Generation)
		return g, err
	}, sqlGenerations, fn)
}

// KeySecrets is store.Rest's.
func (r *reader) KeySecrets(fn func(*store.KeySecret) error) error {
	return walk(r, func(v row) (s store.KeySecret, err error) {
		var hash []byte
		err = v.Scan(&hash, &s.Workspace, &s.KeyID, &s.NotAfter)
		copy(s.Hash[:], hash)
		return s, err
	}, sqlAllSecrets, fn)
}

// Credentials is store.Rest's.
func (r *reader) Credentials(fn func(*store.Credential) error) error {
	return walk(r, func(v row) (c store.Credential, err error) {
		err = v.Scan(&c.Workspace, &c.Provider, &c.Credential)
		return c, err
	}, sqlAllCredentials, fn)
}

// Meta is store.Rest's.
func (r *reader) Meta(fn func(*store.Meta) error) error {
	return walk(r, func(v row) (m store.Meta, err error) {
		err = v.Scan(&m.Name, &m.Value)
		return m, err
	}, sqlAllMeta, fn)
}

// Audits is store.Rest's.
func (r *reader) Audits(fn func(*store.Audit) error) error {
	return walk(r, scanAudit, sqlAllAudit, fn)
}

// Outgoing is store.Rest's.
func (r *reader) Outgoing(fn func(*store.Outgoing) error) error {
	return walk(r, func(v row) (o store.Outgoing, err error) {
		var body []byte
		if err = v.Scan(&o.Seq, &o.Attempts, &o.NextAt, &body); err == nil {
			o.Notice, err = ledger.DecodeNotice(body)
		}
		return o, err
	}, sqlAllOutgoing, fn)
}
